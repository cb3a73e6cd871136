"""The complement of the error function, and its inverse, without branches.

docs/functions.md has the errors. The coefficients are least squares polynomials: tests/codegen/runtime/test_coefficients.py makes them.
"""

from math import inf, nan, sqrt

from odesim.runtime.elementary import ERF, clamp, exp, exp_of_sum, inlined, log, with_sign
from odesim.runtime.intrinsics import fma, polynomial, select

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
