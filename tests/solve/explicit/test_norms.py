"""Error norms add in the order of all other sums."""

import numba
import numpy as np
import pytest

from odesim.runtime.memory import ints
from odesim.runtime.sums import block_sum, tree_sum
from odesim.solve.explicit import norms, places


@numba.njit(error_model="numpy")
def tree(address: int, count: int) -> float:
    return norms.tree_sum(ints(address), np.int64(0), count)


@numba.njit(error_model="numpy")
def block(address: int, e: int, zero: int, count: int) -> float:
    return norms.block_sum(ints(address), e, zero, zero, np.int64(0), count, 1.0, 0.0)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 31, 32, 33, 64, 65, 96, 100, 1000, 1024])
def test_one_order_of_addition(count):
    """Blocks and trees of an error norm have the bits of odesim.runtime.sums."""
    values = np.random.default_rng(count).normal(size=count) * 10.0 ** np.arange(count) ** 0.1
    zeros, sums, at = np.zeros(count), values.copy(), np.zeros(places.AT_SIZE, np.int64)
    at[places.SUMS], at[places.N], at[places.WIDTH] = sums.ctypes.data, count, 8
    assert tree(at.ctypes.data, count) == tree_sum(values.copy(), count)
    room = np.zeros(32)
    at[places.SUMS] = room.ctypes.data
    assert block(at.ctypes.data, values.ctypes.data, zeros.ctypes.data, count) == block_sum(values**2, count)
