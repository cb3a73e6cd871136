"""Gradient flow of a one-layer transformer in (Y, Z): decoder logits and attention logits, every sequence of infinite length.

Y (S, K+1) maps the attended context to logits of the next token: a row for each context token, a column for each of the K next
tokens that occur, and one for the M - K others, which stay equal from a zero start. Z (Q, S) holds the attention logits of the
Q queries. Class n is one next token, seen with query psi[n] after context tokens drawn from P[n].

Assumed: no positional code, infinite contexts, attention over the context alone and normalised to length one, one head, no
residual. Nothing is assumed of the learning rates. The reduced systems of the paper decorrelate the decoder gradient; this one
does not, and its attention moves more slowly by a factor that grows with M.
"""

from typing import Any

import numpy as np
from sympy import Eq, Expr, Interval, KroneckerDelta, Naturals0, Piecewise, Sum, Symbol, exp, log, oo, sign, sqrt

from odesim.symbolic import (
    Attention,
    ClosedForm,
    Constraint,
    Event,
    IndexedBase,
    Invariant,
    Lines,
    Matrix,
    Param,
    Shift,
    Source,
    System,
    entropy,
    index,
    logsumexp,
    over,
    shifted_exp,
    sizes,
    softmax,
    time,
)

n, m, l, j = index("n m l j")
(k,) = index("k")  # summed over
K, Q, S = sizes("K Q S")
Y, Z = IndexedBase("Y", shape=(S, K + 1)), IndexedBase("Z", shape=(Q, S))
P, psi, p = IndexedBase("P", shape=(K, S)), IndexedBase("psi", shape=(K,)), IndexedBase("p", shape=(K,))
M, eta_Y, eta_Z = Symbol("M", positive=True), Symbol("eta_Y", nonnegative=True), Symbol("eta_Z", nonnegative=True)


