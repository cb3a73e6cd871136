"""Events whose functions jump at conditions on states: found where the conditions change, however narrow the part between them."""

from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy import And, Heaviside, Max, Min, Or, Piecewise, sign

import odesim
from odesim.symbolic import Event, IndexedBase, Param, Source, System, index, sizes
from odesim.symbolic import time as t

k, n, a, b, c = sp.symbols("k n a b c", real=True)
REALS = sp.Interval(-sp.oo, sp.oo)
HALF = sp.Rational(1, 2)
FORMS: dict[str, Any] = {
    "branches": Piecewise((1, (k > a) & (k < b)), (-1, True)),
    "branches reversed": Piecewise((-1, Or(k <= a, k >= b)), (3, True)),
    "three branches": Piecewise((-2, k < a), (5, k < b), (-1, True)),
    "branches in a branch": Piecewise((Piecewise((1, k < b), (-1, True)), k > a), (-3, True)),
    "steps": Heaviside(k - a, 0) * Heaviside(b - k, 0) - HALF,
    "signs": -sign(k - a) * sign(k - b),
    "time": Piecewise((k, And(t > a, t < b)), (-1, True)),
    "not": Piecewise((-1, sp.Not(And(2 * k > 2 * a, k - b < 0), evaluate=False)), (1, True)),
    "expressions": Piecewise((k - a + 1, And(k > a, k < b)), (-sp.exp(-k), True)),
    "a parameter on its bound": Piecewise((Piecewise((1, (k > a) & (k < b)), (-1, True)), c >= 1), (-1, True)),
    "smooth": Min(k - a, b - k),
    "scaled": 7 * Piecewise((1, And(k > a, k < b)), (-1, True)) + 2,
}


def model(expr: Any, direction: int = 0, **more: Any) -> System:
    """k is the time; an event counts."""
    return System(
        name="own",
        source=Source("own", "test"),
        axes={},
        equations={k: 1, n: 0},
        params=(Param(a, 4.5, REALS, ""), Param(b, 5.1, REALS, ""), Param(c, 1.0, REALS, "")),
        initial={k: 0, n: 0},
        events=(Event("in", expr, direction, **more),),
        span=(0.0, 100.0),
    )


@pytest.mark.parametrize("form", FORMS)
def test_narrow_parts(form: str) -> None:
    """It passes 0 where k = t passes a and b, with and without resets: 1e-9 is that of the search."""
    random = np.random.default_rng(len(form))
    for n_th, width in enumerate((0.6, 0.02, 1e-3)):
        first = random.uniform(1, 20)
        values, times = {"a": first, "b": first + width}, [first, first + width]
        way = (0, 1, -1)[n_th]
        right = times[:1] if way == 1 else times[1:] if way == -1 else times
        options: dict[str, Any] = {"backend": "numpy", "params": values, "span": (0, first + 2), "max_step": 1.0 if width < 0.1 else None}
        plain = odesim.integrate(model(FORMS[form], way), **options)
        assert [e["t"] for e in plain.events["in"]] == pytest.approx(right, abs=1e-9)
        counted = odesim.integrate(model(FORMS[form], way, resets={n: n + 1}), **options)
        assert [e["t"] for e in counted.events["in"]] == pytest.approx(right, abs=1e-9) and counted.final["n"] == len(right)


@pytest.mark.parametrize("form", ["branches", pytest.param("steps", marks=pytest.mark.slow)])
def test_members(form: str) -> None:
    """Lanes search the same function."""
    run = odesim.ensemble(model(FORMS[form]), params={"a": [4.5, 70.0], "b": [5.1, 70.5]})
    np.testing.assert_allclose(run.in_t.values[:, :2], [[4.5, 5.1], [70.0, 70.5]], atol=1e-9)


