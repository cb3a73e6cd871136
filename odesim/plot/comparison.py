"""The picture of a Comparison: the seeds of the training as a band, the theory as a dark line."""

import re
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.errors import counted
from odesim.plot.labels import EndLabels, end_labels, place_labels, symbol
from odesim.plot.panels import set_loss_scale, set_value_scale
from odesim.plot.solution import LINE, MARGIN, TITLE, fit_time, label_time
from odesim.plot.style import CATEGORIES, INK, SMALL, few_ticks, literal, ordered_colors, project_style
from odesim.plot.times import TimeAxis, make_time_axis
from odesim.plot.trajectory import panels, space_ticks

if TYPE_CHECKING:
    from odesim.comparison import Comparison

PANELS = 6
COMPONENTS = 5  # drawn of an array, spread evenly over the order of their last values in theory
RANGE, HALF = 0.2, 0.35  # opacity of the bands: range of all seeds, middle half
LEVELS = (0.0, 0.25, 0.75, 1.0)


def figure_of_comparison(comparison: "Comparison") -> Figure:
    """A Figure with a panel for each observable, at most six: the training as bands over seeds (a light line for one seed)."""
    names, left_out = list(comparison.theory)[:PANELS], list(comparison.theory)[PANELS:]
    time_axis = make_time_axis(comparison.t, comparison.said["unit"])
    with project_style():
        title = title_of(comparison, left_out)
        figure, axes = panels([False] * len(names), MARGIN + LINE * (1 + title.count("\n")))
        labels = [draw_pair(ax, name, comparison, time_axis) for ax, name in zip(axes, names, strict=True)]
        lowest = label_time(axes, time_axis)
        figure.suptitle(title, linespacing=1.3)
        figure.align_ylabels(axes)
        space_ticks(axes, time_axis)
        fit_time(figure, lowest, axes, time_axis)
        place_labels(figure, [label for label in labels if label])
    return figure


def draw_pair(axes: Axes, name: str, comparison: "Comparison", time_axis: TimeAxis) -> EndLabels | None:
    """Draws both sides of one observable; returns the labels of an array's lines, not placed yet, or None."""
    axes.set_xscale("log" if time_axis.log else "linear")
    theory, training = (side[name][:, time_axis.rows] for side in (comparison.theory, comparison.training))
    shape = training.shape[2:]
    theory, training = (np.ma.masked_invalid(side.reshape(*side.shape[:2], -1)) for side in (theory, training))
    mean = theory.mean(axis=0)  # (T, n)
    drawn = component_indices(mean)
    colors: list[Any] = [CATEGORIES[0]] if len(drawn) == 1 else ordered_colors(len(drawn))
    for color, i in zip(colors, drawn, strict=True):
        draw_band(axes, time_axis.x, training[:, :, i], color)
    for i in drawn:
        axes.plot(time_axis.x, mean[:, i], color=INK, lw=0.7, ls="-" if len(drawn) == 1 else (0, (3, 1.5)))
    values = np.ma.concatenate([mean[:, drawn], training[:, :, drawn].reshape(-1, len(drawn))])
    (set_loss_scale if "loss" in name else set_value_scale)(axes, values)
    dims = comparison.dims[name]
    axes.set_ylabel(symbol(name, dims))
    if len(drawn) < mean.shape[1]:
        axes.set_title(f"{len(drawn)} of {mean.shape[1]}", loc="right", fontsize=SMALL)
    if len(time_axis.x) > 1:
        axes.set_xlim(time_axis.x[0], time_axis.x[-1])
    few_ticks(axes)
    if not shape:
        return None
    ends = np.ma.filled(mean[-1, drawn], np.nan).tolist()
    return end_labels(axes, [",".join(map(str, np.unravel_index(i, shape))) for i in drawn], ends)


def draw_band(axes: Axes, x: Any, values: Any, color: Any) -> None:
    """Draws values (R, T) at x (T,): range and middle half over the seeds, or a line for one seed."""
    if len(values) == 1:
        axes.plot(x, values[0], color=color, alpha=0.6, lw=2.0, solid_capstyle="butt")
        return
    rows = np.ma.filled(values, np.nan)
    finite = ~np.all(np.isnan(rows), axis=0)
    low, first, third, high = np.nanquantile(rows[:, finite], LEVELS, axis=0)
    axes.fill_between(x[finite], low, high, color=color, alpha=RANGE, lw=0)
    axes.fill_between(x[finite], first, third, color=color, alpha=HALF, lw=0)


def component_indices(values: Any) -> list[int]:
    """Numbers of the components of values (T, n) to draw: all if few, else some of all heights at the end, distinct if possible."""
    last = np.ma.filled(values[-1], 0.0)
    if len(last) <= COMPONENTS:
        return list(range(len(last)))
    order = np.argsort(last, kind="stable")
    size = float(np.max(np.abs(last))) or 1.0
    distinct = np.append(True, np.diff(last[order]) > 1e-6 * size)
    order = order[distinct] if distinct.sum() >= COMPONENTS else order
    return [int(order[k]) for k in np.unique(np.linspace(0, len(order) - 1, COMPONENTS).round().astype(int))]


def title_of(comparison: "Comparison", left_out: list[str]) -> str:
    """The title: what is compared, how it is drawn, its notes, which observables are not shown."""
    phrases, count = comparison.said, len(comparison.seeds)
    pair = f"{short_label(phrases['theory'])} beside {short_label(phrases['training'])}"
    theory_line = (phrases["map"] or "the first") + ", mean over seeds" * any(len(values) > 1 for values in comparison.theory.values())
    training_line = (
        f"bands: {counted(count, 'seed')} (range, middle half)"
        if count > 1
        else f"wide: {'the training' if phrases['map'] else 'the second'}"
    )
    lines = [pair, f"dark: {theory_line}", training_line, *comparison.notes] + [f"not shown: {', '.join(left_out)}"] * bool(left_out)
    return literal("\n".join(fill(line, TITLE) for line in lines))


def short_label(phrase: str) -> str:
    """The first part of a phrase (task and model, or System), with the folder of a stored run."""
    folder = re.search(r" \([^()]*\)$", phrase)
    head = phrase.split(", ")[0]
    return head + (folder[0] if folder and not head.endswith(folder[0]) else "")
