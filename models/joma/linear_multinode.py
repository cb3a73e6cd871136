"""K hidden nodes with a linear activation and exp attention: rows of V grow apart until one row is all there is.

V (M, K) holds the weights of K nodes over M contextual tokens, half the squared length of row l the attention logit of token l,
Delta (M, K) the saliency of a token to a node. From V = 0 every row stays parallel to its row of Delta and grows like one
component of joma.linear. The rank is that of Delta all the time; the stable rank |.|_F^2 / |.|_2^2 falls towards 1, that of dV/dt
exponentially earlier than that of V.

Assumed: one query, a signal that does not change in time, equal learning rates, no normalisation of the attention.
The exponent is the row sum 1/2 sum_j V[l, j]^2: the product of matrices in the paper's notation reads otherwise.
"""

from typing import Any

import numpy as np
from sympy import Eq, Interval, Sum, erf, exp, oo, pi, sqrt

from odesim.symbolic import (
    ClosedForm,
    Event,
    IndexedBase,
    Invariant,
    Param,
    Source,
    System,
    entropy,
    index,
    logsumexp,
    over,
    sizes,
    softmax,
    time,
)

l, k, j = index("l k j")
M, K = sizes("M K")
V, Delta = IndexedBase("V", shape=(M, K)), IndexedBase("Delta", shape=(M, K))


def gaussian(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """Delta (M, K): normal numbers, always the same, scaled so that the longest row is 1 and t* = sqrt(pi/2)."""
    Delta = np.random.default_rng(0).standard_normal((sizes["M"], sizes["K"]))
    return Delta / np.linalg.norm(Delta, axis=1).max()


def solution(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """V (M, K) at time t from V = 0; inf or nan from t* on."""
    from scipy.special import erfinv

    length = np.linalg.norm(params["Delta"], axis=1, keepdims=True)
    unit = params["Delta"] / np.where(length == 0, 1, length)
    return {"V": unit * np.sqrt(2) * erfinv(np.sqrt(2 / np.pi) * length * t)}


def stable_rank(a: np.ndarray) -> np.ndarray:
    """|a|_F^2 / |a|_2^2 of a (..., M, K); 0 of a matrix of zeros."""
    largest = np.linalg.norm(a, ord=2, axis=(-2, -1))
    return (np.linalg.norm(a, axis=(-2, -1)) / np.where(largest == 0, 1, largest)) ** 2


def stable_rank_V(t: float, states: dict[str, Any], derivatives: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """Stable rank of V; where V is 0, that of dV/dt, to which it tends."""
    V, dV = np.asarray(states["V"], float), np.asarray(derivatives["V"], float)
    return stable_rank(np.where(np.any(V != 0, axis=(-2, -1), keepdims=True), V, dV))


def stable_rank_dV(t: float, states: dict[str, Any], derivatives: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """Stable rank of dV/dt."""
    return stable_rank(np.asarray(derivatives["V"], float))


z = over(Sum, V[l, j] ** 2, (j, K)) / 2
length = sqrt(over(Sum, Delta[l, j] ** 2, (j, K)))
spread = entropy(softmax(z, (l, M)), (l, M))

SYSTEM = System(
    name="joma.linear_multinode",
    source=Source("tian2023joma", "Theorem 2, several nodes", "exp attention, no normaliser; exponent read as the row sum"),
    axes={l: M, k: K},
    equations={V[l, k]: Delta[l, k] * exp(z)},
    params=(Param(Delta, gaussian, Interval(-oo, oo), "saliency of a token to a node: mean signal of the node where it occurs"),),
    initial={V[l, k]: 0},
    sizes={M: 40, K: 20},
    span=(0.0, 1.25),
    time="time of gradient flow",
    observables={"stable_rank_V": stable_rank_V, "stable_rank_dV": stable_rank_dV, "entropy": spread},
    invariants=(
        Invariant("erf grows with t", erf(sqrt(z)) - sqrt(2 / pi) * length * time, "constant", when=Eq(V[l, k], 0)),
        Invariant("rows stay parallel to Delta", V[l, k] * Delta[l, 0] - V[l, 0] * Delta[l, k], "constant"),
        Invariant("entropy falls", spread, "nonincreasing", when=Eq(V[l, k], 0)),
    ),
    # past a length of 6 only a fraction erfc(6/sqrt 2) = 2e-9 of the time is left
    events=(Event("a row reaches 6", z - 18, direction=1, doc="a row has run away: all but 2e-9 of the time to its blow-up has passed"),),
    closed_forms=(ClosedForm("inverse error function", "from V = 0, before t*", solution),),
    growth=exp(logsumexp(z, (l, M))),
)
