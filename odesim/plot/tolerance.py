"""The part of a logarithmic axis that lies below the tolerance of a run, where digits may be errors: it is grey."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from odesim.base.arrays import Array
from odesim.plot.style import few_log_ticks

GREY, BELOW = "#ececec", 0.01  # the colour; where the axis ends, of the tolerance
TIMES = 10.0  # a step has errors of one tolerance, and many steps have made the values
NOTE = "grey: below the tolerances of the run, where digits may be errors"
ALL_BELOW = "all below the tolerances of the run: digits may be errors"


def floor_of(values: Array, attributes: Mapping[str, Any], *, state: bool) -> float:
    """Below which size values (...) of a quantity may be errors of the integration; 0 for steps without error control.

    That is ten times the tolerance: atol for a state; an observable may be a difference of states, with rtol of its largest value too.
    """
    if attributes.get("step") is not None or "rtol" not in attributes:
        return 0.0
    values = np.abs(np.asarray(values, float))
    largest = float(np.max(values, where=np.isfinite(values), initial=0.0))
    return TIMES * (float(attributes["atol"]) + (0.0 if state else float(attributes["rtol"]) * largest))


def shade_below(axes: Axes, floor: float, *, whole: bool) -> list[str]:
    """Shades the part of a logarithmic value axis below floor, down to a hundredth of it or whole; returns a note if there is one."""
    low, high = axes.get_ylim()
    if axes.get_yscale() != "log" or low >= floor:
        return []
    if not whole and low < BELOW * floor:
        low = BELOW * floor
        for line in axes.get_lines():
            line.set_clip_on(True)
    axes.axhspan(low, min(floor, high), color=GREY, lw=0, zorder=0)
    axes.set_ylim(low, high)
    few_log_ticks(axes)
    return [NOTE]
