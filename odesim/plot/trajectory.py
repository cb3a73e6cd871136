"""The picture of a training: the loss of its seeds, and the recorded observables beside it."""

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from odesim.errors import StoreError, counted
from odesim.plot.labels import place_labels
from odesim.plot.panels import Quantity, draw_quantity, set_loss_scale, set_value_scale
from odesim.plot.solution import ALONE, BAR, LINE, MARGIN, ROW, TITLE, label_time
from odesim.plot.style import CATEGORIES, break_lines, few_ticks, literal, new_figure, project_style
from odesim.plot.times import TimeAxis, make_time_axis

if TYPE_CHECKING:
    import xarray

PANELS = 6
LOSS, SEED, TIME = "loss", "seed", "time"
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)  # quantiles over the seeds: two bands and a line


def figure_of_trajectory(run: "xarray.Dataset") -> Figure:
    """The picture of a training (seed, time, ...): median and bands over the seeds of a number, the mean over them of an array.

    The loss comes first, then entropies, then what else was recorded; what has no times is not drawn.
    """
    names = [str(name) for name, v in run.data_vars.items() if TIME in v.dims]
    if not names or not run.sizes[TIME]:
        raise StoreError("no iteration is recorded yet: there is nothing to draw")
    names.sort(key=lambda name: (name != LOSS, "entropy" not in name, run[name].ndim))
    shown = {name: run[name].transpose(SEED, TIME, ...) for name in names[:PANELS]}
    means = {name: Quantity(name, v.values.mean(axis=0), tuple(map(str, v.dims[2:]))) for name, v in shown.items()}
    clock = make_time_axis(run[TIME].values, "iterations")
    with project_style():
        title = title_of(run, any(q.shape for q in means.values()), names[PANELS:])
        figure, axes = panels([q.kind == "map" for q in means.values()], MARGIN + LINE * title.count("\n"))
        labels = []
        for ax, (name, quantity) in zip(axes, means.items(), strict=True):
            if quantity.shape:
                labels.append(draw_quantity(ax, quantity, clock))
            else:
                draw_seeds(ax, name, shown[name].values, clock)
        label_time(axes, clock)
        space_ticks(axes, clock)
        figure.suptitle(title, linespacing=1.3)
        figure.align_ylabels(axes)
        place_labels(figure, [label for label in labels if label])
    return figure


def panels(maps: Sequence[bool], margin: float) -> tuple[Figure, list[Axes]]:
    """A Figure with one wide panel, or rows of two; maps: which ones need room for a colour bar."""
    n = len(maps)
    columns = min(n, 2)
    heights = [(ALONE if n == 1 else ROW) + BAR * any(maps[i : i + 2]) for i in range(0, n, 2)]
    figure = new_figure(margin + sum(heights))
    cells = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    return figure, [figure.add_subplot(cells[i // 2, i % 2]) for i in range(n)]


def draw_seeds(axes: Axes, name: str, values: Any, clock: TimeAxis) -> None:
    """The median of values (R, T) over the seeds, the middle half and the range as bands; on a logarithmic axis where that fits."""
    axes.set_xscale("log" if clock.log else "linear")
    rows = np.where(np.isfinite(values), values, np.nan)[:, clock.rows].astype(float)
    kept = ~np.all(np.isnan(rows), axis=0)  # a seed that is lost leaves the others
    x, marks = clock.x[kept], np.nanquantile(rows[:, kept], LEVELS, axis=0) if kept.any() else np.empty((len(LEVELS), 0))
    if len(rows) > 1:
        axes.fill_between(x, marks[0], marks[-1], color=CATEGORIES[0], alpha=0.2, lw=0)
        axes.fill_between(x, marks[1], marks[-2], color=CATEGORIES[0], alpha=0.3, lw=0)
    axes.plot(x, marks[2], color=CATEGORIES[0])
    (set_loss_scale if "loss" in name else set_value_scale)(axes, np.ma.masked_invalid(marks))
    axes.set_ylabel(break_lines(name))
    if len(clock.x) > 1:
        axes.set_xlim(clock.x[0], clock.x[-1])
    few_ticks(axes)


def space_ticks(axes: Sequence[Axes], clock: TimeAxis) -> None:
    """Fewer numbers at the time axes of two columns where they are long: four digits five times would touch."""
    if len(axes) > 1 and not clock.log and len(f"{clock.x[-1]:.0f}") > 3:
        for ax in axes:
            ax.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 2.5, 5, 10]))


def title_of(run: "xarray.Dataset", arrays: bool, left_out: Sequence[str]) -> str:
    """Task, model and seeds, and what is drawn of them; under it what ended the run early and what is not shown."""
    said, count = run.attrs, run.sizes[SEED]
    seeds = counted(count, "seed") if count > 1 else f"seed {run[SEED].values[0]}"
    lines = [f"{said['task']} ({said['model']}), {seeds}"]
    if count > 1:
        lines += ["median, middle half and range of seeds"] + ["arrays: mean over seeds"] * arrays
    if said["status"] != "ok":
        lines.append(str(said["message"]))
    lines += [f"not shown: {', '.join(left_out)}"] * bool(left_out)
    return literal("\n".join(fill(line, TITLE) for line in lines))
