"""Logarithms and powers of the step control."""

import numba
import numpy as np
import pytest

from odesim.stepper import powers as arithmetic
from odesim.stepper.control import LOG2_LEAST_OLD

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
