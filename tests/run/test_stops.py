"""Runs that cannot reach the end: each says why, where, and keeps what it has."""

from typing import Any

import numpy as np
import pytest

from odesim.run.integrate import integrate_problem
from odesim.stepper.codes import Status
from odesim.stepper.methods import METHODS
from tests.support.problems import Decay, Problem, problem

ADAPTIVE = [m.name for m in METHODS.values() if m.adaptive]

# right-hand side, y0, where the solution ends, how. Poles and logarithms are blow-ups; a square root ends with a finite state.
ENDS: dict[str, tuple[Any, float, float, Status]] = {
    "y^2": (lambda t, y: y * y, 1.0, 1.0, Status.BLOW_UP),
    "-y^3, downwards": (lambda t, y: y**3, -1.0, 0.5, Status.BLOW_UP),
    "exp(y^2/2)": (lambda t, y: np.exp(y * y / 2), 0.0, np.sqrt(np.pi / 2), Status.BLOW_UP),
    "exp(y)": (lambda t, y: np.exp(y), 0.0, 1.0, Status.BLOW_UP),
    "1/(1-t)": (lambda t, y: 1 / (1 - t), 0.0, 1.0, Status.BLOW_UP),
    "-1/(2y)": (lambda t, y: -1 / (2 * y), 1.0, 1.0, Status.STEP_TOO_SMALL),
    "-sqrt(y) - 1": (lambda t, y: -np.sqrt(y) - 1, 1.0, 2 - 2 * np.log(2), Status.STEP_TOO_SMALL),
    "1/sqrt(1-t)": (lambda t, y: 1 / np.sqrt(1 - t), 1.0, 1.0, Status.STEP_TOO_SMALL),
}


@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.parametrize("name", ENDS)
def test_ends(name: str, method: str) -> None:
    """The status, and the time to the accuracy that the tolerance leaves: an error in y moves the end by as much."""
    f, y0, end, status = ENDS[name]
    run = integrate_problem(problem(f, y0, 3.0), method=method, rtol=1e-8, atol=1e-10)
    assert run.status is status
    assert run.t_last == pytest.approx(end, abs=1e-6)
    assert np.isfinite(run.y_last).all()
    assert f"{run.t_last:.9g}" in run.message and "y[0] = " in run.message


def test_pole_at_time_zero() -> None:
    """A blow-up at t = 0 is seen although floats around 0 are as dense as one likes."""
    run = integrate_problem(problem(lambda t, y: y * y, 1.0, 1.0, t0=-1.0), rtol=1e-8)
    assert run.status is Status.BLOW_UP and abs(run.t_last) < 1e-6


def test_blow_up_beside_a_small_component() -> None:
    """Only the component that moves most decides: a passing zero of another one is no blow-up."""
    run = integrate_problem(problem(lambda t, y: (-1 / (2 * y[0]), 1 + 0 * y[1]), [1.0, -1.0], 3.0), rtol=1e-8, atol=1e-10)
    assert run.status is Status.STEP_TOO_SMALL


@pytest.mark.parametrize("method", ADAPTIVE)
def test_nan_is_never_accepted(method: str) -> None:
    """max(NaN, eps) drops the NaN: no step goes where the right-hand side is NaN, whichever stage sees it."""
    run = integrate_problem(problem(lambda t, y: np.where(y > 1, np.nan, 1.0), 0.0, 4.0), method=method)
    assert run.status is Status.STEP_TOO_SMALL
    assert run.y_last[0] <= 1 and run.t_last == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("method", ADAPTIVE)
def test_overflow_is_never_accepted(method: str) -> None:
    """A state that overflows while the right-hand side stays finite: the error in units of an infinite state would be 0."""
    run = integrate_problem(problem(lambda t, y: np.full_like(y, 1e307), 1.5e308, 10.0), method=method)
    assert run.status in (Status.STEP_TOO_SMALL, Status.BLOW_UP) and np.isfinite(run.y_last).all()
    assert run.t_last == pytest.approx((np.finfo(float).max - 1.5e308) / 1e307, rel=1e-6)


@pytest.mark.parametrize(("method", "where"), [("vern7", 0.25), ("dop853", 0.2)])
def test_stages_of_dense_output_must_be_finite(method: str, where: float) -> None:
    """A NaN that only a stage of the dense output sees rejects the step where the output is wanted."""
    p = problem(lambda t, y: np.where(abs(t - where) < 0.01, np.nan, 1 + 0 * y), 0.0, 1.0)
    assert integrate_problem(p, method=method, step=1.0).status is Status.OK
    assert integrate_problem(p, method=method, step=1.0, save=np.array([0.5])).status is Status.NON_FINITE


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_first_trial_recovers(bad: float) -> None:
    """A trial step that overflows is made smaller, and the run goes on as if nothing had been."""
    run = integrate_problem(problem(lambda t, y: np.where(y < 0.9, bad, 1 - y), 1 - 1e-12, 20.0), rtol=1e-3)
    assert run.status is Status.OK and run.y_last[0] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("y0", [np.nan, np.inf])
def test_bad_start(y0: float) -> None:
    """A state or derivative that is not finite at the start."""
    for start, f in ((y0, lambda t, y: -y), (1.0, lambda t, y: y * y0)):
        run = integrate_problem(problem(f, start, 1.0), save=np.linspace(0, 1, 3))
        assert run.status is Status.NON_FINITE and run.t_last == 0
        assert run.stats["steps"] == 0 and len(run.t) == 1


@pytest.mark.parametrize("method", METHODS)
def test_fixed_step_stops_at_non_finite(method: str) -> None:
    """A fixed step keeps the last state whose derivative is finite too."""
    run = integrate_problem(problem(lambda t, y: np.sqrt(1 - t) + 0 * y, 0.0, 2.0), method=method, step=1 / 8)
    assert run.status is Status.NON_FINITE and run.t_last == 1.0


def test_max_steps() -> None:
    """Accepted and rejected steps count; the saved times that were reached are kept, and the last state."""
    run = integrate_problem(problem(lambda t, y: -y, 1.0, 100.0), max_steps=7, save=np.linspace(0, 100, 1001))
    assert run.status is Status.MAX_STEPS and run.stats["steps"] + run.stats["rejected"] == 7
    assert run.t[-1] == run.t_last and np.array_equal(run.y[-1], run.y_last)
    assert np.all(np.diff(run.t) > 0)
    assert run.y[:, 0] == pytest.approx(np.exp(-run.t), abs=1e-5)
    assert "max_steps = 7" in run.message and "loosen rtol" in run.message
    fixed = integrate_problem(problem(lambda t, y: -y, 1.0, 100.0), method="rk4", max_steps=7, step=1.0)
    assert fixed.status is Status.MAX_STEPS and "take longer ones" in fixed.message and "rtol" not in fixed.message


def test_compiled_right_side() -> None:
    """The loop runs a compiled system of several blocks as it runs a callback: the same result for each component."""
    n = 2500
    compiled = Problem(Decay(n), np.linspace(1, 2, n), 0.0, 1.0)
    callback = problem(lambda t, y: -y, np.linspace(1, 2, n), 1.0)
    for method in METHODS:
        kw: dict[str, Any] = {"method": method, "save": np.linspace(0, 1, 5), "step": None if method in ADAPTIVE else 0.01}
        ours, theirs = integrate_problem(compiled, **kw), integrate_problem(callback, **kw)
        assert ours.stats["steps"] == theirs.stats["steps"]
        # numba may contract a multiplication and an addition
        assert ours.y == pytest.approx(theirs.y, rel=1e-13)
