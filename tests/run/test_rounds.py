"""Members that events set: in lanes, with the bits of single runs, and the numbers of closed forms, of fractions and of scipy."""

import itertools
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp
from sympy import Abs, Max, cos, pi, sin

import odesim
from odesim.api.ensemble import ensemble_arguments, members_and_request
from odesim.run.choose import engine_key, make_engine
from odesim.run.lanes import LaneEngine
from odesim.run.resets import Resetting
from odesim.symbolic import Event, System, named
from odesim.symbolic import time as t
from tests.run.test_chains import ARRAYS, END, LEVELS, NAMES, SLOPES, START, chains, model, rules_of_arrays
from tests.run.test_event_sides import END as LAST
from tests.run.test_event_sides import counted, falls
from tests.run.test_resets import system
from tests.support.balls import BALLS, bounces, flight
from tests.support.exact_events import Affine, CloseError, simulate
from tests.support.matrix import slow_but
from tests.support.threads import same_as_runs

x, v, n, w, F, c, r, a, b, q = sp.symbols("x v n w F c r a b q", real=True)
METHODS = slow_but(["tsit5", "rodas5p"], ["tsit5"])


def ensemble(own: System, params: Any, **options: Any) -> Any:
    """A strict ensemble, which runs in lanes."""
    options = {"params": params, "strict": True, **options}
    members, request = members_and_request(own, *ensemble_arguments(**options))
    assert isinstance(make_engine(request, members), LaneEngine)
    return odesim.ensemble(own, **options)


def statuses(found: Any) -> list[str]:
    return [found.attrs["status_names"][s] for s in found.status.values]


def times(found: Any, name: str, member: int) -> Any:
    return found[f"{name}_t"].values[member, : int(found[f"{name}_count"].values[member])]


@pytest.mark.parametrize("method", METHODS)
def test_balls(method: str) -> None:
    """Balls of their own restitution: bits of runs, parabolas between bounces to rounding, and an end where bounces pile up."""
    own = {"c": np.array([0.2, 0.8, 0.75, 0.85, 0.9]), "h": np.array([[1.0, 0.5], [1.0, 0.5], [2.0, 0.8], [0.4, 0.4], [3.0, 1.0]])}
    found = ensemble(BALLS, own, method=method, save=9, max_events=40)
    assert statuses(found) == ["sliding", "ok", "ok", "ok", "ok"]
    same_as_runs(found, BALLS, 5, own, method=method, save=9)
    for member in range(1, 5):
        for ball in range(2):
            h, c_ = own["h"][member, ball], own["c"][member]
            mine = found.bounce_index.values[member] == ball
            assert_allclose(found.bounce_t.values[member, mine], bounces(h, c=c_), rtol=1e-11)
            exact = np.array([flight(time, h, c=c_) for time in found.time.values])
            assert_allclose(found.x.values[member, :, ball], exact[:, 0], atol=1e-11)
            assert_allclose(found.v.values[member, :, ball], exact[:, 1], atol=1e-11)


IMPACTS = system({x: v, v: F * cos(w * t) - x}, [Event("hit", x - c, 1, resets={v: -r * v})], 0, {w: 0.7, F: 1.0, c: 0.5, r: 0.8})


def loop(w: float, F: float, c: float, r: float, end: float) -> tuple[list[float], Any]:
    """Times of impacts and the state at the end, by scipy, begun again after each impact."""

    def hit(_: float, y: Any) -> float:
        return float(y[0] - c)

    hit.terminal, hit.direction = True, 1  # type: ignore[attr-defined]
    time, y, hits = 0.0, np.zeros(2), list[float]()
    while time < end:
        tight: Any = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12, "events": hit, "max_step": 0.1}
        part = solve_ivp(lambda s, z: [z[1], F * np.cos(w * s) - z[0]], (time, end), y, **tight)
        time, y = float(part.t[-1]), part.y[:, -1]
        if part.status == 1:
            hits.append(time)
            y = np.array([c, -r * y[1]])
    return hits, y


@pytest.mark.parametrize("method", METHODS)
def test_impacts(method: str) -> None:
    """An oscillator that strikes a wall: bits of runs, and the times of scipy to 1e-6, 1000 rtol: an impact is as wrong as its time."""
    own = {"w": np.array([0.7, 0.9, 1.1, 1.7]), "F": np.array([1.0, 0.8, 1.2, 0.9]), "r": np.array([0.8, 0.5, 0.95, 0.6])}
    run: dict[str, Any] = {"method": method, "rtol": 1e-9, "atol": 1e-11, "span": (0.0, 12.0)}
    found = ensemble(IMPACTS, own, **run)
    same_as_runs(found, IMPACTS, 4, own, **run)
    for member in range(4):
        hits, y = loop(own["w"][member], own["F"][member], 0.5, own["r"][member], 12.0)
        assert len(hits) > 1
        assert_allclose(times(found, "hit", member), hits, atol=1e-6)
        assert_allclose([found.x.values[member, -1], found.v.values[member, -1]], y, atol=1e-6)


