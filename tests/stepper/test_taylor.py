"""The Taylor method answers to the laws of explicit methods: its order, its tolerance, what it saves, finds and refuses."""

from typing import Any

import numpy as np
import pytest
from sympy import Interval, Rational, oo, sin, symbols

import odesim
from odesim.base.errors import SolveError
from odesim.stepper.taylor import taylor_order
from odesim.symbolic import Param, System, time
from tests.stepper.test_order import slope
from tests.support.balls import BALLS
from tests.support.systems import SOURCE
from tests.support.threads import same_as_runs

x, y, u, v, a = symbols("x y u v a")
SHIPPED = (
    *("causal.parent_row", "classics.deep_linear_modes", "hopfield.two_patterns", "in_context.two_layers", "induction.stages"),
    *("joma.linear", "joma.nonlinear", "joma.self_consistent", "memory.softmax_regression"),
)
TOLERANCES = np.array([1e-4, 1e-7, 1e-10, 1e-13])


def orbit() -> System:
    """A Kepler orbit of eccentricity .5 from its nearest point; its period is 2 pi."""
    cube = (x**2 + y**2) ** Rational(3, 2)
    start = {x: 0.5, y: 0.0, u: 0.0, v: 3**0.5}
    return System(name="a.orbit", source=SOURCE, axes={}, equations={x: u, y: v, u: -x / cube, v: -y / cube}, initial=start)


def run(system: Any, end: float, **options: Any) -> Any:
    return odesim.integrate(system, span=(0.0, end), **{"method": "taylor", **options})


def error(found: Any) -> float:
    """The largest difference of an orbit's end to its start."""
    return max(abs(float(found.y_end[name]) - float(found.y[name][0])) for name in "xyuv")


@pytest.mark.parametrize("rtol", [1e-3, 1e-6])
def test_order(rtol):
    """Halving a fixed step divides the error by 2^order, the order that the tolerance has; a part of the next power is still seen."""
    pendulum = System(name="a.pendulum", source=SOURCE, axes={}, equations={x: y, y: -sin(x)}, initial={x: 1.0, y: 0.5})
    steps = np.array([1 / 2, 1 / 4, 1 / 8])
    true = run(pendulum, 2.0, method="dop853", rtol=1e-14, atol=1e-14).y_end
    ends = [run(pendulum, 2.0, rtol=rtol, step=h).y_end for h in steps]
    errors = [max(abs(float(end[name] - true[name])) for name in "xy") for end in ends]
    assert taylor_order(rtol) - 0.2 < slope(steps, errors) < taylor_order(rtol) + 0.95


def test_error_follows_tolerance():
    """A thousandth of the tolerance makes a thousandth of the error, about, as of every method; no step is rejected."""
    runs = [run(orbit(), 2 * np.pi, rtol=tol, atol=tol) for tol in TOLERANCES]
    errors = np.array([error(r) for r in runs])
    assert np.all(errors < 50 * TOLERANCES)
    assert slope(TOLERANCES, errors) == pytest.approx(1, abs=0.4)
    assert all(r.stats["rejected"] == 0 and r.stats["steps"] < 60 for r in runs)


def test_states_between_steps():
    """Saved states, and those of the interpolant, are as exact as the ends of steps: by Kepler's equation; the energy is -1/2 there."""
    at = np.linspace(0, 6, 41)
    found = run(orbit(), 6.0, rtol=1e-10, atol=1e-10, save=at)
    angle = at.copy()
    for _ in range(60):  # E = t + e sin E contracts by e = 1/2
        angle = at + 0.5 * np.sin(angle)
    rate = 1 / (1 - 0.5 * np.cos(angle))
    root = np.sqrt(0.75)
    true = {"x": np.cos(angle) - 0.5, "y": root * np.sin(angle), "u": -np.sin(angle) * rate, "v": root * np.cos(angle) * rate}
    assert len(found.t) == 41 and found.stats["steps"] < 41
    dense = found.dense(at)
    for name, values in true.items():
        np.testing.assert_allclose(found.y[name], values, rtol=0, atol=50 * 1e-10)
        np.testing.assert_allclose(dense[name], values, rtol=0, atol=50 * 1e-10)
    energy = (found.y["u"] ** 2 + found.y["v"] ** 2) / 2 - 1 / np.hypot(found.y["x"], found.y["y"])
    np.testing.assert_allclose(energy, -0.5, rtol=0, atol=50 * 1e-10)


