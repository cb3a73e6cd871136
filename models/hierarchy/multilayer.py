"""Two layers of MLP with exp attention and a linear decoder, trained on samples: every hidden node is a query of its own.

V1, V2 hold the weights of the nodes, xi1, xi2 those of their own token, U the decoder. The attention logits of a node are half its
squared weights (Theorem 1), so that a weight acts as V exp(V^2/2): a salient input is amplified. hierarchy.multilayer:JOINT has the
logits Z1, Z2 as states of their own, SOFTPLUS and RELU another activation, THREE three layers with relu. With the identity or relu the
weights of a node balance: the squares of those that leave it less those that enter it are constant.

Assumed: all samples in every step, cross-entropy; logits are free parameters that do not depend on activations, and gradients reach the
layer below through values alone. V = U = 0 is a fixed point; starts are spread numbers of order 1/sqrt(inputs). With relu a run ends
(sliding) where both sides of a node's kink push a sample back to it.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
from sympy import Indexed, Interval, Max, Naturals0, Sum, cos, cosh, exp, log, oo, sqrt

from odesim.symbolic import (
    Constraint,
    IndexedBase,
    Invariant,
    Param,
    Source,
    System,
    at,
    gradient_flow,
    index,
    logsumexp,
    over,
    sizes,
    softmax,
)

n, i, j, k, o, c = index("n i j k o c")
N, K0, K1, K2, K3, C = sizes("N K0 K1 K2 K3 C")
AXES = ((i, K0), (j, K1), (k, K2), (o, K3))
"""Tokens, then the nodes of each layer."""
V, Z, xi = (
    {s: IndexedBase(f"{name}{s}", shape=tuple(AXES[t][1] for t in ((s, s - 1) if name != "xi" else (s,)))) for s in (1, 2, 3)}
    for name in ("V", "Z", "xi")
)
V1, V2, Z1, Z2 = V[1], V[2], Z[1], Z[2]
X, pi, y = IndexedBase("X", shape=(N, K0)), IndexedBase("pi", shape=(N,)), IndexedBase("y", shape=(N,))
PHI: dict[str, Callable[[Any], Any]] = {
    "identity": lambda u: u,
    "softplus": lambda u: u / 2 + log(2 * cosh(u / 2)),
    "relu": lambda u: Max(u, 0),  # its slope at 0 is 1/2
}


def presence(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """X (N, K0): each token with probability 1/2, always the same."""
    return (np.random.default_rng(0).random((sizes["N"], sizes["K0"])) < 0.5).astype(float)


def even(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """pi (N,): 1/N."""
    return np.full(sizes["N"], 1 / sizes["N"])


def classes(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """y (N,): n modulo C."""
    return np.arange(sizes["N"]) % sizes["C"]


def decoder(depth: int) -> IndexedBase:
    """U (C, nodes of the last layer)."""
    return IndexedBase("U", shape=(C, AXES[depth][1]))


def start(depth: int, own: float = 0.0) -> dict[Any, Any]:
    """{state: its start}: cosines over sqrt(inputs) for weights, a number for the nodes' own tokens."""
    found: dict[Any, Any] = {}
    for s, (to, of, turn) in zip(range(1, depth + 1), ((3, 5, 1), (5, 3, 2), (4, 5, 4)), strict=False):
        (x, inputs), (node, _) = AXES[s - 1], AXES[s]
        found[V[s][node, x]] = cos(to * node + of * x + turn) / sqrt(inputs)
    last, inputs = AXES[depth]
    found[decoder(depth)[c, last]] = cos(4 * c + 3 * last + 3) / sqrt(inputs)
    return found | {xi[s][AXES[s][0]]: own for s in range(1, depth + 1)}


START, U = start(2), decoder(2)
ORDINAL, NUMBER = ("first", "second", "third"), {2: "two", 3: "three"}


