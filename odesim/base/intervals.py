"""Interval arithmetic on arrays: ranges (low, high) that hold every value of an expression over a range of its argument.

Each result is rounded outward by more than the error of the function behind it. A range of two NaN is empty: nothing is defined there.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from odesim.base.arrays import Array

ROUNDINGS = 4
"""Errors of products, sines and cosines in units in the last place."""
WIDE = 64
"""Errors of other functions, scipy's among them."""
MOST_PRODUCTS = 64
"""From this power on a^n is exp(n log a)."""
FAR = 1e300
"""Units in the last place of larger numbers, and of infinity, are those of this one."""
HUGE = 1e15
"""From here on a sine is anything between -1 and 1: its argument is not known to a part of the period."""


class Range(NamedTuple):
    """The numbers from low to high, elementwise; infinite ends are allowed."""

    low: Array
    high: Array


def point(value: Any) -> Range:
    """The range of numbers that are known exactly."""
    v = np.asarray(value, float)
    return Range(v, v)


def outward(low: Array, high: Array, *operands: Range, roundings: int = 1) -> Range:
    """The range from low to high, wider by so many roundings; NaN ends are infinite, unless an operand is empty."""
    empty = np.zeros(np.shape(low), bool)
    for r in operands:
        empty = empty | np.isnan(r.low)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    if roundings > 1:
        low, high = (end + sign * roundings * np.spacing(np.minimum(np.abs(end), FAR)) for sign, end in ((-1, low), (1, high)))
    low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    return Range(np.where(empty, np.nan, low), np.where(empty, np.nan, high))


def keep_empty(operand: Range, low: Array, high: Array) -> Range:
    """The range from low to high, empty where the operand is."""
    empty = np.isnan(operand.low)
    return Range(np.where(empty, np.nan, low), np.where(empty, np.nan, high))


def add(a: Range, b: Range) -> Range:
    """a + b."""
    return outward(a.low + b.low, a.high + b.high, a, b)


def multiply(a: Range, b: Range) -> Range:
    """Product of two ranges; 0 times infinity counts as 0, the limit of the products of the numbers inside."""
    products = [np.where((x == 0) | (y == 0), 0.0, x * y) for x in a for y in b]
    return outward(reduce(np.minimum, products), reduce(np.maximum, products), a, b)


def inverse(a: Range) -> Range:
    """1/a: everything where 0 is inside."""
    inside, zero = (a.low < 0) & (a.high > 0), (a.low == 0) & (a.high == 0)
    low = np.where(inside, -np.inf, np.where(a.high == 0, -np.inf, 1 / a.high))
    high = np.where(inside, np.inf, np.where(a.low == 0, np.inf, 1 / a.low))
    empty = Range(np.where(zero, np.nan, a.low), a.high)
    return outward(low, high, empty)


def integer_power(a: Range, n: int) -> Range:
    """a^n for a whole number n."""
    if n < 0:
        return inverse(integer_power(a, -n))
    ends = a.low**n, a.high**n
    if n % 2:
        return outward(*ends, a, roundings=ROUNDINGS)
    low = np.where((a.low <= 0) & (a.high >= 0), 0.0, np.minimum(*ends))
    wide = outward(low, np.maximum(*ends), a, roundings=ROUNDINGS)
    return Range(np.maximum(wide.low, 0.0), wide.high)


def power(a: Range, b: Range) -> Range:
    """a^b, where a is positive; whole numbers b by products."""
    whole = (b.low == b.high) & (b.low == np.round(b.low)) & (np.abs(b.low) < MOST_PRODUCTS)
    result = FUNCTIONS["exp"](multiply(b, FUNCTIONS["log"](a)))
    for n in np.unique(b.low[whole]):
        exact, here = integer_power(a, int(n)), whole & (b.low == n)
        result = Range(*(np.where(here, new, old) for new, old in zip(exact, result, strict=True)))
    return result


def rising(f: Callable[[Any], Any], least: float = -np.inf, most: float = np.inf, floor: float = -np.inf) -> Callable[[Range], Range]:
    """The ranges of an increasing function that is defined from least to most and never below floor: infinite over an end of these."""

    def ranges(a: Range) -> Range:
        outside = (a.high < least) | (a.low > most)
        partly = (a.low < least) | (a.high > most)
        inside = Range(np.where(outside, np.nan, a.low), a.high)
        low, high = (np.where(partly, end, f(np.clip(x, least, most))) for x, end in zip(a, (-np.inf, np.inf), strict=True))
        wide = outward(low, high, inside, roundings=WIDE)
        return Range(np.maximum(wide.low, floor), wide.high)

    return ranges


