"""Gradient flow of the two layers of attention that `induction.stages` reduces: first values copy, then both layers find the answer.

A query repeats one of N different tokens of a vocabulary of V; the answer is the token after it, the first after the last. Layer 1 attends
by position, with logits P[j, i] at place j; layer 2 by tokens, with logits W_2[query, token] of what layer 1 carried to place j; logits of
the answer are W_3[y, token]. The cross-entropy is the mean over all sequences and all queries. From multiples of the centred shift by one
and the centred identities the flow stays there: that is `induction.stages:MATRIX`. Sequences are V! / (V - N)! in number, which limits N.

Assumed: attention only, one-hot embeddings, cyclic positions, one occurrence of each token.
"""

from itertools import permutations
from math import perm
from typing import Any

import numpy as np
from sympy import Eq, Expr, Interval, Naturals0, Or, Piecewise, Rational, Sum, Symbol, oo

from odesim.symbolic import (
    Event,
    IndexedBase,
    Invariant,
    Lines,
    Matrix,
    Param,
    Source,
    System,
    gradient_flow,
    index,
    logsumexp,
    over,
    sizes,
    softmax,
)

i, j, k, l, q, s, u, y = index("i j k l q s u y")
N, V, S = sizes("N V S")
P, W_2, W_3 = IndexedBase("P", shape=(N, N)), IndexedBase("W_2", shape=(V, V)), IndexedBase("W_3", shape=(V, V))
X, after = IndexedBase("X", shape=(S, N)), IndexedBase("after", shape=(N,))
eps = Symbol("eps", nonnegative=True)


def sequences(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """X (S, N): all sequences of N different tokens. Raises ValueError unless S counts them."""
    N, V, S = sizes["N"], sizes["V"], sizes["S"]
    if perm(V, N) != S:
        raise ValueError(
            f"sequences of N = {N} different tokens of V = {V} need the size S = V! / (V - N)!, which is {perm(V, N)}, not {S}"
        )
    return np.array(list(permutations(range(V), N)))


def next_place(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """after (N,): the next place, the first after the last."""
    return (np.arange(sizes["N"]) + 1) % sizes["N"]


first = softmax(P[j, i], (i, N))
scores = over(Sum, first * W_2[X[s, q], X[s, i]], (i, N))
second = softmax(scores, (j, N))
answered = over(Sum, Piecewise((second, Eq(j, after[q])), (0, True)), (j, N), (s, S), (q, N)) / (S * N)
logits = over(Sum, second * W_3[y, X[s, j]], (j, N))
right = over(Sum, second * W_3[X[s, after[q]], X[s, j]], (j, N))
loss = over(Sum, logsumexp(logits, (y, V)) - right, (s, S), (q, N)) / (S * N)
previous = Or(Eq(j - i, 1), Eq(j - i, 1 - N))


def centred(condition: Any, count: Expr) -> Expr:
    """1 where the condition holds, else 0, less 1 / count."""
    return Piecewise((1 - 1 / count, condition), (-1 / count, True))


SYSTEM = System(
    name="induction.full",
    source=Source("bietti2023birth", "Section 4", "attention only, one occurrence, all sequences"),
    axes={i: N, j: N, q: N, s: S, **dict.fromkeys((k, l, y), V)},
    equations=gradient_flow(loss, {P[j, i]: 1, W_2[k, l]: 1, W_3[k, l]: 1}),
    params=(
        Param(X, sequences, Naturals0, "X[s, j]: token of sequence s at place j", indexes=V, cover=False),
        Param(after, next_place, Naturals0, "after[q]: the place of the answer to a query of place q", indexes=N, cover=False),
        Param(eps, 0.01, Interval(0, oo), "a, b and c of induction.stages at the start"),
    ),
    initial={P[j, i]: eps * centred(previous, N), W_2[k, l]: eps * centred(Eq(k, l), V), W_3[k, l]: eps * centred(Eq(k, l), V)},
    sizes={N: 3, V: 6, S: 120},
    span=(0.0, 300.0),
    time="time of gradient flow",
    observables={"loss": loss, "s1": over(Sum, Piecewise((first, previous), (0, True)), (i, N), (j, N)) / N, "s2": answered},
    views=(Lines("loss"), Lines("s1"), Lines("s2"), Matrix("W_2"), Matrix("W_3")),
    display={"first": first, "second": second, "logits": logits, "loss": loss},
    invariants=(
        Invariant("row sums of P", over(Sum, P[j, i], (i, N)), "constant"),
        Invariant("row sums of W_2", over(Sum, W_2[k, l], (l, V)), "constant"),
        Invariant("column sums of W_3", over(Sum, W_3[k, l], (k, V)), "constant"),
        Invariant("loss falls", loss, "nonincreasing"),
    ),
    events=(Event("copied", answered - Rational(1, 2), doc="half of the attention is on the answer"),),
)
