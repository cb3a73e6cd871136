"""Special functions of float64: the complement of the error function, Lambert's W, binomials.

Bessel functions, those of the gamma function and the inverse of the error function are none of ours: no shipped model has them, and to
mend what scipy's lose took 600 lines. A Python function as an observable, or a table of values, has them.

docs/functions.md has the errors. The coefficients are least squares polynomials: tests/runtime/test_coefficients.py makes them.
"""

from math import inf, nan, sqrt

from odesim.runtime.elementary import ERF, clamp, exp_of_sum, inlined, log
from odesim.runtime.intrinsics import fma, polynomial, select

ERFCX = (
    1.2329951186255526, -0.13962111684056253, 0.015379652102618942, 0.06809705425469237, -0.10103906603624849, 0.0937328349983771,
    -0.06633036581373383, 0.037167515536670644, -0.016197734036726776, 0.005031969989781338, -0.0007577734593467061,
    -0.00019925679305118896, 0.00015062253991419101, -2.4398703037741785e-05, -1.122484808296712e-05, 5.708016503141307e-06,
    2.9973822113030534e-07, -8.217017419573221e-07, 6.686966046008695e-08, 1.0502172995421596e-07, -1.2167685507720441e-08,
    -1.0259761788226157e-08,
)  # fmt: skip
"""(1 + 2 x) e^(x^2) erfc(x) in (x - 4)/(x + 4), 1/2 <= x <= 28."""
SMALL_W = 2.0**-28  # below it W(x) is x - x^2
E, E_TAIL = 2.718281828459045, 1.4456468917292502e-16
BRANCH = (
    1.0, -0.3333333333333333, 0.15277777777777507, -0.07962962962964137, 0.04450231481521532, -0.025984714872744456, 0.01563563250922304,
    -0.009616892049668119, 0.006014543939082871, -0.0038112977370784004, 0.002440866099234306, -0.0015769297714412793,
    0.0010263913796089044, -0.0006721166733705933, 0.0004415967818583357, -0.00029201618476854126, 0.00019814336190552098,
    -0.00013354910197814, 7.725551781942915e-05, -4.493491490922787e-05, 4.9894755949987585e-05, -4.851773884796755e-05,
    1.8828928451555834e-05,
)  # fmt: skip
"""(W(x) + 1)/p in p, where x e + 1 = p^2/2; p > 0 on the upper branch, p < 0 on the lower one; -.5 <= p <= .6."""


@inlined
def erfc_tail(a: float) -> float:
    """1 - erf(a), for a in [1/2, 28]."""
    d = a + 4.0
    t = (a - 4.0) / d
    p = a * a
    n = 1.0 + 2.0 * a
    # the rounding of a^2 is put back: without that e^(-a^2) would be off by some 300 ulp at the end of the range
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
def distance_to_branch(x: float) -> float:
    """The number sqrt(2 (e x + 1)); NaN for x < -1/e."""
    return sqrt(2.0 * fma(E_TAIL, x, fma(E, x, 1.0)))


@inlined
def near_branch(p: float) -> float:
    """W at the signed distance p from its branch point."""
    return fma(p, polynomial(p, BRANCH), -1.0)


@inlined
def fsc_step(w: float, z: float) -> float:
    """A better w, from its error z = log(x/w) - w: the step of Fritsch, Shafer and Crowley (1973), of fourth order."""
    a = 1.0 + w
    q = 2.0 * a * (a + 2.0 / 3.0 * z)
    return fma(w, z / a * ((q - z) / (q - 2.0 * z)), w)


@inlined
def lambertw(x: float) -> float:
    """W on the upper branch, w >= -1; NaN for x < -1/e."""
    # near the branch point W has a root's slope, and steps for w + log(w) lose half of the digits: a series in p there
    p = distance_to_branch(clamp(x, -1.0, 1.0))
    near = near_branch(clamp(p, 0.0, 0.6))
    b = clamp(x, -0.31, 3.0)
    small = b * (1.0 + 4.0 / 3.0 * b) / (1.0 + b * (7.0 / 3.0 + 5.0 / 6.0 * b))
    one = log(clamp(x, 3.0, 1.7e308))
    two = log(one)
    w = select(x < 3.0, small, one - two + two / one)
    c = clamp(x, -0.31, 1.7e308)
    w = fsc_step(w, log(c / w) - w)
    w = fsc_step(w, log(c / w) - w)
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
    w = fsc_step(w, (b - log(-w)) - w)
    w = fsc_step(w, (b - log(-w)) - w)
    w = select(p < 0.5, near, w)
    return select(x < 0.0, select(p >= 0.0, w, nan), select(x == 0.0, -inf, nan))


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
