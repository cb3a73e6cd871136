"""The JoMA block as gradient flow of its loss: MLP weights V and Xi and attention logits Z, trained together.

A sample n has counts X[n, l] of its contextual tokens, a query q[n], a class y[n] and a weight pi[n]:
    b = attention(X[n], Z[:, q[n]] / T),   u_k = b . V[:, k] + Xi[q[n], k],   loss = sum_n pi[n] L(A phi(u), y[n]).
L is the cross-entropy, a squared loss (mse), or linear (fixed): then the signal that goes back to the nodes stays as it is.
With relu a flow ends (sliding) where both sides of a node's kink push a sample back to it; steps of descent go on.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from sympy import Abs, Interval, KroneckerDelta, Max, Naturals0, Sum, Symbol, cosh, exp, log, oo

from odesim.symbolic import (
    Attention,
    Constraint,
    IndexedBase,
    Invariant,
    Lines,
    Matrix,
    Param,
    Source,
    System,
    at,
    entropy,
    gradient_flow,
    index,
    logsumexp,
    over,
    shifted_exp,
    sizes,
    softmax,
)

l, k, m, n, a = index("l k m n a")
Mc, Mq, K, N, C = sizes("Mc Mq K N C")
V, Xi, Z = IndexedBase("V", shape=(Mc, K)), IndexedBase("Xi", shape=(Mq, K)), IndexedBase("Z", shape=(Mc, Mq))
X, pi, A = IndexedBase("X", shape=(N, Mc)), IndexedBase("pi", shape=(N,)), IndexedBase("A", shape=(C, K))
q, y = IndexedBase("q", shape=(N,)), IndexedBase("y", shape=(N,))
T = Symbol("T", positive=True)
eta_w, eta_z = Symbol("eta_w", positive=True), Symbol("eta_z", nonnegative=True)

PHI: dict[str, Callable[[Any], Any]] = {
    "identity": lambda u: u,
    "softplus": lambda u: u / 2 + log(2 * cosh(u / 2)),  # log(1 + exp(u)), its slope finite for every u
    "square": lambda u: u**2,
    "relu": lambda u: Max(u, 0),  # its slope at 0 is 1/2
}
"""Activations by name."""


def cross_entropy(score: Any) -> Any:
    """-ln softmax(score)[y[n]], for score[a] of class a."""
    return logsumexp(score, (a, C)) - at(score, {a: y[n]})


def squared(score: Any) -> Any:
    """Half the squared distance of the scores from 1 for the class of the sample, 0 for others."""
    return over(Sum, (score - KroneckerDelta(a, y[n])) ** 2, (a, C)) / 2


def linear(score: Any) -> Any:
    """The mean score less that of the class: to first order the cross-entropy where all classes are equally likely."""
    return over(Sum, score, (a, C)) / C - at(score, {a: y[n]})


LOSS: dict[str, Callable[[Any], Any]] = {"ce": cross_entropy, "mse": squared, "fixed": linear}
"""Losses of a sample by name; fixed: what goes back to node k is A[y[n], k] less its mean over classes, whatever h is."""
z = Z[l, q[n]]
ATTENTION: dict[str, Any] = {"linear": X[n, l] * z / T, "exp": X[n, l] * exp(z / T), "softmax": softmax(z / T, (l, Mc), weight=X[n, l])}
"""Attention b[n, l] by name."""
e = shifted_exp(z / T, (l, Mc), X[n, l])
CONTEXT: dict[str, Any] = {
    "linear": over(Sum, X[n, l] * z * V[l, k], (l, Mc)) / T,
    "exp": over(Sum, X[n, l] * exp(z / T) * V[l, k], (l, Mc)),
    "softmax": over(Sum, e * V[l, k], (l, Mc)) / over(Sum, e, (l, Mc)),
}
"""What a node k sees of the context, sum_l b[n, l] V[l, k], as formulas show it."""


def bumps(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """X (N, Mc): the first half of the tokens peaks for one sample after the other, exp(-(l - n/2)^2 / 3); the others are common."""
    n, l = np.arange(sizes["N"])[:, None], np.arange(sizes["Mc"])
    X = np.where(l < (sizes["Mc"] + 1) // 2, np.exp(-((l - n / 2) ** 2) / 3), 0.5 + 0.2 * np.cos(n * l + l))
    return X / X.sum(axis=1, keepdims=True)


def even(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """pi (N,): 1/N."""
    return np.full(sizes["N"], 1 / sizes["N"])


def queries(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """q (N,): n modulo Mq."""
    return np.arange(sizes["N"]) % sizes["Mq"]


def upper(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """A (C, K): 1 on its diagonal, 0 elsewhere."""
    return np.eye(sizes["C"], sizes["K"])


def classes(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """y (N,): n modulo C."""
    return np.arange(sizes["N"]) % sizes["C"]


def joint(attention: str, phi: str, theorem: Invariant, start: float = 0.0, signal: str = "ce") -> System:
    """The System of the block with this attention, activation phi and loss; theorem: what attention makes of Theorem 1. start: of Z."""
    b = ATTENTION[attention]
    h = PHI[phi](over(Sum, b * V[l, k], (l, Mc)) + Xi[q[n], k])
    loss = over(Sum, pi[n] * LOSS[signal](over(Sum, A[a, k] * h, (k, K))), (n, N))
    u = CONTEXT[attention] + Xi[q[n], k]
    score = over(Sum, A[a, k] * PHI[phi](u), (k, K))
    scores = {"p": softmax(score, (a, C))} if signal == "ce" else {"score": score}
    names = {"e": X[n, l] * exp(z / T), "S": over(Sum, e, (l, Mc)), "c": over(Sum, e * V[l, k], (l, Mc))} if attention == "softmax" else {}
    share = b if attention == "softmax" else Abs(b) / over(Sum, Abs(b), (l, Mc))
    return System(
        name=".".join((f"joma.joint_{attention}", *(word for word in (phi, signal) if word not in ("identity", "ce")))),
        source=Source("tian2023joma", "Theorem 1", f"{attention} attention, phi = {phi}, loss {signal}; orthonormal embeddings"),
        axes={n: N, l: Mc, k: K, m: Mq, a: C},
        equations=gradient_flow(loss, {V[l, k]: eta_w, Xi[m, k]: eta_w, Z[l, m]: eta_z}),
        params=(
            Param(X, bumps, Interval(0, oo), "counts of the contextual tokens of a sample"),
            Param(pi, even, Interval(0, 1), "weight of a sample"),
            Param(q, queries, Naturals0, "query token of a sample", indexes=Mq, cover=False),
            Param(A, upper, Interval(-oo, oo), "upper layer: from nodes to classes"),
            Param(y, classes, Naturals0, "class of a sample", indexes=C, cover=False),
            Param(T, 1.0, Interval.open(0, oo), "temperature of the attention"),
            Param(eta_w, 1.0, Interval.open(0, oo), "learning rate of V and Xi"),
            Param(eta_z, 1.0, Interval(0, oo), "learning rate of Z"),
        ),
        initial={V[l, k]: 0.0, Xi[m, k]: 0.5 if phi == "relu" else 0.0, Z[l, m]: start},  # at 0 relu is on its kink
        sizes={Mc: 6, Mq: 1, K: 4, N: 4, C: 4},
        span=(0.0, 20.0),
        time="steps times learning rate",
        observables={"loss": loss, "attention": b, "entropy": over(Sum, pi[n] * entropy(share, (l, Mc)), (n, N))},
        views=(Lines("loss"), Lines("entropy"), Matrix("V"), Attention("attention")),
        display={**names, "b": b, "u": u, **scores},
        constraints=(Constraint("pi sums to 1", over(Sum, pi[n], (n, N)) - 1, "==0", 1e-9),),
        invariants=(theorem, Invariant("loss falls", loss, "nonincreasing")),
    )


def variants(attention: str, theorem: Invariant, start: float = 0.0) -> dict[str, Callable[[], System]]:
    """{name: function that makes a System}: other activations beside cross-entropy, other losses beside the identity."""
    of_phi = {name.upper(): partial(joint, attention, name, theorem, start) for name in PHI if name != "identity"}
    of_loss = {name.upper(): partial(joint, attention, "identity", theorem, start, name) for name in LOSS if name != "ce"}
    return {name: cache(make) for name, make in (of_phi | of_loss).items()}
