"""Panels of an ensemble: bands of all members against time, histograms, a curve over one number that differs, a map over two."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm

from odesim.base.arrays import Array, every_phase
from odesim.base.errors import ParamError, counted
from odesim.plot.choice import Choice
from odesim.plot.labels import EndLabels, end_labels, symbol
from odesim.plot.members import BYTES, Drawn, Varied, blocks, is_state, nan_quantiles, quantiles, values_of, without_copies
from odesim.plot.panels import last_finite, thousands
from odesim.plot.scales import (
    TimeAxis,
    add_bar,
    cell_edges,
    check_axis,
    color_scale,
    cut_below,
    make_log,
    set_limits,
    shade_below,
    spans,
    without_far,
)
from odesim.plot.style import CATEGORIES, DASHES, DIVERGING, FAINT, SMALL, few_log_ticks, few_ticks
from odesim.run.solution import floor_of

if TYPE_CHECKING:
    import xarray

LEVELS = (0.1, 0.5, 0.9)  # a band is the middle 80 % around the median: few members far off do not widen it
FEW = 10  # members that are lines: the outer tenths of fewer are none
ROW = (0.1, 0.25, 0.5, 0.75, 0.9)  # ranks in the row of a component
OVERLAP = 0.25  # share of times at which two bands lie on each other, from which on they have edges in the place of areas
COLUMNS = 400  # largest number of saved times
OUTER = (0.005, 0.995)  # ranks of the middle 99 %
BINS = (8, 60)  # smallest and largest number
REACH = 2.0  # in widths of the middle 99 %: members farther off are counted, not drawn
GROUPS, EACH = (8, 40), 20  # of members with neighbouring values, where no two members share one: how many, and members of each
DOTS, MARGIN = 40, 0.03  # largest number of dots along a curve or an axis; of the axis, beside them
NUMBERED, ABOVE = 10, 1.03  # largest number of crosses with the number of their members; their height, in heights of the panel
RUNAWAY = 1e3  # times as far from the median of a curve: the others are one line within a pixel
POINTS, CELLS = 3000, 50  # largest number of points; cells of each axis for more
LOST: Mapping[str, Any] = {"facecolor": "#ececec", "edgecolor": FAINT, "hatch": "////////"}


def member_floor(run: "xarray.Dataset", drawn: Drawn) -> float:
    """Below which size values of a state may be errors: its atol. 0 for an observable: of its errors, members have no estimate."""
    return floor_of(np.empty(0), run.attrs, state=drawn.name) if is_state(run, drawn) else 0.0


def doubt(axes: Axes, run: "xarray.Dataset", drawn: Drawn, values: Array, *, across: bool = False, whole: bool = False) -> list[str]:
    """Notes on values (...) of an observable that are drawn by logarithms and are below its tolerance, where no grey says so.

    They go upwards, or across, or are colours of a map. An axis upwards ends two decades below, unless whole, where values are negative
    too: a gap whose sign changes is rounding there, but a loss, the square of an error, may be true to far below.
    """
    maps = [c.norm for c in axes.collections if c.get_array() is not None]
    scale = axes.get_xscale() if across else axes.get_yscale()
    if is_state(run, drawn) or not (isinstance(maps[0], LogNorm) if maps else scale == "log"):
        return []
    floor, sizes = floor_of(values, run.attrs, state=""), np.abs(np.asarray(values, float))
    below = f"{drawn.label}: digits below {floor:.1g} may be errors (no estimate)"
    if not ((sizes > 0) & (sizes < floor)).any():
        return []
    signs = bool((np.asarray(values) < 0).any())
    return [below, *cut_below(axes, floor, whole=whole or across or bool(maps) or not signs)]


def draw_members(
    axes: Axes, run: "xarray.Dataset", drawn: Drawn, time_axis: TimeAxis, choice: Choice
) -> tuple[EndLabels | None, list[str]]:  # fmt: skip
    """Draws median and middle 80 % of all done members against time, a colour for each component; returns labels, and notes.

    A label stands at the end of the median, or of the middle one of the lines. Up to FEW members are lines: quantiles of two say less than
    the two. Bands of components that lie on each other are dashed edges.
    """
    shown = every_phase(len(time_axis.x), COLUMNS)
    x, rows = time_axis.x[shown], time_axis.rows[shown]
    numbers = len(rows) * len(drawn.indices)

    def read() -> Iterator[Array]:
        return (values_of(part, drawn, rows) for part in blocks(run, 4 * numbers))

    done = int((run["status"].values >= 0).sum())
    # (3, T, C), or the members (N, T, C)
    marks = np.concatenate([*read()]) if done <= FEW else quantiles(read, done, LEVELS, max(BYTES // (16 * numbers), 1))
    distinct, marks, equal = without_copies(drawn, marks)
    lines = marks if done <= FEW else marks[1:2]
    floor = member_floor(run, drawn)
    colors = colors_of(distinct)
    edges = done > FEW and overlaps(marks[0], marks[2])
    ends = np.array([last_finite(np.ma.masked_invalid(line)) for line in lines])
    middle = np.argsort(ends, axis=0)[np.isfinite(ends).sum(axis=0) // 2, range(len(colors))]
    for k, color in enumerate(colors):
        for n, line in enumerate(lines):
            named = n == middle[k]
            axes.plot(x, line[:, k], color=color, lw=1.0 if len(lines) <= 3 else 0.6, label="_" * (not named) + distinct.symbol(k))
        if edges:  # colours that lie on each other are none
            axes.plot(x, marks[[0, 2], :, k].T, color=color, lw=0.5, ls=DASHES[1], label=f"_{distinct.symbol(k)}")
        elif done > FEW:
            axes.fill_between(x, marks[0, :, k], marks[2, :, k], color=color, alpha=0.2, lw=0, label=f"_{distinct.symbol(k)}")
    complete = sum(int(np.isfinite(block).all(axis=(1, 2)).sum()) for block in read())
    axes.set_xscale("log" if time_axis.log else "linear")
    notes = ["median and middle 80 % of the members" if done > FEW else "a line for each member"] * (done > 1) + equal
    notes += make_log(axes, distinct.label) if choice.is_log("y", spans(lines)) else []
    notes += shade_below(axes, floor, whole=bool(choice.scale("y")))
    notes += doubt(axes, run, drawn, marks, whole=bool(choice.scale("y")))
    axes.set_ylabel(distinct.label)
    axes.set_xlim(x[0], x[-1])
    few_ticks(axes)
    few_log_ticks(axes)
    set_panel_note(axes, drawn, complete, done)
    named = [float(ends[n, k]) for k, n in enumerate(middle)]
    return end_labels(axes, distinct.labels, named) if len(colors) > 1 else None, notes


def overlaps(low: Array, high: Array) -> bool:
    """Whether two of the bands from low to high (T, C) lie on each other at more than OVERLAP of the times."""
    with np.errstate(invalid="ignore"):
        both = np.maximum(low[:, :, None], low[:, None]) < np.minimum(high[:, :, None], high[:, None])
    return bool((both.mean(axis=0)[np.triu_indices(low.shape[1], 1)] > OVERLAP).any())


def colors_of(drawn: Drawn) -> list[Any]:
    """A colour for each drawn component: bands and outlines that cross are told apart by hue, not by shade."""
    return list(CATEGORIES[: len(drawn.indices)])


def set_panel_note(axes: Axes, drawn: Drawn, complete: int, done: int, more: str = "") -> None:
    """Writes above a panel how many components it shows and how many members have values at all times, unless all do."""
    notes = [f"{len(drawn.indices)} of {counted(drawn.count, 'component')}"] * (len(drawn.indices) < drawn.count and len(drawn.indices) > 1)
    notes += [f"{thousands(complete)} of {counted(done, 'member')}"] * (complete < done)
    axes.set_title(", ".join([*notes, *[more] * bool(more)]), loc="right", fontsize=SMALL)


def draw_spread(axes: Axes, values: Array, drawn: Drawn, choice: Choice) -> list[str]:
    """Draws the values (N, C) of members of one component as a histogram, of several as a row each; returns notes."""
    complete = int(np.isfinite(values).all(axis=1).sum())
    several = len(drawn.indices) > 1
    log, more, notes = (draw_rows if several else draw_histogram)(axes, values, drawn, choice)
    axes.set_xscale("log" if log else "linear")
    set_panel_note(axes, drawn, complete, len(values), ", ".join(more))
    axes.set_xlabel(drawn.label)
    few_ticks(axes, whole=True)
    few_log_ticks(axes)
    return notes


def draw_histogram(axes: Axes, values: Array, drawn: Drawn, choice: Choice) -> tuple[bool, list[str], list[str]]:
    """Draws a histogram of values (N, 1); returns whether its values are logarithmic, which are in no bin, and notes."""
    edges, log, more = make_bins(values, choice)
    if len(edges):
        axes.hist(values[np.isfinite(values)], edges.tolist(), histtype="stepfilled", color=CATEGORIES[0], label=drawn.symbol(0))
    if choice.is_log("y", False):
        axes.set_yscale("log")
    axes.set_ylabel("members")
    return log, more, []


# outlines of histograms that lie on each other were a fence of bars: which component is large, and which one varies, was not seen
def draw_rows(axes: Axes, values: Array, drawn: Drawn, choice: Choice) -> tuple[bool, list[str], list[str]]:
    """Draws a row for each component, as draw_histogram: median, middle half and middle 80 % of values (N, C), or all of few members."""
    if choice.scale("y"):
        raise ParamError(f"log y: the vertical axis is the component of {drawn.name}, from 0; log x makes its values logarithmic")
    rows, few = np.arange(len(drawn.indices)), len(values) <= FEW
    shown = values if few else nan_quantiles(values, np.array(ROW))
    log = choice.is_log("x", spans(shown)) and bool((shown > 0).any())
    shown = np.where(shown > 0, shown, np.nan) if log else shown
    if not few:
        axes.hlines(rows, shown[0], shown[-1], color=CATEGORIES[0], lw=0.6)
        axes.hlines(rows, shown[1], shown[-2], color=CATEGORIES[0], lw=2.0)
    for one in shown if few else shown[2:3]:
        axes.plot(one, rows, "o", color=CATEGORIES[0], mfc=CATEGORIES[0] if few else "white", mew=0.7)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.yaxis.set_major_formatter(lambda row, _: drawn.labels[int(row)] if row in rows else "")
    axes.set_ylabel(", ".join(symbol(dim) for dim in drawn.dims))
    return log, [], ["a dot for each member" if few else "median, middle half and middle 80 % of the members"] * (len(values) > 1)


def make_bins(values: Array, choice: Choice) -> tuple[Array, bool, list[str]]:
    """(edges of bins, whether they are even on a logarithmic axis, which values are in none) of values of any shape.

    No edges where no value is finite.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return finite, False, []
    log = bool(finite.max() > 0) and choice.is_log("x", spans(np.quantile(finite, OUTER)))
    scaled = np.log(finite[finite > 0]) if log else finite
    low, high = central_range(scaled)
    beyond, below = int(((scaled < low) | (scaled > high)).sum()), len(finite) - len(scaled)
    edges = np.linspace(low, high, bin_count(scaled, low, high) + 1)
    notes = [f"{beyond} beyond"] * bool(beyond) + [f"{below} ≤ 0, not shown"] * bool(below)
    if log:
        edges = np.exp(edges)
        edges[[0, -1]] *= 1 - 1e-12, 1 + 1e-12  # the rounding of the logarithm: the ends are values
    return edges, log, notes


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


