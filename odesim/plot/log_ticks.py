"""Ticks of a logarithmic axis: round numbers, at least two, few enough for a panel of 30 mm."""

from math import ceil, floor, log10
from typing import Any

import numpy as np
from matplotlib.ticker import Formatter, Locator, MaxNLocator

MOST = 6  # ticks
DECADES = 2.0  # from which on ticks are powers of ten alone
PLAIN = (1e-3, 1e4)  # between which numbers are written out


class RoundLocator(Locator):
    """Ticks at powers of ten; below two decades at 1, 2 and 5 of each, or 1 and 3.

    Where that is a single tick: round numbers at even distances.
    """

    def __call__(self) -> Any:
        """The ticks within the limits of the axis."""
        axis: Any = self.axis
        return self.tick_values(*axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """The ticks within the limits, which are positive."""
        low, high = sorted((vmin, vmax))
        if not 0 < low < high < np.inf:
            return np.array([])
        first, last = floor(log10(low)), ceil(log10(high))
        if high >= 10**DECADES * low:
            powers = inside(10.0 ** np.arange(first, last + 1), low, high)
            every = -(-len(powers) // MOST)
            return powers[(len(powers) - 1) % every :: every]
        for factors in ((1, 2, 5),) if is_plain(low, high) else ((1,), (1, 3), (1, 2, 5)):  # few where labels are long
            ticks = inside(np.array([k * 10.0**n for n in range(first, last + 1) for k in factors]), low, high)
            if len(ticks) > 1:
                return ticks
        ticks = inside(MaxNLocator(3, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high), low, high)
        return ticks if is_plain(low, high) or len(ticks) < 3 else ticks[[0, -1]]


class RoundFormatter(Formatter):
    """Ticks as they are written by hand: 0.2, 50, 10^5, 2 10^5."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The tick x as text; `10^5` where the axis shows powers of ten alone."""
        axis: Any = self.axis
        low, high = sorted(axis.get_view_interval())
        return f"{x:g}" if is_plain(low, high) else power_text(x)


def power_text(x: float) -> str:
    """The number x > 0 with a power of ten: 10^5, 2 10^5."""
    power = floor(log10(x) + 1e-9)
    factor = float(f"{x / 10.0**power:.6g}")
    return rf"$\mathdefault{{10^{{{power}}}}}$" if factor == 1 else rf"$\mathdefault{{{factor:g}\times10^{{{power}}}}}$"


def is_plain(low: float, high: float) -> bool:
    """Whether numbers between these limits are written out."""
    return PLAIN[0] < low and high < PLAIN[1] and high < 10**DECADES * low


def inside(ticks: Any, low: float, high: float) -> Any:
    """The ticks (n,) within the limits, but for rounding."""
    return ticks[(ticks >= low * (1 - 1e-9)) & (ticks <= high * (1 + 1e-9))]
