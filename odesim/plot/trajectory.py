"""The picture of a training: the loss over seeds, and the recorded observables."""

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from odesim.errors import StoreError, counted
from odesim.plot.labels import place_labels, symbol
from odesim.plot.panels import Quantity, draw_quantity, set_loss_scale, set_value_scale
from odesim.plot.solution import ALONE, BAR, LINE, MARGIN, ROW, TITLE, label_time
from odesim.plot.style import CATEGORIES, few_ticks, literal, new_figure, project_style
from odesim.plot.times import TimeAxis, make_time_axis

if TYPE_CHECKING:
    import xarray

PANELS = 6
LOSS, SEED, TIME = "loss", "seed", "time"
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)  # quantiles over seeds: two bands and a line


def figure_of_trajectory(run: "xarray.Dataset") -> Figure:
    """A Figure of a training Dataset (seed, time, ...): median and bands over seeds for numbers, the mean over seeds for arrays.

    The loss comes first, then entropies, then other observables; those without times are not drawn. Raises StoreError if nothing is
    recorded yet.
    """
    names = [str(name) for name, v in run.data_vars.items() if TIME in v.dims]
    if not names or not run.sizes[TIME]:
        raise StoreError("no iteration is recorded yet: there is nothing to draw")
    names.sort(key=lambda name: (name != LOSS, "entropy" not in name, run[name].ndim))
    shown = {name: run[name].transpose(SEED, TIME, ...) for name in names[:PANELS]}
    means = {name: Quantity(name, v.values.mean(axis=0), tuple(map(str, v.dims[2:]))) for name, v in shown.items()}
    time_axis = make_time_axis(run[TIME].values, "iterations")
    with project_style():
        title = title_of(run, any(q.shape for q in means.values()), names[PANELS:])
        figure, axes = panels([q.kind == "map" for q in means.values()], MARGIN + LINE * title.count("\n"))
        labels = []
        for ax, (name, quantity) in zip(axes, means.items(), strict=True):
            if quantity.shape:
                labels.append(draw_quantity(ax, quantity, time_axis))
            else:
                draw_seeds(ax, name, shown[name].values, time_axis)
        label_time(axes, time_axis)
        space_ticks(axes, time_axis)
        figure.suptitle(title, linespacing=1.3)
        figure.align_ylabels(axes)
        place_labels(figure, [label for label in labels if label])
    return figure


def panels(maps: Sequence[bool], margin: float) -> tuple[Figure, list[Axes]]:
    """(Figure, axes) with one wide panel or rows of two. maps: which panels need space for a colour bar; margin in mm."""
    n = len(maps)
    columns = min(n, 2)
    heights = [(ALONE if n == 1 else ROW) + BAR * any(maps[i : i + 2]) for i in range(0, n, 2)]
    figure = new_figure(margin + sum(heights))
    cells = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    return figure, [figure.add_subplot(cells[i // 2, i % 2]) for i in range(n)]


def draw_seeds(axes: Axes, name: str, values: Any, time_axis: TimeAxis) -> None:
    """Draws values (R, T) over seeds: the median as a line, middle half and range as bands."""
    axes.set_xscale("log" if time_axis.log else "linear")
    rows = np.where(np.isfinite(values), values, np.nan)[:, time_axis.rows].astype(float)
    finite = ~np.all(np.isnan(rows), axis=0)  # times at which at least one seed is finite
    x, marks = time_axis.x[finite], np.nanquantile(rows[:, finite], LEVELS, axis=0) if finite.any() else np.empty((len(LEVELS), 0))
    if len(rows) > 1:
        axes.fill_between(x, marks[0], marks[-1], color=CATEGORIES[0], alpha=0.2, lw=0)
        axes.fill_between(x, marks[1], marks[-2], color=CATEGORIES[0], alpha=0.3, lw=0)
    axes.plot(x, marks[2], color=CATEGORIES[0])
    (set_loss_scale if "loss" in name else set_value_scale)(axes, np.ma.masked_invalid(marks))
    axes.set_ylabel(symbol(name))
    if len(time_axis.x) > 1:
        axes.set_xlim(time_axis.x[0], time_axis.x[-1])
    few_ticks(axes)


def space_ticks(axes: Sequence[Axes], time_axis: TimeAxis) -> None:
    """Reduces the ticks of the time axes of two columns if tick labels have four digits or more and would touch."""
    if len(axes) > 1 and not time_axis.log and len(f"{time_axis.x[-1]:.0f}") > 3:
        for ax in axes:
            ax.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 2.5, 5, 10]))


def title_of(run: "xarray.Dataset", arrays: bool, left_out: Sequence[str]) -> str:
    """The title: task, model and seeds, what is drawn, the message of an early end, which observables are not shown."""
    attributes, count = run.attrs, run.sizes[SEED]
    seeds = counted(count, "seed") if count > 1 else f"seed {run[SEED].values[0]}"
    lines = [f"{attributes['task']} ({attributes['model']}), {seeds}"]
    if count > 1:
        lines += ["median, middle half and range of seeds"] + ["arrays: mean over seeds"] * arrays
    if attributes["status"] != "ok":
        lines.append(str(attributes["message"]))
    lines += [f"not shown: {', '.join(left_out)}"] * bool(left_out)
    return literal("\n".join(fill(line, TITLE) for line in lines))
