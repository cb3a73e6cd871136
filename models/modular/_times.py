"""Times of blow-up of one frequency of one neuron: in closed form for balanced sizes, else as one integral."""

from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import gamma, hyp2f1

WHOLE = float(np.sqrt(np.pi) * gamma(7 / 6) / gamma(2 / 3))
"""2F1(1/2, 1/6; 7/6; 1) = 1.2143253239."""


def balanced(beta: Any, D: Any, p: float) -> Any:
    """t* (...) from alpha = sqrt(2) beta and the phase gaps D (...): beta falls to beta |sin D|^(1/3) first where |D| > pi/2."""
    s = np.abs(np.sin(D))
    direct = hyp2f1(0.5, 1 / 6, 7 / 6, s**2)
    around = 2 * WHOLE * np.maximum(s, 1e-300) ** (-1 / 3) - direct
    return np.where(np.cos(D) >= 0, direct, around) * p / (2 * beta)


def elapsed(alpha: float, beta: float, D: float, p: float, to: float = np.inf) -> float:
    """The time in which beta > 0 grows to `to`, from |D| < pi/2; to infinity: t*.

    p beta' = sqrt((2 beta^2 + C1)^2 - (C2 / beta)^2) with the two constants C1 and C2 of the flow, here in u = beta(0) / beta.
    """
    C1, C2 = alpha**2 - 2 * beta**2, alpha**2 * beta * np.sin(D)

    def slowness(u: float) -> float:
        return float(1 / np.sqrt((2 * beta**2 + C1 * u**2) ** 2 - (C2 * u**3 / beta) ** 2))

    return p * beta * float(quad(slowness, beta / to, 1, epsabs=0, epsrel=1e-12, limit=200)[0])


def blow_up(alpha: float, beta: float, D: float, p: float) -> float:
    """t* from any alpha, beta > 0 and D in (-pi, pi): before the gap is a right angle beta falls, from the lowest point on it grows."""
    if np.cos(D) > 0:
        return elapsed(alpha, beta, D, p)
    C1, C2 = alpha**2 - 2 * beta**2, alpha**2 * beta * abs(np.sin(D))
    # beta at the right angle: (2 beta^2 + C1) beta = |C2|
    low = max(float(r.real) for r in np.roots([2, 0, C1, -C2]) if abs(r.imag) < 1e-9 * abs(r))

    # beta = low + w^2 takes the root at the lowest point away; (2 b^2 + C1)^2 b^2 - C2^2 = g(b) (b - low)
    def slowness(w: float) -> float:
        b = low + w * w
        up = (2 * b * b + C1) * b
        step = 2 * (b * b + b * low + low * low) + C1  # (up - C2) / (b - low)
        return float(2 * b / np.sqrt((up + C2) * step))

    back = quad(slowness, 0, np.sqrt(beta - low), epsabs=0, epsrel=1e-12, limit=200)[0]
    on = quad(slowness, 0, np.inf, epsabs=0, epsrel=1e-12, limit=400)[0]
    return float(back + on) * p
