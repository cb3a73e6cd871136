"""Names written at the ends of lines: no legend to look up, and no two on top of each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import ScaledTranslation

from odesim.base.arrays import Array
from odesim.plot.style import SMALL

LEADER_START, LEADER_END, NAME_START = 0.5, 2.0, 2.3  # mm right of the axes: a leader begins, it ends, the name begins
LEADER: Any = {"color": "#b4b4b4", "lw": 0.4, "clip_on": False}  # clearly no curve
GAP = 1.08  # between the middles of two names, in heights of the type


def spread_positions(wanted: Array, distance: float, *, low: float = 0.0, high: float = 1.0) -> Array:
    """Positions (n,) nearest to wanted (n,) in least squares that keep its order, the distance and [low, high].

    Where n do not fit into [low, high], they are spread evenly over it.
    """
    n = len(wanted)
    if n > 1 and (n - 1) * distance >= high - low:
        distance = (high - low) / (n - 1)
    order = np.argsort(wanted, kind="stable")
    shift = distance * np.arange(n)
    # pool adjacent violators: neighbours that come too close become one block at their mean
    blocks: list[tuple[float, int]] = []
    for value in np.asarray(wanted, float)[order] - shift:
        mean, count = float(value), 1
        while blocks and blocks[-1][0] >= mean:
            other, more = blocks.pop()
            mean, count = (mean * count + other * more) / (count + more), count + more
        blocks.append((mean, count))
    level = np.concatenate([np.full(count, mean) for mean, count in blocks]) if blocks else np.empty(0)
    out = np.empty(n)
    out[order] = np.clip(level, low, high - shift[-1] if n else high) + shift
    return out


@dataclass(frozen=True)
class EndLabels:
    """Names beside the right edge of axes, each with a thin grey leader towards the end of its curve.

    ends (n,): where the curves leave, in data units. They take their room when made and their places in settle().
    """

    axes: Axes
    texts: tuple[Text, ...]
    ticks: tuple[Line2D, ...]
    ends: tuple[float, ...]

    def settle(self) -> None:
        """Moves the names apart. The figure must have been laid out."""
        box = self.axes.get_window_extent()
        figure: Any = self.axes.get_figure(root=True)
        type_height = SMALL / 72 * figure.dpi
        to_axes = self.axes.transData + self.axes.transAxes.inverted()
        wanted = np.array([to_axes.transform((self.axes.get_xlim()[1], end))[1] for end in self.ends])
        half = 0.5 * type_height / box.height
        places = spread_positions(np.clip(wanted, 0, 1), GAP * type_height / box.height, low=half * 0.6, high=1 - half * 0.6)
        reach = [1 + mm / 25.4 * figure.dpi / box.width for mm in (LEADER_START, LEADER_END)]
        for text, tick, start, place in zip(self.texts, self.ticks, np.clip(wanted, 0, 1), places, strict=True):
            text.set_y(place)
            tick.set_data(reach, [start, place])


def end_labels(axes: Axes, names: Sequence[str], ends: Sequence[float]) -> EndLabels:
    """EndLabels of curves that end at ends (n,); those that are not finite get none."""
    figure: Any = axes.get_figure(root=True)
    beside = axes.transAxes + ScaledTranslation(NAME_START / 25.4, 0, figure.dpi_scale_trans)
    texts, ticks, kept = [], [], []
    for name, end in zip(names, ends, strict=True):
        if not np.isfinite(end):
            continue
        label = axes.text(1, 0.5, name, transform=beside, fontsize=SMALL, va="center_baseline", ha="left")
        label.set_in_layout(True)
        (tick,) = axes.plot([1.0, 1.0], [0.5, 0.5], transform=axes.transAxes, **LEADER)
        tick.set_in_layout(False)
        texts.append(label)
        ticks.append(tick)
        kept.append(float(end))
    return EndLabels(axes, tuple(texts), tuple(ticks), tuple(kept))


def place_labels(figure: Figure, labels: Sequence[EndLabels]) -> None:
    """Lays the figure out for good and gives every name its place."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")  # names move up and down within their room: a second layout would change nothing
    for label in labels:
        label.settle()