def draw_curve(
    axes: Axes, x: Varied, drawn: Drawn, values: Array, choice: Choice, *, alone: bool, floor: float = 0.0
) -> tuple[EndLabels | None, list[str]]:
    """Draws values (N, C) of components against x; returns labels of the lines, and notes.

    alone: whether nothing else differs. floor: below which values may be errors.

    Where members share a value of x, the line is their median and the band their middle 80 %. Where other things differ too and none
    is shared, neighbours in groups of equal size take the place of those that share.
    """
    place, group, count = make_groups(x, alone)
    grouped = count < len(x.points)
    dots = count <= DOTS and len(drawn.indices) == 1
    label_axes(axes, choice, x)
    if len(x.points) > 1:
        fit_axis(axes, x.points[[0, -1]], MARGIN if dots else 0.0)
    curves = []
    for k, color in enumerate(colors_of(drawn)):
        middle = medians(group, values[:, k], count)
        if count < len(x.values):
            low, high = group_quantiles(group, values[:, k], count)
            axes.fill_between(place, low, high, color=color, alpha=0.2, lw=0, label=f"_{drawn.symbol(k)}")
        axes.plot(place, middle, color=color, marker="o" if dots else "", label=drawn.symbol(k))
        curves.append(middle)
    lost = x.values[~np.isfinite(values).any(axis=1) & np.isfinite(x.values)]
    if len(lost):
        draw_lost(axes, *np.unique(lost, return_counts=True))
    notes = make_log(axes, drawn.label) if choice.is_log("y", spans(np.array(curves))) else []
    notes += shade_below(axes, floor, whole=bool(choice.scale("y")))
    notes += leave_out_far(axes, np.array(curves), drawn.label)
    notes += [f"lines: {count} groups of neighbours in {x.label}"] * grouped
    axes.set_ylabel(drawn.label)
    few_ticks(axes)
    few_log_ticks(axes)
    ends: list[Any] = last_finite(np.ma.masked_invalid(np.array(curves).T))
    return end_labels(axes, drawn.labels, ends) if len(drawn.indices) > 1 else None, notes


