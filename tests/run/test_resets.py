"""Events that set states: when they happen, what they set, what they set off, and what a run is between them."""

from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp
from sympy import Interval, Mod, Symbol, cos, oo, pi, sign, sin

import odesim
from odesim.base.errors import SolveError, SpecError
from odesim.symbolic import Event, IndexedBase, Invariant, Param, Source, System, index, over, sizes
from odesim.symbolic import time as t
from tests.support.balls import BALLS, balls, bounces, flight

REALS = Interval(-oo, oo)
x, v, n, k, a, b, q = sp.symbols("x v n k a b q", real=True)
PLAIN: dict[str, Any] = {"backend": "numpy", "rtol": 1e-9, "atol": 1e-11}


def system(equations: Any, events: Any, start: Any = 0, params: Any = None, **more: Any) -> System:
    """A System of numbers that start at `start`, or at {state: value}."""
    initial = {y: start[y] if isinstance(start, dict) else start for y in equations}
    own = tuple(Param(p, value, REALS, "") for p, value in (params or {}).items())
    more = {"axes": {}, "span": (0.0, 10.0), **more}
    return System(name="own", source=Source("own", "test"), equations=equations, params=own, initial=initial, events=tuple(events), **more)


RUNS: dict[str, dict[str, Any]] = {
    "tsit5": {"method": "tsit5"},
    "numpy": {"backend": "numpy", "method": "vern7"},
    "rodas5p": {"method": "rodas5p"},
    "strict": {"strict": True, "method": "rodas5p"},
    "fixed": {"method": "rk4", "step": 0.07, "backend": "numpy"},
    "coarse": {"method": "tsit5", "step": 0.4},
}


@pytest.mark.first(1)
@pytest.mark.parametrize("run", RUNS)
def test_balls_bounce_at_their_times(run: str) -> None:
    """Times 2 v/g c^n of each ball, its height and speed in between; parabolas are exact for every method: 1e-12 is rounding."""
    heights = (1.0, 0.5)
    found = odesim.integrate(BALLS, params={"h": heights}, save=26, **RUNS[run])
    for ball, h in enumerate(heights):
        times = [e["t"] for e in found.events["bounce"] if e["index"] == (ball,)]
        np.testing.assert_allclose(times, bounces(h), rtol=1e-12)
        exact = np.array([flight(time, h) for time in found.t])
        np.testing.assert_allclose(found.y["x"][:, ball], exact[:, 0], atol=1e-11)
        np.testing.assert_allclose(found.y["v"][:, ball], exact[:, 1], atol=1e-11)
    assert found.status == "ok" and found.final["n"] == 13
    assert found.invariants["energy"] is not None and found.invariants["energy"] < 1e-12


@pytest.mark.parametrize("direction", [0, 1])
@pytest.mark.parametrize("first", ["a", "b"])
def test_what_has_come_to_zero_and_is_moved_across_acts_once(direction: int, first: str) -> None:
    """a and b come to 1 and 2 at t = 3/2; the first of the list moves the other, which acts once, after it: not for 0 and for the move."""
    hits = {
        "a": Event("hit a", a - 1, direction=direction, resets={a: 0, b: b + sp.Rational(1, 4), n: n + 1}),
        "b": Event("hit b", b - 2, direction=direction, resets={b: 0, a: a + sp.Rational(1, 2), n: n + 10}),
    }
    events = [hits[first], hits["ba"["ab".index(first)]]]
    run = odesim.integrate(system({a: 2, b: 1, n: 0}, events, span=(0.0, 1.5 + 1 / 64)))
    # a came to 1 at 1/2 and 1 too, and gave b 1/4 each time
    ends = {"a": (1 / 2, 0.0, 13), "b": (0.0, 1 / 4, 13)}[first]
    np.testing.assert_allclose([run.final[name] for name in "abn"], np.add(ends, (1 / 32, 1 / 64, 0)), atol=1e-12)  # rounding


def test_times_that_pile_up_slowly_end_the_run() -> None:
    """x' = 1/(1 - t)^2 from 0, reset at 1, happens at k/(k + 1) without end: 1e7 times to rounding. The run ends early and names it."""
    run = odesim.integrate(system({x: 1 / (1 - t) ** 2}, [Event("spike", x - 1, direction=1, resets={x: 0})], span=(0.0, 3.0)))
    assert run.status == "sliding" and "the event spike happens ever faster" in run.message
    assert run.stats["steps"] < 1e4
    times = [e["t"] for e in run.events["spike"]]
    count = np.arange(1, len(times) + 1)
    np.testing.assert_allclose(times, count / (count + 1), rtol=1e-5)  # 10 rtol


