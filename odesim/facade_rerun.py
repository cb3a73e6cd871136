"""Stored ensembles computed again and compared."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from odesim.ensembles.result import UNDONE, Chunk
from odesim.ensembles.run import Progress, run_chunks, shard_chunks
from odesim.facade_manifest import restore
from odesim.facade_members import check_threads
from odesim.facade_stored import engines
from odesim.stopping import stopping
from odesim.store.ensemble import EnsembleStore, lost_sentence


@dataclass(frozen=True)
class Rerun:
    """A stored ensemble and the same computed again. first: (member, name) of the first difference; largest: of all.

    lost: members that are said to be done and are not all there, so that nothing can be compared.
    """

    path: Path
    members: int
    different: int
    first: tuple[int, str] | None
    largest: float
    stopped: bool = False
    lost: int = 0

    @property
    def same(self) -> bool:
        """Whether all of it was computed again and every bit is the same."""
        return self.first is None and not self.stopped and not self.lost

    @property
    def message(self) -> str:
        head = f"stopped after {self.members} members" if self.stopped else f"{self.members} members computed again"
        tail = f"; it {lost_sentence(self.lost)}" if self.lost else ""
        if self.first is None:
            return f"{head}: every bit is the same{tail}"
        member, name = self.first
        return (
            f"{head}: {self.different} differ, the first is {name} of member {member}; the largest difference is {self.largest:.3g}{tail}"
        )


def rerun(path: Path, *, threads: int = 1, progress: Progress | None = None) -> Rerun:
    """Computes every member of the ensemble at path again that is done there, and compares; writes nothing. Raises an OdesimError."""
    check_threads(threads)
    store = EnsembleStore(path)
    members, _, first_engine = restore(store)
    shadow = Shadow(store)
    with stopping() as asked:
        done = run_chunks(
            shadow,
            members,
            engines(store, members, first_engine),
            shard_chunks(store.count, store.chunk),
            threads=threads,
            asked=asked,
            progress=progress,
        )
    return Rerun(path, shadow.compared, shadow.different, shadow.first, shadow.largest, done.stopped, store.lost_members())


class Shadow:
    """A Ledger beside a stored one: at first nothing is done, and what is handed in is compared, not kept."""

    def __init__(self, store: EnsembleStore) -> None:
        self.store, self.chunk, self.count = store, store.chunk, store.count
        self.compared, self.different, self.largest = 0, 0, 0.0
        self.first: tuple[int, str] | None = None

    def status(self, first: int, end: int) -> Any:
        """Not done where the store is done, done where it is not."""
        return np.where(self.store.status(first, end) == UNDONE, 0, UNDONE).astype(np.int8)

    def attempts(self, first: int, end: int) -> Any:
        return self.store.attempts(first, end)

    def read(self, first: int, end: int) -> Chunk:
        return self.store.read(first, end)

    def write(self, first: int, chunk: Chunk) -> None:
        """Compares the members of chunk with those stored, where they are done."""
        old = self.store.read(first, first + len(chunk.status))
        done = old.status != UNDONE
        bad = np.zeros(len(done), bool)
        names = {}
        kept = {name: self.store.arrays[name].dtype for name in self.store.layout.names}
        new = {name: v.astype(kept[name]) for name, v in self.store.layout.split(chunk.y).items()}
        pairs = {name: (v, new[name]) for name, v in self.store.layout.split(old.y).items()}
        pairs |= {name: (values, chunk.arrays[name]) for name, values in old.arrays.items() if name != "y"}
        for name, (a, b) in pairs.items():
            same = (a == b) | ((a != a) & (b != b))
            differs = done & ~same.reshape(len(done), -1).all(axis=1)
            with np.errstate(invalid="ignore"):
                gap = np.abs(np.asarray(a, float) - b)[differs]
            if np.isfinite(gap).any():
                self.largest = max(self.largest, float(np.nanmax(gap[np.isfinite(gap)])))
            for i in np.flatnonzero(differs & ~bad):
                names[int(i)] = name
            bad |= differs
        self.compared += int(done.sum())
        self.different += int(bad.sum())
        if self.first is None and bad.any():
            at = int(np.argmax(bad))
            self.first = (first + at, names[at])
