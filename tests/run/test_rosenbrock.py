"""Runs of the stiff methods: orders, stiff problems with known answers, events, and how a run ends."""

import signal
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from odesim.base.errors import SolveError
from odesim.ir.invariants import LinearInvariant
from odesim.ir.linear_systems import Structured
from odesim.run.integrate import integrate_problem
from odesim.stepper.codes import Status
from odesim.stepper.problem import EventSpec
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from tests.support.methods import STIFF
from tests.support.stiff_problems import circle, logistic, robertson, stiff, van_der_pol

NAMES = pytest.mark.parametrize("method", list(ROSENBROCK))


def slope(steps: Any, errors: Any) -> float:
    """The exponent p of errors ~ steps^p."""
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


@NAMES
def test_fixed_step(method):
    """Halving the step divides the error by 2^order, time in the right-hand side included; a part of the next power is still seen."""
    (p, exact), steps = logistic(), 1 / np.array([2, 4, 8, 16])
    errors = [abs(integrate_problem(p, method=method, step=h).y_last[0] - exact(3.0)) for h in steps]
    order = ROSENBROCK[method].order
    assert order - 0.2 < slope(steps, errors) < order + 1.9


@NAMES
def test_dense_output(method):
    """Between the steps the error goes as step^(dense order + 1), for a long step from the start."""
    p, exact = logistic()
    times, steps = np.linspace(0, 3, 61)[1:], 1 / np.array([2, 4, 8, 16])
    errors = [np.abs(integrate_problem(p, method=method, step=h, save=times).y[:, 0] - exact(times)).max() for h in steps]
    assert slope(steps, errors) == pytest.approx(ROSENBROCK[method].dense_order + 1, abs=0.35)


@NAMES
def test_error_follows_tolerance(method):
    """A thousandth of the tolerance makes a thousandth of the error, about, and hardly a step is rejected."""
    (p, exact), times, tolerances = logistic(), np.linspace(0, 3, 50), np.array([1e-5, 1e-8, 1e-11])
    runs = [integrate_problem(p, method=method, rtol=tol, atol=tol, save=times) for tol in tolerances]
    errors = [np.abs(run.y[:, 0] - exact(times)).max() for run in runs]
    assert np.all(errors < 50 * tolerances) and slope(tolerances, errors) == pytest.approx(1, abs=0.4)
    assert all(run.stats["rejected"] <= 3 for run in runs)


@NAMES
def test_stiff_order(method):
    """Halving the step divides the largest error over all times and rates lambda of y' = -lambda (y - phi) + phi' by 2^q.

    rodas5p is made for phi up to t^3, so that q is about 4; rodas4 is exact for phi = t alone, and q is between 2 and 3.
    """
    times, steps, errors = np.linspace(0, 2, 41)[1:], 1 / np.array([4, 8, 16, 32]), []
    for h in steps:
        runs = [integrate_problem(relaxation(rate), method=method, step=h, save=times) for rate in (1.0, 10.0, 1e2, 1e3, 1e4, 1e6)]
        errors.append(max(np.abs(run.y[:, 0] - 1 / (1 + times)).max() for run in runs))
    assert slope(steps, errors) == pytest.approx(STIFF[method].order, abs=0.35)


def relaxation(rate: float) -> Any:
    """y' = -rate (y - phi) + phi' from phi, phi = 1 / (1 + t); Prothero and Robinson (1974)."""
    return stiff(
        lambda t, y: -rate * (y - 1 / (1 + t)) - 1 / (1 + t) ** 2,
        lambda t, y: -rate,
        1.0,
        2.0,
        lambda t, y: -rate / (1 + t) ** 2 + 2 / (1 + t) ** 3,
    )