@pytest.mark.slow
def test_a_burst_is_no_pile() -> None:
    """A rate that rises to 2.5e5 at t = 1 and falls: 1569 spikes, as many as its integral says, and the end of the span."""
    width = sp.Rational(1, 500)
    run = odesim.integrate(system({x: 1 / ((1 - t) ** 2 + width**2)}, [Event("spike", x - 1, direction=1, resets={x: 0})], span=(0.0, 2.0)))
    assert run.status == "ok" and len(run.events["spike"]) == int(2 * 500 * np.arctan(500))


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("height", "direction", "c"), [(0, -1, 0.8), (0, 0, 0.5), (0, -1, 0.01), (1000, -1, 0.5), (1000, 0, 0.9), (-3, 0, 0.2)]
)
def test_bounces_that_pile_up_end_the_run(height: int, direction: int, c: float) -> None:
    """No ball falls through the floor: the run ends at the time where infinitely many bounces lie, with a sentence."""
    found = odesim.integrate(balls(height, direction), params={"c": c}, span=(0, 10), **PLAIN)
    end = np.sqrt(2 / 9.81) * (1 + 2 * c / (1 - c))
    assert found.status == "sliding" and "bounce" in found.message and "ever faster" in found.message
    # above 1000 the floor is known to 1e-13, and a flight of that height takes 3e-7
    assert found.t_end == pytest.approx(end, abs=1e-5 if height else 1e-9)
    assert found.final["x"].min() > height - 1e-9


@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
@pytest.mark.parametrize("c", [0.2, 0.1, 0.05, 0.01, 1e-3, 1e-9, 1e-20, 0.0])
def test_soft_bounces(c: float, method: str) -> None:
    """Balls that keep little of their speed, or none, end the run where they come to rest."""
    found = odesim.integrate(BALLS, params={"c": c, "h": (1.0, 1.0)}, span=(0, 10), method=method, **PLAIN)
    assert found.status == "sliding" and "the event bounce" in found.message
    assert found.t_end == pytest.approx(np.sqrt(2 / 9.81) * (1 + 2 * c / (1 - c)), abs=1e-9)
    assert found.final["x"].min() > -1e-9


def test_rest_without_a_push() -> None:
    """A body that a wall stops stays there, and goes on when it is kicked: neither passes the wall again."""
    wall = Event("wall", x - sp.Rational(7, 10), 0, resets={v: 0, n: n + 1})
    kick = Event("kick", t - 3, resets={v: 1})
    for events in ([wall, kick], [kick, wall]):
        found = odesim.integrate(system({x: v, v: 0, n: 0}, events, {x: 0, v: 1, n: 0}), save=[2.0, 4.0], span=(0, 5), **PLAIN)
        assert (found.status, found.final["n"]) == ("ok", 1) and found.y["x"] == pytest.approx([0.7, 1.7])


@pytest.mark.parametrize("c", [0.0, 1e-9, 0.05])
def test_soft_bounces_from_the_start(c: float) -> None:
    """A ball on the floor that is thrown down and soon rests there."""
    ball = system({x: v, v: -10, n: 0}, [Event("bounce", x, -1, resets={v: -c * v, n: n + 1}, at_start=True)], {x: 0, v: -1, n: 0})
    found = odesim.integrate(ball, **PLAIN)
    assert found.status == "sliding" and found.t_end == pytest.approx(c / 5 / (1 - c), abs=1e-9) and found.final["x"] > -1e-9


@pytest.mark.parametrize("c", [0.5, 0.05])
def test_events_at_the_start(c: float) -> None:
    """A ball on the floor that is thrown down falls through it; with at_start it bounces at once, one that is thrown up does not."""
    for at_start, speed in ((False, -2.0), (True, -2.0), (True, 2.0)):
        bounce = Event("bounce", x, -1, resets={v: -c * v, n: n + 1}, at_start=at_start)
        ball = system({x: v, v: -10, n: 0}, [bounce], {x: 0, v: speed, n: 0})
        run = odesim.integrate(ball, save=[0.0, 0.02 * c, 0.1 * c], span=(0, 0.1 * c), **PLAIN)
        up = speed if speed > 0 else -c * speed if at_start else speed
        assert run.y["v"] == pytest.approx(up - 10 * run.t) and run.y["x"] == pytest.approx(up * run.t - 5 * run.t**2)
        assert run.final["n"] == (at_start and speed < 0) and [e["t"] for e in run.events["bounce"]] == [0.0] * int(run.final["n"])


