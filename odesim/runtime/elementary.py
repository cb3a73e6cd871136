"""exp, log, powers, the error function and hyperbolic functions of float64, without branches: loops that call them are vectorised.

Error bounds (ulp, whole range, subnormals included): exp, log 1; expm1, log1p, tanh, erf, pow 2; docs/functions.md has the others.
NaN, infinities and signed zeros are as in C. Every fused product is an explicit fma and nothing else may fuse. So a function gives
the same bits in a caller with fastmath={"contract"} and in a strict one.

Why own ones: numba from pip has no SVML, so math.exp is a call a number (4.3 ns on a Zen 4; ours .5 to .8 in a loop), and the bits of the
C library's differ between machines. An argument is reduced by Cody and Waite in two parts, a polynomial follows, and the exponent is
put in by its bits; the logarithm is that of fdlibm, in s = f/(2 + f). A table of 16 entries with a polynomial of degree 6 takes .47 ns
for exp, against .72 of the polynomial alone; it is not used, since it reads memory at places that each lane chooses.
The coefficients are weighted least squares polynomials: tests/runtime/test_coefficients.py makes them.
"""

from math import inf, nan, sqrt

from odesim.runtime.functions import njit
from odesim.runtime.intrinsics import bits, fma, from_bits, polynomial, rint, select

# without fastmath given, a function has that of its first caller, and its bits would depend on that
inlined = njit(fastmath=False, forceinline=True)

LOG2E = 1.4426950408889634  # 1/log(2)
LN2, LN2_TAIL = 0.6931471805599453, 2.3190468138462996e-17  # log(2) = LN2 + LN2_TAIL
LN2_42, LN2_42_TAIL = 0.6931471805598903, 5.497923018708371e-14  # the same, the head in 42 bits: its product with an exponent is exact
MAGIC = 1.5 * 2.0**52 + 2046.0  # adding it rounds to an integer n and leaves n + 2046 in the low bits
SIGN = -(2**63)
MANTISSA = 2**52 - 1
SQRT_HALF = 0x3FE6A09E667F3BCD  # bits of sqrt(1/2)
ONE = 0x3FF0000000000000  # bits of 1
TWO_52 = 0x4330000000000000  # bits of 2^52
SMALLEST_NORMAL = 2.0**-1022
TINY = 2.0**-54  # below it expm1(x), log1p(x), tanh(x) are x

# (exp(r) - 1 - r)/r^2 for abs(r) <= log(2)/2
EXP = (
    0.5000000000000013, 0.16666666666666685, 0.041666666666511774, 0.008333333333316316, 0.0013888888947821546, 0.0001984126989792604,
    2.4801489212954576e-05, 2.755723349537905e-06, 2.7631513276248185e-07, 2.511246639457876e-08,
)  # fmt: skip
# (2 atanh(s)/s - 2)/z with z = s^2, abs(s) <= (sqrt(2) - 1)/(sqrt(2) + 1)
LOG = (
    0.666666666666667, 0.39999999999899005, 0.28571428626173057, 0.2222221110612709, 0.1818289100504977, 0.15331664799306263,
    0.14617093237558204,
)  # fmt: skip
# ((2 atanh(s)/s - 2)/z - 2/3)/z, and 2/3 in two parts
POW = (
    0.4, 0.2857142857142937, 0.22222222221653956, 0.1818181833577892, 0.15384594925771541, 0.13334806488020176, 0.11706192925560131,
    0.11723591088893698,
)  # fmt: skip
TWO_THIRDS, TWO_THIRDS_TAIL = 0.6666666666666666, 3.700743415417188e-17
# erf(x)/x - 1 in x^2, x <= 1
ERF = (
    0.12837916709551256, -0.37612638903183543, 0.1128379167094513, -0.026866170643256995, 0.005223977607269946, -0.0008548325982543225,
    0.00012055295112667001, -1.4924740785377576e-05, 1.6447471190594618e-06, -1.6208829856810202e-07, 1.3721520406351094e-08,
    -7.798543850549947e-10,
)  # fmt: skip
# -log(1 - erf(x)) in x - 1, 1 <= x <= 6
ERFC = (
    1.8496055099332482, 2.638967514234776, 0.8431072563593973, 0.041561098025287416, -0.010033825180340617, 0.0019779012182863714,
    -0.0002373164273954782, -2.6296386681032528e-05, 2.7199150375514624e-05, -9.67169329038008e-06, 2.1323150390331287e-06,
    -2.0512064931337604e-07, -5.783307361392373e-08, 3.331906251573082e-08, -8.4988301134365e-09, 1.3155287392337177e-09,
    -1.189525438739099e-10, 4.847835206868524e-12,
)  # fmt: skip
LINEAR = 2.0**-27  # below it asinh(x), atanh(x) and sinh(x) are x
BELOW_ONE = 1.0 - 2.0**-53  # before 1
SQUARES = 2.0**30  # above it x^2 + 1 and x^2 - 1 are x^2


