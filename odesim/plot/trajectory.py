"""The picture of a training: the loss over seeds, the recorded observables, and matrices such as attention as they are at the end."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, StoreError, counted
from odesim.plot.choice import Choice, several_panels
from odesim.plot.labels import LONG, EndLabels, not_shown, place_names, symbol
from odesim.plot.layout import finish, label_time, panels_and_tables, space_ticks
from odesim.plot.panels import draw_cells, draw_quantity, set_loss_scale, set_value_scale
from odesim.plot.quantities import MATRIX, Quantity, is_still
from odesim.plot.scales import TimeAxis, make_log, make_time_axis
from odesim.plot.strips import draw_points
from odesim.plot.style import CATEGORIES, SMALL, few_log_ticks, few_ticks, literal, project_style

if TYPE_CHECKING:
    import xarray

PANELS, TABLES = 6, 2  # on a page, and how many of them are matrices at the end
LOSS, SEED, TIME = "loss", "seed", "time"
ATTENTION = ("c", "Z")  # matrices that come first
LEVELS, HALVES = (0.0, 0.25, 0.75, 1.0), 8  # quantiles over seeds: two bands, the inner one of so many seeds
SHADES = (0.2, 0.45)  # opacity of the range and of the middle half
PLAIN, MOST = (20, 60), (12, 18)  # largest numbers of rows and columns: without names all are shown in their order; else the top ones
LINE, BARE, LEAST, HEAD = 2.3, 1.4, 12.0, 9.0  # mm: a row with a name, or without, at least all rows, a colour bar with its label
SOURCE = re.compile(r" \([^()]*[a-z]+[0-9]{4}[^()]*\)")  # with the key of a paper
LETTERS, LETTER = 14, 1.3  # of a name, longer ones are cut; mm of a letter


@dataclass(frozen=True)
class Table:
    """A matrix (m, n) to draw, its axes, and what is to be said above it. labels {axis: names of its places}."""

    name: str
    values: Array
    dims: tuple[str, str]
    when: str
    labels: Mapping[str, Any]

    def names(self, axis: int) -> list[str] | None:
        """Names of the places along an axis, None where there are none."""
        names = self.labels.get(self.dims[axis])
        return None if names is None or len(names) < self.values.shape[axis] else place_names(names)

    @property
    def chosen(self) -> tuple[Array, Array]:
        """(rows, columns) to draw: if there are many those with the largest entries, columns in the order of their rows."""
        size = np.nan_to_num(np.abs(self.values))
        all_rows, all_columns = (self.values.shape[k] <= PLAIN[k] and self.names(k) is None for k in (0, 1))
        rows = np.sort(np.argsort(-size.max(axis=1), kind="stable")[: PLAIN[0] if all_rows else MOST[0]])
        if all_columns:
            return rows, np.arange(self.values.shape[1])
        size = size[rows]
        columns = np.argsort(-size.max(axis=0), kind="stable")[: MOST[1]]
        return rows, columns[np.lexsort((-size.max(axis=0)[columns], size.argmax(axis=0)[columns]))]

    @property
    def height(self) -> float:
        """The height of its panel in mm."""
        rows, columns = self.chosen
        left, below = self.places(0, rows), self.places(1, columns)
        return HEAD + max(LEAST, (LINE if left else BARE) * len(rows)) + (LETTER * max(map(len, below)) if below else 4.0) + 3.0

    def places(self, axis: int, chosen: Array) -> list[str] | None:
        """Labels of the chosen places along an axis: their names, or their numbers where they are only some; else None."""
        names = self.names(axis)
        if names:
            return [literal(names[i]) for i in chosen]
        return [str(i) for i in chosen] if len(chosen) < self.values.shape[axis] else None


def figure_of_trajectory(
    run: "xarray.Dataset",
    labels: Mapping[str, Any] | None = None,
    choice: Choice = Choice(),  # noqa: B008  frozen
    ax: Axes | None = None,
) -> Figure:
    """A Figure of a training Dataset (seed, time, ...): the mean over seeds, for numbers with bands.

    The loss comes first, then entropies, then other observables; below, matrices such as attention as they are at the end: six panels,
    or with `all` of choice every one. What does not change is a note.

    Parameters
    ----------
    run : xarray.Dataset
        As of `Trajectory.dataset`, or of `open_run`.
    labels : mapping of str to list of str
        Names of the places of an axis, such as the words of tokens; default those of a stored run.
    choice : Choice
        Its logarithmic scales.
    ax : Axes
        To draw one observable on, without title and notes.

    Returns
    -------
    Figure
        Of matplotlib.

    Raises
    ------
    StoreError
        If nothing is recorded yet.
    ParamError
        For scales that no panel has, and where nothing can be drawn.

    Examples
    --------
    >>> run = odesim.open_run("training.zarr")  # doctest: +SKIP
    >>> odesim.plot.figure_of_trajectory(run)  # doctest: +SKIP
    """
    labels = run.attrs.get("labels", {}) if labels is None else labels
    if not run.sizes.get(TIME):
        raise StoreError("no iteration is recorded yet: there is nothing to draw")
    tables = tables_of(run, labels)
    timed = [str(name) for name, v in run.data_vars.items() if TIME in v.dims and name not in tables]
    timed.sort(key=lambda name: (name != LOSS, "entropy" not in name, run[name].ndim))
    values = {name: without_single_axes(run[name]).transpose(SEED, TIME, ...) for name in timed}
    means = {name: Quantity(name, v.values.mean(axis=0), tuple(map(str, v.dims[2:]))) for name, v in values.items()}
    still = [name for name, q in means.items() if q.is_constant and is_still(values[name].values.reshape(-1, q.count))]
    if not tables and len(still) == len(timed):
        still = []  # a picture of constants, which were asked for
    names = [name for name in timed if name not in still]
    if not timed and not tables:
        only = ", ".join(map(str, run.data_vars))
        raise ParamError(f"{only}: recorded at the end only, and no matrix to draw; `odesim train --observe NAME` records it at all times")
    drawn = list(tables.values())[: None if choice.all else TABLES]
    shown, _ = choice.page(names, PANELS - len(drawn))
    left_out = [name for name in (*names, *list(tables)[len(drawn) :]) if name not in shown]
    if not drawn and all(means[name].kind != "map" for name in shown):
        choice.refuse_colors()
    time_axis = make_time_axis(run[TIME].values, "iterations", choice.scale("x"))
    if ax is not None and len(shown) + len(drawn) != 1:
        raise several_panels([*names, *tables])
    with project_style():
        axes, below = panels_and_tables([means[name].kind == "map" for name in shown], [table.height for table in drawn], ax)
        ends, hidden = list[EndLabels | None](), [*time_axis.notes]
        for panel, name in zip(axes, shown, strict=True):
            end, more = draw_observable(panel, means[name], values[name].values, time_axis, labels, choice)
            ends.append(end)
            hidden += more
        for panel, table in zip(below, drawn, strict=True):
            draw_table(panel, table, log=bool(choice.scale("c")))
        if ax is None:
            label_time(axes, time_axis)
        space_ticks(axes, time_axis)
        arrays = bool(drawn) or any(means[name].shape for name in shown)
        constants = [f"{symbol(name, means[name].dims, most=LONG)} = {means[name].flat[0, 0]:.4g}" for name in still]
        notes = [*notes_of(run, arrays, left_out), *[f"constant: {', '.join(constants)}"] * bool(still), *dict.fromkeys(hidden)]
        clock, handles = time_axis if shown and ax is not None else None, legend_of(run.sizes[SEED])
        about = task_line(run) if ax is None else ""
        return finish(axes, ends, (title_of(run), notes, handles), ax=ax, time_axis=clock, beside=below, about=about)


def without_single_axes(values: "xarray.DataArray") -> "xarray.DataArray":
    """The values without axes of size 1, except seed and time."""
    return values.squeeze([dim for dim in values.dims if dim not in (SEED, TIME) and values.sizes[dim] == 1])


def tables_of(run: "xarray.Dataset", labels: Mapping[str, Any]) -> dict[str, Table]:
    """{name: Table} of the matrices of a training at its last recorded iteration, means over seeds, attention first."""
    tables = {}
    for name, v in run.data_vars.items():
        dims = tuple(str(dim) for dim in v.dims if dim not in (SEED, TIME))
        if len(dims) == 2 and min(v.sizes[dim] for dim in dims) > 1 and np.prod([v.sizes[dim] for dim in dims]) > MATRIX:
            last = v.isel({TIME: -1}) if TIME in v.dims else v
            when = f"at $t$ = {run[TIME].values[-1]}" if TIME in v.dims else "at the end"
            values = last.transpose(SEED, *dims).values.mean(axis=0)
            tables[str(name)] = Table(str(name), values, (dims[0], dims[1]), when, labels)
    return {name: tables[name] for name in sorted(tables, key=lambda name: name not in ATTENTION)}


def draw_observable(
    axes: Axes, mean: Quantity, values: Any, time_axis: TimeAxis, labels: Mapping[str, Any], choice: Choice
) -> tuple[EndLabels | None, list[str]]:
    """Draws the mean of an array, or values (R, T) of a number with bands over seeds; returns labels, not placed yet, and notes."""
    if mean.shape:
        return draw_quantity(axes, mean, time_axis, places=labels, choice=choice)
    return None, draw_seeds(axes, mean.name, values, time_axis, choice.scale("y"))


def draw_seeds(axes: Axes, name: str, values: Any, time_axis: TimeAxis, log: bool | None) -> list[str]:
    """Draws values (R, T) over seeds: the mean as a line, the range and of many seeds the middle half as bands; returns notes.

    log: of values; None: by the values.
    """
    axes.set_xscale("log" if time_axis.log else "linear")
    rows = np.where(np.isfinite(values), values, np.nan)[:, time_axis.rows].astype(float)
    finite = ~np.all(np.isnan(rows), axis=0)  # times at which at least one seed is finite
    x, marks = time_axis.x[finite], np.nanquantile(rows[:, finite], LEVELS, axis=0) if finite.any() else np.empty((len(LEVELS), 0))
    if len(rows) > 1:
        axes.fill_between(x, marks[0], marks[-1], color=CATEGORIES[0], alpha=SHADES[0], lw=0)
    if len(rows) >= HALVES:
        axes.fill_between(x, marks[1], marks[-2], color=CATEGORIES[0], alpha=SHADES[1] - SHADES[0], lw=0)
    axes.plot(x, np.nanmean(rows[:, finite], axis=0), color=CATEGORIES[0], label=name)
    if log is None:
        (set_loss_scale if "loss" in name else set_value_scale)(axes, np.ma.masked_invalid(marks))
    axes.set_ylabel(symbol(name))
    if len(time_axis.x) > 1:
        axes.set_xlim(time_axis.x[0], time_axis.x[-1])
    few_ticks(axes)
    notes = make_log(axes, symbol(name, most=LONG)) if log else []
    few_log_ticks(axes)
    return notes


def title_of(run: "xarray.Dataset") -> str:
    """The title: task, model and seeds."""
    count = run.sizes[SEED]
    seeds = counted(count, "seed") if count > 1 else f"seed {run[SEED].values[0]}"
    return literal(f"{run.attrs['task']} ({run.attrs['model']}), {seeds}")


def task_line(run: "xarray.Dataset") -> str:
    """What the task is, in words for below the title, without its source; empty where the run does not say."""
    doc = SOURCE.sub("", str(run.attrs.get("doc", "")))
    return literal(doc[:1].upper() + doc[1:])


def notes_of(run: "xarray.Dataset", arrays: bool, left_out: Sequence[str]) -> list[str]:
    """Notes: that arrays are means over seeds, the message of an early end, the observables that are not shown."""
    lines = ["arrays: mean over seeds"] * (arrays and run.sizes[SEED] > 1)
    lines += [str(run.attrs["message"])] * (run.attrs["status"] != "ok")
    return [*map(literal, lines), *not_shown(left_out)]


def legend_of(seeds: int) -> list[Artist]:
    """Legend entries for the line and the bands of several seeds."""
    if seeds == 1:
        return []
    outer, inner = SHADES
    half = [Patch(color=CATEGORIES[0], alpha=inner, lw=0, label="middle half")] * (seeds >= HALVES)
    return [Line2D([], [], color=CATEGORIES[0], label="mean of seeds"), *half, Patch(color=CATEGORIES[0], alpha=outer, lw=0, label="range")]


def draw_table(axes: Axes, table: Table, *, log: bool = False) -> None:
    """Draws the matrix with row 0 on top, its rows and columns by name where they have names. log: logarithmic colours.

    Tokens on a circle or a sphere are points on it, as in a run.
    """
    as_run = Quantity(table.name, table.values[None], table.dims)
    if as_run.strip == "Points":
        draw_points(axes, as_run, np.array([0]), [table.when], log)
        axes.spines[:].set_visible(False)
        return
    rows, columns = table.chosen
    axes_of = zip(("rows", "columns"), table.chosen, table.values.shape, strict=True)
    parts = [f"the top {len(chosen)} of {n} {what}" for what, chosen, n in axes_of if len(chosen) < n]
    label = ", ".join([f"{symbol(table.name, most=40)} {table.when}", *parts])
    x, y = (np.arange(n + 1) - 0.5 for n in (len(columns), len(rows)))
    draw_cells(axes, (x, y), np.ma.masked_invalid(table.values[np.ix_(rows, columns)]), label, log=log)
    label_places(axes, table)


def label_places(axes: Axes, table: Table) -> None:
    """Labels the chosen rows and columns of a table by name, or by number where only some are drawn, and its axes."""
    rows, columns = table.chosen
    for axis, places, number, angle in ((axes.yaxis, rows, 0, 0), (axes.xaxis, columns, 1, 90)):
        labels = table.places(number, places)
        if labels:
            axis.set_ticks(range(len(places)), labels, fontsize=SMALL, rotation=angle)
        else:
            axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=True))
    axes.set_ylabel(symbol(table.dims[0]))
    axes.set_xlabel(symbol(table.dims[1]))