def test_components_at_the_start() -> None:
    """Two balls on the floor that are thrown down both bounce at once; the third is in the air."""
    (i,), (N,) = index("i"), sizes("N")
    height, speed = IndexedBase("height", shape=(N,)), IndexedBase("speed", shape=(N,))
    three = System(
        name="own",
        source=Source("own", "test"),
        axes={i: N},
        equations={height[i]: speed[i], speed[i]: -10},
        params=(),
        initial={height[i]: i * (i - 1), speed[i]: -1},
        sizes={N: 3},
        events=(Event("bounce", height[i], -1, resets={speed[i]: -speed[i]}, at_start=True),),
    )
    run = odesim.integrate(three, span=(0, 0.01), **PLAIN)
    assert [e["index"] for e in run.events["bounce"]] == [(0,), (1,)]
    assert run.final["speed"] == pytest.approx([0.9, 0.9, -1.1])


@pytest.mark.parametrize("g", [lambda y: y - 1, lambda y: y**3 - 1, lambda y: sp.exp(y) - 2], ids=["line", "cube", "exp"])
@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
def test_many_components_count_once(g: Any, method: str) -> None:
    """More components than are searched on the functions themselves, which resets leave where they are, happen once each."""
    (i,), (N,) = index("i"), sizes("N")
    y, m = IndexedBase("y", shape=(N,)), IndexedBase("m", shape=(N,))
    own = System(
        name="own",
        source=Source("own", "test"),
        axes={i: N},
        equations={y[i]: 1 + i / (3 * N), m[i]: 0},
        params=(),
        initial={y[i]: 0, m[i]: 0},
        sizes={N: 90},
        events=(Event("passes", g(y[i]), resets={m[i]: m[i] + 1}),),
    )
    run = odesim.integrate(own, span=(0, 3), backend="numpy", method=method)
    assert run.status == "ok" and set(run.final["m"]) == {1.0}


def test_conditions_that_hold_at_the_start() -> None:
    """An event upwards whose function is above 0 at the start happens there, also in members, in typed events, and with sensitivities."""
    full = Event("full", x - a, 1, resets={x: b * x}, at_start=True)
    tank = system({x: -x / 2}, [full], {x: q}, {a: 1.0, b: 0.25, q: 2.0}, span=(0.0, 1.0))
    for start, many in ((2.0, 1), (0.5, 0)):
        run = odesim.integrate(tank, params={"q": start}, sensitivities=["q", "b", "a"], **PLAIN)
        factor = (0.25 if many else 1) * np.exp(-0.5)
        assert run.final["x"] == pytest.approx(start * factor) and len(run.events["full"]) == many
        slopes = {"q": factor, "b": start * np.exp(-0.5) * many, "a": 0.0}
        assert {p: run.sensitivities[p]["x"][-1] for p in slopes} == pytest.approx(slopes)
    assert odesim.ensemble(tank, params={"q": [2.0, 0.5]}).full_count.values.tolist() == [1, 0]
    plain = system({x: -x / 2}, [], 2.0, span=(0.0, 1.0))
    run = odesim.integrate(plain, events=("high: x - 1; direction up; at start",), **PLAIN)
    assert run.events["high"] == [{"t": 0.0, "index": None}]
    run = odesim.integrate(plain, events=("high: x - 1; direction up; at start; terminal",), **PLAIN)
    assert (run.status, run.t_end) == ("event", 0.0)


KICKS = {"sine": (sin(pi * t / q), 0), "remainder": (Mod(t, q) - q / 2, -1), "cosine": (cos(pi * t / q - pi / 2), 0)}


@pytest.mark.first(2)
@pytest.mark.parametrize("kick", KICKS)
@pytest.mark.parametrize("end", [9.7, 10.0])
def test_kicks_on_time(kick: str, end: float) -> None:
    """x' = -a x with x + b at every multiple of q, also at the end, not at the start: a sum of powers. 1e-8: the tolerance."""
    expr, direction = KICKS[kick]
    model = system({x: -a * x, n: 0}, [Event("kick", expr, direction, resets={x: x + b, n: n + 1})], 0, {a: 0.5, b: 2.0, q: 1.0})
    found = odesim.integrate(model, span=(0, end), save=[1.0, 2.5, end], **PLAIN)
    for time, value, count in zip(found.t, found.y["x"], found.y["n"], strict=True):
        times = np.arange(1, int(time) + 1)
        assert value == pytest.approx(2 * np.exp(-(time - times) / 2).sum(), rel=1e-8) and count == len(times)
    first = odesim.integrate(model, span=(0, 1), **PLAIN)
    assert [e["t"] for e in first.events["kick"]] == [1.0] and first.final["x"] == 2
    later = odesim.integrate(model, span=(1, 1.5), initial=first.final, **PLAIN)
    assert not later.events["kick"] and later.final["n"] == 1
    assert found.at(3.0)["n"] == 3 and found.at(np.nextafter(2.99, 0))["n"] == 2


