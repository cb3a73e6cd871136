"""Statistics over members while they are computed: a ledger that keeps sums and counts of chunks, and no member.

Moments are sums about the first member, so that nothing cancels, of blocks of a fixed size, joined in order by the formula of Chan: the
bits depend neither on threads nor on how many blocks are computed at once. Quantiles come from counts by the top bits (sign, exponent, 6
bits more) of what a number is above the median of the first block, in units of its spread: there are no edges to choose, and a quantile is
off by at most 1/64 of that, however narrow the law is, in whatever units, and whatever one member does. One farther than 3e26 units is NaN.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from odesim.base.arrays import Array, on_host
from odesim.base.errors import ParamError, no_such
from odesim.ensembles.ledger import FreshLedger
from odesim.ensembles.request import Chunk
from odesim.stepper.codes import UNDONE

MEAN, VAR, MIN, MAX, QUANTILES, HISTOGRAM = STATISTICS = ("mean", "var", "min", "max", "quantiles", "histogram")
COUNTED = (QUANTILES, HISTOGRAM)
"""Those that need the counts of buckets."""


def time_mean(y: Array, times: Array) -> Array:
    """The mean over time (N, n) of y (N, T, n), by the trapezium rule between the times (T,)."""
    parts = np.diff(times)[:, None] / (times[-1] - times[0])  # not divided at last: sums of large numbers overflow
    return ((y[:, 1:] / 2 + y[:, :-1] / 2) * parts).sum(axis=1)


OVER_TIME: Mapping[str, Callable[[Array, Array], Array]] = {
    "time_mean": time_mean,
    "time_min": lambda y, times: y.min(axis=1),
    "time_max": lambda y, times: y.max(axis=1),
}
"""What a member has once, of its values at the saved times; NaN for a member that did not reach the last one."""
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles that are computed."""
BELOW, ABOVE, PER_OCTAVE = 40, 88, 64
HALF = (BELOW + ABOVE) * PER_OCTAVE
BINS, TAIL = 32, 0.001
"""Of a histogram: its bins, of which the first and the last have about this share of the members. More were little wider than buckets."""
SHIFT, LOWEST = 46, (1023 - BELOW) * PER_OCTAVE
"""Of the bits of a number; sizes below 2^-40 count as that, those from 2^88 on as the largest below: a quantile there is not known.

Upwards it is farther: of exp(-k) for k from 0 to 100 one number in twenty is above 2^64 times the median, its distance from most others.
"""


