"""Sensitivities through events that set states: closed forms, and differences of two runs."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy import Mod, Piecewise, exp, pi, sin

import odesim
from odesim.base.errors import SolveError
from odesim.symbolic import Event, IndexedBase, Param, Source, System, index, over, sizes, table
from odesim.symbolic import time as t
from tests.run.test_resets import PLAIN, REALS, system
from tests.support.balls import BALLS, flight

x, v, n, k, a, b, q = sp.symbols("x v n k a b q", real=True)
EXACT: dict[str, Any] = {**PLAIN, "rtol": 1e-11, "atol": 1e-13}
STEP = 1e-5
"""Of central differences: an error of 1e-10 third derivatives, and 1e-11 / STEP of the runs."""


@pytest.mark.parametrize("method", ["vern7", "rodas5p"])
def test_balls(method: str) -> None:
    """Height and speed of balls by gravity, restitution, and each height: differences of the closed form of every flight, to 1e-7."""
    heights, names = (1.0, 0.5), ("x", "v")
    run = odesim.integrate(BALLS, params={"h": heights}, save=9, sensitivities=["g", "c", "h"], method=method, **{**PLAIN, "rtol": 1e-8})
    for ball, h in enumerate(heights):
        for row, time in enumerate(run.t):
            own = partial(flight, time)
            exact = {"g": _slope(lambda z, f=own, h=h: f(h, z), 9.81), "c": _slope(lambda z, f=own, h=h: f(h, 9.81, z), 0.8)}
            for p, slopes in exact.items():
                np.testing.assert_allclose([run.sensitivities[p][v][row, ball] for v in names], slopes, rtol=1e-7, atol=1e-7)
            found = [run.sensitivities["h"][v][row, ball, ball] for v in names]
            np.testing.assert_allclose(found, _slope(own, h), rtol=1e-7, atol=1e-7)
            assert run.sensitivities["h"]["x"][row, ball, 1 - ball] == 0
    assert not run.sensitivities["g"]["n"].any()  # a count does not move


def test_kicks_on_time() -> None:
    """x = b sum_k exp(-a (t - k q)): the derivatives by all three, also where the time of a kick moves. 1e-8: the tolerance."""
    model = system({x: -a * x}, [Event("kick", sin(pi * t / q), resets={x: x + b})], 0, {a: 0.5, b: 2.0, q: 1.5})
    run = odesim.integrate(model, sensitivities=["a", "b", "q"], **PLAIN)
    k = np.arange(1, 7)
    late = 10 - 1.5 * k
    decay = np.exp(-0.5 * late)
    exact = {"a": -2 * (late * decay).sum(), "b": decay.sum(), "q": 2 * (0.5 * k * decay).sum()}
    for p, value in exact.items():
        assert run.sensitivities[p]["x"][-1] == pytest.approx(value, rel=1e-8)


(i, j), (N,) = index("i j"), sizes("N")
y, w = IndexedBase("y", shape=(N,)), IndexedBase("w", shape=(N,))
FIRING = System(
    name="firing",
    source=Source("own", "test"),
    axes={i: N, j: N},
    equations={y[i]: a * w[i] - y[i] / 3 + sin(t) / 5 + Piecewise((1, x > 1), (0, True)) / 4, x: -x, n: 0},
    params=(Param(a, 0.7, REALS, ""), Param(b, 0.3, REALS, ""), Param(w, lambda s: [1.0, 0.8, 1.3], REALS, "")),
    initial={y[i]: b * i, x: 0.1, n: 0},
    sizes={N: 3},
    span=(0.0, 5.0),
    events=(
        Event("fires", y[i] - 1, 1, resets={y[i]: b * y[i] ** 2 * over(sp.Sum, y[j], (j, N)) / 9, x: x + exp(-b * t), n: n + 1}),
        Event("round", n - 3, 1, resets={n: 0, y[j]: y[j] * (1 - a / 4)}),
    ),
    observables={"all": over(sp.Sum, y[j], (j, N)) * x},
)
"""Units that fire: they share x, which switches all of them, and each third firing lowers all."""


@pytest.mark.slow
def test_a_network() -> None:
    """State events, resets that mix states, events set off, a switch that a reset passes: differences of two runs, to 1e-6."""
    run = odesim.integrate(FIRING, sensitivities=["a", "b", "w", "x"], **EXACT)
    assert len(run.events["fires"]) > 3 and len(run.events["round"]) > 0

    def ends(**changed: Any) -> list[Any]:
        other = odesim.integrate(FIRING, **changed, **EXACT)
        return [*other.final["y"], other.final["x"], other.final_observables["all"]]

    def found(p: str, *at: int) -> list[Any]:
        place: Any = (-1, ..., *at)
        s = {name: rows[place] for name, rows in run.sensitivities[p].items()}
        return [*s["y"], s["x"], s["all"]]

    for p, value in (("a", 0.7), ("b", 0.3)):
        np.testing.assert_allclose(found(p), _slope(lambda z, p=p: ends(params={p: z}), value), rtol=1e-6, atol=1e-6)
    weights = np.array([1.0, 0.8, 1.3])
    slopes = _slope(lambda z: ends(params={"w": [z, *weights[1:]]}), 1.0)
    np.testing.assert_allclose(found("w", 0), slopes, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found("x"), _slope(lambda z: ends(initial={"x": z}), 0.1), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("p", ["u", "w"])
def test_a_curve_in_a_reset(p: str) -> None:
    """x halves, and jumps by a cubic through points whose slopes are arrays of their own: differences of two runs, to 1e-6."""
    u, start = IndexedBase("u", shape=(N,)), {"w": [0.0, 1.0, 3.0], "u": [1.0, 3.0, 2.0]}
    params = tuple(Param(z, lambda s, z=z: start[z.name], REALS, "") for z in (w, u))  # type: ignore[misc]
    jump = table(t, w[j], u[j], "pchip")
    events = (Event("half", x - sp.Rational(1, 2), resets={x: x + jump}),)
    model = System("curve", Source("none", "test"), {j: N}, {x: -x}, params, {x: 1}, sizes={N: 3}, span=(0.0, 3.0), events=events)
    slopes = odesim.integrate(model, sensitivities=[p], **PLAIN).sensitivities[p]["x"][-1]
    for place, value in enumerate(start[p]):

        def end(z: float, place: int = place) -> Any:
            return odesim.integrate(model, params={p: [*start[p][:place], z, *start[p][place + 1 :]]}, **EXACT).final["x"]

        assert slopes[place] == pytest.approx(_slope(end, value), rel=1e-6)


def test_what_has_no_sensitivities() -> None:
    """Where the event's function may jump with a parameter, a sentence; without one of its parameters it has them."""
    model = system({x: -a * x}, [Event("kick", Mod(t, q) - q / 2, -1, resets={x: x + b})], 0, {a: 0.5, b: 2.0, q: 1.5})
    with pytest.raises(SolveError, match="there are no sensitivities through the resets of event 'kick', whose function"):
        odesim.integrate(model, sensitivities=["q"], **PLAIN)
    run = odesim.integrate(model, sensitivities=["b"], **PLAIN)
    assert run.sensitivities["b"]["x"][-1] == pytest.approx(run.final["x"] / 2)


