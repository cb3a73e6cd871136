"""Statistics over members while they are computed: a ledger that keeps sums and counts of chunks, and no member.

Moments are sums about the first member, so that nothing cancels, of blocks of a fixed size, joined in order by the formula of Chan: the
bits depend neither on threads nor on how many blocks are computed at once. Quantiles come from counts by the top bits (sign, exponent, 6
bits more) of what a number is above the median of the first block: there are no edges to choose, and a quantile is off by at most 1/64 of
that, however narrow the law is and whatever one member does.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from odesim.base.arrays import Array, on_host
from odesim.base.errors import ParamError, no_such
from odesim.ensembles.ledger import slabs
from odesim.ensembles.request import Chunk
from odesim.stepper.codes import UNDONE

MEAN, VAR, QUANTILES = STATISTICS = ("mean", "var", "quantiles")
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles that are computed."""
OCTAVES, PER_OCTAVE = 80, 64
HALF = OCTAVES * PER_OCTAVE
SHIFT, LOWEST = 46, (1023 - OCTAVES // 2) * PER_OCTAVE
"""Of the bits of a number; sizes below 2^-40 count as that, those from 2^40 on as the largest below."""


def check_reduce(reduce: str | Iterable[str]) -> tuple[str, ...]:
    """The names of statistics, each once. Raises ParamError."""
    names = (reduce,) if isinstance(reduce, str) else tuple(reduce)
    for name in names:
        if name not in STATISTICS:
            raise ParamError(no_such("statistic", str(name)[:60], STATISTICS))
    return tuple(dict.fromkeys(names))


def buckets_of(x: Array) -> Array:
    """The number of the bucket, 0 to 2 HALF - 1, of each number; they rise with x."""
    size = np.clip((np.abs(x).view(np.int64) >> SHIFT) - LOWEST, 0, HALF - 1)
    return np.where(x > 0, HALF + size, HALF - 1 - size)


def bucket_edges() -> Array:
    """The ends (2 HALF + 1,) of the buckets; the middle one is 0."""
    bits = (np.arange(HALF + 1, dtype=np.int64) + LOWEST) << SHIFT
    sizes = bits.view(np.float64)
    return np.concatenate([-sizes[:0:-1], [0.0], sizes[1:]])


class ReducingLedger:
    """A Ledger (odesim.ensembles.ledger) of statistics of the columns of members: states and observables at saved times, flat.

    chunk: members integrated at once; block: members of a sum. n, mean, m2 (columns,): how many numbers, their mean, and the sum of squares
    about it. middle (columns,): the median of the first block with numbers, from which the buckets of quantiles go, NaN before there is
    one. counts (columns, 2 HALF): of the buckets, where quantiles are wanted.
    """

    def __init__(self, count: int, columns: int, chunk: int, block: int, *, quantiles: bool) -> None:
        self.count, self.chunk, self.block = count, chunk, block
        self.statuses = np.full(count, UNDONE, np.int8)
        self.n, self.mean, self.m2 = np.zeros(columns), np.zeros(columns), np.zeros(columns)
        self.middle = np.full(columns, np.nan)
        self.counts = np.zeros((columns, 2 * HALF), np.uint32) if quantiles else None

    def status(self, first: int, end: int) -> Array:
        return self.statuses[first:end]

    def spans(self, first: int, end: int) -> Iterator[tuple[int, int, bool]]:
        return ((a, b, True) for a, b in slabs(first, end, self.chunk))

    def attempts(self, first: int, end: int) -> Array:
        return np.zeros(end - first, np.int8)

    def read(self, first: int, end: int) -> Chunk:
        raise NotImplementedError("a run that keeps statistics alone begins no chunk twice")

    def buffer(self, first: int, end: int) -> Chunk | None:
        return None

    def write(self, first: int, chunk: Chunk) -> None:
        count = len(chunk.status)
        rows = np.concatenate([on_host(part).reshape(count, -1) for part in (chunk.y, chunk.observed)], axis=1)
        for a in range(0, count, self.block):
            self._add(rows[a : a + self.block])
        self.statuses[first : first + count] = chunk.status

    def _add(self, rows: Array) -> None:
        """Adds a block of members (N, columns); what a member did not reach is NaN, and does not count."""
        there = np.isfinite(rows)
        n = there.sum(axis=0).astype(np.float64)
        some, origin = np.maximum(n, 1.0), np.where(there.any(axis=0), rows[np.argmax(there, axis=0), np.arange(rows.shape[1])], 0.0)
        off = np.where(there, rows - origin, 0.0)
        total = off.sum(axis=0)
        mean, m2 = origin + total / some, np.maximum((off * off).sum(axis=0) - total * total / some, 0.0)
        gap, both = mean - self.mean, np.maximum(self.n + n, 1.0)
        self.mean = self.mean + gap * (n / both)
        self.m2 = self.m2 + m2 + gap * gap * (self.n * n / both)
        self.n = self.n + n
        if self.counts is not None:
            for column in range(rows.shape[1]):
                values = rows[there[:, column], column]
                if np.isnan(self.middle[column]) and len(values):
                    self.middle[column] = np.median(values)
                values = values - self.middle[column]
                self.counts[column] += np.bincount(buckets_of(values), minlength=2 * HALF).astype(np.uint32)

    def statistic(self, name: str) -> Array:
        """(columns,), or (LEVELS, columns) of quantiles; NaN where no member has a number."""
        if name == MEAN:
            return np.where(self.n > 0, self.mean, np.nan)
        if name == VAR:
            return np.where(self.n > 1, self.m2 / np.maximum(self.n - 1.0, 1.0), np.nan)
        assert self.counts is not None
        return np.array([[quantile(row, level) for row in self.counts] for level in LEVELS]) + self.middle


def quantile(counts: Array, level: float) -> float:
    """The quantile of counts of buckets (2 HALF,), linear inside of one; NaN without any."""
    total = np.cumsum(counts, dtype=np.float64)
    if not total[-1]:
        return float("nan")
    wanted, edges = level * total[-1], bucket_edges()
    k = int(np.searchsorted(total, wanted))
    return float(edges[k] + (wanted - (total[k] - counts[k])) / counts[k] * (edges[k + 1] - edges[k]))
