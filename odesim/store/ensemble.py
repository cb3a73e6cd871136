"""A stored ensemble: members are read and written chunk by chunk.

The array `status` is the ledger. It is written after the data, and members that it does not count as done are computed again.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from odesim.base.arrays import Array, Layout
from odesim.base.errors import StoreError, counted
from odesim.ensembles.design import Table, design_from_plain
from odesim.ensembles.ledger import slabs
from odesim.ensembles.request import Chunk, outputs_from_plain
from odesim.stepper.codes import STATUSES, UNDONE
from odesim.store.chunks import check_array_files, chunk_files, every_chunk_written, has_files, open_group
from odesim.store.manifest import ATTEMPT, COUNTS, LEDGER, POINTS, Manifest, ensemble_attributes
from odesim.store.paths import damage_errors
from odesim.store.schema import INITIAL, PARAMS, TIME, checked_attributes


class EnsembleStore:
    """The ensemble stored at path, as a Ledger. layout: where a member's states lie in a flat vector; default: in their order.

    Raises StoreError if there is no ensemble or an array has another shape than the attributes say.
    """

    def __init__(self, path: Path, layout: Layout | None = None, *, trusted: bool = False) -> None:
        """trusted: another process, which this one works for, has checked all files of the run."""
        self.path = path
        self.attributes = checked_attributes(path) if trusted else ensemble_attributes(path)
        self.count, self.chunk = self.attributes["members"], self.attributes["chunk"]
        with damage_errors(path), every_chunk_written():
            self.group = open_group(path, "r+" if self.writable else "r")
            outputs = self.attributes["kept"]
            extra = [
                name for names in (*outputs["events"], outputs["ends"], outputs["observed"], outputs["blow_up"]) for name in names if name
            ]
            names = (*LEDGER, *self.attributes["states"], ATTEMPT, *self.attributes["labels"].values(), *extra)
            arrays: dict[str, Any] = {name: self.group[name] for name in names}
            for name, array in arrays.items():
                if array.shape[:1] != (self.count,) or array.chunks != (self.chunk, *(max(n, 1) for n in array.shape[1:])):
                    raise ValueError(
                        f"{name} is stored as {array.dtype} {array.shape} in chunks {array.chunks} for {counted(self.count, 'member')}"
                    )
            self.arrays = arrays
            times: Any = self.group[TIME]
            check_array_files(path, {TIME: times})
            self.times = np.asarray(times[...])
            shapes = tuple(arrays[name].shape[2:] for name in self.attributes["states"])
            observed = {name: arrays[name].shape[2:] for name in outputs["observed"]}
            self.outputs = outputs_from_plain(outputs, observed | {name: arrays[name].shape[1:] for name in outputs["ends"]})
        self.layout = layout or Layout(tuple(self.attributes["states"]), shapes)
        labels = self.attributes["labels"]
        with damage_errors(path):
            tables = [labels[part["name"]] for part in self.attributes["design"] if part["kind"] == "table"]
            check_array_files(path, {label: arrays[label] for label in tables})
            rows = {name: arrays[label] for name, label in labels.items()}
            design = design_from_plain(self.attributes["design"], self.count, self._group_arrays(POINTS), rows)
            self.design = design.with_shapes({name: array.shape[1:] for name, array in rows.items()})
        # arrays that are written with a chunk: where a file of one is missing, the chunk is computed again
        drawn = [label for label in labels.values() if label not in tables]
        self.chunk_names = [*self.attributes["states"], *COUNTS, *extra, *drawn, ATTEMPT]

    @property
    def writable(self) -> bool:
        """Whether this process may write into the folder."""
        return os.access(self.path, os.W_OK)

    def shared(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """(params, initial) {name: value}: the numbers that all members share."""
        groups: list[dict[str, Any]] = []
        with damage_errors(self.path):
            for group in (PARAMS, INITIAL):
                values = {key: np.asarray(array[...]) for key, array in self._group_arrays(group).items()}
                groups.append({key: value if value.ndim else value.item() for key, value in values.items()})
        return groups[0], groups[1]

    def check_identity(self) -> None:
        """Raises StoreError if numbers or options of the run are not those with which it was started."""
        params, initial = self.shared()
        present = Manifest(
            attributes=self.attributes,
            design=self.design,
            params=params,
            initial=initial,
            times=self.times,
            layout=self.layout,
            dtype=self.attributes["dtype"],
            chunk=self.chunk,
            outputs=self.outputs,
            dims={},
            labels={},
        ).identity()
        original = self.attributes["identity"]
        for name in {**present, **original}:
            if present.get(name) != original.get(name):
                raise StoreError(
                    f"{self.path} was changed: its {name[:60]} {'are' if name.endswith('s') else 'is'} not what it was begun with"
                )

    def _group_arrays(self, group: str) -> dict[str, Any]:
        """{name: zarr array} of a group inside the run, empty if there is no such group. Raises StoreError if a file is missing."""
        arrays = dict(self.group[group].arrays()) if group in self.group else {}
        check_array_files(self.path / group, arrays)
        return arrays

    def status(self, first: int, end: int) -> Array:
        """Statuses (end - first,) of members, UNDONE in chunks of which a file is missing."""
        status = self.stored_status(first, end)
        for k in self.lost_chunks(first, end, status):
            status[max(k * self.chunk - first, 0) : (k + 1) * self.chunk - first] = UNDONE
        return status

    def stored_status(self, first: int, end: int) -> Array:
        with damage_errors(self.path):
            return self._small_integers("status", first, end, UNDONE, min(len(STATUSES), len(self.attributes["status_names"])))

    def _small_integers(self, name: str, first: int, end: int, least: int, beyond: int) -> Array:
        """Rows of an int8 array. Raises StoreError unless least <= every entry < beyond."""
        rows = np.asarray(self._rows(name, first, end))
        if rows.dtype != np.int8 or rows.min(initial=least) < least or rows.max(initial=least) >= beyond:
            raise StoreError(f"{self.path} is damaged: its {name} holds what is none")
        return rows

    def lost_chunks(self, first: int, end: int, status: Array) -> list[int]:
        """Numbers of chunks, among the members first to end - 1, with a done member (by this status) and a missing file."""
        chunks = range(first // self.chunk, -(-end // self.chunk))
        done = (k for k in chunks if (status[max(k * self.chunk - first, 0) : (k + 1) * self.chunk - first] != UNDONE).any())
        return [
            k for k in done if not has_files(f for name in self.chunk_names for f in chunk_files(self.path, name, self.arrays[name], k))
        ]

    def spans(self, first: int, end: int) -> Iterator[tuple[int, int, bool]]:
        """As Ledger.spans: a chunk is started if its status has a file, so that the time grows with what is on disk."""
        size = self.chunk
        names = (name for name in self._status_files() if name.isdecimal() and len(name) < 20)
        started = np.array(sorted(k for k in map(int, names) if first <= k * size < end or k * size <= first < (k + 1) * size), np.int64)
        position = first
        for block in np.split(started, np.flatnonzero(np.diff(started) > 1) + 1) if len(started) else ():
            a, b = max(int(block[0]) * size, first), min((int(block[-1]) + 1) * size, end)
            if position < a:
                yield position, a, False
            yield from ((x, y, True) for x, y in slabs(a, b, size))
            position = b
        if position < end:
            yield position, end, False

    def _status_files(self) -> list[str]:
        """Names of the files of the status: one for each started chunk."""
        folder = self.path / "status" / "c"
        return os.listdir(folder) if folder.is_dir() else []

    def started(self) -> Iterator[tuple[int, int]]:
        """(a, b): neighbouring members in started chunks."""
        return ((a, b) for a, b, started in self.spans(0, self.count) if started)

    def lost_member_count(self) -> int:
        """Number of members that are done, by their status, in chunks of which a file is missing."""
        count = 0
        for a, b in self.started():
            status = self.stored_status(a, b)
            parts = (status[k * self.chunk - a : (k + 1) * self.chunk - a] for k in self.lost_chunks(a, b, status))
            count += sum(int((part != UNDONE).sum()) for part in parts)
        return count

    def methods(self, first: int, end: int) -> dict[str, dict[str, int]]:
        """{status: {method: number of members}} of the done members first to end - 1."""
        names, statuses = self.attributes["method_names"], self.attributes["status_names"]
        counts = np.zeros((len(statuses), len(names)), np.int64)
        for a, b in ((a, b) for a, b, started in self.spans(first, end) if started):
            with damage_errors(self.path):
                status, method = self.stored_status(a, b), self._small_integers("method", a, b, UNDONE, len(names))
            known = (status >= 0) & (method >= 0)
            np.add.at(counts, (status[known], method[known]), 1)
        return {s: {m: int(n) for m, n in zip(names, row, strict=True) if n} for s, row in zip(statuses, counts, strict=True) if row.any()}

    def check_writable(self) -> None:
        """Raises StoreError if this process may not write into the folder."""
        if not self.writable:
            raise StoreError(f"no permission to write into {self.path}")

    def check_complete(self) -> None:
        """Raises StoreError if a file of a done member is missing."""
        if lost := self.lost_member_count():
            raise StoreError(f"{self.path} {lost_sentence(lost)}")

    def attempts(self, first: int, end: int) -> Array:
        """(end - first,) of members of one chunk: which of the attribute `attempts` computes each of them."""
        if not has_files(chunk_files(self.path, ATTEMPT, self.arrays[ATTEMPT], first // self.chunk)):
            return np.zeros(end - first, np.int8)
        with damage_errors(self.path):
            return self._small_integers(ATTEMPT, first, end, 0, len(self.attributes["attempts"]))

    def chunk_arrays(self, chunk: Chunk) -> dict[str, Array]:
        """{name of a stored array: its part of the chunk, a view}, in the order of writing: the status last."""
        data = {**self.layout.split(chunk.y), **self.outputs.arrays(chunk)}
        return {**data, **{name: getattr(chunk, name) for name in (*COUNTS, "status")}}

    def read(self, first: int, end: int) -> Chunk:
        chunk = self.outputs.chunk(end - first, len(self.times), self.layout.size)
        with damage_errors(self.path):
            for name, view in self.chunk_arrays(chunk).items():
                view[...] = self._rows(name, first, end)
        return chunk

    def _rows(self, name: str, first: int, end: int) -> Any:
        """Rows of a stored array. Raises StoreError, with a remedy, if a file cannot be decoded."""
        try:
            return self.arrays[name][first:end]
        except Exception as error:  # a damaged file can make a codec raise anything
            for k in range(first // self.chunk, -(-end // self.chunk)):
                try:
                    _ = self.arrays[name][k * self.chunk : (k + 1) * self.chunk]
                except Exception:
                    file = next(chunk_files(self.path, name, self.arrays[name], k)).relative_to(self.path)
                    members = f"members {k * self.chunk} to {min((k + 1) * self.chunk, self.count) - 1}"
                    message = f"{self.path} is damaged: {file} cannot be read; without it odesim resume computes {members} again"
                    raise StoreError(message) from error
            raise

    def buffer(self, first: int, end: int) -> None:
        return None

    def write(self, first: int, chunk: Chunk) -> None:
        """Writes the data of members from first on, then their status. Raises OSError if the disk refuses."""
        end = first + len(chunk.status)
        tables = {part.name for part in self.design.parts if isinstance(part, Table)}
        for name, values in self.design.labels(first, end).items():
            if name not in tables:
                self.arrays[self.attributes["labels"][name]][first:end] = values
        self.arrays[ATTEMPT][first:end] = self.attempts(first, end)
        # the status comes last: a run that is killed here has members that do not count as done, and never half of one that does
        for name, values in self.chunk_arrays(chunk).items():
            self.arrays[name][first:end] = values.astype(self.arrays[name].dtype, copy=False)

    def retry(self, options: Mapping[str, Any], good: tuple[int, ...]) -> int:
        """Marks every failed member as not done, to be integrated with these options, and returns their number.

        good: numbers of the statuses that count as success. Raises StoreError after too many attempts.
        """
        attempts = [*self.attributes["attempts"], dict(options)]
        if len(attempts) > np.iinfo(np.int8).max:
            raise StoreError(f"{self.path} was tried {counted(len(attempts) - 1, 'time')} already")
        marked = 0
        for first, end in ((k, min(k + self.chunk, b)) for a, b in self.started() for k in range(a, b, self.chunk)):
            status = self.status(first, end)
            bad = ~np.isin(status, (UNDONE, *good))
            if not bad.any():
                continue
            if not marked:
                self.group.update_attributes({"attempts": attempts})
                self.attributes["attempts"] = attempts
            attempt = self.attempts(first, end)
            attempt[bad], status[bad] = len(attempts) - 1, UNDONE
            self.arrays["status"][first:end] = status  # first: an interrupted retry then leaves members undone, not lost
            self.arrays[ATTEMPT][first:end] = attempt
            marked += int(bad.sum())
        return marked


def lost_sentence(members: int) -> str:
    """End of a sentence about a run of which files of that many done members are missing, with a remedy."""
    return f"lacks files of {counted(members, 'finished member')}: odesim resume computes them again"