# a scan across the edge of stability was a flat line and one value of 1e97
def leave_out_far(axes: Axes, curves: Array, label: str) -> list[str]:
    """Ends a linear value axis before few values of curves (C, n) so far off that all others would be one line; returns a note."""
    finite = curves[np.isfinite(curves)]
    if axes.get_yscale() != "linear" or not len(finite):
        return []
    low, high, _, notes = without_far(finite, label, "axis", RUNAWAY)
    if notes:
        set_limits(axes, low - MARGIN * (high - low), high + MARGIN * (high - low))
    return notes


def fit_axis(axes: Axes, ends: Array, margin: float) -> None:
    """Sets the horizontal limits to the two ends, with a margin, in shares of the axis, in which the outer dots are whole."""
    log = axes.get_xscale() == "log"
    low, high = np.log(ends) if log else ends
    room = margin * (high - low)
    limits = np.array([low - room, high + room])
    axes.set_xlim(*(np.exp(limits) if log else limits))


def draw_lost(axes: Axes, places: Array, counts: Array) -> None:
    """Marks above the panel the places (n,) at which members have no value: `3×` for three of them, a cross alone where places are many."""
    axes.yaxis.get_offset_text().set(x=-0.01, ha="right")  # a power of ten stands there too: left of the panel
    style: Any = {"transform": axes.get_xaxis_transform(), "color": FAINT, "clip_on": False}
    if len(places) > NUMBERED:
        axes.plot(places, np.full(len(places), ABOVE), "x", ms=2.5, mew=0.5, **style)
        return
    for place, count in zip(places, counts, strict=True):
        axes.text(place, ABOVE, f"{count}×" if count > 1 else "×", ha="center", va="center", fontsize=SMALL, **style)


