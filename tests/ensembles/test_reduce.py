"""Statistics over members are those of all members held in memory."""

import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from odesim.ensembles.reduce import HALF, LEVELS, STATISTICS, ReducingLedger, bucket_edges, buckets_of
from odesim.ensembles.request import Chunk, MemberShape


def chunk_of(rows: Any) -> Chunk:
    """A chunk of members with these numbers (N, columns) at one time."""
    chunk = Chunk.allocate(len(rows), MemberShape(1, rows.shape[1]))
    chunk.y[:, 0] = rows
    chunk.status[:] = 0
    return chunk


def ledger_of(rows: Any, together: int) -> ReducingLedger:
    block = 64
    ledger = ReducingLedger(len(rows), rows.shape[1], block * together, block, STATISTICS, np.empty(0))
    for first in range(0, len(rows), ledger.chunk):
        ledger.write(first, chunk_of(rows[first : first + ledger.chunk]))
    return ledger


@pytest.fixture(scope="module")
def rows() -> Any:
    rng = np.random.default_rng(3)
    made = np.stack(
        [
            rng.normal(1e8, 1.0, 1000),
            rng.normal(size=1000),
            np.exp(3 * rng.normal(size=1000)),
            rng.uniform(-2, 1, 1000),
            rng.normal(size=1000),
        ],
        axis=1,
    )
    made[::7, 3] = np.nan  # not reached
    made[0, 4] = 1e9  # ran away
    return made


def test_moments(rows: Any) -> None:
    """Mean and variance to rounding, of 1e8 + N(0, 1) too; a number that is not there does not count."""
    ledger = ledger_of(rows, 1)
    assert ledger.n.tolist() == np.isfinite(rows).sum(axis=0).tolist()
    np.testing.assert_allclose(ledger.statistic("mean"), np.nanmean(rows, axis=0), rtol=1e-13)
    np.testing.assert_allclose(ledger.statistic("var"), np.nanvar(rows, axis=0, ddof=1), rtol=1e-7)  # of 1e8: numpy's own rounding


def test_quantiles(rows: Any) -> None:
    """Quantiles, of 1e8 + N(0, 1) too, are off by 1/64 of their distance from the median of the first block, and by the gap to the next.

    One member that ran away moves none, be it the first.
    """
    found, origin = ledger_of(rows, 1).statistic("quantiles"), np.nanmedian(rows[:64], axis=0)
    for level, values in zip(LEVELS, found, strict=True):
        low, high = (np.nanquantile(rows, np.clip(level + d, 0, 1), axis=0) for d in (-0.002, 0.002))
        assert np.all(values >= low - np.abs(low - origin) / 64 - 1e-7)  # 1e-7: rounding of 1e8
        assert np.all(values <= high + np.abs(high - origin) / 64 + 1e-7)


@pytest.mark.parametrize("unit", [2.0**-80, 2.0**70, 2.0**990])
def test_units_change_nothing(rows: Any, unit: float) -> None:
    """Quantiles and bins of losses of 1e-24, of 1e21 or of 1e298 are those of numbers of 1, to rounding: the unit is a power of 2.

    So are moments, bit for bit; variances may be infinite.
    """
    one, other = ledger_of(rows[:, 1:], 1), ledger_of(rows[:, 1:] * unit, 1)
    for a, b in ((one.statistic("quantiles"), other.statistic("quantiles")), (one.edges(), other.edges())):
        np.testing.assert_allclose(b / unit, a, rtol=1e-12)
    assert np.array_equal(one.statistic("histogram"), other.statistic("histogram"))
    assert np.array_equal(one.statistic("mean") * unit, other.statistic("mean"))
    with np.errstate(over="ignore"):
        assert np.array_equal(one.statistic("var") * unit * unit, other.statistic("var"))


def test_sizes_from_least_to_largest() -> None:
    """Numbers of 1e-300 to 1e308 in any order: mean and variance are those of exact fractions, whatever came first."""
    rng = np.random.default_rng(5)
    numbers = rng.uniform(-1.7, 1.7, (300, 3)) * 10.0 ** rng.uniform(-300, [[-200, 150, 308]], (300, 3))
    numbers[:, 1:][np.abs(numbers[:, 1:]) < 1e100] *= 1e10
    ledger = ledger_of(numbers, 1)
    for column, mean, var in zip(numbers.T, ledger.statistic("mean"), ledger.statistic("var"), strict=True):
        exact = [Fraction(float(x)) for x in column]
        middle = sum(exact) / len(exact)
        square = sum((x - middle) ** 2 for x in exact) / (len(exact) - 1)
        assert mean == pytest.approx(float(middle), rel=1e-12)
        assert var == (np.inf if square > Fraction(sys.float_info.max) else pytest.approx(float(square), rel=1e-12))


