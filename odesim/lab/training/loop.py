"""The training loop, its options and its result, the Trajectory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from odesim.base.arrays import Array, on_host
from odesim.base.datasets import draw, with_accessor
from odesim.base.device import array_module, device_errors
from odesim.base.errors import ParamError, counted, value_text
from odesim.base.parsing import check_keywords, readable
from odesim.lab.training.optimizers import copy_arrays, make_optimizer, stored_settings
from odesim.lab.training.randomness import INITIAL, generators
from odesim.lab.training.record import Checkpoint, Fits, Recorder, Sink, extend_iterations, recorded_iterations, write_checkpoint
from odesim.lab.training.task import Experiment, Params

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes


MAX_STEPS, MAX_SAVED = 10**9, 10**6


@dataclass(frozen=True)
class TrainingOptions:
    """How an experiment is trained. Raises ParamError for numbers out of range.

    steps: updates, the experiment's own number where None. save: how many iterations are recorded, all or about 1001 of more where None.
    observe: costly or large observables that are recorded at all of them. dtype: of all numbers. backend: "numpy", or "cuda": cupy and a
    GPU; what is drawn, recorded and kept is in numpy either way. threads: of numpy's matrix products; their bits may depend on it.
    """

    steps: int | None = None
    save: int | None = None
    observe: Sequence[str] = ()
    dtype: str = "float64"
    backend: str = "numpy"
    threads: int = 1

    def __post_init__(self) -> None:
        for name, low, most in (("steps", 0, MAX_STEPS), ("save", 2, MAX_SAVED), ("threads", 1, MAX_STEPS)):
            if (value := getattr(self, name)) is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise ParamError(f"{name} must be a whole number, not {value_text(value)}")
            if not low <= value <= most:
                raise ParamError(f"{name} must be {low} to {most}, not {value}")
            object.__setattr__(self, name, int(value))  # numpy's numbers are no JSON


@dataclass(frozen=True)
class TrainingStorage:
    """The place where a training is kept. sink: takes the rows in blocks; without one they stay in memory.

    checkpoint: a file, written every checkpoint_every seconds and at the end. resume_from: the content of such a file.
    """

    sink: Sink | None = None
    checkpoint: Path | None = None
    checkpoint_every: float = 5.0
    resume_from: Checkpoint | None = None


OK, INTERRUPTED, NON_FINITE = "ok", "interrupted", "non_finite"
SEED, TIME = "seed", "time"


@readable
@dataclass(frozen=True, repr=False, eq=False)
class Trajectory:
    """Observables along a training of R seeds, recorded before the update of an iteration.

    Attributes
    ----------
    task, model : str
        What was trained.
    t : (T,)
        The recorded iterations.
    observables : {name: (R, T, *shape)}
        `loss` is that of the batch of the iteration.
    final : {name: (R, *shape)}
        Every observable at the iteration reached, after its last update; `loss` too.
    iteration, steps : int
        Updates done, and those asked for.
    seeds : (R,)
        As asked for.
    config : dict
        The settings.
    dims : {name: names of the axes after seed and time}
        Of the observables.
    status, message : str
        "ok", "interrupted", or "non_finite" where a seed's loss is; a sentence.
    bad : {seed: iteration}
        The first iteration whose loss is not finite.
    stats : {name: float}
        seconds, steps_per_second.
    attrs : dict
        What it was computed by.

    Examples
    --------
    >>> training = odesim.train("scan_snap", steps=10)
    >>> training.ok, int(training.t[-1]), training.final["Y"].shape
    (True, 10, (1, 30, 34))
    """

    task: str
    model: str
    t: Array
    observables: Mapping[str, Array]
    final: Mapping[str, Array]
    iteration: int
    steps: int
    seeds: tuple[int, ...]
    config: Mapping[str, Any]
    dims: Mapping[str, tuple[str, ...]]
    status: str
    message: str
    bad: Mapping[int, int]
    stats: Mapping[str, float]
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether every seed was trained to the end with a finite loss."""
        return self.status == OK

    def to_xarray(self) -> xarray.Dataset:
        """A Dataset of observables (seed, time, ...); those recorded at the end only have no time axis."""
        import xarray

        variables: dict[str, Any] = {name: (axis_names(self.dims, name, rows.ndim - 2), rows) for name, rows in self.observables.items()}
        ends = {name: value for name, value in self.final.items() if name not in variables}
        variables |= {name: (axis_names(self.dims, name, value.ndim - 1, timed=False), value) for name, value in ends.items()}
        attributes = {"task": self.task, "model": self.model, "status": self.status, "message": self.message, "steps": self.steps}
        attributes["doc"] = self.attrs.get("doc", "")
        settings = {name: value for name, value in self.config.items() if isinstance(value, str | int | float)}
        coords = {SEED: np.array(self.seeds), TIME: self.t}
        return with_accessor(xarray.Dataset(variables, coords=coords, attrs={**settings, **attributes}))

    @check_keywords
    def plot(
        self, var: str | Iterable[str] = (), *, index: int | Iterable[int] | None = None, log: str | None = None, ax: Axes | None = None
    ) -> Axes | Array:
        """Draws observables against iterations, with bands over seeds; returns Axes, an array of them for several panels.

        `odesim.plot.save(axes, path)` writes the picture.

        Parameters
        ----------
        var : str or list of str
            What is drawn; default: all.
        index : int or list of int
            A component of an array.
        log : str
            Letters of logarithmic scales (x, y, c for colours), or "none".
        ax : Axes
            For one observable; it is returned.

        Raises
        ------
        ParamError
            For what was not recorded.
        """
        run = self.to_xarray().assign_attrs(labels=self.attrs.get("labels", {}))
        return draw("training", run, ax, var=var, index=index, log=log)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {value.shape}" for name, value in self.final.items())
        return f"<Trajectory of {self.task} ({self.model}): {self.status} at iteration {self.iteration}; {len(self.t)} recorded; {shapes}>"

    def _repr_html_(self) -> str:
        from html import escape

        cells = "".join(
            f"<tr><td><b>{escape(name)}</b></td><td>{value.shape[1:] or ''}</td><td>{range_text(value)}</td>"
            f"<td>{'at every recorded iteration' if name in self.observables else 'at the end only'}</td></tr>"
            for name, value in self.final.items()
        )
        titles = "".join(f"<th>{title}</th>" for title in ("name", "shape", "last values, over the seeds", "kept"))
        counts = f"{counted(len(self.seeds), 'seed')}, {counted(len(self.t), 'recorded iteration')}"
        head = f"<b>{escape(self.task)}</b> ({escape(self.model)}), {counts}"
        return f"<div>{head}<br/>{escape(self.message)}<table><tr>{titles}</tr>{cells}</table></div>"


