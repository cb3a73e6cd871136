"""Draws one quantity against time: lines of few components, a map of many of a vector, a bundle of lines of a matrix or very many."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, QuadMesh

from odesim.base.arrays import Array, every_phase
from odesim.plot.choice import Choice
from odesim.plot.labels import LONG, EndLabels, axis_names, end_labels, place_names, symbol
from odesim.plot.quantities import EPS, NEAR, Quantity
from odesim.plot.scales import TimeAxis, add_bar, by_root, cell_edges, color_scale, make_log
from odesim.plot.style import CATEGORIES, DASHES, DIVERGING, SMALL, distinct_colors, few_log_ticks, few_ticks, literal, ordered_colors

if TYPE_CHECKING:
    pass

COLUMNS = 1000  # largest number of saved times in a map or bundle
# lines of a bundle, more of which are one surface; those that are named, and how far apart these end: the room of their names beside a
# panel of half of 80 mm
FAINT, CHOSEN, APART = 300, 6, 0.06
WIDE = 26  # letters above a colour bar
NAMED = 8  # largest number of rows of a map that have names
MARKED = 20  # largest number of saved times marked by dots
FAINT_BLUE, THIN = colormaps["Blues"](0.3), 0.5  # of the lines of a bundle without a name; points
ENDED = "lines end where their sign flips"
HALVES = ("even updates", "odd updates")  # curves of a map that jumps between them, solid and dashed


def draw_cells(
    axes: Axes, borders: tuple[Array, Array], shown: Any, label: str, over: Any = None, *, log: bool | None = False, floor: float = 0.0
) -> tuple[QuadMesh, tuple[str, ...]]:
    """Draws masked values shown (m, n) as cells with borders x (n + 1,), y (m + 1,), with a labelled colour bar above.

    Row 0 is on top.
    Values of both signs get diverging colours. over: masked values whose range the colours have, default those shown. log: logarithmic
    colours, which begin at floor, cells below are grey; None: those of by_root. Returns the cells and notes on values that have no colour.
    """
    values = (shown if over is None else over).compressed()
    scale = color_scale(values, label, bool(log), floor=floor)
    scale = by_root(scale, values) if log is None else scale
    shown, colors = scale.shown(shown)
    mesh = axes.pcolormesh(*borders, shown, **colors, rasterized=True)
    axes.invert_yaxis()
    ticks: Any = None
    if scale.cmap == DIVERGING:
        size = float(scale.norm.vmax or 1.0)
        power = 10.0 ** np.floor(np.log10(size))
        end = power * max(step for step in (1, 1.5, 2, 3, 4, 5, 6, 8) if step * power <= size * (1 + 1e-12))
        ticks = [-end, 0.0, end]
    add_bar(axes, mesh, label, scale, ticks)
    return mesh, scale.notes


def draw_quantity(
    axes: Axes,
    quantity: Quantity,
    time_axis: TimeAxis,
    places: Mapping[str, Sequence[str]] = MappingProxyType({}),
    choice: Choice = Choice(),  # noqa: B008  frozen
) -> tuple[EndLabels | None, list[str]]:
    """Draws the quantity; returns the labels of its lines, not placed yet, or None, and notes on values that are not shown.

    places {axis: names of its places}, drawn beside the rows of a map. choice: logarithmic scales of values and colours.
    """
    axes.set_xscale("log" if time_axis.log else "linear")
    values = np.ma.masked_invalid(quantity.flat[time_axis.rows])
    lines, notes = None, list[str]()
    if quantity.kind == "raster":
        axes.set_ylim(quantity.count - 0.5, -0.5)
        axes.set_ylabel(axis_names(quantity.name, quantity.dims))
        axes.set_title(literal(quantity.name), loc="right", fontsize=SMALL)
    elif quantity.kind == "map":
        notes += draw_map(axes, quantity, values, time_axis, log=choice.scale("c"))
    elif quantity.kind == "bundle":
        lines = draw_bundle(axes, quantity, values, time_axis, log=choice.is_log("y", quantity.view == "Log"))
    else:
        lines, notes = draw_lines(axes, quantity, values, time_axis, log=choice.is_log("y", quantity.view == "Log"))
    if len(time_axis.x) > 1:
        axes.set_xlim(time_axis.x[0], time_axis.x[-1])
    by_row = quantity.kind in ("map", "raster")
    few_ticks(axes, whole=by_row)
    if not by_row and choice.is_log("y", quantity.view == "Log"):
        notes += make_log(axes, symbol(quantity.name, quantity.dims, most=LONG))
    elif not by_row and choice.scale("y") is False:
        axes.set_yscale("linear")
    if axes.get_yscale() == "log" and axes.yaxis.get_minpos() < 1e-290:
        axes.margins(y=0)  # a twentieth of more than 290 decades further down there is no number
    few_log_ticks(axes)
    if quantity.kind == "raster" and len(quantity.shape) > 1:  # its rows are elements of a matrix
        axes.yaxis.set_major_formatter(lambda row, _: quantity.component(int(row)) if 0 <= row < quantity.count else "")
    if quantity.kind == "map" and len(places.get(quantity.dims[0], ())) == quantity.count <= NAMED:
        names = [literal(name) for name in place_names(places[quantity.dims[0]])]
        axes.set_yticks(range(len(names)), names, fontsize=SMALL)
    return end_labels(axes, *lines) if lines and (quantity.count > 1) else None, notes


def draw_lines(
    axes: Axes, quantity: Quantity, values: Any, time_axis: TimeAxis, *, log: bool = False
) -> tuple[tuple[list[str], list[float]], list[str]]:  # fmt: skip
    """Draws a line for each component, more than there are colours without an order as a bundle.

    log: lines of values of one sign end where they are noise. Returns (names, last values), and notes.
    """
    n, dots = quantity.count, len(time_axis.x) <= MARKED
    curves = [quantity.curve(i, time_axis.t, time_axis.rows) for i in range(n)]
    if quantity.between is None or np.ma.concatenate([line for _, line, _ in curves]).min() > 0:  # points about events are no values
        set_value_scale(axes, values, floor=quantity.floor)
    wholes = [line for _, line, _ in curves]
    if log:
        curves = [(t, until_noise(line, quantity.floor), points) for t, line, points in curves]
    bundle = n > len(CATEGORIES) and not quantity.ordered and quantity.strip != "Points"
    chosen, names = named_lines(axes, quantity, values, log=log) if bundle else (range(n), [quantity.component(i) for i in range(n)])
    colors: dict[int, Any] = dict(zip(chosen, [CATEGORIES[0]] if n == 1 else line_colors(quantity, chosen), strict=True))
    for i, (t, line, points) in enumerate(curves):
        x, name = time_axis.positions(t), quantity.part_name(i)
        look: Any = {"color": colors[i]} if i in colors else {"color": FAINT_BLUE, "lw": THIN, "zorder": 1.9}
        look |= {"marker": "o" if dots else "", "markevery": points.tolist(), "clip_on": not dots}
        label = name if i in colors else f"_{name}"
        if not quantity.halves:
            dash = 0 if quantity.ordered else i // len(CATEGORIES) % len(DASHES) if not bundle else 0
            axes.plot(x, line, **look, ls=DASHES[dash], label=label)
            continue
        labels = [f"_{half}" for half in HALVES] if n == 1 else [label, f"_{name}"]
        for odd, label in enumerate(labels):  # where both are one, dashes on a line are a line
            half = t % 2 == odd
            axes.plot(x[half], line[half], **look | {"markevery": None}, ls=DASHES[odd], label=label)
    axes.set_ylabel(quantity.label)
    if bundle:
        axes.set_title(f"{thousands(n)} components", loc="right", fontsize=SMALL)
    ended = any(line.count() < np.ma.count(whole) for (_, line, _), whole in zip(curves, wholes, strict=True))
    ends = [last_finite(line[:, None])[0] for _, line, _ in curves]
    return (names, [ends[i] for i in chosen]), [ENDED] * ended


def until_noise(line: Any, floor: float) -> Any:
    """Masked values (T,) without those from where the first is below floor and not positive, as long as they stay below NEAR of it.

    A gap that decays has any sign there: on a logarithmic axis its line would be in pieces.
    """
    small = np.ma.filled(np.abs(line) < NEAR * floor, False)
    lost = np.maximum.accumulate(np.ma.filled(line <= 0, False) & small)
    return np.ma.masked_where(lost & small, line)


def draw_map(axes: Axes, quantity: Quantity, values: Any, time_axis: TimeAxis, *, log: bool | None) -> tuple[str, ...]:
    """Draws a vector as a map: time to the right, component 0 on top, the value as colour; returns notes. log None: by the values."""
    columns = every_phase(len(time_axis.x), COLUMNS)
    shown = largest_neighbours(values[columns], quantity.neighbours)
    rows = np.append(np.arange(0, quantity.count, quantity.neighbours), quantity.count) - 0.5
    axes.set_ylabel(symbol(quantity.dims[0]))
    edges = cell_edges(time_axis.x[columns], time_axis.log)
    label = symbol(quantity.name, most=WIDE)
    return draw_cells(axes, (edges, rows), shown.T, label, log=log, floor=quantity.floor)[1]


def draw_bundle(axes: Axes, quantity: Quantity, values: Any, time_axis: TimeAxis, *, log: bool = False) -> tuple[list[str], list[float]]:
    """Draws a faint line for each component, evenly spread ones of very many, and a few by colour and name; returns names and ends.

    Components have no common law as members of an ensemble have: their quantiles would say nothing.
    """
    columns = every_phase(len(time_axis.x), COLUMNS)
    x, values = time_axis.x[columns], values[columns]
    n = quantity.count
    set_value_scale(axes, values, floor=quantity.floor)
    chosen, names = named_lines(axes, quantity, values, log=log)
    extremes = [] if not values.count() else [values.max(axis=0).argmax(), values.min(axis=0).argmin()]
    faint = np.union1d(spread_indices(n, FAINT), [*chosen, *extremes]).astype(int)
    lines = [np.column_stack([x, np.ma.filled(values[:, i], np.nan)]) for i in faint]
    axes.add_collection(LineCollection(lines, colors=[FAINT_BLUE], linewidths=THIN))
    for color, i in zip(line_colors(quantity, chosen), chosen, strict=True):
        axes.plot(x, values[:, i], color=color, label=quantity.part_name(i))
    axes.set_ylabel(quantity.label)
    part = f"{thousands(len(faint))} of " * (len(faint) < n)
    axes.set_title(part + f"{thousands(n)} components", loc="right", fontsize=SMALL)
    ends = last_finite(values)
    return names, [ends[i] for i in chosen]


def named_lines(axes: Axes, quantity: Quantity, values: Any, *, log: bool) -> tuple[list[int], list[str]]:
    """The components of a bundle of values (T, n) that have a colour, and their names: the largest, and those that end far from these."""
    # how far apart is seen on the axis as it is
    places = values
    if log or axes.get_yscale() == "log":
        places = np.ma.log(np.ma.masked_less_equal(values, 0))
        places = places - places.min()  # from below: the largest value is the largest
    apart = APART * float(np.ma.filled(places.max() - places.min(), 0.0))
    sizes = np.ma.filled(np.abs(places).max(axis=0), 0.0)
    chosen = far_apart(np.array(last_finite(places)), sizes, apart)
    return chosen, ["all" if len(chosen) == 1 and np.ptp(sizes) <= apart else quantity.component(i) for i in chosen]


def line_colors(quantity: Quantity, chosen: Sequence[int]) -> list[Any]:
    """Colours of the lines of these components; those of a point that is drawn beside have its colour."""
    if quantity.strip != "Points":
        return (ordered_colors if quantity.ordered else distinct_colors)(len(chosen))
    of_points = distinct_colors(quantity.shape[0])
    return [of_points[i * quantity.shape[0] // quantity.count] for i in chosen]


def with_order(drawn: Sequence[Quantity]) -> list[Quantity]:
    """The quantities; those of an axis have ordered colours, all of them, where one of them is in order."""
    ordered = {q.dims for q in drawn if q.kind == "lines" and q.in_order}
    return [replace(q, ordered=q.dims in ordered) if q.kind == "lines" else q for q in drawn]


def far_apart(ends: Array, sizes: Array, apart: float) -> list[int]:
    """Up to CHOSEN of the components (n,), in order: the largest, then always the one whose end is farthest from these, if further apart.

    sizes (n,): how large each is at most, for what decays may be small at its end.
    """
    finite = np.flatnonzero(np.isfinite(ends))
    chosen: list[int] = []
    gaps = sizes[finite]
    while len(finite) and len(chosen) < CHOSEN and (gaps.max() > apart or not chosen):
        chosen.append(int(finite[np.argmax(gaps)]))
        gaps = np.abs(ends[finite, None] - ends[chosen]).min(axis=1)
    return sorted(chosen)


def largest_neighbours(values: Any, every: int) -> Any:
    """The entry largest in absolute value of each `every` neighbouring columns of masked values (T, n), at each time."""
    if every == 1:
        return values
    starts = np.arange(0, values.shape[1], every)
    low, high = (f.reduceat(values.filled(empty), starts, axis=1) for f, empty in ((np.minimum, np.inf), (np.maximum, -np.inf)))
    return np.ma.masked_invalid(np.where(-low > high, low, high))


def thousands(n: int) -> str:
    """A whole number as text with narrow spaces between thousands."""
    return f"{n:,}".replace(",", "\u202f")


def spread_indices(n: int, most: int) -> Array:
    """Indices (m,) of at most `most` of n items, spread evenly, with the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))


