"""Gradient flow of the decoder of a one-layer transformer on three-token facts: what is learned forwards is not known backwards.

Y[a, m] is the logit of token m after source a. A training sequence k has the source x1[k] and the target x3[k]; its relation is the
query token, and does not enter: with one contextual token attention has nothing to choose (dZ/dt = 0). Learning "A -> B" moves row A
alone. Row B, asked for A, stays where it was, at p = 1/M: the reversal curse. Rows A -> B and B -> C never compose into A -> C.

Assumed: zero start, all sequences equally likely, gradient flow. Written from its loss, the mean of -ln p(x3[k] | x1[k]).
"""

from typing import Any

import numpy as np
from sympy import Interval, KroneckerDelta, Naturals0, Sum, Symbol, oo

from odesim.symbolic import (
    ClosedForm,
    Event,
    IndexedBase,
    Invariant,
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

a, m, j, k = index("a m j k")
R, M, N = sizes("R M N")
Y = IndexedBase("Y", shape=(R, M))
x1, x3 = IndexedBase("x1", shape=(N,)), IndexedBase("x3", shape=(N,))
eta_Y = Symbol("eta_Y", nonnegative=True)


def source(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """x1 (N,): A_0, A_1, ..., then B_0, B_1, ...: the first pairs are trained both ways, the last ones forwards only."""
    pairs = max(sizes["R"] // 2, 1)
    return np.arange(sizes["N"]) % (2 * pairs) % sizes["R"]


def target(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """x3 (N,): the partner of each source."""
    pairs = max(sizes["R"] // 2, 1)
    return (np.arange(sizes["N"]) + pairs) % (2 * pairs) % sizes["M"]


def rows_alone(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """Y (R, M): row a with r targets has (1 - r/M) v at these and -(r/M) v elsewhere; v as in reversal.row, 0 without targets."""
    from scipy.special import wrightomega

    (R, M), N = y0["Y"].shape, len(params["x1"])
    hit = np.zeros((R, M))
    hit[params["x1"], params["x3"]] = 1
    r = hit.sum(axis=1)
    A = (M * params["eta_Y"] * t / N + r) / (M - r)
    v = np.where(r > 0, A - wrightomega(A + np.log(np.maximum(r, 1) / (M - r))), 0.0)
    return {"Y": v[:, None] * (hit - r[:, None] / M)}


own = over(Sum, KroneckerDelta(j, x3[k]) * Y[x1[k], j], (j, M))
loss = over(Sum, logsumexp(Y[x1[k], j], (j, M)) - own, (k, N)) / N

SYSTEM = System(
    name="reversal.full",
    source=Source("zhu2024reversal", "Section 4, Theorems 3 and 4", "the decoder; Z does not move"),
    axes={a: R, m: M, k: N},
    equations=gradient_flow(loss, {Y[a, m]: eta_Y}),
    params=(
        Param(x1, source, Naturals0, "x1[k]: the source of sequence k, a row of Y", indexes=R, cover=False),
        Param(x3, target, Naturals0, "x3[k]: the target of sequence k, a token", indexes=M, cover=False),
        Param(eta_Y, 0.5, Interval(0, oo), "learning rate of the decoder"),
    ),
    initial={Y[a, m]: 0},
    sizes={R: 10, M: 12, N: 8},
    span=(0.0, 100.0),
    time="SGD steps",
    observables={"loss": loss, "p": over(Sum, KroneckerDelta(m, x3[k]) * softmax(Y[x1[k], m], (m, M)), (m, M))},
    invariants=(Invariant("row sums of Y", over(Sum, Y[a, m], (m, M)), "constant"), Invariant("loss falls", loss, "nonincreasing")),
    events=(
        Event("mean loss is ln 2", loss - 0.6931471805599453, direction=-1, doc="targets have probability 1/2, in the geometric mean"),
    ),
    closed_forms=(ClosedForm("rows alone", "from 0, where no pair occurs twice and M is more than a row's targets", rows_alone),),
)