def range_text(values: Array) -> str:
    """A single number as text, or the range of several."""
    return f"{float(values.min()):.6g}" if values.size == 1 else f"{float(values.min()):.6g} to {float(values.max()):.6g}"


def axis_names(dims: Mapping[str, tuple[str, ...]], name: str, rank: int, *, timed: bool = True) -> tuple[str, ...]:
    """Axis names of an observable: seed, time if timed, then `rank` more, numbered if dims has no names for them."""
    named = tuple(dims.get(name, ()))
    further = named if len(named) == rank else tuple(f"{name}_{axis}" for axis in range(rank))
    return (SEED, TIME, *further) if timed else (SEED, *further)


def outcome_sentence(status: str, iteration: int, steps: int, bad: Mapping[int, int]) -> str:
    """A sentence on how a training ended."""
    first = sorted(bad.items(), key=lambda pair: pair[1])
    phrases = [f"seed {seed} from iteration {i} on" for seed, i in first[:3]]
    phrases += [f"{len(first) - 3} more"] * (len(first) > 3)
    not_finite = f"the loss is not finite: {', '.join(phrases)}" if phrases else ""
    if status == INTERRUPTED:
        where = f"interrupted at iteration {iteration} of {steps}"
        return "; ".join(filter(None, (where, not_finite)))
    return not_finite or f"trained for {counted(iteration, 'iteration')}"


# The training loop: batches, gradients, updates, recording, checkpoints.

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
    xp, start_time = array_module(options.backend), monotonic()
    options = replace(options, steps=experiment.steps) if options.steps is None else options
    steps, save = options.steps or 0, options.save
    model, previous, sink = experiment.model, storage.resume_from, storage.sink
    times = recorded_iterations(steps, save) if recorded is None else recorded
    if previous is not None:
        if previous.iteration > steps:
            raise ParamError(f"the training has {counted(previous.iteration, 'iteration')} already, more than the {steps} asked for")
        if (times := previous.times)[-1] != steps:
            times = extend_iterations(times[times <= previous.iteration], steps, save)
    params = {name: xp.asarray(w) for name, w in initial_params(experiment, options.dtype).items()}
    optimizer = make_optimizer(experiment.optimizer, model.groups, params)
    recorder = Recorder(model.observables, options.observe, times, sink, fits)
    start, bad = 0, np.full(len(experiment.seeds), -1, np.int64)
    if previous is not None:
        copy_arrays(params, previous.params, "the checkpoint is of another model")
        optimizer.load(previous.optimizer)
        start, bad = previous.iteration, previous.bad.copy()

    def spent() -> float:
        return monotonic() - start_time + (previous.seconds if previous else 0.0)

    def save_state(i: int) -> None:
        if storage.checkpoint:
            arrays, state = ({name: on_host(a) for name, a in named.items()} for named in (params, optimizer.state()))
            rows = recorder.times, recorder.written, recorder.pending()
            write_checkpoint(storage.checkpoint, Checkpoint(i, *rows, arrays, state, bad, spent()))

    clock = monotonic()
    due, interrupted = clock + storage.checkpoint_every, False
    # a diverging seed is said in the message, not in numpy's warnings
    with threadpool_limits(options.threads), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for i in range(start, steps + 1):
            interrupted = stop is not None and stop()
            if i > start and monotonic() >= due:
                save_state(i)
                due = monotonic() + storage.checkpoint_every
            # the loss comes with the gradient, so that a row is of the parameters before the update, as the papers' logs are
            losses, gradients = model.loss_and_gradients(params, experiment.stream(i))
            loss = on_host(losses)
            if not isfinite(loss.sum()):
                bad[~np.isfinite(loss) & (bad < 0)] = i
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
    non_finite = {seed: int(first) for seed, first in zip(experiment.seeds, bad, strict=True) if first >= 0}
    status = INTERRUPTED if interrupted else NON_FINITE if non_finite else OK
    return Trajectory(
        task=experiment.task,
        model=model.name,
        t=recorder.times[: recorder.rows],
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
        stats={"seconds": spent(), "steps_per_second": rate},
        attrs={
            "optimizer": stored_settings(experiment.optimizer),
            "dtype": options.dtype,
            "backend": options.backend,
            "labels": {axis: list(names) for axis, names in experiment.labels.items()},
            "doc": experiment.doc,
        },
    )


def initial_params(experiment: Experiment, dtype: str) -> Params:
    """The start {name: (R, ...)} in numpy: the experiment's own, or drawn by its model."""
    if experiment.start is not None:
        return experiment.start(dtype)
    return experiment.model.initial(generators(experiment.seeds, INITIAL), dtype)
