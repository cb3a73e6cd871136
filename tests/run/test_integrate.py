"""What a run is given and hands back: the save grid, slices, interrupts, errors, dtypes."""

import os
import signal
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odesim.base.errors import SolveError
from odesim.run.integrate import integrate_problem
from odesim.stepper import drive
from odesim.stepper.codes import Status
from odesim.stepper.methods import METHODS
from odesim.stepper.problem import EventSpec
from tests.support.problems import Decay, Problem, problem

NAMES = list(METHODS)


def wave(dtype: str = "float64", t1: float = 5.0) -> Problem:
    """Two oscillators, (sin t, cos t) and (sin 2t, 2 cos 2t)."""
    return problem(lambda t, y: (y[1], -y[0], y[3], -4 * y[2]), [0, 1, 0, 2], t1, dtype=dtype)


def exact(t: Any) -> Any:
    return np.stack([np.sin(t), np.cos(t), np.sin(2 * t), 2 * np.cos(2 * t)], axis=-1)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0, 5), max_size=12, unique=True), st.sampled_from(["tsit5", "vern7", "dop853"]))
def test_any_grid(times: list[float], method: str) -> None:
    """Any increasing times: the rows are the solution there, the run ends at t1, and its steps do not depend on the grid."""
    save = np.sort(np.array(times))
    run, plain = (integrate_problem(wave(), method=method, save=s, rtol=1e-9, atol=1e-9) for s in (save, None))
    assert np.array_equal(run.t, save) and run.y.shape == (len(save), 4)
    assert np.abs(run.y - exact(save)).max(initial=0) < 1e-7
    assert run.t_last == 5.0 and np.array_equal(run.y_last, plain.y_last)
    assert np.array_equal(plain.t, [0, 5]) and np.array_equal(plain.y[1], plain.y_last)


@pytest.mark.parametrize("method", NAMES)
def test_fixed_step_grid(method: str) -> None:
    """Times are k steps from the start without drift, the last step ends at t1; a saved time on a step is the state itself."""
    seen = []

    def f(t: float, y: Any) -> Any:
        seen.append(t)
        return 0 * y

    p = problem(f, 1.0, 1.0)
    run = integrate_problem(p, method=method, step=0.1, save=np.array([0.3, 1.0]))
    assert run.stats["steps"] == 10 and run.t_last == 1.0
    assert {k * 0.1 for k in range(11)} <= set(seen) and max(seen) == 1.0
    assert integrate_problem(problem(lambda t, y: -y, 1.0, 1.0), method=method, step=0.3).stats["steps"] == 4
    assert integrate_problem(problem(lambda t, y: -y, 1.0, 1.0), method=method, step=7.0).stats["steps"] == 1


@pytest.mark.parametrize("method", NAMES)
def test_never_beyond_the_end(method: str) -> None:
    """The right-hand side is asked for no time after t1, where it need not exist, though t + h may round to beyond it."""
    for t0, t1 in np.random.default_rng(0).uniform(-3, 3, (40, 2)).cumsum(axis=1):
        seen: list[float] = []

        def f(t: float, y: Any, seen: list[float] = seen) -> Any:
            seen.append(t)
            return -y

        if t0 < t1:
            run = integrate_problem(problem(f, 1.0, t1, t0=t0), method=method, step=None if METHODS[method].adaptive else 0.1)
            assert run.t_last == max(seen) == t1 and min(seen) == t0


def test_euler_is_the_iteration() -> None:
    """A fixed step h of Euler is y + h f(y), bit for bit, so that it can stand for a training step."""
    y, h = [0.05], 0.02
    for _ in range(50):
        y.append(y[-1] + h * (1 - y[-1]))
    run = integrate_problem(problem(lambda t, y: 1 - y, 0.05, 1.0), method="euler", step=h, save=h * np.arange(51))
    assert run.y[:, 0].tolist() == y


