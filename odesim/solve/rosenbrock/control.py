"""The size of a step of a stiff method: Gustafsson's predictive rule and a first guess.

Hairer, Wanner, Solving Ordinary Differential Equations II (1996), IV.8, eqs. 8.27-8.28; numbers as in their code rodas.f. First step:
Hairer, Norsett, Wanner I (1993), II.4, with the second derivative from the Jacobian.
"""

import numpy as np

from odesim.base.arrays import Array

SAFETY, SHRINK, GROW = 0.9, 0.2, 6.0


class Control:
    """The next step from the errors of the last two accepted ones; power: that of h in the error norm."""

    def __init__(self, power: int) -> None:
        self.power = power
        self._h_old, self._error_old = 0.0, 1.0
        self._retry = False

    def after(self, h: float, error: float) -> float:
        """What follows a step h with this error norm, accepted where error <= 1; after a rejection no step grows."""
        if not np.isfinite(error):
            self._retry = True
            return 0.25 * h
        error = max(error, 1e-10)
        factor = SAFETY * error ** (-1 / self.power)
        if error > 1:
            self._retry = True
            return h * min(0.9, max(SHRINK, factor))
        if self._h_old > 0:
            factor = min(factor, SAFETY * h / self._h_old * (self._error_old / error**2) ** (1 / self.power))
        self._h_old, self._error_old = h, max(error, 1e-2)
        grow, self._retry = 1.0 if self._retry else GROW, False
        return h * min(grow, max(SHRINK, factor))


def norm(e: Array, old: Array, new: Array, rtol: float, atol: float) -> float:
    """The root mean square of e (n,) in units of the tolerance between old and new (n,)."""
    units = e / (atol + rtol * np.maximum(np.abs(old), np.abs(new)))
    return float(np.sqrt(np.mean(units * units))) if len(e) else 0.0


def first_step(y: Array, f: Array, curvature: Array, span: float, power: int, rtol: float, atol: float) -> float:
    """A step that is small against the state and its first two derivatives, at most the span."""
    size, slope, bend = (norm(v, y, y, rtol, atol) for v in (y, f, curvature))
    h = 0.01 * size / slope if slope > 0 else 0.0
    most = 100 * h
    if not (size > 1e-5 and slope > 1e-5 and h > 1e-12 * span):
        most = span
    steepest = bend if slope < bend < 1e300 else slope
    guess = (0.01 / steepest) ** (1 / power) if 1e-15 < steepest < 1e300 else 1e-6 * span
    return min(guess, most, span)
