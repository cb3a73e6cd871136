"""Checks tolerances, steps and saved times of a run."""

import math

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import SolveError, apart
from odesim.base.options import RunOptions
from odesim.stepper.problem import Problem


def check_options(options: RunOptions) -> RunOptions:
    """The checked options. Raises SolveError for values that are impossible."""
    step, rtol, atol, max_steps, max_step = options.step, options.rtol, options.atol, options.max_steps, options.max_step
    if max_step is not None and not (np.isfinite(max_step) and max_step > 0):
        raise SolveError(f"max_step must be a finite number above 0, not {max_step}")
    if max_step is not None and step is not None:
        raise SolveError("max_step bounds adaptive steps, and step makes them all of one size: give one of them")
    if step is not None and not (np.isfinite(step) and step > 0):
        raise SolveError(f"the step must be a finite number above 0, not {step}")
    if not (np.isfinite(rtol) and rtol > 0):
        raise SolveError(f"rtol must be a finite number above 0, not {rtol}")
    if not (np.isfinite(atol) and atol >= 0):
        raise SolveError(f"atol must be a finite number, 0 or above, not {atol}")
    if max_steps < 1:
        raise SolveError(f"max_steps must be at least 1, not {max_steps}")
    return options


def save_grid(problem: Problem, save: Array | None) -> Array:
    """The saved times (T,), a copy."""
    times = np.array([problem.t0, problem.t1] if save is None else save, dtype=np.float64)
    if times.ndim != 1 or not np.isfinite(times).all() or (times[1:] <= times[:-1]).any():
        raise SolveError("the times to save must be finite and increasing")
    if len(times) and (times[0] < problem.t0 or times[-1] > problem.t1):
        ends = apart(problem.t0, problem.t1, times[0], times[-1])
        raise SolveError("the times to save must lie in {}:{}, not in {}:{}".format(*ends))
    return times


_MOST = 2**62


def usable(rtol: float, atol: float, dtype: str) -> tuple[float, float]:
    """The tolerances used for error norms: not below rounding, and positive where a component stays 0."""
    return max(rtol, 4 * float(np.finfo(dtype).eps)), max(atol, 1e-300)


def fixed_steps(t0: float, t1: float, step: float) -> tuple[int, float]:
    """The number of fixed steps from t0 to t1, and the size of the last one.

    Steps end at t_k = t0 + k step, and at last at t1. A last step that differs from the others by rounding only is as long as they.
    """
    total = min(max(1, math.ceil((t1 - t0) / step - 1e-9)), _MOST)
    rest = t1 - (t0 + (total - 1) * step)
    return total, step if abs(rest - step) <= 1e-9 * step else rest
