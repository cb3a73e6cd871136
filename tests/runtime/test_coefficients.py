"""Where the numbers of the functions in odesim.runtime come from: every one is computed here again, in 50 digits."""

import mpmath as mp
import pytest

from odesim.runtime import circular, elementary, special
from odesim.targets import numpy_text


def fit(f, low, high, degree, weight=lambda x: 1, centre=0):
    """Coefficients in x - centre of the weighted least squares polynomial through 3*degree Chebyshev points of [low, high]."""
    low, high, count = mp.mpf(low), mp.mpf(high), 3 * degree
    points = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]
    matrix = mp.matrix([[weight(x) * (x - centre) ** j for j in range(degree + 1)] for x in points])
    return tuple(float(c) for c in mp.lu_solve(matrix, mp.matrix([weight(x) * f(x) for x in points])))


def exp_rest(r):
    """(exp(r) - 1 - r)/r^2."""
    return (mp.expm1(r) - r) / r**2 if abs(r) > mp.mpf(10) ** -20 else mp.mpf(1) / 2


def atanh_rest(z):
    """(2 atanh(s)/s - 2)/z at s = sqrt(z)."""
    return (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z


def largest_z():
    """s^2 at f = sqrt(2) - 1, s = f/(2 + f)."""
    return ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2


def two_parts(x):
    """x as the sum of two float64."""
    return float(x), float(x - float(x))


def fit_quotient(f, zero, low, high, degree):
    """Coefficients of f(zero + t)/t in t, for the least error relative to it; f(zero) is 0."""

    def g(t):
        return f(zero + t) / t

    return fit(g, low, high, degree, lambda t: 1 / g(t))


def erfcx(t):
    """(1 + 2 x) e^(x^2) erfc(x) at t = (x - 4)/(x + 4)."""
    x = 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def from_branch(p):
    """(W(x) + 1)/p at p^2/2 = e x + 1, p above 0 on the upper branch."""
    return (mp.lambertw((p * p / 2 - 1) / mp.e, 0 if p > 0 else -1).real + 1) / p


def sine_rest(z):
    """(sin(r) - r)/r^3 at r = sqrt(z)."""
    return (mp.sin(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z) ** 3


def cosine_rest(z):
    """(cos(r) - 1 + r^2/2)/r^4 at r = sqrt(z)."""
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


def quarter():
    """The square of pi/4, and a little."""
    return (mp.pi / 4 * mp.mpf("1.0001")) ** 2


def three_parts(x):
    """x as the sum of three float64."""
    return *two_parts(x), float(x - float(x) - float(x - float(x)))


MODULES = (elementary, circular, special, numpy_text)
TABLE = {
    # the weight is what an error does to exp
    "EXP": lambda: fit(exp_rest, -1.0001 * mp.log(2) / 2, 1.0001 * mp.log(2) / 2, 9, lambda r: r**2),
    "LOG": lambda: fit(atanh_rest, 0, largest_z(), 6),
    "POW": lambda: fit(lambda z: (atanh_rest(z) - mp.mpf(2) / 3) / z, 0, largest_z(), 7),
    "ERF": lambda: fit(lambda t: mp.erf(mp.sqrt(t)) / mp.sqrt(t) - 1, 0, 1, 11),
    # the weight is what an error of the exponent does to erf, relative to erf
    "ERFC": lambda: fit(lambda x: -mp.log(mp.erfc(x)), 1, 6, 17, lambda x: mp.erfc(x) / mp.erf(x), 1),
    "LOG2E": lambda: float(1 / mp.log(2)),
    "LN2 LN2_TAIL": lambda: two_parts(mp.log(2)),
    "LN2_42 LN2_42_TAIL": lambda: (float(mp.floor(mp.log(2) * 2**42) / 2**42), float(mp.log(2) - mp.floor(mp.log(2) * 2**42) / 2**42)),
    "TWO_THIRDS TWO_THIRDS_TAIL": lambda: two_parts(mp.mpf(2) / 3),
    "TWO_OVER_PI": lambda: float(2 / mp.pi),
    "HALF_PI HALF_PI_2 HALF_PI_3": lambda: three_parts(mp.pi / 2),
    "SIN": lambda: fit(sine_rest, 0, quarter(), 6, lambda z: z),
    "COS": lambda: fit(cosine_rest, 0, quarter(), 6, lambda z: z * z),
    "ATAN": lambda: fit(lambda z: (mp.atan(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z) ** 3, 0, 1, 20, lambda z: z),
    "ASIN": lambda: fit(lambda z: (mp.asin(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z) ** 3, 0, mp.mpf(1) / 4, 12, lambda z: z),
    "ERFCX": lambda: fit(erfcx, -mp.mpf(7) / 9, mp.mpf(24) / 32, 21),
    "E E_TAIL": lambda: two_parts(mp.e),
    "BRANCH": lambda: fit(from_branch, -0.5, 0.6, 22),
}


def number(name):
    """A number of one of the modules."""
    return next(getattr(module, name) for module in MODULES if hasattr(module, name))


@pytest.mark.first(3)
@pytest.mark.parametrize("names", TABLE)
def test_coefficients(names):
    """The numbers written in the module are the ones computed here, to the last bit."""
    with mp.workdps(50):
        expected = TABLE[names]()
    written = tuple(number(name) for name in names.split())
    assert (written if " " in names else written[0]) == expected
