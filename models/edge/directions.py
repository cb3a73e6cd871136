"""The central flow of several directions at the edge at once: the spread across each is what keeps all of them there, and none is negative.

The loss is sum_i S_i x_i^2/2 - a.y with S_i = s_i + sum_k G[i, k] y_k, the sharpness across direction i. In the mean steps of gradient
descent are y' = eta (a - G^T sigma2/2) where sigma2_i, the mean of x_i^2, and the distance 2/eta - S_i from the edge are not negative, and
one of them is 0. At rest in all directions G G^T sigma2 = 2 G a. A direction may be held below the edge by the others, though a alone leads
it there. Here the edge is soft: sigma2_i is stiff (S_i - 2/eta) above it and 0 below, so that no problem of complementarity has to be
solved, and S_i stays above the edge by sigma2_i/stiff. As stiff grows this is the central flow.

Assumed: directions across that do not mix; time is counted in steps.
"""

from typing import Any

import numpy as np
from scipy.linalg import expm
from sympy import Interval, Max, Reals, Sum, oo, symbols

from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, index, over, sizes

i, j, k = index("i j k")
d, n = sizes("d n")
y, G, a, s = IndexedBase("y", shape=(n,)), IndexedBase("G", shape=(d, n)), IndexedBase("a", shape=(n,)), IndexedBase("s", shape=(d,))
eta, stiff = symbols("eta stiff", positive=True)


def coupled(sizes: dict[str, int]) -> np.ndarray:
    """G (d, n): 1/(1 + |i - k|)^2."""
    return 1 / (1.0 + np.abs(np.arange(sizes["d"])[:, None] - np.arange(sizes["n"]))) ** 2


def S(i: Any) -> Any:
    """The sharpness across direction i."""
    return s[i] + over(Sum, G[i, k] * y[k], (k, n))


def sigma2(i: Any) -> Any:
    """The mean of x_i^2."""
    return stiff * Max(0, S(i) - 2 / eta)


def above(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, np.ndarray]:
    """y (n,): a linear flow, as long as all directions are above the edge."""
    G, eta, stiff = params["G"], params["eta"], params["stiff"]
    rate = np.zeros((len(y0["y"]) + 1,) * 2)
    rate[:-1, :-1] = -eta * stiff / 2 * G.T @ G
    rate[:-1, -1] = eta * (params["a"] - stiff / 2 * G.T @ (params["s"] - 2 / eta))
    return {"y": (expm(t * rate) @ [*y0["y"], 1.0])[:-1]}


SYSTEM = System(
    name="edge.directions",
    source=Source("cohen2024central", "Abstract", "several directions, with a soft edge"),
    axes={k: n, i: d},
    equations={y[k]: eta * (a[k] - over(Sum, sigma2(i) * G[i, k], (i, d)) / 2)},
    params=(
        Param(eta, 0.1, Interval.open(0, oo), "learning rate"),
        Param(G, coupled, Reals, "growth of the sharpness across i along y_k"),
        Param(a, 3e-3, Reals, "descent along the floor"),
        Param(s, 20.0, Reals, "sharpness across each direction at y = 0"),
        Param(stiff, 1.0, Interval.open(0, oo), "how sharp the edge is"),
    ),
    initial={y[k]: 0.0},
    sizes={d: 2, n: 2},
    span=(0.0, 100.0),
    time="steps",
    observables={"sharpness": S(i), "sigma2": sigma2(i)},
    display={"S": S(i), "sigma2": sigma2(i)},
    invariants=(
        Invariant("loss falls", over(Sum, sigma2(j) ** 2, (j, d)) / (4 * stiff) - over(Sum, a[k] * y[k], (k, n)), "nonincreasing"),
    ),
    closed_forms=(ClosedForm("above the edge", "from S at the edge or above in all directions, as long as that holds", above),),
)
