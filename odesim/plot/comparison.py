"""The picture of a Comparison: the training's mean and the range of its seeds, theory dashed on top, what is between them below."""

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

from odesim.base.arrays import Array
from odesim.base.errors import counted
from odesim.plot.choice import several_panels
from odesim.plot.labels import EndLabels, component_labels, symbol
from odesim.plot.layout import ROW, add_panels, cells_in_rows, finish, space_ticks
from odesim.plot.panels import set_loss_scale, set_value_scale
from odesim.plot.scales import TimeAxis, cell_edges, make_time_axis
from odesim.plot.style import (
    CATEGORIES,
    FAINT,
    INK,
    PLAIN,
    SMALL,
    few_log_ticks,
    few_ticks,
    inside,
    literal,
    ordered_colors,
    power_text,
    project_style,
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


PANELS = 6
COMPONENTS = 5  # drawn of an array, spread evenly over the order of their last values in theory
RANGE = 0.25  # opacity of the range of seeds
DECADES = 2  # from which on positive values get a logarithmic axis
THEORY: Mapping[str, Any] = {"color": INK, "lw": 0.8, "ls": (0, (3, 1.5))}
BEYOND: Mapping[str, Any] = {"color": CATEGORIES[1], "lw": 0, "label": "theory outside the range"}  # a bar at the foot of a panel
CHANCE_LABEL = "Δ within ±2"
FOOT_OF_PANEL = (0.0, 0.035)  # of its height
RESIDUAL = 14.0  # mm: height of the panel
STILL = 1e-12  # relative difference that is rounding
CHANCE = 2.0  # standard errors: a mean of seeds is farther from its expectation in 5 % of cases
WIDE = 20.0  # standard errors from which on the axis is logarithmic beyond CHANCE
ROOM = (1.15, 1.6)  # from the largest residual to the edge, as a factor: of a linear and of a logarithmic axis
POWERS = 10.0 ** np.arange(1, 300)  # ticks of a logarithmic axis beyond CHANCE
SMALL_SHARE = 1e-3  # theory that is closer to the range of seeds counts as in it: both sides are computed with tolerances
SAME, ALIKE = "no line in Δ: no difference beyond rounding", "no line in Δ: the seeds are alike, there is no standard error"


def figure_of_comparison(comparison: Comparison, ax: Axes | None = None) -> Figure:
    """A Figure with two panels for each observable, at most six: both sides, and below their difference in standard errors.

    ax: Axes to draw one observable on, without its difference. Raises ParamError if there are several.
    """
    names, left_out = list(comparison.theory)[:PANELS], list(comparison.theory)[PANELS:]
    time_axis = make_time_axis(comparison.t, comparison.said["unit"])
    if ax is not None and len(comparison.theory) > 1:
        raise several_panels(list(comparison.theory))
    with project_style():
        cells = [(2 * row + k, columns) for row, columns in cells_in_rows(len(names)) for k in (0, 1)]
        panels = add_panels([ROW, RESIDUAL] * -(-len(names) // 2), cells) if ax is None else [ax]
        axes, below, labels, silent = panels[::2], panels[1::2], list[EndLabels | None](), list[str]()
        unders: list[Axes | None] = [*below] or [None]
        for name, panel, under in zip(names, axes, unders, strict=True):
            if under is not None:
                under.sharex(panel)
            pair = make_pair(name, comparison, time_axis)
            labels.append(draw_pair(panel, under, pair, time_axis))
            silent += without_line(pair.residuals, pair.training, pair.theory)
        beyond = any(shown.get_label() == BEYOND["label"] for panel in axes for shown in panel.collections)
        handles = legend_of(comparison, beyond)
        if ax is not None:
            ax.legend(handles=[handle for handle in handles if handle.get_label() != CHANCE_LABEL])
        every = [*axes, *below]
        space_ticks(every, time_axis)
        notes = [*notes_of(comparison, left_out), *dict.fromkeys(silent)]
        return finish(every, labels, (title_of(comparison), notes, handles), ax=ax, time_axis=time_axis)


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


def make_pair(name: str, comparison: Comparison, time_axis: TimeAxis) -> Pair:
    """The Pair of an observable at the times of the axis, of a few of its components if there are many."""
    shape = comparison.training[name].shape[2:]
    sides = (side[name][:, time_axis.rows] for side in (comparison.theory, comparison.training))
    theory, training = (np.ma.masked_invalid(side.reshape(*side.shape[:2], -1)) for side in sides)
    drawn = component_indices(theory.mean(axis=0))
    total, theory, training = theory.shape[2], theory[:, :, drawn], training[:, :, drawn]
    indices = [",".join(map(str, np.unravel_index(i, shape))) for i in drawn]
    return Pair(name, symbol(name, comparison.dims[name]), theory, training, residuals(training, theory), indices, total)


def draw_pair(axes: Axes, below: Axes | None, pair: Pair, time_axis: TimeAxis) -> EndLabels | None:
    """Draws both sides of one observable, and their difference below; returns the labels of an array's lines, not placed yet, or None."""
    axes.set_xscale("log" if time_axis.log else "linear")
    training, mean, count = pair.training, pair.theory.mean(axis=0), len(pair.indices)
    colors: list[Any] = [CATEGORIES[0]] if count == 1 else ordered_colors(count)
    for i, color in enumerate(colors):
        if len(training) > 1:
            axes.fill_between(time_axis.x, training[:, :, i].min(axis=0), training[:, :, i].max(axis=0), color=color, alpha=RANGE, lw=0)
        axes.plot(time_axis.x, training[:, :, i].mean(axis=0), color=color)
    for i in range(count):
        axes.plot(time_axis.x, mean[:, i], **THEORY)
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
    if below is not None:
        draw_residuals(below, time_axis.x, pair.residuals, colors, several=len(training) > 1)
    if len(training) > 1:
        draw_beyond(axes, outside(axes, training, mean), time_axis)
    if count == 1:
        return None
    return component_labels(axes, pair.indices, np.ma.filled(mean[-1], np.nan).tolist())


def draw_beyond(axes: Axes, times: Any, time_axis: TimeAxis) -> None:
    """Draws a bar at the foot of the panel at those times (T,) at which theory is outside the range of seeds."""
    edges = cell_edges(time_axis.x, time_axis.log)
    bars = [(edges[k], edges[k + 1] - edges[k]) for k in np.flatnonzero(times)]
    if bars:
        axes.broken_barh(bars, FOOT_OF_PANEL, transform=axes.get_xaxis_transform(), **BEYOND)


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


def title_of(comparison: Comparison) -> str:
    """The title: what is compared."""
    return literal(f"{short_label(comparison.said['theory'])} beside {short_label(comparison.said['training'])}")


def notes_of(comparison: Comparison, left_out: list[str]) -> list[str]:
    """How theory follows from the System, what the lower panels show, the comparison's own notes, which observables are not drawn."""
    first, second = sides(comparison)
    notes = [f"theory: {comparison.said['map']}"] * bool(comparison.said["map"])
    notes += [f"Δ: {second} minus {first}" + ", mean over seeds in standard errors" * (len(comparison.seeds) > 1)]
    notes += [note.partition(";")[0].partition(" (step")[0] for note in comparison.notes]  # the rest is said elsewhere
    notes += [f"not shown: {', '.join(left_out)}"] * bool(left_out)
    return [literal(note) for note in notes]


def legend_of(comparison: Comparison, beyond: bool) -> list[Artist]:
    """Handles of the legend: theory, the training's mean and the range of its seeds, two standard errors, where theory leaves the range."""
    first, second = sides(comparison)
    count, each = len(comparison.seeds), any(len(values) > 1 for values in comparison.theory.values())
    handles: list[Artist] = [Line2D([], [], label=first + ", mean over seeds" * each, **THEORY)]
    handles += [Line2D([], [], color=CATEGORIES[0], label=second + f", mean of {counted(count, 'seed')}" * (count > 1))]
    if count > 1:
        handles += [
            Patch(color=CATEGORIES[0], alpha=RANGE, lw=0, label="range of seeds"),
            Patch(color=FAINT, alpha=RANGE, lw=0, label=CHANCE_LABEL),
        ]
    return handles + [Patch(**BEYOND)] * beyond


def sides(comparison: Comparison) -> tuple[str, str]:
    """The names of the two sides: theory and training, or the first and the second of two runs of one kind."""
    return ("theory", "training") if comparison.said["map"] else ("the first", "the second")


def short_label(phrase: str) -> str:
    """The first part of a phrase (task and model, or System), with the folder of a stored run."""
    folder = re.search(r" \([^()]*\)$", phrase)
    head = phrase.split(", ")[0]
    return head + (folder[0] if folder and not head.endswith(folder[0]) else "")


def residuals(training: Any, theory: Any) -> Any:
    """The mean (T, n) over seeds of training (R, T, n) minus theory (1 or R, T, n), in its standard errors.

    Of one seed it is the difference itself. Masked where the seeds differ by no more than rounding.
    """
    difference = training - theory
    if len(difference) < 2:
        return difference[0]
    error = difference.std(axis=0, ddof=1) / np.sqrt(len(difference))
    size = max(float(np.abs(training).max()), float(np.abs(theory).max())) if training.count() else 1.0
    return np.ma.masked_where(np.ma.filled(error, 0.0) <= STILL * size, difference.mean(axis=0)) / error


def without_line(values: Any, training: Any, theory: Any) -> list[str]:
    """Notes on components without residuals (T, n): both sides are the same, or the seeds are alike.

    The sides are training (R, T, n) and theory (1 or R, T, n).
    """
    silent = np.ma.count(values, axis=0) == 0
    if len(training) < 2 or not silent.any():
        return []
    size = max(float(np.abs(training).max()), float(np.abs(theory).max())) if training.count() else 1.0
    same = np.ma.filled(np.abs(training - theory) <= STILL * size, True).all(axis=(0, 1))
    return [SAME] * bool((silent & same).any()) + [ALIKE] * bool((silent & ~same).any())


def draw_residuals(axes: Axes, x: Any, values: Any, colors: Sequence[Any], *, several: bool = True) -> None:
    """Draws residuals (T, n) at x (T,), a line for each component; several: seeds, so that chance has a size."""
    axes.axhline(0, color=FAINT, lw=0.5, zorder=0)
    for color, column in zip(colors, values.T, strict=True):
        axes.plot(x, column, color=color, lw=0.8)
    axes.set_ylabel("Δ")
    if not several:
        few_ticks(axes, y=3)
        return
    axes.axhspan(-CHANCE, CHANCE, color=FAINT, alpha=0.25, lw=0, zorder=0)
    low, high = (float(values.min()), float(values.max())) if values.count() else (0.0, 0.0)
    wide = max(-low, high) > WIDE
    low, high = min(low * ROOM[wide], -1.5 * CHANCE), max(high * ROOM[wide], 1.5 * CHANCE)
    few_ticks(axes, y=4)
    if wide:
        axes.set_yscale("symlog", linthresh=CHANCE, linscale=0.5)
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


def outside(axes: Axes, training: Any, theory: Any) -> Any:
    """Whether (T,) a component of theory (T, n) lies outside the range of the seeds of training (R, T, n), drawn in these Axes.

    It must do so by more than SMALL_SHARE. On a logarithmic axis that is a share of the values themselves, for nothing below some per
    cent can be seen there; else of all that they span.
    """
    low, high = training.min(axis=0), training.max(axis=0)
    if axes.get_yscale() == "log":
        size = np.ma.abs(theory)
    else:
        size = max(high.max(), theory.max()) - min(low.min(), theory.min()) if theory.count() and training.count() else 0.0
    beyond = np.ma.filled((theory < low - SMALL_SHARE * size) | (theory > high + SMALL_SHARE * size), False)
    return beyond.any(axis=1)
