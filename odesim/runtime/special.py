"""Special functions of float64: the error function's complement and inverse, Lambert's W, gamma and Bessel functions, binomials.

docs/functions.md has the errors. The coefficients are least squares polynomials: tests/codegen/runtime/test_coefficients.py makes them.
"""

from math import inf, nan, sqrt

from odesim.runtime.circular import cos, sinc
from odesim.runtime.elementary import ERF, LN2, LN2_TAIL, clamp, exp, exp_of_sum, inlined, log, log_two_parts, with_sign
from odesim.runtime.intrinsics import floor, fma, polynomial, select

ERFCX = (
    1.2329951186255526,
    -0.13962111684056253,
    0.015379652102618942,
    0.06809705425469237,
    -0.10103906603624849,
    0.0937328349983771,
    -0.06633036581373383,
    0.037167515536670644,
    -0.016197734036726776,
    0.005031969989781338,
    -0.0007577734593467061,
    -0.00019925679305118896,
    0.00015062253991419101,
    -2.4398703037741785e-05,
    -1.122484808296712e-05,
    5.708016503141307e-06,
    2.9973822113030534e-07,
    -8.217017419573221e-07,
    6.686966046008695e-08,
    1.0502172995421596e-07,
    -1.2167685507720441e-08,
    -1.0259761788226157e-08,
)
"""(1 + 2 x) e^(x^2) erfc(x) in (x - 4)/(x + 4), 1/2 <= x <= 28."""
ERFINV = (
    1.5014093619608668,
    0.2466402995398501,
    -0.004177402814547768,
    -0.0012527734028609132,
    0.00021835893533995074,
    -4.9435896763976115e-06,
    -3.4668012488420095e-06,
    4.6163775380587106e-07,
    2.3588249008378776e-08,
    -8.447759501415625e-09,
)
"""erfinv(y)/y in w - 2.5, w = -log(1 - y^2) <= 5: a start, to 1e-8."""
ERFINV_TAIL = (
    3.8397821465026345,
    1.0094952943735371,
    0.0012814104892562468,
    -0.0008871070151720336,
    0.0002792966608822396,
    -8.061419799132757e-05,
    7.735681931441123e-05,
    -5.966087286509496e-05,
    2.0042392225966714e-05,
    -2.388965008930259e-06,
)
"""erfinv(y)/y in sqrt(w) - 4, w = -log(1 - y^2), 5 <= w <= 37: a start, to 4e-6."""
EPSILON = 2.0**-53
SLOPE = 1.1283791670955126  # 2/sqrt(pi)
SMALL_W = 2.0**-28  # below it W(x) is x - x^2
E, E_TAIL = 2.718281828459045, 1.4456468917292502e-16
BRANCH = (
    1.0,
    -0.3333333333333333,
    0.15277777777777507,
    -0.07962962962964137,
    0.04450231481521532,
    -0.025984714872744456,
    0.01563563250922304,
    -0.009616892049668119,
    0.006014543939082871,
    -0.0038112977370784004,
    0.002440866099234306,
    -0.0015769297714412793,
    0.0010263913796089044,
    -0.0006721166733705933,
    0.0004415967818583357,
    -0.00029201618476854126,
    0.00019814336190552098,
    -0.00013354910197814,
    7.725551781942915e-05,
    -4.493491490922787e-05,
    4.9894755949987585e-05,
    -4.851773884796755e-05,
    1.8828928451555834e-05,
)
"""(W(x) + 1)/p in p, where x e + 1 = p^2/2; p > 0 on the upper branch, p < 0 on the lower one; -.5 <= p <= .6."""
GAMMA_1 = (
    -0.5772156649015329,
    0.8224670334241132,
    -0.40068563438653154,
    0.2705808084277926,
    -0.20738555102865375,
    0.16955717699595776,
    -0.14404989676981048,
    0.12550966964601182,
    -0.11133426591379533,
    0.10009945187479462,
    -0.09095401112273363,
    0.08335400054944199,
    -0.07693277651966088,
    0.07143004447919378,
    -0.06666250850593353,
    0.06253494424436074,
    -0.0589155941378197,
    0.055306968940887796,
    -0.05176185763083797,
    0.05098956210281433,
    -0.05286710980513879,
    0.044771103399644276,
    -0.024627332924119203,
    0.030387579371671976,
    -0.07286931816422074,
    0.08112771744766117,
    -0.032525274251890626,
)
"""log gamma(1 + t)/t, -.4 <= t <= .5."""
GAMMA_2 = (
    0.42278433509846713,
    0.3224670334241132,
    -0.06735230105319812,
    0.020580808427784612,
    -0.007385551028670962,
    0.002890510330736692,
    -0.0011927539118443008,
    0.0005096695249264246,
    -0.0002231547551139712,
    9.945750870611492e-05,
    -4.4926282064039283e-05,
    2.0507268995348618e-05,
    -9.439116023816979e-06,
    4.37437598929105e-06,
    -2.041079088662755e-06,
    9.578347198297255e-07,
    -4.4382990474885563e-07,
    2.0314842628930995e-07,
    -1.0809961071573037e-07,
    6.368646510735886e-08,
    -2.1277866119062674e-08,
)
"""log gamma(2 + t)/t, -.5 <= t <= .6."""
STIRLING = (
    0.08333333333333333,
    -0.002777777777777677,
    0.0007936507935137147,
    -0.0005952380241882842,
    0.0008417326650883611,
    -0.001914978852147625,
    0.006208737504473091,
    -0.020866781773141933,
)
"""x (log gamma(x) - (x - 1/2) log(x) + x - log(2 pi)/2) in 1/x^2, x >= 8."""
HALF_LOG = 0.4189385332046727  # (log(2 pi) - 1)/2
ROOT, ROOT_TAIL = 1.4616321449683622, 9.549995429965697e-17  # digamma is 0 at their sum
DIGAMMA = (
    0.9676722454476212,
    -0.4427631689835921,
    0.25849976095565325,
    -0.16394270544241785,
    0.10782405069099048,
    -0.07219956125529006,
    0.04880428817626852,
    -0.03316112652984711,
    0.02259764798356983,
    -0.015424764524056715,
    0.010538793818582227,
    -0.007204554058743984,
    0.004926782980605486,
    -0.0033696425385634347,
    0.002304923275024146,
    -0.0015775846586195662,
    0.0010805682475553185,
    -0.0007376625639146298,
    0.0004987135769741031,
    -0.000338847795100041,
    0.0002424267672066547,
    -0.00018204587342112726,
    0.00012704949786684533,
    -7.055795083884707e-05,
    2.7439464130574806e-05,
    -6.497067774998192e-06,
    7.001472013420694e-07,
)
"""digamma(x)/(x - root) in x - root, 1 <= x <= 2.5."""
DIGAMMA_TAIL = (
    0.08333333333333333,
    -0.008333333333333274,
    0.003968253968152825,
    -0.0041666665993062,
    0.007575734996928678,
    -0.021088512014717134,
    0.08284929843717384,
    -0.4104969024702215,
    1.7740192032495834,
)
"""x^2 (log(x) - 1/(2 x) - digamma(x)) in 1/x^2, x >= 8."""
TWO_PI = 6.283185307179586
MOST_ORDER = 40.0
"""The largest order: with the next ones the power series overflows."""


