"""Trainings in zarr v3 folders: rows are written while one runs, with a checkpoint beside them.

The arrays have their full length from the start; the attribute `rows` is the number of rows written.
"""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, counted
from odesim.lab.tasks import load_task
from odesim.lab.training.loop import SEED, TIME, TrainingOptions, Trajectory, axis_names
from odesim.lab.training.task import Experiment
from odesim.store.chunks import create_array, create_group, every_chunk_written, open_group
from odesim.store.paths import RUN_FORMAT, RUN_MARK, RunLock, check_new_run, damage_errors, publish, temporary_path
from odesim.store.plain import to_plain
from odesim.store.schema import FINAL, TRAINING, inspect_run, run_of_kind

# of a block of rows, a chunk of each array: large enough that files are few, small enough to wait in memory until it is complete
BLOCK_BYTES, BLOCK_ROWS = 1 << 20, 1024
CHECKPOINT, STATE, EXACT = "checkpoint", "state.npz", "exact"
RUNNING = "running"
ROWS = "rows"
KEPT = ("optimizer", "dtype", "backend", "versions", "save", "observe", "labels", "doc")  # attributes of a Trajectory


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
            group = create_group(work, to_plain(attributes))
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
        final_only = {name: value for name, value in trajectory.final.items() if name not in trajectory.observables}
        for name, value in final_only.items():
            _write_array(self.group, name, value, axis_names(self.dims, name, value.ndim - 1, timed=False))
        shutil.rmtree(self.path / FINAL, ignore_errors=True)
        if not len(trajectory.t) or trajectory.t[-1] != trajectory.iteration:
            inner = create_group(self.path / FINAL)
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
        fields["config"] = {**fields["config"], **_rates(attributes)}
        fields["attrs"] = {name: attributes[name] for name in KEPT if name in attributes}
        fields["dims"] = {name: tuple(group[name].metadata.dimension_names)[2 if name in rows else 1 :] for name in names}
        fields["bad"] = {int(seed): i for seed, i in attributes.get("bad", {}).items()}
        seeds, stats = tuple(attributes["seeds"]), attributes.get("stats", {})
        return Trajectory(t=t, observables=rows, final=final, seeds=seeds, stats=stats, **fields)


def _rates(attributes: Mapping[str, Any]) -> dict[str, float]:
    """{setting: learning rate} of a stored training: early runs with --lr kept the setting that it replaced, from which theories follow."""
    try:
        settings = load_task(attributes["task"]).settings
    except ParamError:  # of a file or a program
        return {}
    rates = attributes["optimizer"]["rates"]
    return {s.name: rates[s.rate_of] for s in settings if s.rate_of in rates and s.name in attributes["config"]}


def read_exact(path: str | Path) -> dict[str, Array]:
    """{name: array}: the task's exact quantities, stored with the training at path. Raises StoreError if there is none."""
    path = inspect_run(path).path
    with damage_errors(path):
        group: Any = open_group(path)
        return {name: np.asarray(array[...]) for name, array in group[EXACT].arrays()} if EXACT in group else {}


def _write_array(group: Any, name: str, values: Array, dims: tuple[str, ...] | None) -> None:
    _create_array(group, name, values.shape, values.dtype, dims, target=BLOCK_BYTES)[...] = values


def _create_array(group: Any, name: str, shape: tuple[int, ...], dtype: Any, dims: tuple[str, ...] | None, **chunks: Any) -> Any:
    # every chunk gets a file: a reader tells a lost one from one of nothing but the fill value
    return create_array(group, name, shape, dtype, dims=dims, every_chunk=True, overwrite=True, **chunks)
