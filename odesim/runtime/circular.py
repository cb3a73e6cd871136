"""Sine, cosine, tangent and their inverses for float64, without branches.

Accurate for abs(x) < 2^50 = 1.1e15, where neighbouring numbers are a quarter apart; NaN beyond. A reduction for all of float64 (Payne
and Hanek) would need a table of some 1100 bits of 2/pi, for angles that no model has. docs/functions.md has the errors.
The coefficients are weighted least squares polynomials: tests/runtime/test_coefficients.py makes them.
"""

from math import inf, nan, sqrt

from odesim.runtime.elementary import clamp, inlined, with_sign
from odesim.runtime.intrinsics import bits, fma, from_bits, polynomial, select

TWO_OVER_PI = 0.6366197723675814
HALF_PI, HALF_PI_2, HALF_PI_3 = 1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33  # their sum is pi/2 to 2^-162
MAGIC = 1.5 * 2.0**52  # adding it rounds to an integer n and leaves n in the low bits
LARGEST = 2.0**50
# (sin(r) - r)/r^3 in r^2, abs(r) <= pi/4
SIN = (
    -0.16666666666666666, 0.008333333333333323, -0.00019841269841254925, 2.755731921413442e-06, -2.5052104900148668e-08,
    1.6058365470283187e-10, -7.578652127702118e-13,
)  # fmt: skip
# (cos(r) - 1 + r^2/2)/r^4 in r^2
COS = (
    0.041666666666666664, -0.0013888888888888874, 2.4801587301571093e-05, -2.7557319215225667e-07, 2.0876754336343294e-09,
    -1.1470290239349786e-11, 4.7379854598477943e-14,
)  # fmt: skip
ATAN = (
    -0.3333333333333328, 0.19999999999989865, -0.14285714285003207, 0.11111111085441, -0.09090908528678852, 0.07692299482295283,
    -0.06666581715815258, 0.05881703241472367, -0.05259371005970132, 0.047446910221098926, -0.04285704158927251, 0.03819428991888569,
    -0.032756845175514644, 0.026110850693043065, -0.01856854994999383, 0.011278152324297267, -0.005586494264028061, 0.002139163373748994,
    -0.0005887789860864341, 0.00010303200179321527, -8.57457450118346e-06,
)  # fmt: skip
"""(atan(t) - t)/t^3 in t^2, 0 <= t <= 1."""
ASIN = (
    0.1666666666666676, 0.07499999999970997, 0.04464285717430074, 0.030381942726351436, 0.02237221439686639, 0.017351623457583357,
    0.013980676388246932, 0.011400132004304689, 0.010773256451690326, 0.0037332587328423017, 0.021641408484405354, -0.020904939185592837,
    0.03256950285085093,
)  # fmt: skip
"""(asin(t) - t)/t^3 in t^2, 0 <= t <= 1/2."""


@inlined
def reduced(x: float) -> tuple[float, float, int]:
    """x - n pi/2 as a sum of two parts, in [-pi/4, pi/4], and bits with n in the low ones. By Cody and Waite, in three parts of pi/2."""
    # three parts of pi/2, to 2^-162: x may be close to a multiple of it, and then only the last parts are left
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


@inlined
def sinc_slope(x: float) -> float:
    """The derivative of sinc, (cos(x) - sin(x)/x)/x; for x^2 < 5 its series -x/3 (1 - x^2/10 + ...), whose terms do not cancel."""
    if x * x >= 5.0:
        return -fma(1.0 / x, sinc(x), -(cos(x) / x))
    half = -0.5 * x * x
    term, total, k = 1.0, 1.0, 1.0
    while abs(term) > 1e-17 * abs(total):
        term = term * half / (k * (2.0 * k + 3.0))
        total += term
        k += 1.0
    return -total * x / 3.0


@inlined
def atan_of_quotient(n: float, d: float) -> tuple[float, float]:
    """The inverse tangent of n/d as a sum of two parts, for 0 <= n <= d < inf, 0 < d."""
    t = n / d
    z = t * t
    low = fma(t * z, polynomial(z, ATAN), fma(-t, d, n) / (d * (1.0 + z)))
    return t, low


@inlined
def from_quarters(quarters: float, y: float, low: float) -> float:
    """quarters pi/2 + y + low, for quarters 0, 1, 2 and abs(y) <= pi/4."""
    high = quarters * HALF_PI
    total = high + y
    return total + (((high - total) + y) + (low + quarters * HALF_PI_2))


@inlined
def atan(x: float) -> float:
    """The inverse tangent of x."""
    a = clamp(abs(x), 0.0, 1e300)
    y, low = atan_of_quotient(select(a > 1.0, 1.0, a), select(a > 1.0, a, 1.0))
    return with_sign(select(a > 1.0, from_quarters(1.0, -y, -low), y + low), x)


@inlined
def atan2(y: float, x: float) -> float:
    """The angle of the point (x, y), from -pi to pi; that of C for zeros and infinities."""
    a, b = abs(y), abs(x)
    steep = a > b
    n, d = select(steep, b, a), select(steep, a, b)
    n = select(d == inf, select(n == inf, 1.0, 0.0), n)
    d = select((d == inf) | (d == 0.0), 1.0, d)
    t, low = atan_of_quotient(n, d)
    left = bits(x) < 0
    turned = steep != left  # the angle of the sector is counted backwards
    quarters = select(steep, 1.0, select(left, 2.0, 0.0))
    angle = from_quarters(quarters, select(turned, -t, t), select(turned, -low, low))
    return with_sign(select((x == x) & (y == y), angle, nan), y)


@inlined
def asin_parts(a: float) -> tuple[float, float, float]:
    """(t, low, outer) for 0 <= a <= 1: asin(a) is t + low where outer is 0, and pi/2 - (t + low) where it is 1."""
    outer = a > 0.5
    z = select(outer, 0.5 * (1.0 - a), a * a)
    s = select(outer, sqrt(0.5 * (1.0 - clamp(a, 0.5, 1.0))), a)
    root = select(outer & (s > 0.0), fma(-s, s, z) / (s + s), 0.0)
    low = fma(s * z, polynomial(z, ASIN), root)
    return select(outer, 2.0 * s, s), select(outer, 2.0 * low, low), select(outer, 1.0, 0.0)


@inlined
def asin(x: float) -> float:
    """The inverse sine of x; NaN for abs(x) > 1."""
    a = abs(x)
    t, low, outer = asin_parts(clamp(a, 0.0, 1.0))
    y = select(outer == 1.0, from_quarters(1.0, -t, -low), t + low)
    return with_sign(select(a <= 1.0, y, nan), x)


@inlined
def acos(x: float) -> float:
    """The inverse cosine of x; NaN for abs(x) > 1."""
    a = abs(x)
    t, low, outer = asin_parts(clamp(a, 0.0, 1.0))
    inner = select(x < 0.0, from_quarters(1.0, t, low), from_quarters(1.0, -t, -low))
    ends = select(x < 0.0, from_quarters(2.0, -t, -low), t + low)
    return select(a <= 1.0, select(outer == 1.0, ends, inner), nan)
