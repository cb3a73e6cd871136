"""Events of Maps, held against plain loops over random maps: the first iterate at which a function has changed sides, or is zero."""

from typing import Any

import numpy as np
import pytest
from sympy import Interval, oo, symbols

import odesim
from odesim.symbolic import Event, IndexedBase, Map, Param, Source, System, index, sizes

(m,), (M,) = index("m"), sizes("M")
x, c = IndexedBase("x", shape=(M,)), IndexedBase("c", shape=(M,))
a, p = symbols("a p", real=True)
STEPS, DIRECTIONS = 60, {"both": 0, "up": 1, "down": -1}
# multiples of 1/8 modulo 16: values are 0 again and again, and no bit is lost
NUMBERS = (Param(c, 0.0, Interval(-oo, oo), "levels"), Param(a, 3.0, Interval(-oo, oo), "factor"))


def walk(**flags: Any) -> System:
    """x <- (a x + p) mod 16 - 8, p <- p + 5/8 mod 1: each component passes its level, or meets it."""
    events = tuple(Event(name, x[m] - c[m], direction, **flags) for name, direction in DIRECTIONS.items())
    updates = {x[m]: (a * x[m] + p) % 16 - 8, p: (p + 0.625) % 1}
    return Map(
        "test.walk", Source("none", "test"), {m: M}, updates, NUMBERS, {x[m]: 0.5, p: 0.125}, sizes={M: 4}, steps=STEPS, events=events
    )


def by_a_loop(start: Any, levels: Any, factor: float, terminal: bool) -> tuple[dict[str, list[tuple[float, int]]], int]:
    """{event: (iterate, component)} in their order, and the last iterate."""
    now, slow = np.array(start), 0.125
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in DIRECTIONS}
    for n in range(1, STEPS + 1):
        before = now - levels
        now, slow = (factor * now + slow) % 16 - 8, (slow + 0.625) % 1
        after = now - levels
        for name, direction in DIRECTIONS.items():
            for i in range(len(now)):
                upward = before[i] < 0 <= after[i]
                downward = before[i] > 0 >= after[i]
                if (upward and direction >= 0) or (downward and direction <= 0):
                    found[name].append((float(n), i))
        if terminal and any(found.values()):
            return found, n
    return found, STEPS


def random_walks(count: int) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    eighths = rng.integers(-64, 64, (2, count, 4)) / 8
    return {"start": eighths[0], "levels": np.round(eighths[1] / 4 * 8) / 8, "factor": rng.choice([3.0, 5.0, -1.0], count)}


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_runs_have_the_events_of_a_loop(backend: str, terminal: bool) -> None:
    """Directions, zeros, many events at one iterate; a terminal one ends the run there."""
    system, walks, zeros = walk(terminal=terminal), random_walks(6), 0
    for start, levels, factor in zip(*walks.values(), strict=True):
        given: dict[str, Any] = {"params": {"c": levels, "a": factor}, "initial": {"x": start}}
        run = odesim.integrate(system, **given, backend=backend, save=STEPS + 1)
        found, last = by_a_loop(start, levels, factor, terminal)
        assert {name: [(e["t"], e["index"][0]) for e in run.events[name]] for name in DIRECTIONS} == found
        assert (run.t_end, run.status == "event") == (last, last < STEPS or (terminal and any(found.values())))
        zeros += int(np.count_nonzero(run.y["x"] == levels))
    assert zeros > 0 or terminal


@pytest.mark.parametrize("terminal", [False, True])
def test_members_have_the_events_of_a_loop(terminal: bool) -> None:
    """In lanes: counts, the first iterates, components, and where a member ended."""
    walks = random_walks(19)
    given: dict[str, Any] = {"params": {"c": walks["levels"], "a": walks["factor"]}, "initial": {"x": walks["start"]}}
    run = odesim.ensemble(walk(terminal=terminal), **given, max_events=5)
    for i, (start, levels, factor) in enumerate(zip(*walks.values(), strict=True)):
        found, last = by_a_loop(start, levels, factor, terminal)
        assert run.t_end.values[i] == last
        for name, pairs in found.items():
            assert run[f"{name}_count"].values[i] == len(pairs)
            times, components = (run[f"{name}_{what}"].values[i, : len(pairs)] for what in ("t", "index"))
            assert list(zip(times, components, strict=True)) == pairs[:5]
