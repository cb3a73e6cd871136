"""Pulses of a right-hand side in time that are shorter than the steps around them: none is passed over."""

from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp
from scipy.special import erf
from sympy import Expr, Float, Interval, Sum, Symbol, cos, cosh, exp, oo, pi, sin, sqrt, tanh

import odesim
from odesim.run.conditions import Conditions
from odesim.run.modes import held_of
from odesim.symbolic import IndexedBase, Param, Source, System, index, over, sizes
from odesim.symbolic import time as t

(i,), (N,) = index("i"), sizes("N")
REALS = Interval(-oo, oo)
x, c, w = (Symbol(name, real=True) for name in "xcw")
T = IndexedBase("T", shape=(N,))
SPAN = (0.0, 100.0)
AT, WIDTH = Param(c, 50.0, REALS, "time of the pulse"), Param(w, 1.0, Interval.open(0, oo), "its width")


def forced(rate: Expr, *params: Param, **more: Any) -> System:
    return System(name="own", source=Source("own", "test"), axes={}, equations={x: rate}, params=params, initial={x: 0}, span=SPAN, **more)


u = (t - c) / w
SHAPES: dict[str, tuple[Any, Any]] = {
    "bell": (exp(-(u**2)), lambda s: np.sqrt(np.pi) / 2 * erf(s)),
    "sech": (1 / cosh(u) ** 2, np.tanh),
    "two walls": ((tanh(u + 1) - tanh(u - 1)) / 2, lambda s: (np.logaddexp(s + 1, -s - 1) - np.logaddexp(s - 1, 1 - s)) / 2),
    "slope of a logistic": (exp(-u) / (1 + exp(-u)) ** 2, lambda s: (1 + np.tanh(s / 2)) / 2),
    "power": (1 / (1 + u**2) ** 2, lambda s: (s / (1 + s**2) + np.arctan(s)) / 2),
}
"""{pulse: (its function, the integral of it over (t - c)/w)}."""
WIDTHS, PLACES = (2.0, 0.5, 0.01, 1e-4), (1.3, 37.0, 50.0, 92.71)
OVERFLOW = ("sech", "slope of a logistic")
"""Those whose parts, or the parts of their slopes, are infinite far from a narrow pulse."""