@pytest.mark.parametrize("method", NAMES)
def test_slices(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """How often the driver comes back to Python changes nothing: the same bits, events and counts."""
    specs = (EventSpec("zero", (2,)), EventSpec("end", terminal=True))
    p = problem(lambda t, y: (y[1], -y[0]), [0.0, 1.0], 10.0, events=lambda t, y: (y[0], y[1], t - 9.1), specs=specs)
    kw: dict[str, Any] = {"method": method, "save": np.linspace(0, 10, 30), "step": None if METHODS[method].adaptive else 0.05}
    whole = integrate_problem(p, **kw)
    monkeypatch.setattr(drive.ExplicitRun, "first_slice", 1)
    monkeypatch.setattr(drive, "next_slice", lambda steps, seconds: steps % 3 + 1)
    fractions: list[float] = []
    sliced = integrate_problem(p, **kw, progress=fractions.append)
    assert len(fractions) > 5 and fractions == sorted(fractions) and fractions[0] > 0 and fractions[-1] < 1
    assert np.array_equal(whole.t, sliced.t) and np.array_equal(whole.y, sliced.y)
    assert whole.events == sliced.events and whole.status is sliced.status is Status.EVENT
    assert [whole.stats[k] for k in ("steps", "rejected", "rhs_calls")] == [sliced.stats[k] for k in ("steps", "rejected", "rhs_calls")]


def test_slices_adapt() -> None:
    """About 50 ms a slice, whatever a step costs."""
    assert drive.next_slice(64, 0.05) == 64
    assert drive.next_slice(64, 1e-9) == 16 * 64
    assert drive.next_slice(64, 100.0) == 16
    assert drive.next_slice(1, 100.0) == 1
    steps = 1
    for _ in range(100):  # calls that take no time
        steps = drive.next_slice(steps, 0.0)
    assert steps < 2**62


def test_ctrl_c() -> None:
    """An interrupt returns what was computed; the run before it is that of an undisturbed one, and the handler is as before."""
    p = wave(t1=1e6)

    def interrupt(fraction: float) -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    run = integrate_problem(p, save=np.linspace(0, 1e6, 10**6), progress=interrupt)
    assert run.status is Status.INTERRUPTED and "interrupted" in run.message
    assert 0 < run.t_last < 1e6 and run.t[-1] == run.t_last and len(run.t) > 2
    assert signal.getsignal(signal.SIGINT) is before
    again = integrate_problem(p, max_steps=int(run.stats["steps"] + run.stats["rejected"]))
    assert np.array_equal(again.y_last, run.y_last)


def test_ctrl_c_within_a_callback() -> None:
    """A signal while the right-hand side runs ends the run after that step."""
    calls = []

    def f(t: float, y: Any) -> Any:
        calls.append(t)
        if len(calls) == 100:
            os.kill(os.getpid(), signal.SIGINT)
        return -y

    run = integrate_problem(problem(f, 1.0, 1e9), rtol=1e-12)
    assert run.status is Status.INTERRUPTED and len(calls) < 120


def test_keyboard_interrupt_of_a_callback() -> None:
    """The same where KeyboardInterrupt is raised, as in a thread that has no handler."""

    def f(t: float, y: Any) -> Any:
        if t > 1:
            raise KeyboardInterrupt
        return -y

    out = []
    thread = threading.Thread(target=lambda: out.append(integrate_problem(problem(f, 1.0, 5.0))))
    thread.start()
    thread.join()
    assert out[0].status is Status.INTERRUPTED and 0 < out[0].t_last <= 1


@pytest.mark.parametrize("where", ["rhs", "events", "start"])
def test_exception_of_a_callback(where: str) -> None:
    """What a callback raises comes out of the run, and the system can be used again."""

    bad = [True]

    def guarded(value: Any, place: str) -> Any:
        def function(t: float, y: Any) -> Any:
            if bad[0] and (where == "start" or (where == place and t > 1)):
                raise ZeroDivisionError(f"in {where}")
            return value(y)

        return function

    p = problem(guarded(np.negative, "rhs"), 1.0, 5.0, events=guarded(np.copy, "events"), specs=(EventSpec("e"),))
    with pytest.raises(ZeroDivisionError, match=where):
        integrate_problem(p)
    bad[0] = False
    assert integrate_problem(p).status is Status.OK


@pytest.mark.parametrize("method", NAMES)
def test_float32(method: str) -> None:
    """States of single precision, times of double: errors of some roundings of float32."""
    step = None if METHODS[method].adaptive else 1e-3
    run = integrate_problem(wave("float32"), method=method, rtol=1e-6, atol=1e-6, step=step, save=np.linspace(0, 5, 11))
    assert run.y.dtype == run.y_last.dtype == np.float32 and run.t.dtype == np.float64
    # euler: half a step times the second derivative over 5 time units
    assert np.abs(run.y - exact(run.t)).max() < (5e-5 if method != "euler" else 0.05)
    p = problem(lambda t, y: y * y, 1.0, 2.0, dtype="float32", events=lambda t, y: y - 2, specs=(EventSpec("two"),))
    blown = integrate_problem(p, rtol=1e-5)
    assert blown.status is Status.BLOW_UP and blown.t_last == pytest.approx(1, abs=1e-4)
    assert blown.events["two"][0]["t"] == pytest.approx(0.5, abs=1e-4)


def test_tolerance_below_rounding() -> None:
    """A relative tolerance below the rounding of the state counts as four roundings: the run ends."""
    run = integrate_problem(problem(lambda t, y: -y, 1.0, 1.0, dtype="float32"), rtol=1e-12, atol=0)
    assert run.status is Status.OK and run.stats["steps"] < 1000


def test_zero_tolerance_and_zero_component() -> None:
    """atol = 0 with a component that stays 0, whose error is 0 in units of 0."""
    run = integrate_problem(problem(lambda t, y: -y, [1.0, 0.0], 1.0), atol=0.0)
    assert run.status is Status.OK and run.y_last == pytest.approx([np.exp(-1), 0], abs=1e-5)


def test_permuted_components() -> None:
    """Permuting the components permutes the result."""
    y0, order = np.array([0.3, 1.0, 2.0, 0.1, 0.7]), [3, 0, 4, 2, 1]
    a, b = (integrate_problem(problem(lambda t, y: np.sin(y), y, 2.0)) for y in (y0, y0[order]))
    # sums of five squares in another order
    assert b.y_last == pytest.approx(a.y_last[order], rel=1e-12)


def test_large_state_is_not_copied_a_step() -> None:
    """No array of the state's length is made while the driver runs: peak memory is that of the stages and rows."""
    import tracemalloc

    n = 200_000
    p = Problem(Decay(n), np.ones(n), 0.0, 1.0)
    integrate_problem(Problem(Decay(1), np.ones(1), 0.0, 1.0), method="tsit5")  # compiles, which takes memory and time of its own
    tracemalloc.start()
    run = integrate_problem(p, save=np.linspace(0, 1, 5), method="tsit5")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    rows = 7 + 3 + 6 + 1  # stages, work, saved and one spare, the copy of the last state
    assert run.status is Status.OK and peak < 1.1 * rows * n * 8


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"method": "tsit"}, "did you mean 'tsit5'"),
    ({"method": "euler"}, "no error estimate: give a fixed step"),
    ({"method": "rk4"}, "no error estimate: give a fixed step"),
    ({"step": 0.0}, "step"),
    ({"step": -1.0}, "step"),
    ({"step": np.nan}, "step"),
    ({"rtol": 0.0}, "rtol"),
    ({"rtol": -1e-6}, "rtol"),
    ({"rtol": np.inf}, "rtol"),
    ({"atol": -1.0}, "atol"),
    ({"atol": np.nan}, "atol"),
    ({"max_steps": 0}, "max_steps"),
    ({"save": np.array([0.0, 2.0, 1.0])}, "increasing"),
    ({"save": np.array([0.0, 6.0])}, "must lie in 0:5"),
    ({"save": np.array([np.nan])}, "finite"),
]


@pytest.mark.parametrize(("options", "words"), WRONG, ids=lambda x: str(x) if isinstance(x, dict) else "")
def test_wrong_options(options: dict[str, Any], words: str) -> None:
    """Options that make no sense are refused in a sentence."""
    with pytest.raises(SolveError, match=words):
        integrate_problem(wave(), **options)


@pytest.mark.parametrize("span", [(0.0, 0.0), (1.0, 0.0), (0.0, np.inf), (np.nan, 1.0)])
def test_wrong_span(span: tuple[float, float]) -> None:
    p = wave()
    with pytest.raises(SolveError, match="forward"):
        Problem(p.rhs, p.y0, *span)