def check_reduce(reduce: str | Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(names of statistics, names of OVER_TIME), each once. Raises ParamError."""
    names = (reduce,) if isinstance(reduce, str) else tuple(dict.fromkeys(reduce))
    for name in names:
        if name not in (*STATISTICS, *OVER_TIME):
            raise ParamError(no_such("statistic", str(name)[:60], (*STATISTICS, *OVER_TIME)))
    statistics, over_time = tuple(n for n in names if n in STATISTICS), tuple(n for n in names if n in OVER_TIME)
    if over_time and not statistics:
        raise ParamError(
            f"{over_time[0]} is a number of each member: name a statistic of it too, such as reduce=('mean', '{over_time[0]}')"
        )
    return statistics, over_time


def buckets_of(x: Array) -> Array:
    """The number of the bucket, 0 to 2 HALF - 1, of each number; they rise with x, and have their lower ends as numpy's bins do."""
    size = np.clip(((np.abs(x).view(np.int64) - (x < 0)) >> SHIFT) - LOWEST, 0, HALF - 1)
    return np.where(x >= 0, HALF + size, HALF - 1 - size)


def bucket_edges() -> Array:
    """The ends (2 HALF + 1,) of the buckets; the middle one is 0."""
    bits = (np.arange(HALF + 1, dtype=np.int64) + LOWEST) << SHIFT
    sizes = bits.view(np.float64)
    return np.concatenate([-sizes[:0:-1], [0.0], sizes[1:]])


def unit_of(values: Array, middle: float) -> float:
    """A power of 2, which changes exponents alone, near the median distance of numbers from their middle: one that ran away is one."""
    distances = np.abs(values - middle)
    apart = distances[distances > 0]
    return float(np.ldexp(1.0, min(int(np.frexp(np.median(apart) if len(apart) else abs(middle) or 1.0)[1]), 1023)))


class ReducingLedger(FreshLedger):
    """A Ledger (odesim.ensembles.ledger) of statistics of the columns of members.

    Columns: states at saved times, observables at saved times, then the states and the observables of each name of OVER_TIME, all flat.
    chunk: members integrated at once; block: members of a sum. n, mean, m2, least, largest (columns,): how many numbers, their mean, the
    sum of squares about it, and their ends. Mean and squares have the unit 2^exponents, in which no number so far is above 1: no square or
    sum overflows, and usual numbers keep their bits. middle, unit (columns,): the median of the first block with numbers, from which the
    buckets go, and their unit, NaN before there is one. counts (columns, 2 HALF): of the buckets. Ends and counts are those of a run whose
    statistics need them.
    """

    def __init__(
        self, count: int, columns: int, chunk: int, block: int, statistics: tuple[str, ...], times: Array, over_time: tuple[str, ...] = ()
    ) -> None:
        super().__init__(np.full(count, UNDONE, np.int8), chunk)
        self.block, self.times, self.over_time = block, times, over_time
        self.n, self.mean, self.m2 = np.zeros((3, columns))
        self.exponents = np.zeros(columns, np.int32)
        self.least, self.largest = np.full(columns, np.inf), np.full(columns, -np.inf)
        self.middle, self.unit = np.full((2, columns), np.nan)
        self.ends = not {MIN, MAX, *COUNTED}.isdisjoint(statistics)
        self.counts = None if set(COUNTED).isdisjoint(statistics) else np.zeros((columns, 2 * HALF), np.uint32)

    def read(self, first: int, end: int) -> Chunk:
        raise NotImplementedError("a run that keeps statistics alone begins no chunk twice")

    def buffer(self, first: int, end: int) -> Chunk | None:
        return None

    def write(self, first: int, chunk: Chunk) -> None:
        count, values = len(chunk.status), [on_host(part) for part in (chunk.y, chunk.observed)]
        for a in range(0, count, self.block):
            parts = [part[a : a + self.block] for part in values]
            once = [OVER_TIME[name](part, self.times) for name in self.over_time for part in parts]
            self._add(np.concatenate([*(part.reshape(len(part), -1) for part in parts), *once], axis=1))
        self.statuses[first : first + count] = chunk.status

    def _add(self, rows: Array) -> None:
        """Adds a block of members (N, columns); what a member did not reach is NaN, and does not count."""
        there = np.isfinite(rows)
        exponents = np.maximum(self.exponents, np.frexp(np.abs(rows).max(axis=0, where=there, initial=0.0))[1])
        self.mean, self.m2 = np.ldexp(self.mean, self.exponents - exponents), np.ldexp(self.m2, 2 * (self.exponents - exponents))
        self.exponents = exponents
        scaled = np.where(there, rows, 0.0) * np.ldexp(1.0, -exponents)
        n = there.sum(axis=0).astype(np.float64)
        some, origin = np.maximum(n, 1.0), scaled[np.argmax(there, axis=0), np.arange(rows.shape[1])]
        off = np.where(there, scaled - origin, 0.0)
        total = off.sum(axis=0)
        mean, m2 = origin + total / some, np.maximum((off * off).sum(axis=0) - total * total / some, 0.0)
        gap, both = mean - self.mean, np.maximum(self.n + n, 1.0)
        self.mean = self.mean + gap * (n / both)
        self.m2 = self.m2 + m2 + gap * gap * (self.n * n / both)
        self.n = self.n + n
        if self.ends:
            self.least = np.minimum(self.least, rows.min(axis=0, where=there, initial=np.inf))
            self.largest = np.maximum(self.largest, rows.max(axis=0, where=there, initial=-np.inf))
        if self.counts is not None:
            for column in range(rows.shape[1]):
                values = rows[there[:, column], column]
                if np.isnan(self.middle[column]) and len(values):
                    self.middle[column] = np.median(values)
                    self.unit[column] = unit_of(values, self.middle[column])
                with np.errstate(over="ignore"):  # the outermost buckets have what is far away
                    values = values / self.unit[column] - self.middle[column] / self.unit[column]
                self.counts[column] += np.bincount(buckets_of(values), minlength=2 * HALF).astype(np.uint32)

    def statistic(self, name: str) -> Array:
        """(columns,), (LEVELS, columns) of quantiles, (BINS, columns) of a histogram; NaN where no member has a number."""
        if name == MEAN:
            return np.where(self.n > 0, np.ldexp(self.mean, self.exponents), np.nan)
        if name == VAR:
            with np.errstate(over="ignore"):  # of numbers above 1e154 it may be infinite
                return np.where(self.n > 1, np.ldexp(self.m2 / np.maximum(self.n - 1.0, 1.0), 2 * self.exponents), np.nan)
        if name in (MIN, MAX):
            return np.where(self.n > 0, self.least if name == MIN else self.largest, np.nan)
        assert self.counts is not None
        if name == HISTOGRAM:
            return np.array([np.diff(totals) for totals, _ in map(bins_of, self.counts)]).T
        found = np.array([[quantile(row, level) for row in self.counts] for level in LEVELS])
        found[np.abs(found) <= 2.0**-BELOW] = 0.0  # the innermost buckets, where members are that are equal
        found[np.abs(found) >= bucket_edges()[-2]] = np.nan  # the outermost ones have no end
        # between the ends: those of what is positive are positive, also where they are small beside the distance of all from the middle
        return np.clip((found + self.middle / self.unit) * self.unit, self.least, self.largest)

    def edges(self) -> Array:
        """The ends (BINS + 1, columns) of the bins of a histogram: from the least number to the largest."""
        assert self.counts is not None
        inner = np.array([inside for _, inside in map(bins_of, self.counts)]).T
        inner = (inner + self.middle / self.unit) * self.unit
        return np.concatenate([[self.statistic(MIN)], np.maximum(inner, self.least), [self.statistic(MAX)]])


def bins_of(counts: Array) -> tuple[Array, Array]:
    """(numbers below each end of a bin (BINS + 1,), the ends inside (BINS - 1,)) of counts of buckets (2 HALF,).

    Ends are those of buckets, the nearest below equal distances between the quantiles of TAIL: so none is above the largest number.
    """
    edges, total = bucket_edges(), np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    if not total[-1]:
        return np.zeros(BINS + 1, np.int64), np.full(BINS - 1, np.nan)
    wanted = np.linspace(quantile(counts, TAIL), quantile(counts, 1 - TAIL), BINS - 1)
    places = np.clip(
        np.searchsorted(edges, wanted, side="right") - 1, 1, 2 * HALF - 1
    )  # beyond the outer buckets, too, are numbers of theirs
    return np.concatenate([[0], total[places], total[-1:]]), edges[places]


def quantile(counts: Array, level: float) -> float:
    """The quantile of counts of buckets (2 HALF,), linear inside of one; NaN without any."""
    total = np.cumsum(counts, dtype=np.float64)
    if not total[-1]:
        return float("nan")
    wanted, edges = level * total[-1], bucket_edges()
    k = int(np.searchsorted(total, wanted))
    return float(edges[k] + (wanted - (total[k] - counts[k])) / counts[k] * (edges[k + 1] - edges[k]))
