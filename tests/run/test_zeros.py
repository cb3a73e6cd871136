"""Zeros of event functions, against closed forms on y = (sin t, cos t)."""

from typing import Any

import numpy as np
import pytest

from odesim.base.errors import SolveError
from odesim.run.integrate import integrate_problem
from odesim.stepper import drive as integrate
from odesim.stepper.codes import Status
from odesim.stepper.methods import METHODS
from odesim.stepper.problem import EventSpec, Problem
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from tests.support.problems import problem
from tests.support.stiff_problems import stiff

ADAPTIVE = pytest.mark.parametrize("method", [m.name for m in METHODS.values() if m.adaptive])


def circle(events: Any, *specs: EventSpec, t1: float = 10.0, t0: float = 0.0) -> Problem:
    """y' = (y2, -y1) from (sin t0, cos t0)."""
    return problem(lambda t, y: (y[1], -y[0]), [np.sin(t0), np.cos(t0)], t1, t0=t0, events=events, specs=specs)


def times(run: Any, name: str) -> Any:
    return np.array([found["t"] for found in run.events[name]])


@ADAPTIVE
@pytest.mark.parametrize("direction", [-1, 0, 1])
def test_direction(method: str, direction: int) -> None:
    """sin t falls through zero at odd multiples of pi and rises at even ones; the zero at the start is not counted."""
    run = integrate_problem(circle(lambda t, y: y[0], EventSpec("zero", (), direction)), method=method, rtol=1e-10, atol=1e-10)
    expected = {-1: [1, 3], 0: [1, 2, 3], 1: [2]}[direction]
    # the state is off by some tolerances, its slope there is 1
    assert times(run, "zero") == pytest.approx(np.pi * np.array(expected), abs=1e-8)
    assert all(found["index"] is None for found in run.events["zero"])


@ADAPTIVE
def test_zeros_of_time_are_exact(method: str) -> None:
    """A function of t alone is found to the spacing of the floats, many zeros in one long step too."""
    run = integrate_problem(
        problem(lambda t, y: 0 * y, 1.0, 10.0, events=lambda t, y: np.sin(t / 2 + 0.1), specs=(EventSpec("zero"),)), method=method
    )
    assert run.stats["steps"] < 30
    assert times(run, "zero") == pytest.approx(2 * np.pi - 0.2, abs=4e-15)


@ADAPTIVE
def test_two_zeros_in_one_step(method: str) -> None:
    """Two zeros a third of a step apart, where the values at both ends of the step have one sign."""
    p = problem(lambda t, y: 0 * y, 1.0, 1.0, events=lambda t, y: (t - 0.30) * (t - 0.62), specs=(EventSpec("pair"),))
    run = integrate_problem(p, method=method, step=1.0)
    assert run.stats["steps"] == 1
    assert times(run, "pair") == pytest.approx([0.30, 0.62], abs=1e-15)


def test_zero_at_the_ends_of_steps() -> None:
    """A zero exactly where a step or a piece of one ends is counted once; one at the start not, one at the end is."""
    p = problem(lambda t, y: 0 * y, 1.0, 1.0, events=lambda t, y: t * (t - 0.25) * (t - 0.5) * (t - 1), specs=(EventSpec("zero"),))
    for step in (0.25, 0.5):
        assert times(integrate_problem(p, step=step), "zero").tolist() == [0.25, 0.5, 1.0]


# a function of t, and the lists of zeros that may be found: a touch is no crossing and may be seen or not, a close pair too
TOUCHES: dict[str, tuple[Any, list[list[float]]]] = {
    "touch from above": (lambda t: (t - 0.4) ** 2, [[], [0.4]]),
    "touch from below": (lambda t: -((t - 0.4) ** 2), [[], [0.4]]),
    "touch at the end": (lambda t: (1 - t) ** 2, [[1.0]]),
    "start and end": (lambda t: t * (t - 1), [[1.0]]),
    "triple": (lambda t: (t - 0.55) ** 3, [[0.55]]),
    "pair": (lambda t: (t - 0.4) ** 2 - 1e-8, [[], [0.3999, 0.4001]]),
    "touch, then cross": (lambda t: (t - 0.4) ** 2 * (t - 0.7), [[0.7], [0.4, 0.7]]),
}


@pytest.mark.parametrize("step", [1.0, 0.25, 0.2])
@pytest.mark.parametrize("method", [*METHODS, *ROSENBROCK])
def test_touching_zeros(method: str, step: float) -> None:
    """Double and triple zeros are never counted twice nor put elsewhere; of a close pair both are found, or none."""
    specs = tuple(EventSpec(name) for name in TOUCHES)
    functions = [g for g, _ in TOUCHES.values()]
    p = stiff(lambda t, y: 0 * y, lambda t, y: 0, 1.0, 1.0, events=lambda t, y: [g(t) for g in functions], specs=specs)
    run = integrate_problem(p, method=method, step=step)
    for name, (_, possible) in TOUCHES.items():
        # a third power is 0 in floats within 1e-5 or so of where it is, a square within 1e-8
        assert times(run, name).tolist() in [pytest.approx(each, abs=1e-5) for each in possible], name


