"""The picture of one Solution: its states, its observables beside them, its events."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.plot.clock import Clock, clock_of
from odesim.plot.labels import EndLabels, settle
from odesim.plot.marks import draw_events
from odesim.plot.panels import Quantity, draw_quantity
from odesim.plot.style import new_figure, plain, styled

PANELS = 12  # at most; what is left out is named under the title
ALONE, BESIDE, STACKED, ROW, BAR = 46.0, 36.0, 23.0, 26.0, 6.0  # mm: an only panel, one of two, of a stack, of a grid; a colour bar
MARGIN, LINE = 13.0, 4.0  # mm: title and time label; one more line of type
TITLE, LABEL, SHORT = 42, 28, 12  # letters that fit across the picture, perhaps and surely under a panel of two


def figure_of(solution: Any) -> Figure:
    """The picture of a Solution, 80 mm wide: lines with names, maps or bands by the number of components.

    Time is logarithmic where the saved times are; events are marked; an early end is said under the title.
    """
    states, observables = quantities(solution.y, solution), quantities(solution.observables, solution)
    left, right = states[:PANELS], observables[: max(PANELS - len(states), 0)]
    notes = [f"{q.name}: the largest of each {q.every} neighbours" for q in [*left, *right] if q.kind == "map" and q.every > 1]
    notes += [f"not shown: {', '.join(q.name for q in [*states[PANELS:], *observables[len(right) :]])}"] * (
        len(left) + len(right) < len(states) + len(observables)
    )
    clock = clock_of(solution.t, str(solution.attrs.get("time_unit") or ""))
    with styled():
        title, happened = title_of(solution, notes), {name: found for name, found in solution.events.items() if found}
        figure, axes = grid(left, right, MARGIN + LINE * (title.count("\n") + -(-len(happened) // 2)))
        labels: list[EndLabels | None] = []
        named: set[tuple[tuple[str, ...], tuple[int, ...]]] = set()
        for ax, quantity in zip(axes, [*left, *right], strict=True):
            label = draw_quantity(ax, quantity, clock, named)
            if label and quantity.kind == "lines":
                named.add((quantity.dims, quantity.shape))
            labels.append(label)
        draw_events(figure, axes, [*left, *right], happened, clock, solution.dims)
        lowest = label_time(axes, clock)
        figure.suptitle(title, linespacing=1.3)
        figure.align_ylabels()
        fit_time(figure, lowest, clock)
        settle(figure, [label for label in labels if label])
    return figure


def quantities(arrays: Mapping[str, Any], solution: Any) -> list[Quantity]:
    """Named arrays (T, *shape) with the names of their axes; an axis without a name is called index."""
    found = []
    for name, values in arrays.items():
        values = np.asarray(values)
        dims = tuple(map(str, solution.dims.get(name, ())))
        found.append(Quantity(name, values, dims if len(dims) == values.ndim - 1 else ("index",) * (values.ndim - 1)))
    return found


def grid(left: Sequence[Quantity], right: Sequence[Quantity], margin: float) -> tuple[Figure, list[Axes]]:
    """A Figure with axes for left and right, and margin (mm) above and below them.

    One column for up to three states alone, a column each where the two balance, else rows of two.
    """
    every = [*left, *right]
    bars = [BAR * (quantity.kind == "map") for quantity in every]
    if len(every) == 1 or (not right and len(every) <= 3):
        heights = [ALONE] if len(every) == 1 else [STACKED] * len(every)
        figure = new_figure(margin + sum(heights) + sum(bars))
        cells = figure.add_gridspec(len(every), 1, height_ratios=[h + b for h, b in zip(heights, bars, strict=True)])
        return figure, [figure.add_subplot(cells[i, 0]) for i in range(len(every))]
    if right and max(len(left), len(right)) <= 3 and abs(len(left) - len(right)) <= 1:
        rows = max(len(left), len(right))
        figure = new_figure(margin + (BESIDE if rows == 1 else ROW * rows) + max(bars))
        places = len(left) * len(right)  # each column divides the height evenly
        cells = figure.add_gridspec(places, 2)
        found = []
        for column, count in enumerate((len(left), len(right))):
            step = places // count
            found += [figure.add_subplot(cells[i * step : (i + 1) * step, column]) for i in range(count)]
        return figure, found
    heights = [ROW + max(bars[i : i + 2]) for i in range(0, len(every), 2)]
    figure = new_figure(margin + sum(heights))
    cells = figure.add_gridspec(len(heights), 2, height_ratios=heights)
    return figure, [figure.add_subplot(cells[i // 2, i % 2]) for i in range(len(every))]


def label_time(axes: Sequence[Axes], clock: Clock) -> list[Axes]:
    """The lowest panel of each column, with the time's label under it; a panel over another shows no numbers."""
    spans: list[Any] = [ax.get_subplotspec() for ax in axes]
    lowest = []
    for ax, span in zip(axes, spans, strict=True):
        if any(other.colspan.start == span.colspan.start and other.rowspan.start >= span.rowspan.stop for other in spans):
            ax.tick_params(axis="x", which="both", labelbottom=False)
        else:
            ax.set_xlabel(fill(clock.label, TITLE))
            lowest.append(ax)
    return lowest


def fit_time(figure: Figure, lowest: Sequence[Axes], clock: Clock) -> None:
    """Breaks the time's label into lines until it keeps to its column: a layout gives no room to wide labels."""
    if len(lowest) < 2 or len(clock.label) <= SHORT:
        return
    engine: Any = figure.get_layout_engine()
    engine.execute(figure)
    right: Any = lowest[-1].get_tightbbox()
    border = right.x0
    room = []
    for ax, (low, high) in zip(lowest, ((0.0, border), (border, figure.bbox.x1)), strict=True):
        box = ax.get_window_extent()
        middle = (box.x0 + box.x1) / 2
        room.append(2 * min(middle - low, high - middle))
    for letters in range(LABEL, 5, -2):
        for ax in lowest:
            ax.set_xlabel(fill(clock.label, letters))
        if all(ax.xaxis.label.get_window_extent().width < width for ax, width in zip(lowest, room, strict=True)):
            break


def title_of(solution: Any, notes: Sequence[str]) -> str:
    """The model's name; under it what ended the run early, and notes."""
    status, lines = str(solution.status), [str(solution.model)]
    if status not in ("ok", "event"):
        lines.append(f"stopped at t = {float(solution.t[-1]):.6g}: {status}")
    return plain("\n".join(fill(line, TITLE) for line in [*lines, *notes]))