@cache
def radau(name: str, times: tuple[float, ...], rtol: float, atol: float) -> Any:
    """States (T, n) of a problem of tests.support.stiff_problems by scipy's Radau."""
    import scipy.integrate

    solve_ivp: Any = scipy.integrate.solve_ivp
    p = PROBLEMS[name](times[-1])
    assert p.linear is not None
    linear = p.linear()

    def f(t: float, y: Any) -> Any:
        out = np.empty(len(y))
        p.rhs(t, y, out)
        return out

    def J(t: float, y: Any) -> Any:
        return linear.jacobian(t, y).dense()

    done = solve_ivp(f, (0, times[-1]), p.y0, "Radau", times, jac=J, rtol=rtol, atol=atol)
    assert done.status == 0
    return done.y.T


PROBLEMS: dict[str, Any] = {"robertson": robertson, "van der pol": lambda t1: van_der_pol(1e3, t1)}


@pytest.mark.first(1)
@NAMES
def test_robertson(method):
    """Against scipy's Radau at 1e-12 over eleven decades of time scales; y1 + y2 + y3 = 1 to rounding: the Jacobian's columns sum to 0."""
    times = (0.4, 40.0, 4e3, 1e5)
    run = integrate_problem(robertson(1e5), method=method, rtol=1e-8, atol=1e-12, save=np.array(times))
    # between the steps the interpolant adds a few tolerances
    assert run.y == pytest.approx(radau("robertson", times, 1e-12, 1e-18), rel=1e-6)
    assert run.y.sum(axis=1) == pytest.approx(1, abs=1e-13)
    assert run.stats["steps"] < STIFF[method].robertson


@pytest.mark.first(1)
@NAMES
def test_van_der_pol(method):
    """mu = 1000 over more than a period, against scipy's Radau: after the jumps, of slope 1e3, the error is some 1e3 tolerances."""
    times = (500.0, 1000.0, 1500.0, 2000.0)
    run = integrate_problem(PROBLEMS["van der pol"](times[-1]), method=method, rtol=1e-7, atol=1e-9, save=np.array(times))
    assert run.y[:, 0] == pytest.approx(radau("van der pol", times, 1e-9, 1e-11)[:, 0], rel=1e-4)
    # an explicit method needs h < 2 / (3 mu): 3 million steps
    assert run.stats["steps"] + run.stats["rejected"] < STIFF[method].van_der_pol


@NAMES
def test_stiff_component_is_met(method):
    """y' = -1e8 (y - cos t) - sin t from y = 1 stays on cos t, between the steps too, which are as long as cos t allows."""
    rate = 1e8
    p = stiff(lambda t, y: -rate * (y - np.cos(t)) - np.sin(t), lambda t, y: -rate, 1.0, 10.0, lambda t, y: -rate * np.sin(t) - np.cos(t))
    run = integrate_problem(p, method=method, save=np.linspace(0, 10, 40))
    assert run.y[:, 0] == pytest.approx(np.cos(run.t), abs=2e-5)
    # the interpolants have orders 3 and 4
    assert run.stats["steps"] < STIFF[method].forced


# right-hand side, its derivatives by y and t, y0, where the solution ends, how
ENDS: dict[str, tuple[Any, Any, Any, float, float, Status]] = {
    "y^2": (lambda t, y: y * y, lambda t, y: 2 * y, None, 1.0, 1.0, Status.BLOW_UP),
    "exp(y)": (lambda t, y: np.exp(y), lambda t, y: np.exp(y), None, 0.0, 1.0, Status.BLOW_UP),
    "exp(y^2/2)": (lambda t, y: np.exp(y * y / 2), lambda t, y: y * np.exp(y * y / 2), None, 0.0, np.sqrt(np.pi / 2), Status.BLOW_UP),
    "1/(1-t)": (lambda t, y: 1 / (1 - t), lambda t, y: 0 * y, lambda t, y: 1 / (1 - t) ** 2, 0.0, 1.0, Status.BLOW_UP),
    "-1/(2y)": (lambda t, y: -1 / (2 * y), lambda t, y: 1 / (2 * y * y), None, 1.0, 1.0, Status.STEP_TOO_SMALL),
    "NaN": (lambda t, y: np.where(y > 1, np.nan, 1.0), lambda t, y: 0 * y, None, 0.0, 1.0, Status.STEP_TOO_SMALL),
}


