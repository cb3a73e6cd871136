"""Gradient descent with momentum on a Problem's right-hand side: the map of a training, whose limit is the flow.

v <- momentum v + step f(t, y), then y <- y + v, from v = 0 and y0: torch's SGD where f is minus the gradient times learning rates
that do not change. step: the Problem's time of one iteration.
"""

import numpy as np

from odesim.base.arrays import Array
from odesim.errors import SolveError
from odesim.solve.problem import Problem


def descend(problem: Problem, iterations: Array, *, step: float = 1.0, momentum: float = 0.0) -> tuple[Array, Array]:
    """The requested iterations (T,) that were reached, and the states (T, n) after as many updates.

    iterations: whole numbers from 0 up that increase. It ends before the first state that is not finite. Raises SolveError.
    """
    asked = np.asarray(iterations)
    if asked.ndim != 1 or not np.array_equal(asked, np.floor(asked)) or np.any(asked < 0) or np.any(np.diff(asked) <= 0):
        raise SolveError("iterations must be whole numbers from 0 up that increase")
    if not (step > 0 and 0 <= momentum <= 1):
        raise SolveError(f"descent needs a step above 0 and a momentum in [0, 1], not {step:g} and {momentum:g}")
    y = np.array(problem.y0)
    v, f = np.zeros_like(y), np.empty_like(y)
    kept = np.empty((len(asked), len(y)), y.dtype)
    done = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for row, i in enumerate(asked):
            for j in range(done, int(i)):
                problem.rhs(problem.t0 + step * j, y, f)
                problem.rhs.check()
                v *= momentum
                v += step * f
                y += v
            if not np.all(np.isfinite(y)):
                return asked[:row], kept[:row]
            kept[row], done = y, int(i)
    return asked, kept
