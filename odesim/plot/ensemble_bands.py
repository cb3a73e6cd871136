"""Quantities of all members against time, as median and middle 80 %, and at a single time, as histograms."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from odesim.base.arrays import Array
from odesim.base.errors import counted
from odesim.plot.choice import Choice
from odesim.plot.labels import EndLabels, end_labels
from odesim.plot.members import BYTES, Drawn, blocks, is_state, quantiles, values_of, without_copies
from odesim.plot.panels import last_finite, spread_indices, thousands
from odesim.plot.scales import TimeAxis, floor_of, make_log, shade_below, spans
from odesim.plot.style import CATEGORIES, SMALL, few_log_ticks, few_ticks, ordered_colors

if TYPE_CHECKING:
    import xarray

LEVELS = (0.1, 0.5, 0.9)
COLUMNS = 200  # largest number of saved times
OUTER = (0.005, 0.995)  # ranks of the middle 99 %
BINS = (8, 60)  # smallest and largest number
IN_ROW, FOR_ROW = 3, 0.22  # of a legend: entries in a row, and the height of a row in that of the data
REACH = 2.0  # in widths of the middle 99 %: members farther off are counted, not drawn


def draw_members(
    axes: Axes, run: "xarray.Dataset", drawn: Drawn, time_axis: TimeAxis, choice: Choice
) -> tuple[EndLabels | None, list[str]]:
    """Draws median and middle 80 % of all done members against time, a colour for each component; returns their labels and notes."""
    shown = spread_indices(len(time_axis.x), COLUMNS)
    x, rows = time_axis.x[shown], time_axis.rows[shown]
    numbers = len(rows) * len(drawn.indices)

    def read() -> Iterator[Array]:
        return (values_of(part, drawn, rows) for part in blocks(run, 4 * numbers))

    done = int((run["status"].values >= 0).sum())
    marks = quantiles(read, done, LEVELS, max(BYTES // (16 * numbers), 1))  # (3, T, C)
    own, marks, equal = without_copies(drawn, marks)
    floor = floor_of(marks, run.attrs, state=is_state(run, drawn))
    colors = colors_of(own)
    for k, color in enumerate(colors):
        axes.fill_between(x, marks[0, :, k], marks[2, :, k], color=color, alpha=0.2, lw=0)
        axes.plot(x, marks[1, :, k], color=color)
    complete = sum(int(np.isfinite(block).all(axis=(1, 2)).sum()) for block in read())
    axes.set_xscale("log" if time_axis.log else "linear")
    notes = [*equal, *(make_log(axes, own.label) if choice.is_log("y", spans(marks[1])) else [])]
    notes += shade_below(axes, floor, whole=bool(choice.scale("y")))
    axes.set_ylabel(own.label)
    axes.set_xlim(x[0], x[-1])
    few_ticks(axes)
    few_log_ticks(axes)
    set_panel_note(axes, drawn, complete, done)
    labels = end_labels(axes, own.labels, last_finite(np.ma.masked_invalid(marks[1])), last_time(x, marks[1])) if len(colors) > 1 else None
    return labels, notes


def last_time(x: Array, curves: Array) -> float:
    """The last of the times x (T,) at which curves (T, n) have values."""
    return float(x[np.isfinite(curves).any(axis=1)].max(initial=x[0]))


def colors_of(drawn: Drawn) -> list[Any]:
    """A colour for each drawn component."""
    return [CATEGORIES[0]] if len(drawn.indices) == 1 else ordered_colors(len(drawn.indices))


def set_panel_note(axes: Axes, drawn: Drawn, complete: int, done: int, more: str = "") -> None:
    """Writes above a panel how many components it shows and how many members have values at all times, unless all do."""
    notes = [f"{len(drawn.indices)} of {counted(drawn.count, 'component')}"] * (len(drawn.indices) < drawn.count and len(drawn.indices) > 1)
    notes += [f"{thousands(complete)} of {counted(done, 'member')}"] * (complete < done)
    axes.set_title(", ".join([*notes, *[more] * bool(more)]), loc="right", fontsize=SMALL)


def draw_spread(axes: Axes, values: Array, drawn: Drawn, choice: Choice) -> None:
    """Draws histograms of values (N, C) of members, filled for one component, an outline for each of several."""
    finite = values[np.isfinite(values)]
    complete = int(np.isfinite(values).all(axis=1).sum())
    beyond = below = 0
    if len(finite):
        log = bool(finite.max() > 0) and choice.is_log("x", spans(np.quantile(finite, OUTER)))
        below = int((finite <= 0).sum()) if log else 0
        scaled = np.log(np.where(values > 0, values, np.nan)) if log else values
        low, high = central_range(scaled[np.isfinite(scaled)])
        edges = np.linspace(low, high, bin_count(scaled[np.isfinite(scaled)], low, high) + 1)
        beyond = int(((scaled < low) | (scaled > high)).sum())
        axes.set_xscale("log" if log else "linear")
        style: Any = "stepfilled" if len(drawn.indices) == 1 else "step"
        for k, color in enumerate(colors_of(drawn)):
            counts, _ = np.histogram(scaled[np.isfinite(scaled[:, k]), k], bins=edges)
            drawn_edges = np.exp(edges) if log else edges
            axes.hist(drawn_edges[:-1], drawn_edges.tolist(), weights=counts, histtype=style, color=color, label=drawn.labels[k])
    if choice.is_log("y", False):
        axes.set_yscale("log")
    more = [f"{beyond} beyond"] * bool(beyond) + [f"{below} ≤ 0, not shown"] * bool(below)
    set_panel_note(axes, drawn, complete, len(values), ", ".join(more))
    axes.set_xlabel(drawn.label)
    axes.set_ylabel("members")
    few_ticks(axes, whole=True)
    few_log_ticks(axes)
    if len(drawn.indices) > 1 and axes.has_data():
        add_legend(axes, len(drawn.indices))


def add_legend(axes: Axes, count: int) -> None:
    """Adds a legend of histograms in a space of its own, above all of them."""
    rows = -(-count // IN_ROW)
    low, high = axes.get_ylim()
    room = FOR_ROW * rows
    axes.set_ylim(low, high * (high / low) ** room if axes.get_yscale() == "log" else low + (high - low) * (1 + room))
    handles, _ = axes.get_legend_handles_labels()
    in_rows = [handles[k] for column in range(IN_ROW) for k in range(column, count, IN_ROW)]  # matplotlib fills columns
    axes.legend(handles=in_rows, frameon=False, loc="upper center", ncols=IN_ROW, columnspacing=1.2, handlelength=1.2, borderpad=0.1)


def bin_count(values: Array, low: float, high: float) -> int:
    """The number of bins from low to high by the rule of Freedman and Diaconis, within BINS."""
    quarter = float(np.subtract(*np.quantile(values, (0.75, 0.25))))
    width = 2 * quarter / len(values) ** (1 / 3)
    return int(np.clip(np.ceil((high - low) / width), *BINS)) if width > 0 else BINS[0]


def central_range(values: Array) -> tuple[float, float]:
    """(low, high) of a histogram of values (n,): their range, without outliers far beyond the middle 99 %; never empty."""
    low, high = np.quantile(values, OUTER)
    reach = REACH * (high - low)
    first, last = (max(values.min(), low - reach), min(values.max(), high + reach)) if reach > 0 else (values.min(), values.max())
    if last - first <= 1e-9 * max(abs(first), abs(last)):
        half = 0.5 * max(abs(float(first)), 1e-12) if first else 0.5
        first, last = first - half, last + half
    return float(first), float(last)