def balance(depth: int) -> tuple[Invariant, ...]:
    """The laws of nodes whose activation is homogeneous: squares of what leaves a node less those of what enters it."""
    laws = []
    for s in range(1, depth + 1):
        (x, inputs), (node, _) = AXES[s - 1], AXES[s]
        above, to = (V[s + 1], AXES[s + 1]) if s < depth else (decoder(depth), (c, C))
        leaving, entering = over(Sum, above[to[0], node] ** 2, to), over(Sum, V[s][node, x] ** 2, (x, inputs))
        laws.append(Invariant(f"balance of the {ORDINAL[s - 1]} layer", leaving - entering - xi[s][node] ** 2, "constant"))
    return tuple(laws)


def theorem_1(e: Any) -> Any:
    """e with half the squared weights in the place of the logits."""
    weight = {f"Z{s}": weights for s, weights in V.items()}
    return e.replace(lambda x: isinstance(x, Indexed) and str(x.base) in weight, lambda x: weight[str(x.base)][x.indices] ** 2 / 2)


def hidden(phi: str, depth: int) -> dict[str, Any]:
    """{h1, h2, ...: what the nodes of a layer say of sample n}."""
    below, found = X[n, i], {}
    for s in range(1, depth + 1):
        (x, inputs), (node, _) = AXES[s - 1], AXES[s]
        below = PHI[phi](over(Sum, V[s][node, x] * exp(Z[s][node, x]) * below, (x, inputs)) + xi[s][node])
        found[f"h{s}"] = below
    return found


def multilayer(name: str, phi: str, laws: tuple[Invariant, ...], joint: bool = False, depth: int = 2) -> System:
    """The System with this activation. joint: whether the logits are states; else they are V^2/2 in the equations of the others."""
    said, first = hidden(phi, depth), start(depth, 0.1 if phi == "relu" else 0)  # at 0 a sample without tokens is on the kink
    score = over(Sum, decoder(depth)[c, AXES[depth][0]] * said[f"h{depth}"], AXES[depth])
    loss = over(Sum, pi[n] * (logsumexp(score, (c, C)) - at(score, {c: y[n]})), (n, N))
    weights: Mapping[Any, Any] = gradient_flow(loss, dict.fromkeys(first, 1))
    shown = {"loss": loss, **said, "p": softmax(score, (c, C))}
    if joint:
        logits = {Z[s][V_s.indices]: e**2 / 2 for V_s, e in first.items() for s in V if V_s.base == V[s]}
        weights, first = {**weights, **gradient_flow(loss, dict.fromkeys(logits, 1))}, first | logits
        laws += tuple(
            Invariant(f"Theorem 1, {ORDINAL[s - 1]} layer", z - V[s][z.indices] ** 2 / 2, "constant") for s, z in enumerate(logits, 1)
        )
    else:
        weights, shown = ({key: theorem_1(e) for key, e in part.items()} for part in (weights, shown))
    loss = shown.pop("loss")
    return System(
        name=name,
        source=Source("tian2023joma", "Section 5", f"{NUMBER[depth]} layers, each node a query; phi = {phi}"),
        axes={n: N, **dict(AXES[: depth + 1]), c: C},
        equations=weights,
        params=(
            Param(X, presence, Interval(-oo, oo), "presence of a token in a sample"),
            Param(pi, even, Interval(0, 1), "weight of a sample"),
            Param(y, classes, Naturals0, "class of a sample", indexes=C, cover=False),
        ),
        initial=first,
        sizes={N: 4, **dict(zip((K0, K1, K2, K3)[: depth + 1], (5, 3, 2, 3), strict=False)), C: 4},
        span=(0.0, 10.0),
        time="time of gradient flow",
        observables={"loss": loss},
        display=shown,
        constraints=(Constraint("pi sums to 1", over(Sum, pi[n], (n, N)) - 1, "==0", 1e-9),),
        invariants=(*laws, Invariant("loss falls", loss, "nonincreasing")),
    )


SYSTEM = multilayer("hierarchy.multilayer", "identity", balance(2))
VARIANTS = {
    "SOFTPLUS": cache(partial(multilayer, "hierarchy.multilayer.softplus", "softplus", ())),
    "RELU": cache(partial(multilayer, "hierarchy.multilayer.relu", "relu", balance(2))),
    "JOINT": cache(partial(multilayer, "hierarchy.multilayer.joint", "identity", balance(2), joint=True)),
    "THREE": cache(partial(multilayer, "hierarchy.multilayer.three", "relu", balance(3), depth=3)),
}
