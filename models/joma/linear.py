"""One hidden node with a linear activation and exp attention: a component runs away in finite time, and it alone.

v holds the weights of the node over M contextual tokens; the attention logit of a token is v^2/2 (JoMA's invariant), Delta is
the saliency of a token: the mean back-propagated signal where it occurs. Attention becomes ever more sparse.

Assumed: one query, a signal that does not change in time, equal learning rates, no normalisation of the attention.
Theorem 2 as printed conserves erf(v/2) / Delta and lets v diverge as t -> infinity. Right is erf(v/sqrt 2) / Delta, and the
winner, largest in |Delta|, diverges at t* = sqrt(pi/2) / |Delta| (from v = 0), where the others have not finished.
"""

from typing import Any

import numpy as np
from sympy import And, Eq, Interval, erf, exp, oo, pi, sqrt

from odesim.symbolic import (
    ClosedForm,
    Event,
    IndexedBase,
    Invariant,
    Param,
    Source,
    System,
    entropy,
    index,
    logsumexp,
    sizes,
    softmax,
    time,
)

(l,) = index("l")
(M,) = sizes("M")
v, Delta = IndexedBase("v", shape=(M,)), IndexedBase("Delta", shape=(M,))


def rising(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """Delta (M,): 1/M, 2/M, ..., 1, so that t* = sqrt(pi/2) for any M."""
    return np.arange(1, sizes["M"] + 1) / sizes["M"]


def solution(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """v (M,) at time t; inf or nan from t* on."""
    from scipy.special import erf, erfinv

    return {"v": np.sqrt(2) * erfinv(erf(y0["v"] / np.sqrt(2)) + np.sqrt(2 / np.pi) * params["Delta"] * t)}


z = v[l] ** 2 / 2
spread = entropy(softmax(z, (l, M)), (l, M))

SYSTEM = System(
    name="joma.linear",
    source=Source("tian2023joma", "Theorem 2", "exp attention, no normaliser"),
    axes={l: M},
    equations={v[l]: Delta[l] * exp(z)},
    params=(Param(Delta, rising, Interval(-oo, oo), "saliency of a token: mean signal where it occurs"),),
    initial={v[l]: 0},
    sizes={M: 10},
    span=(0.0, 1.25),
    time="time of gradient flow",
    observables={"entropy": spread},
    invariants=(
        Invariant("erf grows with t", erf(v[l] / sqrt(2)) - sqrt(2 / pi) * Delta[l] * time, "constant"),
        # other starts may put a salient component behind one that is not: it overtakes, and the entropy rises on the way
        Invariant("entropy falls", spread, "nonincreasing", when=And(Eq(v[l] ** 2, v[0] ** 2), v[l] * Delta[l] >= 0)),
    ),
    # past v = 6 only a fraction erfc(6/sqrt 2) = 2e-9 of the time is left
    events=(Event("v reaches 6", z - 18, direction=1, doc="a component has run away: all but 2e-9 of the time to its blow-up has passed"),),
    closed_forms=(ClosedForm("inverse error function", "before t*, for every start", solution),),
    growth=exp(logsumexp(z, (l, M))),
)
