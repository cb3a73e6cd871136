"""Frames of a film: a vector as bars or a line, a matrix as an image, unit vectors as points, members as a histogram, curve or map."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from odesim.base.arrays import Array
from odesim.base.errors import counted
from odesim.plot.choice import Choice
from odesim.plot.ensemble_panels import (
    LOST,
    MARGIN,
    POINTS,
    doubt,
    fill_cells,
    fit_axis,
    is_grid,
    label_axes,
    make_bins,
    make_cells,
    make_groups,
    medians,
)
from odesim.plot.header import add_header
from odesim.plot.labels import place_names, symbol
from odesim.plot.members import Drawn, Varied
from odesim.plot.panels import draw_cells, thousands
from odesim.plot.quantities import has_unit_rows
from odesim.plot.scales import add_bar, color_scale, make_log, shade_below, spans
from odesim.plot.strips import BEHIND, in_view
from odesim.plot.style import CATEGORIES, FAINT, SMALL, compute_layout, distinct_colors, few_log_ticks, few_ticks, literal, new_figure
from odesim.plot.trajectory import Table, label_places

if TYPE_CHECKING:
    import xarray

BARS = 100  # largest number of components drawn as bars: a line between spins would be a fence
FLAT, ROUND, FOOT = 46.0, 70.0, 6.0  # mm: height of a vector's panel, of a circle's or sphere's; a line below
CURVE, MAP = 46.0, 62.0  # mm: heights of the panels of an ensemble
LEAST, PITCH = 26.0, 1.4  # mm: of a matrix, its bar and labels; of a row
NO_VALUE = "×: no finite value"  # a note
BEYOND = 3.0  # times the highest bar of half of the frames: what is higher would flatten all others
ROOM = 0.05  # above and below the values, of their range


@dataclass(frozen=True)
class Film:
    """Values (T, *shape) of `name` at times t (T,), the names of the axes of shape, and what is said above them.

    labels {axis: names of its places}, such as words. unit: of time.
    """

    name: str
    title: str
    t: Array
    values: Array
    dims: tuple[str, ...]
    unit: str
    labels: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """How it is drawn: `vector`, `matrix`, or `points`, the rows of a matrix of 2 or 3 columns that all have length 1."""
        if self.values.ndim == 2:
            return "vector"
        return "points" if has_unit_rows(self.values) else "matrix"


@dataclass(frozen=True)
class MemberFilm:
    """Values (T, N) of a component of all members at times t (T,), NaN where there is none, over up to two numbers that vary.

    alone: whether nothing else differs between members. lost: how many have no value at the end, and why; empty if all have one.
    floor: below which values may be errors of the integration: logarithmic colours end there. run: the ensemble.
    """

    title: str
    t: Array
    unit: str
    values: Array
    drawn: Drawn
    over: tuple[Varied, ...]
    choice: Choice
    alone: bool
    lost: str
    floor: float
    run: "xarray.Dataset"

    @property
    def label(self) -> str:
        """The component as a symbol."""
        return self.drawn.symbol(0)


Show = Callable[[int], None]  # draws frame k
Frames = tuple[Figure, Show, list[str]]
"""A figure, the function that draws frame k in it, and notes on what the picture does not show by itself."""


def make_frames(film: Film | MemberFilm) -> tuple[Figure, Show]:
    """(Figure, function that draws frame k in it). Scales and layout are the same in all frames."""
    if isinstance(film, MemberFilm):
        figure, show, notes = member_frames(film)
    else:
        figure, show, notes = {"vector": vector_frames, "matrix": matrix_frames, "points": point_frames}[film.kind](film)
    add_header(figure, film.title, notes, last=clock(film, len(film.t) - 1))
    compute_layout(figure, last=True)
    note = figure.texts[-1]
    above = note.get_text().rpartition("\n")[0]

    def draw(frame: int) -> None:
        show(frame)
        note.set_text(f"{above}\n{clock(film, frame)}".lstrip("\n"))

    return figure, draw


def clock(film: Film | MemberFilm, frame: int) -> str:
    """The time of a frame as text."""
    return f"$t$ = {film.t[frame]:.4g}" + (f" ({literal(film.unit)})" if film.unit else "")


def vector_frames(film: Film) -> Frames:
    """A bar for each component, or a line of many."""
    figure = new_figure(FLAT + FOOT)
    axes = figure.add_subplot()
    values, n = np.ma.masked_invalid(film.values), film.values.shape[1]
    low, high = (float(values.min()), float(values.max())) if values.count() else (0.0, 1.0)
    low, high = (min(low, 0.0), max(high, 0.0)) if n <= BARS else (low, high)
    room = ROOM * (high - low) or 1.0
    axes.set(xlim=(-0.5, n - 0.5), ylim=(low - room * (low < 0 or n > BARS), high + room), ylabel=symbol(film.name, film.dims))
    axes.set_xlabel(symbol(film.dims[0]))
    few_ticks(axes)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=True))
    names = film.labels.get(film.dims[0], ())
    if n > BARS:
        (line,) = axes.plot(np.arange(n), film.values[0], color=CATEGORIES[0])
        return figure, lambda frame: line.set_ydata(film.values[frame]), []
    bars = axes.bar(np.arange(n), np.zeros(n), color=CATEGORIES[0])
    if len(names) >= n:
        axes.set_xticks(range(n), [literal(name) for name in place_names(names[:n])], rotation=90, fontsize=SMALL)

    (crosses,) = axes.plot([], [], "x", color=FAINT, ms=3.0)

    def show(frame: int) -> None:
        for bar, value in zip(bars, film.values[frame], strict=True):
            bar.set_height(value)
        lost = np.flatnonzero(~np.isfinite(film.values[frame]))
        crosses.set_data(lost, np.zeros(len(lost)))

    return figure, show, [NO_VALUE] * (not np.isfinite(film.values).all())


def matrix_frames(film: Film) -> Frames:
    """An image with row 0 on top; of many columns with names, those with the largest entries of all times."""
    table = Table(film.name, np.nan_to_num(np.abs(film.values)).max(axis=0), (film.dims[0], film.dims[1]), "", film.labels)
    named = any(dim in film.labels for dim in film.dims)
    rows, columns = table.chosen if named else (np.arange(len(table.values)), np.arange(table.values.shape[1]))
    parts = {"rows": (len(rows), film.values.shape[1]), "columns": (len(columns), film.values.shape[2])}
    shown = np.ma.masked_invalid(film.values[:, rows[:, None], columns])
    figure = new_figure((table.height if named else min(LEAST + PITCH * len(rows), ROUND)) + FOOT)
    axes = figure.add_subplot()
    x, y = (np.arange(n + 1) - 0.5 for n in (len(columns), len(rows)))
    mesh, _ = draw_cells(axes, (x, y), shown[0], symbol(film.name, film.dims), over=shown)
    if named:
        label_places(axes, table)
    else:
        axes.set(xlabel=symbol(film.dims[1]), ylabel=symbol(film.dims[0]))
        few_ticks(axes, whole=True)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=True))
    notes = [f"{name}: the top {some} of {count}" for name, (some, count) in parts.items() if some < count]
    return figure, lambda frame: mesh.set_array(shown[frame]), notes


def point_frames(film: Film) -> Frames:
    """A point for each row, on the unit circle or the unit sphere."""
    figure = new_figure(ROUND + FOOT)
    axes = figure.add_subplot(aspect="equal")
    (places, depth), angle = in_view(film.values), np.linspace(0, 2 * np.pi, 200)
    axes.plot(np.cos(angle), np.sin(angle), color=FAINT, lw=0.5)
    points = axes.scatter(
        places[0, :, 0], places[0, :, 1], s=9.0, c=distinct_colors(len(places[0])), edgecolors="white", linewidths=0.3, zorder=2
    )

    def show(frame: int) -> None:
        points.set_offsets(places[frame])
        points.set_alpha(np.where(depth[frame] >= 0, 1.0, BEHIND))  # type: ignore[arg-type]  # one a point

    if film.values.shape[-1] == 3:
        axes.set_axis_off()
        return figure, show, ["pale: behind the sphere"]
    names = (
        (f"{symbol(film.name)}, component 0", "component 1") if film.dims[-1] else (f"cos {symbol(film.name)}", f"sin {symbol(film.name)}")
    )
    axes.set(xlabel=names[0], ylabel=names[1])
    few_ticks(axes)
    return figure, show, []


def member_frames(film: MemberFilm) -> Frames:
    """A histogram, a curve or a map, with the scales of all times."""
    rest = [f"1 of {counted(film.drawn.count, 'component')} of the array"] * (film.drawn.count > 1 and film.choice.index is None)
    figure = new_figure(MAP if len(film.over) == 2 else CURVE)
    axes = figure.add_subplot()
    show, notes = (histogram_frames, curve_frames, map_frames)[len(film.over)](film, axes)
    notes += doubt(axes, film.run, film.drawn, film.values, across=not film.over)
    few_log_ticks(axes)
    return figure, show, [*rest, *notes, *[f"at the end {film.lost}"] * bool(film.lost)]


def histogram_frames(film: MemberFilm, axes: Axes) -> tuple[Show, list[str]]:
    """How many members have a value in each bin; bins and height are those of all times.

    Members often start alike, in one bin: bars that are far higher than most frames have are cut.
    """
    edges, log, more = make_bins(film.values, film.choice)
    counts = [np.histogram(values[np.isfinite(values)], edges)[0] for values in film.values]
    peaks = np.array([max(1, count.max(initial=0)) for count in counts])
    high = peaks[peaks <= BEYOND * np.median(peaks)].max()
    axes.set_xscale("log" if log else "linear")
    steps = axes.stairs(counts[0], edges, fill=True, color=CATEGORIES[0])
    axes.set(xlim=edges[[0, -1]], ylim=(0, (1 + ROOM) * high), xlabel=film.label, ylabel="members")
    few_ticks(axes, whole=True)
    cut = [f"higher bars are cut: one has {counted(int(peaks.max()), 'member')}"] * bool(peaks.max() > high)
    return lambda frame: steps.set_data(counts[frame]), [*more, *cut]


def curve_frames(film: MemberFilm, axes: Axes) -> tuple[Show, list[str]]:
    """The median of members with the same, or neighbouring, values of the number."""
    x = film.over[0]
    place, group, count = make_groups(x, film.alone)
    curves = np.array([medians(group, values, count) for values in film.values])
    label_axes(axes, film.choice, x)
    if len(x.points) > 1:
        fit_axis(axes, x.points[[0, -1]], MARGIN)
    axes.plot(np.tile(place, len(curves)), curves.ravel(), alpha=0)  # for the scale
    notes = make_log(axes, film.label) if film.choice.is_log("y", spans(curves)) else []
    axes.set_ylabel(film.label)
    axes.set_ylim(axes.get_ylim())
    notes += shade_below(axes, film.floor, whole=bool(film.choice.scale("y")))
    (line,) = axes.plot(place, curves[0], color=CATEGORIES[0], marker="o" if count <= 40 else "")
    few_ticks(axes)
    about = ["median of members"] * (count < len(x.values))
    return lambda frame: line.set_ydata(curves[frame]), [*about, *notes]


def map_frames(film: MemberFilm, axes: Axes) -> tuple[Show, list[str]]:
    """Colours of cells over both numbers, or of a point for each member; hatched where no member has a value."""
    x, y = film.over
    grid = is_grid(x, y)
    label_axes(axes, film.choice, x, y, grid=grid)
    notes: list[str] = []
    if grid or film.values.shape[1] > POINTS:
        frames = [make_cells(x, y, values, film.choice) for values in film.values]
        values: Any = np.array([cells.values for cells in frames])
        first = frames[0]
        scale = color_scale(values, film.label, film.choice.scale("c"), floor=film.floor, robust=True)
        shown, colors = scale.shown(values)
        fill_cells(axes, first, first.empty, facecolor="white", zorder=0)
        mesh: Any = axes.pcolormesh(first.x, first.y, shown[0], **colors, rasterized=True)
        axes.set(xlim=(first.x[0], first.x[-1]), ylim=(first.y[0], first.y[-1]))
        axes.patch.set(**LOST)
        notes += [f"a cell: the median of its members, at most {thousands(first.most)}"] * (first.most > 1)
        notes += ["hatched: no member has a value"] * bool((~np.isfinite(values) & ~first.empty).any())
    else:
        scale = color_scale(film.values, film.label, film.choice.scale("c"), floor=film.floor, robust=True)
        shown, colors = scale.shown(film.values)
        mesh = axes.scatter(x.values, y.values, c=shown[0], **colors, s=8.0, lw=0)
    add_bar(axes, mesh, film.label, scale)
    few_ticks(axes, x=4, y=4)
    return lambda frame: mesh.set_array(shown[frame]), [*notes, *scale.notes]
