"""A Recipe: a comparison that is stored with what it must show, number by number."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from odesim.lab.compare.comparison import Comparison, Number

Measure = Callable[[Comparison], float]
SIDES = ("theory", "training")


@dataclass(frozen=True)
class Reading:
    """A number that a comparison must show: its name, how it is read, the recorded value, a tolerance and the reason for it."""

    name: str
    of: Measure
    recorded: float
    tolerance: float
    reason: str


@dataclass(frozen=True)
class Recipe:
    """A stored comparison. doc: what it shows, in a line. The other fields are the arguments of `odesim.compare`.

    map: "flow" or "discrete".
    """

    name: str
    doc: str
    model: str
    task: str
    readings: tuple[Reading, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: Sequence[int] = (0,)
    steps: int | None = None
    save: int | None = None
    map: str = "flow"
    observables: tuple[str, ...] = ()

    def numbers(self, comparison: Comparison) -> tuple[Number, ...]:
        """All readings of a comparison beside what is recorded."""
        return tuple(Number(r.name, float(r.of(comparison)), r.recorded, r.tolerance, r.reason) for r in self.readings)


def at(side: str, name: str, t: float, *place: int) -> Measure:
    """A quantity of one side at the compared time nearest t, one component of it, in the mean over seeds."""

    def measure(comparison: Comparison) -> float:
        values = getattr(comparison, side)[name]
        here = values[(slice(None), int(np.abs(comparison.t - t).argmin()), *place)]
        return float(np.mean(here))

    return measure


def metric(name: str, which: str) -> Measure:
    """A metric of the comparison's table."""

    def measure(comparison: Comparison) -> float:
        return next(float(row[which]) for row in comparison.table() if row["observable"] == name)

    return measure


def farthest(name: str) -> Measure:
    """The largest distance of both sides, over times and components, in the mean over seeds."""
    return metric(name, "sup")
