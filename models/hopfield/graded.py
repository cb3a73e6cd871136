"""A network of graded neurons, du/dt = -u + W tanh(g u): Hopfield's continuous memory, whose energy falls for symmetric W.

u (d,) are the inputs of the neurons, tanh(g u) their outputs, g the gain. By default W = X X^T / d stores d/4 patterns X of signs. u = 0
is unstable above the gain 1 / (largest eigenvalue of W); there the outputs go to the signs of a pattern. What W never writes decays as
exp(-t).

Assumed: neurons with equal time constants, no input from outside.
"""

from typing import Any

import numpy as np
from sympy import Interval, Sum, Symbol, cos, exp, log, oo, tanh

from odesim.models.hopfield._patterns import outside
from odesim.symbolic import ClosedForm, Constraint, IndexedBase, Invariant, Param, Source, System, index, over, sizes

i, j = index("i j")
(d,) = sizes("d")
u, W, g = IndexedBase("u", shape=(d,)), IndexedBase("W", shape=(d, d)), Symbol("g", positive=True)


def hebb(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """W (d, d): X X^T / d of d/4 patterns of random signs, always the same."""
    n = sizes["d"]
    X = np.where(np.random.default_rng(0).random((n, max(n // 4, 1))) < 0.5, -1.0, 1.0)
    return X @ X.T / n


def unwritten(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """By how much the part that W never writes is off its decay."""
    return outside(params["W"], y["u"]) - np.exp(-t) * outside(params["W"], y0["u"])


v = tanh(g * u[i])
log_cosh = abs(g * u[i]) + log(1 + exp(-2 * abs(g * u[i]))) - log(2)
energy = over(Sum, v * u[i] - log_cosh / g, (i, d)) - over(Sum, v * W[i, j] * tanh(g * u[j]), (i, d), (j, d)) / 2

SYSTEM = System(
    name="hopfield.graded",
    source=Source("hopfield1984neurons", "eqs. 5 and 7", "tanh, no capacities, no inputs"),
    axes={i: d, j: d},
    equations={u[i]: over(Sum, W[i, j] * tanh(g * u[j]), (j, d)) - u[i]},
    params=(Param(W, hebb, Interval(-oo, oo), "weights, symmetric"), Param(g, 3.0, Interval.open(0, oo), "gain of the neurons")),
    initial={u[i]: cos(i) / 2},
    sizes={d: 12},
    span=(0.0, 20.0),
    time="time constants",
    observables={"energy": energy, "output": v},
    constraints=(Constraint("W is symmetric", W[i, j] - W[j, i], "==0"),),
    invariants=(Invariant("energy falls", energy, "nonincreasing"),),
    closed_forms=(ClosedForm("what W never writes", "everywhere; 0 where W has full rank", unwritten, "implicit"),),
)
