"""One hidden node with a saturating activation and exp attention: salient components first, the others catch up.

v holds the weights of the node over M contextual tokens, v^2/2 their attention logits, mu where each comes to rest. The larger
mu, the faster: attention gathers on the salient components, then spreads again once they have arrived. With equal starts the
entropy always ends below its start and rises to its end from below, if only by a hair when max(mu) < 1.

Assumed: one query, exp attention without normaliser, and a force that vanishes at mu: a bounded activation alone does not give
it, it takes a unit-norm constraint or a residual signal. Theorem 4's ratio of the two distances ln 1/(1 - v/mu), which tends to
exp((mu_j^2 - mu_k^2)/2), is a limit for t -> infinity: at moderate times the ratio is far from it.
Stiff for max(mu) > 3: the rate of a component that has arrived is exp(mu^2/2).
"""

from typing import Any

import numpy as np
from sympy import Interval, exp, oo

from odesim.symbolic import (
    ClosedForm,
    Event,
    IndexedBase,
    Invariant,
    Lines,
    Log,
    Param,
    Source,
    System,
    entropy,
    index,
    logsumexp,
    sizes,
    softmax,
)

(l,) = index("l")
(M,) = sizes("M")
v, mu = IndexedBase("v", shape=(M,)), IndexedBase("mu", shape=(M,))


def rising(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """mu (M,): equal steps from 1 (left out) to 3."""
    return 1 + 2 * np.arange(1, sizes["M"] + 1) / sizes["M"]


def time_to_reach(v: np.ndarray, v0: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """The time int_v0^v exp(-u^2/2) / (mu - u) du (M,), integrated over L = ln((mu - v0) / (mu - u)), in which it is smooth."""
    from scipy.special import roots_legendre

    start = np.where(mu == v0, 1, mu - v0)
    L = -np.log(np.maximum(np.abs((mu - v) / start), 1e-17))[:, None]
    x, weight = roots_legendre(200)
    u = mu[:, None] - (mu - v0)[:, None] * np.exp(-L * (x + 1) / 2)
    return (L / 2 * weight * np.exp(-(u**2) / 2)).sum(axis=1)


def arrival(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """The distance (M,) of v, to first order, from its value at time t by separation of variables."""
    v, mu = y["v"], params["mu"]
    late = t - time_to_reach(v, y0["v"], mu)
    return (v - mu) * np.expm1(-late * np.exp(v**2 / 2))


z = v[l] ** 2 / 2
spread = entropy(softmax(z, (l, M)), (l, M))

SYSTEM = System(
    name="joma.nonlinear",
    source=Source("tian2023joma", "Theorem 4", "exp attention, no normaliser"),
    axes={l: M},
    equations={v[l]: (mu[l] - v[l]) * exp(z)},
    params=(Param(mu, rising, Interval(-oo, oo), "where a component comes to rest"),),
    initial={v[l]: 0.05},
    sizes={M: 10},
    span=(0.0, 5.0),
    time="time of gradient flow",
    observables={"entropy": spread, "gap": mu[l] - v[l]},
    views=(Lines("entropy"), Log("gap"), Lines("v")),
    invariants=(Invariant("approach", (mu[l] - v[l]) ** 2, "nonincreasing"),),
    events=(Event("half way", v[l] - mu[l] / 2, doc="a component is half of its resting value"),),
    closed_forms=(ClosedForm("time of arrival", "for every start", arrival, "implicit"),),
    growth=exp(logsumexp(z, (l, M))),
)
