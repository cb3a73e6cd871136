"""The picture of a Solution: states, observables and events."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.base.arrays import on_host
from odesim.base.errors import ParamError
from odesim.plot.choice import Choice, several_panels
from odesim.plot.labels import EndLabels, add_header, place_labels, symbol
from odesim.plot.panels import LONG, Quantity, draw_last_values, draw_quantity, jump_times
from odesim.plot.scales import TimeAxis, floor_of, make_time_axis, shade_below
from odesim.plot.solution import draw_events
from odesim.plot.style import WIDTH, literal, new_figure, project_style
from odesim.stepper.occurrences import Events

PANELS = 12  # largest number; others are named under the title
ALONE, BESIDE, STACKED, ROW, MATRIX, BAR = 46.0, 36.0, 23.0, 26.0, 34.0, 6.0
# heights in mm: a single panel, one of two, of a stack, of a grid, of a matrix; a colour bar
MANY = 7  # panels: in rows of four
FOOT = 7.0  # mm: the time label
TITLE, SHORT = 42, 12  # letters that fit across the picture, and surely under one of two columns


def figure_of_solution(solution: Any, choice: Choice | None = None, ax: Axes | None = None) -> Figure:
    """A Figure of a Solution, 80 mm wide (160 with many panels): lines, maps or bands, by the number of components.

    The time axis is logarithmic if the saved times are geometric. Events are marked. The title has the status of an early end. choice:
    quantities, a component, scales. ax: Axes to draw one quantity on, without title and notes. Raises ParamError for a choice that the
    run does not have.
    """
    choice = choice or Choice()
    choice.check()
    choice.refuse_axes("an integration")
    states, all_observables = quantities(on_host(solution.y), solution), quantities(solution.observables, solution)
    names = choice.names({q.name: q.shape for q in (*states, *all_observables)}, str(solution.model))
    states, all_observables = (
        [q.part(choice.component(q.name, q.shape)) for q in part if q.name in names] for part in (states, all_observables)
    )
    still = [q for q in all_observables if q.is_constant and not choice.var]
    observables = [q for q in all_observables if choice.var or not q.is_constant]
    left, right = states[:PANELS], observables[: max(PANELS - len(states), 0)]
    drawn = [*left, *right]
    thinned = [q for q in drawn if q.neighbours > 1]
    notes = [f"constant: {symbol(q.name, q.dims, most=LONG)} = {', '.join(f'{x:.3g}' for x in q.flat[0])}" for q in still]
    notes += [f"{symbol(q.name, most=LONG)}: the largest of each {q.neighbours} neighbours" for q in thinned]
    hidden = [*states[PANELS:], *observables[len(right) :]]
    notes += [literal(f"not shown: {', '.join(q.name for q in hidden)}")] * bool(hidden)
    refuse_scales(choice, drawn)
    time_axis = make_time_axis(solution.t, str(solution.attrs.get("time_unit") or ""), choice.scale("x"))
    notes += [time_axis.left_out] * (bool(time_axis.left_out) and bool(choice.scale("x")))
    notes += ["only start and end are saved: save = 200 saves more"] * (len(solution.t) == 2)
    with project_style():
        events = {name: Events.of(found) for name, found in solution.events.items() if len(found)}
        if ax is not None:
            draw_one(ax, drawn, time_axis, choice)
            return ax.get_figure(root=True)  # type: ignore[return-value]
        figure, axes, beside = grid(left, right, FOOT)
        labels: list[EndLabels | None] = []
        labelled: dict[tuple[tuple[str, ...], tuple[int, ...]], str] = {}
        for ax, quantity in zip(axes, drawn, strict=True):
            label, more = draw_quantity(ax, quantity, time_axis, labelled, choice=choice)
            notes += more
            if quantity.kind == "lines":
                notes += shade_below(ax, quantity.floor, whole=bool(choice.scale("y")))
            if label and quantity.kind == "lines":
                labelled.setdefault((quantity.dims, quantity.shape), quantity.name)
            labels.append(label)
        for ax, quantity in zip(beside, [q for q in drawn if q.is_matrix], strict=True):
            notes += draw_last_values(ax, quantity, time_axis, log=bool(choice.scale("c")))
        handles = draw_events(axes, drawn, len(left), events, time_axis, solution.dims)
        lowest = label_time(axes, time_axis)
        add_header(figure, literal(str(solution.model)), [*end_notes(solution), *dict.fromkeys(notes)], handles)
        figure.align_ylabels(axes)
        fit_time(figure, lowest, [*axes, *beside], time_axis)
        place_labels(figure, [label for label in labels if label])
    return figure


def draw_one(axes: Axes, drawn: Sequence[Quantity], time_axis: TimeAxis, choice: Choice) -> None:
    """Draws one quantity on the user's Axes. Raises ParamError if there are several."""
    if len(drawn) != 1:
        raise several_panels([q.name for q in drawn])
    label, _ = draw_quantity(axes, drawn[0], time_axis, choice=choice)
    axes.set_xlabel(time_axis.label)
    if label:
        label.place()


