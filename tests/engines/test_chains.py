"""Random chains of events and resets with ties: the run of a plain simulator in fractions."""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from random import Random
from typing import Any

import pytest
import sympy as sp

import odesim
from odesim.symbolic import Event, Source, System
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
        scale = Fraction(*random.choice([(1, 1), (-1, 1), (1, 3), (7, 10)]))
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
        span=(0.0, float(END)),
    )


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
}


def difference(rules: list[Rule], exact: Outcome, **options: Any) -> str:
    """How the run of a list of events differs from the exact one; "" if it does not."""
    run = odesim.integrate(model(rules), **options)
    if run.status != exact.status:
        return f"{run.status}, right {exact.status}: {run.message}"
    for rule in rules:
        right = [float(time) for time, name in exact.events if name == rule.name]
        if [e["t"] for e in run.events[rule.name]] != pytest.approx(right, abs=1e-9):
            return f"{rule.name} at {[e['t'] for e in run.events[rule.name]]}, right {right}"
    if exact.status != "sliding":
        final = {name: float(run.final[name]) for name in NAMES}
        if final != pytest.approx({name: float(value) for name, value in exact.states.items()}, abs=1e-9):
            return f"ends at {final}, right {exact.states}"
    return ""


@pytest.mark.parametrize("run", RUNS)
def test_chains(run: str) -> None:
    """Which events happen, when, how often and in which order: w has it. Everything is linear: 1e-9 is far above rounding."""
    for rules, exact in itertools.islice(chains(len(run)), 40):
        assert not difference(rules, exact, **RUNS[run]), rules
