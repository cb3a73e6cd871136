"""`auto` on problems written by hand: what it chooses, why, and that the choice is a run of the method that it names."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from odesim.run.auto import PILOT, explicit_name, spectral_radius
from odesim.run.integrate import integrate_problem
from odesim.stepper.codes import Status
from odesim.stepper.methods import METHODS
from odesim.stepper.problem import Costs, Problem
from odesim.stepper.tableau import stable_up_to
from tests.support.stiff_problems import logistic, robertson, stiff, van_der_pol

COSTS = Costs(lambda: 500.0, lambda: 0.0, lambda stages: 2e4)  # of a compiled right-hand side, and of a stiff step in lanes


def oscillator(t1: float) -> Problem:
    """y1' = y2, y2' = -y1: as many steps as one likes, none of them held by stability."""
    return stiff(lambda t, y: (y[1], -y[0]), lambda t, y: [[0, 1], [-1, 0]], [0.0, 1.0], t1)


# problem, options, method, a word of the reason
CASES: dict[str, tuple[Problem, dict[str, Any], str, str]] = {
    "short": (oscillator(3.0), {}, "tsit5", "done in"),
    "long": (oscillator(600.0), {}, "tsit5", "done in"),
    "with time in it": (logistic()[0], {}, "tsit5", "done in"),
    "tight": (oscillator(3.0), {"rtol": 1e-10, "atol": 1e-12}, "dop853", "done in"),
    "van der Pol": (van_der_pol(1e3, 2000.0), {}, "rodas5p", "stability, not accuracy"),
    "van der Pol, tight": (van_der_pol(1e3, 2000.0), {"rtol": 1e-8, "atol": 1e-10}, "rodas5p", "and would need about"),
    "Robertson": (robertson(1e5), {}, "rodas5p", "stability, not accuracy"),
    "strict": (robertson(3.0), {"strict": True}, "tsit5", "strict mode only for a right-hand side that numba compiles"),
    "no costs": (replace(robertson(3.0), linear=None), {}, "tsit5", "no Jacobian"),
    "fixed step": (oscillator(3.0), {"step": 0.1}, "tsit5", "a fixed step"),
}


@pytest.mark.parametrize("name", CASES)
def test_choice(name: str) -> None:
    """The method and its reason; the run is, bit for bit, that of the method by its name, and the same when asked again."""
    p, options, method, why = CASES[name]
    p = replace(p, costs=COSTS if p.linear else None)
    run = integrate_problem(p, method="auto", **options)
    assert run.method == method and run.auto.startswith(f"{method}: ") and why in run.auto
    assert run.status is Status.OK
    named = integrate_problem(p, method=method, **options)
    assert np.array_equal(run.y, named.y) and run.stats["rhs_calls"] == named.stats["rhs_calls"]
    assert integrate_problem(p, method="auto", **options).auto == run.auto and named.auto == ""


def test_a_run_within_the_pilot_is_the_run() -> None:
    """No right-hand side is computed beside those of the explicit method; afterwards, a handful an inspection where nothing is held."""
    calls = [0]

    def counted(t: float, y: Any) -> Any:
        calls[0] += 1
        return y[1], -y[0]

    for t1, most in ((3.0, 0.0), (600.0, 0.02)):
        p = replace(stiff(counted, lambda t, y: [[0, 1], [-1, 0]], [0.0, 1.0], t1), costs=COSTS)
        calls[0] = 0
        run = integrate_problem(p, method="auto")
        assert (run.stats["steps"] < PILOT) is (t1 == 3.0)
        assert calls[0] <= run.stats["rhs_calls"] * (1 + most)


def test_a_trial_costs_as_much_at_most() -> None:
    """Where stability holds the steps and the stiff method is slower, it gets no more than what the explicit one costs."""
    tried, stiff_cost = [0], 2e4

    def J(t: float, y: Any) -> Any:
        tried[0] += 1
        return [[-200.0, 0], [0, 0]]

    p = stiff(lambda t, y: (-200 * (y[0] - np.sin(40 * t)), 0 * y[1]), J, [0.0, 1.0], 60.0, slope=lambda t, y: (8000 * np.cos(40 * t), 0.0))
    run = integrate_problem(replace(p, costs=Costs(lambda: 500.0, lambda: 0.0, lambda s: stiff_cost)), method="auto", rtol=1e-3, atol=1e-3)
    assert run.method == "tsit5" and "but rodas5p came to t = " in run.auto
    explicit = (run.stats["steps"] + run.stats["rejected"]) * (METHODS["tsit5"].last * 500 + 600)
    assert 20 * stiff_cost <= tried[0] * stiff_cost <= explicit
    spent, reached = re.search(r"in (\d+) steps, which cost what the first (\d+) did", run.auto), re.findall(r"t = ([\d.]+)", run.auto)
    assert spent is not None and int(spent[1]) * stiff_cost <= int(spent[2]) * (METHODS["tsit5"].last * 500 + 600)
    assert float(reached[0]) < float(reached[1])  # the stiff method's time, and the explicit one's


@pytest.mark.parametrize(("t1", "tried"), [(0.75, False), (6.0, True)])
def test_a_short_rest_is_not_worth_a_trial(t1: float, tried: bool) -> None:
    """y' = -700 (y - sin t), whose steps stability holds: where fewer steps are left than half of those so far no Jacobian is computed."""
    seen = [0]

    def J(t: float, y: Any) -> Any:
        seen[0] += 1
        return [[-700.0]]

    p = stiff(lambda t, y: -700 * (y - np.sin(t)), J, 0.0, t1, slope=lambda t, y: [700 * np.cos(t)])
    run = integrate_problem(replace(p, costs=Costs(lambda: 500.0, lambda: 0.0, lambda s: 600.0)), method="auto", rtol=1e-4, atol=1e-4)
    plain = integrate_problem(p, method="tsit5", rtol=1e-4, atol=1e-4)
    assert bool(seen[0]) is tried and run.method == ("rodas5p" if tried else "tsit5")
    assert tried or PILOT < plain.stats["steps"] + plain.stats["rejected"] < 1.5 * PILOT


