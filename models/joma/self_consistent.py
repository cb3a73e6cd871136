"""One hidden node with a linear activation, exp attention and a squared loss: it comes to rest by itself.

v holds the weights of the node over M contextual tokens, v^2/2 their attention logits, c the coefficients of the target y = c . x. The
residual shrinks as the node learns: dv/dt = exp(v^2/2) (c - v exp(v^2/2)). This is what joma.nonlinear assumes of a force that
vanishes, from a loss: a component ends at |v| = sqrt(W(c^2)), W Lambert's function, at the rate (1 + v^2) exp(v^2).

Assumed: one query, independent inputs of variance 1, one block, equal learning rates. SGD on v and its logits follows it.
"""

from typing import Any

import numpy as np
from sympy import Interval, LambertW, Sum, exp, oo, sign, sqrt

from odesim.symbolic import ClosedForm, Event, IndexedBase, Invariant, Param, Source, System, entropy, index, over, sizes, softmax

(l,) = index("l")
(M,) = sizes("M")
v, c = IndexedBase("v", shape=(M,)), IndexedBase("c", shape=(M,))


def rising(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """c (M,): equal steps from 0 (left out) to 2."""
    return 2 * np.arange(1, sizes["M"] + 1) / sizes["M"]


def arrival(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """The distance (M,) of v, to first order, from its value at time t by separation of variables.

    The residual c - w, w = v exp(v^2/2), falls as exp(-L), dL/dt = (1 + v^2) exp(v^2).
    """
    from scipy.special import lambertw, roots_legendre

    v, c = y["v"], params["c"]
    w, w0 = v * np.exp(v**2 / 2), y0["v"] * np.exp(y0["v"] ** 2 / 2)
    start = np.where(c == w0, 1, c - w0)
    L = -np.log(np.maximum(np.abs((c - w) / start), 1e-17))[:, None]
    x, weight = roots_legendre(200)
    square = lambertw((c[:, None] - (c - w0)[:, None] * np.exp(-L * (x + 1) / 2)) ** 2).real
    late = t - (L / 2 * weight * np.exp(-square) / (1 + square)).sum(axis=1)
    rate = (1 + v**2) * np.exp(v**2)
    return (w - c) * np.expm1(-late * rate) / ((1 + v**2) * np.exp(v**2 / 2))


z = v[l] ** 2 / 2
rest = sign(c[l]) * sqrt(LambertW(c[l] ** 2))

SYSTEM = System(
    name="joma.self_consistent",
    source=Source("tian2023joma", "Theorems 1 and 4", "the flow of one block on a squared loss"),
    axes={l: M},
    equations={v[l]: exp(z) * (c[l] - v[l] * exp(z))},
    params=(Param(c, rising, Interval(-oo, oo), "coefficients of the target"),),
    initial={v[l]: 0},
    sizes={M: 10},
    span=(0.0, 3.0),
    time="time of gradient flow",
    observables={"loss": over(Sum, (c[l] - v[l] * exp(z)) ** 2, (l, M)) / 2, "entropy": entropy(softmax(z, (l, M)), (l, M)), "rest": rest},
    invariants=(Invariant("residual", (c[l] - v[l] * exp(z)) ** 2, "nonincreasing"),),
    events=(Event("half way", v[l] - rest / 2, doc="a component is half of its resting value"),),
    closed_forms=(ClosedForm("time of arrival", "for every start", arrival, "implicit"),),
)
