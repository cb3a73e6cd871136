"""Members of a stored ensemble, chunk by chunk.

The array `status` is the ledger: it is written after the data, and what it does not say is done is done again.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from odesim.arrays import Array, Layout
from odesim.ensembles.design import Design, Table, design_of
from odesim.ensembles.result import UNDONE, Chunk
from odesim.errors import StoreError
from odesim.store.manifest import ATTEMPT, COUNTS, INITIAL, LEDGER, POINTS, ensemble_attributes
from odesim.store.read import reading
from odesim.store.write import PARAMS, TIME


class EnsembleStore:
    """The ensemble stored at path, a Ledger. layout: of a member's states in a flat vector."""

    def __init__(self, path: Path, layout: Layout | None = None) -> None:
        import zarr

        self.path = path
        self.said = ensemble_attributes(path)
        self.count, self.chunk = self.said["members"], self.said["chunk"]
        with reading(path):
            self.group: Any = zarr.open_group(path, mode="r+" if os.access(path, os.W_OK) else "r")
            names = (*self.said["states"], *LEDGER, ATTEMPT, *self.said["labels"].values())
            arrays: dict[str, Any] = {name: self.group[name] for name in names}
            for name, array in arrays.items():
                if array.shape[0] != self.count:
                    raise ValueError(f"{name} is stored as {array.dtype} {array.shape} for {self.count} members")
            self.arrays = arrays
            times: Any = self.group[TIME]
            self.times = np.asarray(times[...])
            shapes = tuple(arrays[name].shape[2:] for name in self.said["states"])
        self.layout = layout or Layout(tuple(self.said["states"]), shapes)
        self.design = self._design()

    def _design(self) -> Design:
        with reading(self.path):
            points = dict(self.group[POINTS].arrays()) if POINTS in self.group else {}
            tables = {name: self.arrays[label] for name, label in self.said["labels"].items()}
            found = design_of(self.said["design"], self.count, points, tables)
            return found.shaped({name: array.shape[1:] for name, array in tables.items()})

    def shared(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """(params, initial): what all members share."""
        found: list[dict[str, Any]] = []
        with reading(self.path):
            for name in (PARAMS, INITIAL):
                arrays = dict(self.group[name].arrays()) if name in self.group else {}
                values = {key: np.asarray(array[...]) for key, array in arrays.items()}
                found.append({key: value if value.ndim else value.item() for key, value in values.items()})
        return found[0], found[1]

    def status(self, first: int, end: int) -> Array:
        with reading(self.path):
            return np.asarray(self.arrays["status"][first:end])

    def attempts(self, first: int, end: int) -> Array:
        with reading(self.path):
            return np.asarray(self.arrays[ATTEMPT][first:end])

    def read(self, first: int, end: int) -> Chunk:
        chunk = Chunk.empty(end - first, len(self.times), self.layout.size)
        with reading(self.path):
            for name, view in self.layout.split(chunk.y).items():
                view[...] = self.arrays[name][first:end]
            for name in LEDGER:
                getattr(chunk, name)[...] = self.arrays[name][first:end]
        return chunk

    def write(self, first: int, chunk: Chunk) -> None:
        """Data, then the status that says it is there. Raises OSError where the disk refuses."""
        end = first + len(chunk.status)
        for name, values in self.layout.split(chunk.y).items():
            self.arrays[name][first:end] = values.astype(self.arrays[name].dtype, copy=False)
        tables = {part.name for part in self.design.parts if isinstance(part, Table)}
        for name, values in self.design.labels(first, end).items():
            if name not in tables:
                self.arrays[self.said["labels"][name]][first:end] = values
        for name in (*COUNTS, "status"):
            self.arrays[name][first:end] = getattr(chunk, name)

    def retry(self, options: Mapping[str, Any], good: tuple[int, ...]) -> int:
        """Marks every member that failed as not done, to be integrated with these options; how many there are."""
        attempts = [*self.said["attempts"], dict(options)]
        if len(attempts) > np.iinfo(np.int8).max:
            raise StoreError(f"{self.path} was tried {len(attempts) - 1} times already")
        marked = 0
        for first in range(0, self.count, self.chunk):
            end = min(first + self.chunk, self.count)
            status = self.status(first, end)
            bad = ~np.isin(status, (UNDONE, *good))
            if not bad.any():
                continue
            if not marked:
                self.group.update_attributes({"attempts": attempts})
                self.said["attempts"] = attempts
            which = self.attempts(first, end)
            which[bad], status[bad] = len(attempts) - 1, UNDONE
            self.arrays[ATTEMPT][first:end] = which
            self.arrays["status"][first:end] = status
            marked += int(bad.sum())
        return marked
