"""One row of the decoder of a one-layer transformer on three-token facts: the target's logit above the others.

A fact is (source, relation, target). The one contextual token is the source, so attention has nothing to choose and the logits are
the row Y[source]: rows learn alone, and the relation is not seen. A row with r targets, each a training sequence, moves r logits up
together; v is a target's logit minus another token's. The closed form is r e^v + (M - r) v = M eta_Y t / N + r.

Assumed: zero start, all sequences equally likely, one contextual position, gradient flow. SGD with batches of one sequence follows it
to O(eta_Y); with replacement, single rows scatter.
Theorem 3's bound 1 - p <= (M - 1) / (2 x^c), x = M eta_Y t / N, holds for c up to c_max(t) < 1 alone; 1 - p decays as N / (eta_Y t).
"""

from typing import Any

import numpy as np
from sympy import Interval, Symbol, exp, log, oo

from odesim.symbolic import ClosedForm, Constraint, Event, Invariant, Param, Source, System, time

v = Symbol("v", real=True)
M, N = Symbol("M", positive=True), Symbol("N", positive=True)
eta_Y, r = Symbol("eta_Y", nonnegative=True), Symbol("r", positive=True)


def margin(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """v at time t by the Wright omega function: v = A - omega(A + ln(r / (M - r)))."""
    from scipy.special import wrightomega

    M, r, v0 = params["M"], params["r"], y0["v"]
    A = (M * params["eta_Y"] * t / params["N"] + r * np.exp(v0)) / (M - r) + v0
    return {"v": A - wrightomega(A + np.log(r / (M - r)))}


SYSTEM = System(
    name="reversal.row",
    source=Source("zhu2024reversal", "Theorems 3 and 4", "one row; r targets"),
    axes={},
    equations={v: M * eta_Y / N / (r * exp(v) + M - r)},
    params=(
        Param(M, 802.0, Interval.open(1, oo), "number of tokens of the vocabulary, more than r"),
        Param(N, 340.0, Interval(1, oo), "number of training sequences"),
        Param(eta_Y, 0.5, Interval(0, oo), "learning rate of the decoder"),
        Param(r, 1.0, Interval(1, oo), "number of targets of this row"),
    ),
    initial={v: 0},
    span=(0.0, 5000.0),
    time="SGD steps",
    observables={"p_target": 1 / (r + (M - r) * exp(-v)), "p_other": exp(-v) / (r + (M - r) * exp(-v)), "loss": log(r + (M - r) * exp(-v))},
    constraints=(Constraint("M is more than r", M - r - 1e-9, ">=0"),),
    invariants=(
        Invariant("closed form", (r * exp(v) + (M - r) * v) / M - eta_Y * time / N, "constant"),
        Invariant("loss falls", log(r + (M - r) * exp(-v)), "nonincreasing"),
    ),
    events=(
        Event("half way", r * exp(v) - (M - r), direction=1, doc="a target has half of its final probability 1/r"),
        Event("knee", time * eta_Y - N * log(M), direction=1, doc="t1 = N ln M / eta_Y, where the theorems begin"),
    ),
    closed_forms=(ClosedForm("Wright omega", "for every start", margin),),
)
