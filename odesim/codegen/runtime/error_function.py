"""The complement of the error function, without branches.

docs/functions.md has the errors. The coefficients are least squares polynomials: tests/codegen/runtime/test_coefficients.py makes them.
"""

from odesim.codegen.runtime.intrinsics import fma, polynomial, select
from odesim.codegen.runtime.vmath import ERF, clamp, exp_of_sum, inlined

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