@NAMES
@pytest.mark.parametrize("name", ENDS)
def test_ends(name, method):
    """The status, and the time to the accuracy that the tolerance leaves; a linearised step does not jump over a pole."""
    f, J, ft, y0, end, status = ENDS[name]
    run = integrate_problem(stiff(f, J, y0, 3.0, ft), method=method, rtol=1e-8, atol=1e-10)
    assert run.status is status and run.t_last == pytest.approx(end, abs=1e-6)
    assert np.isfinite(run.y_last).all() and f"{run.t_last:.9g}" in run.message


@NAMES
def test_stops(method):
    """max_steps, a start that is not finite, a fixed step into NaN: each keeps what it has."""
    few = integrate_problem(robertson(1e5), method=method, max_steps=7, save=np.logspace(-6, 5, 300))
    assert few.status is Status.MAX_STEPS and few.stats["steps"] + few.stats["rejected"] == 7
    assert few.t[-1] == few.t_last and np.array_equal(few.y[-1], few.y_last)
    hopeless = integrate_problem(stiff(lambda t, y: np.where(t == 0, 1, np.nan), lambda t, y: 0, 1.0, 1.0), method=method)
    assert hopeless.status is Status.STEP_TOO_SMALL and hopeless.t_last == 0 and hopeless.stats["steps"] == 0
    for y0 in (np.nan, np.inf):
        bad = integrate_problem(stiff(lambda t, y: -y, lambda t, y: -1, y0, 1.0), method=method)
        assert bad.status is Status.NON_FINITE and bad.t_last == 0 and bad.stats["steps"] == 0
    p = stiff(lambda t, y: np.sqrt(1 - t) + 0 * y, lambda t, y: 0, 0.0, 2.0, lambda t, y: -0.5 / np.sqrt(1 - t) + 0 * y)
    kept = integrate_problem(p, method=method, step=1 / 8)
    assert kept.status is Status.NON_FINITE and kept.t_last == 1.0


@NAMES
def test_nothing_infinite_is_accepted(method):
    """A state that overflows while its derivative stays finite, whose error in units of itself is 0; and a derivative that is NaN at
    the new state alone, where no stage has been."""
    over = integrate_problem(stiff(lambda t, y: 1e305 + 0 * y, lambda t, y: 0, 1.5e308, 1e4), method=method)
    assert over.status in (Status.STEP_TOO_SMALL, Status.BLOW_UP) and np.isfinite(over.y_last).all()
    assert over.t_last == pytest.approx((np.finfo(float).max - 1.5e308) / 1e305, rel=1e-6)
    seen: list[float] = []

    def f(t: float, y: Any) -> Any:
        seen.append(float(y[0]))
        return np.where(y == poison, np.nan, -y)

    poison = np.inf
    p = stiff(f, lambda t, y: -1, 1.0, 1.0)
    poison = float(integrate_problem(p, method=method, step=1.0).y_last[0])
    assert seen.count(poison) == 1
    assert integrate_problem(p, method=method, step=1.0).status is Status.NON_FINITE


@NAMES
def test_a_defect_that_is_no_number_rejects(method):
    """max(error, NaN) drops the NaN: a right-hand side that is NaN only where the interpolant is checked makes the step shorter."""
    seen: list[float] = []

    def f(t: float, y: Any) -> Any:
        seen.append(t)
        return np.where(t == poison, np.nan, 1 + 0 * y)

    poison = -1.0
    p = stiff(f, lambda t, y: 0, 0.0, 1.0)
    plain = integrate_problem(p, method=method)
    poison = seen[-2]  # the last step ends with the check and the derivative at 1
    assert plain.stats["rejected"] == 0 and poison < 1 and seen.count(poison) == 1
    run = integrate_problem(p, method=method)
    assert run.status is Status.OK and run.stats["rejected"] == 1 and run.y_last[0] == pytest.approx(1, abs=1e-12)


