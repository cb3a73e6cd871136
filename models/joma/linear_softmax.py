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
from sympy import And, Eq, IndexedBase, Interval, Sum, erf, oo, sqrt

from odesim.symbolic import ClosedForm, Invariant, Param, Source, System, index, logsumexp, over, sizes, softmax

l, k = index("l k")
(M,) = sizes("M")
v, Delta = IndexedBase("v", shape=(M,)), IndexedBase("Delta", shape=(M,))


def rising(sizes: dict[str, int], known: dict[str, Any]) -> np.ndarray:
    """Delta (M,): 1/M, 2/M, ..., 1."""
    return np.arange(1, sizes["M"] + 1) / sizes["M"]


def common_ratio(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """Growth of erf(v/sqrt 2) against that of the most salient component (M,): 0 on a solution."""
    from scipy.special import erf

    Delta = params["Delta"]
    first = np.argmax(np.abs(Delta))
    grown = erf(y["v"] / np.sqrt(2)) - erf(y0["v"] / np.sqrt(2))
    return grown * Delta[first] - grown[first] * Delta


z = v[l] ** 2 / 2
entropy = over(Sum, softmax(z, (l, M)) * (logsumexp(z.xreplace({l: k}), (k, M)) - z), (l, M))

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
    observables={"entropy": entropy},
    invariants=(
        Invariant("ratio", erf(v[l] / sqrt(2)) * Delta[0] - erf(v[0] / sqrt(2)) * Delta[l], "constant"),
        Invariant("entropy falls", entropy, "nonincreasing", when=And(Eq(v[l] ** 2, v[0] ** 2), v[l] * Delta[l] >= 0)),
    ),
    closed_forms=(ClosedForm("common ratio", "for every start", common_ratio, "implicit"),),
)
