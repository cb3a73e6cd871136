"""A plain simulator of events that set states, in exact arithmetic.

States move on straight lines whose slopes are set by memories or turn at levels of a clock. Event functions are affine in states and
time. So every time is a fraction. At one time the events whose functions have come to 0 are collected first, in the order of the list.
Each acts once, and so does an event once for each time that a reset of another one takes its function across 0, or to it: before later
ones of the list.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

Affine = Mapping[str, Fraction]
"""{state, "t" or "1": its coefficient}."""
CLOSE = Fraction(1, 10**7)
"""Doubles may not tell times or values apart that differ by less."""
REPEATS = 100


class CloseError(Exception):
    """The outcome hangs on differences that doubles may not have."""


@dataclass(frozen=True)
class Rule:
    """An event: its function, affine or sin(pi t / period), and what it sets."""

    name: str
    function: Affine = field(default_factory=dict)
    direction: int = 0
    resets: Mapping[str, Affine] = field(default_factory=dict)
    terminal: bool = False
    period: Fraction | None = None
    at_start: bool = False


@dataclass
class Outcome:
    """The events [(time, name)] in the order in which they acted, the states at the end, and how it came."""

    status: str
    events: list[tuple[Fraction, str]]
    states: dict[str, Fraction]
    t: Fraction


def affine(e: Affine, states: Mapping[str, Fraction]) -> Fraction:
    """The value of an affine expression."""
    return sum((c * states[name] for name, c in e.items()), Fraction(0))


def passes(a: Fraction, b: Fraction, direction: int) -> bool:
    """Whether a function that jumps from a to b passes 0, or comes to it."""
    return (a < 0 <= b and direction >= 0) or (a > 0 >= b and direction <= 0)


def simulate(
    slopes: Mapping[str, Affine],
    start: Mapping[str, Fraction],
    rules: Sequence[Rule],
    end: Fraction,
    turns: Mapping[str, tuple[str, Fraction]] | None = None,
    most: int = 60,
) -> Outcome:
    """Runs from t = 0. Raises CloseError.

    slopes: the rates of the states, affine in states whose own rate is 0. turns {state: (clock, level)}: the rate is 1 where the clock,
    whose own rate is 1, is below the level, and -1 from there on.
    """
    states, events = {**start, "t": Fraction(0), "1": Fraction(1)}, list[tuple[Fraction, str]]()
    turns = turns or {}

    def rates() -> dict[str, Fraction]:
        found = {name: affine(e, states) for name, e in slopes.items()} | {"t": Fraction(1), "1": Fraction(0)}
        return found | {name: Fraction(1 if states[clock] < level else -1) for name, (clock, level) in turns.items()}

    def values() -> list[Fraction]:
        """The functions here; of a sine its sign, or 0."""
        found = []
        for rule in rules:
            if rule.period is None:
                g = affine(rule.function, states)
                if 0 < abs(g) < CLOSE * max(map(abs, rule.function.values())):  # its own unit
                    raise CloseError
            else:
                k = states["t"] / rule.period
                g = Fraction(0) if k.denominator == 1 else Fraction(1 - 2 * (k.numerator // k.denominator % 2))
            found.append(g)
        return found

    def speeds() -> list[Fraction]:
        """The rates of the functions here; of a sine at 0 its sign."""
        now = rates()
        return [
            affine(rule.function, now) if rule.period is None else Fraction(1 - 2 * ((states["t"] / rule.period).numerator % 2))
            for rule in rules
        ]

    def act(arrived: list[int]) -> str:
        counts = dict.fromkeys(range(len(rules)), 0)
        ended = False
        for root in arrived:
            wave = deque([root])
            while wave:
                k = wave.popleft()
                counts[k] += 1
                if counts[k] > REPEATS:
                    return "sliding"
                events.append((states["t"], rules[k].name))
                ended |= rules[k].terminal
                before = values()
                states.update({name: affine(e, states) for name, e in rules[k].resets.items()})
                now = values()
                wave += [j for j, rule in enumerate(rules) if j != k and passes(before[j], now[j], rule.direction)]
        return "event" if ended else ""

    def due() -> Fraction:
        """The next time at which an event happens; beyond the end, if there is none."""
        t = states["t"]
        found = [end + 1, *(t + level - states[clock] for clock, level in turns.values() if states[clock] < level)]
        for rule, g, rate in zip(rules, values(), speeds(), strict=True):
            if rule.period is not None:
                k = t / rule.period
                k = Fraction(k.numerator // k.denominator + 1)
                found.append((k + (rule.direction != 0 and (k % 2 == 0) != (rule.direction > 0))) * rule.period)
            elif g * rate < 0 and rate * rule.direction >= 0:
                found.append(t - g / rate)
        found.sort()
        if any(0 < b - a < CLOSE for a, b in zip([t, *found], [*found, end], strict=True)) or any(0 < abs(end - a) < CLOSE for a in found):
            raise CloseError
        return found[0]

    now, speed = values(), speeds()
    first = [
        k
        for k, rule in enumerate(rules)
        if rule.at_start and (now[k] == 0 if rule.direction == 0 else (now[k] or speed[k]) * rule.direction > 0)
    ]
    status = act(first)
    while not status:
        new = min(due(), end)
        before = speeds()
        moved = {name: rate * (new - states["t"]) for name, rate in rates().items()}
        states.update({name: states[name] + by for name, by in moved.items()})
        speed = [now if rule.period else then for rule, then, now in zip(rules, before, speeds(), strict=True)]
        came = zip(rules, values(), speed, strict=True)
        arrived = [k for k, (rule, g, rate) in enumerate(came) if g == 0 and rate and rate * rule.direction >= 0]
        status = act(arrived)
        if new == end:
            status = status or "ok"
        if len(events) > most:
            raise CloseError
    return Outcome(status, events, {name: value for name, value in states.items() if name not in ("t", "1")}, states["t"])
