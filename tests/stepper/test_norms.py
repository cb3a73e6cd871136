"""Error norms add in the order of all other sums."""

import ctypes
from typing import Any

import numba
import numpy as np
import pytest

from odesim.runtime import sums as reduce
from odesim.runtime.intrinsics import ints
from odesim.stepper import powers as arithmetic
from odesim.stepper.control import LOG2_LEAST_OLD
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


# Logarithms and powers of the step control.

compiled = numba.njit(error_model="numpy", fastmath=False)
log2, exp2 = compiled(arithmetic.log2.py_func), compiled(arithmetic.exp2.py_func)

# both ends of the polynomials' ranges, and numbers as an error norm and a step have them
NUMBERS = (1e-300, 1e-10, 1e-4, 0.25, np.nextafter(1.0, 0.0), 1.0, 1.0 + 1e-9, 1.4142135, 1.5, np.nextafter(2.0, 0.0), 7.0, 1e10, 1e300)


@pytest.mark.parametrize("x", NUMBERS)
def test_logarithm_and_power(x):
    """log2 to 1.3e-5, 2^x to 1e-7, and x^e by both: an error of the logarithm counts e log(2) times."""
    assert log2(x) == pytest.approx(np.log2(x), abs=1.3e-5)
    for exponent in (-0.2, 0.04, 0.5):
        assert exp2(exponent * log2(x)) == pytest.approx(x**exponent, rel=1e-5 * abs(exponent) + 1e-7)
    assert exp2(np.log2(x)) == pytest.approx(x, rel=1e-7)


def test_extremes():
    """The power is held within 2^-1000 and 2^1000, at half a step of its polynomial it is as good as elsewhere."""
    assert (exp2(2000.0), exp2(-2000.0)) == (pytest.approx(2.0**1000, rel=1e-6), pytest.approx(2.0**-1000, rel=1e-6))
    for half in (-2.5, -0.5, 0.5, 1.5):
        assert exp2(half) == pytest.approx(2.0**half, rel=1e-7)
    assert pytest.approx(np.log2(1e-4), rel=1e-15) == LOG2_LEAST_OLD
