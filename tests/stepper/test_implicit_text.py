"""The text of a Rosenbrock step, interpreted in plain numpy with numpy.linalg.solve, takes the steps of every target."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sympy import cos, symbols

import odesim
from odesim.base.arrays import Array
from odesim.base.memo import Memo
from odesim.run import lane_plan, lanes
from odesim.run.integrate import integrate_problem
from odesim.stepper import control
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.symbolic import Source, System, time
from tests.support.interpreted import InterpretedImplicit
from tests.support.stiff_problems import stiff

a, b, c = symbols("a b c", real=True)


def robertson(t: float, y: Array) -> Array:
    r1, r2, r3 = 0.04 * y[0], 3e7 * y[1] ** 2, 1e4 * y[1] * y[2]
    return np.array([r3 - r1, r1 - r3 - r2, r2])


def robertson_slopes(t: float, y: Array) -> tuple[Array, Array]:
    r2, r3, r4 = 6e7 * y[1], 1e4 * y[2], 1e4 * y[1]
    return np.array([[-0.04, r3, r4], [0.04, -r3 - r2, -r4], [0, r2, 0]]), np.zeros(3)


def van_der_pol(t: float, y: Array) -> Array:
    return np.array([y[1], 1e3 * (1 - y[0] ** 2) * y[1] - y[0]])


def van_der_pol_slopes(t: float, y: Array) -> tuple[Array, Array]:
    return np.array([[0, 1], [-2e3 * y[0] * y[1] - 1, 1e3 * (1 - y[0] ** 2)]]), np.zeros(2)


def forced(t: float, y: Array) -> Array:
    return np.array([1e4 * (np.cos(t) - y[0]), y[0] - y[1] ** 3])


def forced_slopes(t: float, y: Array) -> tuple[Array, Array]:
    return np.array([[-1e4, 0], [1, -3 * y[1] ** 2]]), np.array([-1e4 * np.sin(t), 0])


Right = Callable[[float, Array], Any]
# name: equations, right-hand side, derivatives, start, end of the span, linear invariants
SYSTEMS: dict[str, tuple[Any, Right, Right, list[float], float, list[Array]]] = {
    "robertson": (
        {a: 1e4 * b * c - 0.04 * a, b: 0.04 * a - 1e4 * b * c - 3e7 * b**2, c: 3e7 * b**2},
        robertson, robertson_slopes, [1.0, 0.0, 0.0], 40.0, [np.ones(3)],
    ),
    "van_der_pol": ({a: b, b: 1000.0 * (1 - a**2) * b - a}, van_der_pol, van_der_pol_slopes, [2.0, 0.0], 820.0, []),
    "forced": ({a: 1e4 * (cos(time) - a), b: a - b**3}, forced, forced_slopes, [0.0, 2.0], 3.0, []),
}  # fmt: skip
BOTH = pytest.mark.parametrize("method", list(ROSENBROCK))
ALL = pytest.mark.parametrize("name", SYSTEMS)


def interpreted(name: str, method: str, kept: bool = False, **options: Any) -> InterpretedImplicit:
    """A run by the text; kept: with the linear invariants of the system."""
    _, right, derivatives, start, end, sums = SYSTEMS[name]
    save = np.linspace(0, end, 5)
    text = InterpretedImplicit(
        ROSENBROCK[method], right, derivatives, np.array(start), (0.0, end), save, sums=sums if kept else (), **options
    )
    text.run()
    return text


def assert_same(text: InterpretedImplicit, stats: Any, states: Array, calls: bool = True) -> None:
    """Counts are equal, states to what rounding makes of a step: its matrix has a condition of up to 1e8.

    calls: of right-hand sides too.
    """
    assert (text.names["steps"], text.names["rejected"]) == (stats["steps"], stats["rejected"])
    assert not calls or text.calls == stats["rhs_calls"]
    np.testing.assert_allclose(np.array(text.states), states, rtol=1e-7, atol=1e-10)


def in_lanes(name: str, method: str) -> Any:
    equations, _, _, start, end, _ = SYSTEMS[name]
    initial = dict(zip(equations, start, strict=True))
    system = System(f"test.{name}", Source("none", "made for the tests"), {}, equations, (), initial, span=(0.0, end))
    return odesim.integrate(system, method=method, strict=True, save=5)


def states(run: Any) -> Array:
    return np.stack([run.y[name] for name in "abc" if name in run.y], axis=-1)


@BOTH
@ALL
def test_one_system_takes_these_steps(name, method):
    """On numpy arrays: steps, rejections, right-hand sides, states at saved times inside steps."""
    _, right, derivatives, start, end, _ = SYSTEMS[name]
    problem = stiff(right, lambda t, y: derivatives(t, y)[0], start, end, lambda t, y: derivatives(t, y)[1])
    text, run = interpreted(name, method), integrate_problem(problem, method=method, save=np.linspace(0, end, 5))
    assert_same(text, run.stats, run.y)


@pytest.mark.first(1)
@pytest.mark.parametrize(("name", "method"), [("robertson", "rodas5p"), ("forced", "rodas4"), ("van_der_pol", "rodas4")])
def test_lanes_take_these_steps(name, method):
    """Written out; a lane evaluates the right-hand side for what a single run leaves out."""
    text, run = interpreted(name, method, kept=True), in_lanes(name, method)
    assert_same(text, run.stats, states(run), calls=False)


@pytest.mark.first(1)
@pytest.mark.parametrize("most", [300, 0], ids=["elimination written out", "dense"])
def test_loops_take_these_steps(most, monkeypatch):
    """Lanes with loops, by both eliminations."""
    monkeypatch.setattr(lane_plan, "MOST_WRITTEN", 0)
    monkeypatch.setattr(lane_plan, "MOST_FACTORS", most)
    monkeypatch.setattr(lanes, "_PLANS", Memo())
    text, run = interpreted("forced", "rodas5p"), in_lanes("forced", "rodas5p")
    assert_same(text, run.stats, states(run), calls=False)


@BOTH
def test_steps_are_rejected(method):
    """The cases above are not all smooth."""
    assert interpreted("van_der_pol", method).names["rejected"] > 0


@BOTH
@pytest.mark.parametrize("given", [{"step": 0.07}, {"first_step": 1e-5}], ids=str)
def test_given_steps(method, given):
    """Another control, the same step; and a first step that is given."""
    _, right, derivatives, start, end, _ = SYSTEMS["forced"]
    problem = stiff(right, lambda t, y: derivatives(t, y)[0], start, end, lambda t, y: derivatives(t, y)[1])
    run = integrate_problem(problem, method=method, save=np.linspace(0, end, 5), **given)
    assert_same(interpreted("forced", method, **given), run.stats, run.y)


def test_another_rule_of_control_is_seen():
    """With the bound of Gustafsson's rule left out the text takes other steps: the comparison is not empty."""
    plain = {"gustafsson": lambda less, ratio, fits: control.SAFETY * less}
    assert interpreted("van_der_pol", "rodas5p", rules=plain).names["steps"] != interpreted("van_der_pol", "rodas5p").names["steps"]
