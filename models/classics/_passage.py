"""The time that a mode of a deep linear network takes, by quadrature."""

import numpy as np
from scipy.integrate import quad


def off(t: float, start: float, end: float, s: float, L: float) -> float:
    """By how much a of da/dt = L a^(2 - 2/L) (s - a) is off at time t: the integral of da / rate minus the time, times the rate.

    a = 0 stays, and once a is at s to nine digits its distance from it is returned.
    """
    if start <= 0 or abs(end - s) < 1e-9 * s:
        return end - (start if start <= 0 else s)
    # in y = log(a / (s - a)) the integrand is smooth: a constant for two layers
    first, last = (float(np.log(a / (s - a))) for a in (start, end))
    passed = quad(lambda y: (s / (1 + np.exp(-y))) ** (2 / L - 1) / (L * s), first, last, epsabs=1e-11, epsrel=1e-11)[0]
    return float((passed - t) * L * end ** (2 - 2 / L) * (s - end))
