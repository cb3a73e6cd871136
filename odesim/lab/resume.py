"""Stored trainings: begun or continued in a folder, or trained again and compared."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from odesim.api.differences import HALF, Differences, Rerun, other_code
from odesim.base.arrays import Array
from odesim.base.device import check_saves_fit
from odesim.base.errors import DeviceError, ParamError, StoreError, counted
from odesim.base.signals import stop_signals
from odesim.lab.experiment import make_experiment, versions
from odesim.lab.store import ROWS, RUNNING, RunSink, checkpoint_file, read_trajectory, training_attributes
from odesim.lab.tasks import load_task
from odesim.lab.training.loop import INTERRUPTED, TrainingOptions, TrainingStorage, Trajectory
from odesim.lab.training.loop import train as train_experiment
from odesim.lab.training.optimizers import stored_settings
from odesim.lab.training.record import read_checkpoint
from odesim.lab.training.task import Experiment, Optimizer
from odesim.store.manifest import digest_text
from odesim.store.paths import Destination, RunLock, check_new_run, damage_errors
from odesim.store.plain import to_plain

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
    about |= {"labels": experiment.labels, "doc": experiment.doc}
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
