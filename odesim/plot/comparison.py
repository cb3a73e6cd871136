"""The picture of a Comparison: a row for each observable, both sides, what is between them, and how far they agree in numbers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter
from matplotlib.transforms import ScaledTranslation

from odesim.base.arrays import Array
from odesim.base.errors import counted
from odesim.plot.choice import Choice, several_panels
from odesim.plot.labels import EndLabels, end_labels, not_shown, symbol
from odesim.plot.layout import LOW, ROW, Block, add_panels, finish, space_ticks
from odesim.plot.panels import set_loss_scale, set_value_scale
from odesim.plot.scales import TimeAxis, make_time_axis
from odesim.plot.style import (
    CATEGORIES,
    FAINT,
    INK,
    PAGE,
    PLAIN,
    SMALL,
    WIDTH,
    few_log_ticks,
    few_ticks,
    inside,
    literal,
    ordered_colors,
    power_text,
    project_style,
    root_figure,
)


class Comparison(Protocol):
    """A comparison of a training and a theory, as much of it as is drawn: odesim.lab.compare.comparison says what the fields are."""

    @property
    def t(self) -> Array: ...
    @property
    def theory(self) -> Mapping[str, Array]: ...
    @property
    def training(self) -> Mapping[str, Array]: ...
    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]: ...
    @property
    def said(self) -> Mapping[str, str]: ...
    @property
    def seeds(self) -> tuple[int, ...]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def sides(self) -> tuple[str, str]: ...
    def table(self) -> list[dict[str, Any]]: ...


ROWS = 3  # of two panels each
COMPONENTS = 5  # drawn of an array, spread evenly over the order of their last values in theory, and the one with the largest difference
RANGE = 0.25  # opacity of the range of seeds
DECADES = 2  # from which on positive values get a logarithmic axis
THEORY: Mapping[str, Any] = {"color": INK, "lw": 0.8, "ls": (0, (3, 1.5))}
CHANCE_LABEL = "Δ within ±2"
SHARES = 5, 3  # widths of the panel of both sides, and of that of their difference
NUMBERS, LINE = (1.5, 11.5), 3.0  # mm right of the panels: names and values of numbers; from line to line
STILL = 1e-12  # relative difference that is rounding
ENOUGH = 5  # seeds; the standard error of fewer is itself off by a third or more, and what is divided by it jumps from time to time
CHANCE = 2.0  # standard errors: a mean of seeds is farther from its expectation in 5 % of cases
WIDE = 20.0  # standard errors from which on the axis is logarithmic beyond CHANCE
ROOM = (1.15, 1.6)  # from the largest residual to the edge, as a factor: of a linear and of a logarithmic axis
POWERS = 10.0 ** np.arange(1, 300)  # ticks of a logarithmic axis beyond CHANCE
SMALL_SHARE = 1e-3  # theory that is closer to the range of seeds counts as in it: both sides are computed with tolerances
SAME, ALIKE = "the same to\nrounding", "all seeds have\nthe same Δ"


def figure_of_comparison(comparison: Comparison, ax: Axes | None = None) -> Figure:
    """A Figure with a row for each observable, at most three: both sides, their difference, and numbers beside.

    The difference is in standard errors where there are five seeds or more.

    Parameters
    ----------
    comparison : Comparison
        As of `compare`.
    ax : Axes
        To draw one observable on, without its difference.

    Returns
    -------
    Figure
        Of matplotlib.

    Raises
    ------
    ParamError
        For several observables with ax.

    Examples
    --------
    >>> comparison = odesim.compare("scan_snap")  # doctest: +SKIP
    >>> odesim.plot.figure_of_comparison(comparison)  # doctest: +SKIP
    """
    names, left_out = Choice().page(list(comparison.theory), ROWS)
    time_axis = make_time_axis(comparison.t, comparison.said["unit"])
    if ax is not None and len(comparison.theory) > 1:
        raise several_panels(list(comparison.theory))
    with project_style():
        cells = [(row, column) for row in range(len(names)) for column in (0, 1)]
        height, width = (LOW, PAGE) if len(names) > 1 else (ROW, WIDTH)  # a page is wider than high
        panels = add_panels(Block([height] * len(names), cells, SHARES), width=width) if ax is None else [ax]
        labels, rows = list[EndLabels | None](), {row["observable"]: row for row in comparison.table()}
        for row, name in enumerate(names):
            pair, axes = make_pair(name, comparison, time_axis), panels[2 * row]
            labels.append(draw_pair(axes, pair, time_axis))
            if ax is None:
                beside = panels[2 * row + 1]
                draw_residuals(beside, pair, time_axis)
                write_numbers(beside, numbers_of(rows[name], comparison.t[-1], share_within(axes, pair)))
        handles = legend_of(comparison)
        if ax is not None:
            ax.legend(handles=[handle for handle in handles if handle.get_label() != CHANCE_LABEL])
        space_ticks(panels, time_axis)
        of_theory = [f"theory: {comparison.said['map']}"] * bool(comparison.said["map"])
        said, about = notes_of(comparison, left_out), literal("; ".join([*of_theory, difference_of(comparison)]))
        return finish(panels, labels, (title_of(comparison), said, handles), ax=ax, time_axis=time_axis, about=about)


@dataclass(frozen=True)
class Pair:
    """Both sides of the drawn components of an observable, masked where not finite.

    theory (1 or R, T, n), training (R, T, n), residuals (T, n). indices (n,): of the components, as text. total: components there are.
    """

    name: str
    symbol: str
    theory: Any
    training: Any
    residuals: Any
    indices: list[str]
    total: int

    @property
    def colors(self) -> list[Any]:
        """Those of the components."""
        return [CATEGORIES[0]] if len(self.indices) == 1 else ordered_colors(len(self.indices))


def make_pair(name: str, comparison: Comparison, time_axis: TimeAxis) -> Pair:
    """The Pair of an observable at the times of the axis, of a few of its components if there are many."""
    shape = comparison.training[name].shape[2:]
    sides = (side[name][:, time_axis.rows] for side in (comparison.theory, comparison.training))
    theory, training = (np.ma.masked_invalid(side.reshape(*side.shape[:2], -1)) for side in sides)
    gap, total = residuals(training, theory), theory.shape[2]
    drawn = component_indices(theory.mean(axis=0), np.ma.filled(np.abs(gap).max(axis=0), 0.0))
    theory, training = theory[:, :, drawn], training[:, :, drawn]
    indices = [",".join(map(str, np.unravel_index(i, shape))) for i in drawn]
    return Pair(name, symbol(name, comparison.dims[name]), theory, training, gap[:, drawn], indices, total)


def draw_pair(axes: Axes, pair: Pair, time_axis: TimeAxis) -> EndLabels | None:
    """Draws both sides of one observable; returns the labels of an array's lines, not placed yet, or None."""
    axes.set_xscale("log" if time_axis.log else "linear")
    training, mean, count = pair.training, pair.theory.mean(axis=0), len(pair.indices)
    names = [f"{pair.name}[{index}]" if count > 1 else pair.name for index in pair.indices]
    for i, color in enumerate(pair.colors):
        if len(training) > 1:
            axes.fill_between(
                time_axis.x,
                training[:, :, i].min(axis=0),
                training[:, :, i].max(axis=0),
                color=color,
                alpha=RANGE,
                lw=0,
                label=f"_{names[i]}",
            )
        axes.plot(time_axis.x, training[:, :, i].mean(axis=0), color=color, label=names[i])
    for i in range(count):
        axes.plot(time_axis.x, mean[:, i], label=f"_{names[i]}", **THEORY)
    values = np.ma.concatenate([mean, training.reshape(-1, count)])
    if "loss" in pair.name:
        set_loss_scale(axes, values)
    else:
        set_value_scale(axes, values, decades=DECADES)
    axes.set_ylabel(pair.symbol)
    if count < pair.total:
        axes.set_title(f"{count} of {counted(pair.total, 'component')}", loc="right", fontsize=SMALL)
    axes.set_xlim(time_axis.x[0], time_axis.x[-1])
    few_ticks(axes)
    few_log_ticks(axes)
    return None if count == 1 else end_labels(axes, pair.indices, np.ma.filled(mean[-1], np.nan).tolist())