@inlined
def clamp(x: float, low: float, high: float) -> float:
    """x limited to [low, high]; NaN stays NaN."""
    x = select(x > high, high, x)
    return select(x < low, low, x)


@inlined
def with_sign(size: float, x: float) -> float:
    """The number size >= 0 with the sign of x."""
    return from_bits(bits(size) | (bits(x) & SIGN))


@inlined
def exp_of_sum(x: float, tail: float) -> float:
    """The exponential of x + tail, for x in [-746, 710] and abs(tail) far below 1.

    2^n in two factors: overflow becomes inf, and a subnormal result is rounded once.
    """
    z = fma(x, LOG2E, MAGIC)
    n = z - MAGIC
    head = fma(-n, LN2, x)  # exact
    tail = fma(-n, LN2_TAIL, tail)
    r = head + tail
    y = (head + fma(r * r, polynomial(r, EXP), tail)) + 1.0
    exponents = bits(z) & 0xFFF
    half = exponents >> 1
    return y * from_bits(half << 52) * from_bits((exponents - half) << 52)


@inlined
def exp(x: float) -> float:
    """The exponential e^x."""
    # beyond these 0 and inf come out of the exponent by themselves; a branch would keep loops scalar
    return exp_of_sum(clamp(x, -746.0, 710.0), 0.0)


@inlined
def half_expm1(x: float) -> tuple[float, float]:
    """The number (e^x - 1)/2 as a sum of two parts, for x in [-40, 710]; halved because 2^n overflows before the result does."""
    z = fma(x, LOG2E, MAGIC)
    n = z - MAGIC
    head = fma(-n, LN2, x)
    r = fma(-n, LN2_TAIL, head)
    rest = fma(r * r, polynomial(r, EXP), fma(-n, LN2_TAIL, head - r))
    scale = from_bits((bits(z) - 1024) << 52)  # 2^(n-1)
    most = fma(scale, r, scale - 0.5)
    y = fma(scale, rest, most)
    return y, fma(scale, rest, most - y) + fma(scale, r, (scale - 0.5) - most)


@inlined
def expm1(x: float) -> float:
    """The number e^x - 1, accurate near x = 0."""
    half, _ = half_expm1(clamp(x, -40.0, 710.0))
    return select(abs(x) < TINY, x, 2.0 * half)


@inlined
def exponent_and_mantissa(x: float) -> tuple[float, float]:
    """The exponent k and the mantissa m of x = 2^k m, m in [sqrt(1/2), sqrt(2)), for 0 < x < inf."""
    tiny = x < SMALLEST_NORMAL
    i = bits(select(tiny, x * 2.0**54, x)) + (ONE - SQRT_HALF)
    k = from_bits(((i >> 52) & 0x7FF) | TWO_52) - select(tiny, 2.0**52 + 1077.0, 2.0**52 + 1023.0)
    return k, from_bits((i & MANTISSA) + SQRT_HALF)


@inlined
def log_of_parts(k: float, f: float, tail: float) -> float:
    """The sum k log(2) + log(1 + f) + tail, for f in [sqrt(1/2) - 1, sqrt(2) - 1)."""
    s = f / (2.0 + f)
    z = s * s
    h = 0.5 * f * f
    high = fma(k, LN2_42, f)
    low = fma(k, LN2_42, -high) + f + tail
    return high + (fma(s, fma(z, polynomial(z, LOG), h), fma(k, LN2_42_TAIL, low)) - h)


@inlined
def log(x: float) -> float:
    """The natural logarithm of x."""
    k, m = exponent_and_mantissa(x)
    y = select(x < inf, log_of_parts(k, m - 1.0, 0.0), x)
    return select(x > 0.0, y, select(x == 0.0, -inf, nan))


@inlined
def log1p(x: float) -> float:
    """The logarithm of 1 + x, accurate near x = 0."""
    u = 1.0 + x
    v = u - 1.0
    lost = (1.0 - (u - v)) + (x - v)  # 1 + x = u + lost, exactly
    k, m = exponent_and_mantissa(u)
    scale = from_bits(ONE + bits(m) - bits(u))  # 2^-k
    lost = select(x < 2.0**60, lost * scale, 0.0)
    f = m - 1.0
    y = select(x < inf, log_of_parts(k, f, fma(-lost, f, lost)), x)  # lost/(1 + f), first order
    y = select(x > -1.0, y, select(x == -1.0, -inf, nan))
    return select(abs(x) < TINY, x, y)


