"""Stored trainings: continued, or trained again and compared."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.api.differences import HALF, Differences, Rerun, other_code
from odesim.base.arrays import Array
from odesim.base.device import check_saves_fit
from odesim.base.errors import DeviceError, ParamError, StoreError, counted
from odesim.base.signals import stop_signals
from odesim.lab.experiment import make_experiment, versions
from odesim.lab.store import RUNNING, RunSink, check_stored_rows, checkpoint_file, read_trajectory, training_attributes
from odesim.lab.tasks import load_task
from odesim.lab.training.loop import INTERRUPTED, TrainingOptions, TrainingStorage, Trajectory, check_count, check_save
from odesim.lab.training.loop import train as train_experiment
from odesim.lab.training.optimizers import stored_settings
from odesim.lab.training.record import read_checkpoint
from odesim.lab.training.task import Experiment, Optimizer
from odesim.store.paths import Destination, damage_errors

if TYPE_CHECKING:
    from odesim.store.paths import RunLock


Progress = Callable[[int, int, Array], None]


def restore(path: Path) -> tuple[dict[str, Any], Experiment]:
    """Attributes and experiment of the training at path. Raises an OdesimError if they cannot be restored."""
    attributes = training_attributes(path)
    try:
        task = load_task(attributes["task"])
    except ParamError:
        what = f"{path} was trained in Python on a task of its own, {attributes['task']}"
        raise ParamError(f"{what}: call odesim.train with it again, and resume=True") from None
    known = {setting.name for setting in task.settings}
    settings = {name: value for name, value in attributes["config"].items() if name in known}
    try:
        fresh = make_experiment(task, settings, attributes["model"], tuple(attributes["seeds"]), None, {}, attributes["dtype"])
        spec = {**attributes["optimizer"], "betas": tuple(attributes["optimizer"]["betas"])}
        experiment = replace(fresh, optimizer=Optimizer(**spec))
        about = {**identity(experiment, training_options_of(attributes)), "config": experiment.config}
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
        compare(differences, old, new, HALF[attributes["dtype"]], ends=not (killed or stopped))
    of = "" if len(old.seeds) == 1 else f" of {counted(len(old.seeds), 'seed')}"
    other = other_code(attributes, "", versions(attributes["backend"]))
    bound = f"half the digits of {attributes['dtype']}"
    return differences.report(path, "recorded iteration", of=of, other=other, bound=bound, stopped=stopped)


def compare(differences: Differences, old: Trajectory, new: Trajectory, share: float, *, ends: bool) -> None:
    """Compares the rows (R, T, ...) that both trainings have, iteration by iteration, and the end.

    share: the difference that other code may make, in units of the largest entry.
    """
    count = min(len(old.t), len(new.t))
    pairs = {
        name: bounded(np.swapaxes(v[:, :count], 0, 1), np.swapaxes(new.observables[name], 0, 1)[:count], share)
        for name, v in old.observables.items()
    }
    differences.add(pairs, np.ones(count, bool), lambda i: f"iteration {old.t[i]}")
    if ends:
        last = {name: bounded(v[None], new.final[name][None], share) for name, v in old.final.items()}
        differences.add(last, np.ones(1, bool), lambda _: "the end", rows=False)


def bounded(old: Array, new: Array, share: float) -> tuple[Array, Array, float]:
    """A pair of arrays and the largest difference allowed."""
    finite = np.abs(old[np.isfinite(old)])
    return old, new, share * float(finite.max(initial=0.0))


LONG = 1e9  # seconds between two checkpoints


# what makes a training the one that is stored, beside the settings
IDENTITY = ("task", "model", "seeds", "dtype", "backend", "optimizer", "save", "observe")


def train_into(
    to: Destination,
    experiment: Experiment,
    options: TrainingOptions,
    *,
    checkpoint_every: float = 5.0,
    progress: Callable[[int, int, Array], None] | None = None,
    stop_requested: Callable[[], bool] = lambda: False,
) -> Trajectory:
    """Trains the experiment into a folder, or continues the training there. stop_requested: whether to stop. Raises an OdesimError."""
    path, options = to.path, replace(options, save=check_save(options.save))
    about = attributes_of(experiment, options)
    from odesim.store.paths import RunLock

    lock = RunLock()
    try:
        sink, steps, done, state = place(to, experiment, about, options.steps, lock)
        if done:
            return done
        with stop_signals() as stop:
            storage = TrainingStorage(sink, checkpoint_file(sink.path), checkpoint_every, state)
            how = replace(options, steps=steps)
            trajectory = train_experiment(
                experiment, how, storage, progress=progress, stop=lambda: stop() or stop_requested(), fits=check_saves_fit
            )
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


def attributes_of(experiment: Experiment, options: TrainingOptions) -> dict[str, Any]:
    """The attributes of a stored training that are known before it begins."""
    about = {**identity(experiment, options), "config": experiment.config, "vocabulary": experiment.vocabulary, "labels": experiment.labels}
    return {**about, "identity": digests(about), "threads": options.threads}


def identity(experiment: Experiment, options: TrainingOptions) -> dict[str, Any]:
    """The settings that two trainings must share for one to continue the other, and the versions."""
    names = {"task": experiment.task, "model": experiment.model.name, "seeds": experiment.seeds}
    values = names | {"optimizer": stored_settings(experiment.optimizer)} | vars(options)
    return {**{name: values[name] for name in IDENTITY}, "versions": versions(options.backend)}


def place(
    to: Destination, experiment: Experiment, about: Mapping[str, Any], steps: int | None, lock: "RunLock"
) -> tuple[RunSink, int, Trajectory | None, Any]:
    """The sink of rows, the number of steps, the Trajectory of a run that is finished already, and the checkpoint to start from.

    The lock is taken of a run that is there. Raises StoreError where nothing can be written there, or another process does,
    ParamError where another training is there.
    """
    from odesim.store.paths import check_new_run, is_run

    path = to.path
    if (to.resume or to.overwrite) and is_run(path):
        lock.acquire(path)
    old = training_attributes(path) if to.joins else None
    if old is None or not os.path.exists(checkpoint_file(path)):
        check_new_run(path, overwrite=to.overwrite or old is not None)
    if old is not None:
        check_unchanged(path, old)
        check_same(path, old, about)
    steps = check_count(steps if steps is not None else old["steps"] if old else experiment.steps, "steps", 0)
    if old and steps < old["iteration"]:
        raise ParamError(f"{path} has {counted(old['iteration'], 'iteration')} already, more than the {steps} asked for")
    state = read_checkpoint(checkpoint_file(path)) if old and os.path.exists(checkpoint_file(path)) else None
    if old and state:
        check_stored_rows(path, old, state.written)
    sink = RunSink(path, about, experiment, resume=state is not None, replaces=to.overwrite or old is not None, lock=lock)
    finished = old is not None and steps == old["iteration"] == old["steps"] and old["status"] not in (INTERRUPTED, "running")
    return sink, steps, read_trajectory(path) if finished else None, state


def digests(about: Mapping[str, Any]) -> dict[str, str]:
    """{what: digest} of the properties that identify a training; two trainings are the same if all digests are equal."""
    from odesim.store.manifest import digest_text
    from odesim.store.write import to_plain

    return {name: digest_text(to_plain(about.get(name))) for name in (*IDENTITY, "config")}


def check_unchanged(path: Path, old: Mapping[str, Any]) -> None:
    """Raises StoreError if the attributes of the training at path are not those with which it began."""
    then = old.get("identity")
    for name, now in digests(old).items():
        if then is not None and then.get(name) != now:
            raise StoreError(f"{path} was changed: its {name} is not what it was begun with")


def check_same(path: Path, old: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Raises ParamError if the training stored at path is another one, naming the first difference."""
    from odesim.store.write import to_plain

    new = to_plain({name: about[name] for name in (*IDENTITY, "config")})
    pairs = [(f"setting {name}", old["config"].get(name), value) for name, value in new["config"].items()]
    pairs = [(name, old.get(name), new[name]) for name in ("task", "model")] + pairs
    pairs += [(name, old.get(name), new[name]) for name in IDENTITY if name not in ("task", "model")]
    for name, before, now in pairs:
        if before != now:
            raise ParamError(f"{path} was trained with {name} = {_short(before)}, not {_short(now)}; --resume takes the same command")


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
