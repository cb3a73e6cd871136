"""Sums in one fixed order: written out in plain Python, by numba and by numpy, the same bits."""

from math import fsum, inf, log2, nan, prod
from typing import Any

import numpy as np
import pytest

from odesim.base.arrays import Array, array_namespace
from odesim.runtime import sums

# The sums of odesim.runtime.sums in whole-array operations: the same order, so the same bits, without numba.

BLOCK, SEQUENCE, LANES = 1024, 64, 32


def sum_blocked_numpy(x: Any, axis: int = -1) -> Array:
    """Sum of x (*lead, n, *trail) along one axis, in float64: (*lead, *trail)."""
    xp = array_namespace(x)
    x = xp.asarray(x)
    axis %= x.ndim
    lead, n, trail = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    cube = x.reshape(prod(lead), n, prod(trail))
    blocks = n // BLOCK
    whole = blocks * BLOCK
    p = add_blocks(cube[:, :whole].reshape(prod(lead), blocks, BLOCK, prod(trail)))
    if whole < n or n == 0:
        p = xp.concatenate([p, add_blocks(cube[:, None, whole:])], axis=1)
    while p.shape[1] > 1:
        h = (p.shape[1] + 1) // 2
        rest = p.shape[1] - h
        p = xp.concatenate([p[:, :rest] + p[:, h:], p[:, rest:h]], axis=1)
    return p[:, 0].reshape((*lead, *trail))


def max_numpy(x: Any, axis: int = -1) -> Array:
    """The largest of x (*lead, n, *trail) along one axis, in float64; NaN if there is one, and -0 becomes 0: (*lead, *trail)."""
    xp = array_namespace(x)
    return xp.max(xp.asarray(x).astype(xp.float64, copy=False), axis=axis, initial=-xp.inf) + 0.0


def add_blocks(x: Array) -> Array:
    """Sum of each block of x (A, blocks, n, B), n <= 1024: (A, blocks, B)."""
    n = x.shape[2]
    if n <= SEQUENCE:
        return add_in_sequence(x)
    whole = n // LANES * LANES
    rows = x[:, :, :whole].reshape(*x.shape[:2], n // LANES, LANES, x.shape[3])
    total = add_in_sequence(rows)
    total[:, :, : n - whole] += x[:, :, whole:]
    while total.shape[2] > 1:
        half = total.shape[2] // 2
        total = total[:, :, :half] + total[:, :, half:]
    return total[:, :, 0]


def add_in_sequence(x: Array) -> Array:
    """Sum of x (A, blocks, n, ...) along n, one after another from 0, in float64: (A, blocks, ...)."""
    total = array_namespace(x).zeros((*x.shape[:2], *x.shape[3:]))
    for k in range(x.shape[2]):
        total += x[:, :, k]
    return total


# around every change of rule: 64 (sequence), multiples of 32 (a row), 1024 (a block), odd and even numbers of blocks
LENGTHS = (0, 1, 2, 33, 63, 64, 65, 95, 96, 97, 1000, 1023, 1024, 1025, 1088, 1089, 2048, 3000, 5190, 6144, 13313, 40_000)


def numbers(*shape):
    """Both signs and ten decades, so that almost any other order gives other bits."""
    rng = np.random.default_rng(3)
    return rng.standard_normal(shape) * 10.0 ** rng.uniform(-5, 5, shape)


def written_out(x):
    """Sum of a list of floats in the documented order, one addition a line."""
    p = []
    for block in (x[k : k + 1024] for k in range(0, max(len(x), 1), 1024)):
        lanes = [0.0] * (1 if len(block) <= 64 else 32)
        for k, value in enumerate(block):
            lanes[k % len(lanes)] += value
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [lanes[k] + lanes[k + half] for k in range(half)]
        p.append(lanes[0])
    while len(p) > 1:
        h = (len(p) + 1) // 2
        p = [p[k] + p[k + h] if k + h < len(p) else p[k] for k in range(h)]
    return p[0]


@pytest.mark.first(7)
@pytest.mark.parametrize("n", LENGTHS)
def test_one_order(n):
    """numba and numpy give the bits of the written-out sum."""
    x = numbers(n)
    expected = np.float64(written_out(x.tolist())).tobytes()
    assert np.float64(sums.blocked_sum(x)).tobytes() == expected
    assert sum_blocked_numpy(x).tobytes() == expected


@pytest.mark.parametrize("n", LENGTHS)
def test_error(n):
    """Far from the recursive sum's n roundings: at most 64 additions in a block and log2 of the blocks between them."""
    x = numbers(n)
    depth = 64 + log2(n // 1024 + 2)
    assert abs(sums.blocked_sum(x) - fsum(x)) <= depth * 2.0**-53 * fsum(abs(x))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
@pytest.mark.parametrize("n", [5, 70, 2100])
def test_axis(axis, n):
    """A sum along one axis of many is the sum of each line, bit for bit; so is the maximum."""
    shape = [2, 3, 4]
    shape[axis] = n
    x = numbers(*shape)
    lines = np.moveaxis(x, axis, -1)
    rest = lines.shape[:-1]
    lines_sums = np.array([sums.blocked_sum(np.ascontiguousarray(lines[k])) for k in np.ndindex(rest)]).reshape(rest)
    assert sum_blocked_numpy(x, axis).tobytes() == lines_sums.tobytes()
    np.testing.assert_array_equal(max_numpy(x, axis), lines.max(-1))


def test_single_precision_is_added_in_double():
    """float32 numbers are widened first: 2^24 + 1 is not lost."""
    x = np.array([2.0**24, 1.0, 1.0], dtype=np.float32)
    assert sum_blocked_numpy(x) == 2.0**24 + 2
    assert sum_blocked_numpy(x).dtype == np.float64


@pytest.mark.parametrize("n", [n for n in LENGTHS if n <= 1024])
def test_max(n):
    """The largest, -inf of none; a single NaN anywhere wins."""
    x = numbers(n)
    expected = max(x.tolist(), default=-inf)
    assert sums.block_max(x, n) == sums.tree_max(x, n) == max_numpy(x) == expected
    for k in range(0, n, max(1, n // 40)):
        broken = x.copy()
        broken[k] = nan
        found = np.array([sums.block_max(broken, n), sums.tree_max(broken, n), sums.block_sum(broken, n), max_numpy(broken)])
        assert np.isnan(found).all()


def test_max_has_one_zero():
    """The maximum of zeros is +0, whatever their signs: no order shows."""
    for x in (np.array([-0.0, 0.0]), np.array([0.0, -0.0]), np.array([-0.0])):
        found = np.array([sums.block_max(x, x.size), sums.tree_max(x, x.size), max_numpy(x)])
        assert not np.signbit(found).any()


def test_only_the_first_n_count():
    """What lies behind n in the scratch array is not read."""
    x = np.full(1024, nan)
    x[:100] = 1.0
    assert sums.block_sum(x, 100) == 100
    assert sums.block_max(x, 100) == 1
