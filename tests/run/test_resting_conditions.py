"""Conditions and events whose functions come to 0 and stay there, such as Max(x, 0) > 0: they change where the function comes to 0."""

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sympy import Abs, Heaviside, Max, Min, Piecewise, Sum, cos, floor, sign, sin, symbols

import odesim
from odesim.symbolic import Event, IndexedBase, MaxOver, Param, Source, System, index, over, sizes
from odesim.symbolic import time as t
from tests.run.test_switches import REALS

x, z, c = symbols("x z c", real=True)
END = 10.0
METHODS = ("tsit5", "vern7", "rodas5p")


def holds(condition: Any) -> Any:
    return Piecewise((1, condition), (0, True))


u = x - c
FORMS = (  # all are 1 where x > c, else 0; z = 2
    holds(Max(x, c) > c), holds(Max(u, 0) > 0), 1 - holds(Max(u, 0) <= 0), 1 - holds(-Max(u, 0) >= 0), holds(Abs(u) + u > 0),
    holds(Min(-u, 0) < 0), holds(u - Min(u, 0) > 0), holds(~(Max(u, 0) <= 0)), sign(Max(u, 0)), -sign(Min(-u, 0)), Heaviside(Max(u, 0), 0),
    holds(Max(u, 0) ** 2 > 0), holds(Max(u, 0) * z > 0), holds(Max(u, 0) * Abs(z - 5) > 0), holds(Heaviside(u) * z > 0),
    holds(z * sign(u) + z > 0), holds(Max(x, c) > Max(x - 1, c)), holds(Max(Max(u, 0), 0) > 0), holds(Piecewise((u, u > 0), (0, True)) > 0),
    holds(floor(u / 8 + 1) > 0), holds(floor(u / 8 + 1) * z > 0), holds((Max(u, 0) > 0) & (z > 1)), holds((z < 1) | (Max(x, c) > c)),
    2 * Heaviside(Max(u, 0)) - 1, holds(Heaviside(END / 2 - t) * Max(u, 0) > 0) + holds(Heaviside(t - END / 2) * Max(u, 0) > 0),
)  # fmt: skip


def above(c: float) -> float:
    """How long x = 2 sin(t) is above c between 0 and END, for -2 < c < 2."""
    rise = np.arcsin(c / 2)
    k = np.arange(-2, 3)
    low, high = np.clip([rise + 2 * np.pi * k, np.pi - rise + 2 * np.pi * k], 0, END)
    return float(np.sum(high - low))


def wave(forms: tuple[Any, ...], events: tuple[Any, ...] = ()) -> System:
    """x = 2 sin(t), and for each form a state with that rate."""
    rates = {symbols(f"g{k}", real=True): form for k, form in enumerate(forms)}
    return System(
        name="resting", source=Source("own", "test"), axes={}, equations={x: 2 * cos(t), z: 0, **rates},
        params=(Param(c, 1.0, REALS, "threshold"),), initial={x: 0.0, z: 2.0, **dict.fromkeys(rates, 0.0)}, span=(0.0, END), events=events,
    )  # fmt: skip


every_form = cache(lambda: wave(FORMS))


@pytest.mark.parametrize(("method", "at"), [*zip(METHODS, np.random.default_rng(1).uniform(-1.8, 1.8, 3), strict=True)])
def test_conditions_that_rest(method: str, at: float) -> None:
    """Every form of one condition gives the closed form, for random thresholds."""
    run = odesim.integrate(every_form(), params={"c": at}, method=method, backend="numpy", rtol=1e-9, atol=1e-12)
    assert run.status == "ok"
    for k, form in enumerate(FORMS):
        assert float(run.final[f"g{k}"]) == pytest.approx(above(at), abs=1e-7), form  # 100 rtol: crossings of x


def test_members_and_slopes_of_conditions_that_rest() -> None:
    """As single runs; the slope in the threshold is that of the closed form."""
    every = np.random.default_rng(2).uniform(-1.8, 1.8, 5)
    forms = FORMS[1], FORMS[4], FORMS[12], FORMS[20], FORMS[24]
    made = odesim.ensemble(wave(forms), params={"c": every}, method="tsit5", rtol=1e-9, atol=1e-12)
    truth = [above(at) for at in every]
    for k in range(len(forms)):
        assert made[f"g{k}"].values[:, -1] == pytest.approx(truth, abs=1e-7), forms[k]
    run = odesim.integrate(wave(forms), params={"c": every[0]}, sensitivities=("c",), backend="numpy", rtol=1e-9, atol=1e-12)
    slope = (above(every[0] + 1e-6) - above(every[0] - 1e-6)) / 2e-6
    for k in range(len(forms)):
        assert float(run.final[f"dg{k}_dc"]) == pytest.approx(slope, abs=1e-6), forms[k]