@ADAPTIVE
def test_terminal(method: str) -> None:
    """The run ends in the event: time, state from the interpolant, the saved times before it, and no event after it."""
    p = circle(lambda t, y: (y[1] - 0.5, t - 0.3, t - 1.2), EventSpec("stop", terminal=True), EventSpec("early"), EventSpec("late"))
    run = integrate_problem(p, method=method, rtol=1e-9, atol=1e-9, save=np.linspace(0, 10, 101))
    end = np.pi / 3
    assert run.status is Status.EVENT and "stop" in run.message
    assert run.t_last == pytest.approx(end, abs=1e-8)
    assert run.y_last == pytest.approx([np.sin(end), 0.5], abs=1e-8)
    assert run.t.tolist() == [*np.linspace(0, 10, 101)[:11], run.t_last]
    assert np.array_equal(run.y[-1], run.y_last)
    assert times(run, "early") == pytest.approx(0.3) and run.events["late"] == []


def test_first_terminal_of_several() -> None:
    """Three terminal components cross in one step; the earliest ends it, and what comes before stays, in the order of time."""
    where = np.array([[0.7, 0.4], [0.45, 0.9]])
    specs = (EventSpec("count", (2,)), EventSpec("stop", (2, 2), terminal=True))
    p = problem(lambda t, y: 0 * y, 1.0, 1.0, events=lambda t, y: np.r_[0.39 - t, t - 0.1, t - where.ravel()], specs=specs)
    run = integrate_problem(p, step=1.0)
    assert run.t_last == pytest.approx(0.4, abs=1e-15) and "stop[0, 1]" in run.message
    assert [(found["t"], found["index"]) for found in run.events["count"]] == [(pytest.approx(0.1), (1,)), (pytest.approx(0.39), (0,))]
    assert [found["index"] for found in run.events["stop"]] == [(0, 1)]


def test_terminal_at_the_end_of_a_step() -> None:
    """The state of a zero at the very end of a step is that of the step."""
    p = problem(lambda t, y: -y, 1.0, 1.0, events=lambda t, y: t - 0.5, specs=(EventSpec("stop", terminal=True),))
    stopped = integrate_problem(p, step=0.25)
    whole = integrate_problem(problem(lambda t, y: -y, 1.0, 0.5), step=0.25)
    assert stopped.t_last == 0.5 and stopped.status is Status.EVENT
    assert np.array_equal(stopped.y_last, whole.y_last)


def test_many_components() -> None:
    """A vector event with more zeros than the first buffer holds: each component once, at its own time."""
    n = 700
    where = np.random.default_rng(0).uniform(0.01, 0.99, n)
    p = problem(
        lambda t, y: 0 * y,
        1.0,
        1.0,
        events=lambda t, y: np.r_[t - where, np.sin(400 * t + 1)],
        specs=(EventSpec("each", (n,)), EventSpec("fast")),
    )
    for step, tolerance in ((1 / 256, 1e-15), (1 / 2, 1e-14)):
        run = integrate_problem(p, step=step)
        found = {event["index"][0]: event["t"] for event in run.events["each"]}
        assert [found[i] for i in range(n)] == pytest.approx(where, abs=tolerance)
        assert len(run.events["each"]) == n and np.all(np.diff(times(run, "each")) >= 0)
    assert len(integrate_problem(p, step=1 / 256).events["fast"]) == int((400 + 1) / np.pi)


@ADAPTIVE
def test_many_zeros_at_once(method: str) -> None:
    """Many components that cross in one step are found together as well as one by one: their number decides the search."""
    levels = np.linspace(-0.9, 0.9, 61)
    together = integrate_problem(circle(lambda t, y: y[0] - levels, EventSpec("e", (61,)), t1=2.0), method=method)
    for i in (3, 17, 40):
        alone = integrate_problem(circle(lambda t, y: y[0] - levels[i], EventSpec("e"), t1=2.0), method=method)  # noqa: B023
        same = [found["t"] for found in together.events["e"] if found["index"] == (i,)]
        # both are zeros of one polynomial; the slope is at least 0.4
        assert same == pytest.approx(times(alone, "e"), abs=1e-13)
    stop = integrate_problem(circle(lambda t, y: levels - y[0], EventSpec("e", (61,), terminal=True), t1=2.0), method=method)
    assert stop.t_last == pytest.approx(together.events["e"][0]["t"], abs=1e-13) and len(stop.events["e"]) == 1


def test_events_leave_the_steps_alone() -> None:
    """A run with events makes the steps of the run without."""
    p = circle(lambda t, y: y[0], EventSpec("zero"))
    with_events, without = integrate_problem(p), integrate_problem(circle(None))
    assert np.array_equal(with_events.y_last, without.y_last)
    assert with_events.stats["steps"] == without.stats["steps"]


def test_wrong_declarations() -> None:
    with pytest.raises(SolveError, match="direction"):
        EventSpec("e", (), 2)
    with pytest.raises(SolveError, match="components"):
        good = circle(lambda t, y: y[0], EventSpec("zero"))
        Problem(good.rhs, good.y0, 0.0, 1.0, ())


def test_very_many_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that leaves the loop again and again because its room for events is full finds all of them, however fast it is."""
    count = 1500
    p = problem(lambda t, y: 0 * y, 1.0, 1.0, events=lambda t, y: np.sin(np.pi * count * t - 1), specs=(EventSpec("zero"),))
    monkeypatch.setattr(integrate, "SLICE_SECONDS", 1e9)  # no call takes long
    run = integrate_problem(p, method="tsit5", step=1 / count)
    assert times(run, "zero") == pytest.approx((np.arange(count) + 1 / np.pi) / count, abs=1e-12)