def test_restarts_of_scipy() -> None:
    """A driven, damped pendulum with a stop and dry friction: the states of solve_ivp that is begun again after each reset."""
    stop = Event("stop", x - sp.Rational(3, 5), 1, resets={v: -v / 2 + cos(t) / 10, x: sp.Rational(1, 2)})
    model = system({x: v, v: -sin(x) - sign(v) / 10 + cos(2 * t)}, [stop], {x: 0, v: 1}, span=(0, 6))
    found = odesim.integrate(model, save=[2.0, 4.0, 6.0], **PLAIN)

    def right(time: float, y: Any) -> list[float]:
        return [y[1], -np.sin(y[0]) - np.sign(y[1]) / 10 + np.cos(2 * time)]

    def hit(_: float, y: Any) -> float:
        return float(y[0] - 0.6)

    def turn(_: float, y: Any) -> float:
        return float(y[1])

    hit.direction, hit.terminal, turn.terminal = 1, True, True  # type: ignore[attr-defined]
    time, y = 0.0, np.array([0.0, 1.0])
    hits, at = list[float](), dict[float, Any]()
    for end in found.t:
        while time < end:
            part = solve_ivp(right, (time, end), y, events=(hit, turn), rtol=1e-11, atol=1e-12, max_step=0.1)
            time, y = part.t[-1], part.y[:, -1]
            if len(part.t_events[0]):  # type: ignore[index]
                hits.append(time)
                y = np.array([0.5, -y[1] / 2 + np.cos(time) / 10])
            elif len(part.t_events[1]):  # type: ignore[index]  # past the turn, where the other friction holds
                y[1] = 1e-14 * np.sign(right(time, [y[0], 0.0])[1])
        at[end] = y
    assert len(hits) > 1
    np.testing.assert_allclose([e["t"] for e in found.events["stop"]], hits, atol=1e-7)
    np.testing.assert_allclose(np.stack([found.y["x"], found.y["v"]], 1), list(at.values()), atol=1e-7)  # of tolerances of 1e-9


def test_resets_see_the_states_before() -> None:
    """A swap is a swap; what a later event sees is what an earlier one of the list left; a saved time of a reset holds what is set."""
    meet = Event("meet", x - v, resets={x: v, v: x + 10})
    twice = [Event("add", t - 1, resets={x: x + 1}), Event("double", 2 * t - 2, resets={x: 2 * x})]
    found = odesim.integrate(system({x: 1, v: -1}, [meet], {x: 0, v: 2}), span=(0, 2), **PLAIN)
    assert found.final["x"] == pytest.approx(2) and found.final["v"] == pytest.approx(10)
    for events, value in ((twice, 4.0), (twice[::-1], 3.0)):
        found = odesim.integrate(system({x: 0}, events, 1), save=[0.5, 1.0, 2.0], span=(0, 2), **PLAIN)
        assert found.y["x"].tolist() == [1.0, value, value]


def test_resets_set_off_events() -> None:
    """Batches, epochs of three of them, and an end after two epochs: a function that a reset takes to 0 or past it passes it."""
    batch = Event("batch", sin(pi * t), resets={n: n + 1})
    epoch = Event("epoch", n - 3, 1, resets={n: 0, k: k + 1})
    found = odesim.integrate(system({n: 0, k: 0}, [Event("end", k - 2, terminal=True), batch, epoch]), **PLAIN)
    assert (found.status, found.t_end, found.final["n"], found.final["k"]) == ("event", 6.0, 0, 2)
    assert "the event end at t = 6" in found.message
    assert [e["t"] for e in found.events["epoch"]] == [3.0, 6.0] and len(found.events["batch"]) == 6
    both = [Event("go", t - 1, resets={x: 1}), Event("up", x - 0.5, 1, resets={x: 0}), Event("down", x - 0.5, -1, resets={x: 1})]
    assert "sets itself off" in odesim.integrate(system({x: 0}, both), **PLAIN).message