@inlined
def erfc_tail(a: float) -> float:
    """1 - erf(a), for a in [1/2, 28]."""
    d = a + 4.0
    t = (a - 4.0) / d
    p = a * a
    n = 1.0 + 2.0 * a
    e = exp_of_sum(-p, -fma(a, a, -p))
    return e * (polynomial(t, ERFCX) / n)


@inlined
def erfc(x: float) -> float:
    """The complement 1 - erf(x) of the error function, accurate for large x too."""
    a = abs(x)
    b = clamp(a, 0.0, 0.5)
    near = fma(b, polynomial(b * b, ERF), b)
    tail = erfc_tail(clamp(a, 0.5, 28.0))
    return select(a < 0.5, 1.0 - select(x < 0.0, -near, near), select(x < 0.0, 2.0 - tail, tail))


@inlined
def erfinv(y: float) -> float:
    """The x with erf(x) = y; NaN for abs(y) > 1. A polynomial, and one step of Halley."""
    a = clamp(abs(y), 0.0, 1.0 - EPSILON)
    q = 1.0 - a
    w = -log(q * (1.0 + a))
    x = a * select(w < 5.0, polynomial(clamp(w, 0.0, 5.0) - 2.5, ERFINV), polynomial(sqrt(clamp(w, 5.0, 40.0)) - 4.0, ERFINV_TAIL))
    b = clamp(x, 0.0, 0.5)
    near = fma(b, polynomial(b * b, ERF), b) - a
    u = select(a < 0.5, near, q - erfc(x)) / (SLOPE * exp(-(x * x)))
    x = x - u / fma(x, u, 1.0)
    size = select(abs(y) < 1.0, x, select(abs(y) == 1.0, inf, nan))
    return with_sign(size, y)


