"""Draws one quantity against time: lines of few components, a map of many of a vector, a bundle of lines of a matrix or very many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, QuadMesh

from odesim.base.arrays import Array, entry, every_phase
from odesim.plot.choice import Choice
from odesim.plot.labels import LONG, EndLabels, axis_names, end_labels, place_names, symbol
from odesim.plot.scales import ALIKE, TimeAxis, add_bar, by_root, cell_edges, color_scale, make_log
from odesim.plot.style import CATEGORIES, DASHES, DIVERGING, SMALL, distinct_colors, few_log_ticks, few_ticks, literal, ordered_colors
from odesim.stepper.occurrences import Events

if TYPE_CHECKING:
    from odesim.run.solution import Solution

ROUNDING = 1e-12  # of the value: sums of some thousand terms, in an order that changes
EPS = 1e-16  # of the largest value: one rounding
LINES, ROWS, MAP = 20, 500, 2000  # largest numbers of components: as lines, as rows of a map, in a map
MATRIX = 10  # components of a matrix, more of which are seen as a map too
COLUMNS = 1000  # largest number of saved times in a map or bundle
# lines of a bundle, more of which are one surface; those that are named, and how far apart these end: the room of their names beside a
# panel of half of 80 mm
FAINT, CHOSEN, APART = 300, 6, 0.06
WIDE = 26  # letters above a colour bar
NAMED = 8  # largest number of rows of a map that have names
MAX_MARKS = 12  # largest number of marks of one event
MARKED = 20  # largest number of saved times marked by dots
WORK, LEADING, TINY = 1e9, 4, 1e-3  # of singular values: multiplications for all times; how many; of the norm, smaller ones are not seen
PALE = 0.3  # of blue, a faint line
# views of an event of which each component has a row of ticks, and of the norm and singular values below the bundle of their matrix
RASTER, SPECTRUM = "Raster", "Spectrum"


def is_still(values: Array) -> bool:
    """Whether the columns of values (T, n) are finite and change by no more than the rounding of a sum."""
    return bool(np.isfinite(values).all()) and bool(np.all(np.ptp(values, axis=0) <= ROUNDING * np.abs(values[0])))


@dataclass(frozen=True, eq=False)
class Quantity:
    """A state or observable to draw: values (T, *shape), the names of the axes of shape, the times at which each component jumps.

    floor: below which size values may be errors, 0 where that is not known. view: its kind, as its System wants it to be seen.
    names: of the components, default their indices. marks {event: (numbers of occurrences (m,), their components (m,))}.
    between: times (k,) between the saved ones and the values there (k, *shape); the time of a jump twice, with both sides.
    ordered: whether its lines are dark to light by index, for components in some order.
    """

    name: str
    values: Array
    dims: tuple[str, ...]
    jumps: tuple[Array, ...] = ()
    floor: float = 0.0
    view: str = ""
    names: tuple[str, ...] = ()
    marks: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    between: tuple[Array, Array] | None = None
    ordered: bool = True

    @property
    def flat(self) -> Array:
        """The values (T, n) with components in C order."""
        return np.asarray(self.values, float).reshape(len(self.values), -1)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape[1:]

    @property
    def count(self) -> int:
        return int(np.prod(self.shape, dtype=int))

    @property
    def kind(self) -> str:
        """How it is drawn over time: `lines`, `map` (a vector) or `bundle`; or `raster`, the occurrences of an event alone."""
        if self.view in (RASTER, "Map"):
            return self.view.lower()
        return "lines" if self.count <= LINES else "map" if self.count <= MAP and len(self.shape) == 1 and not self.view else "bundle"

    @property
    def leading(self) -> int:
        """How many axes go down in a map of the array: the first one that is longer than 1, and those before it."""
        return next((k + 1 for k, extent in enumerate(self.shape) if extent > 1), 1)

    @property
    def rows(self) -> int:
        """Rows of a map of the array."""
        return int(np.prod(self.shape[: self.leading], dtype=int))

    @property
    def strip(self) -> str:
        """How a strip beside it shows it at a few times: `Matrix`, `Attention`, `Points`; empty without one.

        Without a view a matrix of many values that come to differ has one: points are rows of length 1, attention has rows of sum 1.
        """
        values, rows = np.asarray(self.values, float), self.rows
        if self.view == "Points":
            return self.view if len(self.shape) == 1 or (len(self.shape) == 2 and self.shape[1] in (2, 3)) else ""
        if len(self.shape) < 2 or max(rows, self.count // rows) > ROWS or self.view not in ("", "Matrix", "Attention"):
            return ""
        whole = self.flat[np.isfinite(self.flat).all(axis=1)]
        ends = whole[[0, -1]] if len(whole) else ()
        if self.view or self.count <= MATRIX or all(np.ptp(row) <= ALIKE * np.abs(row).max() for row in ends):
            return self.view
        if len(self.shape) == 2 and has_unit_rows(values):
            return "Points"
        shares = whole[-1].reshape(rows, -1)
        shares = shares.min() >= 0 and np.allclose(shares.sum(axis=1), 1, rtol=0, atol=1e-6)
        return "Attention" if shares else "Matrix"

    @property
    def label(self) -> str:
        """The name with its axes, as a symbol."""
        return symbol(self.name, self.dims)

    def part(self, index: tuple[int, ...] | None) -> "Quantity":
        """One component as a number, whose label has the index; all of it for None."""
        if not index:
            return self
        chosen: Any = (slice(None), *index)
        number = int(np.ravel_multi_index(index, self.shape))
        jumps = self.jumps and (self.jumps[number],)
        marks = {event: (k[i == number], i[i == number] * 0) for event, (k, i) in self.marks.items()}
        view = "Log" if self.view == "Log" else ""
        return Quantity(self.name, self.values[chosen], tuple(map(str, index)), jumps, self.floor, view, marks=marks)

    def curve(self, i: int, t: Array, rows: Any = slice(None)) -> tuple[Array, Any, Array]:
        """(times, masked values, numbers of the saved points) of the line of component i, with its jumps. t (T,): saved times."""
        line, t = np.ma.masked_invalid(self.flat[rows, i]), t[rows]
        if self.between is None:
            return with_jumps(t, line, self.jumps[i]) if self.jumps else (t, line, np.arange(len(t)))
        more, values = self.between
        # of equal times the side before a jump is first, then the saved point, which has the side after it
        twice = np.append(more[1:] == more[:-1], False)
        rank = np.concatenate([np.ones(len(t), int), np.where(twice, 0, 2)])
        times = np.concatenate([t, more])
        order = np.lexsort((rank, times))
        order = order[times[order] >= t[0]]
        every = np.ma.concatenate([line, np.ma.masked_invalid(values.reshape(len(more), -1)[:, i].astype(float))])
        return times[order], every[order], np.flatnonzero(order < len(t))

    @property
    def is_constant(self) -> bool:
        """Whether it has few components and none changes by more than rounding."""
        return self.count <= LINES and len(self.values) > 1 and is_still(self.flat)

    @property
    def in_order(self) -> bool:
        """Whether components rise, or fall, with their index at most times."""
        steps = np.diff(self.flat, axis=1)
        return bool(np.mean((steps >= 0).all(axis=1) | (steps <= 0).all(axis=1)) > 0.5)

    @property
    def neighbours(self) -> int:
        """Number of neighbouring components of which a map shows the largest."""
        return -(-self.count // ROWS) if self.kind == "map" else 1

    def component(self, i: int) -> str:
        """The index of component i as text: `3`, or `1,0` of a matrix."""
        return self.names[i] if self.names else ",".join(map(str, np.unravel_index(i, self.shape)))

    def part_name(self, i: int) -> str:
        """Component i of the array as text, such as `v[3]`; a number has its name."""
        at = self.names[i : i + 1] if self.names else np.unravel_index(i, self.shape)
        return entry(self.name, at if self.count > 1 or self.shape else ())

    @property
    def spectrum(self) -> "Quantity | None":
        """The Frobenius norm and the leading singular values of a matrix; None where they would take long, or where it is no matrix.

        A few components of many say little of a matrix: its size and how many directions it has say more.
        """
        if self.strip != "Matrix" or sum(extent > 1 for extent in self.shape) != 2 or self.kind != "bundle":
            return None
        rows, columns = self.rows, self.count // self.rows
        if min(rows, columns) < 2 or len(self.values) * rows * columns * min(rows, columns) > WORK:
            return None
        values = self.flat.reshape(-1, rows, columns)
        whole = np.isfinite(values).all(axis=(1, 2))
        singular = np.full((len(values), min(rows, columns)), np.nan)
        singular[whole] = np.linalg.svd(values[whole], compute_uv=False)
        norm = np.sqrt((singular**2).sum(axis=1))
        count = int((singular[whole, :LEADING].max(axis=0) > TINY * norm[whole].max()).sum())
        names = ("norm", *(rf"$\sigma_{{{k + 1}}}$" for k in range(count)))
        return Quantity("σ", np.column_stack([norm, singular[:, :count]]), (), view=SPECTRUM, names=names)


def has_unit_rows(values: Array) -> bool:
    """Whether values (T, n, d) are vectors of 2 or 3 components and length 1."""
    return values.shape[-1] in (2, 3) and np.allclose(np.linalg.norm(values, axis=-1), 1.0, rtol=0, atol=1e-3)


def components_at(events: Events, components: str, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """(numbers of occurrences (m,), components of an array (m,) to which they belong). components: of the array, as runs have them."""
    every = np.arange(len(events))
    if components == "component" and events.indices is not None:
        return every, np.ravel_multi_index(tuple(events.indices.T), shape)
    chosen: Any = np.arange(int(np.prod(shape, dtype=int)))
    if components not in ("component", "all"):
        chosen = [np.ravel_multi_index(tuple(map(int, index.split(","))), shape) for index in components.split()]
    return np.repeat(every, len(chosen)), np.tile(chosen, len(every))


def marks_of(name: str, shape: tuple[int, ...], solution: "Solution") -> dict[str, tuple[Array, Array]]:
    """The marks of the events of a Solution on a state or observable: on what their functions read of it, and on what they set.

    Where these are more than MAX_MARKS, on what they read, if anything. An event of all components of many has none.
    """
    marks, few = {}, int(np.prod(shape, dtype=int)) <= LINES
    for event, occurrences in solution.events.items():
        places = [solution.attrs.get(key, {}).get(event, {}).get(name, "") for key in ("watched", "jumps")]
        events = Events.of(occurrences)
        each = [components_at(events, place, shape) for place in places if place and len(events) and (few or place != "all")]
        if each:
            numbers, components = np.unique(np.concatenate(each, axis=1), axis=1)
            marks[event] = (numbers, components) if len(numbers) <= MAX_MARKS else each[0]
    return marks


def jump_times(name: str, shape: tuple[int, ...], solution: "Solution") -> tuple[Array, ...]:
    """The times at which each component of a state or observable of a Solution jumps; () where none does."""
    jumps: Mapping[str, Mapping[str, str]] = solution.attrs.get("jumps", {})
    count = int(np.prod(shape, dtype=int))
    jumps_of: list[list[Array]] = [[] for _ in range(count)]
    for event, names in jumps.items():
        occurrences = Events.of(solution.events.get(event, ()))
        if name not in names or not len(occurrences):
            continue
        numbers = None if names[name] == "all" else components_at(occurrences, names[name], shape)
        for i in range(count):
            jumps_of[i].append(occurrences.t if numbers is None else occurrences.t[numbers[0][numbers[1] == i]])
    return tuple(np.unique(np.concatenate(parts)) for parts in jumps_of) if any(jumps_of) else ()


def is_apart(after: Array, count: int) -> Array:
    """Whether two of `count` points on either side of a jump have no other jump between them, (n, 2).

    after (n,): increasing numbers of the first point after each jump.
    """
    gaps = np.diff(np.concatenate([[0], after, [count]])) > 1
    return np.column_stack([gaps[:-1], gaps[1:]])


def with_jumps(x: Array, values: Any, at: Array) -> tuple[Array, Any, Array]:
    """(x, values, numbers of the given points) of a line with a vertical part at each of the positions `at`.

    On either side it goes on as straight as the two points there, where no other jump is between them; else it has a gap there.
    """
    after = np.searchsorted(x, at, side="left")
    inside = (after > 0) & (after < len(x))
    after, at = after[inside], at[inside]
    line = np.ma.concatenate([values, np.ma.masked_all(2 * len(at))])
    for side, apart in enumerate(is_apart(after, len(x)).T):
        near, step = after[apart] - 1 + side, 2 * side - 1
        reach = (at[apart] - x[near]) / (x[near] - x[near + step])
        line[len(x) + 2 * np.flatnonzero(apart) + side] = values[near] + reach * (values[near] - values[near + step])
    order = np.insert(np.arange(len(x)), np.repeat(after, 2), len(x) + np.arange(2 * len(at)))
    return np.concatenate([x, np.repeat(at, 2)])[order], line[order], np.flatnonzero(order < len(x))


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
        lines = draw_lines(axes, quantity, values, time_axis)
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


def draw_lines(axes: Axes, quantity: Quantity, values: Any, time_axis: TimeAxis) -> tuple[list[str], list[float]]:
    """Draws a line for each component; returns their names and last values."""
    n, dots = quantity.count, len(time_axis.x) <= MARKED
    colors: list[Any] = [CATEGORIES[0]] if n == 1 else line_colors(quantity, range(n))
    lines = []
    for i in range(n):
        t, line, points = quantity.curve(i, time_axis.t, time_axis.rows)
        x = time_axis.positions(t)
        lines.append(line)
        look: Any = {"color": colors[i], "ls": DASHES[0 if quantity.ordered else i // len(CATEGORIES) % len(DASHES)]}
        look |= {"marker": "o" if dots else "", "markevery": points.tolist(), "clip_on": not dots}
        axes.plot(x, line, **look, label=quantity.part_name(i))
    if quantity.between is None or np.ma.concatenate(lines).min() > 0:  # points about events do not count as values
        set_value_scale(axes, values, floor=quantity.floor)
    axes.set_ylabel(quantity.label)
    return [quantity.component(i) for i in range(n)], last_finite(values)


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
    n, ends = quantity.count, np.array(last_finite(values))
    set_value_scale(axes, values, floor=quantity.floor)
    # how far apart is seen on the axis as it is
    places = values
    if log or axes.get_yscale() == "log":
        places = np.ma.log(np.ma.masked_less_equal(values, 0))
        places = places - places.min()  # from below: the largest value is the largest
    apart = APART * float(np.ma.filled(places.max() - places.min(), 0.0))
    sizes = np.ma.filled(np.abs(places).max(axis=0), 0.0)
    chosen = far_apart(np.array(last_finite(places)), sizes, apart)
    extremes = [] if not values.count() else [values.max(axis=0).argmax(), values.min(axis=0).argmin()]
    faint = np.union1d(spread_indices(n, FAINT), [*chosen, *extremes]).astype(int)
    lines = [np.column_stack([x, np.ma.filled(values[:, i], np.nan)]) for i in faint]
    axes.add_collection(LineCollection(lines, colors=[colormaps["Blues"](PALE)], linewidths=0.5))
    for color, i in zip(line_colors(quantity, chosen), chosen, strict=True):
        axes.plot(x, values[:, i], color=color, label=quantity.part_name(i))
    axes.set_ylabel(quantity.label)
    part = f"{thousands(len(faint))} of " * (len(faint) < n)
    axes.set_title(part + f"{thousands(n)} components", loc="right", fontsize=SMALL)
    names = ["all" if len(chosen) == 1 and np.ptp(sizes) <= apart else quantity.component(i) for i in chosen]
    return names, [float(ends[i]) for i in chosen]


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


def last_finite(values: Any) -> list[float]:
    """The last finite values (n,) of the columns of masked values (T, n); nan if there is none."""
    there = ~np.ma.getmaskarray(values)
    last = len(there) - 1 - there[::-1].argmax(axis=0)
    ends = np.ma.getdata(values)[last, np.arange(there.shape[1])]
    return [float(end) for end in np.where(there.any(axis=0), ends, np.nan)]