def refuse_scales(choice: Choice, drawn: Sequence[Quantity]) -> None:
    """Raises ParamError if a logarithmic scale was chosen that no panel has."""
    if not any(q.kind == "map" or q.is_matrix for q in drawn):
        choice.refuse_colors()
    if choice.scale("y") and drawn and all(q.kind == "map" for q in drawn):
        raise ParamError(f"log y: the vertical axis is the component of {drawn[0].name}, from 0; log c makes its colours logarithmic")


def quantities(arrays: Mapping[str, Any], solution: Any) -> list[Quantity]:
    """Quantities from arrays {name: (T, *shape)} of a Solution; axes without names are called `index`."""
    result = []
    for name, values in arrays.items():
        values = np.asarray(values)
        dims = tuple(map(str, solution.dims.get(name, ())))
        shown = dims if len(dims) == values.ndim - 1 else ("index",) * (values.ndim - 1)
        floor = floor_of(values, solution.attrs, state=name in solution.y)
        result.append(Quantity(name, values, shown, jump_times(name, values.shape[1:], solution), floor))
    return result


def grid(left: Sequence[Quantity], right: Sequence[Quantity], margin: float) -> tuple[Figure, list[Axes], list[Axes]]:
    """(Figure, axes of left and right, axes beside matrices) for states `left` and observables `right`, with margin in mm.

    Up to three states alone form one column. Equally many states and observables form two. Else there are rows of two, or of four
    in a figure twice as wide if there are many. A matrix has a row of its own.
    """
    drawn = [*left, *right]
    if any(quantity.is_matrix for quantity in drawn):
        return grid_of_matrices(drawn, margin)
    bars = [BAR * (quantity.kind == "map") for quantity in drawn]
    if len(drawn) == 1 or (not right and len(drawn) <= 3):
        heights = [ALONE] if len(drawn) == 1 else [STACKED] * len(drawn)
        figure = new_figure(margin + sum(heights) + sum(bars))
        cells = figure.add_gridspec(len(drawn), 1, height_ratios=[h + b for h, b in zip(heights, bars, strict=True)])
        return figure, [figure.add_subplot(cells[i, 0]) for i in range(len(drawn))], []
    if right and max(len(left), len(right)) <= 3 and abs(len(left) - len(right)) <= 1:
        rows = max(len(left), len(right))
        figure = new_figure(margin + (BESIDE if rows == 1 else ROW * rows) + max(bars))
        rows_of_grid = len(left) * len(right)  # each column divides the height evenly
        cells = figure.add_gridspec(rows_of_grid, 2)
        axes = []
        for column, count in enumerate((len(left), len(right))):
            step = rows_of_grid // count
            axes += [figure.add_subplot(cells[i * step : (i + 1) * step, column]) for i in range(count)]
        return figure, axes, []
    columns = 4 if len(drawn) >= MANY else 2
    heights = [ROW + max(bars[i : i + columns]) for i in range(0, len(drawn), columns)]
    figure = new_figure(margin + sum(heights), width=WIDTH * columns / 2)
    cells = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    return figure, [figure.add_subplot(cells[cell]) for cell in cells_in_rows(len(drawn), columns)], []


