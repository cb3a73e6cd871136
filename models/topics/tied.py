"""The first stage of topics.full with tied embeddings: one matrix E reads words and writes them, so that values are E^T E.

Attention is uniform. From a multiple of the identity the mean value of the contrasts of topics obeys a logistic law: it rests near 0,
then rises to 1 / kappa at the rate 8 sigma2 kappa, with kappa and sigma2 of topics.stage1, whose free values rise at once. E = 0 is a
saddle point; the flow starts near it.
"""

from typing import Any

import numpy as np
from sympy import Interval, KroneckerDelta, Sum, Symbol, oo

from odesim.models.topics._documents import PARAMS, N, P, P_shown, d
from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, gradient_flow, index, over, sizes

a, i, s, l, x = index("a i s l x")
(K,) = sizes("K")
E, eps = IndexedBase("E", shape=(K, d)), Symbol("eps", nonnegative=True)


def contrast(E: np.ndarray, T: int) -> float:
    """Mean value of the T - 1 contrasts of topics under E^T E, of E (K, d)."""
    words = E[:, 1:].reshape(len(E), T, -1)
    means = words.mean(axis=2) - words.mean(axis=(1, 2))[:, None]
    return float(words.shape[2] * (means**2).sum() / (T - 1))


def logistic(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> float:
    """By how much the value of the contrasts is off its logistic curve."""
    T, tau = int(params["T"]), float(params["tau"])
    v = (y["E"].shape[1] - 1) // T
    kappa = 1 - (1 - params["p_c"]) * params["p_m"]
    sigma2 = (T - tau) / (tau * T * v * (T - 1))
    left = 1 / (kappa * contrast(y0["E"], T)) - 1
    return float(contrast(y["E"], T) - 1 / (kappa * (1 + left * np.exp(-8 * sigma2 * kappa * t))))


read = over(Sum, E[a, l] * P_shown[s, l], (l, d))
output = over(Sum, E[a, x] * read, (a, K))
loss = 1 + over(Sum, output**2 - 2 * P[s, x] * output, (s, N), (x, d)) / N

SYSTEM = System(
    name="topics.tied",
    source=Source("li2023topic", "Theorem 1", "with values E^T E, uniform attention"),
    axes={a: K, **dict.fromkeys((i, l, x), d), s: N},
    equations=gradient_flow(loss, {E[a, i]: 1}),
    params=(*PARAMS, Param(eps, 0.1, Interval(0, oo), "E at the start, a multiple of the identity")),
    initial={E[a, i]: eps * KroneckerDelta(a, i)},
    sizes={d: 13, N: 6, K: 13},
    span=(0.0, 60.0),
    time="time of gradient flow",
    observables={"loss": loss},
    display={"output": output, "loss": loss},
    invariants=(Invariant("loss falls", loss, "nonincreasing"),),
    closed_forms=(ClosedForm("logistic law", "from a multiple of the identity, with the tables of T topics", logistic, "implicit"),),
)