@inlined
def tanh(x: float) -> float:
    """The hyperbolic tangent of x."""
    a = abs(x)
    e, e_low = half_expm1(clamp(2.0 * a, 0.0, 50.0))
    d = e + 1.0
    d_low = (1.0 - d) + e + e_low  # (d, d_low) is (e^2a + 1)/2
    inverse = 1.0 / d
    y = e * inverse
    y = fma(fma(-y, d, e) + fma(-y, d_low, e_low), inverse, y)  # corrects the rounding of e/d
    return with_sign(select(a < TINY, a, y), x)


@inlined
def erf(x: float) -> float:
    """The error function of x: 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    a = clamp(abs(x), 0.0, 6.0)
    # both forms are computed and one is selected, as everywhere here
    near = fma(a, polynomial(a * a, ERF), a)
    far = 1.0 - exp_of_sum(-polynomial(a - 1.0, ERFC), 0.0)
    return with_sign(select(a < 1.0, near, far), x)


@inlined
def log_two_parts(a: float) -> tuple[float, float]:
    """The logarithm of a as a sum of two float64 (about 64 bits), for 0 < a < inf."""
    k, m = exponent_and_mantissa(a)
    d = m + 1.0
    inverse = 1.0 / d
    s = (m - 1.0) * inverse
    s_low = fma(-s, m - (d - 1.0), fma(-s, d, m - 1.0)) * inverse
    z = s * s
    t = s * z
    t_low = fma(s, fma(s, s, -z), fma(s, z, -t))
    v = t * TWO_THIRDS
    v_low = fma(TWO_THIRDS, t_low, fma(t, TWO_THIRDS_TAIL, fma(t, TWO_THIRDS, -v)))
    p = fma(k, LN2_42, 2.0 * s)
    p_low = fma(k, LN2_42, -p) + 2.0 * s
    q = p + v
    q_low = (p - q) + v + (p_low + fma(k, LN2_42_TAIL, fma(s_low, fma(2.0, z, 2.0), v_low)))
    rest = fma(t * z, polynomial(z, POW), q_low)
    high = q + rest
    return high, (q - high) + rest


@inlined
def pow(x: float, y: float) -> float:
    """The power x^y."""
    a = abs(x)
    # y log(a) is up to 745, and its absolute error is the relative one of the power: 53 bits of the logarithm would lose ten of them
    high, low = log_two_parts(a)
    high = select(a == 0.0, -inf, select(a < inf, high, a))
    p = y * high
    tail = select(abs(p) < 800.0, fma(y, low, fma(y, high, -p)), 0.0)
    size = exp_of_sum(clamp(p, -746.0, 710.0), tail)
    odd = (rint(y) == y) & (rint(0.5 * y) != 0.5 * y)
    # an integer y above 2^53 is even, and both tests by rint say so
    result = select(odd, with_sign(size, x), size)
    result = select((x < 0.0) & (a < inf) & (rint(y) != y), nan, result)
    return select((y == 0.0) | (x == 1.0) | ((a == 1.0) & (abs(y) == inf)), 1.0, result)


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
    a = clamp(x, 0.0, SQUARES)
    p = a * a
    w = p + sign
    back = w - p
    w_low = ((p - (w - back)) + (sign - back)) + fma(a, a, -p)
    h = sqrt(w)
    h_low = select(w > 0.0, (fma(-h, h, w) + w_low) / (2.0 * h), 0.0)
    # the root and the sum in two parts each: near 1 the logarithm would lose what their rounding cuts off
    u = a + h
    back = u - a
    near = log_of_sum(u, ((a - (u - back)) + (h - back)) + h_low)
    k, m = exponent_and_mantissa(x)
    return select(x < SQUARES, near, log_of_parts(k + 1.0, m - 1.0, 0.0))  # log(2 x)


@inlined
def asinh(x: float) -> float:
    """The inverse hyperbolic sine of x."""
    a = abs(x)
    y = select(a < LINEAR, a, log_of_sum_with_root(a, 1.0))
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
    b = clamp(a, 0.0, BELOW_ONE)
    d = 1.0 - b
    d_low = (1.0 - d) - b
    n = 1.0 + b
    n_low = b - (n - 1.0)
    u = n / d
    u_low = (fma(-u, d, n) + fma(-u, d_low, n_low)) / d
    y = select(a < LINEAR, a, 0.5 * log_of_sum(u, u_low))
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
    return with_sign(select(a < LINEAR, a, y), x)


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
