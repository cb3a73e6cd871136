"""K hidden nodes with a linear activation and linear attention: weights and logits grow like exponentials, none runs away in finite time.

V (M, K) holds the weights of K nodes over M contextual tokens, z (M,) the attention logits, Delta (M, K) the saliency of a token to a
node. Each token moves alone: along the direction of its row of Delta, with length |delta|, (V, z) turns hyperbolically.
z^2 - sum_k V^2 is constant (Theorem 1).

Assumed: one query, a signal that does not change in time, equal learning rates. V = z = 0 is a fixed point, in which the paper starts:
z starts from 1 here.
"""

from typing import Any

import numpy as np
from sympy import Interval, Sum, oo

from odesim.models.joma.linear_multinode import gaussian
from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, entropy, index, over, sizes

l, k, j = index("l k j")
M, K = sizes("M K")
V, z, Delta = IndexedBase("V", shape=(M, K)), IndexedBase("z", shape=(M,)), IndexedBase("Delta", shape=(M, K))


def hyperbolic(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """V (M, K) and z (M,) at time t."""
    length = np.linalg.norm(params["Delta"], axis=1)
    unit = params["Delta"] / np.where(length == 0, 1, length)[:, None]
    along, z0 = (unit * y0["V"]).sum(axis=1), y0["z"]
    cosh, sinh = np.cosh(length * t), np.sinh(length * t)
    return {"V": y0["V"] + ((cosh - 1) * along + sinh * z0)[:, None] * unit, "z": cosh * z0 + sinh * along}


share = z[l] ** 2 / over(Sum, z[l] ** 2, (l, M))

SYSTEM = System(
    name="joma.linear_attention",
    source=Source("tian2023joma", "Theorem 1", "linear attention, stationary signal"),
    axes={l: M, k: K},
    equations={V[l, k]: z[l] * Delta[l, k], z[l]: over(Sum, V[l, j] * Delta[l, j], (j, K))},
    params=(Param(Delta, gaussian, Interval(-oo, oo), "saliency of a token to a node: mean signal of the node where it occurs"),),
    initial={V[l, k]: 0, z[l]: 1},
    sizes={M: 10, K: 4},
    span=(0.0, 3.0),
    time="time of gradient flow",
    observables={"entropy": entropy(share, (l, M))},
    display={"share": share},
    invariants=(
        Invariant("Theorem 1", z[l] ** 2 - over(Sum, V[l, j] ** 2, (j, K)), "constant"),
        Invariant("rows stay parallel to Delta", V[l, k] * Delta[l, 0] - V[l, 0] * Delta[l, k], "constant"),
    ),
    closed_forms=(ClosedForm("hyperbolic functions", "for every start", hyperbolic),),
)
