"""A row of the first layer's attention finds the parent of its place: the place that tells most wins, after a time of order n/D.

Sequences whose places each depend on one place before, its parent. For a small second layer the loss of a row is -sum_j S_j G_j, S the
softmax of the logits A over places and G_j what place j tells of this one: A_j' = S_j (G_j - S.G), and attention goes to the largest G,
from an equal start. With n rivals that tell equally little, D less than the parent, z = A_parent - A_other from 0 is
e^z/n + 2 z - n e^(-z) = D (1 + 1/n) t + 1/n - n: attention is 1/2 at (n + 2 ln n - 1/n) n/((n + 1) D).

Place 0 is the parent. Assumed: gradient flow, infinitely many sequences, the second layer small and fixed.
"""

from typing import Any

import numpy as np
from scipy.optimize import brentq
from sympy import Interval, Rational, Sum, Symbol, oo

from odesim.symbolic import (
    ClosedForm,
    Event,
    IndexedBase,
    Invariant,
    Lines,
    Param,
    Source,
    System,
    at,
    gradient_flow,
    index,
    over,
    sizes,
    softmax,
)

j, i = index("j i")
(J,) = sizes("J")
A, G = IndexedBase("A", shape=(J,)), IndexedBase("G", shape=(J,))


def one_parent(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """G (J,): D at place 0, else 0."""
    return np.asarray(params["D"] * (np.arange(sizes["J"]) == 0))


def equal_rivals(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """A (J,) at time t."""
    n, (parent, *others) = len(y0["A"]) - 1, np.asarray(params["G"])
    if n == 0:
        return {"A": y0["A"]}
    right = (parent - others[0]) * (1 + 1 / n) * t + 1 / n - n
    # e^z/n and 2 z each reach the right-hand side, but for n e^-z, at most n
    most = min(np.log(n * (right + n)), (right + n) / 2) + 1e-9
    z = brentq(lambda z: np.exp(z) / n + 2 * z - n * np.exp(-z) - right, 0, most, xtol=1e-14)
    return {"A": y0["A"] + np.r_[n, -np.ones(n)] * z / (n + 1)}


S = softmax(A[j], (j, J))
loss = -over(Sum, S * G[j], (j, J))

SYSTEM = System(
    name="causal.parent_row",
    source=Source("nichani2024causal", "the gradient of the first layer", "a row of it, small second layer"),
    axes={j: J, i: J},
    equations=gradient_flow(loss, {A[j]: 1}),
    params=(
        # of chains of three states: the mean information of one step less that of two
        Param(Symbol("D"), 0.231, Interval.open(0, oo), "by how much more the parent tells than each rival"),
        Param(G, one_parent, Interval(-oo, oo), "G[j]: what place j tells of the place of this row"),
    ),
    initial={A[j]: 0},
    sizes={J: 6},
    span=(0.0, 100.0),
    time="steps times learning rate",
    observables={"loss": loss, "attention": S},
    views=(Lines("loss"), Lines("attention")),
    invariants=(Invariant("sum of logits", over(Sum, A[i], (i, J)), "constant"), Invariant("loss falls", loss, "nonincreasing")),
    events=(Event("found", at(S, {j: 0}) - Rational(1, 2), 1, doc="half of the attention is on the parent"),),
    closed_forms=(ClosedForm("equal rivals", "from equal logits, all places but the first alike", equal_rivals),),
)
