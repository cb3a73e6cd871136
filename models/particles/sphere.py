"""Self-attention as particles on a sphere: tokens x_i move to the mean of the others' values, weighted by attention.

dx_i/dt is the part of sum_h sum_j A^h_ij V^h x_j tangent to the sphere at x_i, A^h_ij = softmax_j(beta <Q^h x_i, K^h x_j>): a transformer
with the same weights in every layer, with depth as time. With Q = K = V = I tokens form clusters, which merge: soon at small beta, after
times of order exp(beta) at large. Spheres stay spheres by the equation itself; nothing is normalised on the way. The observable merged
is the share of pairs of tokens with an inner product above .999.

Assumed: one set of weights, layer normalisation to the sphere, no MLP.
"""

from typing import Any

import numpy as np
from sympy import Expr, Interval, Max, Piecewise, Rational, Sum, Symbol, oo, sqrt

from odesim.symbolic import Attention, IndexedBase, Invariant, Lines, Param, Points, Source, System, entropy, index, over, sizes, softmax

# Tokens on a sphere: their starts, and one attention layer that moves them.

a, b, e, h, i, j, l = index("a b e h i j l")
n, d, H = sizes("n d H")
x, x0 = IndexedBase("x", shape=(n, d)), IndexedBase("x0", shape=(n, d))
Q, K, V = (IndexedBase(name, shape=(H, d, d)) for name in "QKV")
beta, causal = (Symbol(name, nonnegative=True) for name in ("beta", "causal"))


def gaussian(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """x0 (n, d): normal numbers, always the same: their directions are uniform on the sphere."""
    return np.random.default_rng(0).standard_normal((sizes["n"], sizes["d"]))


def identity(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """Q or K (H, d, d): the identity in every head."""
    return np.broadcast_to(np.eye(sizes["d"]), (sizes["H"], sizes["d"], sizes["d"]))


def shared_identity(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """V (H, d, d): matrices whose sum over the heads is the identity."""
    return identity(sizes, params) / sizes["H"]


def logit(i: Symbol, j: Symbol) -> Expr:
    """beta <Q x_i, K x_j> in head h."""
    query = over(Sum, Q[h, e, a] * x[i, a], (a, d))
    return beta * over(Sum, query * over(Sum, K[h, e, b] * x[j, b], (b, d)), (e, d))


def seen(i: Symbol, j: Symbol) -> Expr:
    """The weight of token j for token i: with the mask those after it have none."""
    return Piecewise((1 - causal, j > i), (1, True))


def on_the_sphere(pull: Any) -> Expr:
    """The part of `pull`, a function of the component, that is tangent to the sphere at x_i."""
    return pull(a) - over(Sum, pull(b) * x[i, b], (b, d)) * x[i, a]


START = {x[i, a]: x0[i, a] / sqrt(over(Sum, x0[i, b] ** 2, (b, d)))}
ON_SPHERE = over(Sum, (over(Sum, x[i, a] ** 2, (a, d)) - 1) ** 2, (i, n)) <= 1e-24
PARAMS = (
    Param(beta, 1.0, Interval(0, oo), "inverse temperature"),
    Param(Q, identity, Interval(-oo, oo), "queries of each head"),
    Param(K, identity, Interval(-oo, oo), "keys of each head"),
    Param(V, shared_identity, Interval(-oo, oo), "values of each head"),
    Param(causal, 0.0, Interval(0, 1), "mask: 0 a token sees all, 1 those up to itself"),
    Param(x0, gaussian, Interval(-oo, oo), "directions of the tokens at the start, of any length"),
)


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
