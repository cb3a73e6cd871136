"""Decides whether a solution goes to infinity when its steps become too small."""

import numpy as np

from odesim.base.arrays import Array
from odesim.solve.problem import BoundSystem
from odesim.solve.step.control import runs_away


def blows_up(rhs: BoundSystem, t0: float, t: float, y: Array, rtol: float, atol: float) -> bool:
    """Whether a run from t0 that stands at y (n,), where its step has fallen to its smallest value, is about to reach infinity.

    The component that moves most in units of its tolerance must grow. The time |y/f| in which it would double must be no more than 1e5
    smallest steps, 2.2e-10 of the time passed. At a pole y = (t* - t)^-p that time is (t* - t)/p, at a logarithm (t* - t) log(1/(t* - t)).
    The step stops some 1 to 100 times below t* - t. Where only the derivative grows beyond bounds, y = y* - (t* - t)^q, the time is
    (t* - t)^(1-q) y*: for a square root 1e7 smallest steps.
    """
    slope = np.empty_like(y)
    with np.errstate(all="ignore"):
        rhs(t, y, slope)
        value, f = y.astype(np.float64), slope.astype(np.float64)
        weighed = np.abs(f) / (atol + rtol * np.abs(value))
        i = int(np.argmax(np.where(np.isnan(weighed), -1.0, weighed)))
    return runs_away(float(value[i]), float(f[i]), max(abs(t), t - t0))
