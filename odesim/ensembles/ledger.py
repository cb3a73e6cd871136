"""Where the chunks of an ensemble are kept, and what says which members are done: in memory here, on disk in odesim.store."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from odesim.base.arrays import Array
from odesim.ensembles.not_numbers import NotNumber
from odesim.ensembles.request import STATUSES, UNDONE, Chunk
from odesim.ensembles.slabs import slabs
from odesim.solve.problem import Status


class Ledger(Protocol):
    """Where chunks are kept. chunk: members in one; count: in all."""

    chunk: int
    count: int

    def status(self, first: int, end: int) -> Array:
        """(end - first,) numbers of STATUSES, UNDONE where a member is not done."""

    def spans(self, first: int, end: int) -> Iterator[tuple[int, int, bool]]:
        """(a, b, begun) of neighbours among the members first to end - 1, many chunks each: where nothing was begun, none is done."""

    def attempts(self, first: int, end: int) -> Array:
        """(end - first,): which of the engines is to integrate a member."""

    def read(self, first: int, end: int) -> Chunk:
        """The members first to end - 1."""

    def buffer(self, first: int, end: int) -> Chunk | None:
        """Where the members first to end - 1 are to be put at once, if anywhere."""

    def write(self, first: int, chunk: Chunk) -> None:
        """Keeps them: the data, then what says that they are there."""


class MemoryLedger:
    """A Ledger in memory. members: all of them, not done yet."""

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
        """All members; those that a stop left undone are said to be interrupted."""
        undone = self.members.status == UNDONE
        edges = np.flatnonzero(np.diff(undone, prepend=False, append=False))
        for first, end in edges.reshape(-1, 2).tolist():  # neighbours at once, which needs no memory where they lie on a GPU
            self.members.y[first:end] = np.nan
        self.members.status[undone] = STATUSES.index(Status.INTERRUPTED)
        return self.members


SUCCESSES = tuple(STATUSES.index(s) for s in (Status.OK, Status.EVENT))


Progress = Callable[[int, int, int], None]  # members done, of how many, and how many of these failed


@dataclass
class Tally:
    """Members of a run, or of a shard, by status. new: those integrated now; stopped: asked to end before the last one.

    not_numbers: observables that are NaN somewhere, of the members integrated now.
    """

    total: int
    counts: dict[str, int] = field(default_factory=lambda: {str(s): 0 for s in STATUSES})
    new: int = 0
    stopped: bool = False
    not_numbers: dict[str, NotNumber] = field(default_factory=dict)

    def add(self, status: Array) -> None:
        found = np.bincount(status[status >= 0], minlength=len(STATUSES))
        for name, count in zip(STATUSES, found.tolist(), strict=True):
            self.counts[str(name)] += count

    @property
    def done(self) -> int:
        return sum(self.counts.values())

    @property
    def failed(self) -> int:
        return self.done - sum(self.counts[str(STATUSES[k])] for k in SUCCESSES)

    @property
    def failures(self) -> str:
        """`3 blow_up, 1 max_steps`: the failed ones by status."""
        return ", ".join(f"{n} {name}" for k, (name, n) in enumerate(self.counts.items()) if n and k not in SUCCESSES)


def count_members(ledger: Ledger, chunks: range) -> Tally:
    """What the ledger holds of these chunks."""
    first, end = chunks.start * ledger.chunk, min(chunks.stop * ledger.chunk, ledger.count)
    found = Tally(max(end - first, 0))
    for a, b, begun in ledger.spans(first, end):
        if begun:
            found.add(ledger.status(a, b))
    return found
