"""The sums of odesim.runtime.sums in whole-array operations: the same order, so the same bits, without numba."""

from math import prod
from typing import Any

from odesim.base.arrays import Array, array_namespace

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
