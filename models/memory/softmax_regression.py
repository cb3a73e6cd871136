"""One matrix learns a label for each token: softmax regression from zero, by the margin m_x between the label and all other classes.

Tokens x have frequencies p_x, embeddings are orthonormal, so that columns of the matrix do not interact: dm_x/dt = M p_x /
(exp(m_x) + M - 1), with M classes. Each margin is a function of p_x t alone, exp(m) + (M - 1) m = 1 + M p_x t: first p_x t, then
ln(M p_x t). Frequent tokens are learned first; with p_x of a power law the loss falls as a power of time.

Assumed: gradient flow of the cross-entropy, one label for each token, all columns 0 at the start.
"""

from typing import Any

import numpy as np
from sympy import Interval, Sum, Symbol, exp, log, oo

from odesim.symbolic import ClosedForm, Constraint, Event, IndexedBase, Invariant, Param, Source, System, index, over, sizes

(x,) = index("x")
(N,) = sizes("N")
m, p, M = IndexedBase("m", shape=(N,)), IndexedBase("p", shape=(N,)), Symbol("M", positive=True)


def zipf(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """p (N,): proportional to 1 / rank."""
    p = 1 / np.arange(1, sizes["N"] + 1)
    return np.asarray(p / p.sum())


def margin(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """m (N,) at time t: A - W(exp(A)/(M-1)) of Lambert's W, A = (1 + M p t)/(M-1) from 0; by Newton's method, which does not overflow."""
    M = params["M"]
    right = np.exp(y0["m"]) + (M - 1) * y0["m"] + M * params["p"] * t
    m = np.where(right > 1, np.minimum(right / M, np.log(np.maximum(right, 1))), right / M)
    for _ in range(60):
        m = m - (np.exp(m) + (M - 1) * m - right) / (np.exp(m) + M - 1)
    return {"m": m}


loss = over(Sum, p[x] * log(1 + (M - 1) * exp(-m[x])), (x, N))

SYSTEM = System(
    name="memory.softmax_regression",
    source=Source("bietti2023birth", "Section 3", "one matrix, from zero"),
    axes={x: N},
    equations={m[x]: M * p[x] / (exp(m[x]) + M - 1)},
    params=(Param(p, zipf, Interval.open(0, oo), "frequencies of the tokens"), Param(M, 7.0, Interval.open(1, oo), "number of classes")),
    initial={m[x]: 0},
    sizes={N: 10},
    span=(0.0, 300.0),
    time="time of gradient flow",
    observables={"loss": loss, "probability": 1 / (1 + (M - 1) * exp(-m[x]))},
    display={"loss": loss},
    constraints=(Constraint("p sums to 1", over(Sum, p[x], (x, N)) - 1, "==0", 1e-9),),
    invariants=(Invariant("loss falls", loss, "nonincreasing"),),
    events=(Event("learned", m[x] - log(M - 1), doc="the label of a token is as probable as all other classes together"),),
    closed_forms=(ClosedForm("margin", "for every start", margin),),
)
