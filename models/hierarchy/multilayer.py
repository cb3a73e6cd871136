"""Two layers of MLP with exp attention and a linear decoder, trained on samples: every hidden node is a query of its own.

V1, V2 hold the weights of the nodes, xi1, xi2 those of their own token, U the decoder. The attention logits of a node are half its
squared weights (Theorem 1), so that a weight acts as V exp(V^2/2): a salient input is amplified. hierarchy.multilayer:JOINT has the
logits Z1, Z2 as states of their own, hierarchy.multilayer:SOFTPLUS another activation. With the identity the weights of a node
balance: the squares of those that leave it less those that enter it are constant.

Assumed: all samples in every step, cross-entropy; logits are free parameters that do not depend on activations, and gradients reach the
layer below through values alone. V = U = 0 is a fixed point; starts are spread numbers of order 1/sqrt(inputs).
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from sympy import Indexed, Interval, Naturals0, Sum, cos, cosh, exp, log, oo, sqrt

from odesim.symbolic import Constraint, IndexedBase, Invariant, Param, Source, System, gradient_flow, index, logsumexp, over, sizes, softmax

n, i, j, k, c = index("n i j k c")
N, K0, K1, K2, C = sizes("N K0 K1 K2 C")
V1, V2, U = IndexedBase("V1", shape=(K1, K0)), IndexedBase("V2", shape=(K2, K1)), IndexedBase("U", shape=(C, K2))
Z1, Z2 = IndexedBase("Z1", shape=(K1, K0)), IndexedBase("Z2", shape=(K2, K1))
xi1, xi2 = IndexedBase("xi1", shape=(K1,)), IndexedBase("xi2", shape=(K2,))
X, pi, y = IndexedBase("X", shape=(N, K0)), IndexedBase("pi", shape=(N,)), IndexedBase("y", shape=(N,))
PHI: dict[str, Callable[[Any], Any]] = {"identity": lambda u: u, "softplus": lambda u: u / 2 + log(2 * cosh(u / 2))}


def presence(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """X (N, K0): each token with probability 1/2, always the same."""
    return (np.random.default_rng(0).random((sizes["N"], sizes["K0"])) < 0.5).astype(float)


def even(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """pi (N,): 1/N."""
    return np.full(sizes["N"], 1 / sizes["N"])


def classes(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """y (N,): n modulo C."""
    return np.arange(sizes["N"]) % sizes["C"]


START: dict[Any, Any] = {
    V1[j, i]: cos(3 * j + 5 * i + 1) / sqrt(K0),
    V2[k, j]: cos(5 * k + 3 * j + 2) / sqrt(K1),
    U[c, k]: cos(4 * c + 3 * k + 3) / sqrt(K2),
    xi1[j]: 0,
    xi2[k]: 0,
}
LOGITS = {Z1[j, i]: START[V1[j, i]] ** 2 / 2, Z2[k, j]: START[V2[k, j]] ** 2 / 2}
BALANCE = (
    Invariant(
        "balance of the first layer", over(Sum, V2[k, j] ** 2, (k, K2)) - over(Sum, V1[j, i] ** 2, (i, K0)) - xi1[j] ** 2, "constant"
    ),
    Invariant("balance of the second layer", over(Sum, U[c, k] ** 2, (c, C)) - over(Sum, V2[k, j] ** 2, (j, K1)) - xi2[k] ** 2, "constant"),
)
THEOREM = (
    Invariant("Theorem 1, first layer", Z1[j, i] - V1[j, i] ** 2 / 2, "constant"),
    Invariant("Theorem 1, second layer", Z2[k, j] - V2[k, j] ** 2 / 2, "constant"),
)


def theorem_1(e: Any) -> Any:
    """e with half the squared weights in the place of the logits."""
    weight = {"Z1": V1, "Z2": V2}
    return e.replace(lambda x: isinstance(x, Indexed) and str(x.base) in weight, lambda x: weight[str(x.base)][x.indices] ** 2 / 2)


def multilayer(name: str, phi: str, laws: tuple[Invariant, ...], joint: bool = False) -> System:
    """The System with this activation. joint: whether the logits are states; else they are V^2/2 in the equations of the others."""
    h1 = PHI[phi](over(Sum, V1[j, i] * exp(Z1[j, i]) * X[n, i], (i, K0)) + xi1[j])
    h2 = PHI[phi](over(Sum, V2[k, j] * exp(Z2[k, j]) * h1, (j, K1)) + xi2[k])
    score, own = (over(Sum, U[row, k] * h2, (k, K2)) for row in (c, y[n]))
    loss = over(Sum, pi[n] * (logsumexp(score, (c, C)) - own), (n, N))
    weights: dict[Any, Any] = gradient_flow(loss, dict.fromkeys(START, 1))
    shown = {"loss": loss, "h1": h1, "h2": h2, "p": softmax(score, (c, C))}
    if joint:
        weights |= gradient_flow(loss, dict.fromkeys(LOGITS, 1))
    else:
        weights, shown = ({key: theorem_1(e) for key, e in part.items()} for part in (weights, shown))
    loss = shown.pop("loss")
    return System(
        name=name,
        source=Source("tian2023joma", "Section 5", f"two layers, each node a query; phi = {phi}"),
        axes={n: N, i: K0, j: K1, k: K2, c: C},
        equations=weights,
        params=(
            Param(X, presence, Interval(-oo, oo), "presence of a token in a sample"),
            Param(pi, even, Interval(0, 1), "weight of a sample"),
            Param(y, classes, Naturals0, "class of a sample", indexes=C, cover=False),
        ),
        initial=START | (LOGITS if joint else {}),
        sizes={N: 4, K0: 5, K1: 3, K2: 2, C: 4},
        span=(0.0, 10.0),
        time="time of gradient flow",
        observables={"loss": loss},
        display=shown,
        constraints=(Constraint("pi sums to 1", over(Sum, pi[n], (n, N)) - 1, "==0", 1e-9),),
        invariants=(*laws, Invariant("loss falls", loss, "nonincreasing")),
    )


SYSTEM = multilayer("hierarchy.multilayer", "identity", BALANCE)
VARIANTS = {
    "SOFTPLUS": cache(partial(multilayer, "hierarchy.multilayer.softplus", "softplus", ())),
    "JOINT": cache(partial(multilayer, "hierarchy.multilayer.joint", "identity", (*BALANCE, *THEOREM), joint=True)),
}