def falling(f: Callable[[Any], Any], least: float = -np.inf, most: float = np.inf) -> Callable[[Range], Range]:
    """The ranges of a decreasing function."""
    mirrored = rising(lambda x: -f(x), least, most)

    def ranges(a: Range) -> Range:
        low, high = mirrored(a)
        return Range(-high, -low)

    return ranges


def cosine(a: Range, shift: float = 0.0) -> Range:
    """cos(a - pi shift), shift 0 or 1/2."""
    near = ROUNDINGS * np.spacing(np.maximum(np.abs(a.low), np.abs(a.high)))
    low, high = (a.low - near) / np.pi - shift, (a.high + near) / np.pi - shift  # cos(pi x) has its ends at whole numbers
    far = ~((np.abs(a.low) < HUGE) & (np.abs(a.high) < HUGE))
    first, last = np.ceil(low), np.floor(high)
    f = np.sin if shift else np.cos
    ends = f(np.where(far, 0.0, a.low)), f(np.where(far, 0.0, a.high))
    many = far | (last - first >= 1)
    top = many | ((last == first) & (first % 2 == 0))
    bottom = many | ((last == first) & (first % 2 == 1))
    wide = outward(np.minimum(*ends), np.maximum(*ends), a, roundings=ROUNDINGS)
    return keep_empty(a, np.where(bottom, -1.0, np.maximum(wide.low, -1.0)), np.where(top, 1.0, np.minimum(wide.high, 1.0)))


def whole_part(a: Range) -> Range:
    """floor(a)."""
    return Range(np.floor(a.low), np.floor(a.high))


def hyperbolic_cosine(a: Range) -> Range:
    """cosh(a)."""
    ends = np.abs(a.low), np.abs(a.high)
    least = np.where((a.low <= 0) & (a.high >= 0), 0.0, np.minimum(*ends))
    return rising(np.cosh, floor=1.0)(keep_empty(a, least, np.maximum(*ends)))


def tangent(a: Range) -> Range:
    """tan(a), as sin(a)/cos(a) where a pole may be inside and by its ends elsewhere."""
    safe = cosine(a)
    pole = ~((safe.low > 0) | (safe.high < 0))
    wide = rising(np.tan)(a)
    return keep_empty(a, np.where(pole, -np.inf, wide.low), np.where(pole, np.inf, wide.high))


FUNCTIONS: dict[str, Callable[[Range], Range]] = {
    "exp": rising(np.exp, floor=0.0),
    "log": rising(np.log, 0.0),
    "sin": lambda a: cosine(a, 0.5),
    "cos": cosine,
    "tan": tangent,
    "tanh": rising(np.tanh),
    "sinh": rising(np.sinh),
    "cosh": hyperbolic_cosine,
    "asin": rising(np.arcsin, -1.0, 1.0),
    "acos": falling(np.arccos, -1.0, 1.0),
    "atan": rising(np.arctan),
    "asinh": rising(np.arcsinh),
    "acosh": rising(np.arccosh, 1.0),
    "atanh": rising(np.arctanh, -1.0, 1.0),
    "erf": rising(lambda x: import_module("scipy.special").erf(x)),  # imported once it is needed
    "erfc": falling(lambda x: import_module("scipy.special").erfc(x)),
    "floor": whole_part,
}
"""The functions of one argument whose ranges are known, by their names in sympy."""


def number(e: Any) -> Range:
    """The range of a number of sympy: one float, or its neighbours where rounding is needed."""
    v = float(e)
    exact = e.is_Float or (e.is_Rational and Fraction(int(e.p), int(e.q)) == Fraction(v))
    return point(v) if exact else outward(*point(v))


def total(a: Range) -> Range:
    """The sum over the last axis, which is kept with length 1."""
    low, high = (end.sum(axis=-1, keepdims=True) for end in a)
    size = np.abs(np.nan_to_num(np.stack(a))).max(axis=0).sum(axis=-1, keepdims=True)
    error = a.low.shape[-1] * np.finfo(float).eps * size
    return outward(low - error, high + error, Range(low, high))
