"""The picture of a Solution: states and observables in panels, and events as marks: on their curve, else on the time axis."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.transforms import ScaledTranslation

from odesim.base.arrays import Array, on_host
from odesim.base.errors import ParamError
from odesim.plot.choice import Choice, several_panels
from odesim.plot.labels import EndLabels, symbol
from odesim.plot.layout import ALONE, BAR, BESIDE, MATRIX, ROW, STACKED, add_panels, cells_in_rows, finish, row_heights
from odesim.plot.panels import LONG, Quantity, draw_last_values, draw_quantity, jump_times
from odesim.plot.scales import TimeAxis, floor_of, make_time_axis, shade_below, time_text
from odesim.plot.style import CATEGORIES, INK, MARKERS, WIDTH, literal, project_style, root_figure
from odesim.stepper.occurrences import BELOW, Events

if TYPE_CHECKING:
    from odesim.run.solution import Solution

PANELS = 12  # largest number; others are named under the title
MANY = 7  # panels: in rows of four
MAX_MARKS = 40  # largest number of marks of one event
FAR = 0.05  # of the time axis: between saved times farther apart the height of a curve is uncertain
SIZE, STEP = 3.0, 3.6  # points: a mark, and from one on the axis to the next above it
COLORS = (INK, CATEGORIES[1], CATEGORIES[2], CATEGORIES[3], CATEGORIES[5])
FAINT = 0.35  # opacity of a mark of an event that states below atol decide
PALE = 0.3  # share of the colour in a band behind curves
NARROW = 80.0  # points: the width of a panel in one of two columns


def figure_of_solution(solution: "Solution", choice: Choice | None = None, ax: Axes | None = None) -> Figure:
    """A Figure of a Solution, 80 mm wide (160 with many panels): lines, maps or bundles, by the number of components.

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
    notes += time_axis.notes
    notes += ["only start and end are saved: save = 200 saves more"] * (len(solution.t) == 2)
    if ax is not None and len(drawn) != 1:
        raise several_panels([q.name for q in drawn])
    with project_style():
        axes, beside = grid(left, right) if ax is None else ([ax], [])
        labels: list[EndLabels | None] = []
        labelled: dict[tuple[tuple[str, ...], tuple[int, ...]], str] = {}
        for panel, quantity in zip(axes, drawn, strict=True):
            label, more = draw_quantity(panel, quantity, time_axis, labelled, choice=choice)
            notes += more
            if quantity.kind == "lines" and ax is None:
                notes += shade_below(panel, quantity.floor, whole=bool(choice.scale("y")))
            if label and quantity.kind == "lines":
                labelled.setdefault((quantity.dims, quantity.shape), quantity.name)
            labels.append(label)
        for panel, quantity in zip(beside, [q for q in drawn if q.is_matrix and ax is None], strict=True):
            notes += draw_last_values(panel, quantity, time_axis, log=bool(choice.scale("c")))
        events = {name: Events.of(occurrences) for name, occurrences in solution.events.items() if len(occurrences) and ax is None}
        handles = draw_events(axes, drawn, len(left), events, time_axis, solution.dims)
        end = [literal(f"stopped at t = {float(solution.t[-1]):.6g}: {solution.status}")] * (solution.status not in ("ok", "event"))
        notes = [*end, *dict.fromkeys(notes)]
        return finish(axes, labels, (literal(str(solution.model)), notes, handles), ax=ax, time_axis=time_axis, beside=beside)


def refuse_scales(choice: Choice, drawn: Sequence[Quantity]) -> None:
    """Raises ParamError if a logarithmic scale was chosen that no panel has."""
    if not any(q.kind == "map" or q.is_matrix for q in drawn):
        choice.refuse_colors()
    if choice.scale("y") and drawn and all(q.kind == "map" for q in drawn):
        raise ParamError(f"log y: the vertical axis is the component of {drawn[0].name}, from 0; log c makes its colours logarithmic")


def quantities(arrays: Mapping[str, Array], solution: "Solution") -> list[Quantity]:
    """Quantities from arrays {name: (T, *shape)} of a Solution; axes without names are called `index`."""
    result = []
    for name, values in arrays.items():
        values = np.asarray(values)
        dims = tuple(map(str, solution.dims.get(name, ())))
        shown = dims if len(dims) == values.ndim - 1 else ("index",) * (values.ndim - 1)
        floor = floor_of(values, solution.attrs, state=name if name in solution.y else "")
        result.append(Quantity(name, values, shown, jump_times(name, values.shape[1:], solution), floor))
    return result


