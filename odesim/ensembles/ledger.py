"""Chunks of members and who knows which are done: in memory here, on disk in odesim.store."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from odesim.base.arrays import Array, on_host
from odesim.base.errors import ParamError, counted
from odesim.ensembles.request import Chunk, EnsembleRequest
from odesim.stepper.codes import STATUSES, UNDONE, Status


def slabs(first: int, end: int, chunk: int) -> Iterator[tuple[int, int]]:
    """(a, b): the members first to end - 1 in slabs of many chunks. The ledger on disk is slow to read chunk by chunk."""
    step = chunk * max(1, (1 << 20) // chunk)
    for a in range(first, end, step):
        yield a, min(a + step, end)


# a chunk is what an interrupt loses, what a worker gets, and a chunk of zarr: small enough that a few of them fit in memory
MAX_CHUNK_BYTES = 1 << 27  # of the states of a chunk


def chunk_size(count: int, row: int) -> int:
    """Members in a chunk: 4096, halved until they fit into MAX_CHUNK_BYTES. row: bytes of a member."""
    size = 4096
    while size > 1 and size * row > MAX_CHUNK_BYTES:
        size //= 2
    return min(size, count)


def shard_chunks(count: int, chunk: int, shard: tuple[int, int] = (1, 1)) -> range:
    """Numbers of the chunks of shard i of n, (i, n): neighbours, in shards of equal size up to one. Raises ParamError."""
    i, n = shard
    if not 1 <= i <= n:
        raise ParamError(f"a shard i/N has 1 <= i <= N, not {i}/{n}")
    chunks = -(-count // chunk)
    return range(chunks * (i - 1) // n, chunks * i // n)


def first_nan_times(request: EnsembleRequest, chunk: Chunk) -> dict[str, Array]:
    """{observable: times (N,)}: the first saved time, among those a member reached, at which an entry is NaN; inf if none is."""
    if not request.outputs.observe:
        return {}
    reached = request.times <= on_host(chunk.t_end)[:, None]
    times = {}
    for name, values in zip(request.outputs.observe, request.outputs.observed.split(on_host(chunk.observed)).values(), strict=True):
        missing = reached & np.isnan(values).reshape(*reached.shape, -1).any(axis=2)
        times[name] = np.where(missing.any(axis=1), request.times[np.argmax(missing, axis=1)], np.inf)
    return times


@dataclass(frozen=True)
class NotNumber:
    """An observable that is NaN in `members` members; the first of them is number `member`, first at the saved time `time`."""

    observable: str
    members: int
    member: int
    time: float

    def __str__(self) -> str:
        return (
            f"the observable {self.observable!r} is not a number in {counted(self.members, 'member')}, "
            f"first in member {self.member} at t = {self.time:.9g}"
        )


def not_numbers_of(numbers: Array, times: Mapping[str, Array]) -> dict[str, NotNumber]:
    """The NotNumbers {observable: NotNumber} of members `numbers` (N,), which rise, with their first_nan_times()."""
    lost = {name: np.flatnonzero(np.isfinite(first)) for name, first in times.items()}
    return {name: NotNumber(name, len(r), int(numbers[r[0]]), float(times[name][r[0]])) for name, r in lost.items() if len(r)}


def join_not_numbers(one: Mapping[str, NotNumber], other: Mapping[str, NotNumber]) -> dict[str, NotNumber]:
    """The NotNumbers {observable: NotNumber} of two sets of members together."""
    joined = {**one, **other}
    for name in one.keys() & other.keys():
        first = min(one[name], other[name], key=lambda missing: missing.member)
        joined[name] = NotNumber(name, one[name].members + other[name].members, first.member, first.time)
    return joined


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


class FreshLedger:
    """What is known of a run of one process alone: the statuses of its members; each is to be integrated once."""

    def __init__(self, statuses: Array, chunk: int) -> None:
        self.statuses, self.chunk, self.count = statuses, chunk, len(statuses)

    def status(self, first: int, end: int) -> Array:
        return self.statuses[first:end]

    def spans(self, first: int, end: int) -> Iterator[tuple[int, int, bool]]:
        return ((a, b, True) for a, b in slabs(first, end, self.chunk))

    def attempts(self, first: int, end: int) -> Array:
        return np.zeros(end - first, np.int8)


class MemoryLedger(FreshLedger):
    """A Ledger in memory. members: a Chunk for all members."""

    def __init__(self, members: Chunk, chunk: int) -> None:
        super().__init__(members.status, chunk)
        self.members = members

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