def test_coefficients_that_vanish_are_no_proof():
    """Of x' = t^20 all coefficients up to the order are 0 at t = 0: the right-hand side at the end of a step tells."""
    late = System(name="a.late", source=SOURCE, axes={}, equations={x: time**20}, initial={x: 0.0})
    found = run(late, 1.0, rtol=1e-9, atol=1e-9, first_step=1.0)
    assert float(found.y_end["x"]) == pytest.approx(1 / 21, abs=1e-8) and found.stats["rejected"] > 0


def test_sensitivities():
    """Of decay by its rate: -t exp(-a t)."""
    rate = Param(a, 0.7, Interval.open(0, oo), "rate")
    decay = System(name="a.decay", source=SOURCE, axes={}, equations={x: -a * x}, params=(rate,), initial={x: 1.0})
    found = run(decay, 2.0, rtol=1e-10, atol=1e-10, sensitivities="a")
    assert float(found.sensitivities["a"]["x"][-1]) == pytest.approx(-2 * np.exp(-1.4), abs=1e-9)


def test_a_blow_up_has_its_time():
    """x' = x^2 from 1 runs to infinity at t = 1."""
    found = run(System(name="a.pole", source=SOURCE, axes={}, equations={x: x**2}, initial={x: 1.0}), 2.0, rtol=1e-9, atol=1e-9)
    assert found.status == "blow_up" and found.t_end == pytest.approx(1, abs=1e-8)


def test_a_constant_right_side():
    """Is integrated to rounding in a few steps."""
    found = run(System(name="a.line", source=SOURCE, axes={}, equations={x: time * 0 + 2}, initial={x: 0.0}), 3.0)
    assert float(found.y_end["x"]) == pytest.approx(6.0, abs=1e-14) and found.stats["steps"] < 10


@pytest.mark.first(2)
@pytest.mark.parametrize("options", [{"save": 7}, {"step": 0.1}, {}], ids=["saves", "fixed", "end"])
def test_lanes_are_runs(options):
    """Strict members have the bits, steps and events of strict runs."""
    mu = np.linspace(0.6, 2.4, 40).reshape(10, 4)
    more = {"method": "taylor", "rtol": 1e-8, "atol": 1e-10, **options}
    found = odesim.ensemble("joma.nonlinear", params={"mu": mu}, strict=True, max_events=0 if "step" in options else 8, **more)
    same_as_runs(found, "joma.nonlinear", 3, {"mu": mu}, **{"save": 2, **more})


def test_events_that_set_states():
    """Balls bounce at the moments that vern9 finds."""
    runs = [odesim.integrate(BALLS, method=m, rtol=1e-10, atol=1e-12) for m in ("taylor", "vern9")]
    ours, theirs = ([e["t"] for e in r.events["bounce"]] for r in runs)
    assert ours == pytest.approx(theirs, abs=1e-9) and len(ours) > 5


@pytest.mark.parametrize("model", [pytest.param(m, marks=() if m == "causal.parent_row" else pytest.mark.slow) for m in SHIPPED])
def test_shipped_models(model):
    """Those that are small and smooth end where vern9 does, to a hundred times the tolerance: some are steep."""
    ours, theirs = (odesim.integrate(model, method=m, rtol=1e-9, atol=1e-12).y_end for m in ("taylor", "vern9"))
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    ("model", "options", "what"),
    [
        ("margin.next_token", {}, r"is not for a right-hand side that cannot be written out \(a condition has no Taylor series\); choose"),
        ("in_context.markov_bias", {}, r"is not for a right-hand side that cannot be written out \(abs has no Taylor series\); choose"),
        ("classics.deep_linear", {}, "is not for a right-hand side worth [0-9]+ operations: at most 200; choose"),
        ("joma.nonlinear", {"dtype": "float32"}, "is not for float32; choose"),
        ("joma.nonlinear", {"params": {"mu": np.ones(33)}}, "is not for 33 states: at most 32; choose"),
        ("joma.nonlinear", {"backend": "numpy"}, "numba can do taylor"),
        ("noise.double_well", {}, "which taylor does not take"),
    ],
)
def test_what_it_cannot_do_is_said(model, options, what):
    """In one sentence with the reason that holds, before anything is computed."""
    with pytest.raises(SolveError, match=what):
        odesim.integrate(model, method="taylor", **options)


def test_members_that_it_cannot_do():
    """Are refused before the first."""
    with pytest.raises(SolveError, match="is not for float32; choose vern9"):
        odesim.ensemble("joma.nonlinear", params={"mu": np.ones((3, 4))}, method="taylor", dtype="float32")
