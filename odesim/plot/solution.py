"""The picture of one Solution: its states, its observables beside them, its events."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.base.arrays import on_host
from odesim.plot.labels import EndLabels, place_labels
from odesim.plot.marks import caption_columns, captions, draw_events
from odesim.plot.panels import Quantity, draw_last_values, draw_quantity
from odesim.plot.style import literal, new_figure, project_style
from odesim.plot.times import TimeAxis, make_time_axis
from odesim.solve.occurrences import Events

PANELS = 12  # at most; what is left out is named under the title
ALONE, BESIDE, STACKED, ROW, MATRIX, BAR = 46.0, 36.0, 23.0, 26.0, 34.0, 6.0
# mm: an only panel, one of two, of a stack, of a grid, of a matrix; a colour bar
MARGIN, LINE = 13.0, 4.0  # mm: title and time label; one more line of type
TITLE, LABEL, SHORT = 42, 28, 12  # letters that fit across the picture, perhaps and surely under a panel of two


def figure_of_solution(solution: Any) -> Figure:
    """The picture of a Solution, 80 mm wide: lines with names, maps or bands by the number of components.

    Time is logarithmic where the saved times are; events are marked; an early end is said under the title.
    """
    states, seen = quantities(on_host(solution.y), solution), quantities(solution.observables, solution)
    observables = [q for q in seen if not q.is_constant]
    left, right = states[:PANELS], observables[: max(PANELS - len(states), 0)]
    every = [*left, *right]
    notes = [f"constant: {q.title} = {', '.join(f'{x:.3g}' for x in q.flat[0])}" for q in seen if q.is_constant]
    notes += [f"{q.name}: the largest of each {q.every} neighbours" for q in every if q.kind == "map" and q.every > 1]
    notes += [f"not shown: {', '.join(q.name for q in [*states[PANELS:], *observables[len(right) :]])}"] * (
        len(every) < len(states) + len(observables)
    )
    clock = make_time_axis(solution.t, str(solution.attrs.get("time_unit") or ""))
    with project_style():
        title, happened = title_of(solution, notes), {name: Events.of(found) for name, found in solution.events.items() if len(found)}
        said = captions(happened)
        figure, axes, beside = grid(left, right, MARGIN + LINE * (title.count("\n") + -(-len(said) // caption_columns(said))))
        labels: list[EndLabels | None] = []
        named: dict[tuple[tuple[str, ...], tuple[int, ...]], str] = {}
        for ax, quantity in zip(axes, every, strict=True):
            label = draw_quantity(ax, quantity, clock, named)
            if label and quantity.kind == "lines":
                named.setdefault((quantity.dims, quantity.shape), quantity.name)
            labels.append(label)
        for ax, quantity in zip(beside, [q for q in every if q.is_matrix], strict=True):
            draw_last_values(ax, quantity, clock)
        draw_events(figure, axes, every, len(left), happened, clock, solution.dims)
        lowest = label_time(axes, clock)
        figure.suptitle(title, linespacing=1.3)
        figure.align_ylabels(axes)
        fit_time(figure, lowest, [*axes, *beside], clock)
        place_labels(figure, [label for label in labels if label])
    return figure


def quantities(arrays: Mapping[str, Any], solution: Any) -> list[Quantity]:
    """Named arrays (T, *shape) with the names of their axes; an axis without a name is called index."""
    found = []
    for name, values in arrays.items():
        values = np.asarray(values)
        dims = tuple(map(str, solution.dims.get(name, ())))
        found.append(Quantity(name, values, dims if len(dims) == values.ndim - 1 else ("index",) * (values.ndim - 1)))
    return found


def grid(left: Sequence[Quantity], right: Sequence[Quantity], margin: float) -> tuple[Figure, list[Axes], list[Axes]]:
    """A Figure with axes for left and right, others beside those of matrices, and margin (mm) above and below.

    One column for up to three states alone, a column each where the two balance, else rows of two; matrices have a row each.
    """
    every = [*left, *right]
    if any(quantity.is_matrix for quantity in every):
        return grid_of_matrices(every, margin)
    bars = [BAR * (quantity.kind == "map") for quantity in every]
    if len(every) == 1 or (not right and len(every) <= 3):
        heights = [ALONE] if len(every) == 1 else [STACKED] * len(every)
        figure = new_figure(margin + sum(heights) + sum(bars))
        cells = figure.add_gridspec(len(every), 1, height_ratios=[h + b for h, b in zip(heights, bars, strict=True)])
        return figure, [figure.add_subplot(cells[i, 0]) for i in range(len(every))], []
    if right and max(len(left), len(right)) <= 3 and abs(len(left) - len(right)) <= 1:
        rows = max(len(left), len(right))
        figure = new_figure(margin + (BESIDE if rows == 1 else ROW * rows) + max(bars))
        places = len(left) * len(right)  # each column divides the height evenly
        cells = figure.add_gridspec(places, 2)
        found = []
        for column, count in enumerate((len(left), len(right))):
            step = places // count
            found += [figure.add_subplot(cells[i * step : (i + 1) * step, column]) for i in range(count)]
        return figure, found, []
    heights = [ROW + max(bars[i : i + 2]) for i in range(0, len(every), 2)]
    figure = new_figure(margin + sum(heights))
    cells = figure.add_gridspec(len(heights), 2, height_ratios=heights)
    return figure, [figure.add_subplot(cells[i // 2, i % 2]) for i in range(len(every))], []


def grid_of_matrices(every: Sequence[Quantity], margin: float) -> tuple[Figure, list[Axes], list[Axes]]:
    """As grid(): a row for each matrix, first, then rows of two."""
    matrices, others = ([i for i, q in enumerate(every) if q.is_matrix is wanted] for wanted in (True, False))
    heights = [MATRIX] * len(matrices)
    heights += [ROW + max(BAR * (every[i].kind == "map") for i in others[k : k + 2]) for k in range(0, len(others), 2)]
    figure = new_figure(margin + sum(heights))
    cells = figure.add_gridspec(len(heights), 2, height_ratios=heights)
    places = {i: (row, 0) for row, i in enumerate(matrices)}
    places |= {i: (len(matrices) + k // 2, k % 2) for k, i in enumerate(others)}
    return (
        figure,
        [figure.add_subplot(cells[places[i]]) for i in range(len(every))],
        [figure.add_subplot(cells[row, 1]) for row in range(len(matrices))],
    )


def label_time(axes: Sequence[Axes], clock: TimeAxis) -> list[Axes]:
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


def fit_time(figure: Figure, lowest: Sequence[Axes], every: Sequence[Axes], clock: TimeAxis) -> None:
    """Breaks the time's label into lines until it keeps to its column: a layout gives no room to wide labels."""
    spans: list[Any] = [ax.get_subplotspec() for ax in every]
    second = [ax for ax, span in zip(every, spans, strict=True) if span.colspan.start]
    if not second or len(clock.label) <= SHORT:
        return
    engine: Any = figure.get_layout_engine()
    engine.execute(figure)
    boxes: list[Any] = [ax.get_tightbbox() for ax in second]
    border = min(box.x0 for box in boxes)
    room = []
    for ax in lowest:
        low, high = (border, figure.bbox.x1) if ax in second else (0.0, border)
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
    return literal("\n".join(fill(line, TITLE) for line in [*lines, *notes]))
