"""Self-attention without a sphere, dx_i/dt = sum_j A_ij V x_j, in a frame that grows as exp(tV): z_i = exp(-tV) x_i.

dz_i/dt = sum_j softmax_j(<Q E z_i, K E z_j>) V (z_j - z_i) with E = exp(tV), a state of its own: dE/dt = V E. The attention becomes a
hard maximum as E grows. With V = I the tokens go to the boundary of a convex polytope, and their hull never grows; with one positive
largest eigenvalue of V they gather on a few parallel hyperplanes.

Assumed: one set of weights, one head, no normalisation, no MLP.
"""

from typing import Any

import numpy as np
from sympy import Interval, KroneckerDelta, Sum, oo

from odesim.symbolic import (
    Attention,
    ClosedForm,
    IndexedBase,
    Invariant,
    Lines,
    MaxOver,
    Param,
    Points,
    Source,
    System,
    entropy,
    index,
    over,
    sizes,
    softmax,
)

i, j, a, b, c, e = index("i j a b c e")
n, d = sizes("n d")
z, z0 = IndexedBase("z", shape=(n, d)), IndexedBase("z0", shape=(n, d))
E, Q, K, V = (IndexedBase(name, shape=(d, d)) for name in "EQKV")


def uniform(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """z0 (n, d): numbers from -5 to 5, always the same."""
    return np.random.default_rng(0).uniform(-5, 5, (sizes["n"], sizes["d"]))


def identity(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """Q, K or V (d, d): the identity."""
    return np.eye(sizes["d"])


def growth(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """E (d, d) at time t: exp(tV) E(0)."""
    from scipy.linalg import expm

    return {"E": expm(t * np.asarray(params["V"])) @ y0["E"]}


def token(i: Any, a: Any) -> Any:
    """The token itself, E z_i."""
    return over(Sum, E[a, b] * z[i, b], (b, d))


query, key = over(Sum, Q[c, a] * token(i, a), (a, d)), over(Sum, K[c, a] * token(j, a), (a, d))
attention = softmax(over(Sum, query * key, (c, d)), (j, n))
mean = over(Sum, attention * z[j, b], (j, n))
IS_ONE = over(Sum, (V[a, b] - KroneckerDelta(a, b)) ** 2, (a, d), (b, d)) <= 0

SYSTEM = System(
    name="particles.rescaled",
    source=Source("geshkovski2023emergence", "eq. 1.4", "exp(tV) as a state"),
    axes={i: n, j: n, a: d, b: d, c: d, e: d},
    equations={z[i, a]: over(Sum, V[a, b] * (mean - z[i, b]), (b, d)), E[a, b]: over(Sum, V[a, c] * E[c, b], (c, d))},
    params=(
        Param(Q, identity, Interval(-oo, oo), "queries of the tokens"),
        Param(K, identity, Interval(-oo, oo), "keys of the tokens"),
        Param(V, identity, Interval(-oo, oo), "values of the tokens"),
        Param(z0, uniform, Interval(-oo, oo), "tokens at the start"),
    ),
    initial={z[i, a]: z0[i, a], E[a, b]: KroneckerDelta(a, b)},
    sizes={n: 20, d: 2},
    span=(0.0, 4.0),
    time="depth",
    observables={"attention": attention, "entropy": entropy(attention, (j, n))},
    views=(Lines("entropy"), Attention("attention"), Points("z")),
    display={"attention": attention},
    invariants=(
        Invariant("hull, upper side", over(MaxOver, z[i, a], (i, n)), "nonincreasing", when=IS_ONE),
        Invariant("hull, lower side", over(MaxOver, -z[i, a], (i, n)), "nonincreasing", when=IS_ONE),
    ),
    closed_forms=(ClosedForm("growth of tokens", "for every V and start", growth),),
)