@NAMES
def test_never_beyond_the_end(method):
    """The right-hand side is asked for no time after t1, though t + h may round to beyond it."""
    for t0, t1 in np.random.default_rng(0).uniform(-3, 3, (40, 2)).cumsum(axis=1):
        seen: list[float] = []

        def f(t: float, y: Any, seen: list[float] = seen) -> Any:
            seen.append(t)
            return -y

        if t0 < t1:
            run = integrate_problem(stiff(f, lambda t, y: -1, 1.0, t1, t0=t0), method=method)
            assert run.t_last == max(seen) == t1 and min(seen) == t0


@NAMES
def test_grid(method):
    """The saved times do not change the steps; fixed steps do not drift; no time beyond the end is asked for."""
    p, exact = logistic()
    run, plain = (integrate_problem(p, method=method, save=s) for s in (np.linspace(0.1, 2.9, 17), None))
    assert np.array_equal(run.y_last, plain.y_last) and plain.t.tolist() == [0, 3]
    assert run.y[:, 0] == pytest.approx(exact(run.t), abs=2e-5)
    seen: list[float] = []

    def f(t: float, y: Any) -> Any:
        seen.append(t)
        return 0 * y

    for h, count in ((0.1, 10), (0.3, 4), (7.0, 1)):
        seen.clear()
        assert integrate_problem(stiff(f, lambda t, y: 0, 1.0, 1.0), method=method, step=h).stats["steps"] == count
        assert max(seen) == 1.0 and {k * h for k in range(count)} <= set(seen)


@NAMES
def test_events(method):
    """sin t falls and rises through 0 at multiples of pi; a terminal event ends the run there, with no event after it."""
    specs = (EventSpec("down", (), -1), EventSpec("both"), EventSpec("stop", terminal=True), EventSpec("late"))
    p = circle(lambda t, y: (y[0], y[0], t - 9.0, t - 9.1), *specs)
    run = integrate_problem(p, method=method, rtol=1e-10, atol=1e-10, save=np.linspace(0, 10, 101))
    assert run.status is Status.EVENT and run.t_last == pytest.approx(9.0, abs=1e-14)
    # the state is off by some tolerances, its slope there is 1
    assert run.events["down"].t == pytest.approx([np.pi], abs=1e-8)
    assert run.events["both"].t == pytest.approx(np.pi * np.array([1, 2]), abs=1e-8)
    assert run.y_last == pytest.approx([np.sin(9), np.cos(9)], abs=1e-8) and not len(run.events["late"])


@NAMES
def test_zeros_in_one_step(method):
    """Zeros of functions of t inside one long step are found to rounding: two of one function, and many components at once."""
    where = np.random.default_rng(0).uniform(0.01, 0.99, 300)

    def g(t: float, y: Any) -> Any:
        return np.r_[(t - 0.30) * (t - 0.62), t - where]

    for count, specs in ((1, (EventSpec("pair"),)), (301, (EventSpec("pair"), EventSpec("each", (300,))))):
        p = stiff(lambda t, y: 0 * y, lambda t, y: 0, 1.0, 1.0, events=lambda t, y, n=count: g(t, y)[:n], specs=specs)
        run = integrate_problem(p, method=method, step=1.0)
        # the polynomial through the values at the pieces of the step is exact for these functions
        assert run.events["pair"].t == pytest.approx([0.30, 0.62], abs=1e-14)
        if count > 1:
            assert run.events["each"].t == pytest.approx(np.sort(where), abs=1e-14)


@NAMES
def test_float32(method):
    """The right-hand side, the saved states and the last one are float32; the error is that of the dtype."""
    p, exact = logistic()
    f = lambda t, y: (y * (1 - y) * np.cos(t)).astype(y.dtype)  # noqa: E731
    single = replace(stiff(f, lambda t, y: 0, 0.2, 3.0, dtype="float32"), linear=p.linear)
    run = integrate_problem(single, method=method, rtol=1e-5, atol=1e-6, save=np.linspace(0, 3, 7))
    assert run.y.dtype == run.y_last.dtype == np.float32
    assert run.y[:, 0] == pytest.approx(exact(run.t), abs=5e-5)


