"""Events on the time alone, without resets: every zero is found, however long the steps are."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.optimize import brentq
from sympy import Abs, Float, Interval, Max, Mod, Sum, Symbol, cos, exp, floor, log, oo, pi, sin, sqrt, tan, tanh

import odesim
from odesim.base.errors import SolveError, SpecError
from odesim.symbolic import Event, IndexedBase, Param, Source, System, index, over, sizes
from odesim.symbolic import time as t

(i, j), (N, M) = index("i j"), sizes("N M")
REALS = Interval(-oo, oo)
x = Symbol("x", real=True)
T = IndexedBase("T", shape=(N,))
END = 10.0


def multiples(step: float, first: float = 0.0) -> list[float]:
    """first + k step within the span, its start left out."""
    every = first + np.arange(np.ceil(-first / step), END / step + 1) * step
    return every[(every > 1e-9) & (every <= END + 1e-9)].tolist()


def zeros(g: Callable[[Any], Any], *poles: float) -> list[float]:
    """The zeros of g from a fine grid, and its poles."""
    grid = np.linspace(1e-7, END + 1e-7, 200001)
    return sorted(
        [*poles, *(brentq(g, grid[k], grid[k + 1], xtol=1e-15) for k in np.flatnonzero(np.diff(np.sign(g(grid)))) if abs(g(grid[k])) < 9)]
    )


TABLE: dict[str, tuple[Any, int, list[float]]] = {
    "sine": (sin(2 * pi * t / sp.Rational(7, 10)), 0, multiples(0.35)),
    "sine up": (sin(2 * pi * t / sp.Rational(7, 10)), 1, multiples(0.7)),
    "remainder": (Mod(t, 0.7) - 0.35, 0, multiples(0.35)),
    "remainder down": (Mod(t, 0.7) - 0.35, -1, multiples(0.7)),
    "fast": (cos(20 * pi * t), 0, multiples(0.05, 0.025)),
    "offset": (cos(t * 5) - sp.Rational(1, 2), 1, multiples(2 * np.pi / 5, -np.pi / 15)),
    "touches": (sin(3 * t) - 1, 0, []),
    "narrow": (Abs(t - 5) - sp.Rational(1, 10**6), 0, [5 - 1e-6, 5 + 1e-6]),
    "bell": (exp(-(((t - 5) * 10**4) ** 2)) - sp.Rational(1, 2), 0, [5 - 1e-4 * np.sqrt(np.log(2)), 5 + 1e-4 * np.sqrt(np.log(2))]),
    "pairs": ((t - 2) * (t - 2.001) * (t - 2.004) * (t - 2.005), 0, [2, 2.001, 2.004, 2.005]),
    "largest": (Max(sin(pi * t), sp.Rational(-1, 2)) * (t - 20), -1, multiples(2.0)),
    "beats": (sin(40 * t) + t / 20 - Float("0.3"), 0, zeros(lambda t: np.sin(40 * t) + t / 20 - 0.3)),
    "chirp": (sin(exp(t / 2)), 0, [2 * np.log(k * np.pi) for k in range(1, 48)]),
    "chirp up": (sin(exp(t / 2)), 1, [2 * np.log(k * np.pi) for k in range(2, 48, 2)]),
    "poles": (tan(t) - Float("0.5"), 0, zeros(lambda t: np.tan(t) - 0.5, np.pi / 2, 3 * np.pi / 2, 5 * np.pi / 2)),
    "tangent": ((t - 5) ** 4 * (t - 7) ** 3, 0, [7.0]),
    "root": (sqrt(t) - 2 * tanh(t - 1), 0, zeros(lambda t: np.sqrt(t) - 2 * np.tanh(t - 1))),
    "later defined": (log(t - 2) * cos(9 * t), 0, zeros(lambda t: np.where(t > 2, np.log(np.maximum(t - 2, 1e-9)) * np.cos(9 * t), -1.0))),
    "root begins at 0": (sqrt(t) + t - sp.Rational(1, 2), 0, [(2 - np.sqrt(3)) / 2]),
    "power": (t ** sp.Rational(1, 3) - 1, 1, [1.0]),
    "exponential": (2**t + t - 11, 1, [3.0]),
    "decays": (exp(-t) * sin(pi * t), 1, multiples(2.0)),
    "never": (exp(-t) - t**2 * exp(t) - 2, 0, []),
    "complex": (t - (t - sp.Rational(5, 2)) ** 2 - 3, 0, []),
    "double": ((t - 3) ** 2, 0, []),
    "nearly double": ((t - 3) * (t - 3 - Float("1e-10")), 0, [3.0, 3 + 1e-10]),
    "half of a sign": (sp.sign(2 * t - 5) - 1, 1, [2.5]),
    "root ends": (sqrt(1 - t) - sp.Rational(1, 2), 0, [0.75]),
    "logarithm ends": (log(5 - t), -1, [4.0]),
    "root begins": (sqrt(100 * t - 900) - 1, 0, [9.01]),
    "jumps": (sin(floor(2 * t) * t) - Float("0.2"), 0, zeros(lambda t: np.sin(np.floor(2 * t) * t) - 0.2)),
    "whole part": (floor(3 * t) - sp.Rational(7, 2), 1, [4 / 3]),
}
RUNS: dict[str, dict[str, Any]] = {
    "numpy": {"backend": "numpy"},
    "long steps": {"backend": "numpy", "method": "rk4", "step": 2.5},
    "stiff": {"backend": "numpy", "method": "rodas5p"},
    "numba": {"backend": "numba"},
}


def times_of(run: Any, name: str) -> list[float]:
    """The times of an event in a run."""
    return [e["t"] for e in run.events[name]]


def model(events: Any, **more: Any) -> System:
    """x' = 1, which every method integrates in few long steps."""
    options: dict[str, Any] = {"axes": {}, "params": (), "span": (0.0, END), "equations": {x: 1}, "initial": {x: 0}, **more}
    return System(name="own", source=Source("own", "test"), events=tuple(events), **options)