def numbers_of(row: Mapping[str, Any], last: float, within: float) -> list[tuple[str, str]]:
    """(name, value) of the numbers that say how far both sides agree, those that there are.

    row: of the table; last: the last time; within: the share of the drawn values of theory in the range of seeds.
    """
    until = row["agree_until"]
    shown = "no $t$" if np.isnan(until) else "all $t$" if until == last else f"$t$ ≤ {until:.3g}"
    numbers = [("corr", f"{row['correlation']:.4f}"), ("rel L2", f"{row['relative_l2']:.2g}"), ("to 10 %", shown)]
    numbers += [("end ratio", f"{row['end_ratio']:.3g}"), ("in range", f"{within:.0%}".replace("%", " %"))]
    return [(name, value) for name, value in numbers if "nan" not in value]


def write_numbers(axes: Axes, numbers: Sequence[tuple[str, str]]) -> None:
    """Writes names and values in two columns right of the panel."""
    for line, words in enumerate(numbers):
        for word, place in zip(words, NUMBERS, strict=True):
            transform = axes.transAxes + ScaledTranslation(place / 25.4, -line * LINE / 25.4, root_figure(axes).dpi_scale_trans)
            axes.text(1, 1, word, transform=transform, fontsize=SMALL, va="top")


def component_indices(values: Any, gaps: Array) -> list[int]:
    """Numbers of the components of values (T, n) to draw: all if few, else some of all heights at the end, distinct if possible.

    gaps (n,): how far the sides are apart. The largest is always there, in the place of the one of nearest height.
    """
    last = np.ma.filled(values[-1], 0.0)
    if len(last) <= COMPONENTS:
        return list(range(len(last)))
    order = np.argsort(last, kind="stable")
    size = float(np.max(np.abs(last))) or 1.0
    distinct = np.append(True, np.diff(last[order]) > 1e-6 * size)
    order = order[distinct] if distinct.sum() >= COMPONENTS else order
    drawn = order[np.unique(np.linspace(0, len(order) - 1, COMPONENTS).round().astype(int))]
    worst = int(np.argmax(gaps))
    if worst not in drawn:
        drawn[np.argmin(np.abs(last[drawn] - last[worst]))] = worst
    return [int(i) for i in drawn]