def test_jumps_that_states_of_size_1_do_not_show() -> None:
    """x begins at 4 with speed 1; rates h up to a place, then 0: what starts further on misses h there. 1e-6: the tolerance."""
    near, whole = 1000 * (x - q) ** 2, sp.floor(b / 10 + sp.Rational(1, 2))
    heights = (exp(-near), sp.Pow(2, -near.subs(x, x - 1)), 1 - sp.tanh(200 + a), whole, (k / 100) ** 50)
    places = (5, 6, 5.2, 5.4, 5.6)
    rates = {sp.Symbol(f"y{i}"): Piecewise((0, x > z), (h, True)) for i, (h, z) in enumerate(zip(heights, places, strict=True))}
    values = {n: 4.0, q: 5.0, a: -200.0, b: 43.0, k: 100.0}
    params = tuple(Param(p, value, REALS, "number") for p, value in values.items())
    model = System("hidden", equations={x: 1, **rates}, params=params, initial={x: n, **dict.fromkeys(rates, 0)}, span=(0.0, 3.0))
    run = odesim.integrate(model, sensitivities=["n"], rtol=1e-9)
    # of the first two the integral of dh/dx makes up for the jump, as each is 0 at the start
    np.testing.assert_allclose([run.sensitivities["n"][str(y)][-1] for y in rates], [0, 0, -1, -4, -1], atol=1e-6)


def _slope(f: Any, at: float) -> Any:
    """The central difference of f (n,) at a number."""
    return (np.array(f(at + STEP)) - np.array(f(at - STEP))) / (2 * STEP)


@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
@pytest.mark.parametrize("form", [lambda s, p: s - p, lambda s, p: s**2 - p**2])
@pytest.mark.parametrize("first", ["tick", "count"])
def test_events_of_one_time_move_together(first, form, method):
    """tick sets back the clock that count reads too: whichever comes first in the list, both move with p. x grows by 1 at p, 2 p, 3 p."""
    s, x, p = sp.symbols("s x p", real=True)
    events = (Event("tick", s - p, resets={s: 0}), Event("count", form(s, p), resets={x: x + 1}))
    system = System(
        name="test.tick", source=Source("none", "test"), axes={}, equations={s: 1, x: -x},
        params=(Param(p, 1.0, REALS, "period"),), initial={s: 0, x: 1}, span=(0.0, 3.5),
        events=events if first == "tick" else events[::-1],
    )  # fmt: skip
    run = odesim.integrate(system, sensitivities=("p",), method=method, backend="numpy")
    ages = 3.5 - np.arange(1, 4)
    assert run.final["x"] == pytest.approx(np.exp(-3.5) + np.exp(-ages).sum(), rel=1e-5)
    assert run.sensitivities["p"]["x"][-1] == pytest.approx((np.arange(1, 4) * np.exp(-ages)).sum(), rel=1e-5)
