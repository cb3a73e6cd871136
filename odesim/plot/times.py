"""The time axis of a picture: linear, or logarithmic if the saved times are geometric."""

from dataclasses import dataclass
from math import floor, log10
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, counted
from odesim.plot.style import literal


@dataclass(frozen=True)
class TimeAxis:
    """A time axis for saved times t (T,): positions x = (t - start) / unit (T',), the rows of results to draw, the label."""

    t: Array
    x: Array
    rows: Array
    start: float
    unit: float
    log: bool
    label: str

    @property
    def left_out(self) -> str:
        """The note on times that a logarithmic axis does not have; empty if it has all."""
        count = len(self.t) - len(self.rows)
        times = f"$t$ = {self.t[0]:g}" if count == 1 else f"{count} of {counted(len(self.t), 'time')}"
        return f"{times}, not shown (log)" if count else ""

    def positions(self, t: Any) -> Array:
        """Positions on the axis of times t (n,); on a logarithmic axis only of those after start."""
        x = (np.asarray(t, float) - self.start) / self.unit
        return x[x > 0] if self.log else x


def make_time_axis(t: Array, phrase: str = "", log: bool | None = None) -> TimeAxis:
    """The TimeAxis of saved times t (T,). phrase: their unit; log: whether it is logarithmic.

    By default it is if the times are geometric, from 0 or from the first one. Powers of 1000 go into the label. Raises ParamError if
    it is to be logarithmic and no time is positive.
    """
    t = np.asarray(t, float)
    suffix = f" ({literal(phrase)})" if phrase else ""
    for start in dict.fromkeys((0.0, float(t[0]))) if log is not False else ():
        rows = np.flatnonzero(t > start)
        if is_geometric(t[rows] - start):
            since = f" − {start:g}" if start else ""
            return TimeAxis(t, t[rows] - start, rows, start, 1.0, True, f"$t${since}{suffix}")
    if log:
        rows = np.flatnonzero(t > 0)
        if not len(rows):
            raise ParamError(f"log x: no saved time is > 0, the last is {t[-1]:g}; leave x out of log")
        return TimeAxis(t, t[rows], rows, 0.0, 1.0, True, f"$t${suffix}")
    largest = float(np.max(np.abs(t)))
    power = 3 * floor(log10(largest) / 3) if largest > 0 and not 1e-2 <= largest < 1e4 else 0
    unit = 10.0**power
    return TimeAxis(t, t / unit, np.arange(len(t)), 0.0, unit, False, f"$t / 10^{{{power}}}${suffix}" if power else f"$t${suffix}")


def is_geometric(x: Array) -> bool:
    """Whether x (n,) > 0 grows by a constant factor over two decades or more; the last step may be shorter."""
    if len(x) < 4 or np.any(np.diff(x) <= 0):
        return False
    ratios = np.diff(np.log(x))
    # users often round times to a digit or two: 1, 3, 10, 30
    return bool(x[-1] / x[0] > 99 and np.all(np.abs(ratios[:-1] / np.median(ratios) - 1) < 0.2) and ratios[-1] < 1.2 * ratios[0])


def cell_edges(x: Array, log: bool) -> Array:
    """Borders (n + 1,) of cells around x (n,); the outer borders are the first and the last x. log: geometric middles."""
    if len(x) == 1:
        return np.array([x[0], x[0] + (abs(x[0]) or 1.0)])
    middle = np.sqrt(x[1:] * x[:-1]) if log else (x[1:] + x[:-1]) / 2
    return np.concatenate([x[:1], middle, x[-1:]])


def time_text(t: float) -> str:
    """A time as text of three digits, or of all its digits before the point: 0.0312, 2500, 1.2e+06."""
    return f"{t:.0f}" if 1e3 <= abs(t) < 1e6 else f"{t:.3g}"
