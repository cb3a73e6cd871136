"""Times that are close to each other, to the ends of the span, or late on the clock: told apart as far as numbers tell them apart."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sympy import Float, Interval, Mod, Piecewise, Rational, Symbol, oo

import odesim
from odesim.base.errors import ParamError
from odesim.symbolic import Event, IndexedBase, Param, Source, System, index, sizes
from odesim.symbolic import time as t

(i,), (N,) = index("i"), sizes("N")
REALS = Interval(-oo, oo)
x, level, last, rate = (Symbol(name, real=True) for name in ("x", "level", "last", "rate"))
T = IndexedBase("T", shape=(N,))
RUNS: dict[str, dict[str, Any]] = {
    "tsit5": {"method": "tsit5"},
    "stiff": {"method": "rodas5p"},
    "auto": {},
    "fixed": {"method": "rk4", "step": 0.3},
}
STARTS = [0.0, 5.0, -3.0, 2460000.0, 1.7e9]


def own(**more: Any) -> System:
    """A System of x, at rest by itself."""
    return System(name="own", source=Source("own", "test"), **{"axes": {}, "equations": {x: 0}, "params": (), "initial": {x: 0}, **more})


DOSES = own(axes={i: N}, params=(Param(T, 1.0, REALS, "times"),), events=(Event("dose", t - T[i], resets={x: x + 1}),))


def apart(times: list[float], t0: float, t1: float) -> list[float]:
    """Those of increasing times that are more than eight spacings from each other and from the ends of the span."""
    found: list[float] = []
    for time in sorted(times):
        if all(abs(time - other) > 8 * math.ulp(time) for other in (t0, t1, *found)):
            found.append(time)
    return found


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("t0", STARTS)
def test_doses_act_once_each_however_close(t0: float, run: str) -> None:
    """Single doses from some spacings to parts of the span after each other, after the start and around the end: those before each saved
    time are counted there, by a loop."""
    rng = np.random.default_rng(7)
    for span in (1.0, 1e3):
        t1 = t0 + span
        near = span * 10.0 ** rng.uniform(-17, -1, 12)
        least = math.ulp(max(abs(t0), abs(t1)))
        times = apart([*(t0 + near[:4]), *(t1 - near[4:8]), *(t0 + span / 3 + near[8:10]), t1 + 20 * least, t0 + 20 * least], t0, t1)
        saved = apart([t0, t1, *(0.5 * (a + b) for a, b in pairwise(times) if b < t1)], -math.inf, math.inf)
        made = odesim.integrate(DOSES, params={"T": times}, span=(t0, t1), save=saved, backend="numpy", **RUNS[run])
        assert made.status == "ok" and made.t[-1] == t1
        assert made.y["x"].tolist() == [sum(time <= at for time in times) for at in saved]


@pytest.mark.parametrize("t0", STARTS)
@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
def test_levels_are_passed_in_order(t0: float, method: str) -> None:
    """Two levels of a rising state, from some spacings of the clock to a tenth apart: each sets what it reads, at its own time, and
    a time saved between them shows the first one alone."""
    for gap in (0.1, 1e-3, 1e-11 + 1000 * math.ulp(t0 + 1)):
        model = own(
            equations={x: 0, level: 1, last: 0},
            initial={x: 0, level: 0, last: 0},
            events=(Event("a", level - 1, resets={x: x + 1}), Event("b", level - 1 - Float(gap, 17), resets={x: x + 10, last: t})),
        )
        saved = [t0, t0 + 1 - gap / 2, t0 + 1 + gap / 2, t0 + 2]
        found = odesim.integrate(model, span=(t0, t0 + 2), save=saved, method=method, backend="numpy")
        assert found.status == "ok" and found.y["x"].tolist() == [0, 0, 1, 11]
        assert found.final["last"] - t0 == pytest.approx(1 + gap, abs=4 * math.ulp(t0 + 1) + 1e-11)


@pytest.mark.first(1)
@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
def test_a_lamp_burns_half_of_the_time_at_every_clock(method: str) -> None:
    """Members in lanes and single runs; what is left is the rounding of the clock."""
    lamp = own(
        equations={x: rate * Piecewise((1, Mod(t, 1) < Rational(1, 2)), (0, True)), level: 0},
        initial={x: 0, level: 0},
        params=(Param(rate, 1.0, REALS, "per second"),),
    )
    rates = [1.0, 2.0, 0.0]
    for t0 in (0.0, 1e8, 1.7e9):
        span, right = (t0, t0 + 10), pytest.approx([5 * r for r in rates], abs=20 * math.ulp(t0) + 1e-12)
        members = odesim.ensemble(lamp, params={"rate": rates}, span=span, method=method)
        assert (members.status == 0).all() and members.x.values.ravel() == right
        alone = [odesim.integrate(lamp, params={"rate": r}, span=span, method=method, backend="numpy").final["x"] for r in rates]
        assert np.array(alone) == right


@pytest.mark.first(2)
@pytest.mark.parametrize(("period", "ticks"), [(0.1, 7), (0.07, 70), (0.01, 400)])
@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
def test_a_clock_ticks_to_the_end(period: float, ticks: int, method: str) -> None:
    """A clock that is set by its own ticks, on a span that ends half a tick after the last one and, up to rounding, at it."""
    clock = own(
        equations={x: 0, last: 0}, initial={x: 0, last: 0}, events=(Event("tick", t - last - Float(period), 1, resets={x: x + 1, last: t}),)
    )
    made = odesim.integrate(clock, span=(0, (ticks + 0.5) * period), method=method, backend="numpy")
    assert made.status == "ok" and made.final["x"] == ticks
    made = odesim.integrate(clock, span=(0, ticks * period), method=method, backend="numpy")
    assert made.status == "ok" and ticks - 1 <= made.final["x"] <= ticks


@pytest.mark.parametrize("t0", STARTS)
def test_a_time_beyond_the_end_by_rounding_is_the_end(t0: float) -> None:
    """Ends as sums and as products of steps: each is saved, stepped to and looked at in a span that ends at the other. A time that is
    later is refused, and the sentence shows how."""
    rng = np.random.default_rng(3)
    moving = own(equations={x: 1})
    for step in rng.uniform(0, 1, 20).round(2) + 0.01:
        ends = t0 + 7 * step, float(np.cumsum([t0, *[step] * 7])[-1])
        for end, other in (ends, ends[::-1]):
            if abs(other - end) > 4 * math.ulp(max(abs(end), abs(t0))):
                continue
            made = odesim.integrate(moving, span=(t0, end), save=[t0, t0 + step, other], stop_at=[other], backend="numpy")
            assert made.status == "ok" and made.t[-1] in (end, other) and made.t[-1] <= end
            assert made.at(other)["x"] == pytest.approx(end - t0, rel=1e-12, abs=4 * math.ulp(t0))
        late = ends[0] + 12 * math.ulp(max(abs(ends[0]), abs(t0)))
        for what in ("save", "stop_at"):
            asked: dict[str, Any] = {what: [late]}
            with pytest.raises(ParamError) as refused:
                odesim.integrate(moving, span=(t0, ends[0]), backend="numpy", **asked)
            shown, span = str(refused.value).removeprefix(f"{what}: ").split(" lies outside the span ")
            assert float(shown) > float(span.rpartition(":")[2])