def generated_table(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """P (K, S) of the official generator: common tokens of weight 1, then equally many of each class's own, weights up to 1."""
    K, S = sizes["K"], sizes["S"]
    own = S // (K + 1)
    weights = np.zeros((K, S))
    weights[:, : S - K * own] = 1
    for n in range(K):
        first = S - (K - n) * own
        weights[n, first : first + own] = np.arange(1, own + 1) / max(own, 1)
    return weights / weights.sum(axis=1, keepdims=True)


def own_query(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """psi (K,): one query for each class; where Q is given, the Q queries in turn."""
    return np.arange(sizes["K"]) % sizes.get("Q", sizes["K"])


def uniform(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """p (K,): 1/K for every class."""
    return np.full(sizes["K"], 1 / sizes["K"])


def every_token(sizes: dict[str, int], params: dict[str, Any]) -> float:
    """M = S + Q + K: context, query and next tokens are all different, and there are no other tokens."""
    return float(sizes["S"] + np.max(params["psi"]) + 1 + sizes["K"])


def separate_classes(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """Y (S, K+1) and Z (Q, S) of classes that share no token, from 0: no force on Z, a margin u_n for each class.

    Y is sum_n u_n f_n (e_n - 1/M), with exp(u_n) + (M - 1) u_n = 1 + M p_n eta_Y t by the Wright omega function.
    """
    from scipy.special import wrightomega

    P, M = params["P"], params["M"]
    total = 1 + M * params["p"] * params["eta_Y"] * t
    u = np.log(M - 1) + np.log(wrightomega(total / (M - 1) - np.log(M - 1)))
    f = P / np.linalg.norm(P, axis=1, keepdims=True)
    return {"Y": (f * u[:, None]).T @ (np.eye(len(P), len(P) + 1) - 1 / M), "Z": np.zeros_like(y0["Z"])}


z = Z[psi[n], l]
seen = shifted_exp(z, (l, S), weight=P[n, l])
f = seen / sqrt(over(Sum, seen**2, (l, S)))
c = softmax(z, (l, S), weight=P[n, l])

copies = Piecewise((M - K, Eq(j, K)), (1, True))  # columns that column j of Y stands for
logits = over(Sum, f * Y[l, j], (l, S))
odds = exp(logits - over(Shift, logits, (j, K + 1)))
alpha = odds / over(Sum, copies * odds, (j, K + 1))
wrong = Piecewise((0, Eq(n, j)), (copies * alpha, True))
# 1 - alpha[n, n] as the sum of the others: a difference would round to 0
e = Piecewise((over(Sum, wrong, (j, K + 1)), Eq(n, j)), (-alpha, True))

g = over(Sum, copies * Y[l, j] * e, (j, K + 1))
along = over(Sum, f * g, (l, S))
own = Piecewise((1, Eq(n, j)), (0, True))
surprise = over(Sum, own * (logsumexp(logits, (j, K + 1), weight=copies) - logits), (j, K + 1))
loss = over(Sum, p[n] * surprise, (n, K))
rivals = over(Sum, Piecewise((0, Eq(k, n)), (P[k, l], True)), (k, K))  # of class n for token l


def entropy_of(share: Expr) -> Expr:
    """Entropy over l of share * exp(z), normalised: 0 ln 0 is 0, and a class with no token to count has entropy 0."""
    terms = shifted_exp(z, (l, S), weight=share)
    total = over(Sum, terms, (l, S))
    return entropy(terms / (total + 1 - sign(total)), (l, S))


SYSTEM = System(
    name="scan_snap.full",
    source=Source("tian2023scan", "Lemmas 1 and 2", "infinite contexts; the equal columns of Y kept once"),
    axes={n: K, m: Q, l: S, j: K + 1},
    equations={
        Y[l, j]: eta_Y * over(Sum, p[n] * f * e, (n, K)),
        Z[m, l]: eta_Z * over(Sum, KroneckerDelta(m, psi[n]) * p[n] * f * (g - along * f), (n, K)),
    },
    params=(
        Param(P, generated_table, Interval(0, 1), "P[n, l]: probability of context token l in class n"),
        Param(psi, own_query, Naturals0, "psi[n]: the query of class n, a row of Z", indexes=Q),
        Param(p, uniform, Interval(0, 1), "p[n]: probability of class n"),
        Param(M, every_token, Interval(1, oo), "number of tokens of the vocabulary, at least K; need not be whole"),
        Param(eta_Y, 1.0, Interval(0, oo), "learning rate of the decoder Y"),
        Param(eta_Z, 1.0, Interval(0, oo), "learning rate of the attention Z"),
    ),
    initial={Y[l, j]: 0, Z[m, l]: 0},
    sizes={K: 2, S: 30},
    span=(0.0, 100.0),
    time="SGD steps",
    observables={"loss": loss, "c": c, "entropy": entropy_of(P[n, l]), "entropy_distinct": entropy_of(P[n, l] * (1 - sign(rivals)))},
    views=(Lines("loss"), Lines("entropy_distinct"), Matrix("Y"), Attention("c")),
    display={
        "f": f,
        "c": c,
        "copies": copies,
        "logits": logits,
        "alpha": alpha,
        "e": e,
        "g": g,
        "rivals": rivals,
        "surprise": surprise,
        "loss": loss,
    },
    constraints=(
        Constraint("each row of P sums to 1", over(Sum, P[n, l], (l, S)) - 1, "==0", tol=1e-6),
        Constraint("p sums to 1", over(Sum, p[n], (n, K)) - 1, "==0", tol=1e-6),
        Constraint("M is at least K", M - K, ">=0"),
    ),
    invariants=(
        Invariant("row sums of Y", over(Sum, copies * Y[l, j], (j, K + 1)), "constant"),
        Invariant("row sums of Z", over(Sum, Z[m, l], (l, S)), "constant"),
        Invariant("loss falls", loss, "nonincreasing"),
    ),
    events=(
        Event("half way", surprise - log(2), direction=-1, doc="the next token of a class is predicted with probability 1/2"),
        Event(
            "scanning ends", time * eta_Y - K * log(M), direction=1, doc="t = K ln(M) / eta_Y: up to here the paper lets the attention scan"
        ),
    ),
    closed_forms=(ClosedForm("separate classes", "from 0, where no token is of two classes and M > 1", separate_classes),),
)
