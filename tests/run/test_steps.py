"""The steps of an adaptive run: as long, and as often rejected, as those of a plain loop by the books."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from sympy import Interval, Rational, Symbol, cos, oo

import odesim
from odesim.stepper.methods import METHODS
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.symbolic import IndexedBase, Param, Source, System, index, sizes, time
from tests.support.engines import ADAPTIVE
from tests.support.matrix import slow_but
from tests.support.steps import Array, Right, explicit_steps, stiff_steps

x, v = Symbol("x", real=True), Symbol("v", real=True)
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Flow:
    """A System and the same by hand: f, its Jacobian and its derivative by time."""

    system: System
    f: Right
    jacobian: Right
    slope: Right


def flow(equations: Any, start: Any, end: float, *by_hand: Right) -> Flow:
    """The Flow from this start, from 0 to the end."""
    system = System(
        name="made.steps", source=Source("none", "test"), axes={}, equations=equations, params=(), initial=start, span=(0.0, end)
    )
    return Flow(system, *by_hand)


FLOWS = {
    "stability": flow(  # of an explicit method ends its steps: their lengths alternate but for the second factor of the PI rule
        {x: -100 * (x - cos(time))},
        {x: 0.0},
        3.0,
        lambda t, y: np.array([-100 * (y[0] - np.cos(t))]),
        lambda t, y: np.array([[-100.0]]),
        lambda t, y: np.array([-100 * np.sin(t)]),
    ),
    "jumps": flow(  # van der Pol's, forced
        {x: v, v: 3 * (1 - x**2) * v - x + cos(2 * time) / 2},
        {x: 2.0, v: 0.0},
        20.0,
        lambda t, y: np.array([y[1], 3 * (1 - y[0] ** 2) * y[1] - y[0] + np.cos(2 * t) / 2]),
        lambda t, y: np.array([[0.0, 1.0], [-6 * y[0] * y[1] - 1, 3 * (1 - y[0] ** 2)]]),
        lambda t, y: np.array([0.0, -np.sin(2 * t)]),
    ),
}


@cache
def plain(name: str, method: str, first: float = 0.0) -> list[tuple[float, Array, bool]]:
    """What the plain loop tries, from this first step on; 0: one that it chooses."""
    made = FLOWS[name]
    y0, (t0, t1) = np.array([float(value) for value in made.system.initial.values()]), made.system.span
    if method in METHODS:
        return list(explicit_steps(method, made.f, y0, t0, t1, TOLERANCE, TOLERANCE, first))
    return list(stiff_steps(method, made.f, made.jacobian, made.slope, y0, t0, t1, TOLERANCE, TOLERANCE, first))


def counts(tried: list[tuple[float, Array, bool]]) -> tuple[int, int]:
    """(steps, rejected)."""
    steps = sum(accepted for _, _, accepted in tried)
    return steps, len(tried) - steps


FIRST = {"chosen": None, "short": 1e-5, "rejected": 1.0}
"""First steps; the last is far too long."""


def first_step(method: str, first: str) -> float | None:
    """Of vern9 a short one is longer: at 1e-5 its estimate of the error is rounding, and so is the length of the next step."""
    return 0.05 if (method, first) == ("vern9", "short") else FIRST[first]


@pytest.mark.parametrize("name", FLOWS)
@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("method", [*ADAPTIVE, *ROSENBROCK])
def test_a_run_takes_the_steps_of_a_plain_loop(method: str, first: str, name: str) -> None:
    """As many are taken and rejected, and after any number of them the time and the state are the same.

    A first step that is given spares the right-hand side by which it would be chosen. Powers of error norms are good to 1e-5 in
    compiled loops: so are lengths of steps.
    """
    tried = plain(name, method, first_step(method, first) or 0.0)
    given: Any = {"method": method, "rtol": TOLERANCE, "atol": TOLERANCE, "backend": "numpy", "first_step": first_step(method, first)}
    run = odesim.integrate(FLOWS[name].system, **given)
    assert (run.stats["steps"], run.stats["rejected"]) == counts(tried)
    if method in METHODS:
        assert run.stats["rhs_calls"] == 1 + (first == "chosen") + len(tried) * METHODS[method].last
    for most in (1, 4, 19, len(tried) - 1):
        run = odesim.integrate(FLOWS[name].system, max_steps=most, **given)
        time, state, _ = tried[most - 1]
        assert run.status == "max_steps" and run.t_end == pytest.approx(time, rel=2e-5)
        found = np.array([float(value) for value in run.final.values()])
        np.testing.assert_allclose(found, state + (run.t_end - time) * FLOWS[name].f(time, state), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("first", ["chosen", "rejected"])
@pytest.mark.parametrize("method", slow_but([*ADAPTIVE, *ROSENBROCK], ["tsit5", "rodas5p"]))  # a kernel each
def test_a_member_takes_the_steps_of_a_plain_loop(method: str, first: str) -> None:
    """The same number of them in an ensemble, taken and rejected."""
    given: Any = {"rtol": TOLERANCE, "atol": TOLERANCE, "first_step": FIRST[first], "strict": method != "tsit5"}
    found = odesim.ensemble(FLOWS["jumps"].system, initial={"x": [2.0, 2.0]}, method=method, **given)
    assert [*zip(found.steps.values, found.rejected.values, strict=True)] == [counts(plain("jumps", method, FIRST[first] or 0.0))] * 2


def spans() -> list[tuple[float, float]]:
    """Spans that are longer when they are rounded: t0 + (t1 - t0) lies beyond t1; so do half of all t + (t1 - t)."""
    ends = np.random.default_rng(0).uniform((-3, 0), (-1, 1e-3), (40, 2)).tolist()
    return [(t0, t1) for t0, t1 in ends if t0 + (t1 - t0) > t1][:8]


T, push, (m,), (M,) = Symbol("T", real=True), Symbol("push", real=True), index("m"), sizes("M")
z, mu = IndexedBase("z", shape=(M,)), IndexedBase("mu", shape=(M,))
PUSHED = System(
    name="made.pushed",
    source=Source("none", "test"),
    axes={m: M},
    equations={z[m]: mu[m] * (cos(3 * time) - z[m]) + push * (T - time) ** Rational(3, 2)},
    params=(
        Param(T, 1.0, Interval(-oo, oo), "where the right-hand side ends"),
        Param(push, 1.0, Interval(-oo, oo), "size of what is no number beyond it"),
        Param(mu, 0.0, Interval(0, oo), "how fast a state follows a wave"),
    ),
    initial={z[m]: 0.0},
    sizes={M: 2},
)


@pytest.mark.parametrize("method", [*METHODS, *ROSENBROCK])
@pytest.mark.parametrize("fixed", [False, True], ids=["adaptive", "one step"])
def test_no_time_after_the_end_is_needed(method: str, fixed: bool) -> None:
    """z' = (T - t)^(3/2), which is no number beyond T, by few steps to T: the last stage is at the end itself, not at t + h."""
    for t0, t1 in spans():
        if fixed or method in (*ADAPTIVE, *ROSENBROCK):
            given: Any = {"step": 10.0} if fixed else {"rtol": 0.1, "atol": 10.0}
            run = odesim.integrate(PUSHED, params={"T": t1}, span=(t0, t1), method=method, backend="numpy", **given)
            assert (run.status, run.t_end, run.stats["rejected"]) == ("ok", t1, 0)


