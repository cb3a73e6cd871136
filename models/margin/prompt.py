"""Attention with a trained query p: gradient flow in the time ln(1 + t), towards the hard-margin separator of the best tokens.

Scores of tokens are given, and attention X p learns to select: p/|p| comes to the solution of min |p|^2 under (x_best - x_t).p >= 1, and
|p| grows as ln t, by that minimal norm. All that is slow: so the time here is ln(1 + t), up to t = 10^12 within 28.

Assumed: one head, values fixed, logistic loss; scores of tokens that are not the best alike, else a local solution may win.
"""

from typing import Any

import numpy as np
from sympy import Interval, Sum, exp, oo, sqrt

from odesim.models.margin._softmax import BEST, LACK, TIME, N, T, attention, i, l, mean_loss
from odesim.symbolic import Attention, IndexedBase, Invariant, Lines, Param, Source, System, gradient_flow, index, over, sizes, time

m, n = index("m n")
(M,) = sizes("M")
X, p = IndexedBase("X", shape=(N, T, M)), IndexedBase("p", shape=(M,))


def tokens(sizes: dict[str, int]) -> Any:
    """X (N, T, M), normal."""
    return np.random.default_rng(3).normal(size=(sizes["N"], sizes["T"], sizes["M"]))


logit = over(Sum, X[i, l, m] * p[m], (m, M))
loss = mean_loss(logit)

SYSTEM = System(
    name="margin.prompt",
    source=Source("tarzanagh2023maxmargin", "Section 2", "in the time ln(1 + t)"),
    axes={i: N, l: T, m: M, n: M},
    equations=gradient_flow(loss, {p[m]: exp(time)}),
    params=(Param(X, tokens, Interval(-oo, oo), "tokens of each sequence"), LACK, BEST),
    initial={p[m]: 0.0},
    sizes={N: 4, T: 5, M: 20},
    span=(0.0, 14.0),
    time=TIME,
    observables={"loss": loss, "attention": attention(logit), "norm": sqrt(over(Sum, p[n] ** 2, (n, M)))},
    views=(Lines("loss"), Attention("attention")),
    invariants=(Invariant("loss falls", loss, "nonincreasing"),),
)