def cells_in_rows(n: int, columns: int = 2, above: int = 0) -> list[tuple[int, slice]]:
    """(row, columns) of n panels in rows under `above` rows; those of the last row are wider if they can fill it evenly."""
    rest = n % columns
    wide = columns // rest if rest and columns % rest == 0 else 1
    parts = [divmod(i, columns) for i in range(n)]
    spans = [(row, place, wide if row == n // columns else 1) for row, place in parts]
    return [(above + row, slice(place * span, (place + 1) * span)) for row, place, span in spans]


def grid_of_matrices(drawn: Sequence[Quantity], margin: float) -> tuple[Figure, list[Axes], list[Axes]]:
    """As grid(), if there are matrices: first a row for each of them, then rows of two."""
    matrices, others = ([i for i, q in enumerate(drawn) if q.is_matrix is wanted] for wanted in (True, False))
    heights = [MATRIX] * len(matrices)
    heights += [ROW + max(BAR * (drawn[i].kind == "map") for i in others[k : k + 2]) for k in range(0, len(others), 2)]
    figure = new_figure(margin + sum(heights))
    cells = figure.add_gridspec(len(heights), 2, height_ratios=heights)
    places: dict[int, tuple[int, Any]] = {i: (row, 0) for row, i in enumerate(matrices)}
    places |= dict(zip(others, cells_in_rows(len(others), above=len(matrices)), strict=True))
    return (
        figure,
        [figure.add_subplot(cells[places[i]]) for i in range(len(drawn))],
        [figure.add_subplot(cells[row, 1]) for row in range(len(matrices))],
    )


def label_time(axes: Sequence[Axes], time_axis: TimeAxis) -> list[Axes]:
    """Writes the time label under panels with none of their width below and removes tick labels of others; returns the first."""
    spans: list[Any] = [ax.get_subplotspec() for ax in axes]
    lowest = []
    for ax, span in zip(axes, spans, strict=True):
        if any(other.colspan == span.colspan and other.rowspan.start >= span.rowspan.stop for other in spans):
            ax.tick_params(axis="x", which="both", labelbottom=False)
        else:
            ax.set_xlabel(fill(time_axis.label, TITLE))
            lowest.append(ax)
    return lowest


def fit_time(figure: Figure, lowest: Sequence[Axes], every: Sequence[Axes], time_axis: TimeAxis) -> None:
    """Breaks the time label into lines until it fits its column, which matplotlib's layout does not ensure."""
    spans: list[Any] = [ax.get_subplotspec() for ax in every]
    starts = [int(span.colspan.start) for span in spans]
    if not any(starts) or len(time_axis.label) <= SHORT:
        return
    engine: Any = figure.get_layout_engine()
    engine.execute(figure)
    boxes: list[Any] = [ax.get_tightbbox() for ax in every]
    borders = {first: min(box.x0 for box, start in zip(boxes, starts, strict=True) if start == first) for first in starts if first}
    for ax, span in zip(every, spans, strict=True):
        if ax in lowest:
            low, high = borders.get(span.colspan.start, 0.0), borders.get(span.colspan.stop, figure.bbox.x1)
            box = ax.get_window_extent()
            middle = (box.x0 + box.x1) / 2
            for letters in range(TITLE, 5, -2):
                ax.set_xlabel(fill(time_axis.label, letters))
                if ax.xaxis.label.get_window_extent().width < 2 * min(middle - low, high - middle):
                    break


def end_notes(solution: Any) -> list[str]:
    """A note with the status of an early end; none if the run ended as it should."""
    status = str(solution.status)
    return [] if status in ("ok", "event") else [literal(f"stopped at t = {float(solution.t[-1]):.6g}: {status}")]
