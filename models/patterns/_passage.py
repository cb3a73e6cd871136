"""The time that a state takes between two values, by quadrature of its rate."""

from collections.abc import Callable

import numpy as np
from scipy.integrate import quad


def late(t: float, start: float, end: float, rate: Callable[[float], float]) -> float:
    """By how much x of dx/dt = rate(x) > 0 is off at time t, in its own unit: (passed - t) rate(end), passed the integral of dx / rate."""
    passed = quad(lambda x: 1 / rate(x), start, end, epsabs=1e-11, epsrel=1e-11, limit=200)[0]
    return float((passed - t) * np.float64(rate(end)))
