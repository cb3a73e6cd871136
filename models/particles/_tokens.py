"""Tokens on a sphere: their starts, and one attention layer that moves them."""

from typing import Any

import numpy as np
from sympy import Expr, Interval, Piecewise, Sum, Symbol, oo, sqrt

from odesim.symbolic import IndexedBase, Param, index, over, sizes

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
