"""A quantity of members against one number that differs between them: a line, with a band where several members share a value."""

from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from odesim.base.arrays import Array
from odesim.plot.choice import Choice
from odesim.plot.ensemble_panels import medians
from odesim.plot.labels import EndLabels, end_labels
from odesim.plot.members import Drawn, Varied, nan_quantiles
from odesim.plot.panels import last_finite
from odesim.plot.scales import check_axis, make_log, shade_below, spans
from odesim.plot.style import CATEGORIES, FAINT, SMALL, few_log_ticks, few_ticks, ordered_colors

LEVELS = np.array([0.1, 0.9])
GROUPS, EACH = (8, 40), 20  # of members with neighbouring values, where no two members share one: how many, and members of each
DOTS, MARGIN = 40, 0.03  # largest number of values marked by dots; of the axis, beside them
NUMBERED, ABOVE = 10, 1.03  # largest number of crosses with the number of their members; their height, in heights of the panel


def draw_curve(
    axes: Axes, x: Varied, drawn: Drawn, values: Array, choice: Choice, *, alone: bool, floor: float = 0.0
) -> tuple[EndLabels | None, list[str]]:
    """Draws values (N, C) of components against x; returns labels of the lines, and notes.

    alone: whether nothing else differs. floor: below which values may be errors.

    Where members share a value of x, the line is their median and the band their middle 80 %. Where other things differ too and none
    is shared, neighbours in groups of equal size take the place of those that share.
    """
    place, group, count = make_groups(x, alone)
    grouped = count < len(x.points)
    dots = count <= DOTS and len(drawn.indices) == 1
    parts = [CATEGORIES[0]] if len(drawn.indices) == 1 else ordered_colors(len(drawn.indices))
    if choice.is_log("x", x.is_log):
        check_axis("x", x.name, x.points)
        axes.set_xscale("log")
    if len(x.points) > 1:
        fit_axis(axes, x.points[[0, -1]], MARGIN if dots else 0.0)
    curves = []
    for k, color in enumerate(parts):
        middle = medians(group, values[:, k], count)
        if count < len(x.values):
            low, high = group_quantiles(group, values[:, k], count)
            axes.fill_between(place, low, high, color=color, alpha=0.2, lw=0)
        axes.plot(place, middle, color=color, marker="o" if dots else "")
        curves.append(middle)
    lost = x.values[~np.isfinite(values).any(axis=1) & np.isfinite(x.values)]
    if len(lost):
        draw_lost(axes, *np.unique(lost, return_counts=True))
    notes = make_log(axes, drawn.label) if choice.is_log("y", spans(np.array(curves))) else []
    notes += shade_below(axes, floor, whole=bool(choice.scale("y")))
    notes += [f"lines: {count} groups of neighbours in {x.label}"] * grouped
    axes.set_xlabel(x.label)
    axes.set_ylabel(drawn.label)
    few_ticks(axes)
    few_log_ticks(axes)
    ends: list[Any] = last_finite(np.ma.masked_invalid(np.array(curves).T))
    return end_labels(axes, drawn.labels, ends) if len(drawn.indices) > 1 else None, notes


def fit_axis(axes: Axes, ends: Array, margin: float) -> None:
    """Sets the horizontal limits to the two ends, with a margin, in shares of the axis, in which the outer dots are whole."""
    log = axes.get_xscale() == "log"
    low, high = np.log(ends) if log else ends
    room = margin * (high - low)
    limits = np.array([low - room, high + room])
    axes.set_xlim(*(np.exp(limits) if log else limits))


def draw_lost(axes: Axes, places: Array, counts: Array) -> None:
    """Marks above the panel the places (n,) at which members have no value: `3×` for three of them, a cross alone where places are many."""
    axes.yaxis.get_offset_text().set(x=-0.01, ha="right")  # a power of ten stands there too: left of the panel
    style: Any = {"transform": axes.get_xaxis_transform(), "color": FAINT, "clip_on": False}
    if len(places) > NUMBERED:
        axes.plot(places, np.full(len(places), ABOVE), "x", ms=2.5, mew=0.5, **style)
        return
    for place, count in zip(places, counts, strict=True):
        axes.text(place, ABOVE, f"{count}×" if count > 1 else "×", ha="center", va="center", fontsize=SMALL, **style)


def make_groups(x: Varied, alone: bool) -> tuple[Array, Array, int]:
    """(values of x (n,), the group of each member (N,), n); members whose x is not finite have the group n."""
    finite = np.isfinite(x.values)
    points = x.points
    if alone or len(points) <= 0.5 * finite.sum():
        return points, np.where(finite, np.searchsorted(points, x.values), len(points)), len(points)
    edges = np.quantile(x.values[finite], np.linspace(0, 1, min(int(np.clip(finite.sum() // EACH, *GROUPS)), len(points)) + 1))
    group = np.clip(np.searchsorted(edges, x.values, side="right") - 1, 0, len(edges) - 2)
    group = np.where(finite, group, len(edges) - 1)
    return medians(group, x.values, len(edges) - 1), group, len(edges) - 1


def group_quantiles(group: Array, values: Array, count: int) -> tuple[Array, Array]:
    """The lowest and highest of LEVELS (count,) of the values (N,) in each group."""
    order = np.argsort(group, kind="stable")
    borders = np.searchsorted(group[order], np.arange(count + 1))
    found = np.array([nan_quantiles(values[order[a:b]], LEVELS) for a, b in pairwise(borders)])
    return found[:, 0], found[:, 1]
