"""Quantiles of blocks are those of numpy where all fit in memory, and have the right rank where they do not."""

import numpy as np
import pytest

from odesim.plot.members import quantiles

LEVELS = (0.1, 0.5, 0.9)
SHAPES = {
    "uniform": lambda r, n: r.random((n, 3, 2)),
    "far tails": lambda r, n: r.standard_cauchy((n, 3, 2)),
    "with NaN": lambda r, n: np.where(r.random((n, 3, 2)) < 0.3, np.nan, r.normal(size=(n, 3, 2))),
    "one value": lambda r, n: np.full((n, 3, 2), 1.5),
    "nothing": lambda r, n: np.full((n, 3, 2), np.nan),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_all_in_memory(shape):
    """Blocks of any size: the quantiles of numpy, bit for bit."""
    values = SHAPES[shape](np.random.default_rng(1), 500)
    with np.errstate(all="ignore"):
        want = np.full((3, 3, 2), np.nan) if np.isnan(values).all() else np.nanquantile(values, LEVELS, axis=0)
    np.testing.assert_array_equal(quantiles(lambda: np.array_split(values, 7), 500, LEVELS, 1000), want)


@pytest.mark.parametrize("shape", SHAPES)
def test_more_than_memory_holds(shape):
    """40 000 members of which 5 000 fit, in the order of their values: the rank is right to 1.5e-4.

    A bin has 0.06 / 256 = 2.3e-4 of the members, among which a place is found to some sqrt(9) of 40 000. The next bin would be off by all
    of it, and the quantiles of 5 000 random members alone by 7e-3.
    """
    values = np.sort(SHAPES[shape](np.random.default_rng(2), 40_000), axis=0)
    found = quantiles(lambda: np.array_split(values, 9), 40_000, LEVELS, 5000)
    finite = np.isfinite(values).sum(axis=0)
    if shape in ("one value", "nothing"):
        np.testing.assert_array_equal(found, np.broadcast_to(values[0], (3, 3, 2)))
        return
    for level, marks in zip(LEVELS, found, strict=True):
        np.testing.assert_allclose((values <= marks).sum(axis=0) / finite, level, rtol=0, atol=1.5e-4)