@pytest.mark.parametrize("run", RUNS)
def test_all_zeros_are_found(run: str) -> None:
    """1e-11: the roundings of the times as formulas give them."""
    chosen = dict([*TABLE.items()][:: 1 if run == "numpy" else 4])  # they are found before the run begins, in the same way for all
    found = odesim.integrate(model([Event(name, e, way) for name, (e, way, _) in chosen.items()]), **RUNS[run])
    for name, (_, _, times) in chosen.items():
        assert len(found.events[name]) == len(times), name
        np.testing.assert_allclose(times_of(found, name), np.array(times), rtol=1e-11, atol=1e-11, err_msg=name)
    assert found.status == "ok" and found.final["x"] == pytest.approx(END, rel=1e-12)


@pytest.mark.first(2)
@pytest.mark.parametrize("e", [t - 1, exp(t) + t - sp.E - 1, Mod(t, 2) - 1, sin(pi * t), sin(pi * exp(t)) * (t - 1)])
def test_the_end_of_the_span(e: Any) -> None:
    """A zero at the end counts, the next one after it does not, however near; nor one at the start."""
    counted = Event("hit", e, resets={x: x + 100})
    for end, many in ((1.0, 1), (1 - 1e-4, 0), (1 - 1e-9, 0), (1 + 1e-9, 1)):
        run = odesim.integrate(model([counted], span=(0.99, end)), backend="numpy")
        assert len(run.events["hit"]) == many, end
    assert len(odesim.integrate(model([counted], span=(1.0, 1.001)), backend="numpy").events["hit"]) == 0


def test_terminal_ones_end_the_run() -> None:
    """At the first zero on the way down, also beside events on states; `x` reaches 1 before."""
    events = [Event("one", x - 1), Event("stop", sin(pi * t / 2), -1, terminal=True), Event("half", Mod(t, 1) - 0.5, 1)]
    found = odesim.integrate(model(events), backend="numpy")
    assert (found.status, found.t_end) == ("event", 2.0) and "stop" in found.message
    assert times_of(found, "one") == pytest.approx([1.0]) and times_of(found, "half") == [0.5, 1.5]


def test_components_and_members() -> None:
    """Each component has its own period, and each member its own ones: as single runs find them."""
    every = model([Event("beat", sin(pi * t / T[i]), 0)], axes={i: N}, params=(Param(T, 1.0, REALS, "half period"),), sizes={N: 2})
    periods = np.array([[0.3, 0.75], [0.41, 9.0], [20.0, 3.0]])
    run = odesim.ensemble(every, params={"T": periods}, save=3)
    for k, row in enumerate(periods):
        one = odesim.integrate(every, params={"T": row}, save=3)
        due = sorted((time, j) for j, q in enumerate(row) for time in multiples(q))
        assert [e["index"] for e in one.events["beat"]] == [(j,) for _, j in due]
        np.testing.assert_allclose(times_of(one, "beat"), [time for time, _ in due], rtol=1e-12)
        assert run.beat_count[k] == len(due)
        np.testing.assert_array_equal(run.beat_t[k, : min(8, len(due))], times_of(one, "beat")[:8])


