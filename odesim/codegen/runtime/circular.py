"""Sine and cosine of float64 without branches, and what is made of them.

Accurate for abs(x) < 2^50 = 1.1e15, where neighbouring numbers are a quarter apart; NaN beyond. docs/functions.md has the errors.
The coefficients are weighted least squares polynomials: tests/codegen/runtime/test_coefficients.py makes them.
"""

from math import nan

from odesim.runtime.elementary import inlined
from odesim.runtime.intrinsics import bits, fma, from_bits, polynomial, select

TWO_OVER_PI = 0.6366197723675814
HALF_PI, HALF_PI_2, HALF_PI_3 = 1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33  # their sum is pi/2 to 2^-162
MAGIC = 1.5 * 2.0**52  # adding it rounds to an integer n and leaves n in the low bits
LARGEST = 2.0**50
# (sin(r) - r)/r^3 in r^2, abs(r) <= pi/4
SIN = (
    -0.16666666666666666,
    0.008333333333333323,
    -0.00019841269841254925,
    2.755731921413442e-06,
    -2.5052104900148668e-08,
    1.6058365470283187e-10,
    -7.578652127702118e-13,
)
# (cos(r) - 1 + r^2/2)/r^4 in r^2
COS = (
    0.041666666666666664,
    -0.0013888888888888874,
    2.4801587301571093e-05,
    -2.7557319215225667e-07,
    2.0876754336343294e-09,
    -1.1470290239349786e-11,
    4.7379854598477943e-14,
)


@inlined
def reduced(x: float) -> tuple[float, float, int]:
    """x - n pi/2 as a sum of two parts, in [-pi/4, pi/4], and bits with n in the low ones. By Cody and Waite, in three parts of pi/2."""
    z = fma(x, TWO_OVER_PI, MAGIC)
    n = z - MAGIC
    first = fma(-n, HALF_PI, x)  # exact
    p = n * HALF_PI_2
    high = first - p
    back = high - first
    low = (first - (high - back)) - (p + back)
    low = fma(-n, HALF_PI_3, low - fma(n, HALF_PI_2, -p))
    r = high + low
    return r, (high - r) + low, bits(z)


@inlined
def sine_part(r: float, low: float) -> float:
    """The sine of r + low, for abs(r) <= pi/4."""
    z = r * r
    return r + fma(z * r, polynomial(z, SIN), fma(-0.5 * z, low, low))


@inlined
def cosine_part(r: float, low: float) -> float:
    """The cosine of r + low, for abs(r) <= pi/4."""
    z = r * r
    half = 0.5 * z
    y = 1.0 - half
    return y + (((1.0 - y) - half) + (fma(z * z, polynomial(z, COS), -(r * low)) - 0.5 * fma(r, r, -z)))


@inlined
def quarter(s: float, c: float, n: int) -> float:
    """The sine n quarters of a turn on: s, c, -s, -c."""
    y = select((n & 1) == 0, s, c)
    return from_bits(bits(y) ^ ((n & 2) << 62))


@inlined
def sin(x: float) -> float:
    """The sine of x."""
    r, low, n = reduced(x)
    y = select(x == 0.0, x, quarter(sine_part(r, low), cosine_part(r, low), n))
    return select(abs(x) < LARGEST, y, nan)


@inlined
def cos(x: float) -> float:
    """The cosine of x."""
    r, low, n = reduced(x)
    return select(abs(x) < LARGEST, quarter(sine_part(r, low), cosine_part(r, low), n + 1), nan)


@inlined
def tan(x: float) -> float:
    """The tangent of x."""
    r, low, n = reduced(x)
    s, c = sine_part(r, low), cosine_part(r, low)
    odd = (n & 1) == 1
    y = select(odd, c, s) / select(odd, -s, c)
    return select(abs(x) < LARGEST, select(x == 0.0, x, y), nan)


@inlined
def sinc(x: float) -> float:
    """The quotient sin(x)/x, and 1 at 0."""
    return select(x == 0.0, 1.0, sin(x) / x)