@pytest.mark.parametrize("n", [2, 300])
def test_small_systems_have_one_blas_thread(n):
    """The threads of a BLAS would spin between the small calls of a step; after the run they are as before."""
    inside: list[int] = []

    def f(t: float, y: Any) -> Any:
        inside.extend(blas_threads())
        return -y

    assert integrate_problem(robertson(1.0), method="rodas4").status is Status.OK  # what is imported when first needed
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        assert integrate_problem(stiff(f, lambda t, y: -np.eye(n), np.ones(n), 1e-3), method="rodas4").status is Status.OK
        assert blas_threads() == before
    assert inside and set(inside) == {1}


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@NAMES
def test_ctrl_c(method):
    """An interrupt returns what was computed."""
    p = circle(None, t1=1e6)
    run = integrate_problem(p, method=method, progress=lambda fraction: signal.raise_signal(signal.SIGINT))
    assert run.status is Status.INTERRUPTED and 0 < run.t_last < 1e6 and "interrupted" in run.message


def test_refusals():
    """An unknown name, a problem without a Jacobian and a raising right-hand side are said, and nothing else."""
    with pytest.raises(SolveError, match=r"no method 'rodas5'; choose from auto, .*rodas5p.*did you mean 'rodas5p'"):
        integrate_problem(robertson(1.0), method="rodas5")
    with pytest.raises(SolveError, match="rodas4 needs the Jacobian"):
        integrate_problem(replace(robertson(1.0), linear=None), method="rodas4")
    with pytest.raises(SolveError, match="rtol"):
        integrate_problem(robertson(1.0), method="rodas4", rtol=-1.0)

    def wrong(t: float, y: Any) -> Any:
        raise ZeroDivisionError("in the right-hand side")

    with pytest.raises(ZeroDivisionError, match="in the right-hand side"):
        integrate_problem(stiff(wrong, lambda t, y: 0, 1.0, 1.0), method="rodas4")


def test_a_singular_matrix_is_a_rejected_step():
    """Where 1/(gamma h) is an eigenvalue of J the step is tried again with another size, and the run goes on."""
    gamma = ROSENBROCK["rodas4"].gamma
    grows = stiff(lambda t, y: y / (gamma * 0.25), lambda t, y: 1 / (gamma * 0.25), 1.0, 1.0)
    assert integrate_problem(grows, method="rodas4", step=0.25).status is Status.NON_FINITE
    run = integrate_problem(grows, method="rodas4")
    assert run.status is Status.OK and run.y_last[0] == pytest.approx(np.exp(16), rel=1e-4)


@NAMES
def test_an_infinite_slope_is_no_solution(method):
    """y' = 1 + sqrt(y) from 0, whose slope there is infinite: no step is possible, and a state that stands still is not called one."""
    with np.errstate(divide="ignore"):
        p = stiff(lambda t, y: 1 + np.sqrt(y), lambda t, y: 0.5 / np.sqrt(y), 0.0, 1.0)
        assert integrate_problem(p, method=method).status is Status.STEP_TOO_SMALL


@NAMES
def test_structure_changes_nothing(method):
    """Diagonal plus rank one by Woodbury's formula makes the run of the dense matrix."""
    n = 40
    d, u = -np.logspace(0, 4, n), np.linspace(0.5, 1, n)

    class Low:
        def prepare(self) -> None: ...
        def jacobian(self, t: float, y: Any) -> Structured:
            return Structured(d[:, None, None], np.arange(n)[:, None], u[:, None], np.cos(y.sum()) * np.ones((n, 1)))

        def time_slope(self, t: float, y: Any) -> None: ...
        def invariants(self) -> tuple[LinearInvariant, ...]:
            return ()

    def f(t: float, y: Any) -> Any:
        return d * y + u * np.sin(y.sum())

    p = stiff(f, lambda t, y: np.diag(d) + np.outer(u, np.cos(y.sum()) * np.ones(n)), np.ones(n), 5.0)
    dense, low = (integrate_problem(q, method=method) for q in (p, replace(p, linear=Low)))
    assert dense.stats["steps"] == low.stats["steps"] and low.y_last == pytest.approx(dense.y_last, rel=1e-9, abs=1e-12)
