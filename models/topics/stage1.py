"""The first stage of topics.full: values are learned while attention is uniform. A linear flow with a closed form.

With P and P_shown of T topics W_V moves at two rates: 2 |mu|^2 along the mean document mu, and 2 kappa^2 sigma2 along the contrasts of
topics, kappa = 1 - (1 - p_c) p_m, sigma2 = (T - tau) / (tau T v (T - 1)). What neither sees stays as it starts. From 0 the values end as
blocks: a word gives 1 / (kappa v) more to each word of its topic than to others, and to itself no more than to the rest of its topic.
"""

from typing import Any

import numpy as np
from sympy import Sum, sqrt

from odesim.models.topics._documents import PARAMS, N, P, P_shown, d
from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Source, System, gradient_flow, index, over

i, j, s, l, x = index("i j s l x")
W_V = IndexedBase("W_V", shape=(d, d))


def solution(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """W_V (d, d) at time t, in the eigenvectors of the mean of P_shown P_shown^T; those of eigenvalue 0 stay."""
    P, seen = params["P"], params["P_shown"]
    values, vectors = np.linalg.eigh(seen.T @ seen / len(seen))
    rates = np.where(values > 1e-12, 2 * values, 0)  # eigenvalues 0 come out as 1e-17 or so
    grown = np.divide(-2 * np.expm1(-rates * t), rates, out=np.zeros_like(rates), where=rates > 0)
    return {"W_V": (y0["W_V"] @ vectors * np.exp(-rates * t) + P.T @ seen / len(seen) @ vectors * grown) @ vectors.T}


output = over(Sum, W_V[x, l] * P_shown[s, l], (l, d))
loss = 1 + over(Sum, output**2 - 2 * P[s, x] * output, (s, N), (x, d)) / N

SYSTEM = System(
    name="topics.stage1",
    source=Source("li2023topic", "Theorem 1", "from zero, without weight decay; masked words may be shown as words"),
    axes={**dict.fromkeys((i, j, l, x), d), s: N},
    equations=gradient_flow(loss, {W_V[i, j]: 1}),
    params=PARAMS,
    initial={W_V[i, j]: 0},
    sizes={d: 13, N: 6},
    span=(0.0, 200.0),
    time="time of gradient flow",
    observables={"loss": loss, "norm_W_V": sqrt(over(Sum, W_V[i, j] ** 2, (i, d), (j, d)))},
    display={"loss": loss, "output": output},
    invariants=(Invariant("loss falls", loss, "nonincreasing"),),
    closed_forms=(ClosedForm("linear flow", "for every start", solution),),
)
