"""particles.sphere from tokens with equal inner products gamma, which stay equal: one equation for all of them.

d gamma/dt = 2 (1 - gamma) ((n-1) gamma + 1) / (exp(beta (1 - gamma)) + n - 1). gamma = 0 stands for random tokens in many dimensions. The
tokens become one cluster, gamma = 1: at once for beta up to log(n), after a time of order exp(beta) / n beyond.

Assumed: Q = K = V = I, no mask; -1/(n-1) < gamma < 1 at the start.
"""

from typing import Any

import numpy as np
from scipy.integrate import quad
from sympy import Interval, exp, oo, symbols

from odesim.symbolic import ClosedForm, Constraint, Param, Source, System

gamma = symbols("gamma", real=True)
beta, n = symbols("beta", nonnegative=True), symbols("n", positive=True)
rate = 2 * (1 - gamma) * ((n - 1) * gamma + 1) / (exp(beta * (1 - gamma)) + n - 1)


def passage(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """By how much gamma is off: the integral of d gamma / rate minus the time, times the rate."""
    beta, n = float(params["beta"]), float(params["n"])

    def slowness(g: float) -> float:
        return float((np.exp(beta * (1 - g)) + n - 1) / (2 * (1 - g) * ((n - 1) * g + 1)))

    start, end = float(y0["gamma"]), float(y["gamma"])
    return np.asarray((quad(slowness, start, end, epsabs=1e-11, epsrel=1e-11, limit=200)[0] - t) / slowness(end))


SYSTEM = System(
    name="particles.gamma",
    source=Source("geshkovski2023mathematical", "eq. SA", "equal inner products"),
    axes={},
    equations={gamma: rate},
    params=(Param(beta, 4.0, Interval(0, oo), "inverse temperature"), Param(n, 32.0, Interval(2, oo), "number of tokens")),
    initial={gamma: 0},
    span=(0.0, 6.0),
    time="depth",
    constraints=(Constraint("at least two tokens", n - 2, ">=0"),),
    closed_forms=(ClosedForm("time of passage", "from -1/(n-1) < gamma < 1, before it has come to rest", passage, "implicit"),),
)
