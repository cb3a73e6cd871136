"""`odesim.train`: a training requested, stored while it runs, continued after a stop, or trained again and compared."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from odesim.api.rerun import HALF, Differences, Rerun, other_code
from odesim.base.arrays import Array, check_dtype
from odesim.base.backends import find_backend
from odesim.base.device import array_module, check_fits, check_saves_fit, device_name
from odesim.base.errors import DeviceError, ParamError, StoreError, counted, no_such, value_text
from odesim.base.options import __version__
from odesim.base.signals import check_seconds, stop_signals, time_limit
from odesim.inputs.arguments import check_arguments
from odesim.lab.own_task import find_task
from odesim.lab.store import ROWS, RUNNING, RunSink, checkpoint_file, read_trajectory, training_attributes
from odesim.lab.tasks import load_task
from odesim.lab.training.loop import INTERRUPTED, TrainingOptions, TrainingStorage, Trajectory
from odesim.lab.training.loop import train as train_experiment
from odesim.lab.training.optimizers import check_optimizer, settings_in_use, stored_settings
from odesim.lab.training.record import read_checkpoint
from odesim.lab.training.task import Experiment, Optimizer, Task, check_settings
from odesim.store.manifest import digest_text
from odesim.store.paths import Destination, RunLock, check_new_run, damage_errors
from odesim.store.write import to_plain

# The request of a training, checked, and the experiment that it makes: task, settings, seeds, optimizer and learning rates.

MOST_SEEDS = 100_000
LONG = 1e9  # seconds between two checkpoints
MOMENTUM = 0.9  # of --optimizer momentum, where the task has none


def make_experiment(
    task: Task,
    settings: Mapping[str, Any],
    seeds: tuple[int, ...],
    *,
    model: str | None = None,
    optimizer: str | None = None,
    rates: Mapping[str, float] | None = None,
    dtype: str = "float64",
) -> Experiment:
    """The experiment of a task, with checked settings, and the optimizer and rates requested; its config stores them. Raises ParamError."""
    if model is not None and model not in task.models:
        raise ParamError(no_such("model", model, task.models, task.name))
    rates = {} if rates is None else rates
    if not isinstance(rates, Mapping):
        raise ParamError(f"rates are {{group of parameters: learning rate}}, not {rates!r}")
    known = {setting.name: setting for setting in task.settings}
    # a task may have settings for them, from which its theory follows: a value given there too must be the same
    rate_names = {setting.rate_of: setting.name for setting in task.settings if setting.rate_of}
    also: list[tuple[str, str, Any]] = [("the optimizer", "optimizer", optimizer)] * (optimizer is not None)
    also += [(f"the learning rate of {group}", rate_names.get(group, f"eta_{group}"), rate) for group, rate in rates.items()]
    for what, name, value in also:
        if name in known:
            if settings.get(name, value) != value:
                raise ParamError(f"{what} is given twice: {value} and --set {name}={settings[name]}")
            settings = {**settings, name: value}
    values = check_settings(task.name, task.settings, settings)
    named = f"{counted(len(seeds), 'seed')} of {task.name}" if len(seeds) > 1 else task.name
    check_fits(f"a training of {named} with these settings", task.memory(values, len(seeds), model), 8)
    experiment = task.make(values, seeds=seeds, model=model, dtype=dtype)
    spec, config = experiment.optimizer, dict(experiment.config)
    if optimizer is not None and "optimizer" not in known:
        spec = replace(spec, name=optimizer, momentum=spec.momentum or MOMENTUM * (optimizer == "momentum"))
    for group, rate in rates.items():
        if group not in spec.rates:
            raise ParamError(no_such("group of parameters", str(group), spec.rates, f"{task.name} ({experiment.model.name})"))
        if f"eta_{group}" in values and spec.rates[group] != rate:
            stands = f"eta_{group}={rate:g} stands for {spec.rates[group]:g}"
            raise ParamError(f"the learning rate of {group} cannot be {rate:g} in {task.name}, where {stands}")
    spec = replace(spec, rates={**spec.rates, **rates})
    if "momentum" not in settings_in_use(vars(spec)):
        if "momentum" in known and known["momentum"].default is not None and values["momentum"] != known["momentum"].default:
            raise ParamError(f"momentum={values['momentum']:g} has no meaning with the optimizer {spec.name}, which has betas instead")
        spec = replace(spec, momentum=0.0)
        config.pop("momentum", None)
    check_optimizer(spec)
    return replace(experiment, optimizer=spec, config=config)


def as_task(task: Any) -> Task:
    """The task with this name or of this file, or the Task given. Raises ParamError."""
    if not isinstance(task, str) and not all(hasattr(task, part) for part in ("name", "settings", "models", "memory", "make")):
        raise ParamError(f"a task is a name or a Task, not {value_text(task)}")
    return find_task(task) if isinstance(task, str) else task


def check_seeds(seeds: Any) -> tuple[int, ...]:
    """Seeds (R,) as distinct integers >= 0. Raises ParamError."""
    if isinstance(seeds, str | bytes | Mapping | set | frozenset):
        raise ParamError(f"seeds are whole numbers in a row, such as range(5), not {value_text(seeds)}")
    try:
        numbers = (seeds,) if isinstance(seeds, int | np.integer) else tuple(islice(seeds, MOST_SEEDS + 1))
    except TypeError:
        raise ParamError(f"seeds must be whole numbers, not {value_text(seeds)}") from None
    if not 1 <= len(numbers) <= MOST_SEEDS:
        raise ParamError(f"there must be 1 to {MOST_SEEDS} seeds, not {'more' if numbers else 'none'}")
    for seed in numbers:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
            raise ParamError(f"a seed is a whole number from 0 up, not {value_text(seed)}")
    if len(set(numbers)) < len(numbers):
        raise ParamError("a seed is given twice")
    return tuple(map(int, numbers))


def versions(backend: str) -> dict[str, str]:
    """Versions of the packages that compute, and the name of the GPU if one does."""
    more = {"cupy": array_module(backend).__version__, "gpu": device_name()} if find_backend(backend).gpu else {}
    return {"odesim": __version__, "python": platform.python_version(), "numpy": np.__version__, **more}


# Stored trainings: begun or continued in a folder, or trained again and compared.

Progress = Callable[[int, int, Array], None]
# what makes a training the one that is stored, beside the settings
IDENTITY = ("task", "model", "seeds", "dtype", "backend", "optimizer", "save", "observe")


def restore(path: Path) -> tuple[dict[str, Any], Experiment]:
    """Attributes and experiment of the training at path. Raises an OdesimError if they cannot be restored."""
    attributes = training_attributes(path)
    try:
        task = load_task(attributes["task"])
    except ParamError:
        what = f"{attributes['task']} of {path} is a task of a file or a program, which the run does not name"
        again = f"odesim train FILE.py --out {path} --resume, or odesim.train(task, out=..., resume=True)"
        raise ParamError(f"{what}: continue it by the same command, {again}") from None
    settings = {s.name: attributes["config"][s.name] for s in task.settings if s.name in attributes["config"]}
    try:
        fresh = make_experiment(task, settings, tuple(attributes["seeds"]), model=attributes["model"], dtype=attributes["dtype"])
        spec = {**attributes["optimizer"], "betas": tuple(attributes["optimizer"]["betas"])}
        experiment = replace(fresh, optimizer=Optimizer(**spec))
        about = attributes_of(experiment, training_options_of(attributes))
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path} is damaged and cannot be read: an attribute is not as odesim writes it") from error
    check_same(path, {**attributes, "versions": about["versions"]}, about)
    return attributes, experiment


def training_options_of(attributes: Mapping[str, Any], threads: int | None = None) -> TrainingOptions:
    """The options in stored attributes, with another number of threads. Raises KeyError if one is missing."""
    values = {name: attributes[name] for name in ("steps", "save", "dtype", "backend")}
    return TrainingOptions(**values, observe=tuple(attributes["observe"]), threads=threads or attributes.get("threads", 1))


def resume_training(path: Path, *, threads: int | None = None, progress: Progress | None = None) -> Trajectory:
    """Continues the training at path to its last step, as `odesim train --resume` does; a finished one stays as it is."""
    attributes, experiment = restore(path)
    return train_into(Destination(path, resume=True), experiment, training_options_of(attributes, threads), progress=progress)


def rerun_training(path: Path, *, threads: int | None = None, progress: Progress | None = None) -> Rerun:
    """Trains again up to the last stored step, and compares every recorded row and the end. Raises an OdesimError."""
    attributes, experiment = restore(path)
    old = read_trajectory(path)
    killed = old.status == RUNNING  # then there is no end, and its rows are all that is known
    last = old.iteration if not killed else int(old.t[-1]) + 1 if len(old.t) else 0
    reached = 0

    def count(done: int, steps: int, loss: Array) -> None:
        nonlocal reached
        reached = done
        if progress:
            progress(done, max(last, done), loss)

    with stop_signals() as stop_requested:
        new = train_experiment(
            experiment,
            training_options_of(attributes, threads),
            recorded=old.t,
            stop=lambda: stop_requested() or (last < old.steps and reached >= last),
            progress=count,
            fits=check_saves_fit,
        )
    stopped = new.iteration < min(last, old.steps)
    differences = Differences()
    with damage_errors(path, "compared"):  # arrays of other names or shapes than this training has
        both, share = min(len(old.t), len(new.t)), HALF[attributes["dtype"]]

        def bounded(a: Array, b: Array) -> tuple[Array, Array, float]:
            """Two arrays, and the difference between them that other code may make, by the largest entry."""
            return a, b, share * float(np.abs(a[np.isfinite(a)]).max(initial=0.0))

        rows = {name: (np.swapaxes(v[:, :both], 0, 1), np.swapaxes(new.observables[name], 0, 1)) for name, v in old.observables.items()}
        pairs = {name: bounded(a, b[:both]) for name, (a, b) in rows.items()}
        differences.add(pairs, np.ones(both, bool), lambda i: f"iteration {old.t[i]}")
        if not (killed or stopped):
            ends = {name: bounded(v[None], new.final[name][None]) for name, v in old.final.items()}
            differences.add(ends, np.ones(1, bool), lambda _: "the end", rows=False)
    of = "" if len(old.seeds) == 1 else f" of {counted(len(old.seeds), 'seed')}"
    other = other_code(attributes, "", versions(attributes["backend"]))
    bound = f"half the digits of {attributes['dtype']}"
    return differences.report(path, "recorded iteration", of=of, other=other, bound=bound, stopped=stopped)


def train_into(
    to: Destination,
    experiment: Experiment,
    options: TrainingOptions,
    *,
    checkpoint_every: float = 5.0,
    progress: Progress | None = None,
) -> Trajectory:
    """Trains the experiment into a folder, or continues the training there. Raises an OdesimError."""
    from odesim.store.paths import is_run

    path, about, lock = to.path, attributes_of(experiment, options), RunLock()
    try:
        if (to.resume or to.overwrite) and is_run(path):
            lock.acquire(path)
        old, options, done = stored_before(to, experiment, about, options)
        if done:
            return done
        state = read_checkpoint(checkpoint_file(path)) if old and os.path.exists(checkpoint_file(path)) else None
        if old and state and old[ROWS] < state.written:
            rows = counted(old[ROWS], "recorded iteration")
            raise StoreError(f"{path} is damaged: it has {rows}, and its checkpoint goes on after {state.written}")
        sink = RunSink(path, about, experiment, resume=state is not None, replaces=to.overwrite or old is not None, lock=lock)
        with stop_signals() as stop:
            storage = TrainingStorage(sink, checkpoint_file(path), checkpoint_every, state)
            trajectory = train_experiment(experiment, options, storage, stop=stop, progress=progress, fits=check_saves_fit)
            sink.finish(trajectory)
    except DeviceError as error:
        if not os.path.exists(checkpoint_file(path)):
            raise
        raise DeviceError(f"{error}; --resume continues from the last checkpoint", stored=True) from error
    except OSError as error:
        more = "; --resume continues from the last checkpoint" if os.path.exists(path) else ""
        raise StoreError(f"cannot write {path}: {error.strerror or error}{more}") from error
    finally:
        lock.release()
    return trajectory


def stored_before(
    to: Destination, experiment: Experiment, about: Mapping[str, Any], options: TrainingOptions
) -> tuple[dict[str, Any] | None, TrainingOptions, Trajectory | None]:
    """The attributes of the training to go on with, None where one begins; the options with steps; its Trajectory if it is done.

    Raises StoreError where nothing can be written there, ParamError where another training is there.
    """

    path, steps = to.path, options.steps
    old = training_attributes(path) if to.joins else None
    if old is None or not os.path.exists(checkpoint_file(path)):
        check_new_run(path, overwrite=to.overwrite or old is not None)
    if old is None:
        return None, replace(options, steps=experiment.steps if steps is None else steps), None
    for name, now in digests(old).items():
        if "identity" in old and old["identity"].get(name) != now:
            raise StoreError(f"{path} was changed: its {name} is not what it was begun with")
    check_same(path, old, about)
    options = replace(options, steps=old["steps"] if steps is None else steps)
    if (options.steps or 0) < old["iteration"]:
        raise ParamError(f"{path} has {counted(old['iteration'], 'iteration')} already, more than the {options.steps} asked for")
    done = options.steps == old["iteration"] == old["steps"] and old["status"] not in (INTERRUPTED, RUNNING)
    return old, options, read_trajectory(path) if done else None


def attributes_of(experiment: Experiment, options: TrainingOptions) -> dict[str, Any]:
    """The attributes of a stored training that are known before it begins."""
    named = {"task": experiment.task, "model": experiment.model.name, "seeds": experiment.seeds}
    values = named | {"optimizer": stored_settings(experiment.optimizer)} | vars(options)
    about: dict[str, Any] = {name: values[name] for name in IDENTITY} | {"versions": versions(options.backend), "config": experiment.config}
    about |= {"vocabulary": experiment.vocabulary, "labels": experiment.labels}
    return {**about, "identity": digests(about), "threads": options.threads}


def digests(about: Mapping[str, Any]) -> dict[str, str]:
    """{what: digest} of the properties that identify a training; two trainings are the same if all digests are equal."""
    return {name: digest_text(to_plain(about.get(name))) for name in (*IDENTITY, "config")}


def check_same(path: Path, old: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Raises ParamError if the training stored at path is another one, naming the first difference."""
    new = to_plain({name: about[name] for name in (*IDENTITY, "config")})
    pairs = [(name, old.get(name), new[name]) for name in IDENTITY]
    pairs[2:2] = [(f"setting {name}", old["config"].get(name), value) for name, value in new["config"].items()]
    for name, before, now in pairs:
        if before != now:
            was, wanted = (text if len(text) <= 80 else f"{text[:77]}..." for text in (str(before), str(now)))
            raise ParamError(f"{path} was trained with {name} = {was}, not {wanted}; --resume takes the same command")


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