WIDTHS = {"lanes": (2, 2), "wide": (8, 2), "loops": (200, 40)}
"""States and members: a stiff step of 8 states is written in loops, and so is an explicit one of 200 in many members."""


def steps_of_several(method: str, mu: Array, first: float) -> tuple[int, int]:
    """(steps, rejected) of the plain loop over all states (M,), from this first step on."""
    f: Right = lambda t, y: mu * (np.cos(3 * t) - y)  # noqa: E731
    asked: Any = (2.0 + 0 * mu, 0.0, 8.0, LOOSE, LOOSE, first)
    if method in METHODS:
        return counts(list(explicit_steps(method, f, *asked)))
    return counts(list(stiff_steps(method, f, lambda t, y: np.diag(-mu), lambda t, y: -3 * mu * np.sin(3 * t), *asked)))


LOOSE = 1e-4
LOOPS = [("rodas4", "lanes"), ("rodas5p", "wide"), ("rodas4", "wide"), *((method, "loops") for method in ADAPTIVE)]


@pytest.mark.parametrize(("method", "width"), slow_but(LOOPS, [("vern7", "loops")], several=True))  # a kernel each
def test_members_in_loops_take_the_steps_of_a_plain_loop(method: str, width: str) -> None:
    """Steps in loops over states, and stiff ones whose length the interpolant between them decides, by a third of them or more.

    To 1 %: where stability ends the steps a rounding decides.
    """
    states, count = WIDTHS[width]
    low, high = (4.0, 6.0) if method in ROSENBROCK else (-0.3, 1.6)
    rows = 10 ** np.random.default_rng(0).uniform(low, high, (count, states))
    given: Any = {"params": {"mu": rows, "push": 0.0, "T": 9.0}, "initial": {"z": 2.0}, "sizes": {"M": states}, "span": (0, 8)}
    first = 2.0 if method in ("vern7", "rodas5p") else 0.0  # far too long: it is rejected again and again
    found = odesim.ensemble(PUSHED, method=method, rtol=LOOSE, atol=LOOSE, first_step=first or None, **given)
    for i in (0, 1, count - 1):
        steps, rejected = steps_of_several(method, rows[i], first)
        assert found.steps.values[i] == pytest.approx(steps, rel=0.01)
        assert found.steps.values[i] + found.rejected.values[i] == pytest.approx(steps + rejected, rel=0.02)


