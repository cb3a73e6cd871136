"""Linear attention whose key and query are one matrix learns regression in context in one drop of the loss.

Head h has an output v_h and a merged key and query U_h; the prediction is beta^T W x_q, W = sum_h v_h U_h. Gradient flow of the mean
squared error keeps v_h v_g - <U_h, U_g> for all heads h, g. Besides the minimum W = diag(1 / Gamma) it rests at W = 0 alone, which it
leaves after a time of order ln(1 / s0), where s0 is sum_h v_h^2 at the start.

Assumed: population loss with finite prompts of N pairs. The loss has no factor 1/2: with one, as zhang2024trained has it, all times double.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sympy import Interval, KroneckerDelta, Sum, oo, sqrt, symbols

from odesim.models.in_context._regression import PARAMS, D, Gamma, H, a, b, best, c, g, gammas, h, loss_of, tr
from odesim.symbolic import ClosedForm, Event, IndexedBase, Invariant, Param, Source, System, gradient_flow, over

v, U = IndexedBase("v", shape=(H,)), IndexedBase("U", shape=(H, D, D))
s0 = symbols("s0", nonnegative=True)


def W(a: Any, b: Any) -> Any:
    """sum_h v_h U_h."""
    return over(Sum, v[h] * U[h, a, b], (h, H))


def logistic(t: float, y0: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """All weights grow by one factor: s = sum_h v_h^2 is logistic, from s(0) to sqrt(D) / Gamma."""
    D, lam = len(params["lam"]), float(params["lam"][0])
    start, rest = float((y0["v"] ** 2).sum()), D**0.5 / gammas(params)[0]
    s = rest / (1 + (rest / start - 1) * np.exp(-4 * D**0.5 * lam**2 * t))
    return {name: value * (s / start) ** 0.5 for name, value in y0.items()}


loss = loss_of(W)

SYSTEM = System(
    name="in_context.merged",
    source=Source("zhang2024trained", "Section 5.2", "H heads as in zhang2025training"),
    axes={h: H, g: H, a: D, b: D, c: D},
    equations=gradient_flow(loss, {v[h]: 1, U[h, a, b]: 1}),
    params=(*PARAMS, Param(s0, 0.01, Interval(0, oo), "sum over heads of v^2 at the start")),
    initial={v[h]: sqrt(s0 / H), U[h, a, b]: sqrt(s0 / H / D) * KroneckerDelta(a, b)},
    sizes={H: 1, D: 4},
    span=(0.0, 50.0),
    time="steps times learning rate",
    observables={"loss": loss, "share": W(a, a) * Gamma(a), "W": W(a, b)},
    invariants=(
        Invariant("balance of heads", v[h] * v[g] - over(Sum, U[h, a, b] * U[g, a, b], (a, D), (b, D)), "constant"),
        Invariant("loss falls", loss, "nonincreasing"),
    ),
    events=(Event("half way", loss - (tr + best) / 2, doc="the loss is half way between that of W = 0 and the least one"),),
    closed_forms=(ClosedForm("logistic", "equal variances lam, U_h = v_h I / sqrt(D) at the start", logistic),),
    display={"W": W(a, b), "Gamma": Gamma(a)},
)