def title_of(comparison: Comparison) -> str:
    """The title: what is compared."""
    return literal(f"{short_label(comparison.said['theory'])} beside {short_label(comparison.said['training'])}")


def notes_of(comparison: Comparison, left_out: list[str]) -> list[str]:
    """The comparison's own notes, and which observables are not drawn."""
    notes = [note.partition(";")[0].partition(" (step")[0] for note in comparison.notes]  # the rest is said elsewhere
    return [*map(literal, notes), *not_shown(left_out)]


def legend_of(comparison: Comparison) -> list[Artist]:
    """Handles of the legend: theory, the training's mean and the range of its seeds, two standard errors."""
    first, second = comparison.sides
    count, each = len(comparison.seeds), any(len(values) > 1 for values in comparison.theory.values())
    handles: list[Artist] = [Line2D([], [], label=first + ", mean over seeds" * each, **THEORY)]
    handles += [Line2D([], [], color=CATEGORIES[0], label=second + f", mean of {counted(count, 'seed')}" * (count > 1))]
    handles += [Patch(color=CATEGORIES[0], alpha=RANGE, lw=0, label="range of seeds")] * (count > 1)
    handles += [Patch(color=FAINT, alpha=RANGE, lw=0, label=CHANCE_LABEL)] * (count >= ENOUGH)
    return handles


def difference_of(comparison: Comparison) -> str:
    """What Δ is, which the panels of differences show."""
    first, second = (side.removeprefix("the ") for side in comparison.sides)
    return f"Δ = {second} − {first}"


def short_label(phrase: str) -> str:
    """The first part of a phrase (task and model, or System), with the folder of a stored run."""
    folder = re.search(r" \([^()]*\)$", phrase)
    head = phrase.split(", ")[0]
    return head + (folder[0] if folder and not head.endswith(folder[0]) else "")


def size_of(training: Any, theory: Any) -> float:
    """The largest entry of both sides."""
    return max(float(np.abs(training).max()), float(np.abs(theory).max())) if training.count() else 1.0


