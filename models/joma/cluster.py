"""One hidden node with relu on noisy clusters of inputs, before attention: what a nonlinear activation makes of the flow (Theorem 3).

Cluster c has the centre xbar[c], Gaussian noise of deviation sigma in every direction, and a[c], its mean signal times its probability.
v (M,) holds the weights of the node, xi its threshold. A positive cluster pulls v towards its centre, and v grows without bound: relu
alone bounds nothing. The flow climbs sum_c a[c] E[relu(v . x + xi)], and is written from that.

Assumed: a signal that does not change in time, isotropic noise. The theorem's theta_1, theta_2 depend on |v| and on the density of the
noise, not on the activation alone. v = 0 is singular: v starts from .1.
"""

from typing import Any

import numpy as np
from sympy import Interval, Sum, Symbol, erf, exp, oo, pi, sqrt

from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, gradient_flow, index, over, sizes

l, j, c = index("l j c")
M, C = sizes("M C")
v, xi = IndexedBase("v", shape=(M,)), Symbol("xi", real=True)
xbar, a, sigma = IndexedBase("xbar", shape=(C, M)), IndexedBase("a", shape=(C,)), Symbol("sigma", positive=True)


def centres(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """xbar (C, M): unit vectors in random directions of the positive orthant, always the same."""
    x = np.abs(np.random.default_rng(0).standard_normal((sizes["C"], sizes["M"])))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def without_noise(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """v (M,) and xi at time t: straight lines."""
    return {"v": y0["v"] + t * params["a"] @ params["xbar"], "xi": y0["xi"] + t * params["a"].sum()}


r = over(Sum, xbar[c, l] * v[l], (l, M)) + xi
noise = sigma * sqrt(over(Sum, v[j] ** 2, (j, M)))
active = (1 + erf(r / noise / sqrt(2))) / 2
gain = over(Sum, a[c] * (r * active + noise * exp(-((r / noise) ** 2) / 2) / sqrt(2 * pi)), (c, C))

SYSTEM = System(
    name="joma.cluster",
    source=Source("tian2023joma", "Theorem 3", "relu, Gaussian noise; theta_1 and theta_2 as integrals"),
    axes={c: C, l: M},
    equations=gradient_flow(-gain, {v[l]: 1, xi: 1}),
    params=(
        Param(xbar, centres, Interval(-oo, oo), "centre of a cluster"),
        Param(a, 1.0, Interval(-oo, oo), "mean signal of a cluster times its probability"),
        Param(sigma, 0.5, Interval.open(0, oo), "deviation of the noise in each direction"),
    ),
    initial={v[l]: 0.1, xi: 0},
    sizes={M: 10, C: 2},
    span=(0.0, 2.0),
    time="time of gradient flow",
    observables={"active": active, "gain": gain},
    display={"r": r, "active": active},
    invariants=(Invariant("gain rises", gain, "nondecreasing"),),
    closed_forms=(ClosedForm("straight lines", "where sigma is so small that each cluster is active in full", without_noise),),
)
