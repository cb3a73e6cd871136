"""The training loop: batches, gradients, updates, recording, checkpoints."""

from collections.abc import Callable
from math import isfinite
from time import monotonic
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from odesim.base.arrays import Array, array_namespace
from odesim.base.device import array_module, device_errors
from odesim.base.errors import ParamError, counted
from odesim.reference.protocols import Experiment, Params
from odesim.reference.training.checkpoint import Checkpoint, write_checkpoint
from odesim.reference.training.optimizers import make_optimizer, stored_settings
from odesim.reference.training.options import TrainingOptions, TrainingStorage
from odesim.reference.training.randomness import INITIAL, generators
from odesim.reference.training.record import Fits, Recorder, extend_iterations, recorded_iterations, to_host
from odesim.reference.training.trajectory import INTERRUPTED, NON_FINITE, OK, Trajectory, outcome_sentence

MAX_STEPS, MAX_SAVED = 10**9, 10**6

DEFAULT, IN_MEMORY = TrainingOptions(), TrainingStorage()


@device_errors("this training", "fewer seeds, smaller settings or float32")
def train(
    experiment: Experiment,
    options: TrainingOptions = DEFAULT,
    storage: TrainingStorage = IN_MEMORY,
    *,
    recorded: Array | None = None,
    progress: Callable[[int, int, Array], None] | None = None,
    stop: Callable[[], bool] | None = None,
    fits: Fits | None = None,
) -> Trajectory:
    """Trains an experiment for `steps` updates (by default its own number) and returns the Trajectory.

    Recorded are iterations 0 ... steps, or `save` of them (about 1001 where there are more): the loss (R,) of an iteration's batch and
    the observables before its update. Those that are costly or have more than 1000 entries are kept at the end only, but for those in
    `observe`. recorded: these iterations (T,) instead. progress: called with the iteration, steps and the loss.
    stop: asked before each iteration; the training ends as "interrupted" where it is true. A loss that is not finite stops no other seed.
    fits: asked before rows are kept in memory. Raises ParamError where the request is wrong, CodegenError without a GPU,
    DeviceError where one is full or fails.
    """
    steps = check_count(experiment.steps if options.steps is None else options.steps, "steps", 0)
    save = check_save(options.save)
    xp = array_module(options.backend)
    start_time = monotonic()
    model, previous, sink = experiment.model, storage.resume_from, storage.sink
    times = recorded_iterations(steps, save) if recorded is None else recorded
    if previous is not None:
        if previous.iteration > steps:
            raise ParamError(f"the training has {counted(previous.iteration, 'iteration')} already, more than the {steps} asked for")
        times = (
            previous.times
            if previous.times[-1] == steps
            else extend_iterations(previous.times[previous.times <= previous.iteration], steps, save)
        )
    params = {name: xp.asarray(w) for name, w in initial_params(experiment, options.dtype).items()}
    optimizer = make_optimizer(experiment.optimizer, model.groups, params)
    recorder = Recorder(model.observables, options.observe, times, sink, fits)
    start, bad = 0, np.full(len(experiment.seeds), -1, np.int64)
    if previous is not None:
        load_params(params, previous)
        optimizer.load(previous.optimizer)
        start, bad = previous.iteration, previous.bad.copy()

    def save_state(i: int) -> None:
        if storage.checkpoint:
            arrays = {name: to_host(w) for name, w in params.items()}
            state = {name: to_host(a) for name, a in optimizer.state().items()}
            spent = monotonic() - start_time + (previous.seconds if previous else 0.0)
            write_checkpoint(storage.checkpoint, Checkpoint(i, times, recorder.written, recorder.pending(), arrays, state, bad, spent))

    clock = monotonic()
    due, interrupted = clock + storage.checkpoint_every, False
    # a diverging seed is said in the message, not in numpy's warnings
    with threadpool_limits(check_count(options.threads, "threads", 1)), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for i in range(start, steps + 1):
            interrupted = stop is not None and stop()
            if i > start and monotonic() >= due:
                save_state(i)
                due = monotonic() + storage.checkpoint_every
            losses, gradients = model.loss_and_gradients(params, experiment.stream(i))
            loss = to_host(losses)
            note_non_finite(bad, loss, i)
            if not recorder.block:
                recorder.start(params, loss, written=previous.written if previous else 0, pending=previous.pending if previous else None)
                clock = monotonic()
            if interrupted or i == steps:
                break
            if i == recorder.next:
                recorder.add(loss, params)
            optimizer.update(params, gradients)
            if progress:
                progress(i + 1, steps, loss)
        rate = (i - start) / max(monotonic() - clock, 1e-9)
        save_state(i)  # before the last row: with more steps the training goes on from here
        if not interrupted:
            recorder.add(loss, params)
        recorder.flush()
        final = recorder.final(loss, params)
    spent = monotonic() - start_time + (previous.seconds if previous else 0.0)
    non_finite = {seed: int(first) for seed, first in zip(experiment.seeds, bad, strict=True) if first >= 0}
    status = INTERRUPTED if interrupted else NON_FINITE if non_finite else OK
    return Trajectory(
        task=experiment.task,
        model=model.name,
        t=times[: recorder.rows],
        observables=sink.rows() if sink else recorder.pending(),
        final=final,
        iteration=i,
        steps=steps,
        seeds=tuple(experiment.seeds),
        config=experiment.config,
        dims={o.name: o.dims for o in model.observables},
        status=status,
        message=outcome_sentence(status, i, steps, non_finite),
        bad=non_finite,
        stats={"seconds": spent, "steps_per_second": rate},
        attrs={
            "optimizer": stored_settings(experiment.optimizer),
            "dtype": options.dtype,
            "backend": options.backend,
            "vocabulary": experiment.vocabulary,
            "labels": {axis: list(names) for axis, names in experiment.labels.items()},
        },
    )


def initial_params(experiment: Experiment, dtype: str) -> Params:
    """The start {name: (R, ...)} in numpy: the experiment's own, or drawn by its model."""
    if experiment.start is not None:
        return experiment.start(dtype)
    return experiment.model.initial(generators(experiment.seeds, INITIAL), dtype)


def note_non_finite(bad: Array, loss: Array, i: int) -> None:
    """Sets bad (R,) to i for seeds whose loss (R,) is not finite for the first time."""
    if not isfinite(loss.sum()):
        bad[~np.isfinite(loss) & (bad < 0)] = i


def load_params(params: Params, checkpoint: Checkpoint) -> None:
    """Copies the checkpoint's parameters into params {name: (R, ...)}. Raises ParamError if names, shapes or types differ."""
    shapes, stored_shapes = ({name: (w.shape, str(w.dtype)) for name, w in arrays.items()} for arrays in (params, checkpoint.params))
    if shapes != stored_shapes:
        raise ParamError(f"the checkpoint is of another model: it has {stored_shapes}, not {shapes}")
    for name, w in params.items():
        w[...] = array_namespace(w).asarray(checkpoint.params[name])


def check_save(save: int | None) -> int | None:
    """save as an int, the number of iterations to record, or None for the default. Raises ParamError."""
    return None if save is None else check_count(save, "save", 2, MAX_SAVED)


def check_count(value: Any, name: str, low: int, most: int = MAX_STEPS) -> int:
    """value as an int between low and most. Raises ParamError, with name."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ParamError(f"{name} must be a whole number, not {value!r}")
    if not low <= value <= most:
        raise ParamError(f"{name} must be {low} to {most}, not {value}")
    return int(value)
