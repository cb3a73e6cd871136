"""Modified Bessel functions of the first kind, of whole order, and their ratios.

Power series in two parts each, and for large x the asymptotic series. docs/functions.md has the errors.
"""

from math import nan, sqrt

from odesim.runtime.elementary import LN2, LN2_TAIL, clamp, exp_of_sum, inlined, with_sign
from odesim.runtime.intrinsics import floor, fma, select

TWO_PI = 6.283185307179586
MOST = 40.0
"""The largest order: with the next ones the power series overflows."""


@inlined
def first_large(n: float) -> float:
    """The x from which the asymptotic series of order n is used."""
    return 20.0 + 0.5 * n * n


@inlined
def power_series(n: float, x: float) -> float:
    """I_n(x) n!/(x/2)^n, the sum of (x/2)^2k n!/(k! (k + n)!), in two parts each, rounded once."""
    z = 0.25 * x * x
    z_low = 0.25 * fma(x, x, -x * x)
    term, term_low, total, low = 1.0, 0.0, 1.0, 0.0
    k = 1.0
    while term > 1e-18 * total:
        p = term * z
        p_low = fma(term, z, -p) + fma(term, z_low, term_low * z)
        d = k * (k + n)
        term = p / d
        term_low = (fma(-term, d, p) + p_low) / d
        before = total
        total = before + term
        back = total - before
        low += (before - (total - back)) + (term - back) + term_low
        k += 1.0
    return total + low


@inlined
def asymptotic_series(n: float, x: float) -> float:
    """I_n(x) sqrt(2 pi x)/e^x: 1 - (4n^2 - 1)/(8 x) + ..., rounded once."""
    four, term, total, low, k = 4.0 * n * n, 1.0, 1.0, 0.0, 1.0
    while abs(term) > 1e-18 and k < 100.0:
        odd = 2.0 * k - 1.0
        term = -term * (four - odd * odd) / (8.0 * k * x)
        before = total
        total = before + term
        back = total - before
        low += (before - (total - back)) + (term - back)
        k += 1.0
    return total + low


@inlined
def besseli(n: float, x: float) -> float:
    """The modified Bessel function I_n(x) of whole order; I_(-n) is I_n."""
    n, a = abs(n), abs(x)
    if a < first_large(n):
        y = power_series(n, a)
        m = n
        while m > 0.0:
            y = y * (0.5 * a / m)
            m -= 1.0
    else:
        c = clamp(a, 20.0, 730.0)
        b = c - 8.0 * LN2
        e = exp_of_sum(b, ((c - b) - 8.0 * LN2) - 8.0 * LN2_TAIL)  # e^c/256: it overflows later
        y = e * (256.0 * asymptotic_series(n, a) / sqrt(TWO_PI * c))
    y = select((x < 0.0) & (floor(0.5 * n) != 0.5 * n), -y, y)
    return select(n <= MOST, y, nan)


@inlined
def besseli_ratio(n: float, x: float) -> float:
    """The quotient I_(n+1)(x)/I_n(x) of whole order n >= 0; it is finite where both overflow."""
    a = abs(x)
    if a < first_large(n + 1.0):
        y = a / (2.0 * (n + 1.0)) * (power_series(n + 1.0, a) / power_series(n, a))
    else:
        y = asymptotic_series(n + 1.0, a) / asymptotic_series(n, a)
    return select(n < MOST, with_sign(y, x), nan)
