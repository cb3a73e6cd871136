"""Self-attention as particles on a sphere: tokens x_i move to the mean of the others' values, weighted by attention.

dx_i/dt is the part of sum_h sum_j A^h_ij V^h x_j tangent to the sphere at x_i, A^h_ij = softmax_j(beta <Q^h x_i, K^h x_j>): a transformer
with the same weights in every layer, with depth as time. With Q = K = V = I tokens form clusters, which merge: soon at small beta, after
times of order exp(beta) at large. Spheres stay spheres by the equation itself; nothing is normalised on the way. The observable merged
is the share of pairs of tokens with an inner product above .999.

Assumed: one set of weights, layer normalisation to the sphere, no MLP.
"""

from typing import Any

from sympy import Max, Piecewise, Rational, Sum

from odesim.models.particles._tokens import ON_SPHERE, PARAMS, START, H, V, a, b, d, e, h, i, j, logit, n, on_the_sphere, seen, x
from odesim.symbolic import Attention, Invariant, Lines, Points, Source, System, entropy, over, softmax

CLOSE = Rational(999, 1000)
attention = softmax(logit(i, j), (j, n), weight=seen(i, j))


def pull(component: Any) -> Any:
    """The component of the mean of the values."""
    return over(Sum, attention * over(Sum, V[h, component, e] * x[j, e], (e, d)), (j, n), (h, H))


norm = over(Sum, x[i, a] ** 2, (a, d))
product = over(Sum, x[i, a] * x[j, a], (a, d))
pairs = over(Sum, Piecewise((1, product > CLOSE), (0, True)), (i, n), (j, n)) - n
SYSTEM = System(
    name="particles.sphere",
    source=Source("geshkovski2023mathematical", "eq. SA", "with heads and a mask"),
    axes={i: n, j: n, a: d, b: d, e: d, h: H},
    equations={x[i, a]: on_the_sphere(pull)},
    params=PARAMS,
    initial=START,
    sizes={n: 16, d: 3, H: 1},
    span=(0.0, 15.0),
    time="depth",
    observables={"attention": attention, "entropy": entropy(attention, (j, n)), "product": product, "merged": pairs / Max(n * (n - 1), 1)},
    views=(Lines("merged"), Lines("entropy"), Points("x"), Attention("attention")),
    invariants=(Invariant("spheres stay spheres", norm, "constant", when=ON_SPHERE),),
    display={"attention": attention, "pull": pull(a)},
)
