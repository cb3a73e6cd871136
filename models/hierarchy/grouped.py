"""Attention over the leaves of a latent binary tree, tokens grouped by the height of the ancestor they share with the query.

A tree of depth L with N children a node: n_H = (N - 1) N^(H - 1) leaves share with the query leaf an ancestor of height H, and
co-occur with it with probability P_H, exactly (Theorem 5, before its approximation 1 - H/L). By symmetry their weights are
equal: one number v_H for each H = 1..L-1 in place of N^(L-1) - 1. Near tokens are learnt first, far ones catch up, so the
attention is first sparse and then spreads; a deeper tree delays the far ones.

Assumed: the equation of joma.nonlinear_softmax (T = 2) with mu_H = kappa P_H; all edges below the root's children symmetric with
correlation rho, leaves that share only the root left out. Component h holds H = h + 1.
"""

from typing import Any

import numpy as np
from sympy import Interval, Sum, Symbol, oo

from odesim.symbolic import ClosedForm, Constraint, Event, IndexedBase, Invariant, Param, Source, System, index, over, sizes, softmax, xlogy

(h,) = index("h")
(L,) = sizes("L")
v = IndexedBase("v", shape=(L - 1,))
N, rho, rho0, kappa = Symbol("N", positive=True), Symbol("rho", positive=True), Symbol("rho0", real=True), Symbol("kappa", real=True)


def clock(far: np.ndarray, v0: np.ndarray, mu: np.ndarray, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The clock int_v0^v exp(-u^2/2) / (mu - u) du (L-1,), where the gap mu - v (L-1,) is exp(-far) times its start.

    x, weight: nodes and weights of Gauss's rule.
    """
    u = mu[:, None] - (mu - v0)[:, None] * np.exp(-far[:, None] * (x + 1) / 2)
    return (far[:, None] / 2 * weight * np.exp(-(u**2) / 2)).sum(axis=1)


def separated(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """The distance (L-1,) of v, to first order, from its value at time t by separation of variables.

    All groups share one clock; the masses sum to 1, so the sum of n_H times far, over all groups, is t.
    """
    from scipy.special import roots_legendre

    v, v0, rho = y["v"], y0["v"], params["rho"]
    H = np.arange(1, len(v) + 1)
    mu = params["kappa"] * (1 - (1 - rho ** (2 * H)) / (2 * (1 - rho ** len(v) * params["rho0"])))
    n = (params["N"] - 1) * params["N"] ** (H - 1)
    rate, start = np.exp(v**2 / 2), np.where(mu == v0, 1, mu - v0)
    far = -np.log(np.maximum(np.abs((mu - v) / start), 1e-17))
    rule = roots_legendre(200)
    reading = clock(far, v0, mu, *rule)
    common = reading[np.argmax(np.abs(mu - v) * rate)]
    for _ in range(5):  # a group at rest has no gap left to read, but the clock still gives its position
        far = far + (common - clock(far, v0, mu, *rule)) * np.exp((mu - (mu - v0) * np.exp(-far)) ** 2 / 2)
    late = common + (t - (n * far).sum()) / (n * rate).sum() - reading
    return (v - mu) * np.expm1(-late * rate)


H = h + 1
P = 1 - (1 - rho ** (2 * H)) / (2 * (1 - rho ** (L - 1) * rho0))
mu = kappa * P
n = (N - 1) * N**h
z = v[h] ** 2 / 2
mass = softmax(z, (h, L - 1), weight=N**h)  # n but for a factor that cancels
entropy = -over(Sum, n * xlogy(mass / n, mass / n), (h, L - 1))

SYSTEM = System(
    name="hierarchy.grouped",
    source=Source("tian2023joma", "Theorems 4 and 5", "grouped by height H = h + 1 of the common ancestor, with the exact P_H"),
    axes={h: L - 1},
    equations={v[h]: (mu - v[h]) * mass / n},
    params=(
        Param(N, 2.0, Interval(2, oo), "number of children of a node"),
        Param(rho, 0.95, Interval.Lopen(0, 1), "correlation of a node with its parent"),
        Param(rho0, 0.95, Interval.Ropen(-1, 1), "mean polarity 2 P[y = 0] - 1 of the root's children"),
        Param(kappa, 3.0, Interval(-oo, oo), "resting weight of a token that always occurs with the query"),
    ),
    initial={v[h]: 0.05},
    sizes={L: 5},
    span=(0.0, 100.0),
    time="time of gradient flow",
    observables={"P": P, "mass": mass, "entropy": entropy},
    display={"P": P, "n": n, "mass": mass},
    constraints=(Constraint("L is at least 2", L - 2, ">=0"),),
    invariants=(
        Invariant("masses sum to 1", over(Sum, mass, (h, L - 1)), "constant"),
        Invariant("approach", (mu - v[h]) ** 2, "nonincreasing"),
    ),
    events=(
        Event("half way", v[h] - mu / 2, doc="the weight of a height is half of its resting value"),
        Event("nine tenths", v[h] - 9 * mu / 10, doc="the weight of a height is nine tenths of its resting value"),
    ),
    closed_forms=(ClosedForm("separation of variables", "for every start", separated, "implicit"),),
)
