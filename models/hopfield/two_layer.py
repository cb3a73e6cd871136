"""Two layers of neurons with equal weights both ways: tau_v dv/dt = X softmax(beta h) - v, tau_h dh/dt = X^T v - h.

v (d,) are feature neurons, h (N,) memory neurons, one for each pattern, a column of X. For tau_h -> 0 the memory neurons follow at once,
and v obeys hopfield.modern; the distance from it is of order tau_h, and the flow is stiff. An energy of both layers falls for every
tau_h. What is orthogonal to all patterns decays as exp(-t/tau_v).

Assumed: only pairs of a feature and a memory neuron are connected, with equal weights both ways.
"""

from typing import Any

import numpy as np
from sympy import Interval, Sum, Symbol, cos, oo

from odesim.models.hopfield._patterns import gaussian, outside
from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, entropy, index, logsumexp, over, sizes, softmax

i, n = index("i n")
d, N = sizes("d N")
v, h, X = IndexedBase("v", shape=(d,)), IndexedBase("h", shape=(N,)), IndexedBase("X", shape=(d, N))
beta, tau_v, tau_h = (Symbol(name, positive=True) for name in ("beta", "tau_v", "tau_h"))


def orthogonal(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """By how much the part of v outside the patterns is off its decay."""
    X = params["X"]
    return outside(X, y["v"]) - np.exp(-t / params["tau_v"]) * outside(X, y0["v"])


p = softmax(beta * h[n], (n, N))
read = over(Sum, X[i, n] * v[i], (i, d))
energy = over(Sum, v[i] ** 2, (i, d)) / 2 + over(Sum, p * (h[n] - read), (n, N)) - logsumexp(beta * h[n], (n, N)) / beta

SYSTEM = System(
    name="hopfield.two_layer",
    source=Source("krotov2021large", "eqs. 1 and 8", "memory neurons with softmax"),
    axes={i: d, n: N},
    equations={v[i]: (over(Sum, X[i, n] * p, (n, N)) - v[i]) / tau_v, h[n]: (read - h[n]) / tau_h},
    params=(
        Param(X, gaussian, Interval(-oo, oo), "stored patterns, a column each"),
        Param(beta, 0.3, Interval.open(0, oo), "inverse temperature"),
        Param(tau_v, 1.0, Interval.open(0, oo), "time constant of feature neurons"),
        Param(tau_h, 0.1, Interval.open(0, oo), "time constant of memory neurons"),
    ),
    initial={v[i]: X[i, 0] / 2 + cos(i) / 2, h[n]: 0},
    sizes={d: 16, N: 10},
    span=(0.0, 10.0),
    time="time",
    observables={"energy": energy, "p": p, "entropy": entropy(p, (n, N))},
    display={"p": p, "energy": energy},
    invariants=(Invariant("energy falls", energy, "nonincreasing"),),
    closed_forms=(ClosedForm("what no pattern reads", "everywhere; 0 where patterns span all", orthogonal, "implicit"),),
)