@inlined
def distance_to_branch(x: float) -> float:
    """The number sqrt(2 (e x + 1)); NaN for x < -1/e."""
    return sqrt(2.0 * fma(E_TAIL, x, fma(E, x, 1.0)))


@inlined
def near_branch(p: float) -> float:
    """W at the signed distance p from its branch point."""
    return fma(p, polynomial(p, BRANCH), -1.0)


@inlined
def halley_step(w: float, z: float) -> float:
    """A better w, from its error z = log(x/w) - w; of fourth order."""
    a = 1.0 + w
    q = 2.0 * a * (a + 2.0 / 3.0 * z)
    return fma(w, z / a * ((q - z) / (q - 2.0 * z)), w)


@inlined
def lambertw(x: float) -> float:
    """W on the upper branch, w >= -1; NaN for x < -1/e."""
    p = distance_to_branch(clamp(x, -1.0, 1.0))
    near = near_branch(clamp(p, 0.0, 0.6))
    b = clamp(x, -0.31, 3.0)
    small = b * (1.0 + 4.0 / 3.0 * b) / (1.0 + b * (7.0 / 3.0 + 5.0 / 6.0 * b))
    one = log(clamp(x, 3.0, 1.7e308))
    two = log(one)
    w = select(x < 3.0, small, one - two + two / one)
    c = clamp(x, -0.31, 1.7e308)
    w = halley_step(w, log(c / w) - w)
    w = halley_step(w, log(c / w) - w)
    w = select(abs(x) < SMALL_W, fma(-x, x, x), w)
    w = select(p < 0.6, near, w)
    return select(x < inf, select(x >= -1.0, select(p >= 0.0, w, nan), nan), x)


@inlined
def lambertw_lower(x: float) -> float:
    """W on the lower branch, w <= -1, for -1/e <= x < 0; -inf at 0, NaN elsewhere."""
    p = distance_to_branch(clamp(x, -1.0, 1.0))
    near = near_branch(clamp(-p, -0.5, 0.0))
    b = log(clamp(-x, 5e-324, 0.35))
    u = -1.0 - b
    two = log(-b)
    w = select(u < 3.0, -1.0 - sqrt(2.0 * u) - 2.0 / 3.0 * u, b - two + two / b)
    w = halley_step(w, (b - log(-w)) - w)
    w = halley_step(w, (b - log(-w)) - w)
    w = select(p < 0.5, near, w)
    return select(x < 0.0, select(p >= 0.0, w, nan), select(x == 0.0, -inf, nan))


@inlined
def stirling(x: float) -> float:
    """log gamma(x) for 8 <= x < inf: (x - 1/2)(log(x) - 1) + (log(2 pi) - 1)/2 + ..."""
    high, low = log_two_parts(x)
    a, b = x - 0.5, high - 1.0
    p = a * b
    rest = fma(a, b, -p) + fma(a, low, HALF_LOG + polynomial(1.0 / (x * x), STIRLING) / x)
    return select(p < inf, p + rest, p)


@inlined
def loggamma(x: float) -> float:
    """The logarithm of the gamma function, x > 0; NaN below 0."""
    b = clamp(x, 0.0, 8.0)
    t = b - 1.0
    near_1 = fma(t, polynomial(t, GAMMA_1), 0.0)  # 0 has no sign
    below = b < 0.6
    m = select(below, 0.0, floor(clamp(b, 2.5, 8.0) - 1.5))  # b - m is near 2
    s = select(below, b, select(b < 2.5, b - 2.0, (b - 2.0) - m))
    q = select(below, b * (1.0 + b), 1.0)
    for j in range(1, 7):
        q = q * select((j <= m) & (b >= 2.5), b - j, 1.0)
    near_2 = s * polynomial(s, GAMMA_2)
    y = select(b < 2.5, near_2, near_2 + log(q))
    y = select(below, near_2 - log(q), y)
    y = select((b >= 0.6) & (b < 1.5), near_1, y)
    y = select(x < 8.0, y, stirling(clamp(x, 8.0, 1.7e308)))
    return select(x >= 0.0, select(x < inf, y, inf), nan)


