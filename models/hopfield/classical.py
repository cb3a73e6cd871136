"""The classical memory of signs: neuron by neuron, s_i <- sign(sum_j W_ij s_j), with Hebb's weights and none from a neuron to itself.

By default W = X X^T without its diagonal: whole numbers, whose sums are exact, so that a sum of 0 is one and counts as +1. A factor, as
1/d, turns no sign, but where it rounds, as for d = 12, it may turn a tie.

At step t those neurons are updated whose number is t modulo B: one at a time for B = d, all at once for B = 1. One at a time the energy
-s W s / 2 never rises, and the state ends in a fixed point. Random patterns are kept, with few errors, up to N = .138 d of them, and lost
beyond; one update of a pattern has the wrong sign with probability erfc(sqrt(d / (2 N))) / 2.

Assumed: symmetric weights, no thresholds, no noise.
"""

from typing import Any

import numpy as np
from sympy import And, Interval, Mod, Naturals, Ne, Piecewise, Sum, Symbol, oo

from odesim.models.hopfield._patterns import damaged, one_by_one, signs
from odesim.symbolic import Constraint, IndexedBase, Invariant, Map, Param, Source, index, over, sizes, time

i, j, n = index("i j n")
d, N = sizes("d N")
s, s0, X, W = IndexedBase("s", shape=(d,)), IndexedBase("s0", shape=(d,)), IndexedBase("X", shape=(d, N)), IndexedBase("W", shape=(d, d))
B = Symbol("B", integer=True, positive=True)


def hebb(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """W (d, d): X X^T without its diagonal."""
    W = params["X"] @ params["X"].T
    return W - np.diag(np.diag(W))


field = over(Sum, W[i, j] * s[j], (j, d))
energy = -over(Sum, s[i] * field, (i, d)) / 2

SYSTEM = Map(
    name="hopfield.classical",
    source=Source("hopfield1982neural", "eqs. 1, 2 and 7", "signs, no thresholds, a fixed order"),
    axes={i: d, j: d, n: N},
    updates={s[i]: Piecewise((s[i], Ne(Mod(time, B), Mod(i, B))), (1, field >= 0), (-1, True))},
    params=(
        Param(X, signs, Interval(-1, 1), "stored patterns of signs, a column each"),
        Param(W, hebb, Interval(-oo, oo), "weights, symmetric"),
        Param(B, one_by_one, Naturals, "number of groups of neurons, which are updated in turn"),
        Param(s0, damaged, Interval(-1, 1), "signs at the start"),
    ),
    initial={s[i]: s0[i]},
    sizes={d: 64, N: 4},
    steps=192,
    time="updates",
    observables={"overlap": over(Sum, X[i, n] * s[i], (i, d)) / d, "energy": energy},
    display={"field": field, "energy": energy},
    constraints=(Constraint("W is symmetric", W[i, j] - W[j, i], "==0"), Constraint("W has no diagonal", W[i, i], "==0")),
    invariants=(Invariant("energy falls", energy, "nonincreasing", when=And(d <= B, over(Sum, (s[i] ** 2 - 1) ** 2, (i, d)) <= 0)),),
)