def make_groups(x: Varied, alone: bool) -> tuple[Array, Array, int]:
    """(values of x (n,), the group of each member (N,), n); members whose x is not finite have the group n."""
    finite = np.isfinite(x.values)
    points = x.points
    if alone or len(points) <= 0.5 * finite.sum():
        return points, np.where(finite, np.searchsorted(points, x.values), len(points)), len(points)
    edges = np.quantile(x.values[finite], np.linspace(0, 1, min(int(np.clip(finite.sum() // EACH, *GROUPS)), len(points)) + 1))
    group = np.clip(np.searchsorted(edges, x.values, side="right") - 1, 0, len(edges) - 2)
    group = np.where(finite, group, len(edges) - 1)
    return medians(group, x.values, len(edges) - 1), group, len(edges) - 1


def group_quantiles(group: Array, values: Array, count: int) -> tuple[Array, Array]:
    """The lowest and highest of LEVELS (count,) of the values (N,) in each group."""
    order = np.argsort(group, kind="stable")
    borders = np.searchsorted(group[order], np.arange(count + 1))
    edges = np.array([nan_quantiles(values[order[a:b]], np.array([LEVELS[0], LEVELS[-1]])) for a, b in pairwise(borders)])
    return edges[:, 0], edges[:, 1]


@dataclass(frozen=True)
class Cells:
    """A map: borders x (n + 1,), y (m + 1,) and medians (m, n) of the members in each cell, NaN where none has a value.

    empty (m, n): cells without a member; most: largest number of members in a cell.
    """

    x: Array
    y: Array
    values: Array
    empty: Array
    most: int


def is_grid(x: Varied, y: Varied) -> bool:
    """Whether members lie on a grid: at least one for each pair of distinct values, on average."""
    return len(x.points) * len(y.points) <= len(x.values)


def make_cells(x: Varied, y: Varied, values: Array, choice: Choice) -> Cells:
    """The Cells of values (N,) of members on a grid, or of many members in bins of equal size."""
    places, borders = [], []
    for varied, scale in ((x, "x"), (y, "y")):
        if is_grid(x, y):
            points = varied.points
            edges = outer_edges(points, choice.is_log(scale, varied.is_log))
            place = np.clip(np.searchsorted(points, varied.values), 0, len(points) - 1)
        else:
            edges = np.linspace(varied.points[0], varied.points[-1], CELLS + 1)
            place = np.clip(np.searchsorted(edges, varied.values, side="right") - 1, 0, CELLS - 1)
        places.append(np.where(np.isfinite(varied.values), place, -1))
        borders.append(edges)
    n, m = len(borders[0]) - 1, len(borders[1]) - 1
    known = (places[0] >= 0) & (places[1] >= 0)
    flat = np.where(known, places[1] * n + places[0], n * m)
    members = np.bincount(flat, minlength=n * m + 1)[: n * m].reshape(m, n)
    return Cells(borders[0], borders[1], medians(flat, values, n * m).reshape(m, n), members == 0, int(members.max(initial=0)))


def medians(group: Array, values: Array, count: int) -> Array:
    """Medians (count,) of the finite values (N,) in each group 0, 1, ...; NaN where there is none."""
    finite = np.isfinite(values) & (group < count)
    group, values = group[finite], values[finite]
    order = np.lexsort((values, group))
    group, values = group[order], values[order]
    sizes = np.bincount(group, minlength=count)
    starts = np.cumsum(sizes) - sizes
    middle, some = np.full(count, np.nan), sizes > 0
    low, high = (starts + (sizes - 1) // 2)[some], (starts + sizes // 2)[some]
    middle[some] = (values[low] + values[high]) / 2
    return middle


def outer_edges(points: Array, log: bool) -> Array:
    """Borders (n + 1,) of cells around points (n,), the outer cells as wide as their neighbours."""
    if len(points) == 1:
        half = (abs(points[0]) or 1.0) / 4
        return np.array([points[0] - half, points[0] + half])
    scaled = np.log(points) if log else points
    inner = cell_edges(scaled, False)
    inner[0], inner[-1] = 1.5 * scaled[0] - 0.5 * scaled[1], 1.5 * scaled[-1] - 0.5 * scaled[-2]
    return np.exp(inner) if log else inner


def draw_map(axes: Axes, x: Varied, y: Varied, values: Array, label: str, choice: Choice, floor: float = 0.0) -> list[str]:
    """Draws values (N,) of members as colours over x and y, hatched or crossed where there is none; returns notes.

    floor: below which values may be errors: logarithmic colours end there, and no sign is shown.
    """
    notes: list[str] = []
    label_axes(axes, choice, x, y, grid=is_grid(x, y))
    if is_grid(x, y) or len(values) > POINTS:
        cells = make_cells(x, y, values, choice)
        scale = color_scale(cells.values, label, choice.scale("c"), floor=floor, robust=True)
        shown, colors = scale.shown(cells.values)
        mesh: Any = axes.pcolormesh(cells.x, cells.y, shown, **colors, rasterized=True)
        fill_cells(axes, cells, ~np.isfinite(cells.values) & ~cells.empty, **LOST)
        if scale.cmap == DIVERGING:  # both ends are dark where there is no colour
            dot_cells(axes, cells, cells.values < -floor)
            notes.append("dotted: values < 0")
        axes.set(xlim=(cells.x[0], cells.x[-1]), ylim=(cells.y[0], cells.y[-1]))
        notes += [f"a cell: the median of its members, at most {thousands(cells.most)}"] * (cells.most > 1)
    else:
        scale = color_scale(values, label, choice.scale("c"), floor=floor, robust=True)
        size = float(np.clip(6e3 / max(len(values), 1), 2.0, 20.0))
        lost = ~np.isfinite(values)
        shown, colors = scale.shown(values[~lost])
        mesh = axes.scatter(x.values[~lost], y.values[~lost], s=size, c=shown, **colors, lw=0)
        axes.scatter(x.values[lost], y.values[lost], s=size + 4, c=FAINT, marker="x", lw=0.5)
    add_bar(axes, mesh, label, scale)
    few_ticks(axes, x=4, y=4)
    few_log_ticks(axes)
    return [*notes, *scale.notes]


def label_axes(axes: Axes, choice: Choice, *over: Varied, grid: bool = True) -> None:
    """Gives the axes the names and scales of the numbers that lie along them, x and, in a map, y."""
    for axis, varied, letter in zip((axes.xaxis, axes.yaxis), over, "xy", strict=False):
        log = choice.is_log(letter, varied.is_log and grid)
        if log:
            check_axis(letter, varied.name, varied.points)
        (axes.set_xscale if letter == "x" else axes.set_yscale)("log" if log else "linear")
        axis.set_label_text(varied.label)


def fill_cells(axes: Axes, cells: Cells, which: Array, **style: Any) -> None:
    """Fills cells which (m, n) with a colour, or a hatch, row by row in one patch for neighbours."""
    for j in range(len(which)):
        changes = np.flatnonzero(np.diff(np.concatenate([[0], which[j].astype(int), [0]])))
        for a, b in zip(changes[::2], changes[1::2], strict=True):
            axes.fill_between(cells.x[[a, b]], cells.y[j], cells.y[j + 1], lw=0, **style)


def dot_cells(axes: Axes, cells: Cells, which: Array) -> None:
    """Puts a dot on the middle of cells which (m, n); of more than DOTS along an axis, on some of them, spread evenly."""
    m, n = which.shape
    chosen = which & (np.arange(m) % -(-m // DOTS) == 0)[:, None] & (np.arange(n) % -(-n // DOTS) == 0)
    rows, columns = np.nonzero(chosen)
    places = ([cells.x[columns], cells.x[columns + 1]], axes.get_xscale()), ([cells.y[rows], cells.y[rows + 1]], axes.get_yscale())
    x, y = (np.sqrt(ends[0] * ends[1]) if scale == "log" else (ends[0] + ends[1]) / 2 for ends, scale in places)
    axes.scatter(x, y, s=2.0, c=FAINT, lw=0)


def lost_note(run: "xarray.Dataset", lost: Array) -> str:
    """How many members have no value and how they ended; empty if all have one. lost (N,)."""
    if not lost.any():
        return ""
    status = run["status"].values[lost]
    ended = [(name, int((status == k).sum())) for k, name in [*enumerate(run.attrs["status_names"]), (-1, "not done")]]
    reasons = ", ".join(f"{thousands(n)} {name}" for name, n in ended if n)
    return f"{thousands(len(status))} of {counted(len(lost), 'member')} without a value: {reasons}"
