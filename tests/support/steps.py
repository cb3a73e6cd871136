"""Adaptive runs as plain loops: the tables of the methods, and the step control as the books have it.

Hairer, Norsett, Wanner I (1993), II.4: the first step; Hairer, Wanner II (1996), IV.2: the PI rule, IV.7: a Rosenbrock step for a
system that depends on time, IV.8: Gustafsson's rule.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from odesim.stepper.methods import METHODS
from odesim.stepper.rosenbrock_methods import ROSENBROCK

Array = np.ndarray[Any, Any]
Right = Callable[[float, Array], Array]


def norm(e: Array, old: Array, new: Array, rtol: float, atol: Any) -> float:
    """The root mean square of e (n,) in units of the tolerance."""
    return math.sqrt(np.mean((e / (atol + rtol * np.maximum(abs(old), abs(new)))) ** 2))


def first_step(y: Array, f: Array, bend: Callable[[float], float], span: float, power: int, rtol: float, atol: Any) -> float:
    """The first step from the state y (n,) with derivative f (n,). bend: the norm of the second derivative, estimated by a step."""
    size, slope = norm(y, y, y, rtol, atol), norm(f, y, y, rtol, atol)
    trial = 0.01 * size / slope if min(size, slope) > 1e-5 else 1e-6 * span
    guess = (0.01 / max(slope, bend(trial))) ** (1 / power)
    return min(guess, 100 * trial if min(size, slope) > 1e-5 else span, span)


def explicit_steps(
    name: str, f: Right, y: Array, t: float, t1: float, rtol: float, atol: Any, first: float = 0.0
) -> Iterator[tuple[float, Array, bool]]:
    """(time, state, accepted) after each step that is tried, by an explicit method.

    atol: a number, or one a component (n,). first: the first step; 0: one is chosen.
    """
    m = METHODS[name]
    (alpha, beta), (shrink, grow) = m.gains, m.factors
    slope = f(t, y)
    h = first or first_step(
        y, slope, lambda h: norm(f(t + h, y + h * slope) - slope, y, y, rtol, atol) / h, t1 - t, m.error_order, rtol, atol
    )
    old, rejected = 1e-4, False
    while t < t1:
        h = t1 - t if t + 1.01 * h >= t1 else h
        k = [f(t, y)]
        for s in range(1, m.last + 1):
            after = y + h * sum(a * stage for a, stage in zip(m.A[s], k, strict=False))
            k.append(f(t + m.c[s] * h, after))
        errors = [norm(h * sum(e * stage for e, stage in zip(row, k, strict=True)), y, after, rtol, atol) for row in m.E]
        error = errors[0] ** 2 / math.hypot(errors[0], 0.1 * errors[1]) if errors[1] else errors[0]
        factor = 0.9 * max(error, 1e-10) ** -alpha * (old**beta if error <= 1 else 1)
        following = h * min(max(factor, shrink), (1 if rejected else grow) if error <= 1 else 0.9)
        rejected = error > 1
        if not rejected:
            t, y, old = (t + h if t + 1.0001 * h < t1 else t1), after, max(error, 1e-4)
        h = following
        yield t, y, not rejected


def stiff_steps(
    name: str, f: Right, jacobian: Right, time_slope: Right, y: Array, t: float, t1: float, rtol: float, atol: Any, first: float = 0.0
) -> Iterator[tuple[float, Array, bool]]:
    """(time, state, accepted) after each step that is tried, by a Rosenbrock method. jacobian: df/dy (n, n); time_slope: df/dt (n,).

    atol, first: as for explicit_steps.
    """
    m, n = ROSENBROCK[name], len(y)
    p = m.error_order
    bend: Any = lambda h: norm(jacobian(t, y) @ f(t, y) + time_slope(t, y), y, y, rtol, atol)  # noqa: E731
    h = first or first_step(y, f(t, y), bend, t1 - t, p, rtol, atol)
    h_old, old, rejected = 0.0, 1.0, False
    while t < t1:
        h = t1 - t if t + 1.01 * h >= t1 else h
        J, later = jacobian(t, y), time_slope(t, y)
        matrix = np.eye(n) / (m.gamma * h) - J
        u = np.zeros((m.stages, n))
        for i in range(m.stages):
            state = y + m.A[i] @ u
            u[i] = np.linalg.solve(matrix, f(t + m.alpha[i] * h, state) + m.C[i] @ u / h + h * m.d[i] * later)
        after, error = state + u[-1], norm(u[-1], y, state + u[-1], rtol, atol)
        if error <= 1:  # the interpolant is held against the right-hand side at .8 of the step
            off = m.dense_slope(0.8) @ u / h - f(t + 0.8 * h, y + m.dense(0.8) @ u)
            error = max(error, norm(np.linalg.solve(matrix, off), y, after, rtol, atol))
        counted = max(error, 1e-10)
        factor = 0.9 * counted ** (-1 / p)
        if error <= 1 and h_old > 0:
            factor = min(factor, 0.9 * h / h_old * (old / counted**2) ** (1 / p))
        following = h * min(max(factor, 0.2), (1 if rejected else 6) if error <= 1 else 0.9)
        rejected = error > 1
        if not rejected:
            t, y, h_old, old = (t + h if t + 1.0001 * h < t1 else t1), after, h, max(counted, 1e-2)
        h = following
        yield t, y, not rejected
