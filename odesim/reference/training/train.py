"""The training loop: batches, gradients, updates, and on the way the rows that are recorded."""

from collections.abc import Callable
from dataclasses import asdict
from math import isfinite
from time import monotonic
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from odesim.base.arrays import Array, array_namespace
from odesim.base.gpu import array_module, device_errors
from odesim.errors import ParamError, counted
from odesim.reference.protocols import Experiment, Params
from odesim.reference.training.checkpoint import Checkpoint, write_checkpoint
from odesim.reference.training.optimizers import make_optimizer
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
    """The experiment trained for `steps` updates (its own number by default).

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
    begin = monotonic()
    model, old, sink = experiment.model, storage.resume_from, storage.sink
    times = recorded_iterations(steps, save) if recorded is None else recorded
    if old is not None:
        if old.iteration > steps:
            raise ParamError(f"the training has {counted(old.iteration, 'iteration')} already, more than the {steps} asked for")
        times = old.times if old.times[-1] == steps else extend_iterations(old.times[old.times <= old.iteration], steps, save)
    params = {name: xp.asarray(w) for name, w in model.initial(generators(experiment.seeds, INITIAL), options.dtype).items()}
    optimizer = make_optimizer(experiment.optimizer, model.groups, params)
    recorder = Recorder(model.observables, options.observe, times, sink, fits)
    start, bad = 0, np.full(len(experiment.seeds), -1, np.int64)
    if old is not None:
        load_params(params, old)
        optimizer.load(old.optimizer)
        start, bad = old.iteration, old.bad.copy()

    def save_state(i: int) -> None:
        if storage.checkpoint:
            held = {name: to_host(w) for name, w in params.items()}
            state = {name: to_host(a) for name, a in optimizer.state().items()}
            spent = monotonic() - begin + (old.seconds if old else 0.0)
            write_checkpoint(storage.checkpoint, Checkpoint(i, times, recorder.written, recorder.pending(), held, state, bad, spent))

    clock = monotonic()
    due, ended = clock + storage.checkpoint_every, False
    # a diverging seed is said in the message, not in numpy's warnings
    with threadpool_limits(check_count(options.threads, "threads", 1)), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for i in range(start, steps + 1):
            ended = stop is not None and stop()
            if i > start and monotonic() >= due:
                save_state(i)
                due = monotonic() + storage.checkpoint_every
            losses, gradients = model.loss_and_gradients(params, experiment.stream(i))
            loss = to_host(losses)
            note_non_finite(bad, loss, i)
            if not recorder.block:
                recorder.start(params, loss, written=old.written if old else 0, pending=old.pending if old else None)
                clock = monotonic()
            if ended or i == steps:
                break
            if i == recorder.next:
                recorder.add(loss, params)
            optimizer.update(params, gradients)
            if progress:
                progress(i + 1, steps, loss)
        rate = (i - start) / max(monotonic() - clock, 1e-9)
        save_state(i)  # before the last row: with more steps the training goes on from here
        if not ended:
            recorder.add(loss, params)
        recorder.flush()
        final = recorder.final(loss, params)
    spent = monotonic() - begin + (old.seconds if old else 0.0)
    found = {seed: int(first) for seed, first in zip(experiment.seeds, bad, strict=True) if first >= 0}
    status = INTERRUPTED if ended else NON_FINITE if found else OK
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
        message=outcome_sentence(status, i, steps, found),
        bad=found,
        stats={"seconds": spent, "steps_per_second": rate},
        attrs={
            "optimizer": asdict(experiment.optimizer),
            "dtype": options.dtype,
            "backend": options.backend,
            "vocabulary": experiment.vocabulary,
        },
    )


def note_non_finite(bad: Array, loss: Array, i: int) -> None:
    """Writes i into bad (R,) for the seeds whose loss (R,) is not finite for the first time."""
    if not isfinite(loss.sum()):
        bad[~np.isfinite(loss) & (bad < 0)] = i


def load_params(params: Params, old: Checkpoint) -> None:
    """Copies the checkpoint's parameters into params {name: (R, ...)}. Raises ParamError where those are others."""
    shapes, found = ({name: (w.shape, str(w.dtype)) for name, w in arrays.items()} for arrays in (params, old.params))
    if shapes != found:
        raise ParamError(f"the checkpoint is of another model: it has {found}, not {shapes}")
    for name, w in params.items():
        w[...] = array_namespace(w).asarray(old.params[name])


def check_save(save: int | None) -> int | None:
    """How many iterations to record; None: as many as there are, about 1001 of more. Raises ParamError."""
    return None if save is None else check_count(save, "save", 2, MAX_SAVED)


def check_count(value: Any, name: str, low: int, most: int = MAX_STEPS) -> int:
    """value as an int, low to most. Raises ParamError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ParamError(f"{name} must be a whole number, not {value!r}")
    if not low <= value <= most:
        raise ParamError(f"{name} must be {low} to {most}, not {value}")
    return int(value)