def residuals(training: Any, theory: Any) -> Any:
    """The mean (T, n) over seeds of training (R, T, n) minus theory (1 or R, T, n), in its standard errors.

    Of fewer than ENOUGH seeds it is the mean difference itself. Masked where the seeds differ by no more than rounding.
    """
    difference = training - theory
    if len(difference) < ENOUGH:
        return difference.mean(axis=0)
    error = difference.std(axis=0, ddof=1) / np.sqrt(len(difference))
    size = size_of(training, theory)
    return np.ma.masked_where(np.ma.filled(error, 0.0) <= STILL * size, difference.mean(axis=0)) / error


def draw_residuals(axes: Axes, pair: Pair, time_axis: TimeAxis) -> None:
    """Draws the residuals of a Pair, a line for each component; where there is none the panel says why.

    Of fewer than ENOUGH seeds with the range of their differences.
    """
    values, each = pair.residuals, pair.training - pair.theory
    axes.axhline(0, color=FAINT, lw=0.5, zorder=0)
    for i, color in enumerate(pair.colors):
        axes.plot(time_axis.x, values[:, i], color=color, lw=0.8)
        if 1 < len(each) < ENOUGH:
            axes.fill_between(time_axis.x, each[:, :, i].min(axis=0), each[:, :, i].max(axis=0), color=color, alpha=RANGE, lw=0)
    axes.set_ylabel("Δ" + " (std. errors)" * (len(each) >= ENOUGH))  # the words below the title say what it is: no panel is as high
    if len(each) < ENOUGH:
        few_ticks(axes, y=3)
        return
    if not values.count():
        same = np.ma.filled(np.abs(pair.training - pair.theory) <= STILL * size_of(pair.training, pair.theory), True).all()
        axes.text(0.5, 0.97, SAME if same else ALIKE, transform=axes.transAxes, fontsize=SMALL, ha="center", va="top")
    axes.axhspan(-CHANCE, CHANCE, color=FAINT, alpha=0.25, lw=0, zorder=0)
    low, high = (float(values.min()), float(values.max())) if values.count() else (0.0, 0.0)
    wide = max(-low, high) > WIDE
    low, high = min(low * ROOM[wide], -1.5 * CHANCE), max(high * ROOM[wide], 1.5 * CHANCE)
    few_ticks(axes, y=4)
    if wide:
        axes.set_yscale("symlog", linthresh=CHANCE, linscale=0.5)
        axes.set_title("log beyond ±2", loc="right", fontsize=SMALL)
        down, up = ([*inside(POWERS, POWERS[0], end)] for end in (-low, high))
        axes.yaxis.set_major_locator(FixedLocator([*(-tick for tick in down[-1:]), -CHANCE, CHANCE, *up[-1:]]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: tick_text(tick)))
        axes.yaxis.set_minor_locator(FixedLocator([*(-tick for tick in down[:-1]), *up[:-1]]))
    elif max(-low, high) <= 2 * CHANCE:
        axes.set_yticks([-CHANCE, 0, CHANCE])
    axes.set_ylim(low, high)


def tick_text(tick: float) -> str:
    """A tick as a number, or as a power of ten if that is shorter."""
    size = abs(tick)
    return "\u2212" * bool(tick < 0) + (f"{size:g}" if size < PLAIN[1] else power_text(size))


def share_within(axes: Axes, pair: Pair) -> float:
    """The share of the drawn values of theory, of all components and times, in the range of seeds.

    Values of which all seeds are the same to rounding have no range and do not count; nan if there are no others. Theory is outside if it
    is by more than SMALL_SHARE. On a logarithmic axis that is a share of the values themselves, for nothing below some per cent can be
    seen there; else of all that they span.
    """
    training, theory = pair.training, pair.theory.mean(axis=0)
    if len(training) < 2:
        return np.nan
    low, high = training.min(axis=0), training.max(axis=0)
    if axes.get_yscale() == "log":
        size = np.ma.abs(theory)
    else:
        size = max(high.max(), theory.max()) - min(low.min(), theory.min()) if theory.count() and training.count() else 0.0
    beyond = np.ma.filled((theory < low - SMALL_SHARE * size) | (theory > high + SMALL_SHARE * size), False)
    ranges = np.ma.filled(high - low > STILL * size_of(training, theory), True)
    return 1 - float(beyond[ranges].mean()) if ranges.any() else np.nan
