"""Events whose functions have a pole, come to 0 to stay, or are small differences of large states: each happens once, with its slopes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Abs, Max, Min, Piecewise, Rational, cos, symbols, tan

import odesim
from odesim.symbolic import Event, Param, Source, System
from odesim.symbolic import time as t
from tests.run.test_switches import REALS

x, y, n, c = symbols("x y n c", real=True)
u = x - c
END = 10.0
METHODS = ("tsit5", "vern7", "rodas5p")


def counted(g: Any, rate: Any, end: float, reset: Any = n + 1) -> System:
    """x' = rate from 0, and n, which the event g sets to `reset`; without a reset where that is None."""
    event = Event("here", g, resets={} if reset is None else {n: reset})
    return System(
        name="counted", source=Source("own", "test"), axes={}, equations={x: rate, n: 0}, params=(Param(c, 1.0, REALS, "place"),),
        initial={x: 0.0, n: 0.0}, span=(0.0, end), events=(event,),
    )  # fmt: skip


def falls(c: float) -> list[float]:
    """When 2 sin(t) comes down to c, between 0 and END."""
    return [at for k in range(3) if 0 < (at := np.pi - np.arcsin(c / 2) + 2 * np.pi * k) < END]


def times(run: Any) -> list[float]:
    return [float(event["t"]) for event in run.events["here"]]


POLES = {  # of x = t; the times of their zeros and poles
    "reciprocal": (1 / u, lambda c: [c]),
    "cube": (-3 / u**3, lambda c: [c]),
    "zero and pole": ((u - 2) / u, lambda c: [c, c + 2]),
    "sum": (1 / u - Rational(1, 2), lambda c: [c, c + 2]),
    "tangent": (tan(u), lambda c: [at for k in range(-2, 9) if 0 < (at := c + k * np.pi / 2) < END]),
    "square": (1 / u**2 - 1, lambda c: [c - 1, c + 1]),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", POLES)
def test_events_at_poles(form: str, method: str) -> None:
    """At each pole and zero of x = t the event happens once, with resets and without. 1e-9: the rounding of x."""
    g, truth = POLES[form]
    for reset in (None, n + 1):
        for at in np.random.default_rng(1).uniform(1.1, 4.0, 4):
            run = odesim.integrate(counted(g, 1, END, reset), params={"c": at}, method=method, backend="numpy", max_step=1.0)
            assert times(run) == pytest.approx(truth(at), abs=1e-9), at
            assert run.final["n"] == (0 if reset is None else len(truth(at)))


@pytest.mark.parametrize("method", METHODS)
def test_slopes_at_poles(method: str) -> None:
    """n = x**2 at the pole c of 1/(x - c), where x = t: dn/dc = 2 c. 1e-9: rounding."""
    for at in (0.3, 0.5, 0.7123):
        run = odesim.integrate(counted(1 / u, 1, 1.0, x**2), params={"c": at}, sensitivities=("c",), method=method, backend="numpy")
        assert (float(run.final["n"]), float(run.final["dn_dc"])) == pytest.approx((at**2, 2 * at), abs=1e-9)


RESTING = (
    Abs(u) + u, 3 * (Abs(u) + u), Max(u, 0), x - Min(x, c), Max(x, c) - c, Max(2 * x, x + c) - x - c, Max(u, 0) ** 2,
    Piecewise((u, u > 0), (0, True)),
)  # fmt: skip


@pytest.mark.first(4)
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("g", RESTING, ids=str)
def test_events_that_come_to_rest(g: Any, backend: str) -> None:
    """A function that comes down to 0 and stays there happens where it comes down, once, whatever rounding leaves of 0."""
    for reset, at in zip((None, n + 1), np.random.default_rng(1).uniform(-1.8, 1.8, 2), strict=True):
        system = counted(g, 2 * cos(t), END, reset)
        for method in METHODS if backend == "numpy" else METHODS[::2]:
            run = odesim.integrate(system, params={"c": at}, method=method, backend=backend, rtol=1e-9, atol=1e-12)
            assert times(run) == pytest.approx(falls(at), abs=1e-7), (at, method)  # 100 rtol
            assert run.final["n"] == (0 if reset is None else len(falls(at)))


@pytest.mark.parametrize("g", RESTING, ids=str)
def test_slopes_of_events_that_come_to_rest(g: Any) -> None:
    """n is the time at which x = 2 sin(t) comes down to c: its slope is that of pi - asin(c/2). On its side of rest g has no slope."""
    for at in (0.3, 0.77, 1.2):
        run = odesim.integrate(
            counted(g, 2 * cos(t), 5.0, t), params={"c": at}, sensitivities=("c",), backend="numpy", rtol=1e-9, atol=1e-12
        )
        assert float(run.final["dn_dc"]) == pytest.approx(-1 / np.sqrt(4 - at**2), abs=1e-7)  # 100 rtol


@pytest.mark.parametrize("method", (*METHODS, "rodas4"))
@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-8])
def test_small_differences_of_large_states(size: float, method: str) -> None:
    """x + y - 1, with x a part of y, passes half of that part once, beside an event of x at that time but for rounding."""
    m = symbols("m", real=True)
    half = Rational(size).limit_denominator(10**9) / 2
    events = Event("sum", x + y - 1 - half, resets={n: n + 1}), Event("alone", x - half, resets={m: m + 1})
    system = System(
        name="small", source=Source("own", "test"), axes={}, equations={x: -x, y: 0, n: 0, m: 0}, params=(),
        initial={x: size, y: 1.0, n: 0.0, m: 0.0}, span=(0.0, 2.0), events=events,
    )  # fmt: skip
    run = odesim.integrate(system, method=method, backend="numpy", atol=1e-8 * size)
    assert (run.final["n"], run.final["m"]) == (1, 1)
    assert [float(run.events[name][0]["t"]) for name in ("sum", "alone")] == pytest.approx(2 * [np.log(2)], abs=1e-5)


def test_bounces_in_float32_late() -> None:
    """Bounces pile up also where a time in float32 is coarser than the last of them: the run ends there. 1e-3: some spacings of 1004."""
    system = System(
        name="ball", source=Source("own", "test"), axes={}, equations={x: y, y: -1}, params=(), initial={x: 1.0, y: 0.0},
        span=(1000.0, 1005.0), events=(Event("here", x, -1, resets={y: -y / 2}),),
    )  # fmt: skip
    for step in (None, 0.01):
        run = odesim.integrate(system, method="tsit5", step=step, dtype="float32", backend="numpy")
        assert (run.status, float(run.t[-1])) == ("sliding", pytest.approx(1000 + 3 * np.sqrt(2), abs=1e-3))


@pytest.mark.parametrize("method", METHODS)
def test_a_function_that_stays_0(method: str) -> None:
    """2 t - x - c with x' = 2, which a reset makes 0: that sets the event off once, and its rounding never does; the run may end there."""
    ended = 0
    for at in np.random.default_rng(2).uniform(0.3, 3.0, 8):
        meets, here = Event("meets", t - c, resets={x: c}), Event("here", 2 * t - x - c, resets={n: n + 1})
        run = odesim.integrate(
            replace(counted(here.expr, 2, END), events=(meets, here)), initial={"x": 1.0}, params={"c": at}, method=method, backend="numpy"
        )
        ended += run.status == "sliding" and "event here stays 0" in run.message and "so that rounding decides" in run.message
        assert run.final["n"] == 1 and run.status in ("ok", "sliding"), at
    assert ended