def test_isolated_ones_of_components_and_members() -> None:
    """A sum over modes with amplitudes and frequencies of its own for each component: zeros of a fine grid; resets count them."""
    w, amplitude = IndexedBase("w", shape=(N, M)), IndexedBase("amplitude", shape=(M,))
    n = IndexedBase("n", shape=(N,))
    g = over(Sum, amplitude[j] * cos(w[i, j] * t + j), (j, M)) - t / 20
    every = model(
        [Event("beat", g, 0, resets={n[i]: n[i] + 1}), Event("down", g, -1)],
        axes={i: N, j: M},
        equations={n[i]: 0},
        initial={n[i]: 0},
        params=(Param(w, 1.0, REALS, "frequencies"), Param(amplitude, 1.0, REALS, "amplitudes")),
        sizes={N: 2, M: 3},
    )
    waves = np.array([[[3.0, 20.1, 7.2], [1.0, 2.3, 5.0]], [[31.0, 2.0, 0.4], [0.0, 9.0, 11.0]]])
    run = odesim.ensemble(every, params={"w": waves, "amplitude": [1.0, 0.7, 0.4]}, save=3)
    for k, rows in enumerate(waves):
        one = odesim.integrate(every, params={"w": rows, "amplitude": [1.0, 0.7, 0.4]}, save=2)
        for place, row in enumerate(rows):

            def wave(t: Any, row: Any = row) -> Any:
                return np.cos(np.multiply.outer(t, row) + np.arange(3)) @ np.array([1.0, 0.7, 0.4]) - t / 20

            due = zeros(wave)
            found = [e["t"] for e in one.events["beat"] if e["index"] == (place,)]
            np.testing.assert_allclose(found, due, rtol=1e-11)
            assert one.final["n"][place] == run.n.isel(time=-1)[k, place] == len(due)
        assert run.down_count[k] == len(one.events["down"])


@pytest.mark.first(1)
@pytest.mark.parametrize("e", [sin(1 / t), sin(t) ** 2 + cos(t + Float("1e-17")) ** 2 - 1])
def test_too_many_are_refused(e: Any) -> None:
    """Zeros that pile up, and a function that is 0 but for rounding."""
    with pytest.raises(
        SolveError, match=r"cannot be told apart near t = .*: end the span before it, or write the condition with fewer zeros"
    ):
        odesim.integrate(model([Event("many", e)]), backend="numpy")


def test_sensitivities() -> None:
    """d x/d T is as without events: their times move, the state does not jump."""
    q, y = sp.symbols("q y", real=True)
    own = System(
        name="own",
        source=Source("own", "test"),
        axes={},
        equations={y: q * y},
        params=(Param(q, 0.3, REALS, "rate"),),
        initial={y: 1},
        events=(Event("beat", sin(t / q), 0),),
        span=(0.0, 2.0),
    )
    found = odesim.integrate(own, sensitivities=["q"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(times_of(found, "beat"), [0.3 * np.pi, 0.6 * np.pi], rtol=1e-12)
    assert found.sensitivities["q"]["y"][-1] == pytest.approx(2 * np.exp(0.6), rel=1e-7)


def test_the_rescaled_clock_refuses_them() -> None:
    """Its steps are in another time, in which nothing is known of theirs; one event at one time is found by its sign."""
    growing = {"equations": {x: x**2}, "initial": {x: 1}, "growth": 2 * x, "span": (0.0, 0.9), "axes": {}, "params": ()}
    for e, refused in ((sin(9 * t), True), (t - 0.5, False)):
        own = System(name="own", source=Source("own", "test"), events=(Event("beat", e),), **growing)
        if refused:
            with pytest.raises(SpecError, match="'beat' happens at several known times"):
                odesim.integrate(own, clock="rescaled")
        else:
            assert times_of(odesim.integrate(own, clock="rescaled", rtol=1e-9), "beat") == pytest.approx([0.5], abs=1e-7)