def test_histogram(rows: Any) -> None:
    """Bins go from the least to the largest number, and have as many as numpy counts between their ends, of one that ran away too."""
    ledger = ledger_of(rows, 1)
    counts, edges = ledger.statistic("histogram"), ledger.edges()
    assert np.array_equal(edges[0], np.nanmin(rows, axis=0)) and np.array_equal(edges[-1], np.nanmax(rows, axis=0))
    assert np.array_equal(ledger.statistic("min"), edges[0]) and np.array_equal(ledger.statistic("max"), edges[-1])
    assert np.array_equal(counts.sum(axis=0), ledger.n) and np.all(np.diff(edges, axis=0) >= 0)
    for column in range(1, rows.shape[1]):  # 0: numbers of 1e8 are rounded beside its edges
        values = rows[np.isfinite(rows[:, column]), column]
        assert np.array_equal(counts[:, column], np.histogram(values, edges[:, column])[0])
    normal = counts[1:-1, 1]
    assert np.count_nonzero(normal) > 26 and normal.max() < 110  # 30 bins over 6.2 deviations: 1000 * .4 * 6.2 / 30 = 83


@pytest.mark.parametrize(("widest", "known"), [(100.0, 5), (700.0, 3)])
def test_laws_over_many_decades(widest: float, known: int) -> None:
    """Of exp(-k), k from 0 to 100, each quantile is right, though one is 1e19 times the median; of k up to 700 the high ones are NaN.

    A histogram counts all the same. Between two members are 1/4 and more of a quantile here, beside 1/64 of its distance from the median.
    """
    values = np.exp(-np.random.default_rng(2).uniform(0, widest, 4000))
    ledger = ledger_of(values[:, None], 1)
    found, origin = ledger.statistic("quantiles")[:, 0], np.median(values[:64])
    assert np.isfinite(found).tolist() == [k < known for k in range(5)]
    assert np.all(found[:known] >= values.min())
    for level, value in zip(LEVELS[:known], found[:known], strict=True):
        low, high = (np.quantile(values, level + d, method="inverted_cdf") for d in (-0.002, 0.002))
        assert low - abs(low - origin) / 64 <= value <= high + abs(high - origin) / 64
    counts, edges = ledger.statistic("histogram")[:, 0], ledger.edges()[:, 0]
    assert np.array_equal(counts, np.histogram(values, edges)[0])


def test_whole_numbers() -> None:
    """Numbers that are ends of bins themselves, on both sides of the median, count as numpy counts them."""
    values = np.random.default_rng(7).integers(-3, 4, 400) * 1.0
    ledger = ledger_of(values[:, None], 1)
    counts, edges = ledger.statistic("histogram")[:, 0], ledger.edges()[:, 0]
    assert {-2.0, 2.0} <= {*edges.tolist()} and np.array_equal(counts, np.histogram(values, edges)[0])


def test_equal_numbers() -> None:
    """A start that all members share: the last bin has them."""
    ledger = ledger_of(np.full((10, 1), 2.5), 1)
    assert np.all(ledger.statistic("quantiles") == 2.5)
    assert ledger.statistic("histogram")[:, 0].tolist() == [0] * 31 + [10] and np.all(ledger.edges() == 2.5)


def test_bits_do_not_depend_on_the_chunk(rows: Any) -> None:
    """As many blocks at once as there are threads to do them: the same sums."""
    one, many = ledger_of(rows, 1), ledger_of(rows, 5)
    for name in ("mean", "m2", "n", "least", "largest", "counts", "middle"):
        assert np.array_equal(getattr(one, name), getattr(many, name))


def test_buckets_rise() -> None:
    """A number lies between the edges of its bucket; the ends take what is beyond."""
    x = np.sort(np.concatenate([np.random.default_rng(1).normal(size=200), [0.0, -0.0, 1e-300, -1e-300, 1e300, -1e300, 1.0, -1.0]]))
    buckets, edges = buckets_of(x), bucket_edges()
    assert np.all(np.diff(buckets) >= 0) and buckets.min() == 0 and buckets.max() == 2 * HALF - 1
    inside = np.abs(x) < 1e10
    assert np.all(edges[buckets[inside]] <= x[inside]) and np.all(x[inside] <= edges[buckets[inside] + 1])


def test_nobody() -> None:
    """Without a member there is no number."""
    ledger = ReducingLedger(0, 2, 64, 64, STATISTICS, np.empty(0))
    assert np.isnan(ledger.statistic("mean")).all() and np.isnan(ledger.statistic("quantiles")).all()