def test_sums_that_rest() -> None:
    """A sum of rectified terms is above 0 as long as one of them is."""
    (i,), (N,) = index("i"), sizes("N")
    v, w, count = IndexedBase("v", shape=(N,)), IndexedBase("w", shape=(N,)), symbols("count", real=True)
    total, largest = over(Sum, Max(v[i] - w[i], 0) * (1 + i), (i, N)), over(MaxOver, Max(v[i] - w[i], 0) ** 2, (i, N))
    made = System(
        name="sum", source=Source("own", "test"), axes={i: N},
        equations={v[i]: sin(t + i), count: holds(total > 0) + sign(total) + Heaviside(largest, 0)},
        params=(Param(w, 1.0, REALS, "thresholds"),), initial={v[i]: -cos(i), count: 0.0}, span=(0.0, END), sizes={N: 3},
    )  # fmt: skip
    for seed in range(4):
        bounds = np.random.default_rng(seed).uniform(-0.9, 0.9, 3)
        run = odesim.integrate(made, params={"w": bounds}, backend="numpy", rtol=1e-9, atol=1e-12)
        starts = [[np.arccos(-b) - k + 2 * np.pi * n for n in range(-1, 3)] for k, b in enumerate(bounds)]  # -cos(t + k) > b from here
        parts = [
            (np.clip(s, 0, END), np.clip(s + 2 * np.pi - 2 * np.arccos(-b), 0, END))
            for row, b in zip(starts, bounds, strict=True)
            for s in row
        ]
        ends = sorted({0.0, END, *(float(end) for part in parts for end in part)})
        truth = sum(b - a for a, b in pairwise(ends) if any(low < (a + b) / 2 < high for low, high in parts))
        assert float(run.final["count"]) == pytest.approx(3 * truth, abs=1e-7), bounds


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("terminal", [False, True])
def test_events_that_rest(method: str, terminal: bool) -> None:
    """A function that comes to 0 and stays there is an event when it comes."""
    forms = {"max": Max(u, 0), "square": Max(u, 0) ** 2, "least": Min(-u, 0), "product": Heaviside(u + 1) * Max(u, 0)}
    model = wave((), tuple(Event(name, form, 0, terminal) for name, form in forms.items()))
    for at in np.random.default_rng(3).uniform(0.1, 1.8, 6):
        falls = np.pi - np.arcsin(at / 2) + 2 * np.pi * np.arange(1 if terminal else 2)
        run = odesim.integrate(model, params={"c": at}, method=method, backend="numpy", rtol=1e-9, atol=1e-12)
        for found in run.events.values():
            assert [e["t"] for e in found] == pytest.approx(falls, abs=1e-7)


@pytest.mark.parametrize("way", [0, -1])
@pytest.mark.parametrize("form", ["Max(s - p, 0)", "Max(s, p) - p", "Min(p - s, 0)"])
def test_an_event_whose_function_comes_to_rest_acts_once(form, way):
    """s falls through p: wherever rounding puts the zero, before p or after it, the state is set once, and x grows by 1 there."""
    s, n, x, p = symbols("s n x p", real=True)
    f = {"Max(s - p, 0)": Max(s - p, 0), "Max(s, p) - p": Max(s, p) - p, "Min(p - s, 0)": Min(p - s, 0)}[form]
    event = Event("e", f, direction=-way if form.startswith("Min") else way, resets={x: x + 1, n: n + 1})
    system = System(
        name="test.rest", source=Source("none", "test"), axes={}, equations={s: -1, x: -x, n: 0},
        params=(Param(p, 0.777, REALS, "level"),), initial={s: 2, x: 1, n: 0}, span=(0.0, 2.5), events=(event,),
    )  # fmt: skip
    for level in 0.1 * np.arange(1, 19) + 0.03:
        run = odesim.integrate(system, params={"p": level}, backend="numpy")
        assert run.status == "ok" and run.final["n"] == 1
        assert run.final["x"] == pytest.approx(np.exp(-2.5) + np.exp(-0.5 - level), rel=1e-5)


STARTS = {  # a rate of x that is 0 at x = 0 as written, and x at t = 2 from there
    "for ever": (holds(x > 0), 0.0),
    "the other way round": (1 - holds(x <= 0), 0.0),
    "at one point alone": (1 - holds(x <= 0) * holds(x >= 0), 0.0),
    "Heaviside": (Heaviside(x, 0), 0.0),
    "until a time": (holds(x > 0) + holds(t >= 1), 2.0),
    "until a ramp": (holds(x > 0) + Max(t - 1, 0), 1.5),
    "and falls": (holds(x > 0) - t, -2.0),
    "and is pushed at once": (Piecewise((1, x > 0), (sin(t), True)), 2.0),
}


@pytest.mark.parametrize("name", STARTS)
def test_a_start_at_rest_as_written_is_at_rest(name: str) -> None:
    """Where the rate at a boundary is 0 as it is written, a run that starts there stays until something else moves it."""
    rate, truth = STARTS[name]
    system = System(name="starts", source=Source("own", "test"), axes={}, equations={x: rate}, initial={x: 0.0}, span=(0.0, 2.0))
    for method in METHODS:
        run = odesim.integrate(system, method=method, backend="numpy", rtol=1e-9, atol=1e-12)
        assert run.status == "ok"
        assert float(run.final["x"]) == pytest.approx(truth, abs=1e-7), method  # 100 rtol: a kink that no step ends at
