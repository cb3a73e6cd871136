"""Saved times as they are drawn: linear, or logarithmic where the save grid is."""

from dataclasses import dataclass
from math import floor, log10
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.plot.style import literal


@dataclass(frozen=True)
class TimeAxis:
    """The times t (T,) of a run as drawn: x = (t - start) / unit (T',), the rows of the result that are shown, the label."""

    t: Array
    x: Array
    rows: Array
    start: float
    unit: float
    log: bool
    label: str

    def place(self, t: Any) -> Array:
        """Times t (n,) on the axis; on a logarithmic one only those after its start."""
        x = (np.asarray(t, float) - self.start) / self.unit
        return x[x > 0] if self.log else x


def make_time_axis(t: Array, phrase: str = "") -> TimeAxis:
    """The Clock of saved times t (T,), whose unit is phrase.

    Logarithmic where the times are geometric, in themselves or counted from the first; powers of 1000 go into the label.
    """
    t = np.asarray(t, float)
    suffix = f" ({literal(phrase)})" if phrase else ""
    for start in dict.fromkeys((0.0, float(t[0]))):
        keep = np.flatnonzero(t > start)
        if is_geometric(t[keep] - start):
            since = f" − {start:g}" if start else ""
            return TimeAxis(t, t[keep] - start, keep, start, 1.0, True, f"t{since}{suffix}")
    largest = float(np.max(np.abs(t)))
    power = 3 * floor(log10(largest) / 3) if largest > 0 and not 1e-2 <= largest < 1e4 else 0
    unit = 10.0**power
    return TimeAxis(t, t / unit, np.arange(len(t)), 0.0, unit, False, f"t / $10^{{{power}}}${suffix}" if power else f"t{suffix}")


def is_geometric(x: Array) -> bool:
    """Whether x (n,) > 0 grows by one factor over two decades or more; the last step may be cut short by an early end."""
    if len(x) < 4 or np.any(np.diff(x) <= 0):
        return False
    ratios = np.diff(np.log(x))
    # given times are often rounded to a digit or two: 1, 3, 10, 30
    return bool(x[-1] / x[0] > 99 and np.all(np.abs(ratios[:-1] / np.median(ratios) - 1) < 0.2) and ratios[-1] < 1.2 * ratios[0])


def cell_edges(x: Array, log: bool) -> Array:
    """Borders (n + 1,) of cells around x (n,); the outer ones lie at the first and the last x."""
    if len(x) == 1:
        return np.array([x[0], x[0] + (abs(x[0]) or 1.0)])
    middle = np.sqrt(x[1:] * x[:-1]) if log else (x[1:] + x[:-1]) / 2
    return np.concatenate([x[:1], middle, x[-1:]])
