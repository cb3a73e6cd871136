"""Writes a Solution as a zarr v3 folder: under a temporary name first, renamed when complete; as many chunks as fit on the disk."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import counted
from odesim.run.solution import FLOORS, Solution
from odesim.stepper.occurrences import Events
from odesim.store.chunks import create_array, create_group, write_group
from odesim.store.guard import inspect_arrays
from odesim.store.paths import RUN_FORMAT, RUN_MARK, check_new_run, free_path, publish, temporary_path
from odesim.store.plain import MAX_ENTRIES, events_to_plain, to_plain
from odesim.store.schema import CHUNK_FILES, EVENTS, FINAL, INCOMPLETE, INITIAL, PARAMS, TIME

CHUNK_BYTES = 1 << 20  # few files, and a part of the times can be read without the rest
BLOCK = 4096  # bytes that a small file takes on most disks


@dataclass(frozen=True)
class WriteResult:
    """The result of writing a run: its path (None: nowhere), how many of its saved times are there, and the reason if not all."""

    path: Path | None
    rows: int
    total: int
    reason: str = ""

    @property
    def complete(self) -> bool:
        return self.rows == self.total

    @property
    def sentence(self) -> str:
        """A sentence about a run that was not written completely."""
        if self.path is None:
            return f"nothing could be stored: {self.reason}"
        return f"{self.rows} of {counted(self.total, 'saved time')} are stored in {self.path}: {self.reason}"


def write_solution(solution: Solution, path: str | Path, *, overwrite: bool = False) -> WriteResult:
    """Writes a Solution to the folder path: states and observables (time, index names), groups of inputs, and attributes.

    The groups are `params`, `initial` and, if the last time reached is not a saved one, `final values`.
    When the disk is full, the chunks of saved times that fit are kept with the status "incomplete": at path if it is free, else beside it.
    Raises StoreError, before it writes, if path cannot be written.
    """
    path, solution = check_new_run(path, overwrite=overwrite), solution.to_numpy()
    work = temporary_path(path)
    total = len(solution.t)
    try:
        rows, reason = _write_arrays(work, solution)
        if reason and rows == 0:
            return WriteResult(None, 0, total, reason)
        target = path if rows == total or not path.exists() else free_path(path)
        publish(work, target, overwrite=overwrite)
        return WriteResult(target, rows, total, reason)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def run_attributes(solution: Solution) -> dict[str, Any]:
    """The attributes of a stored run: its inputs, options and outcome, as plain data."""
    attributes = to_plain(
        {
            RUN_MARK: RUN_FORMAT,
            "model": solution.model,
            "states": list(solution.y),
            "observables": list(solution.observables),
            **solution.attrs,
            **({FLOORS: floors} if (floors := solution.observable_floors) else {}),
            "method": solution.method,
            "backend": solution.backend,
            "status": solution.status,
            "message": solution.message,
            "t_end": float(solution.t_end),
            "stats": solution.stats,
            "invariants": solution.invariants,
            "not_applicable": [name for name, value in solution.invariants.items() if value is None],
        }
    )
    return {**attributes, "events": events_to_plain(solution.events)}


def _write_arrays(work: Path, solution: Solution) -> tuple[int, str]:
    """Writes the group at work; returns (number of saved times written, the reason if not all)."""
    data = {TIME: np.asarray(solution.t), **solution.y, **solution.observables}
    reserve = work / "room"
    try:
        group = create_group(work, run_attributes(solution))
        for part in (PARAMS, INITIAL):
            write_group(group, part, {name: np.asarray(value) for name, value in solution.attrs.get(part, {}).items()}, target=CHUNK_BYTES)
        long_events = {str(k): events for k, events in enumerate(solution.events.values()) if len(events) > MAX_ENTRIES}
        write_group(group, EVENTS, {key: event_rows(events) for key, events in long_events.items()}, target=CHUNK_BYTES)
        write_group(group, FINAL, final_values(solution), target=CHUNK_BYTES)
        arrays = {name: _create_array(group, name, values, solution) for name, values in data.items()}
        try:  # reserves space for a second zarr.json, which will state the number of rows
            reserve.write_bytes(bytes((work / "zarr.json").stat().st_size + 2 * BLOCK))
        except OSError:
            reserve.unlink(missing_ok=True)
        rows, error = write_rows(arrays, data)
        reserve.unlink(missing_ok=True)
        if error is None:
            group.update_attributes({CHUNK_FILES: _file_counts(work)})
            return rows, ""
        if rows == 0:
            return 0, _reason(error)
        for array in arrays.values():
            array.resize((rows, *array.shape[1:]))
        group.update_attributes({**_cut_attributes(solution, rows, _reason(error)), CHUNK_FILES: _file_counts(work)})
        return rows, _reason(error)
    except OSError as error:
        return 0, _reason(error)


def _file_counts(folder: Path) -> dict[str, int]:
    """{name of an array inside the folder, such as params/mu: number of its chunk files}."""
    return {name: facts.files for name, facts in sorted(inspect_arrays(folder).items())}


def _reason(error: OSError | None) -> str:
    return "" if error is None else error.strerror or str(error)


def _cut_attributes(solution: Solution, rows: int, reason: str) -> dict[str, Any]:
    """Attributes to change in a run of which only the first `rows` saved times are written."""
    ends = {} if final_values(solution) else {"t_end": float(solution.t[rows - 1])}
    message = f"{rows} of {counted(len(solution.t), 'saved time')} are stored: {reason}; the run itself: {solution.message}"
    return {"status": INCOMPLETE, "message": message, INCOMPLETE: reason, **ends}


def final_values(solution: Solution) -> dict[str, Array]:
    """{state or observable: array of its shape} at the last time reached; empty if that is a saved time."""
    if len(solution.t) and solution.t[-1] == solution.t_end:
        return {}
    return {name: np.asarray(value) for name, value in {**solution.final, **solution.final_observables}.items()}


def event_rows(occurrences: Sequence[Mapping[str, Any]]) -> Array:
    """Events of one name as an array (n, 1 + rank): the time, then the index of the component."""
    events = Events.of(occurrences)
    return events.t[:, None] if events.indices is None else np.column_stack([events.t, events.indices])


def _create_array(group: Any, name: str, values: Array, solution: Solution) -> Any:
    """The zarr array of a state, an observable or the times, with the names of its axes."""
    if name == TIME:
        unit = solution.attrs.get("time_unit", "")
        attributes = {"units": unit} if unit else {}
        return create_array(group, name, values.shape, values.dtype, target=CHUNK_BYTES, dims=(TIME,), attributes=attributes)
    names = solution.dims.get(name, ())
    axes = names if len(names) == values.ndim - 1 else tuple(f"{name}_{axis}" for axis in range(values.ndim - 1))
    return create_array(group, name, values.shape, values.dtype, target=CHUNK_BYTES, dims=(TIME, *axes))


def write_rows(arrays: Mapping[str, Any], data: Mapping[str, Array]) -> tuple[int, OSError | None]:
    """Writes data {name: (T, *shape)} to zarr arrays {name: array}; returns (rows that all arrays hold, the error or None).

    When the disk is full, these are the chunks that fit.
    """
    lengths = {name: (len(values), arrays[name].chunks[0]) for name, values in data.items()}
    done = dict.fromkeys(data, 0)
    for name, start, stop in blocks(lengths):
        try:
            arrays[name][start:stop] = data[name][start:stop]
        except OSError as error:
            return min(done.values()), error
        done[name] = stop
    return min(done.values()), None


def blocks(lengths: Mapping[str, tuple[int, int]]) -> Iterator[tuple[str, int, int]]:
    """(name, start, stop) of all blocks along time: first arrays of one chunk, then the others in the order of time.

    lengths {name: (rows, rows of a chunk)}.
    """
    ordered = [(chunk < n, min(a + chunk, n), name, a) for name, (n, chunk) in lengths.items() for a in range(0, n, chunk)]
    for _, stop, name, start in sorted(ordered):
        yield name, start, stop
