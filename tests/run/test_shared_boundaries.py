"""Several conditions and events on one boundary, each written in its own way: rounding puts their zeros beside each other."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy import Heaviside, Piecewise, sign, symbols

import odesim
from odesim.symbolic import Event, Param, Source, System, index, sizes
from odesim.symbolic import IndexedBase as Array
from tests.run.test_switches import REALS

s, a, b, x, h, g, n, c = symbols("s a b x h g n c", real=True)
METHODS = ("tsit5", "vern7", "rodas5p")
END = 3.0
FORMS = {"square": s**2 - c**2, "exponential": sp.exp(s) - sp.exp(c), "third": s / 3 - c / 3}
RATES = {x: Piecewise((1, s > c), (0, True)), h: Heaviside(s**3 - c**3), g: sign(s - c)}


@cache
def on_boundary(kind: str, forms: tuple[str, ...]) -> System:
    """s' = 1, states that change their rates at s = c, and an event of each form on that boundary."""
    resets = {n: n + 1} if kind == "reset" else {}
    events = tuple(Event(form, FORMS[form], 1, kind == "terminal", resets=resets) for form in forms)
    return System(
        name="shared", source=Source("own", "test"), axes={}, equations={s: 1, **RATES, n: 0}, params=(Param(c, 1.0, REALS, "boundary"),),
        initial=dict.fromkeys((s, x, h, g, n), 0.0), span=(0.0, END), events=events,
    )  # fmt: skip


def thresholds(seed: int, count: int) -> Any:
    return np.random.default_rng(seed).uniform(0.3, 2.8, count)


@pytest.mark.parametrize("method", METHODS)
def test_events_on_the_boundary_of_conditions(method: str) -> None:
    """Each plain event happens once, at s = c, and every rate has changed there."""
    for at in thresholds(1, 25):
        run = odesim.integrate(on_boundary("plain", tuple(FORMS)), params={"c": at}, method=method, backend="numpy")
        assert run.status == "ok"
        for form in FORMS:
            assert [e["t"] for e in run.events[form]] == pytest.approx([at], abs=1e-12), (form, at)
        rest = END - at
        assert [float(run.final[name]) for name in "xhg"] == pytest.approx([rest, rest, rest - at], abs=1e-9), at


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", METHODS)
def test_terminal_events_on_the_boundary_of_conditions(method: str, form: str) -> None:
    """A run ends at s = c."""
    for at in thresholds(2, 15):
        run = odesim.integrate(on_boundary("terminal", (form,)), params={"c": at}, method=method, backend="numpy")
        assert (run.status, float(run.t[-1])) == ("event", pytest.approx(at, abs=1e-12))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", METHODS)
def test_resets_on_the_boundary_of_conditions(method: str, form: str) -> None:
    """An event that sets a state acts once."""
    for at in thresholds(3, 15):
        run = odesim.integrate(on_boundary("reset", (form,)), params={"c": at}, method=method, backend="numpy")
        assert (run.status, float(run.final["n"]), float(run.final["x"])) == ("ok", 1.0, pytest.approx(END - at, abs=1e-9)), at


@pytest.mark.slow  # a kernel of its own; test_resting_conditions.py has members whose conditions change
def test_members_and_typed_events_on_the_boundary_of_conditions() -> None:
    """As single runs: each member's events happen once."""
    every = thresholds(4, 40)
    typed = ("typed: s**2 - c**2; direction up", "down: exp(c) - exp(s); direction down")
    made = odesim.ensemble(on_boundary("plain", ("third",)), params={"c": every}, method="tsit5", events=typed)
    assert (made.status == 0).all()
    for name in ("typed", "down", "third"):
        assert (made[f"{name}_count"] == 1).all(), name
        assert made[f"{name}_t"].values[:, 0] == pytest.approx(every, abs=1e-12)


@pytest.mark.first(3)
@pytest.mark.parametrize(("method", "strict"), [("tsit5", False), ("rodas4", False), ("rodas5p", False), ("rodas5p", True)])
def test_a_boundary_that_an_invariant_states_twice(method: str, strict: bool) -> None:
    """a + b = 1, which stiff steps keep exactly: a falls through c where b rises through 1 - c."""
    made = System(
        name="pair", source=Source("own", "test"), axes={}, equations={a: -a, b: a, x: Piecewise((1, a < c), (0, True))},
        params=(Param(c, 0.5, REALS, "boundary"),), initial={a: 1.0, b: 0.0, x: 0.0}, span=(0.0, END),
        events=(Event("sum", b - 1 + c, 1), Event("squares", b**2 - (1 - c) ** 2, 1), Event("itself", a**2 - c**2, -1)),
    )  # fmt: skip
    for at in np.random.default_rng(5).uniform(0.1, 0.9, 20):
        run = odesim.integrate(made, params={"c": at}, method=method, strict=strict, rtol=1e-8)
        for found in run.events.values():
            assert [e["t"] for e in found] == pytest.approx([-np.log(at)], abs=1e-6), at  # 100 rtol
        assert float(run.final["x"]) == pytest.approx(END + np.log(at), abs=1e-6)


@pytest.mark.parametrize("size", [20, 70])  # more than 64 components are searched on polynomials
@pytest.mark.parametrize("step", [None, 0.11])
def test_components_on_their_boundaries(size: int, step: float | None) -> None:
    """In arrays each component's event happens once, however its step ends; some share their boundary."""
    ((i,), (N,)), (v, y, w) = (index("i"), sizes("N")), (Array(name, shape=(sizes("N")[0],)) for name in "vyw")
    made = System(
        name="many", source=Source("own", "test"), axes={i: N}, equations={v[i]: 1, y[i]: Piecewise((1, v[i] > w[i]), (0, True))},
        params=(Param(w, 1.0, REALS, "boundaries"),), initial={v[i]: 0.0, y[i]: 0.0}, span=(0.0, END), sizes={N: 3},
        events=(Event("square", v[i] ** 2 - w[i] ** 2, 1),),
    )  # fmt: skip
    every = thresholds(6, size)
    every[: size // 4] = every[0]
    run = odesim.integrate(made, params={"w": every}, sizes={"N": size}, method="tsit5", step=step)
    assert sorted(e["index"][0] for e in run.events["square"]) == list(range(size))
    assert run.final["y"] == pytest.approx(END - every, abs=1e-9)
