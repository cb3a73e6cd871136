"""Two layers of MLP with exp attention, linear throughout, on a squared loss: the data enter by two covariances alone.

V1, V2 hold the weights of the nodes, which act as M = V exp(V^2/2) (hierarchy.multilayer), U the decoder. The closure is exact: with a
linear activation all gradients hold the data in Sig_cx - U P Sig_xx, P = M2 M1. Sig_xx (symmetric) is the covariance of the inputs,
Sig_cx that of classes and inputs: of a latent tree with infinitely many samples, or of a table of sequences. By default a tree with two
classes, each of which switches on one child of the root, with a binary tree of correlation .9 below each child.

Assumed: a squared loss of centred labels, no bias. A root label teaches the split at the root alone: intermediate latents get no signal.
The weights of a node balance: the squares of those that leave it less those that enter it are constant.
"""

from typing import Any

import numpy as np
from sympy import Interval, Sum, exp, oo

from odesim.models.hierarchy.multilayer import K0, K1, K2, START, V1, V2, Z1, Z2, C, U, c, i, j, k, theorem_1
from odesim.symbolic import IndexedBase, Invariant, Param, Source, System, at, gradient_flow, index, over

(h,) = index("h")
xx, cx = IndexedBase("Sig_xx", shape=(K0, K0)), IndexedBase("Sig_cx", shape=(C, K0))
RHO = 0.9


def side_and_depth(leaves: int) -> tuple[np.ndarray, int]:
    """The child of the root (leaves,) below which each leaf is, and the number of edges between them."""
    half = max((leaves + 1) // 2, 1)
    return np.arange(leaves) // half, int(half - 1).bit_length()


def of_leaves(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """Sig_xx (K0, K0) of leaves +-1: RHO^edges below one child of the root, -RHO^edges across, where the root counts none."""
    side, depth = side_and_depth(sizes["K0"])
    place = np.arange(sizes["K0"]) % max((sizes["K0"] + 1) // 2, 1)
    height = np.array([[int(a ^ b).bit_length() for b in place] for a in place])
    return np.where(side[:, None] == side, RHO ** (2 * height), -(RHO ** (2 * depth)))


def of_classes(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """Sig_cx (C, K0) of equally likely classes: +-RHO^depth / C, plus below the child that a class switches on."""
    side, depth = side_and_depth(sizes["K0"])
    return np.where(np.arange(sizes["C"])[:, None] % 2 == side, 1.0, -1.0) * RHO**depth / sizes["C"]


both = over(Sum, V2[k, j] * exp(Z2[k, j]) * V1[j, i] * exp(Z1[j, i]), (j, K1))  # P[k, i]
W = over(Sum, U[c, k] * both, (k, K2))
loss = over(Sum, over(Sum, W * (over(Sum, xx[i, h] * at(W, {i: h}), (h, K0)) / 2 - cx[c, i]), (i, K0)), (c, C))
flow = gradient_flow(loss, {V1[j, i]: 1, V2[k, j]: 1, U[c, k]: 1})

SYSTEM = System(
    name="hierarchy.covariance",
    source=Source("tian2023joma", "Section 5", "linear activation, squared loss, infinitely many samples"),
    axes={i: K0, j: K1, k: K2, c: C},
    equations={key: theorem_1(e) for key, e in flow.items()},
    params=(
        Param(xx, of_leaves, Interval(-oo, oo), "covariance of the inputs"),
        Param(cx, of_classes, Interval(-oo, oo), "covariance of classes and inputs"),
    ),
    initial={key: START[key] for key in flow},
    sizes={K0: 8, K1: 3, K2: 2, C: 2},
    span=(0.0, 10.0),
    time="time of gradient flow",
    observables={"loss": theorem_1(loss), "W": theorem_1(W)},
    display={"P": theorem_1(both), "W": theorem_1(W)},
    invariants=(
        Invariant("balance of the first layer", over(Sum, V2[k, j] ** 2, (k, K2)) - over(Sum, V1[j, i] ** 2, (i, K0)), "constant"),
        Invariant("balance of the second layer", over(Sum, U[c, k] ** 2, (c, C)) - over(Sum, V2[k, j] ** 2, (j, K1)), "constant"),
        Invariant("loss falls", theorem_1(loss), "nonincreasing"),
    ),
)