RISING = System(
    name="made.rising",
    source=Source("none", "test"),
    axes={m: M},
    equations={z[m]: mu[m] * (2 + cos(time))},
    params=(Param(mu, 1e306, Interval(0, oo), "half of the mean speed"),),
    initial={z[m]: 1.5e308},
    span=(0.0, 100.0),
)


@pytest.mark.slow  # a kernel of its own each; test_stops.py has single runs
@pytest.mark.parametrize(("method", "width"), LOOPS)
def test_no_infinite_state_is_accepted(method: str, width: str) -> None:
    """States that overflow near t = 15 while their slope stays finite, and their error in units of themselves would be 0."""
    states, count = WIDTHS[width]
    rows = np.full((count, states), 1e306)
    found = odesim.ensemble(RISING, params={"mu": rows}, sizes={"M": states}, method=method, rtol=LOOSE, atol=LOOSE)
    assert (found.status != 0).all() and (found.t_end < 20).all()


IN_LANES = [("tsit5", True, "lanes")]  # a kernel each; single runs by all methods are above
MEMBERS = [
    (method, fixed, width)
    for method in (*METHODS, *ROSENBROCK)
    for fixed in (False, True)
    for width in WIDTHS
    if (fixed or method in (*ADAPTIVE, *ROSENBROCK)) and width != ("loops" if method in ROSENBROCK else "wide")
]


@pytest.mark.parametrize(("method", "fixed", "width"), slow_but(MEMBERS, IN_LANES, several=True))
def test_no_member_needs_a_time_after_the_end(method: str, fixed: bool, width: str) -> None:
    """The same in an ensemble."""
    states, count = WIDTHS[width]
    for t0, t1 in spans():
        given: Any = {"step": 10.0} if fixed else {"rtol": 0.1, "atol": 10.0}
        found = odesim.ensemble(PUSHED, params={"T": [t1] * count}, sizes={"M": states}, span=(t0, t1), method=method, **given)
        assert not found.status.any() and (found.t_end == t1).all() and not found.rejected.any()


SQUARE = System(
    name="made.square", source=Source("none", "test"), axes={}, equations={x: x**2}, params=(), initial={x: 1.0}, span=(0.0, 2.0)
)


@pytest.mark.first(1)
@pytest.mark.parametrize("t0", [-1e6, 0.0, 1e3, 1e6])
def test_a_blow_up_at_any_clock(t0: float) -> None:
    """x' = x^2 from 1, whose pole is 1 later, where the steps cannot be shorter than what the clock tells apart."""
    for method in (*ADAPTIVE, *ROSENBROCK):
        run = odesim.integrate(SQUARE, span=(t0, t0 + 2), method=method, rtol=1e-9, backend="numpy")
        assert (run.status, run.t_end) == ("blow_up", pytest.approx(t0 + 1, abs=1e-7 + 1e-12 * abs(t0)))
    found = odesim.ensemble(SQUARE, initial={"x": [1.0, 0.1]}, span=(t0, t0 + 2), method="tsit5", rtol=1e-9)
    assert [found.attrs["status_names"][k] for k in found.status.values] == ["blow_up", "ok"]
