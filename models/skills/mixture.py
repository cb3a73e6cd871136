"""Which skills to train on: their losses fall by what the mixture teaches, and the mixture goes to what still helps.

Skill i has the share p_i of the data, A[i, j] says how much it teaches skill j: L_j' = -L_j sum_i p_i A[i, j]. The mixture is Skill-It's
in continuous time, mirror descent: p ~ exp(eta g), g_i' = sum_j A[i, j] L_j. With eta = 0 all shares are alike for ever. A large eta bets
on the skill that helped first.

Assumed: losses fall exponentially at rates that add; the graph A is known and does not change.
"""

from typing import Any

import numpy as np
from sympy import Interval, Sum, oo, symbols

from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, index, over, sizes, softmax

i, j = index("i j")
(K,) = sizes("K")
L, g, A = IndexedBase("L", shape=(K,)), IndexedBase("g", shape=(K,)), IndexedBase("A", shape=(K, K))
eta = symbols("eta", nonnegative=True)


def chain(sizes: dict[str, int]) -> Any:
    """A (K, K): each skill teaches itself, and the next one .6 times as fast."""
    return np.eye(sizes["K"]) + 0.6 * np.eye(sizes["K"], k=1)


def even(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """L and g (K,) at time t if all shares are alike: exponentials at the mean rates."""
    rate = params["A"].mean(axis=0)
    passed = np.where(rate > 0, (1 - np.exp(-rate * t)) / np.where(rate > 0, rate, 1), t)
    return {"L": y0["L"] * np.exp(-rate * t), "g": y0["g"] + params["A"] @ (y0["L"] * passed)}


share = softmax(eta * g[i], (i, K))
loss = over(Sum, L[j], (j, K))

SYSTEM = System(
    name="skills.mixture",
    source=Source("chen2023skillit", "Algorithm 1", "its online mixture in continuous time"),
    axes={i: K, j: K},
    equations={L[j]: -L[j] * over(Sum, share * A[i, j], (i, K)), g[i]: over(Sum, A[i, j] * L[j], (j, K))},
    params=(
        Param(A, chain, Interval(0, oo), "how much a skill teaches another one"),
        Param(eta, 0.5, Interval(0, oo), "rate at which the mixture moves"),
    ),
    initial={L[j]: 1.0, g[i]: 0.0},
    sizes={K: 3},
    span=(0.0, 5.0),
    time="time of training at rate 1",
    observables={"share": share, "loss": loss},
    display={"loss": loss},
    invariants=(Invariant("losses fall", L[j], "nonincreasing", when=L[j] >= 0),),
    closed_forms=(ClosedForm("even shares", "for eta = 0", even),),
)
