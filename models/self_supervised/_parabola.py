"""A mode on the invariant parabola s = p^2 / alpha: p' = p^2 (1 - c p) - eta p, c = 1 + sigma2, its rest states and its solution."""

from typing import Any

import numpy as np
from scipy.optimize import brentq


def rest_points(eta: float, sigma2: float) -> tuple[complex, complex]:
    """p- and p+, the edge of the basin and the learned state: complex where weight decay is above 1/(4c) and there are none."""
    c = 1 + sigma2
    root = np.sqrt(complex(1 - 4 * c * eta))
    return (1 - root) / (2 * c), (1 + root) / (2 * c)


def mode_at(t: float, p0: float, eta: float, sigma2: float) -> float:
    """p(t) from p0 > 0, by partial fractions of 1/p'. Not for eta = 0 or 1/(4c), where rest states meet.

    The unknown is u = ln of the distance at the start from where p goes over that at t, which is smooth and grows with t: p itself is
    flat near a rest state.
    """
    low, high = rest_points(eta, sigma2)
    roots, c = (0j, low, high), 1 + sigma2
    goal = 2 if not low.imag and p0 > low.real else 0
    away = p0 - roots[goal].real
    if t == 0 or away == 0 or (not low.imag and p0 == low.real):
        return p0
    weights = [1 / np.prod([root - other for other in roots if other != root]) for root in roots]

    def time(u: float) -> float:
        p = roots[goal].real + away * np.exp(-u)
        logs = [-u if k == goal else np.log((p - root) / (p0 - root)) for k, root in enumerate(roots)]
        return float(-np.dot(weights, logs).real / c)

    most = 1.0
    while time(most) < t:
        most *= 2
    u = brentq(lambda u: time(u) - t, 0.0, most, xtol=1e-13, rtol=1e-14)
    return float(roots[goal].real + away * np.exp(-u))


def modes_at(t: float, p0: Any, params: dict[str, Any]) -> np.ndarray:
    """p (n,) at t from p0 (n,)."""
    return np.array([mode_at(t, float(p), float(params["eta"]), float(params["sigma2"])) for p in p0])