def test_events_that_are_set_off_again() -> None:
    """An event whose resets set off another that takes its function across 0 again acts again at that time, and each time is recorded."""
    for first in (t - 1, x - 1):  # set off by the others alone, and the one that the run itself took to 0
        start = Event("start", t - 1, resets={x: 2}) if first == t - 1 else Event("never", t + 1)
        high = Event("high", x - 1, 1, resets={x: 0, n: n + 1})
        again = Event("again", n - 0.5, 1, resets={x: 3})
        found = odesim.integrate(system({x: 0 if first == t - 1 else 1, n: 0}, [start, high, again]), span=(0, 1.5), **PLAIN)
        assert (found.status, found.final["n"], found.final["x"]) == ("ok", 2, 0.0 if first == t - 1 else pytest.approx(0.5))
        assert [e["t"] for e in found.events["high"]] == pytest.approx([1.0, 1.0]) and len(found.events["again"]) == 1


def test_indices() -> None:
    """Resets with the event's index, other indices, a whole number and an index parameter set these elements and no other."""
    (i, j), (N, K) = index("i j"), sizes("N K")
    y, w, z = IndexedBase("y", shape=(N,)), IndexedBase("w", shape=(N, K)), IndexedBase("z", shape=(N,))
    psi = IndexedBase("psi", shape=(N,))
    event = Event("full", y[i] - 1, 1, resets={y[i]: 0, w[i, j]: w[i, j] + i + 10 * j, z[psi[i]]: over(sp.Sum, w[i, j], (j, K)), n: i})
    model = System(
        name="own",
        source=Source("own", "test"),
        axes={i: N, j: K},
        equations={y[i]: 1 + i, w[i, j]: 0, z[i]: 0, n: 0},
        params=(Param(psi, lambda sizes: [2, 0, 1], REALS, "", indexes=N),),
        initial={y[i]: 0, w[i, j]: 1, z[i]: 0, n: -1},
        sizes={N: 3, K: 2},
        span=(0.0, 0.7),
        events=(event,),
    )
    found = odesim.integrate(model, **PLAIN)  # y[1] is full at 1/2, y[2] at 1/3 and 2/3
    np.testing.assert_array_equal(found.final["w"], [[1, 1], [2, 12], [5, 25]])
    np.testing.assert_array_equal(found.final["z"], [2, 16, 0])  # the sums before: of w[1], and of w[2] = 3, 13
    assert found.final["n"] == 2


def test_conservation_after_a_reset() -> None:
    """A stiff step conserves x + v as it is after a reset, not as it was at the start; a law that a reset breaks is reported."""
    total = Invariant("total", x + v, "constant", tol=1e-6)
    feed = Event("feed", t - 1, resets={x: x + 3})
    found = odesim.integrate(system({x: v - 50 * x, v: 50 * x - v}, [feed], {x: 1, v: 0}, invariants=(total,)), method="rodas5p", **PLAIN)
    assert found.final["x"] + found.final["v"] == pytest.approx(4, abs=1e-12)
    assert found.invariants["total"] == pytest.approx(3) and "'total' is violated by 3" in found.message


def test_runs_that_cannot_go_on() -> None:
    """What is not a number, and a state outside its set, end a run with a sentence that names the event."""
    found = odesim.integrate(system({x: -1}, [Event("low", x - 0.5, resets={x: sp.log(x - 1)})], 1), **PLAIN)
    assert found.status == "non_finite" and "the event low sets x to nan at t = 0.5" in found.message
    p = Symbol("p", positive=True)
    found = odesim.integrate(system({p: -p}, [Event("low", p - 0.5, resets={p: p - 1})], 1), **PLAIN)
    assert found.status == "left_domain" and "the event low sets p to -0.5, which leaves (0, inf)" in found.message


def test_float32() -> None:
    """In float32 each ball bounces as often as in float64, within the rounding of its times."""
    found = odesim.integrate(BALLS, params={"h": (1.0, 0.5)}, dtype="float32", backend="numpy", rtol=1e-5, atol=1e-6)
    times = [e["t"] for e in found.events["bounce"] if e["index"] == (0,)]
    np.testing.assert_allclose(times, bounces(1.0), rtol=1e-5)


