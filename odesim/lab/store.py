"""Trainings in zarr v3 folders: rows are written while one runs, with a checkpoint beside them; one goes on, or is done again.

The arrays have their full length from the start; the attribute `rows` is the number of rows written.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from odesim.api.rerun import HALF, Differences, Rerun, other_code
from odesim.base.arrays import Array
from odesim.base.device import check_saves_fit
from odesim.base.errors import DeviceError, ParamError, StoreError, counted
from odesim.base.signals import stop_signals
from odesim.lab.experiment import make_experiment, versions
from odesim.lab.tasks import load_task
from odesim.lab.training.loop import INTERRUPTED, SEED, TIME, TrainingOptions, TrainingStorage, Trajectory, axis_names
from odesim.lab.training.loop import train as train_experiment
from odesim.lab.training.optimizers import stored_settings
from odesim.lab.training.record import read_checkpoint
from odesim.lab.training.task import Experiment, Optimizer
from odesim.store.chunks import create_array, every_chunk_written, open_group
from odesim.store.manifest import digest_text
from odesim.store.paths import RUN_FORMAT, RUN_MARK, Destination, RunLock, check_new_run, damage_errors, publish, temporary_path
from odesim.store.schema import FINAL, TRAINING, check_readable_run, run_of_kind
from odesim.store.write import to_plain

# of a block of rows, a chunk of each array: large enough that files are few, small enough to wait in memory until it is complete
BLOCK_BYTES, BLOCK_ROWS = 1 << 20, 1024
CHECKPOINT, STATE, EXACT = "checkpoint", "state.npz", "exact"
RUNNING = "running"
ROWS = "rows"
KEPT = ("optimizer", "dtype", "backend", "versions", "save", "observe", "vocabulary", "labels")  # attributes of a Trajectory


class RunSink:
    """Writes the rows of a training into the folder path, which is created when the shapes of the first row are known.

    attributes: stored with the run; the experiment's exact quantities are stored as a group. resume: the folder exists and
    rows are appended. replaces: an existing run is replaced. lock: of the folder, acquired by open().
    """

    def __init__(
        self,
        path: Path,
        attributes: Mapping[str, Any],
        experiment: Experiment,
        *,
        resume: bool = False,
        replaces: bool = False,
        lock: RunLock,
    ) -> None:
        self.path, self.attributes, self.resume = path, attributes, resume
        self.seeds, self.exact = experiment.seeds, experiment.exact
        self.dims = {o.name: o.dims for o in experiment.model.observables}
        self.group: Any = None
        self.replaces, self.lock = replaces, lock

    def open(self, times: Array, rows: Mapping[str, Array]) -> int:
        """Creates or enlarges the arrays for times (T,) and rows like these {name: (R, *shape)}; returns the rows of a block."""
        import zarr

        state = {"steps": int(times[-1]), "status": RUNNING, "message": "still running or killed; --resume continues it"}
        if self.resume:
            with damage_errors(self.path):
                self.group = open_group(self.path, "r+")
                stored = {name: self.group[name] for name in (TIME, *rows, *self.group.attrs["observables"])}
                arrays, count = {name: stored[name] for name in (TIME, *rows)}, self.group.attrs[ROWS]
                for name, value in rows.items():
                    array = arrays[name]
                    shape = (len(value), array.shape[1], *value.shape[1:]) if array.ndim == value.ndim + 1 else None
                    if array.shape != shape or array.dtype != value.dtype or min(arrays[TIME].shape[0], array.shape[1]) < count:
                        raise ValueError(f"{name} is stored as {array.dtype} {array.shape} with {counted(count, 'row')}")
            self.group.update_attributes({**state, ROWS: min(count, len(times))})
            for name, array in arrays.items():
                shape = (len(times),) if name == TIME else (array.shape[0], len(times), *array.shape[2:])
                if array.shape != shape:
                    array.resize(shape)
            with every_chunk_written():
                self.group[TIME][...] = times
            return int(self.group[next(iter(rows))].chunks[1])
        size = sum(v.nbytes for v in rows.values())
        block = max(1, min(BLOCK_ROWS, BLOCK_BYTES // max(size, 1), len(times)))
        work = temporary_path(self.path)
        try:
            attributes = {RUN_MARK: RUN_FORMAT, **self.attributes, "states": [], "observables": list(rows), **state}
            attributes |= {ROWS: 0, "iteration": 0}
            group = zarr.create_group(work, zarr_format=3, attributes=to_plain(attributes))
            group.create_group(CHECKPOINT)
            _write_array(group, TIME, times, (TIME,))
            _write_array(group, SEED, np.array(self.seeds, np.int64), (SEED,))
            for name, value in rows.items():
                shape = (len(value), len(times), *value.shape[1:])
                chunks = (len(value), block, *value.shape[1:])
                _create_array(group, name, shape, value.dtype, axis_names(self.dims, name, value.ndim - 1), chunks=chunks)
            if self.exact:
                inner = group.create_group(EXACT)
                for name, value in self.exact.items():
                    _write_array(inner, name, np.asarray(value), None)
            if self.path.exists():  # another process may have created it since the check
                self.lock.acquire(self.path)
                check_new_run(self.path, overwrite=self.replaces)
            publish(work, self.path, overwrite=True)
            self.lock.acquire(self.path)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        self.group = open_group(self.path, "r+")
        return block

    def write(self, first: int, rows: Mapping[str, Array]) -> None:
        """Writes the rows {name: (R, n, *shape)} from row `first` on, then updates the attribute `rows`."""
        count = next(iter(rows.values())).shape[1]
        with every_chunk_written():
            for name, values in rows.items():
                self.group[name][:, first : first + count] = values
        self.group.update_attributes({ROWS: max(first + count, self.group.attrs[ROWS])})

    def rows(self) -> "StoredRows":
        """The rows written so far, read from disk when used."""
        return StoredRows(self.path, self.group)

    def finish(self, trajectory: Trajectory) -> None:
        """Writes the observables that are recorded at the end only, and how the training ended."""
        import zarr

        final_only = {name: value for name, value in trajectory.final.items() if name not in trajectory.observables}
        for name, value in final_only.items():
            _write_array(self.group, name, value, axis_names(self.dims, name, value.ndim - 1, timed=False))
        shutil.rmtree(self.path / FINAL, ignore_errors=True)
        if not len(trajectory.t) or trajectory.t[-1] != trajectory.iteration:
            inner = zarr.create_group(self.path / FINAL, zarr_format=3)
            for name in trajectory.observables:
                _write_array(inner, name, trajectory.final[name], None)
        outcome = {name: getattr(trajectory, name) for name in ("status", "message", "iteration", "steps", "stats")}
        bad = {str(seed): i for seed, i in trajectory.bad.items()}
        names = [*trajectory.observables, *final_only]
        self.group.update_attributes(to_plain({**outcome, "bad": bad, "observables": names, ROWS: len(trajectory.t)}))


class StoredRows(Mapping[str, Array]):
    """{name: (R, T, *shape)} of the training at path, whose group this is; each array is read from disk when used."""

    def __init__(self, path: Path, group: Any) -> None:
        names, self.path = group.attrs["observables"], path
        self.names = tuple(name for name in names if TIME in (group[name].metadata.dimension_names or ()))

    def __getitem__(self, name: str) -> Array:
        if name not in self.names:
            raise KeyError(name)
        rows = training_attributes(self.path)[ROWS]
        with damage_errors(self.path):
            group: Any = open_group(self.path)
            return np.asarray(group[name][:, :rows])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def checkpoint_file(path: str | Path) -> Path:
    """Path of the checkpoint file of the training at path."""
    return Path(path) / CHECKPOINT / STATE


def training_attributes(path: str | Path) -> dict[str, Any]:
    """The attributes of the training stored at path. Raises StoreError if there is none."""
    run = run_of_kind(path, TRAINING)
    return {"backend": TrainingOptions.backend, **run.attributes}  # runs of older versions do not store it


def read_trajectory(path: str | Path) -> Trajectory:
    """The Trajectory stored at path; rows are read from disk when used. Raises StoreError if there is none or it is damaged."""
    attributes = training_attributes(path)
    with damage_errors(path):
        group: Any = open_group(Path(path))  # Any: zarr types an item as a group or an array
        names, rows = attributes["observables"], StoredRows(Path(path), group)
        t = np.asarray(group[TIME][: attributes[ROWS]])
        ends = dict(group[FINAL].arrays()) if FINAL in group else {}
        final = {name: np.asarray(group[name][...]) for name in names if name not in rows}
        if ends or len(t):
            final = {name: np.asarray(ends[name][...] if ends else group[name][:, len(t) - 1]) for name in rows} | final
        fields = {name: attributes[name] for name in ("task", "model", "iteration", "steps", "config", "status", "message")}
        fields["attrs"] = {name: attributes[name] for name in KEPT if name in attributes}
        fields["dims"] = {name: tuple(group[name].metadata.dimension_names)[2 if name in rows else 1 :] for name in names}
        fields["bad"] = {int(seed): i for seed, i in attributes.get("bad", {}).items()}
        seeds, stats = tuple(attributes["seeds"]), attributes.get("stats", {})
        return Trajectory(t=t, observables=rows, final=final, seeds=seeds, stats=stats, **fields)


def read_exact(path: str | Path) -> dict[str, Array]:
    """{name: array}: the task's exact quantities, stored with the training at path. Raises StoreError if there is none."""
    path = check_readable_run(path)
    with damage_errors(path):
        group: Any = open_group(path)
        return {name: np.asarray(array[...]) for name, array in group[EXACT].arrays()} if EXACT in group else {}


def _write_array(group: Any, name: str, values: Array, dims: tuple[str, ...] | None) -> None:
    _create_array(group, name, values.shape, values.dtype, dims, target=BLOCK_BYTES)[...] = values


def _create_array(group: Any, name: str, shape: tuple[int, ...], dtype: Any, dims: tuple[str, ...] | None, **chunks: Any) -> Any:
    # every chunk gets a file: a reader tells a lost one from one of nothing but the fill value
    return create_array(group, name, shape, dtype, dims=dims, every_chunk=True, overwrite=True, **chunks)


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
    from odesim.store.paths import check_new_run

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
