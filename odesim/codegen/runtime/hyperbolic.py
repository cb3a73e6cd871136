"""Hyperbolic functions of float64 and their inverses, without branches: logarithms and exponentials of sums of two parts.

docs/functions.md has the errors.
"""

from math import inf, nan, sqrt

from odesim.runtime.elementary import (
    LN2,
    LN2_TAIL,
    ONE,
    clamp,
    exp_of_sum,
    exponent_and_mantissa,
    half_expm1,
    inlined,
    log_of_parts,
    with_sign,
)
from odesim.runtime.intrinsics import bits, fma, from_bits, select

SMALL = 2.0**-27  # below it asinh(x), atanh(x) and sinh(x) are x
LAST = 1.0 - 2.0**-53  # before 1
LARGE = 2.0**30  # above it x^2 + 1 and x^2 - 1 are x^2


@inlined
def log_of_sum(u: float, low: float) -> float:
    """The logarithm of u + low, for normal u and abs(low) far below u; accurate near u = 1."""
    k, m = exponent_and_mantissa(u)
    tail = low * from_bits(ONE + bits(m) - bits(u))  # low 2^-k
    f = m - 1.0
    return log_of_parts(k, f, fma(-tail, f, tail))


@inlined
def log_of_sum_with_root(x: float, sign: float) -> float:
    """The logarithm of x + sqrt(x^2 + sign), for 0 <= x < inf, sign 1, and for x >= 1, sign -1."""
    a = clamp(x, 0.0, LARGE)
    p = a * a
    w = p + sign
    back = w - p
    w_low = ((p - (w - back)) + (sign - back)) + fma(a, a, -p)
    h = sqrt(w)
    h_low = select(w > 0.0, (fma(-h, h, w) + w_low) / (2.0 * h), 0.0)
    u = a + h
    back = u - a
    near = log_of_sum(u, ((a - (u - back)) + (h - back)) + h_low)
    k, m = exponent_and_mantissa(x)
    return select(x < LARGE, near, log_of_parts(k + 1.0, m - 1.0, 0.0))  # log(2 x)


@inlined
def asinh(x: float) -> float:
    """The inverse hyperbolic sine of x."""
    a = abs(x)
    y = select(a < SMALL, a, log_of_sum_with_root(a, 1.0))
    return with_sign(select(a < inf, y, a), x)


@inlined
def acosh(x: float) -> float:
    """The inverse hyperbolic cosine of x; NaN for x < 1."""
    y = select(x < inf, log_of_sum_with_root(x, -1.0), x)
    return select(x >= 1.0, y, nan)


@inlined
def atanh(x: float) -> float:
    """The inverse hyperbolic tangent of x; NaN for abs(x) > 1."""
    a = abs(x)
    b = clamp(a, 0.0, LAST)
    d = 1.0 - b
    d_low = (1.0 - d) - b
    n = 1.0 + b
    n_low = b - (n - 1.0)
    u = n / d
    u_low = (fma(-u, d, n) + fma(-u, d_low, n_low)) / d
    y = select(a < SMALL, a, 0.5 * log_of_sum(u, u_low))
    return with_sign(select(a < 1.0, y, select(a == 1.0, inf, nan)), x)


@inlined
def half_exp(a: float) -> float:
    """The number e^a/2, for a in [1, 720]: it overflows log(2) later than e^a."""
    b = a - LN2
    return exp_of_sum(b, ((a - b) - LN2) - LN2_TAIL)


@inlined
def exponential_parts(a: float) -> tuple[float, float, float, float]:
    """e = (e^a - 1)/2 and q = e/(2 e + 1), each as a sum of two parts, for a in [0, 40].

    Then sinh(a) = e + q and cosh(a) = e + (1 - q).
    """
    e, e_low = half_expm1(a)
    d = 2.0 * e + 1.0
    d_low = (1.0 - d) + 2.0 * e + 2.0 * e_low
    q = e / d
    return e, e_low, q, (fma(-q, d, e) + fma(-q, d_low, e_low)) / d


@inlined
def sinh(x: float) -> float:
    """The hyperbolic sine of x."""
    a = abs(x)
    e, e_low, q, q_low = exponential_parts(clamp(a, 0.0, 40.0))
    y = e + q
    y = y + (((e - y) + q) + (e_low + q_low))
    y = select(a < 20.0, y, half_exp(clamp(a, 1.0, 720.0)))
    return with_sign(select(a < SMALL, a, y), x)


@inlined
def cosh(x: float) -> float:
    """The hyperbolic cosine of x."""
    a = abs(x)
    e, e_low, q, q_low = exponential_parts(clamp(a, 0.0, 40.0))
    c = 1.0 - q
    y = e + c
    back = y - e
    rest = (e - (y - back)) + (c - back)
    y = y + (rest + (((1.0 - c) - q) + (e_low - q_low)))
    return select(a < 20.0, y, half_exp(clamp(a, 1.0, 720.0)))