def test_compiled_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two walls, one struck from any side, counted hits and saved times need no rule of numpy's, and give the bits of single runs."""
    walls = [Event("hit", x - c, 1, resets={v: -r * v, n: n + 1}), Event("back", x + c, 0, resets={v: -r * v})]
    between = system({x: v, v: F * cos(w * t) - x, n: 0}, walls, 0, {w: 0.7, F: 1.0, c: 0.5, r: 0.8})
    own = {"w": np.array([0.7, 0.9, 1.1, 1.7]), "F": np.array([1.0, 0.8, 1.2, 0.9])}
    run: dict[str, Any] = {"method": "tsit5", "span": (0.0, 12.0), "save": 9}
    by_numpy = odesim.integrate(between, params={name: values[2] for name, values in own.items()}, strict=True, **run)
    monkeypatch.setattr(Resetting, "collect", None)
    found = ensemble(between, own, **run)
    assert found.n.values[:, -1].min() > 1
    for name in ("x", "v", "n"):
        assert_array_equal(found[name].values[2], by_numpy.y[name])


@pytest.mark.parametrize("method", METHODS)
def test_doses(method: str) -> None:
    """x' = -a x with b at each multiple of a member's own q, that at the end included: a sum of powers to 1e-5, 10 rtol."""
    own = {"a": np.array([0.5, 0.2, 1.0, 0.4]), "q": np.array([1.0, 0.7, 2.5, 11.0])}
    model = system({x: -a * x, n: 0}, [Event("dose", sin(pi * t / q), resets={x: x + b, n: n + 1})], 0, {a: 0.5, b: 2.0, q: 1.0})
    run: dict[str, Any] = {"method": method, "save": [1.0, 2.5, 7.0, 10.0]}
    found = ensemble(model, own, max_events=20, **run)
    same_as_runs(found, model, 4, own, **run)
    for member, (rate, period) in enumerate(zip(own["a"], own["q"], strict=True)):
        for k, time in enumerate(found.time.values):
            doses = period * np.arange(1, int(time / period * (1 + 1e-12)) + 1)
            assert found.n.values[member, k] == len(doses)
            assert found.x.values[member, k] == pytest.approx(2 * np.exp(-rate * (time - doses)).sum(), rel=1e-5)


