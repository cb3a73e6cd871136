"""Stored trainings from what they store: gone on with, or trained again and compared."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from odesim.api.differences import HALF, Differences, Rerun, other_code
from odesim.api.train import check_same, identity, make_experiment, train_into, versions
from odesim.base.arrays import Array
from odesim.base.memory import check_room
from odesim.base.signals import stopping
from odesim.base.wording import many
from odesim.errors import ParamError, StoreError
from odesim.reference.protocols import Experiment, Optimizer
from odesim.reference.tasks import load_task
from odesim.reference.training.train import train as train_experiment
from odesim.reference.training.trajectory import Trajectory
from odesim.store.trajectory import RUNNING, read_trajectory, training_attributes

Progress = Callable[[int, int, Array], None]


def restore(path: Path) -> tuple[dict[str, Any], Experiment]:
    """Attributes and experiment of the training at path. Raises an OdesimError where it cannot be had again."""
    said = training_attributes(path)
    try:
        task = load_task(said["task"])
    except ParamError:
        what = f"{path} was trained in Python on a task of its own, {said['task']}"
        raise ParamError(f"{what}: call odesim.train with it again, and resume=True") from None
    known = {setting.name for setting in task.settings}
    settings = {name: value for name, value in said["config"].items() if name in known}
    try:
        made = make_experiment(task, settings, said["model"], tuple(said["seeds"]), None, {}, said["dtype"])
        spec = {**said["optimizer"], "betas": tuple(said["optimizer"]["betas"])}
        experiment = replace(made, optimizer=Optimizer(**spec))
        about = {**identity(experiment, said["dtype"], said["backend"], said["save"], said["observe"]), "config": experiment.config}
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path} is damaged and cannot be read: {type(error).__name__}: {error}") from error
    check_same(path, {**said, "versions": about["versions"]}, about)
    return said, experiment


def resume_training(path: Path, *, threads: int | None = None, progress: Progress | None = None) -> Trajectory:
    """Goes on with the training at path to its last step, as `odesim train --resume` does; a finished one stays as it is."""
    said, experiment = restore(path)
    options = {name: said[name] for name in ("dtype", "backend", "save")} | {"observe": tuple(said["observe"]), "progress": progress}
    return train_into(path, experiment, steps=said["steps"], threads=threads or said.get("threads", 1), resume=True, **options)


def rerun_training(path: Path, *, threads: int | None = None, progress: Progress | None = None) -> Rerun:
    """Trains again as far as the training at path came, and compares every recorded row and the end. Raises an OdesimError."""
    said, experiment = restore(path)
    old = read_trajectory(path)
    killed = old.status == RUNNING  # then there is no end, and its rows are all that is known
    last = old.iteration if not killed else int(old.t[-1]) + 1 if len(old.t) else 0
    reached = 0

    def count(done: int, steps: int, loss: Array) -> None:
        nonlocal reached
        reached = done
        if progress:
            progress(done, max(last, done), loss)

    with stopping() as asked:
        new = train_experiment(
            experiment,
            steps=old.steps,
            recorded=old.t,
            observe=tuple(said["observe"]),
            dtype=said["dtype"],
            backend=said["backend"],
            stop=lambda: asked() or (last < old.steps and reached >= last),
            threads=threads or said.get("threads", 1),
            progress=count,
            fits=check_room,
        )
    stopped = new.iteration < min(last, old.steps)
    found = Differences()
    compare(found, old, new, HALF[said["dtype"]], ends=not (killed or stopped))
    of = "" if len(old.seeds) == 1 else f" of {many(len(old.seeds), 'seed')}"
    other = other_code(said, "", versions(said["backend"]))
    return found.report(path, "recorded iteration", of=of, other=other, bound=f"half the digits of {said['dtype']}", stopped=stopped)


def compare(found: Differences, old: Trajectory, new: Trajectory, share: float, *, ends: bool) -> None:
    """The rows (R, T, ...) that both have, iteration by iteration, and where they ended. share: what other code may change, of the
    largest entry."""
    count = min(len(old.t), len(new.t))
    pairs = {
        name: bounded(np.swapaxes(v[:, :count], 0, 1), np.swapaxes(new.observables[name], 0, 1)[:count], share)
        for name, v in old.observables.items()
    }
    found.add(pairs, np.ones(count, bool), lambda i: f"iteration {old.t[i]}")
    if ends:
        last = {name: bounded(v[None], new.final[name][None], share) for name, v in old.final.items()}
        found.add(last, np.ones(1, bool), lambda _: "the end", rows=False)


def bounded(old: Array, new: Array, share: float) -> tuple[Array, Array, float]:
    """A pair of arrays and what they may differ by."""
    finite = np.abs(old[np.isfinite(old)])
    return old, new, share * float(finite.max(initial=0.0))