WRONG: dict[str, tuple[Any, str]] = {
    "no dict": ([x], "resets must be a dict"),
    "text": ({"x": 0}, "resets has the key 'x': write a state"),
    "unknown": ({k: 0}, "no state 'k' in resets; it has x, n|no state 'k'"),
    "parameter": ({a: 0}, "a is a parameter, and resets change states: make it a state with the equation 0"),
    "value": ({x: "0"}, "the reset of x must be an expression"),
    "symbol": ({x: b}, "no symbol 'b'"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_resets_are_refused(wrong: str) -> None:
    """One sentence that names the event."""
    resets, sentence = WRONG[wrong]
    with pytest.raises(SpecError, match=sentence) as error:
        system({x: -a * x, n: 0}, [Event("hit", x - 1, resets=resets)], 0, {a: 1.0})
    assert "event 'hit'" in str(error.value) and error.value.part == ("events", 0)


def test_what_is_not_done_is_refused() -> None:
    """A function of time that only touches 0 or of which no ranges are known, two values for one element, the rescaled clock."""
    for expr, sentence in ((Mod(t, q), "does not pass it"), (sp.LambertW(t) - 2, "cannot be computed")):
        with pytest.raises(SpecError, match=sentence):
            system({x: 0}, [Event("tick", expr, resets={x: 1})], 0, {q: 1.0})
    y = IndexedBase("y", shape=(2,))
    (i,), both = index("i"), Event("twice", t - 1, resets={y[0]: 1, y[1]: 2})
    assert odesim.integrate(system({y[i]: 0}, [both], axes={i: 2}), **PLAIN).final["y"].tolist() == [1, 2]
    again = Event("twice", t - 1, resets={y[i]: 1, y[0]: 2})
    with pytest.raises(SolveError, match="the event twice sets an element of y twice"):
        odesim.integrate(system({y[i]: 0}, [again], axes={i: 2}), **PLAIN)
    with pytest.raises(SpecError, match="event 'hit' resets states, which the rescaled clock cannot do"):
        odesim.integrate(system({x: x**2}, [Event("hit", x - 2, resets={x: 1})], 1, growth=x), clock="rescaled", **PLAIN)


def pulse_coupled(currents: Any, falls: bool, end: float) -> tuple[list[tuple[float, int]], Any]:
    """Neurons V' = I - V that fire at 1, by their closed form: when which one fires, and V at the end. None fires another.

    The others are raised by .01; falls: over their distance.
    """
    now, V = 0.0, np.zeros(len(currents))
    fired: list[tuple[float, int]] = []
    while True:
        waits = np.log((currents - V) / (currents - 1))
        first = int(np.argmin(waits))
        step = min(waits[first], end - now)
        now, V = now + step, currents + (V - currents) * np.exp(-step)
        if now >= end:
            return fired, V
        fired.append((now, first))
        V = np.array([0.0 if k == first else V[k] + 0.01 / (abs(k - first) if falls else 1) for k in range(len(V))])
        assert V.max() < 1


@pytest.mark.parametrize(("run", "falls"), [("tsit5", False), ("numpy", True), ("rodas5p", True)])
def test_own_component_and_all_others(run: str, falls: bool) -> None:
    """{V[i]: 0, V[j]: V[j] + eps} sets the neuron that fires to 0 and raises all others; beside plain loops, to the tolerance of a run.

    falls: V[j] + eps/|i - j|, which is infinite where j is i.
    """
    (i, j), (N,) = index("i j"), sizes("N")
    V, current, eps = IndexedBase("V", shape=(N,)), IndexedBase("current", shape=(N,)), sp.Rational(1, 100)
    fires = Event("fires", V[i] - 1, direction=1, resets={V[i]: 0, V[j]: V[j] + (eps / sp.Abs(i - j) if falls else eps)})
    neurons = System(
        name="own.pulses",
        source=Source("own", "test"),
        axes={i: N},  # that of j is known from V[j]
        equations={V[i]: current[i] - V[i]},
        params=(Param(current, 2.0, REALS, ""),),
        initial={V[i]: 0},
        events=(fires,),
    )
    currents = np.array([1.3, 1.7, 2.4])
    fired, end = pulse_coupled(currents, falls, 5.0)
    here = odesim.integrate(neurons, params={"current": currents}, span=(0, 5), **{"rtol": 1e-9, "atol": 1e-11, **RUNS[run]})
    events = here.events["fires"]
    assert len(fired) > 10 and [e["index"] for e in events] == [(k,) for _, k in fired]
    np.testing.assert_allclose([e["t"] for e in events], [time for time, _ in fired], atol=1e-7)
    np.testing.assert_allclose(here.final["V"], end, atol=1e-7)