@pytest.mark.parametrize(
    ("rtol", "step", "end", "between"),
    [(1e-6, None, "tsit5", "tsit5"), (1e-8, None, "dop853", "tsit5"), (1e-10, None, "dop853", "vern7"), (1e-12, 0.1, "tsit5", "tsit5")],
)
def test_explicit_by_tolerance(rtol: float, step: float | None, end: str, between: str) -> None:
    """A method of higher order where it needs fewer right-hand sides for the same error: at the end, or between the steps as well."""
    assert (explicit_name(rtol, step, between=False), explicit_name(rtol, step, between=True)) == (end, between)


def test_spectral_radius() -> None:
    """Of a matrix with known eigenvalues, to the few per cent of twelve power iterations."""
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    A = Q @ np.diag([-3000.0, -40.0, -7.0, -1.0, 2.0, 0.5]) @ Q.T

    def rhs(t: float, y: Any, out: Any) -> None:
        out[:] = A @ y

    assert spectral_radius(rhs, 0.0, np.linspace(1, 2, 6), 1e-3) == pytest.approx(3000, rel=0.05)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_spectral_radius_of_any_size(size: float) -> None:
    """Of random symmetric matrices, the largest eigenvalue far from the others, beside a function that bends: within a tenth."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        Q, y = np.linalg.qr(rng.normal(size=(6, 6)))[0], rng.uniform(1, 2, 6)
        A = -size * Q @ np.diag([1.0, *rng.uniform(-0.4, 0.4, 5)]) @ Q.T

        def rhs(t: float, y: Any, out: Any, A: Any = A) -> None:
            out[:] = A @ np.sin(y - 1.5)

        J = A * np.cos(y - 1.5)
        assert spectral_radius(rhs, 0.0, y, 1e-3) == pytest.approx(np.abs(np.linalg.eigvals(J)).max(), rel=0.1)


def test_stable_up_to() -> None:
    """Known ends of the real stability intervals: 2 (Euler), 2.785 (RK4)."""
    assert stable_up_to(METHODS["euler"]) == pytest.approx(2.0, abs=0.06)
    assert stable_up_to(METHODS["rk4"]) == pytest.approx(2.785, abs=0.06)


def test_max_steps_names_the_cure() -> None:
    """An explicit method by name that runs out of steps says what to try; without a Jacobian it does not."""
    p = robertson(1e5)
    assert "rodas5p" in integrate_problem(p, method="tsit5", max_steps=50).message
    assert "rodas5p" not in integrate_problem(replace(p, linear=None), method="tsit5", max_steps=50).message
    assert "rodas5p" not in integrate_problem(p, method="rodas4", max_steps=5).message
