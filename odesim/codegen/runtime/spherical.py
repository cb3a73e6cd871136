"""Spherical Bessel functions of the first kind: sinc and what its derivatives are made of."""

from odesim.runtime.circular import cos, sinc
from odesim.runtime.elementary import inlined
from odesim.runtime.intrinsics import fma


@inlined
def spherical_jn(n: float, x: float) -> float:
    """The spherical Bessel function j_n(x) of a whole number n >= 0; j_0(x) is sin(x)/x."""
    if x * x < 2.0 * n + 3.0:
        return spherical_series(n, x)
    return spherical_descent(n, x) if abs(x) < n + 1.0 else spherical_recurrence(n, x)


@inlined
def spherical_series(n: float, x: float) -> float:
    """j_n(x) for x^2 < 2n + 3, where no term is above 1/2: x^n/(2n + 1)!! (1 - x^2/2/(2n + 3) + ...)."""
    half = -0.5 * x * x
    term, total, k = 1.0, 1.0, 1.0
    while abs(term) > 1e-17 * abs(total):
        term = term * half / (k * (2.0 * (n + k) + 1.0))
        total += term
        k += 1.0
    m = 1.0
    while m <= n:
        total = total * x / (2.0 * m + 1.0)
        m += 1.0
    return total


@inlined
def spherical_descent(n: float, x: float) -> float:
    """j_n(x) for abs(x) < n + 1: j_(m-1) = (2m + 1)/x j_m - j_(m+1) from far above n, scaled to j_0 or j_(-1)."""
    above, value, wanted, m = 0.0, 1.0, 0.0, n + 30.0
    while m >= 0.0:
        wanted = value if m == n else wanted
        above, value = value, fma((2.0 * m + 1.0) / x, value, -above)
        m -= 1.0
    first, before = sinc(x), cos(x) / x
    return wanted * (first / above if abs(above) > abs(value) else before / value)


@inlined
def spherical_recurrence(n: float, x: float) -> float:
    """j_n(x) for abs(x) >= n + 1: j_(m+1) = (2m + 1)/x j_m - j_(m-1), from j_(-1) = cos(x)/x."""
    before, value, m = cos(x) / x, sinc(x), 0.0
    while m < n:
        before, value = value, fma((2.0 * m + 1.0) / x, value, -before)
        m += 1.0
    return value
