"""One hidden node with a linear activation and softmax attention: the orbit of joma.linear, in infinite time.

v holds the weights of the node over M contextual tokens, v^2/2 their attention logits, Delta the saliency of each token. The
normaliser A = sum_l exp(v_l^2/2) is common to all components, so erf(v/sqrt 2) / Delta stays the same for all of them; the winner
grows like |Delta| t, the others stop, the attention becomes ever more sparse.

Assumed: one query, a signal that does not change in time, equal learning rates; the mean attention that softmax subtracts
(the term |v|^2 b) is uniform, and so a common factor. Where it is not, the most salient token may lose.
Theorem 2 prints erf(v/2); conserved is erf(v/sqrt 2).
"""

from typing import Any

import numpy as np
from sympy import And, Eq, Interval, erf, oo, sqrt

from odesim.models.joma.linear import Delta, M, l, rising, spread, v, z
from odesim.symbolic import ClosedForm, Invariant, Param, Source, System, softmax


def solution(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """v (M,) at time t: the component that diverges first in joma.linear is at w, and the others follow from w.

    w solves sum_l (v_l - v_l(0)) / Delta_l = t, which holds because the attention sums to 1.
    """
    from scipy.optimize import brentq
    from scipy.special import erfc, log_ndtr, ndtri_exp

    v0, Delta = np.asarray(y0["v"], float), np.asarray(params["Delta"], float)
    moving = Delta != 0
    if not moving.any():
        return {"v": v0.copy()}
    sign, pull = np.sign(Delta[moving]), np.abs(Delta[moving])
    start = sign * v0[moving]
    left = erfc(start / np.sqrt(2))  # in the clock of joma.linear it falls at the rate sqrt(2/pi) |Delta|
    first = np.argmin(left / pull)
    rest = np.maximum(left - pull * (left[first] / pull[first]), 0)  # its value when that of the first component is 0

    def others(w: float) -> np.ndarray:
        """The moving components, in the direction of Delta, when the first one is at w."""
        with np.errstate(divide="ignore"):
            tail = np.logaddexp(np.log(rest / 2), np.log(pull / pull[first]) + log_ndtr(-w))
        return np.where(np.arange(len(pull)) == first, w, -ndtri_exp(tail))

    begin = others(start[first])

    def late(w: float) -> float:
        """The time at which the first component is at w, minus t."""
        clock = np.sqrt(np.pi / 2) * (left[first] - erfc(w / np.sqrt(2))) / pull[first]
        return float(((others(w) - begin) / pull).sum() + (np.exp(v0[~moving] ** 2 / 2) * clock).sum() - t)

    most = start[first] + pull[first] * t  # its attention is at most 1
    w = most if late(most) <= 0 else brentq(late, start[first], most, xtol=1e-13, rtol=1e-14)
    v = v0.copy()
    v[moving] = sign * others(w)
    return {"v": v}


SYSTEM = System(
    name="joma.linear_softmax",
    source=Source("tian2023joma", "Theorem 2", "softmax attention with a uniform mean"),
    axes={l: M},
    equations={v[l]: Delta[l] * softmax(z, (l, M))},
    params=(Param(Delta, rising, Interval(-oo, oo), "saliency of a token: mean signal where it occurs"),),
    initial={v[l]: 0},
    sizes={M: 10},
    span=(0.0, 20.0),
    time="time of gradient flow",
    observables={"entropy": spread},
    invariants=(
        Invariant("ratio", erf(v[l] / sqrt(2)) * Delta[0] - erf(v[0] / sqrt(2)) * Delta[l], "constant"),
        Invariant("entropy falls", spread, "nonincreasing", when=And(Eq(v[l] ** 2, v[0] ** 2), v[l] * Delta[l] >= 0)),
    ),
    closed_forms=(ClosedForm("inverse error function in the winner's clock", "for every start", solution),),
)
