"""What a stored comparison is made of: its request, and readings, numbers that must come out, each with a tolerance and its reason."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from odesim.lab.compare.comparison import Comparison, Number
from odesim.lab.compare.data import RTOL

Measure = Callable[[Comparison], float]


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
    """A stored comparison. doc: what it shows, in a line. options: of `odesim.compare`, beside model and task."""

    doc: str
    model: str
    task: str
    readings: tuple[Reading, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

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


def distances(names: Iterable[str], tolerance: float, reason: str) -> list[Reading]:
    """The relative L2 errors of these quantities, which are 0 but for the reason."""
    return [Reading(f"relative L2 of {name}", metric(name, "relative_l2"), 0.0, tolerance, reason) for name in names]


ROUNDING = "rounding of two orders of summation over so many steps"
DIGITS = "half a unit of the last digit"
TO_DIGITS = f"half a unit of the last digit, and ten times rtol = {RTOL:g} of the flow"


def exact(name: str, of: Measure, value: float, half: float) -> Reading:
    """A reading of a flow, recorded with so much of half a unit of its last digit: off by that, and by what the integration leaves."""
    return Reading(name, of, value, half + 10 * RTOL * max(1.0, abs(value)), TO_DIGITS)


def both(
    name: str, quantity: str, t: float, flow: tuple[float, float], trained: tuple[float, float, str], *place: int
) -> tuple[Reading, ...]:
    """Readings of a quantity on both sides: flow (recorded, half a unit of it), trained (recorded, tolerance, reason)."""
    of_flow, of_training = (at(side, quantity, t, *place) for side in ("theory", "training"))
    return exact(f"{name}, flow", of_flow, *flow), Reading(f"{name}, trained", of_training, *trained)
