"""Strips: an array at four telling times, side by side in one panel, as maps or as points with tails."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.ticker import FixedLocator, MaxNLocator

from odesim.base.arrays import Array
from odesim.plot.labels import axis_names, symbol
from odesim.plot.panels import WIDE, draw_cells
from odesim.plot.quantities import Quantity, has_unit_rows
from odesim.plot.scales import TimeAxis, time_text
from odesim.plot.style import FAINT, SEQUENTIAL, SMALL, distinct_colors

TIMES = 4
BESIDE = "ticks above curves: the times beside"
GAP = 0.1  # between two maps, of the width of one
APART, BELOW = 2.5, 3.0  # between the centres of two circles, in radii, beside each other and one below the other
ELEVATION, TURN = np.deg2rad((30.0, -60.0))  # from where a sphere is seen, as matplotlib's own
BEHIND = 0.3  # opacity of points on the far side of the sphere
Draw = Callable[[Axes, Quantity, Array, Sequence[str], bool], tuple[str, ...]]
"""Draws an array at some rows, and their times below; returns notes."""


def telling_rows(values: Any) -> Array:
    """Rows of masked values (T, n): the start, the end, and up to two between them that cut the way of the values into equal parts.

    So they are close in time where the values change fastest, on either side of it. Rows that are not finite are left out.
    """
    finite = np.flatnonzero(~np.ma.getmaskarray(values).any(axis=1))
    if len(finite) < 2:
        return finite if len(finite) else np.array([len(values) - 1])
    steps = np.diff(np.ma.getdata(values)[finite], axis=0)
    way = np.append(0.0, np.cumsum(np.linalg.norm(steps, axis=1)))
    parts = np.linspace(0, way[-1], TIMES)[1:-1]
    between = [int(np.argmin(np.abs(way - part))) for part in parts]
    return finite[np.unique([0, *between, len(finite) - 1])] if way[-1] > 0 else finite[-1:]


def draw_strip(axes: Axes, lines: Axes, quantity: Quantity, time_axis: TimeAxis, *, log: bool) -> tuple[str, ...]:
    """Draws the strip of a quantity, and marks its times above the panel of its lines; returns notes. log: of colours."""
    rows = time_axis.rows[telling_rows(np.ma.masked_invalid(quantity.flat[time_axis.rows]))]
    times = ["$t$ = " * (not k) + time_text(time_axis.t[row]) for k, row in enumerate(rows)]
    notes = STRIPS[quantity.strip](axes, quantity, rows, times, log)
    axes.tick_params(axis="x", length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    if len(rows) > 1:
        style: Any = {"transform": lines.get_xaxis_transform(), "color": FAINT, "lw": 0.6}
        lines.vlines(time_axis.positions(time_axis.t[rows]), 0.94, 1.0, **style)
        notes = (*notes, BESIDE)
    return notes


def draw_maps(
    axes: Axes, quantity: Quantity, rows: Array, times: Sequence[str], log: bool, *, from_zero: bool = False
) -> tuple[str, ...]:  # fmt: skip
    """A map for each row with one colour bar: the first index down, the others to the right. from_zero: colours."""
    maps = [np.ma.masked_invalid(quantity.values[row].reshape(quantity.rows, -1)) for row in rows]
    m, n = maps[0].shape
    gap, empty = GAP * n, np.ma.masked_invalid(np.full((m, 1), np.nan))
    starts = np.arange(len(maps)) * (n + gap)
    borders = np.concatenate([start + np.arange(n + 1) for start in starts])
    blocks = [block for one in maps for block in (empty, one)][1:]
    label = symbol(quantity.name, most=WIDE)
    mesh, notes = draw_cells(axes, (borders, np.arange(m + 1) - 0.5), np.ma.hstack(blocks), label, log=log, floor=quantity.floor)
    if from_zero and not log:
        mesh.set(norm=Normalize(0, max(float(one.max()) for one in maps)), cmap=SEQUENTIAL)
    axes.set_xlabel(axis_names(quantity.name, quantity.dims[quantity.leading :]))
    axes.set_ylabel(axis_names(quantity.name, quantity.dims[: quantity.leading]))
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10], integer=True) if m > 1 else FixedLocator([0]))
    axes.set_xticks(starts + n / 2, times)
    return notes


def draw_attention(axes: Axes, quantity: Quantity, rows: Array, times: Sequence[str], log: bool) -> tuple[str, ...]:
    """Maps with colours from 0."""
    return draw_maps(axes, quantity, rows, times, log, from_zero=True)


def draw_points(axes: Axes, quantity: Quantity, rows: Array, times: Sequence[str], _: bool) -> tuple[str, ...]:
    """The points of each row with tails from the row before; those behind a sphere are pale."""
    x = np.asarray(quantity.values, float)
    x = on_circle(x) if x.ndim == 2 else x
    unit = has_unit_rows(x)
    radius = 1.0 if unit else float(np.nanmax(np.linalg.norm(x[rows], axis=-1))) or 1.0
    x, depth = in_view(x)
    angle = np.linspace(0, 2 * np.pi, 200)
    for k, (row, time) in enumerate(zip(rows, times, strict=True)):
        # two beside each other: four would be half as large
        center = radius * np.array([APART * (k % 2), -BELOW * (k // 2)])
        if unit:  # around points of the plane a circle would say that they stay in it
            axes.plot(center[0] + np.cos(angle), center[1] + np.sin(angle), color=FAINT, lw=0.5)
        axes.text(center[0], center[1] - 1.1 * radius, time, ha="center", va="top", fontsize=SMALL)
        tail = center + x[rows[k - 1] if k else row : row + 1]
        for i, color in enumerate(distinct_colors(x.shape[1])):
            name = f"{quantity.name}[{i}]"
            pale = 1.0 if depth[row, i] >= 0 else BEHIND
            axes.plot(tail[:, i, 0], tail[:, i, 1], color=color, lw=0.6, alpha=0.5 * pale, label=name)
            axes.plot(tail[-1:, i, 0], tail[-1:, i, 1], "o", color=color, ms=2.5, alpha=pale, mec="white", mew=0.2, label=name)
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.set_ylabel(symbol(quantity.name, quantity.dims[:1]), fontsize=SMALL)
    return ()


def on_circle(angles: Array) -> Array:
    """The points (..., 2) of angles (...)."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def in_view(x: Array) -> tuple[Array, Array]:
    """Points (..., 2 or 3) as they are seen, (..., 2), and how far each is towards the viewer; 1 in a plane."""
    if x.shape[-1] == 2:
        return x, np.ones(x.shape[:-1])
    up, across = (np.sin(ELEVATION), np.cos(ELEVATION)), (np.cos(TURN), np.sin(TURN))
    seen = np.array([[-across[1], across[0], 0.0], [-up[0] * across[0], -up[0] * across[1], up[1]]])
    return x @ seen.T, x @ np.array([up[1] * across[0], up[1] * across[1], up[0]])


STRIPS: Mapping[str, Draw] = {"Matrix": draw_maps, "Attention": draw_attention, "Points": draw_points}
