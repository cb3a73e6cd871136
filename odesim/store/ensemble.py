"""Members of a stored ensemble, chunk by chunk.

The array `status` is the ledger: it is written after the data, and what it does not say is done is done again.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from odesim.base.arrays import Array, Layout
from odesim.ensembles.design import Design, Table, design_from_plain
from odesim.ensembles.outputs import outputs_from_plain
from odesim.ensembles.request import STATUSES, UNDONE, Chunk
from odesim.ensembles.slabs import slabs
from odesim.errors import StoreError, counted
from odesim.store.chunks import WRITE_EMPTY, check_array_files, chunk_files, has_files
from odesim.store.manifest import ATTEMPT, COUNTS, LEDGER, POINTS, Manifest, ensemble_attributes, stored_identity
from odesim.store.paths import damage_errors, open_group
from odesim.store.write import INITIAL, PARAMS, TIME


class EnsembleStore:
    """The ensemble stored at path, a Ledger. layout: of a member's states in a flat vector."""

    def __init__(self, path: Path, layout: Layout | None = None) -> None:
        import zarr

        self.path = path
        self.attributes = ensemble_attributes(path)
        self.count, self.chunk = self.attributes["members"], self.attributes["chunk"]
        with damage_errors(path), zarr.config.set(WRITE_EMPTY):
            self.group = open_group(path, "r+" if os.access(path, os.W_OK) else "r")
            kept = self.attributes["kept"]
            parts = [name for names in (*kept["events"], kept["ends"], kept["observed"], kept["blow_up"]) for name in names if name]
            self.counts = [name for name in COUNTS if name in self.attributes.get("ledger", LEDGER)]  # an older run has no method
            names = ("status", *self.attributes["states"], *self.counts, ATTEMPT, *self.attributes["labels"].values(), *parts)
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
            observed = {name: arrays[name].shape[2:] for name in kept["observed"]}
            self.outputs = outputs_from_plain(kept, observed | {name: arrays[name].shape[1:] for name in kept["ends"]})
            tables = {part["name"] for part in self.attributes["design"] if part["kind"] == "table"}
        self.layout = layout or Layout(tuple(self.attributes["states"]), shapes)
        given: dict[str, Any] = {}
        made: dict[str, Any] = {}
        for name, label in self.attributes["labels"].items():
            (given if name in tables else made)[label] = arrays[label]
        check_array_files(path, given)
        # what is written with a chunk, and is lost where its file is
        self.chunk_names = [*self.attributes["states"], *self.counts, *parts, *made, ATTEMPT]
        self.design = self._read_design()

    def _read_design(self) -> Design:
        with damage_errors(self.path):
            points = self._group_arrays(POINTS)
            tables = {name: self.arrays[label] for name, label in self.attributes["labels"].items()}
            found = design_from_plain(self.attributes["design"], self.count, points, tables)
            return found.with_shapes({name: array.shape[1:] for name, array in tables.items()})

    def shared(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """(params, initial): what all members share."""
        found: list[dict[str, Any]] = []
        with damage_errors(self.path):
            for group in (PARAMS, INITIAL):
                values = {key: np.asarray(array[...]) for key, array in self._group_arrays(group).items()}
                found.append({key: value if value.ndim else value.item() for key, value in values.items()})
        return found[0], found[1]

    def check_identity(self) -> None:
        """Raises StoreError where what the run says of itself is not what it was begun with."""
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
        original = stored_identity(self.attributes)
        for name in {**present, **original}:
            if present.get(name) != original.get(name):
                raise StoreError(
                    f"{self.path} was changed: its {name[:60]} {'are' if name.endswith('s') else 'is'} not what it was begun with"
                )

    def _group_arrays(self, group: str) -> dict[str, Any]:
        """The arrays of a group inside; none where it is not there. Raises StoreError where a file of one is missing."""
        arrays = dict(self.group[group].arrays()) if group in self.group else {}
        check_array_files(self.path / group, arrays)
        return arrays

    def status(self, first: int, end: int) -> Array:
        """As the ledger says; a member of a chunk that lost a file is not done, whatever it says."""
        found = self.stored_status(first, end)
        for k in self.lost_chunks(first, end, found):
            found[max(k * self.chunk - first, 0) : (k + 1) * self.chunk - first] = UNDONE
        return found

    def stored_status(self, first: int, end: int) -> Array:
        with damage_errors(self.path):
            return self._small_integers("status", first, end, UNDONE, min(len(STATUSES), len(self.attributes["status_names"])))

    def _small_integers(self, name: str, first: int, end: int, least: int, beyond: int) -> Array:
        """Rows of an array of small numbers. Raises StoreError where one is not between least and beyond."""
        found = np.asarray(self._rows(name, first, end))
        if found.dtype != np.int8 or found.min(initial=least) < least or found.max(initial=least) >= beyond:
            raise StoreError(f"{self.path} is damaged: its {name} holds what is none")
        return found

    def lost_chunks(self, first: int, end: int, status: Array) -> list[int]:
        """Chunks among the members first to end - 1 that have a member that is done, by this status, and lack a file."""
        chunks = range(first // self.chunk, -(-end // self.chunk))
        done = (k for k in chunks if (status[max(k * self.chunk - first, 0) : (k + 1) * self.chunk - first] != UNDONE).any())
        return [
            k for k in done if not has_files(f for name in self.chunk_names for f in chunk_files(self.path, name, self.arrays[name], k))
        ]

    def spans(self, first: int, end: int) -> Iterator[tuple[int, int, bool]]:
        """As Ledger says: begun are the chunks whose status has a file, so that the work is that of what is on disk."""
        folder, size = self.path / "status" / "c", self.chunk
        names = (name for name in os.listdir(folder) if name.isdecimal() and len(name) < 20) if folder.is_dir() else ()
        begun = np.array(sorted(k for k in map(int, names) if first <= k * size < end or k * size <= first < (k + 1) * size), np.int64)
        at = first
        for block in np.split(begun, np.flatnonzero(np.diff(begun) > 1) + 1) if len(begun) else ():
            a, b = max(int(block[0]) * size, first), min((int(block[-1]) + 1) * size, end)
            if at < a:
                yield at, a, False
            yield from ((x, y, True) for x, y in slabs(a, b, size))
            at = b
        if at < end:
            yield at, end, False

    def started(self) -> Iterator[tuple[int, int]]:
        """The pieces of all members that were begun."""
        return ((a, b) for a, b, begun in self.spans(0, self.count) if begun)

    def lost_member_count(self) -> int:
        """How many members are said to be done in chunks that lack a file."""
        count = 0
        for a, b in self.started():
            said = self.stored_status(a, b)
            parts = (said[k * self.chunk - a : (k + 1) * self.chunk - a] for k in self.lost_chunks(a, b, said))
            count += sum(int((part != UNDONE).sum()) for part in parts)
        return count

    def methods(self, first: int, end: int) -> dict[str, dict[str, int]]:
        """{status: {method: how many}} of the members first to end - 1 that are done; nothing of an older run, which does not say."""
        names, statuses = self.attributes.get("method_names", []), self.attributes.get("status_names", [])
        found = np.zeros((len(statuses), len(names)), np.int64)
        begun = ((a, b) for a, b, begun in self.spans(first, end) if begun)
        for a, b in begun if "method" in self.counts else ():
            with damage_errors(self.path):
                status, method = self.stored_status(a, b), self._small_integers("method", a, b, UNDONE, len(names))
            there = (status >= 0) & (method >= 0)
            np.add.at(found, (status[there], method[there]), 1)
        return {s: {m: int(n) for m, n in zip(names, row, strict=True) if n} for s, row in zip(statuses, found, strict=True) if row.any()}

    def check_writable(self) -> None:
        """Raises StoreError where this process may not write."""
        if not os.access(self.path, os.W_OK):
            raise StoreError(f"no permission to write into {self.path}")

    def check_complete(self) -> None:
        """Raises StoreError where a file of a member that is done is missing."""
        if lost := self.lost_member_count():
            raise StoreError(f"{self.path} {lost_sentence(lost)}")

    def attempts(self, first: int, end: int) -> Array:
        """Of members of one chunk."""
        if not has_files(chunk_files(self.path, ATTEMPT, self.arrays[ATTEMPT], first // self.chunk)):
            return np.zeros(end - first, np.int8)
        with damage_errors(self.path):
            return self._small_integers(ATTEMPT, first, end, 0, len(self.attributes["attempts"]))

    def chunk_arrays(self, chunk: Chunk) -> dict[str, Array]:
        """{name of a stored array: what the chunk has for it, a view}, in the order in which they are written: the status last."""
        data = {**self.layout.split(chunk.y), **self.outputs.arrays(chunk)}
        return {**data, **{name: getattr(chunk, name) for name in (*self.counts, "status")}}

    def read(self, first: int, end: int) -> Chunk:
        chunk = self.outputs.chunk(end - first, len(self.times), self.layout.size)
        with damage_errors(self.path):
            for name, view in self.chunk_arrays(chunk).items():
                view[...] = self._rows(name, first, end)
        return chunk

    def _rows(self, name: str, first: int, end: int) -> Any:
        """Rows of an array. Raises StoreError where a file of it cannot be read, with how it is had again."""
        try:
            return self.arrays[name][first:end]
        except Exception as error:  # whatever a codec makes of it
            for k in range(first // self.chunk, -(-end // self.chunk)):
                try:
                    _ = self.arrays[name][k * self.chunk : (k + 1) * self.chunk]
                except Exception:
                    file = next(chunk_files(self.path, name, self.arrays[name], k)).relative_to(self.path)
                    said = f"{self.path} is damaged: {file} cannot be read; without it odesim resume computes its members again"
                    raise StoreError(said) from error
            raise

    def buffer(self, first: int, end: int) -> None:
        return None

    def write(self, first: int, chunk: Chunk) -> None:
        """Data, then the status that says it is there. Raises OSError where the disk refuses."""
        end = first + len(chunk.status)
        tables = {part.name for part in self.design.parts if isinstance(part, Table)}
        for name, values in self.design.labels(first, end).items():
            if name not in tables:
                self.arrays[self.attributes["labels"][name]][first:end] = values
        self.arrays[ATTEMPT][first:end] = self.attempts(first, end)
        for name, values in self.chunk_arrays(chunk).items():
            self.arrays[name][first:end] = values.astype(self.arrays[name].dtype, copy=False)

    def retry(self, options: Mapping[str, Any], good: tuple[int, ...]) -> int:
        """Marks every member that failed as not done, to be integrated with these options; how many there are."""
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
            which = self.attempts(first, end)
            which[bad], status[bad] = len(attempts) - 1, UNDONE
            self.arrays["status"][first:end] = status  # first: what is not done is tried, whichever way is said
            self.arrays[ATTEMPT][first:end] = which
            marked += int(bad.sum())
        return marked


def lost_sentence(members: int) -> str:
    """What to do about members that are said to be done and are not all there."""
    return f"lacks files of {counted(members, 'finished member')}: odesim resume computes them again"
