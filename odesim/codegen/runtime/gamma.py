"""The logarithm of the gamma function and its derivatives, for x > 0.

docs/functions.md has the errors. The coefficients are least squares polynomials: tests/codegen/runtime/test_coefficients.py makes them.
"""

from math import inf, nan

from odesim.runtime.elementary import clamp, inlined, log, log_two_parts
from odesim.runtime.intrinsics import floor, fma, polynomial, select

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
