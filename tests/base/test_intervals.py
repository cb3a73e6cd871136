"""Ranges hold every value of a function over a range of its argument, by mpmath at 50 digits."""

import mpmath
import numpy as np
import pytest
from numpy.random import default_rng

from odesim.base.intervals import FUNCTIONS, Range, add, integer_power, inverse, multiply, point, power

mpmath.mp.dps = 50
OWN = {"floor": mpmath.floor}
REACH = {"asin": 1.2, "acos": 1.2, "atanh": 1.2, "exp": 40.0, "erfc": 6.0, "sinh": 30.0, "cosh": 30.0}
BINARY = {"add": (add, lambda x, y: x + y), "multiply": (multiply, lambda x, y: x * y), "power": (power, lambda x, y: x**y)}


def ranges(count: int, reach: float, seed: int = 0) -> Range:
    """Ranges of many lengths: points, short ones and long ones."""
    rng = default_rng(seed)
    middle, length = rng.uniform(-reach, reach, count), reach * 10.0 ** rng.uniform(-17, 0, count)
    return Range(middle - length, middle + length)


def inside(r: Range, share: float) -> list[mpmath.mpf]:
    """A number inside each range."""
    return [mpmath.mpf(a) + (mpmath.mpf(b) - mpmath.mpf(a)) * share for a, b in zip(*r, strict=True)]


def assert_inside(found: Range, k: int, value: mpmath.mpf) -> None:
    assert not np.isnan(found.low[k]) and mpmath.mpf(found.low[k]) <= value <= mpmath.mpf(found.high[k])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_inside(name: str) -> None:
    """Also those next to extrema; where a value is not real there is no law."""
    a, f = ranges(50, REACH.get(name, 12.0)), OWN.get(name) or getattr(mpmath, name)
    with np.errstate(all="ignore"):
        found = FUNCTIONS[name](a)
    for share in (0.0, 0.3, 0.5, 1.0):
        for k, x in enumerate(inside(a, share)):
            try:
                value = f(x)
            except ValueError:
                continue
            if isinstance(value, mpmath.mpf) and mpmath.isfinite(value):
                assert_inside(found, k, value)


@pytest.mark.parametrize("name", BINARY)
def test_values_of_two_are_inside(name: str) -> None:
    own, f = BINARY[name]
    a, b = ranges(50, 5.0), ranges(50, 3.0, 1)
    a = Range(np.abs(a.low), np.abs(a.low) + a.high - a.low) if name == "power" else a
    with np.errstate(all="ignore"):
        found = own(a, b)
    for one in (0.0, 0.4, 1.0):
        for two in (0.0, 0.6, 1.0):
            for k, (x, y) in enumerate(zip(inside(a, one), inside(b, two), strict=True)):
                assert_inside(found, k, f(x, y))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, -1, -2, -3])
def test_whole_powers(n: int) -> None:
    a = ranges(50, 2.0)
    with np.errstate(all="ignore"):
        found = integer_power(a, n)
    for share in (0.0, 0.2, 0.7, 1.0):
        for k, x in enumerate(inside(a, share)):
            if x:
                assert_inside(found, k, x**n)


def test_ranges_are_narrow() -> None:
    """Those of points by less than 1e-13 of their values: the times of zeros have these digits."""
    x = point(np.linspace(0.1, 0.9, 50))
    with np.errstate(all="ignore"):
        for name, f in FUNCTIONS.items():
            r = f(x) if name not in ("acosh", "floor") else f(add(x, point(1.0)))
            assert np.all(r.high - r.low <= 1e-13 * np.maximum(np.abs(r.low), 0.1)), name


def test_nothing_is_defined_there() -> None:
    """A logarithm of negative numbers is empty, one of numbers around 0 is everything; 1/0 is empty, 1/(-1..1) everything."""
    with np.errstate(all="ignore"):
        log = FUNCTIONS["log"](Range(np.array([-2.0, -1.0, 1.0]), np.array([-1.0, 1.0, 2.0])))
        one = inverse(Range(np.array([0.0, -1.0, 0.0]), np.array([0.0, 1.0, 2.0])))
    assert np.isnan(log.low).tolist() == [True, False, False] and np.isinf(log.high).tolist() == [False, True, False]
    assert np.isnan(one.low).tolist() == [True, False, False] and np.isinf(one.high).tolist() == [False, True, True]


def test_waves_of_large_arguments() -> None:
    """A maximum within a rounding of an end belongs to the range: pi k is rounded to the nearest float, on either side of it."""
    k = default_rng(3).integers(10**11, 10**13, 400)
    ends = np.array([float(mpmath.pi * int(n)) for n in k])
    for a in (Range(ends, np.nextafter(ends, np.inf)), Range(np.nextafter(ends, 0), ends)):
        found, exact = FUNCTIONS["cos"](a), [mpmath.pi * int(n) for n in k]
        for i, x in enumerate(exact):
            if mpmath.mpf(a.low[i]) <= x <= mpmath.mpf(a.high[i]):
                assert_inside(found, i, mpmath.cos(x))
