"""The map of an ensemble over two numbers that differ between members: a cell, or a point, for each pair of values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from odesim.base.arrays import Array
from odesim.base.errors import counted
from odesim.plot.choice import Choice
from odesim.plot.members import Varied
from odesim.plot.panels import thousands
from odesim.plot.scales import above, add_bar, cell_edges, check_axis, color_scale, with_pale
from odesim.plot.style import DIVERGING, FAINT, few_log_ticks, few_ticks

POINTS, CELLS = 3000, 50  # largest number of points; cells of each axis for more
LOST: Mapping[str, Any] = {"facecolor": "#ececec", "edgecolor": FAINT, "hatch": "////////"}
DOTS = 40  # largest number of dots, on cells below 0, along an axis


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
    found, some = np.full(count, np.nan), sizes > 0
    low, high = (starts + (sizes - 1) // 2)[some], (starts + sizes // 2)[some]
    found[some] = (values[low] + values[high]) / 2
    return found


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
        scale = above(color_scale(cells.values, label, choice.scale("c"), robust=True), floor)
        shown, colors = with_pale(cells.values, scale)
        mesh: Any = axes.pcolormesh(cells.x, cells.y, shown, norm=scale.norm, cmap=colors, rasterized=True)
        fill_cells(axes, cells, ~np.isfinite(cells.values) & ~cells.empty, **LOST)
        if scale.cmap == DIVERGING:  # both ends are dark where there is no colour
            dot_cells(axes, cells, cells.values < -floor)
            notes.append("dotted: values < 0")
        axes.set(xlim=(cells.x[0], cells.x[-1]), ylim=(cells.y[0], cells.y[-1]))
        notes += [f"a cell: the median of its members, at most {thousands(cells.most)}"] * (cells.most > 1)
    else:
        scale = above(color_scale(values, label, choice.scale("c"), robust=True), floor)
        size = float(np.clip(6e3 / max(len(values), 1), 2.0, 20.0))
        lost = ~np.isfinite(values)
        shown, colors = with_pale(values[~lost], scale)
        mesh = axes.scatter(x.values[~lost], y.values[~lost], s=size, c=shown, norm=scale.norm, cmap=colors, lw=0)
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


def lost_note(statuses: Any, names: list[str], lost: Array, total: int) -> str:
    """How many members have no value and how they ended; empty if all have one. statuses (N,); lost (N,)."""
    if not lost.any():
        return ""
    ended = [(name, int((statuses[lost] == k).sum())) for k, name in [*enumerate(names), (-1, "not done")]]
    reasons = ", ".join(f"{thousands(n)} {name}" for name, n in ended if n)
    return f"{thousands(int(lost.sum()))} of {counted(total, 'member')} without a value: {reasons}"
