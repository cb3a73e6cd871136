"""Error norms add in the order of all other sums."""

import ctypes
from typing import Any

import numba
import numpy as np
import pytest

from odesim.runtime import sums as reduce
from odesim.runtime.intrinsics import ints
from odesim.stepper.drive import driver_text
from odesim.stepper.table import RUN, new_table
from odesim.targets.cache import load_module

COMBINE = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 9)


@pytest.fixture(scope="module")
def sums() -> tuple[Any, Any]:
    """The sums of the printed driver, of parts (tree) and of squares, for Python."""
    driver = load_module(driver_text(), "norms")
    tree_sum, squares = driver.tree_sum, driver.squares

    @numba.njit(error_model="numpy")
    def tree(address: int, count: int) -> float:
        return tree_sum(ints(address), np.int64(0), count)

    @numba.njit(error_model="numpy")
    def total(address: int, zero: int) -> float:
        return squares(ints(address), zero, np.int64(0), zero, zero, 1.0, 0.0)

    return tree, total


@pytest.mark.parametrize("count", [1, 2, 3, 5, 31, 32, 33, 64, 65, 96, 100, 1000, 1024, 1025, 3000])
def test_one_order_of_addition(count, sums):
    """Trees and sums of squares of an error norm have the bits of odesim.runtime.sums."""
    tree, total = sums
    values = np.random.default_rng(count).normal(size=count) * 10.0 ** np.arange(count) ** 0.1
    zeros, sums = np.zeros(count), values.copy()
    at = new_table(RUN, SUMS=sums.ctypes.data, N=count, WIDTH=8)
    assert tree(at.ctypes.data, count) == reduce.tree_sum(values.copy(), count)
    block, rest = np.zeros(1024), np.zeros(64)

    @COMBINE
    def combine(table: int, y: int, k: int, order: int, coef: int, ns: int, lo: int, hi: int, target: int) -> None:
        block[: hi - lo] = values[lo:hi]

    at["COMBINE"], at["BLOCK"] = int(ctypes.cast(combine, ctypes.c_void_p).value or 0), block.ctypes.data
    at["SUMS"] = rest.ctypes.data
    assert total(at.ctypes.data, zeros.ctypes.data) == reduce.blocked_sum(values**2)
