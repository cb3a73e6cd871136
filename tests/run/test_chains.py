"""Random chains of events and resets with ties: the run of a plain simulator in fractions."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
import sympy as sp

import odesim
from odesim.run.event_functions import EventFunctions
from odesim.symbolic import Event, IndexedBase, Param, Source, System, index, sizes
from odesim.symbolic import time as t
from tests.support.exact_events import Affine, CloseError, Outcome, Rule, simulate

NAMES = ("x", "z", "r", "s", "w")
STATES = dict(zip(NAMES, sp.symbols("x z r s w", real=True), strict=True))
SLOPES: dict[str, Affine] = {"x": {"1": Fraction(1)}, "z": {"s": Fraction(1)}, "r": {}, "s": {}, "w": {}}
"""x is a clock that resets may set, z moves up or down by s, r is a mark, and w remembers the order of the events."""
START = {"x": Fraction(0), "z": Fraction(0), "r": Fraction(0), "s": Fraction(1), "w": Fraction(0)}
LEVELS = [Fraction(*c) for c in ((1, 2), (7, 10), (1, 1), (3, 2), (41, 10), (1, 3), (3, 1), (11, 5))]
END = Fraction(23, 4)


def expression(e: Affine) -> Any:
    """The sympy form of an affine expression."""
    every = {**STATES, "t": t, "1": sp.S.One}
    return sp.Add(*(sp.Rational(c.numerator, c.denominator) * every[name] for name, c in e.items()))


def random_rules(random: Random) -> list[Rule]:
    """Three to five events, most of which meet at the same times."""
    level = random.choice(LEVELS)

    def some_level() -> Fraction:
        return level if random.random() < 0.7 else random.choice(LEVELS)

    def function() -> tuple[Affine, Fraction | None]:
        kind = random.randrange(9)
        c, one = -some_level(), Fraction(1)
        if kind == 0:
            return {}, -c
        if kind == 1:  # of a memory
            return {"r": one, "1": Fraction(random.choice([-1, 1, 2]), 2)}, None
        forms: list[Affine] = [
            {"t": one},
            {"t": one, "r": -one},
            {"x": one, "r": -one},
            {"x": one},
            {"z": one},
            {"t": 2 * one, "x": -one},
            {"z": one, "r": one},
        ]
        scale = Fraction(*random.choice([(1, 1), (-1, 1), (1, 3), (7, 10), (1, 2**30), (2**30, 1)]))
        return {name: scale * a for name, a in {**forms[kind - 2], "1": c}.items()}, None

    def reset() -> dict[str, Affine]:
        one, c = Fraction(1), random.choice([Fraction(2), Fraction(-3), some_level()])
        choices: list[dict[str, Affine]] = [
            {"r": {"t": one}},
            {"r": {"x": one}},
            {"r": {"1": c}},
            {"r": {"r": -one}},
            {"r": {"r": one, "1": c}},
            {"x": {"t": one}},
            {"x": {"1": Fraction(0)}},
            {"x": {"x": one, "1": -c}},
            {"s": {"s": -one}},
            {"z": {"1": Fraction(0)}},
            {"z": {"z": one, "1": c}},
            {},
        ]
        return {**random.choice(choices), **random.choice(choices)}

    rules = []
    for k in range(random.randint(3, 5)):
        g, period = function()
        resets = {**reset(), "w": {"w": Fraction(1, 2), "1": Fraction(k + 1)}} if random.random() < 0.9 else {}
        rules.append(Rule(f"e{k}", g, random.choice([0, 0, 1, -1]), resets, random.random() < 0.05, period, random.random() < 0.1))
    return rules


def model(rules: list[Rule]) -> System:
    """The System with these events."""
    events = []
    for rule in rules:
        g = (
            expression(rule.function)
            if rule.period is None
            else sp.sin(sp.pi * t / sp.Rational(rule.period.numerator, rule.period.denominator))
        )
        resets = {STATES[name]: expression(e) for name, e in rule.resets.items()}
        more: dict[str, Any] = {"at_start": True} if rule.at_start else {}
        events.append(Event(rule.name, g, rule.direction, rule.terminal, resets=resets, **more))
    return System(
        name="chains",
        source=Source("own", "test"),
        axes={},
        equations={STATES[name]: expression(e) for name, e in SLOPES.items()},
        params=(),
        initial={STATES[name]: sp.Rational(v.numerator, v.denominator) for name, v in START.items()},
        events=tuple(events),
    )


def turned(rules: list[Rule], clock: str, level: Fraction) -> System:
    """The System with these events, in which z goes down from where a clock has come to a level."""
    own, at = model(rules), t if clock == "t" else STATES[clock]
    turns = sp.Piecewise((1, at < sp.Rational(level.numerator, level.denominator)), (-1, True))
    return replace(own, equations={**own.equations, STATES["z"]: turns})


def chains(seed: int) -> Iterator[tuple[list[Rule], Outcome]]:
    """Random lists of events that doubles can follow, each in two orders, with their outcomes."""
    random = Random(seed)
    while True:
        rules = random_rules(random)
        for order in [rules, random.choice(list(itertools.permutations(rules)))]:
            try:
                exact = simulate(SLOPES, START, list(order), END)
            except CloseError:
                break
            if exact.events:
                yield list(order), exact


RUNS: dict[str, dict[str, Any]] = {
    "tsit5": {"method": "tsit5", "backend": "numpy"},
    "vern7": {"method": "vern7", "backend": "numpy"},
    "rodas5p": {"method": "rodas5p", "backend": "numpy"},
    "fixed": {"method": "rk4", "step": 0.37, "backend": "numpy"},
    "single": {"method": "tsit5", "dtype": "float32", "rtol": 1e-5, "atol": 1e-6, "backend": "numpy"},
}


def difference(rules: list[Rule], exact: Outcome, system: System | None = None, **options: Any) -> str:
    """How the run of a list of events differs from the exact one, by more than 1e-9 (1e-3 in float32); "" if it does not."""
    near = 1e-3 if "dtype" in options else 1e-9
    run = odesim.integrate(system or model(rules), **{"span": (0.0, float(END)), **options})
    if run.status != exact.status:
        return f"{run.status}, right {exact.status}: {run.message}"
    for rule in rules:
        right = [float(time) for time, name in exact.events if name == rule.name]
        if [e["t"] for e in run.events[rule.name]] != pytest.approx(right, abs=near):
            return f"{rule.name} at {[e['t'] for e in run.events[rule.name]]}, right {right}"
    if exact.status != "sliding":
        final = {name: float(run.final[name]) for name in NAMES}
        if final != pytest.approx({name: float(value) for name, value in exact.states.items()}, abs=near):
            return f"ends at {final}, right {exact.states}"
    return ""


@pytest.mark.first(3)
@pytest.mark.parametrize("run", RUNS)
def test_chains(run: str) -> None:
    """Which events happen, when, how often and in which order: w has it. Everything is linear: 1e-9 is far above rounding."""
    for rules, exact in itertools.islice(chains(len(run)), 6):
        assert not difference(rules, exact, **RUNS[run]), rules


@pytest.mark.parametrize("clock", ["t", "x"])
@pytest.mark.parametrize("run", ["tsit5", pytest.param("rodas5p", marks=pytest.mark.slow)])
def test_beside_conditions(clock: str, run: str) -> None:
    """The right-hand side jumps at a time, or at a level of a state that resets move, where events happen too."""
    random, left = Random(clock), 6
    while left:
        rules, level = random_rules(random), random.choice(LEVELS)
        try:
            exact = simulate(SLOPES, START, rules, END, {"z": (clock, level)})
        except CloseError:
            continue
        left -= 1
        assert not difference(rules, exact, turned(rules, clock, level), **RUNS[run]), (level, rules)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.slow
def test_many_chains(run: str) -> None:
    """As test_chains, each with lists of its own."""
    for rules, exact in itertools.islice(chains(100 + list(RUNS).index(run)), 80):
        assert not difference(rules, exact, **RUNS[run]), rules


@pytest.mark.parametrize(
    "options", [{}, pytest.param({"strict": True, "method": "rodas5p"}, marks=pytest.mark.slow)], ids=["auto", "strict"]
)
def test_compiled(options: Any) -> None:
    """The same of a compiled right-hand side."""
    rules, exact = next(chains(7))
    assert not difference(rules, exact, **options), rules


def test_every_order_of_the_list() -> None:
    """Five events that meet at one time, in every tenth of 120 orders."""
    level = Fraction(7, 10)
    one = Fraction(1)
    rules = [
        Rule("e0", {"t": one, "1": -level}, 0, {"r": {"1": Fraction(2)}, "w": {"w": one / 2, "1": one}}),
        Rule("e1", {"t": one, "r": -one, "1": -level}, 0, {"w": {"w": one / 2, "1": 2 * one}}),
        Rule("e2", {"t": one, "1": -level}, 1, {"r": {"1": Fraction(-3)}, "w": {"w": one / 2, "1": 3 * one}}),
        Rule("e3", {"x": one, "r": -one, "1": -level}, -1, {"x": {"t": one}, "w": {"w": one / 2, "1": 4 * one}}),
        Rule("e4", {"z": one, "1": -level}, 0, {"s": {"s": -one}, "w": {"w": one / 2, "1": 5 * one}}),
    ]
    for k, order in enumerate(itertools.permutations(rules)):
        if k % 10 == 0:
            exact = simulate(SLOPES, START, order, END)
            assert not difference(list(order), exact, **RUNS["tsit5"]), order


def test_members() -> None:
    """Members of an ensemble are runs, ties included: an event on a state beside one on the time alone, for each level."""
    x, r, n, c = (sp.Symbol(name, real=True) for name in "xrnc")
    events = (Event("reach", x - r - c, resets={n: n + 1}), Event("shift", t - c, resets={r: 5}), Event("seen", x - c))
    own = System(
        name="own",
        source=Source("own", "test"),
        axes={},
        equations={x: 1, r: 0, n: 0},
        params=(Param(c, 1.0, sp.Interval(-sp.oo, sp.oo), ""),),
        initial={x: 0, r: 0, n: 0},
        events=events,
        span=(0.0, 4.5),
    )
    levels = [0.5, 0.7, 1.0, 1.5, 3.0, 4.1]
    run = odesim.ensemble(own, params={"c": levels})
    for name in ("reach", "shift", "seen"):
        assert run[f"{name}_count"].values.tolist() == [1] * 6, name
    assert run.n.values[:, -1].tolist() == [1] * 6


(i, j), (N,) = index("i j"), sizes("N")
y, c, p, d = (IndexedBase(name, shape=(N,)) for name in "ycpd")
w, r = STATES["w"], STATES["r"]
ARRAYS = System(
    name="own",
    source=Source("own", "test"),
    axes={i: N, j: N},
    equations={y[i]: 1, w: 0, r: 0},
    params=tuple(Param(a, 1.0, sp.Interval(-sp.oo, sp.oo), "") for a in (c, p, d)),
    initial={y[i]: 0, w: 0, r: 0},
    sizes={N: 3},
    events=(
        Event("fire", y[i] - c[i] - r, 0, resets={y[i]: y[i] - p[i], w: w / 2 + i + 1}),
        Event("kick", t - d[i], 1, resets={y[j]: y[j] + (j - 1) * c[i] / 2, w: w / 2 + i + 10, r: r + i - 1}),
        Event("see", y[i] - r - 2, 1, resets={w: w / 2 + i + 20}),
    ),
)


def rules_of_arrays(c: list[Fraction], p: list[Fraction], d: list[Fraction]) -> list[Rule]:
    """The events of ARRAYS, a rule for each component."""
    one = Fraction(1)

    def w(k: int) -> Affine:
        return {"w": one / 2, "1": Fraction(k)}

    fire = [
        Rule(f"fire{k}", {f"y{k}": one, "r": -one, "1": -c[k]}, 0, {f"y{k}": {f"y{k}": one, "1": -p[k]}, "w": w(k + 1)}) for k in range(3)
    ]
    kicks = [{f"y{m}": {f"y{m}": one, "1": (m - 1) * c[k] / 2} for m in range(3)} for k in range(3)]
    kick = [
        Rule(f"kick{k}", {"t": one, "1": -d[k]}, 1, {**kicks[k], "w": w(k + 10), "r": {"r": one, "1": Fraction(k - 1)}}) for k in range(3)
    ]
    return [*fire, *kick, *(Rule(f"see{k}", {f"y{k}": one, "r": -one, "1": Fraction(-2)}, 1, {"w": w(k + 20)}) for k in range(3))]


@pytest.mark.parametrize("method", ["tsit5", pytest.param("rodas5p", marks=pytest.mark.slow)])
def test_components(method: str) -> None:
    """Components that fire, are kicked and are seen at the same times, as events of their own."""
    random, left = Random(method), 12
    while left:
        level = random.choice(LEVELS)
        own = [[random.choice([level, random.choice(LEVELS)]) for _ in range(3)] for _ in range(3)]
        slopes: dict[str, Affine] = {**{f"y{k}": {"1": Fraction(1)} for k in range(3)}, "w": {}, "r": {}}
        try:
            exact = simulate(slopes, dict.fromkeys(slopes, Fraction(0)), rules_of_arrays(*own), END)
        except CloseError:
            continue
        left -= 1
        params = {name: list(map(float, values)) for name, values in zip("cpd", own, strict=True)}
        run = odesim.integrate(ARRAYS, params=params, span=(0, float(END)), method=method, backend="numpy")
        found = {f"{name}{e['index'][0]}" for name, events in run.events.items() for e in events}
        times = sorted(e["t"] for events in run.events.values() for e in events)
        assert run.status == exact.status and found == {name for _, name in exact.events}, own
        assert times == pytest.approx([float(time) for time, _ in exact.events], abs=1e-9), own
        assert run.final["w"] == pytest.approx(float(exact.states["w"]), abs=1e-9) or exact.status == "sliding", own


@pytest.mark.parametrize("period", [Fraction(1, 100), Fraction(1, 3), Fraction(7, 30)])
def test_clocks(period: Fraction) -> None:
    """A clock that sets itself ticks as often as its period fits into the span, the last time at its end; another counts with it."""
    one = Fraction(1)
    rules = [
        Rule("e0", {"t": one, "r": -one, "1": -period}, 0, {"r": {"t": one}}),
        Rule("e1", {"t": one, "r": -one, "1": -period}, 0, {"s": {"s": one, "1": one}}),
    ]
    for order in (rules, rules[::-1]):
        assert not difference(order, simulate(SLOPES, START, order, 14 * period, most=99), span=(0.0, float(14 * period)), **RUNS["tsit5"])


@pytest.mark.parametrize("apart", [1e-15, 1e-13, 1e-6])
@pytest.mark.parametrize("at", [1.0, 1e3])
def test_close_times_at_rest(apart: float, at: float) -> None:
    """Two doses as close as doubles are told apart, and the end of the span as close behind them."""
    n = sp.Symbol("n", real=True)
    later = at + apart * at
    events = (Event("a", t - at, resets={n: n + 1}), Event("b", t - sp.Float(later, 17), resets={n: n + 1}))
    for end in (later, later + apart * at, 2 * at):
        own = System(name="own", source=Source("own", "test"), axes={}, equations={n: 0}, params=(), initial={n: 0}, events=events)
        run = odesim.integrate(own, span=(0, end), backend="numpy", method="tsit5")
        assert (run.status, run.final["n"]) == ("ok", 2)


def test_events_that_share_a_time_cost_no_more_than_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluations of functions, rates and resets: four times as many events, at most five times as many."""
    counts: list[int] = []
    values = EventFunctions.values

    def counted(*args: Any, **more: Any) -> Any:
        counts[-1] += 1
        return values(*args, **more)

    monkeypatch.setattr(EventFunctions, "values", counted)
    for count in (8, 32):
        counts.append(0)
        every = sp.symbols(f"y:{count}", real=True)
        events = tuple(Event(f"e{k}", y - 1, resets={y: y - 1}) for k, y in enumerate(every))
        own = System(
            name="own",
            source=Source("own", "test"),
            axes={},
            equations=dict.fromkeys(every, 1),
            params=(),
            initial=dict.fromkeys(every, 0),
            events=events,
        )
        run = odesim.integrate(own, span=(0, 1.5), backend="numpy", method="tsit5")
        assert all(len(run.events[event.name]) == 1 for event in events)
    assert counts[1] < 5 * counts[0]


@pytest.mark.parametrize("count", [6, 7, pytest.param(12, marks=pytest.mark.slow)])
def test_stiff_members_of_any_size(count: int) -> None:
    """y' = i + 1 from 0 back to 0 at c in members, by formulas, for a kernel in one piece and in parts: 100 rtol."""
    back = System(
        name="own", source=Source("own", "test"), axes={i: N}, equations={y[i]: 1 + i}, params=(Param(w, 1.0, sp.Interval(0, sp.oo), ""),),
        initial={y[i]: 0}, sizes={N: count}, events=(Event("back", y[i] - w, resets={y[i]: 0}),), span=(0.0, 2.0),
    )  # fmt: skip
    levels, rates = np.array([0.53, 0.77, 0.93]), 1.0 + np.arange(count)
    run = odesim.ensemble(back, params={"w": levels}, method="rodas5p")
    assert run.back_count.values.tolist() == [int(np.floor(2 * rates / level).sum()) for level in levels]
    np.testing.assert_allclose(run.y.values[:, -1], np.mod(2 * rates, levels[:, None]), atol=1e-4)
