"""Theory and training in one picture: the seeds as a band, the theory as a dark line over it."""

import re
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.errors import counted
from odesim.plot.labels import EndLabels, end_labels, place_labels
from odesim.plot.panels import set_loss_scale, set_value_scale
from odesim.plot.solution import LINE, MARGIN, TITLE, fit_time, label_time
from odesim.plot.style import CATEGORIES, INK, SMALL, break_lines, few_ticks, literal, ordered_colors, project_style
from odesim.plot.times import TimeAxis, make_time_axis
from odesim.plot.trajectory import panels, space_ticks

if TYPE_CHECKING:
    from odesim.comparison import Comparison

PANELS = 6
COMPONENTS = 5  # of an array, evenly through the order of their last values in theory
RANGE, HALF = 0.2, 0.35  # how dense a band is: of all seeds, of their middle half
LEVELS = (0.0, 0.25, 0.75, 1.0)


def figure_of_comparison(comparison: "Comparison") -> Figure:
    """The picture of a Comparison: a panel an observable, at most six; training as bands over seeds, or a light line of one."""
    names, left_out = list(comparison.theory)[:PANELS], list(comparison.theory)[PANELS:]
    clock = make_time_axis(comparison.t, comparison.said["unit"])
    with project_style():
        title = title_of(comparison, left_out)
        figure, axes = panels([False] * len(names), MARGIN + LINE * (1 + title.count("\n")))
        labels = [draw_pair(ax, name, comparison, clock) for ax, name in zip(axes, names, strict=True)]
        lowest = label_time(axes, clock)
        figure.suptitle(title, linespacing=1.3)
        figure.align_ylabels(axes)
        space_ticks(axes, clock)
        fit_time(figure, lowest, axes, clock)
        place_labels(figure, [label for label in labels if label])
    return figure


def draw_pair(axes: Axes, name: str, comparison: "Comparison", clock: TimeAxis) -> EndLabels | None:
    """Draws both sides of one observable; gives the names at the ends of an array's lines, still to be settled."""
    axes.set_xscale("log" if clock.log else "linear")
    theory, training = (side[name][:, clock.rows] for side in (comparison.theory, comparison.training))
    shape = training.shape[2:]
    theory, training = (np.ma.masked_invalid(side.reshape(*side.shape[:2], -1)) for side in (theory, training))
    mean = theory.mean(axis=0)  # (T, n)
    shown = component_indices(mean)
    colors: list[Any] = [CATEGORIES[0]] if len(shown) == 1 else ordered_colors(len(shown))
    for color, i in zip(colors, shown, strict=True):
        draw_band(axes, clock.x, training[:, :, i], color)
    for i in shown:
        axes.plot(clock.x, mean[:, i], color=INK, lw=0.7, ls="-" if len(shown) == 1 else (0, (3, 1.5)))
    every = np.ma.concatenate([mean[:, shown], training[:, :, shown].reshape(-1, len(shown))])
    (set_loss_scale if "loss" in name else set_value_scale)(axes, every)
    dims = comparison.dims[name]
    axes.set_ylabel(break_lines(name + (f"[{', '.join(dims)}]" if dims else "")))
    if len(shown) < mean.shape[1]:
        axes.set_title(f"{len(shown)} of {mean.shape[1]}", loc="right", fontsize=SMALL)
    if len(clock.x) > 1:
        axes.set_xlim(clock.x[0], clock.x[-1])
    few_ticks(axes)
    if not shape:
        return None
    ends = np.ma.filled(mean[-1, shown], np.nan).tolist()
    return end_labels(axes, [",".join(map(str, np.unravel_index(i, shape))) for i in shown], ends)


def draw_band(axes: Axes, x: Any, values: Any, color: Any) -> None:
    """values (R, T): the range and the middle half over the seeds, or the line of one."""
    if len(values) == 1:
        axes.plot(x, values[0], color=color, alpha=0.6, lw=2.0, solid_capstyle="butt")
        return
    rows = np.ma.filled(values, np.nan)
    some = ~np.all(np.isnan(rows), axis=0)
    low, first, third, high = np.nanquantile(rows[:, some], LEVELS, axis=0)
    axes.fill_between(x[some], low, high, color=color, alpha=RANGE, lw=0)
    axes.fill_between(x[some], first, third, color=color, alpha=HALF, lw=0)


def component_indices(values: Any) -> list[int]:
    """Which components of values (T, n) are drawn: all of few, else some of every height at the end, each height once if that can be."""
    last = np.ma.filled(values[-1], 0.0)
    if len(last) <= COMPONENTS:
        return list(range(len(last)))
    order = np.argsort(last, kind="stable")
    size = float(np.max(np.abs(last))) or 1.0
    apart = np.append(True, np.diff(last[order]) > 1e-6 * size)
    order = order[apart] if apart.sum() >= COMPONENTS else order
    return [int(order[k]) for k in np.unique(np.linspace(0, len(order) - 1, COMPONENTS).round().astype(int))]


def title_of(comparison: "Comparison", left_out: list[str]) -> str:
    """What stands beside what, and how it is drawn; under it what is not shown."""
    said, count = comparison.said, len(comparison.seeds)
    whose = f"{short_label(said['theory'])} beside {short_label(said['training'])}"
    dark = (said["map"] or "the first") + ", mean over seeds" * any(len(values) > 1 for values in comparison.theory.values())
    how = (
        f"bands: {counted(count, 'seed')} (range, middle half)" if count > 1 else f"wide: {'the training' if said['map'] else 'the second'}"
    )
    lines = [whose, f"dark: {dark}", how] + [f"not shown: {', '.join(left_out)}"] * bool(left_out)
    return literal("\n".join(fill(line, TITLE) for line in lines))


def short_label(phrase: str) -> str:
    """Task and model of a training, or a System, with the folder of a stored run."""
    place = re.search(r" \([^()]*\)$", phrase)
    head = phrase.split(", ")[0]
    return head + (place[0] if place and not head.endswith(place[0]) else "")
