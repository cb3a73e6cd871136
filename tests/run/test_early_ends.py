"""A run that ends early keeps what it reached, alone and as a member, in lanes and one by one, whatever its status."""

from typing import Any

import numpy as np
import pytest
import sympy as sp

import odesim
from odesim.symbolic import Event, Param, System
from odesim.symbolic import time as t
from tests.support.matrix import slow_but
from tests.support.systems import REAL, SOURCE

c, x, v = sp.symbols("c x v", real=True)
positive = sp.Symbol("x", positive=True)
SPIKE = Event("spike", x - 2, direction=1, resets={x: 1})
BOUNCE = Event("bounce", x, direction=-1, resets={v: -v / 3})
# {case: (status, c, equations, events, the last time reached where it has a closed form, options)}; x is 1 at the start
CASES: dict[str, tuple[str, float, dict[Any, Any], tuple[Event, ...], float | None, dict[str, Any]]] = {
    "bounces pile up": ("sliding", 2.0, {x: v, v: -c}, (BOUNCE,), 2.0, {}),  # 1 + 2 (1/3 + 1/9 + ...)
    # at 1 - 1/(1 + k/2), two to 1e7 of which to rounding; a kth is seen to be one of many at k = 1024
    "spikes quicken": ("sliding", 2.0, {x: c / (1 - t) ** 2, v: 0}, (SPIKE,), 512 / 513, {}),
    "both sides push back": ("sliding", 0.5, {x: c - 2 * sp.sign(x), v: 0}, (), 2 / 3, {}),
    "a pole": ("blow_up", 1.0, {x: c * x**2, v: 0}, (), 1.0, {}),
    "a root": ("step_too_small", 1.0, {x: -c / x, v: 0}, (), 0.5, {}),
    "no steps left": ("max_steps", 1.0, {x: v, v: -c * x}, (), None, {"max_steps": 12}),
    "an event": ("event", 1.0, {x: c, v: 0}, (Event("two", x - 2, terminal=True),), 1.0, {}),
    "out of its set": ("left_domain", 1.0, {positive: -c, v: 0}, (), 1.0, {}),
    "no number at the start": ("non_finite", 2.0, {x: sp.sqrt(x - c), v: 0}, (), 0.0, {}),
}


@pytest.mark.parametrize("engine", ["one by one", "lanes"])
@pytest.mark.parametrize("case", slow_but(CASES, ("bounces pile up", "spikes quicken", "both sides push back")))
def test_what_was_reached_is_kept(case: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Member = run, bit by bit, at the times up to t_end; NaN after it."""
    status, number, equations, events, end, options = CASES[case]
    initial = dict.fromkeys(equations, 0.0) | {next(iter(equations)): 1.0}
    system = System("test.early", SOURCE, {}, equations, (Param(c, number, REAL, ""),), initial, span=(0.0, 6.0), events=events)
    asked: dict[str, Any] = {"method": "tsit5", "strict": True, "save": np.linspace(0, 6, 37), **options}
    if engine == "one by one":
        monkeypatch.setattr("odesim.run.choose.lane_engine", lambda *_: None)
    run = odesim.integrate(system, **asked)
    members = odesim.ensemble(system, vary={"c": [number, number]}, **asked)
    assert run.status == status and run.t_end == pytest.approx(run.t_end if end is None else end, abs=1e-5)
    kept = np.isin(members.time, run.t)
    assert kept.sum() == np.count_nonzero(members.time <= run.t_end) and np.isin(run.t[:-1], members.time).all()
    for i in range(2):
        assert members.attrs["status_names"][int(members.status[i])] == status and members.t_end[i] == run.t_end
        for name in ("x", "v"):
            np.testing.assert_array_equal(members[name].values[i, kept], run.y[name][np.isin(run.t, members.time)])
            assert np.isnan(members[name].values[i, ~kept]).all()
