"""Next-token prediction by attention, one query word: words that are never labels are dropped, labels are mixed as often as they come.

w (K,) are the logits of the query's column, m counts the words in its context, y how often each is the label; the prediction is
p = m exp(w) / sum m exp(w), and w' = y - p. Among labels w_j - w_k goes to ln(y_j/m_j) - ln(y_k/m_k), the soft part; against the others it
grows as ln t, the hard part, along the solution of a hard-margin problem. The time is ln(1 + t).

Assumed: the labels of the query's contexts form one strongly connected component, and all other words are below it.
"""

from typing import Any

import numpy as np
from scipy.optimize import brentq
from sympy import Interval, Sum, exp, log, oo

from odesim.models.margin._softmax import TIME
from odesim.symbolic import (
    ClosedForm,
    Constraint,
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
    time,
    xlogy,
)

j, k = index("j k")
(K,) = sizes("K")
w, m, y = (IndexedBase(name, shape=(K,)) for name in ("w", "m", "y"))


def labels(sizes: dict[str, int]) -> Any:
    """y (K,): proportional to 0, 1, 2, ..."""
    return np.arange(sizes["K"]) / max(1, sum(range(sizes["K"])))


def two_logits(s: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """w (K,): with J labels and L other words the gap u of their logits solves L u + J e^u = (J + L) t / J + J."""
    often = np.asarray(params["y"]) > 0
    J, L = int(often.sum()), int((~often).sum())
    right = (J + L) * np.expm1(s) / J + J
    u = brentq(lambda u: L * u + J * np.exp(u) - right, 0, np.log(right / J) + 1e-9, xtol=1e-15)
    return {"w": np.where(often, L, -J) * u / (J + L)}


p = softmax(w[j], (j, K), weight=m[j])
loss = logsumexp(w[j], (j, K), weight=m[j]) - over(Sum, y[k] * (w[k] + log(m[k])), (k, K))

SYSTEM = System(
    name="margin.next_token",
    source=Source("li2024mechanics", "Section 3", "one query word, in the time ln(1 + t)"),
    axes={j: K, k: K},
    equations=gradient_flow(loss, {w[j]: exp(time)}),
    params=(
        Param(m, 1.0, Interval.open(0, oo), "how often each word is in the context"),
        Param(y, labels, Interval(0, 1), "how often each word is the label"),
    ),
    initial={w[j]: 0.0},
    sizes={K: 3},
    span=(0.0, 10.0),
    time=TIME,
    observables={"loss": loss, "excess": loss + over(Sum, xlogy(y[k], y[k]), (k, K)), "probability": p},
    constraints=(Constraint("labels", over(Sum, y[k], (k, K)) - 1, "==0", 1e-12),),
    invariants=(Invariant("sum of logits", over(Sum, w[k], (k, K)), "constant"), Invariant("loss falls", loss, "nonincreasing")),
    closed_forms=(ClosedForm("two logits", "labels equally often, m = 1, from w = 0", two_logits),),
)
