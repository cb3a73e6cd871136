"""A film of an ensemble: a component of all members over the one or two numbers that vary, at each saved time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, StoreError, counted
from odesim.plot.choice import STORE, TIME, Choice
from odesim.plot.ensemble import chosen_axes, title_of
from odesim.plot.ensemble_panels import (
    LOST,
    MARGIN,
    POINTS,
    fill_cells,
    fit_axis,
    is_grid,
    label_axes,
    lost_note,
    make_cells,
    make_groups,
    medians,
)
from odesim.plot.film import FRAMES
from odesim.plot.members import MEMBER, Drawn, Varied, blocks, components, is_state, names_in, values_of, varied_numbers
from odesim.plot.panels import spread_indices, thousands
from odesim.plot.scales import above, add_bar, color_scale, floor_of, make_log, shade_below, spans, with_pale
from odesim.plot.style import CATEGORIES, few_log_ticks, few_ticks, new_figure

if TYPE_CHECKING:
    import xarray

NUMBERS = 50_000_000  # largest number of values, 400 MB
CURVE, MAP = 46.0, 62.0  # mm: heights of the panel


@dataclass(frozen=True)
class MemberFilm:
    """Values (T, N) of a component of all members at times t (T,), NaN where there is none, over one or two numbers that vary.

    alone: whether nothing else differs between members. lost: how many have no value at the end, and why; empty if all have one.
    floor: below which values may be errors of the integration: logarithmic colours end there.
    """

    title: str
    t: Array
    unit: str
    values: Array
    drawn: Drawn
    over: tuple[Varied, ...]
    choice: Choice
    alone: bool
    lost: str = ""
    floor: float = 0.0

    @property
    def label(self) -> str:
        """The component as a symbol."""
        return self.drawn.symbol(0)


def film_of_members(run: "xarray.Dataset", choice: Choice) -> MemberFilm:
    """The film of an ensemble Dataset. choice: quantity, component, the one or two numbers along the axes, scales.

    Raises ParamError for what the run does not have, and where no time, or no number, varies; StoreError if no member is done.
    """
    choice.check()
    if choice.at is not None or choice.x == TIME:
        raise ParamError("a film shows all saved times: leave out at, and x = 'time'")
    if not (run["status"].values >= 0).any():
        raise StoreError("no member is done yet: there is nothing to draw")
    shapes = {name: run[name].shape[2:] for key in ("states", "observables") for name in names_in(run, key)}
    name = choice.names(shapes, str(run.attrs["model"]), "stored state or observable", STORE)[0]
    count = run.sizes[TIME]
    if count < 2:
        raise ParamError(f"{run.attrs['model']} has {counted(count, 'saved time')}; an animation needs two or more: --save N stores them")
    over = tuple(chosen_axes(run, choice))
    if not over:
        raise ParamError("a film of an ensemble is over one or two of the numbers that vary: choose them with x, or x and y")
    if len(over) == 1:
        choice.refuse_colors()
    rows = spread_indices(count, int(min(FRAMES, max(NUMBERS // run.sizes[MEMBER], 2))))
    drawn = components(run, name, choice, 1)
    values = np.full((len(rows), run.sizes[MEMBER]), np.nan)
    done, first = np.flatnonzero(run["status"].values >= 0), 0
    for part in blocks(run, count * max(drawn.count, 1)):
        size = part.sizes[MEMBER]
        values[:, done[first : first + size]] = values_of(part, drawn, rows)[:, :, 0].T
        first += size
    numbers = varied_numbers(run)
    alone = numbers is not None and len(numbers) == len(over)
    lost = lost_note(run["status"].values, list(run.attrs["status_names"]), ~np.isfinite(values[-1]), run.sizes[MEMBER])
    floor = floor_of(values, run.attrs, state=is_state(run, drawn))
    unit = str(run.attrs.get("time_unit", ""))
    return MemberFilm(title_of(run), run[TIME].values[rows], unit, values, drawn, over, choice, alone, lost, floor)


def member_frames(film: MemberFilm) -> tuple[Figure, Callable[[int], None], list[str]]:
    """(Figure, function that draws frame k, notes), of a curve or a map. Scales are those of all times."""
    rest = [f"1 of {counted(film.drawn.count, 'component')} of the array"] * (film.drawn.count > 1 and film.choice.index is None)
    figure = new_figure(CURVE if len(film.over) == 1 else MAP)
    axes = figure.add_subplot()
    show, notes = (curve_frames if len(film.over) == 1 else map_frames)(film, axes)
    few_log_ticks(axes)
    return figure, show, [*rest, *notes, *[f"at the end {film.lost}"] * bool(film.lost)]


def curve_frames(film: MemberFilm, axes: Axes) -> tuple[Callable[[int], None], list[str]]:
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
    said = ["median of members"] * (count < len(x.values))
    return lambda frame: line.set_ydata(curves[frame]), [*said, *notes]


def map_frames(film: MemberFilm, axes: Axes) -> tuple[Callable[[int], None], list[str]]:
    """Colours of cells over both numbers, or of a point for each member; hatched where no member has a value."""
    x, y = film.over
    grid = is_grid(x, y)
    label_axes(axes, film.choice, x, y, grid=grid)
    notes: list[str] = []
    if grid or film.values.shape[1] > POINTS:
        frames = [make_cells(x, y, values, film.choice) for values in film.values]
        values: Any = np.array([cells.values for cells in frames])
        first = frames[0]
        scale = above(color_scale(values, film.label, film.choice.scale("c"), robust=True), film.floor)
        shown, colors = with_pale(values, scale)
        fill_cells(axes, first, first.empty, facecolor="white", zorder=0)
        mesh: Any = axes.pcolormesh(first.x, first.y, shown[0], norm=scale.norm, cmap=colors, rasterized=True)
        axes.set(xlim=(first.x[0], first.x[-1]), ylim=(first.y[0], first.y[-1]))
        axes.patch.set(**LOST)
        notes += [f"a cell: the median of its members, at most {thousands(first.most)}"] * (first.most > 1)
        notes += ["hatched: no member has a value"] * bool((~np.isfinite(values) & ~first.empty).any())
    else:
        scale = above(color_scale(film.values, film.label, film.choice.scale("c"), robust=True), film.floor)
        shown, colors = with_pale(film.values, scale)
        mesh = axes.scatter(x.values, y.values, c=shown[0], norm=scale.norm, cmap=colors, s=8.0, lw=0)
    add_bar(axes, mesh, film.label, scale)
    few_ticks(axes, x=4, y=4)
    return lambda frame: mesh.set_array(shown[frame]), [*notes, *scale.notes]
