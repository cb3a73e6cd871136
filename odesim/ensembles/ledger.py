"""Ledgers: where chunks of an ensemble are stored and which members are done. In memory here, on disk in odesim.store."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from odesim.base.arrays import Array
from odesim.ensembles.ledger import NotNumber, slabs
from odesim.ensembles.request import Chunk
from odesim.solve.codes import STATUSES, UNDONE, Status


class Ledger(Protocol):
    """A store of chunks that knows which members are done. chunk: members in a chunk; count: members in all."""

    chunk: int
    count: int

    def status(self, first: int, end: int) -> Array:
        """Statuses (end - first,) of members, as numbers of STATUSES, UNDONE where a member is not done."""

    def spans(self, first: int, end: int) -> Iterator[tuple[int, int, bool]]:
        """(a, b, started): the members first to end - 1 in runs of neighbours; where a run is not started, none of it is done."""

    def attempts(self, first: int, end: int) -> Array:
        """Attempts (end - first,) of members: the number of the engine that integrates each of them."""

    def read(self, first: int, end: int) -> Chunk:
        """Reads the results of members first to end - 1."""

    def buffer(self, first: int, end: int) -> Chunk | None:
        """A Chunk to integrate the members first to end - 1 into, or None if write() copies them."""

    def write(self, first: int, chunk: Chunk) -> None:
        """Stores members from first on: the data, then their status."""


class MemoryLedger:
    """A Ledger in memory. members: a Chunk for all members."""

    def __init__(self, members: Chunk, chunk: int) -> None:
        self.members, self.chunk, self.count = members, chunk, len(members.status)

    def status(self, first: int, end: int) -> Array:
        return self.members.status[first:end]

    def spans(self, first: int, end: int) -> Iterator[tuple[int, int, bool]]:
        return ((a, b, True) for a, b in slabs(first, end, self.chunk))

    def attempts(self, first: int, end: int) -> Array:
        return np.zeros(end - first, np.int8)

    def read(self, first: int, end: int) -> Chunk:
        return self.members.select(slice(first, end))

    def buffer(self, first: int, end: int) -> Chunk:
        return self.members.select(slice(first, end))

    def write(self, first: int, chunk: Chunk) -> None:
        if chunk.status.base is not self.members.status:
            self.members.assign(slice(first, first + len(chunk.status)), chunk)

    def all_members(self) -> Chunk:
        """All members; the status of those that are not done becomes `interrupted`."""
        undone = self.members.status == UNDONE
        edges = np.flatnonzero(np.diff(undone, prepend=False, append=False))
        for first, end in edges.reshape(-1, 2).tolist():  # slices need no extra memory on a GPU
            self.members.y[first:end] = np.nan
        self.members.status[undone] = Status.INTERRUPTED.number
        return self.members


SUCCESSES = tuple(s.number for s in (Status.OK, Status.EVENT))


Progress = Callable[[int, int, int], None]  # (members done, members in all, members that failed)


@dataclass
class Tally:
    """Number of members of a run or shard by status. new: integrated by this call; stopped: whether it was interrupted.

    not_numbers {observable: NotNumber}: observables that are NaN in members integrated by this call.
    """

    total: int
    counts: dict[str, int] = field(default_factory=lambda: {str(s): 0 for s in STATUSES})
    new: int = 0
    stopped: bool = False
    not_numbers: dict[str, NotNumber] = field(default_factory=dict)

    def add(self, status: Array) -> None:
        counts = np.bincount(status[status >= 0], minlength=len(STATUSES))
        for name, count in zip(STATUSES, counts.tolist(), strict=True):
            self.counts[str(name)] += count

    @property
    def done(self) -> int:
        return sum(self.counts.values())

    @property
    def failed(self) -> int:
        return self.done - sum(self.counts[str(STATUSES[k])] for k in SUCCESSES)

    @property
    def failures(self) -> str:
        """`3 blow_up, 1 max_steps`: failed members by status."""
        return ", ".join(f"{n} {name}" for k, (name, n) in enumerate(self.counts.items()) if n and k not in SUCCESSES)


def count_members(ledger: Ledger, chunks: range) -> Tally:
    """The Tally of the members of these chunks, from their statuses in the ledger."""
    first, end = chunks.start * ledger.chunk, min(chunks.stop * ledger.chunk, ledger.count)
    tally = Tally(max(end - first, 0))
    for a, b, started in ledger.spans(first, end):
        if started:
            tally.add(ledger.status(a, b))
    return tally