def test_chains() -> None:
    """Members that start elsewhere, whose events meet in ties and set off others: what fractions say, to rounding, and the bits of runs."""
    for rules, _ in itertools.islice(chains(3), 1):
        starts, exact = [], []
        for k in range(12):
            start = {**START, "x": Fraction(k, 10), "z": Fraction(k % 3, 2)}
            try:
                exact.append(simulate(SLOPES, start, rules, END))
                starts.append(start)
            except CloseError:
                pass
        initial = {name: np.array([float(start[name]) for start in starts]) for name in ("x", "z")}
        own = model(rules)
        run: dict[str, Any] = {"method": "tsit5", "span": (0.0, float(END))}
        found = ensemble(own, {}, initial=initial, max_events=60, **run)
        same_as_runs(found, own, len(starts), initial=initial, **run)
        assert len(starts) > 5
        for member, outcome in enumerate(exact):
            assert statuses(found)[member] == outcome.status
            for rule in rules:
                right = [float(time) for time, name in outcome.events if name == rule.name]
                assert_allclose(times(found, rule.name, member), right, atol=1e-9)
            if outcome.status != "sliding":
                assert_allclose([found[name].values[member, -1] for name in NAMES], [float(outcome.states[s]) for s in NAMES], atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_components(method: str) -> None:
    """Components that fire, are kicked and are seen at the same times, each member's in its own order: what fractions say."""
    random, own, exact = Random(5), list[Any](), list[Any]()
    while len(own) < 20:
        level = random.choice(LEVELS)
        levels = [[random.choice([level, random.choice(LEVELS)]) for _ in range(3)] for _ in range(3)]
        slopes: dict[str, Affine] = {**{f"y{k}": {"1": Fraction(1)} for k in range(3)}, "w": {}, "r": {}}
        try:
            exact.append(simulate(slopes, dict.fromkeys(slopes, Fraction(0)), rules_of_arrays(*levels), END))
            own.append(levels)
        except CloseError:
            pass
    params = {name: np.array([[float(level) for level in levels[k]] for levels in own]) for k, name in enumerate("cpd")}
    run: dict[str, Any] = {"method": method, "span": (0.0, float(END))}
    found = ensemble(ARRAYS, params, max_events=60, **run)
    same_as_runs(found, ARRAYS, 6, params, **run)
    assert statuses(found) == [outcome.status for outcome in exact]
    for member, outcome in enumerate(exact):
        every = np.sort(np.concatenate([times(found, name, member) for name in ("fire", "kick", "see")]))
        assert_allclose(every, [float(time) for time, _ in outcome.events], atol=1e-9)
        if outcome.status == "ok":
            assert found.w.values[member, -1] == pytest.approx(float(outcome.states["w"]), abs=1e-9)


@pytest.mark.first(1)  # a kernel each
@pytest.mark.parametrize("g", [3 * (Abs(x - c) + x - c), Max(x - c, 0)], ids=str)
def test_functions_that_come_to_rest(g: Any) -> None:
    """A function that comes down to 0 and stays there happens once each time, in each member. 1e-7: 100 rtol."""
    own = {"c": np.random.default_rng(1).uniform(-1.8, 1.8, 9)}
    found = ensemble(counted(g, 2 * cos(t), LAST), own, method="tsit5", rtol=1e-9, atol=1e-12)
    for member, at in enumerate(own["c"]):
        assert_allclose(times(found, "here", member), falls(at), atol=1e-7)
        assert found.n.values[member, -1] == len(falls(at))


def test_slopes() -> None:
    """Sensitivities of members through resets: the closed form of a tank that is emptied at the start of some. 1e-8: 10 rtol."""
    full = Event("full", x - a, 1, resets={x: b * x}, at_start=True)
    tank = system({x: -x / 2}, [full], {x: q}, {a: 1.0, b: 0.25, q: 2.0}, span=(0.0, 1.0))
    own = {"q": np.array([2.0, 0.5, 3.0])}
    found = ensemble(tank, own, method="tsit5", rtol=1e-9, atol=1e-11, sensitivities=("q", "b"))
    emptied = own["q"] >= 1
    assert_allclose(found["dx_dq"].values[:, -1], np.where(emptied, 0.25, 1) * np.exp(-0.5), rtol=1e-8)
    assert_allclose(found["dx_db"].values[:, -1], np.where(emptied, own["q"], 0) * np.exp(-0.5), rtol=1e-8)


def test_layers() -> None:
    """Thirty steps of the logistic map at an event, each a name that the next reads twice: those of a loop, to rounding."""
    z: Any = x
    for k in range(30):
        z = named(f"z{k}", a * z * (1 - z))
    mapped = system({x: 0}, [Event("step", t - 1, 1, resets={x: z})], 0.3, {a: 3.2}, span=(0.0, 2.0))
    own = {"a": np.array([2.8, 3.2, 3.3])}
    found = ensemble(mapped, own, method="tsit5")
    same_as_runs(found, mapped, 3, own, method="tsit5")
    right = np.full(3, 0.3)
    for _ in range(30):
        right = own["a"] * right * (1 - right)
    assert_allclose(found.x.values[:, -1], right, rtol=1e-12)


ENDS = system(
    {x: v, v: -1, n: F * n**2},
    [
        Event("hit", x, -1, resets={v: -r * v, n: n + a}),
        Event("full", n - 3 - 10**20 * F, 1, terminal=True),
        Event("loud", sin(40 * t), 1),
    ],
    {x: 1, v: 0, n: 0.1},
    {r: 0.9, F: 0.0, a: 0.0},
    span=(0.0, 10.0),
)


def test_ends() -> None:
    """Members that end otherwise have the bits of runs: a terminal event that is set off, states that run away, too many steps."""
    own = {"r": np.array([0.9, 0.9, 0.9, 0.3, 0.95]), "F": np.array([0.0, 0.0, 5.0, 0.0, 0.0]), "a": np.array([0.0, 1.0, 0.0, 0.0, 0.0])}
    for most, ends in (
        (10**6, ["ok", "event", "blow_up", "sliding", "ok"]),
        (200, ["max_steps", "event", "max_steps", "sliding", "max_steps"]),
    ):
        run: dict[str, Any] = {"method": "tsit5", "max_steps": most, "save": 5}
        found = ensemble(ENDS, own, **run)
        assert statuses(found) == ends
        same_as_runs(found, ENDS, 5, own, **run)


def test_members_do_not_depend_on_others() -> None:
    """Alone, in another order, and in threads, members have the same bits."""
    own = {"r": np.linspace(0.4, 0.95, 300), "a": np.linspace(0.0, 0.2, 300)}
    run: dict[str, Any] = {"method": "tsit5", "save": 5}
    whole = ensemble(ENDS, own, **run)
    some = ensemble(ENDS, {name: values[::-7] for name, values in own.items()}, **run)
    threads = ensemble(ENDS, own, threads=2, **run)
    for name in ("x", "v", "n", "status", "steps", "t_end", "hit_t", "loud_count", "x_end"):
        assert_array_equal(whole[name].values[::-7], some[name].values)
        assert_array_equal(whole[name].values, threads[name].values)


def test_what_is_set_names_the_engine() -> None:
    """Members whose events set other states are those of another engine, though the kernel is the same."""
    keys = set()
    for factor in (1, 2):
        own = system({x: v, v: -1}, [Event("hit", x, -1, resets={v: -r * v / factor})], 1, {r: 0.9})
        members, request = members_and_request(own, *ensemble_arguments(params={"r": [0.8, 0.9]}, method="tsit5"))
        keys.add(engine_key(make_engine(request, members)))
    assert len(keys) == 2
