"""Events whose functions jump at conditions on states: found where the conditions change, however narrow the part between them."""

from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy import And, Heaviside, Max, Min, Or, Piecewise, sign

import odesim
from odesim.symbolic import Event, IndexedBase, Param, Source, System, index, sizes
from odesim.symbolic import time as t

k, n, a, b = sp.symbols("k n a b", real=True)
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
        params=(Param(a, 4.5, REALS, ""), Param(b, 5.1, REALS, "")),
        initial={k: 0, n: 0},
        events=(Event("in", expr, direction, **more),),
        span=(0.0, 100.0),
    )


@pytest.mark.parametrize("form", FORMS)
def test_narrow_parts(form: str) -> None:
    """It passes 0 where k = t passes a and b, with and without resets: 1e-9 is that of the search."""
    random = np.random.default_rng(len(form))
    for n_th, width in enumerate((0.6, 0.02, 1e-3)):
        first = random.uniform(1, 90)
        values, times = {"a": first, "b": first + width}, [first, first + width]
        way = (0, 1, -1)[n_th]
        right = times[:1] if way == 1 else times[1:] if way == -1 else times
        options: dict[str, Any] = {"backend": "numpy", "params": values, "max_step": 1.0 if width < 0.1 else None}
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


def test_continuous_ones_stay() -> None:
    """A function that only bends at its condition is searched as it is written."""
    from odesim.transforms.conditions import signed

    for e in (Piecewise((k - 1, k > 1), (0, True)), Max(k, 1) - 2, k - a, sp.Abs(k) - 1, Piecewise((1, t > 1), (-1, True))):
        assert signed(e, ["k"]) is e