def grid(left: Sequence[Quantity], right: Sequence[Quantity]) -> tuple[list[Axes], list[Axes]]:
    """(axes of left and right, axes beside matrices) for states `left` and observables `right`.

    Up to three states alone form one column. Equally many states and observables form two. Else there are rows of two, or of four
    in a figure twice as wide if there are many. A matrix has a row of its own, which comes first.
    """
    drawn = [*left, *right]
    maps, n = [q.kind == "map" for q in drawn], len(drawn)
    if matrices := [i for i, q in enumerate(drawn) if q.is_matrix]:
        others = [i for i in range(n) if i not in matrices]
        first: list[Any] = [(row, 0) for row in range(len(matrices))]
        places = dict(zip([*matrices, *others], first + cells_in_rows(len(others), above=len(matrices)), strict=True))
        heights = [MATRIX] * len(matrices) + row_heights([maps[i] for i in others])
        axes = add_panels(heights, [*(places[i] for i in range(n)), *((row, 1) for row, _ in first)])
        return axes[:n], axes[n:]
    if n == 1 or (not right and n <= 3):
        heights = [(ALONE if n == 1 else STACKED) + BAR * with_bar for with_bar in maps]
        return add_panels(heights, [(i, 0) for i in range(n)], columns=1), []
    if right and max(len(left), len(right)) <= 3 and abs(len(left) - len(right)) <= 1:
        rows, parts = max(len(left), len(right)), len(left) * len(right)  # each column divides the height evenly
        height = (BESIDE if rows == 1 else ROW * rows) + BAR * any(maps)
        cells = [
            (slice(i * parts // count, (i + 1) * parts // count), column)
            for column, count in enumerate((len(left), len(right)))
            for i in range(count)
        ]
        return add_panels([height / parts] * parts, cells), []
    columns = 4 if n >= MANY else 2
    return add_panels(row_heights(maps, columns), cells_in_rows(n, columns), columns=columns, width=WIDTH * columns / 2), []


def captions(events: Mapping[str, Events]) -> list[str]:
    """Captions of events {name: Events} for the legend: name, number, times."""
    texts = []
    for name, occurrences in events.items():
        times = [time_text(t) for t in (occurrences.t.min(), occurrences.t.max())]
        noise = 0 if occurrences.below is None else int(occurrences.below.sum())
        below = f", {noise} below atol" if noise else ""
        count = f" ({len(occurrences)}×{below})" if len(occurrences) > 1 or noise else ""
        texts.append(literal(f"{name}{count}: t = {' to '.join(dict.fromkeys(times))}"))
    return texts


def draw_events(
    axes: Sequence[Axes],
    shown: Sequence[Quantity],
    states: int,
    events: Mapping[str, Events],
    time_axis: TimeAxis,
    dims: Mapping[str, Sequence[str]],
) -> list[Line2D]:
    """Draws events {name: Events}, none of them empty; returns their handles for a legend.

    axes, shown: the panels over time and their quantities, the first `states` of them states. dims {event: axis names}. An event with
    an index is drawn on that component if exactly one state has such components; else on the time axis of every panel. One without
    is drawn on the curve of every number, and on the time axis of other panels.
    """
    handles, panels = [], list(zip(axes, shown, strict=True))
    on_axis: dict[Axes, list[tuple[float, dict[str, Any]]]] = {ax: [] for ax in axes}
    for number, ((name, occurrences), caption) in enumerate(zip(events.items(), captions(events), strict=True)):
        color = COLORS[number % len(COLORS)]
        style: dict[str, Any] = {"color": color, "marker": MARKERS[number % len(MARKERS)], "mfc": "white", "mew": 0.7, "ms": SIZE, "ls": ""}
        positions = time_axis.positions(occurrences.t)
        if len(occurrences) > MAX_MARKS:
            style = {"color": 1 - PALE * (1 - np.array(to_rgb(color))), "lw": 4.0}
            draw_band(panels, positions, style["color"])
        else:
            whole = occurrences.indices is None
            matching = [panel for panel in panels[:states] if not whole and has_components(panel[1], occurrences, dims.get(name))]
            for ax, quantity in matching if len(matching) == 1 else panels:
                on_curve = quantity.kind == "lines" and ((quantity.count == 1 and whole) or len(matching) == 1)
                if (on_curve and is_near(positions, time_axis)) or (len(matching) == 1 and quantity.kind == "map"):
                    draw_marks(ax, quantity, occurrences, time_axis, style)
                else:
                    faint = set() if occurrences.below is None else set(time_axis.positions(occurrences.t[occurrences.below]).tolist())
                    on_axis[ax] += [(x, {**style, "alpha": FAINT} if x in faint else style) for x in positions.tolist()]
        handles.append(Line2D([], [], label=caption, **style))
    for ax, marks in on_axis.items():
        draw_on_axis(ax, marks, time_axis)
    return handles


def draw_on_axis(axes: Axes, marks: Sequence[tuple[float, Mapping[str, Any]]], time_axis: TimeAxis) -> None:
    """Draws marks (position, style) on the line of the time axis; of two that would touch, one stands on the other."""
    scaled = np.log10 if time_axis.log else np.asarray
    width = float(np.ptp(scaled(time_axis.x[[0, -1]]))) or 1.0
    last: dict[int, tuple[float, str]] = {}  # of each level: where its last mark stands, and which event it is of
    for x, style in sorted(marks, key=lambda mark: mark[0]):
        place, level = float(scaled(x)) / width * NARROW, 0
        while level in last and place - last[level][0] < STEP and last[level][1] != style["marker"]:
            level += 1
        last[level] = place, style["marker"]
        lift = ScaledTranslation(0, STEP * level / 72, root_figure(axes).dpi_scale_trans)
        axes.plot([x], [0.0], transform=axes.get_xaxis_transform() + lift, clip_on=False, zorder=3, **style)


def has_components(quantity: Quantity, events: Events, dims: Sequence[str] | None) -> bool:
    """Whether the quantity has a component for each of these events, and the axes `dims` if they are known."""
    if dims is not None and tuple(dims) != quantity.dims:
        return False
    index = events.indices
    return index is not None and index.shape[1] == len(quantity.shape) and bool(np.all(index < quantity.shape))


def is_near(positions: Array, time_axis: TimeAxis) -> bool:
    """Whether all positions (n,) on the time axis are saved times or lie between two close ones."""
    scaled = np.log if time_axis.log else np.asarray
    x: Array = scaled(time_axis.x)
    after = np.searchsorted(time_axis.x, positions)
    high, low = x[np.minimum(after, len(x) - 1)], x[np.maximum(after - 1, 0)]
    return bool(np.all((high - low <= FAR * (x[-1] - x[0])) | np.isin(positions, time_axis.x)))


def draw_band(panels: Sequence[tuple[Axes, Quantity]], positions: Array, color: Any) -> None:
    """Draws a band behind the curves of every panel from the first to the last of positions (n,); a bar under a map."""
    if not len(positions):
        return
    ends = [positions.min(), positions.max()]
    for ax, quantity in panels:
        if quantity.kind == "map":
            rim = [withStroke(linewidth=2.6, foreground=INK)]
            ax.plot(
                ends,
                [0, 0],
                color=color,
                lw=2.0,
                transform=ax.get_xaxis_transform(),
                clip_on=False,
                path_effects=rim,
                solid_capstyle="butt",
            )
        else:
            ax.axvspan(*ends, color=color, lw=0, zorder=0)


def draw_marks(axes: Axes, quantity: Quantity, events: Events, time_axis: TimeAxis, style: Mapping[str, Any]) -> None:
    """Draws a mark for each event on the line of its component or its row of a map; at a jump, before it."""
    scaled = np.log if time_axis.log else np.asarray
    for event in events:
        x = time_axis.positions([event["t"]])
        if len(x):
            if quantity.kind == "map":
                y = float(event["index"][0])
            else:
                i = int(np.ravel_multi_index(tuple(event["index"] or ()), quantity.shape)) if quantity.count > 1 else 0
                values = quantity.flat[time_axis.rows, i]
                if quantity.jumps and event["t"] in quantity.jumps[i]:
                    y = float(values[max(np.searchsorted(time_axis.x, x[0]) - 1, 0)])
                else:
                    y = float(np.interp(scaled(x[0]), scaled(time_axis.x), values))
            axes.plot(x, [y], zorder=3, **style, alpha=FAINT if BELOW in event else None)
