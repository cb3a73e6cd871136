"""hopfield.modern between two patterns of equal length: du/dt = tanh(beta delta^2 u) - u along the line that joins them.

The state is (x_1 + x_2)/2 + u (x_1 - x_2)/2, and delta is half the distance of the patterns. At beta delta^2 = 1 is a pitchfork: below
it the state goes to the average u = 0, above it to the side where it starts, u = tanh(beta delta^2 u).

Assumed: |x_1| = |x_2|. What is orthogonal to the line decays as exp(-t) and is left out.
"""

from typing import Any

import numpy as np
from scipy.integrate import quad
from sympy import Interval, exp, log, oo, symbols, tanh

from odesim.symbolic import ClosedForm, Invariant, Param, Source, System

u = symbols("u", real=True)
beta, delta = symbols("beta delta", positive=True)


def passage(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """By how much u is off: the integral of du / (tanh(c u) - u), c = beta delta^2, minus the time, times the rate; u = 0 stays."""
    c, start, end = float(params["beta"] * params["delta"] ** 2), float(y0["u"]), float(y["u"])
    if start == 0:
        return np.asarray(end)
    passed = quad(lambda x: 1 / (np.tanh(c * x) - x), start, end, epsabs=1e-10, epsrel=1e-10)[0]
    return np.asarray((passed - t) * (np.tanh(c * end) - end))


c = beta * delta**2
energy = u**2 / 2 - (abs(c * u) + log(1 + exp(-2 * abs(c * u))) - log(2)) / c

SYSTEM = System(
    name="hopfield.two_patterns",
    source=Source("ramsauer2021hopfield", "eqs. 2 and 3", "two patterns of equal length"),
    axes={},
    equations={u: tanh(c * u) - u},
    params=(
        Param(beta, 2.0, Interval.open(0, oo), "inverse temperature"),
        Param(delta, 1.0, Interval.open(0, oo), "half the distance of the patterns"),
    ),
    initial={u: 0.05},
    span=(0.0, 8.0),
    time="time constants",
    observables={"energy": energy},
    invariants=(Invariant("energy falls", energy, "nonincreasing"),),
    closed_forms=(ClosedForm("time of passage", "everywhere, before u has come to rest", passage, "implicit"),),
)
