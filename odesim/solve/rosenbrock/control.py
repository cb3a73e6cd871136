"""Step control of a stiff run by the rules of odesim.solve.step.control, with numpy's norms and Python's powers."""

from math import inf

import numpy as np

from odesim.base.arrays import Array
from odesim.solve.step import control
from odesim.solve.step.control import LEAST, LEAST_OLD, SAFETY, STIFF_GROW, STIFF_SHRINK


class Control:
    """Chooses the next step from the errors of the last two accepted ones; power: that of h in the error norm. No step is above longest."""

    def __init__(self, power: int, longest: float = inf) -> None:
        self.power, self.longest = power, longest
        self._h_old, self._error_old = 0.0, 1.0
        self._retry = False

    def after(self, h: float, error: float) -> float:
        """The step after h with this error norm, accepted if error <= 1."""
        counted = max(error, LEAST)
        ratio = SAFETY * h / self._h_old if self._h_old > 0 else 0.0
        factor = control.gustafsson_by_norms(counted, ratio, self._error_old, self.power)
        following = control.at_most(control.next_step(h, error, factor, self._retry, STIFF_SHRINK, STIFF_GROW), self.longest)
        self._retry = not error <= 1
        if not self._retry:
            self._h_old, self._error_old = h, max(counted, LEAST_OLD)
        return following

    def first(self, size: float, slope: float, bend: float, t0: float, span: float) -> float:
        """The first step from t0, from the norms of the state and its first two derivatives."""
        _, most = control.trial_step(size, slope, span)
        steep = control.steepest(slope, bend)
        guess = (0.01 / steep) ** (1 / self.power) if steep > 0 else inf
        return control.first_step(guess, steep, most, t0, span, self.longest)


def norm(e: Array, old: Array, new: Array, rtol: float, atol: float) -> float:
    """The root mean square of e (n,) in units of the tolerance between old and new (n,)."""
    units = e / (atol + rtol * np.maximum(np.abs(old), np.abs(new)))
    return float(np.sqrt(np.mean(units * units))) if len(e) else 0.0
