"""`odesim.train`: trains a task; the result is a Trajectory, stored while it runs and continued after a stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from odesim.base.arrays import Array, check_dtype
from odesim.base.device import array_module, check_saves_fit
from odesim.base.errors import ParamError
from odesim.base.signals import check_seconds, stop_signals, time_limit
from odesim.inputs.arguments import check_arguments
from odesim.lab.experiment import LONG, as_task, check_seeds, make_experiment
from odesim.lab.resume import train_into
from odesim.lab.training.loop import INTERRUPTED, TrainingOptions, Trajectory
from odesim.lab.training.loop import train as train_experiment
from odesim.lab.training.task import Task
from odesim.store.paths import Destination


@check_arguments
def train(
    task: str | Task,
    *,
    settings: Mapping[str, Any] | None = None,
    model: str | None = None,
    steps: int | None = None,
    seeds: int | Iterable[int] = (0,),
    optimizer: str | None = None,
    rates: Mapping[str, float] | None = None,
    save: int | None = None,
    observe: Sequence[str] = (),
    dtype: str = "float64",
    backend: str = "numpy",
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    checkpoint_every: float = 5.0,
    threads: int = 1,
    max_seconds: float | None = None,
    progress: Callable[[int, int, Array], None] | None = None,
) -> Trajectory:
    """A small transformer, trained on a task, all seeds at once.

    Parameters
    ----------
    task : str or Task
        A name of `odesim list --tasks`, or a Task of your own.
    settings : {name: value}
        Over the task's defaults, as `odesim train TASK --settings` lists them.
    model : str
        One of the task's.
    steps : int
        Updates; default: the task's own number.
    seeds : int or list of int
        One, or several such as range(5); with numpy each has the bits it would have alone.
    optimizer : "sgd", "momentum", "adam", "adamw", "sign" or "muon"
        Default: that of the task.
    rates : {group of parameters: learning rate}
        Over the task's.
    save : int
        How many iterations are recorded, evenly spread; default: all, or 1001 of more.
    observe : list of str
        Costly or large observables to record at all of these, not at the end only.
    out : path
        A folder for the run.

    Returns
    -------
    Trajectory
        Observables by name, seed and iteration.

    Other Parameters
    ----------------
    dtype : "float64" or "float32"
        Of the weights.
    backend : "numpy" or "cuda"
        cuda: cupy and an NVIDIA GPU, from the same start over the same batches; only rounding differs. A run goes on where it began: resume
        with another backend is refused.
    overwrite, resume : bool
        Replace the run at out; go on with it where it stopped.
    checkpoint_every : float
        Seconds.
    threads : int
        Of numpy's matrix products; with another number a seed's bits may be others.
    max_seconds : float
        Ends the training as Ctrl-C and SIGTERM do: as "interrupted", with what was computed.
    progress : callable
        Called with (updates done, steps, losses (R,)) after each.

    Raises
    ------
    OdesimError
        One sentence, if the request is wrong.

    Examples
    --------
    >>> training = odesim.train("scan_snap", seeds=range(2), steps=20)
    >>> training.observables["loss"].shape  # seeds, recorded iterations
    (2, 21)
    """
    loaded = as_task(task)
    array_module(backend)  # before anything is made
    observe = (observe,) if isinstance(observe, str) else tuple(sorted(set(observe)))
    options = TrainingOptions(steps, save, observe, check_dtype(dtype), backend, threads)
    chosen = check_seeds(seeds)
    if not 0 <= checkpoint_every <= LONG:
        raise ParamError(f"checkpoint_every must be a number of seconds from 0 to {LONG:g}, not {checkpoint_every}")
    if out is None and (resume or overwrite):
        raise ParamError(f"{'resume' if resume else 'overwrite'} needs the folder of a run: --out RUN.zarr")
    if resume and overwrite:
        raise ParamError("--resume continues the existing run, --overwrite replaces it; choose one")
    with time_limit(check_seconds(max_seconds)) as late:
        named: dict[str, Any] = {"model": model, "optimizer": optimizer, "rates": {} if rates is None else rates, "dtype": options.dtype}
        experiment = make_experiment(loaded, settings or {}, chosen, **named)
        if out is None:
            with stop_signals() as stop:
                trajectory = train_experiment(experiment, options, progress=progress, stop=stop, fits=check_saves_fit)
        else:
            to = Destination(Path(out), overwrite, resume)
            trajectory = train_into(to, experiment, options, checkpoint_every=checkpoint_every, progress=progress)
        limited = trajectory.status == INTERRUPTED and max_seconds is not None and late()
    return replace(trajectory, message=f"max_seconds = {max_seconds:g}: {trajectory.message}") if limited else trajectory