def test_what_is_not_defined_elsewhere() -> None:
    """A branch that is no number outside its part; a component of its own each."""
    (i,), (N,) = index("i"), sizes("N")
    y, level = IndexedBase("y", shape=(N,)), IndexedBase("level", shape=(N,))
    e = Piecewise((sp.log(y[i] - level[i]) + 10, And(y[i] > level[i], y[i] < level[i] + 1)), (-1, True))
    own = System(
        name="own",
        source=Source("own", "test"),
        axes={i: N},
        equations={y[i]: 1 + i},
        params=(Param(level, lambda sizes: [3.3, 5.25, 8.0], REALS, ""),),
        initial={y[i]: 0},
        sizes={N: 3},
        events=(Event("in", e),),
        span=(0.0, 10.0),
    )
    found = odesim.integrate(own, backend="numpy").events["in"]
    for j, c in enumerate((3.3, 5.25, 8.0)):
        times = [event["t"] for event in found if event["index"] == (j,)]
        assert times == pytest.approx([(c + np.exp(-10)) / (1 + j), (c + 1) / (1 + j)], abs=1e-8)


@pytest.mark.parametrize("options", [{"backend": "numpy"}, {"method": "rk4", "step": 0.25}], ids=str)
@pytest.mark.parametrize("condition", [t > a, t >= a, sp.Lt(a, t), b >= a], ids=str)
def test_where_a_run_stops(condition: Any, options: dict[str, Any]) -> None:
    """f = 1 - y/5 + level from t = a on, f = y/2 + start before: y is positive, and f passes 0 at a only where start and level say so."""
    B = sp.Symbol("B", nonnegative=True)
    start, level = sp.symbols("start level", real=True)
    f = Piecewise((1 - B / 5 + level, condition), (B / 2 + start, True))
    own = System(
        name="own", source=Source("own", "test"), axes={}, equations={B: Piecewise((1, condition), (0, True)) - B / 5}, span=(0.0, 12.0),
        initial={B: 1.0}, params=tuple(Param(s, v, REALS, "") for s, v in ((a, 6.0), (b, 6.0), (start, 0.0), (level, 0.0))),
        events=(Event("any", f), Event("up", f, 1), Event("down", f, -1)),
    )  # fmt: skip
    for start_value, level_value in ((0, 0), (0, -9), (-9, 0), (-9, -9)):
        run = odesim.integrate(own, params={"start": start_value, "level": level_value}, **options)
        way = 0 if condition == (b >= a) else level_value - start_value
        assert run.status == "ok" and {name: np.round([e["t"] for e in run.events[name]], 9).tolist() for name in run.events} == {
            "any": [6.0] if way else [],
            "up": [6.0] if way > 0 else [],
            "down": [6.0] if way < 0 else [],
        }


on, x = sp.symbols("on x", real=True)
GATES = [on >= 1, on > 0, on <= 1, sp.Lt(0, on), sp.Eq(on, 1), sp.Ne(on, 0), sp.Eq(sp.Mod(on, 2), 1)]


@pytest.mark.parametrize("resets", [{}, {n: n + 1}], ids=["recorded", "counted"])
@pytest.mark.parametrize("gate", GATES, ids=str)
def test_gates_on_memories(gate: Any, resets: Any) -> None:
    """x = sin t passes 1/2 twice; an event sees it where its gate holds, which may stand on its bound; in members too."""
    own = System(
        name="own", source=Source("own", "test"), axes={}, equations={x: sp.cos(t), on: 0, n: 0}, initial={x: 0, on: 1, n: 0},
        events=(Event("half", Piecewise((x - HALF, gate), (-1, True)), resets=resets),), span=(0.0, 6.0),
    )  # fmt: skip
    values = [0.0, 1.0, 2.0, 1001.0]
    members = odesim.ensemble(own, initial={"on": values})
    for k, value in enumerate(values):
        right = [np.pi / 6, 5 * np.pi / 6] if gate.subs(on, int(value)) == True else []  # noqa: E712
        run = odesim.integrate(own, initial={"on": value}, backend="numpy")
        assert [e["t"] for e in run.events["half"]] == pytest.approx(right, abs=1e-5)  # x is right to some tolerances
        assert members.half_count[k] == len(right) and members.half_t[k, : len(right)].values == pytest.approx(right, abs=1e-5)
        assert run.final["n"] == (len(right) if resets else 0)


def test_continuous_ones_stay() -> None:
    """A function that only bends at its condition is searched as it is written."""
    from odesim.transforms.conditions import signed

    for e in (Piecewise((k - 1, k > 1), (0, True)), Max(k, 1) - 2, k - a, sp.Abs(k) - 1, Piecewise((1, t > 1), (-1, True))):
        assert signed(e, ["k"]) is e
