"""Errors go as the powers of the step that the methods promise."""

from typing import Any

import numpy as np
import pytest

from odesim.run.integrate import integrate_problem
from odesim.stepper.methods import METHODS
from odesim.stepper.problem import Problem
from odesim.stepper.tableau import Method
from tests.support.problems import problem

ALL = pytest.mark.parametrize("method", METHODS.values(), ids=lambda m: m.name)
ADAPTIVE = pytest.mark.parametrize("method", [m for m in METHODS.values() if m.adaptive], ids=lambda m: m.name)


def pendulum() -> Problem:
    """y'' = -sin y, whose right-hand side is nonlinear; the energy is constant."""
    return problem(lambda t, y: (y[1], -np.sin(y[0])), [1.0, 0.5], 2.0)


def orbit() -> Problem:
    """A Kepler orbit of eccentricity .3, once around."""

    def right(t: float, y: Any) -> tuple[Any, ...]:
        cube = (y[0] ** 2 + y[1] ** 2) ** 1.5
        return y[2], y[3], -y[0] / cube, -y[1] / cube

    return problem(right, [0.7, 0.0, 0.0, (1.3 / 0.7) ** 0.5], 2 * np.pi)


def logistic() -> tuple[Problem, Any]:
    """y' = y (1 - y) cos t and its solution."""
    exact = lambda t: 1 / (1 + 4 * np.exp(-np.sin(t)))  # noqa: E731
    return problem(lambda t, y: y * (1 - y) * np.cos(t), 0.2, 3.0), exact


def slope(steps: Any, errors: Any) -> float:
    """The exponent p of errors ~ steps^p."""
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


@ALL
def test_fixed_step(method: Method) -> None:
    """Halving the step divides the error at the end by 2^order; at steps of this size a part of the next power is still seen."""
    # order 9 is exact to rounding on the pendulum before it goes as a power of the step
    p, steps = (pendulum(), np.array([1 / 2, 1 / 4, 1 / 8])) if method.order < 9 else (orbit(), 2 * np.pi / np.array([24, 32, 48]))
    true = integrate_problem(p, method="dop853", rtol=1e-14, atol=1e-14).y_last
    errors = [np.abs(integrate_problem(p, method=method.name, step=h).y_last - true).max() for h in steps]
    assert method.order - 0.2 < slope(steps, errors) < method.order + 0.95


@ALL
def test_dense_output(method: Method) -> None:
    """Halving the step divides the error between the steps by 2^(order + 1), or by 2^order of the steps where that is less."""
    p = pendulum()
    fine = integrate_problem(p, method="dop853", rtol=1e-14, atol=1e-14, save=np.linspace(0, 2, 41)[1:])
    steps = np.array([1, 1 / 2, 1 / 4]) if method.order > 4 else 1 / np.array([4, 8, 16])
    errors = []
    for h in steps:
        y = integrate_problem(p, method=method.name, step=h, save=fine.t).y
        errors.append(np.abs(y - fine.y).max())
    assert slope(steps, errors) > min(method.dense_order + 1, method.order) - 0.35


@ADAPTIVE
def test_error_follows_tolerance(method: Method) -> None:
    """A thousandth of the tolerance makes a thousandth of the error, about; at all saved points it stays below 50 tolerances."""
    p, exact = logistic()
    times = np.linspace(0, 3, 50)
    tolerances = np.array([1e-5, 1e-8, 1e-11])
    errors = []
    for tol in tolerances:
        out = integrate_problem(p, method=method.name, rtol=tol, atol=tol, save=times)
        errors.append(np.abs(out.y[:, 0] - exact(times)).max())
    assert np.all(errors < 50 * tolerances)
    assert slope(tolerances, errors) == pytest.approx(1, abs=0.4)


@ADAPTIVE
def test_work_at_small_tolerance(method: Method) -> None:
    """Ten digits more cost no more than the order says: a wrong weight in the estimate costs five times as much at 1e-11."""
    p = pendulum()
    steps = [integrate_problem(p, method=method.name, rtol=tol, atol=tol).stats["steps"] for tol in (1e-6, 1e-11)]
    # h ~ tol^(1/error_order), and a constant number of steps at the start
    assert steps[1] <= 1.4 * steps[0] * 1e5 ** (1 / method.error_order) + 4


@ADAPTIVE
def test_controller_keeps_no_step_back(method: Method) -> None:
    """A smooth problem is integrated with hardly a rejected step."""
    stats = integrate_problem(pendulum(), method=method.name, rtol=1e-9, atol=1e-9).stats
    assert stats["rejected"] <= 2


def test_like_scipy() -> None:
    """Lotka-Volterra ends where scipy's DOP853 at a smaller tolerance says, with no more work than scipy's at the same one."""
    import scipy.integrate

    solve_ivp: Any = scipy.integrate.solve_ivp

    def f(t: float, y: Any) -> Any:
        return y[0] * (1 - y[1]), y[1] * (y[0] - 1)

    p = problem(f, [2.0, 0.5], 12.0)
    true = solve_ivp(f, (0, 12), [2.0, 0.5], method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    for ours, theirs in (("tsit5", "RK45"), ("dop853", "DOP853")):
        run = integrate_problem(p, method=ours, rtol=1e-8, atol=1e-8)
        other = solve_ivp(f, (0, 12), [2.0, 0.5], method=theirs, rtol=1e-8, atol=1e-8)
        assert run.y_last == pytest.approx(true, abs=50 * 1e-8)
        assert run.stats["rhs_calls"] <= 1.1 * other.nfev