@pytest.mark.parametrize("method", ["tsit5", "vern7", "rodas5p"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_pulse_is_seen_wherever_it_is(shape: str, method: str) -> None:
    """At rest before it, and on a slope: the integral, to the tolerance of a few steps."""
    pulse, integral = SHAPES[shape]
    widths = 2 * WIDTHS[:2] if shape in OVERFLOW else WIDTHS
    for k, drift in enumerate((0, Float("0.01"))):
        model = forced(pulse / w + drift, AT, WIDTH)
        for width, place in zip(widths[k::2], PLACES[k::2], strict=True):
            made = odesim.integrate(model, params={"c": place, "w": width}, method=method, backend="numpy")
            first, last = (integral((end - place) / width) for end in SPAN)
            assert made.status == "ok"
            assert made.final["x"] == pytest.approx(last - first + 100 * float(drift), rel=1e-4)


CELL = 100 / 64
WALLS = [(10.3, 12.4), (10.3, 14.4), (40.3, 48.4), (40.3, 50.4), (10.5, 12.5), (10.5, 20.5), (10.0, 20.0)]
"""In cells of the span: walls between samples, in the middle of a cell and at its edge."""


@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
def test_a_flat_top_between_walls_is_seen(method: str) -> None:
    """Of some cells' width, with walls of a hundredth of a cell; and a bell on a slope."""
    for rise, fall in CELL * np.array(WALLS):
        top = (tanh((t - rise) / (CELL / 100)) - tanh((t - fall) / (CELL / 100))) / 2
        assert odesim.integrate(forced(top), method=method, backend="numpy").final["x"] == pytest.approx(fall - rise, rel=1e-4)
    bell = odesim.integrate(forced(exp(-((t - 77.64) ** 2) * 16) + t / 20), method=method, backend="numpy")
    assert bell.final["x"] == pytest.approx(250 + np.sqrt(np.pi) / 4, abs=250e-5)  # 10 rtol


def test_members_see_their_own_pulses() -> None:
    """In lanes, each as alone: the integral of a bell, with a fall."""
    widths, places = np.meshgrid(WIDTHS, PLACES)
    params = {"c": places.ravel(), "w": widths.ravel()}
    found = odesim.ensemble(forced(exp(-(u**2)) / w, AT, WIDTH), params=params, method="tsit5")
    assert (found.status == 0).all()
    first, last = (np.sqrt(np.pi) / 2 * erf((end - params["c"]) / params["w"]) for end in SPAN)
    np.testing.assert_allclose(found.x.values.ravel(), last - first, rtol=1e-4)


TRAINS: dict[str, Expr] = {
    "every ten": exp(-400 * sin(pi * t / 10) ** 2),
    "high power": cos(pi * t / 20) ** 600,
    "burst": exp(-((t - 50) ** 2)) * sin(20 * t) ** 2,
    "beside a wave": sin(t / 30) + 10 * exp(-9 * (t - 61) ** 2),
    "of two widths": exp(-9 * (t - 20) ** 2) + exp(-((t - 70) ** 2) * 400),
}


@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
@pytest.mark.parametrize("name", TRAINS)
def test_trains_of_pulses(name: str, method: str) -> None:
    """With what leaks away, against scipy with short steps."""
    rate = sp.lambdify((t, x), TRAINS[name] - x / 20)
    right = solve_ivp(lambda t, y: [rate(t, y[0])], SPAN, [0.0], max_step=0.02, rtol=1e-8).y[0, -1]
    made = odesim.integrate(forced(TRAINS[name] - x / 20), method=method, backend="numpy")
    assert made.status == "ok" and made.final["x"] == pytest.approx(right, rel=1e-4)


def test_pulses_in_sums_and_axes() -> None:
    """Spikes at times T[i]: one state for each, and one that sums them."""
    y = IndexedBase("y", shape=(N,))
    spike = exp(-(((t - T[i]) * 50) ** 2))
    model = System(
        name="own", source=Source("own", "test"), axes={i: N}, equations={y[i]: spike, x: over(Sum, spike, (i, N))},
        params=(Param(T, 1.0, REALS, "times"),), initial={y[i]: 0, x: 0}, span=SPAN,
    )  # fmt: skip
    times = [3.0, 44.4, 44.9, 71.0]
    made = odesim.integrate(model, params={"T": times}, method="tsit5", backend="numpy")
    np.testing.assert_allclose(made.final["y"], np.sqrt(np.pi) / 50, rtol=1e-4)
    assert made.final["x"] == pytest.approx(4 * np.sqrt(np.pi) / 50, rel=1e-4)


WIDE: list[Expr] = [
    sin(t), exp(-t) * sin(3 * t), t * exp(-t / 2), tanh(t - 50), 1 / (1 + t), 1 / (1 + exp(50 - t)), exp(sin(t)), exp(cos(7 * t)),
    exp(-((t - 50) ** 2) / 1000), 1 / (2 + sin(t / 5)), sqrt(1 + t**2), t**3 - t, exp(-(t**2) / 100), sin(t) ** 2 * cos(3 * t),
]  # fmt: skip


@pytest.mark.parametrize("rate", WIDE, ids=str)
def test_what_is_no_pulse_stops_no_run(rate: Expr) -> None:
    """Waves, what falls or rises once, and what is wide: their runs are as they were."""
    made = Conditions(held_of(forced(rate)), {}, {}, *SPAN)
    assert not len(made.stops({}, 1)[0][0])


def test_fixed_steps_are_kept() -> None:
    """A fixed step passes over a pulse, as it is told to: half a step from the grid nothing is seen."""
    made = odesim.integrate(forced(exp(-(((t - 50.5) * 50) ** 2))), method="rk4", step=4.0, backend="numpy")
    assert made.stats["steps"] == 25 and made.final["x"] == pytest.approx(0, abs=1e-99)
