"""Attention with one matrix W between query and tokens: in direction to the separator of least Frobenius norm.

Sequence i has tokens x_it and a query z_i, attention is the softmax of x_it^T W z_i. The time is ln(1 + t), as in margin.prompt. With keys
and queries trained apart it is margin.key_query.

Assumed: as margin.prompt.
"""

from typing import Any

import numpy as np
from sympy import Interval, Sum, exp, oo

from odesim.models.margin._softmax import BEST, LACK, TIME, N, T, attention, i, l, mean_loss
from odesim.symbolic import Attention, IndexedBase, Invariant, Lines, Matrix, Param, Source, System, gradient_flow, index, over, sizes, time

# Sequences with a query each: what margin.weights and margin.key_query share.

a, b, c, e = index("a b c e")
(d,) = sizes("d")
X, z = IndexedBase("X", shape=(N, T, d)), IndexedBase("z", shape=(N, d))


def tokens(sizes: dict[str, int]) -> Any:
    """X (N, T, d), normal."""
    return np.random.default_rng(11).normal(size=(sizes["N"], sizes["T"], sizes["d"]))


def queries(sizes: dict[str, int]) -> Any:
    """z (N, d): normal numbers, those after the tokens."""
    rng = np.random.default_rng(11)
    rng.normal(size=(sizes["N"], sizes["T"], sizes["d"]))
    return rng.normal(size=(sizes["N"], sizes["d"]))


AXES = {i: N, l: T, a: d, b: d, c: d, e: d}
SIZES = {N: 3, T: 3, d: 4}
PARAMS = (
    Param(X, tokens, Interval(-oo, oo), "tokens of each sequence"),
    Param(z, queries, Interval(-oo, oo), "query of each sequence"),
    LACK,
    BEST,
)


W = IndexedBase("W", shape=(d, d))
logit = over(Sum, X[i, l, a] * over(Sum, W[a, b] * z[i, b], (b, d)), (a, d))
loss = mean_loss(logit)

SYSTEM = System(
    name="margin.weights",
    source=Source("tarzanagh2023transformers", "W-parameterisation", "in the time ln(1 + t)"),
    axes=AXES,
    equations=gradient_flow(loss, {W[a, b]: exp(time)}),
    params=PARAMS,
    initial={W[a, b]: 0.0},
    sizes=SIZES,
    span=(0.0, 14.0),
    time=TIME,
    observables={"loss": loss, "attention": attention(logit)},
    views=(Lines("loss"), Attention("attention"), Matrix("W")),
    invariants=(Invariant("loss falls", loss, "nonincreasing"),),
)
