"""Where the chunks of an ensemble are kept, and what says which members are done: in memory here, on disk in odesim.store."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from odesim.base.arrays import Array
from odesim.ensembles.request import STATUSES, UNDONE, Chunk
from odesim.solve.problem import Status


class Ledger(Protocol):
    """Where chunks are kept. chunk: members in one; count: in all."""

    chunk: int
    count: int

    def status(self, first: int, end: int) -> Array:
        """(end - first,) numbers of STATUSES, UNDONE where a member is not done."""

    def pieces(self, first: int, end: int) -> Iterator[tuple[int, int, bool]]:
        """(a, b, begun) of neighbours among the members first to end - 1, many chunks each: where nothing was begun, none is done."""

    def attempts(self, first: int, end: int) -> Array:
        """(end - first,): which of the engines is to integrate a member."""

    def read(self, first: int, end: int) -> Chunk:
        """The members first to end - 1."""

    def room(self, first: int, end: int) -> Chunk | None:
        """Where the members first to end - 1 are to be put at once, if anywhere."""

    def write(self, first: int, chunk: Chunk) -> None:
        """Keeps them: the data, then what says that they are there."""


class Held:
    """A Ledger in memory. members: all of them, not done yet."""

    def __init__(self, members: Chunk, chunk: int) -> None:
        self.members, self.chunk, self.count = members, chunk, len(members.status)

    def status(self, first: int, end: int) -> Array:
        return self.members.status[first:end]

    def pieces(self, first: int, end: int) -> Iterator[tuple[int, int, bool]]:
        return ((a, b, True) for a, b in slabs(first, end, self.chunk))

    def attempts(self, first: int, end: int) -> Array:
        return np.zeros(end - first, np.int8)

    def read(self, first: int, end: int) -> Chunk:
        return self.members.part(slice(first, end))

    def room(self, first: int, end: int) -> Chunk:
        return self.members.part(slice(first, end))

    def write(self, first: int, chunk: Chunk) -> None:
        if chunk.status.base is not self.members.status:
            self.members.put(slice(first, first + len(chunk.status)), chunk)

    def ended(self) -> Chunk:
        """All members; those that a stop left undone are said to be interrupted."""
        undone = self.members.status == UNDONE
        edges = np.flatnonzero(np.diff(undone, prepend=False, append=False))
        for first, end in edges.reshape(-1, 2).tolist():  # neighbours at once, which needs no memory where they lie on a GPU
            self.members.y[first:end] = np.nan
        self.members.status[undone] = STATUSES.index(Status.INTERRUPTED)
        return self.members


def slabs(first: int, end: int, chunk: int) -> Iterator[tuple[int, int]]:
    """Members first to end - 1 in pieces of many chunks: asking the disk takes longer than a chunk of the ledger is."""
    step = chunk * max(1, (1 << 20) // chunk)
    for a in range(first, end, step):
        yield a, min(a + step, end)
