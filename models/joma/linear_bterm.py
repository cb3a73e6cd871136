"""One hidden node with a linear activation and softmax attention whose mean is not uniform: the most salient token may lose.

v holds the weights of the node over M contextual tokens, (v^2 - |v|^2 b)/2 their attention logits: softmax subtracts the mean attention
b. A frequent token is held back by its own share. With uniform b it is joma.linear_softmax, where the largest |Delta| wins; with
Delta = (1, .8, .5) and b = (.6, .3, .1) the second token wins.

Assumed: one query, a signal and a mean attention b that do not change in time, equal learning rates.
Theorem 2 names the largest |Delta| as the winner, which holds for uniform b.
"""

from typing import Any

import numpy as np
from sympy import Gt, Interval, Sum, oo

from odesim.models.joma.linear import rising
from odesim.models.joma.linear_softmax import solution
from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, entropy, index, over, sizes, softmax, time

l, j = index("l j")
(M,) = sizes("M")
v, Delta, b = IndexedBase("v", shape=(M,)), IndexedBase("Delta", shape=(M,)), IndexedBase("b", shape=(M,))


def frequent(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """b (M,): in proportion to 1, 2, ..., M."""
    return np.arange(1, sizes["M"] + 1) / (sizes["M"] * (sizes["M"] + 1) / 2)


logits = (v[l] ** 2 - b[l] * over(Sum, v[j] ** 2, (j, M))) / 2
p = softmax(logits, (l, M))

SYSTEM = System(
    name="joma.linear_bterm",
    source=Source("tian2023joma", "Theorem 2", "softmax attention with its mean b"),
    axes={l: M},
    equations={v[l]: Delta[l] * p},
    params=(
        Param(Delta, rising, Interval(-oo, oo), "saliency of a token: mean signal where it occurs"),
        Param(b, frequent, Interval(0, 1), "mean attention of a token"),
    ),
    initial={v[l]: 0},
    sizes={M: 10},
    span=(0.0, 20.0),
    time="time of gradient flow",
    observables={"p": p, "entropy": entropy(p, (l, M))},
    display={"p": p},
    invariants=(Invariant("attention sums to 1", over(Sum, v[l] / Delta[l], (l, M)) - time, "constant", when=Gt(Delta[l] ** 2, 0)),),
    closed_forms=(ClosedForm("joma.linear_softmax", "where b is uniform, for every start", solution),),
)
