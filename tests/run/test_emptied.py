"""Right-hand sides that are steep where a Max holds them, sqrt(Max(y, 0)): a solution comes to rest there, and goes on."""

from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy import Interval, Max, Min, Symbol, acos, acosh, oo

import odesim
from odesim.symbolic import IndexedBase, Param, Source, System, index, sizes

(i,), (N,) = index("i"), sizes("N")
k = Symbol("k", positive=True)
p = Symbol("p", positive=True)
y = IndexedBase("y", shape=(N,))
RATE = Param(k, 1.0, Interval.open(0, oo), "rate")
POWER = Param(p, 0.5, Interval.open(0, 1), "power")
START = [1.0, 0.3, 0.0, 5.0]
RUNS: dict[str, dict[str, Any]] = {
    "explicit": {"method": "tsit5"},
    "rodas4": {"method": "rodas4", "backend": "numpy"},
    "rodas5p": {"method": "rodas5p", "backend": "numpy"},
}


def tank(rate: Any, *params: Param) -> System:
    """Tanks that empty at this rate of their contents."""
    return System(name="own", source=Source("own", "test"), axes={i: N}, equations={y[i]: -rate}, params=params, initial={y[i]: 1})


ROOT, POWERS = tank(k * sp.sqrt(Max(y[i], 0)), RATE), tank(k * Max(y[i], 0) ** p, RATE, POWER)


def emptied(k: float, p: float, start: Any, t: float) -> Any:
    """The solution of y' = -k y^p, for p < 1, at t."""
    return np.maximum(np.asarray(start) ** (1 - p) - (1 - p) * k * t, 0) ** (1 / (1 - p))


STRICT = pytest.param({"method": "rodas5p", "strict": True}, marks=pytest.mark.slow, id="strict")


@pytest.mark.parametrize("run", [*(pytest.param(run, id=name) for name, run in RUNS.items()), STRICT])
@pytest.mark.parametrize("power", [0.5, 0.3, 0.7])
def test_tanks_run_empty(power: float, run: dict[str, Any]) -> None:
    """y' = -k y^p, empty after a time, some from the start, one never: the closed form before and after."""
    given = {"k": 1.3} if power == 0.5 else {"k": 1.3, "p": power}
    model = ROOT if power == 0.5 else POWERS
    made = odesim.integrate(model, params=given, initial={"y": START}, span=(0, 2), save=9, rtol=1e-8, atol=1e-10, **run)
    assert made.status == "ok"
    np.testing.assert_allclose(made.y["y"], [emptied(1.3, power, START, t) for t in made.t], atol=2e-6)


@pytest.mark.slow  # a stiff kernel of its own; test_stiff_lanes.py has such members, and single runs are above
def test_ensembles_of_tanks_run_empty() -> None:
    """As single runs."""
    rates = [0.3, 1.7]
    members = odesim.ensemble(ROOT, params={"k": rates}, initial={"y": START}, span=(0, 2), method="rodas5p", rtol=1e-8, atol=1e-10)
    assert (members.status == 0).all()
    np.testing.assert_allclose(members.y.values.reshape(2, 4), [emptied(k, 0.5, START, 2.0) for k in rates], atol=2e-6)


EDGES = {
    "arc cosine": acos(Max(Min(y[i], 1), -1)),
    "area cosine": acosh(Max(y[i], 1)),
    "two sides": sp.sqrt(Max(y[i], 1) - 1) - sp.sqrt(Max(-y[i], 1) - 1),
    "cube root": sp.cbrt(Max(y[i] - 1, 0)),
}


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("method", ["rodas4", "rodas5p"])
def test_steep_edges(name: str, method: str) -> None:
    """Starts on either side of an edge and on it: as an explicit method with steps of a thousandth has them."""
    model = tank(k * EDGES[name], RATE)
    given: dict[str, Any] = {"initial": {"y": [3.0, 1.0, 1.4, 0.2, -2.0]}, "span": (0, 4), "backend": "numpy"}
    found = odesim.integrate(model, method=method, rtol=1e-8, atol=1e-10, **given)
    right = odesim.integrate(model, method="rk4", step=1e-3, **given)
    assert found.status == "ok"
    np.testing.assert_allclose(found.final["y"], right.final["y"], atol=1e-4)


def test_sensitivities_of_an_empty_tank() -> None:
    """d y/d k = -sqrt(y) t until the tank is empty, and 0 from then on."""
    given: dict[str, Any] = {"span": (0, 2), "save": 9, "rtol": 1e-8, "atol": 1e-10, "backend": "numpy"}
    made = odesim.integrate(ROOT, initial={"y": START}, method="rodas5p", sensitivities=("k",), **given)
    right = [-np.sqrt(emptied(1.0, 0.5, START, t)) * t for t in made.t]
    assert made.status == "ok"
    np.testing.assert_allclose(made.sensitivities["k"]["y"], right, atol=1e-3)  # at its end it falls as a square root
