"""Problems that know their Jacobian, written by hand."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.ir.invariants import LinearInvariant
from odesim.ir.linear_systems import Dense
from odesim.stepper.problem import Problem
from tests.support.problems import problem

Derivative = Callable[[float, Array], Any]


@dataclass(frozen=True)
class Derivatives:
    """df/dy and df/dt as plain functions."""

    J: Derivative
    slope: Derivative | None

    def prepare(self) -> None:
        """Nothing is derived."""

    def jacobian(self, t: float, y: Array) -> Dense:
        with np.errstate(all="ignore"):
            return Dense(np.array(self.J(t, y), float).reshape(len(y), len(y)))

    def time_slope(self, t: float, y: Array) -> Array | None:
        with np.errstate(all="ignore"):
            return None if self.slope is None else np.array(self.slope(t, y), float).reshape(len(y))

    def invariants(self) -> tuple[LinearInvariant, ...]:
        """None is known."""
        return ()


def stiff(f: Derivative, J: Derivative, y0: Any, t1: float, slope: Derivative | None = None, **more: Any) -> Problem:
    """The Problem of y' = f(t, y) with df/dy = J(t, y) and df/dt = slope(t, y)."""
    return replace(problem(f, y0, t1, **more), linear=lambda: Derivatives(J, slope))


def robertson(t1: float, **more: Any) -> Problem:
    """Robertson's three reactions (1966) with rates 0.04, 3e7 and 1e4, from (1, 0, 0)."""

    def f(t: float, y: Array) -> Any:
        a, b, c = 0.04 * y[0], 3e7 * y[1] ** 2, 1e4 * y[1] * y[2]
        return c - a, a - b - c, b

    def J(t: float, y: Array) -> Any:
        b, c, d = 6e7 * y[1], 1e4 * y[2], 1e4 * y[1]
        return [-0.04, c, d], [0.04, -b - c, -d], [0, b, 0]

    return stiff(f, J, [1.0, 0.0, 0.0], t1, **more)


def van_der_pol(mu: float, t1: float) -> Problem:
    """x'' = mu (1 - x^2) x' - x from (2, 0)."""
    return stiff(
        lambda t, y: (y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]),
        lambda t, y: ([0, 1], [-2 * mu * y[0] * y[1] - 1, mu * (1 - y[0] ** 2)]),
        [2.0, 0.0],
        t1,
    )


def logistic(t1: float = 3.0) -> tuple[Problem, Any]:
    """y' = y (1 - y) cos t, nonlinear and with time in it, and its solution."""
    p = stiff(lambda t, y: y * (1 - y) * np.cos(t), lambda t, y: (1 - 2 * y) * np.cos(t), 0.2, t1, lambda t, y: -y * (1 - y) * np.sin(t))
    return p, lambda t: 1 / (1 + 4 * np.exp(-np.sin(t)))


def circle(events: Any, *specs: Any, t1: float = 10.0) -> Problem:
    """y' = (y2, -y1) from (0, 1): (sin t, cos t)."""
    return stiff(lambda t, y: (y[1], -y[0]), lambda t, y: [[0, 1], [-1, 0]], [0.0, 1.0], t1, events=events, specs=specs)