def set_value_scale(axes: Axes, values: Any, *, decades: int = 3, floor: float = 0.0) -> None:
    """Makes the value axis logarithmic if values (T, ...) are positive at the start, not negative later, and span this many decades.

    floor: below which values may be errors; they count as it does, as do those below the rounding of the largest: noise or a loss of
    exactly 0 is not what an axis is for. A tenth of them must span half as many: a curve that only touches 0, as a ball the floor, stays
    linear. Half of them must be below a tenth of the largest: growth that soon ends, stage by stage, stays linear too.
    """
    if not values.count() or np.ma.filled(values[0].min(), 1.0) <= 0 or values.min() < -floor:
        return
    largest = float(values.max())
    seen = np.maximum(values.compressed(), max(floor, EPS * largest))
    lower, middle = np.quantile(seen, (0.1, 0.5))
    if largest > max(10**decades * seen.min(), 10 ** (decades / 2) * lower, 10 * middle):
        axes.set_yscale("log")


def set_loss_scale(axes: Axes, values: Any) -> None:
    """Makes the value axis logarithmic if all values are positive and span a decade or more."""
    if values.count() and values.min() > 0 and values.max() >= 10 * values.min():
        axes.set_yscale("log")


def alternates(values: Array, t: Array) -> bool:
    """Whether values (T, n) jump between even and odd updates t (T,): the way of all is far longer than those of the two alone.

    The way of noise is as long as these, and of what rises half as long. Few values are seen one by one.
    """
    if len(t) <= MARKED:
        return False
    every, even, odd = (float(np.nansum(np.abs(np.diff(values[part], axis=0)))) for part in (t >= t[0], t % 2 == 0, t % 2 == 1))
    return every > 2 * (even + odd)


def last_finite(values: Any) -> list[float]:
    """The last finite values (n,) of the columns of masked values (T, n); nan if there is none."""
    there = ~np.ma.getmaskarray(values)
    last = len(there) - 1 - there[::-1].argmax(axis=0)
    ends = np.ma.getdata(values)[last, np.arange(there.shape[1])]
    return [float(end) for end in np.where(there.any(axis=0), ends, np.nan)]