@inlined
def digamma(x: float) -> float:
    """The derivative of log gamma(x), x > 0; NaN below 0."""
    b = clamp(x, 0.0, 8.0)
    below = b < 1.0
    m = floor(clamp(b, 1.5, 8.0) - 1.5)  # b - m is in [1, 2.5]
    m = select(b < 2.5, 0.0, m)
    above, under = 0.0, 1.0  # the sum of 1/(b - j)
    for j in range(1, 7):
        f = select(j <= m, b - j, 1.0)
        above = select(j <= m, fma(above, f, under), above)
        under = under * f
    t = (select(below, b + 1.0, b - m) - ROOT) - ROOT_TAIL
    y = t * polynomial(t, DIGAMMA)
    y = select(below, y - 1.0 / b, y + above / under)
    c = clamp(x, 8.0, 1.7e308)
    u = 1.0 / c
    far = log(c) - (0.5 * u + u * u * polynomial(u * u, DIGAMMA_TAIL))
    y = select(x < 8.0, y, far)
    return select(x >= 0.0, select(x < inf, y, inf), nan)


@inlined
def polygamma(n: float, x: float) -> float:
    """The n-th derivative of digamma(x), n = 1, 2, ..., x > 0; NaN below 0.

    (-1)^(n+1) times the sum of n!/(x + k)^(n+1) over k >= 0: the first terms by themselves, the others by their asymptotic series.
    """
    m = floor(clamp(n + 13.0 - x, 0.0, n + 13.0))
    y = x + m
    fact, sign = 1.0, -1.0
    j = 1.0
    power = 1.0 / y
    while j < n:
        fact, sign, power = fact * j, -sign, power / y
        j += 1.0
    total = fact * power * polygamma_series(n, y)  # (n - 1)!/y^n (1 + n/(2 y) + ...)
    while m > 0.0:
        m -= 1.0
        y = x + m
        term = fact * n / y
        j = 0.0
        while j < n:
            term = term / y
            j += 1.0
        total += term
    return select(x >= 0.0, -sign * total, nan)


@inlined
def polygamma_series(n: float, y: float) -> float:
    """1 + n/(2 y) + sum of B_2k n (n + 1) ... (n + 2k - 1)/((2k)! y^2k), for y >= n + 12."""
    w = 1.0 / (y * y)
    r = n * (n + 1.0) / 2.0 * w
    total = r / 6.0
    r = r * (n + 2.0) * (n + 3.0) / 12.0 * w
    total -= r / 30.0
    r = r * (n + 4.0) * (n + 5.0) / 30.0 * w
    total += r / 42.0
    r = r * (n + 6.0) * (n + 7.0) / 56.0 * w
    total -= r / 30.0
    r = r * (n + 8.0) * (n + 9.0) / 90.0 * w
    total += r * 5.0 / 66.0
    r = r * (n + 10.0) * (n + 11.0) / 132.0 * w
    total -= r * 691.0 / 2730.0
    r = r * (n + 12.0) * (n + 13.0) / 182.0 * w
    total += r * 7.0 / 6.0
    r = r * (n + 14.0) * (n + 15.0) / 240.0 * w
    total -= r * 3617.0 / 510.0
    return 1.0 + (0.5 * n / y + total)


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
    return select(n <= MOST_ORDER, y, nan)


@inlined
def besseli_ratio(n: float, x: float) -> float:
    """The quotient I_(n+1)(x)/I_n(x) of whole order n >= 0; it is finite where both overflow."""
    a = abs(x)
    if a < first_large(n + 1.0):
        y = a / (2.0 * (n + 1.0)) * (power_series(n + 1.0, a) / power_series(n, a))
    else:
        y = asymptotic_series(n + 1.0, a) / asymptotic_series(n, a)
    return select(n < MOST_ORDER, with_sign(y, x), nan)


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


@inlined
def binomial(n: float, k: float) -> float:
    """The binomial coefficient of whole numbers, n >= 0: the number of choices of k among n; 0 unless 0 <= k <= n.

    Exact while n binomial(n, k) < 2^53: each product of the first factors is a whole number.
    """
    least = min(k, n - k)
    value = 0.0 if least < 0.0 else 1.0
    j = 0.0
    while j < least and value < inf:
        # the product may overflow where the quotient does not
        value = value * (n - j) / (j + 1.0) if value < 1e290 else value / (j + 1.0) * (n - j)
        j += 1.0
    return value
