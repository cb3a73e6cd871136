"""The real branches of Lambert's W, the solutions w of w e^w = x: steps of Fritsch, Shafer and Crowley from a rough start.

docs/functions.md has the errors. The coefficients are a least squares polynomial: tests/codegen/runtime/test_coefficients.py makes it.
"""

from math import inf, nan, sqrt

from odesim.runtime.elementary import clamp, inlined, log
from odesim.runtime.intrinsics import fma, polynomial, select

SMALL = 2.0**-28  # below it W(x) is x - x^2
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


@inlined
def distance_to_branch(x: float) -> float:
    """The number sqrt(2 (e x + 1)); NaN for x < -1/e."""
    return sqrt(2.0 * fma(E_TAIL, x, fma(E, x, 1.0)))


@inlined
def near_branch(p: float) -> float:
    """W at the signed distance p from its branch point."""
    return fma(p, polynomial(p, BRANCH), -1.0)


@inlined
def step(w: float, z: float) -> float:
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
    w = step(w, log(c / w) - w)
    w = step(w, log(c / w) - w)
    w = select(abs(x) < SMALL, fma(-x, x, x), w)
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
    w = step(w, (b - log(-w)) - w)
    w = step(w, (b - log(-w)) - w)
    w = select(p < 0.5, near, w)
    return select(x < 0.0, select(p >= 0.0, w, nan), select(x == 0.0, -inf, nan))
