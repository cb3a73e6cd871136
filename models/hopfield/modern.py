"""A continuous associative memory as a flow, tau dxi/dt = X softmax(beta X^T xi) - xi: the gradient flow of its energy.

The columns of X (d, N) are the patterns, xi (d,) is the state. It goes to a fixed point of hopfield.update, which is its Euler step of
length tau: one pattern, the average of a few that are close to each other, or that of all. What is orthogonal to all patterns decays as
exp(-t/tau). The energy |xi|^2/2 - log(sum_n exp(beta x_n xi)) / beta falls.

Assumed: patterns that do not change, all of them read at once.
"""

from typing import Any

import numpy as np
from sympy import Interval, Sum, Symbol, cos, oo

from odesim.models.hopfield._patterns import gaussian, outside
from odesim.symbolic import ClosedForm, IndexedBase, Invariant, Param, Source, System, entropy, index, logsumexp, over, sizes, softmax

i, j, n = index("i j n")
d, N = sizes("d N")
xi, X = IndexedBase("xi", shape=(d,)), IndexedBase("X", shape=(d, N))
beta, tau = (Symbol(name, positive=True) for name in ("beta", "tau"))


def orthogonal(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """By how much the part outside the patterns is off its decay."""
    X = params["X"]
    return outside(X, y["xi"]) - np.exp(-t / params["tau"]) * outside(X, y0["xi"])


logits = beta * over(Sum, X[i, n] * xi[i], (i, d))
p = softmax(logits, (n, N))
energy = over(Sum, xi[i] ** 2, (i, d)) / 2 - logsumexp(logits, (n, N)) / beta

SYSTEM = System(
    name="hopfield.modern",
    source=Source("ramsauer2021hopfield", "eqs. 2 and 3", "as a flow; patterns are columns"),
    axes={i: d, n: N},
    equations={xi[i]: (over(Sum, X[i, n] * p, (n, N)) - xi[i]) / tau},
    params=(
        Param(X, gaussian, Interval(-oo, oo), "stored patterns, a column each"),
        Param(beta, 0.3, Interval.open(0, oo), "inverse temperature"),
        Param(tau, 1.0, Interval.open(0, oo), "time constant"),
    ),
    initial={xi[i]: X[i, 0] / 2 + cos(i)},
    sizes={d: 16, N: 10},
    span=(0.0, 10.0),
    time="time",
    observables={"energy": energy, "p": p, "entropy": entropy(p, (n, N))},
    invariants=(Invariant("energy falls", energy, "nonincreasing"),),
    closed_forms=(ClosedForm("outside the patterns", "everywhere; 0 where the patterns span the space", orthogonal, "implicit"),),
    display={"p": p},
)
