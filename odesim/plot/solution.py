"""The picture of a Solution: states and observables in panels, and events as marks on their curves, else as lines across, many as ticks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from odesim.base.arrays import Array, on_host
from odesim.base.errors import ParamError
from odesim.plot.between import SIDE, is_between, is_near, with_between, with_times
from odesim.plot.choice import Choice, several_panels
from odesim.plot.labels import LONG, EndLabels, not_shown, symbol
from odesim.plot.layout import (
    ALONE,
    BAR,
    BESIDE,
    FOOT,
    HEAD,
    LOW,
    ROW,
    STACKED,
    STRIP,
    Block,
    Cell,
    add_panels,
    cells_in_rows,
    description,
    finish,
    row_heights,
)
from odesim.plot.panels import ENDED, HALVES, MARKED, alternates, draw_quantity, with_order
from odesim.plot.panels import FAINT as LINES_OF_BUNDLE
from odesim.plot.quantities import EPS, MAX_MARKS, RASTER, SPECTRUM, Quantity, jump_times, marks_of
from odesim.plot.scales import TimeAxis, is_geometric, make_time_axis, shade_below, time_text
from odesim.plot.strips import draw_strip
from odesim.plot.style import CATEGORIES, DASHES, INK, MARKERS, ON_CURVE, PAGE, WIDTH, literal, project_style
from odesim.plot.style import FAINT as GREY
from odesim.run.solution import floor_of
from odesim.stepper.methods import MAP
from odesim.stepper.occurrences import BELOW, Events

if TYPE_CHECKING:
    from odesim.run.solution import Solution

COLUMNS = 3
CURVES = 20.0  # mm: of lines or singular values in a strip, on a page that is printed narrower
PANELS = 6  # largest number, and a strip is one; others are named under the title
ACROSS = 6  # largest number of times of one event that are lines across the panels: more are a fence before the curves
TANGLED = 48  # largest number of marks of one event in whose panel lines are told apart
ROW_OF_TICKS, HIGH = 0.05, 40.0  # height of a row of ticks, in heights of the panel; points: of a panel in a stack
BINS = 80  # ticks in a row that do not touch
LARGEST = 5000  # number of ticks, more of which are pixels in a file of curves
SIZE = 3.0  # points: a mark
LEGEND = 12  # entries of events, of which more would fill the page
COLORS = (INK, CATEGORIES[1], CATEGORIES[2], CATEGORIES[3], CATEGORIES[5])
EARLY, MOST, LITTLE = 0.03, 0.5, 0.2
"""Of the span; and of the way of a quantity. An exponential that makes half its way in .03 has 99 % of it in a fifth of a linear axis. Four
of 121 shipped models are drawn so; with .1 of the span an exponential over seven of its times, which a linear axis shows, would be."""
FAINT = 0.35  # opacity of a mark of an event that states below atol decide


def figure_of_solution(solution: "Solution", choice: Choice | None = None, ax: Axes | None = None) -> Figure:
    """A Figure of a Solution, 80 mm wide, 96 where it would be higher: lines, maps or bundles, by the number of components, and strips.

    The time axis is logarithmic if the saved times are geometric, or most happens early. Events are marked. The title has the
    status of an early end.

    Parameters
    ----------
    solution : Solution
        As of `integrate`.
    choice : Choice
        Quantities, a component, scales; default: six panels, or those with views and, while there is room, sensitivities.
    ax : Axes
        To draw one quantity on, without title and notes.

    Returns
    -------
    Figure
        Of matplotlib; `Solution.plot` returns its Axes.

    Raises
    ------
    ParamError
        For a choice that the run does not have.

    Examples
    --------
    >>> run = odesim.integrate("joma.nonlinear", sizes={"M": 3})
    >>> figure = odesim.plot.figure_of_solution(run, odesim.plot.Choice(("v", "entropy")))
    >>> len(figure.axes)
    2
    """
    choice, solution = choice or Choice(), with_times(solution)
    drawn, hidden, still = choose_quantities(solution, choice)
    early = choice.scale("x") is None and changes_early(drawn, solution.t)
    if early:
        solution = with_times(solution, log=True)
        drawn, hidden, still = choose_quantities(solution, choice)
    drawn = drawn if ax is not None else with_rasters(drawn, solution, maps=not choice.var)
    time_axis = make_time_axis(
        solution.t, str(solution.attrs.get("time_unit") or ""), (early and not is_geometric(solution.t[1:])) or choice.scale("x")
    )
    drawn, gaps = with_between(drawn, solution, choice, time_axis)
    thinned = [q for q in drawn if q.neighbours > 1]
    notes = [f"constant: {symbol(q.name, q.dims, most=LONG)} = {', '.join(f'{x:.3g}' for x in q.flat[0])}" for q in still]
    notes += [f"{symbol(q.name, most=LONG)}: the largest of each {q.neighbours} neighbours" for q in thinned]
    notes += not_shown([q.name for q in hidden])
    refuse_scales(choice, drawn)
    is_map = solution.method == MAP.name
    strides = {*np.diff(solution.t)[:-1].tolist()} - {1.0} if is_map else set()
    notes += [f"drawn: one in {stride:.0f} updates" for stride in strides if len(strides) == 1]
    notes += [*time_axis.notes, *gaps]
    notes += ["only start and end are saved: save = 200 saves more"] * (len(solution.t) == 2 and solution.status == "ok")
    if ax is not None and len(drawn) != 1:
        raise several_panels([q.name for q in drawn])
    drawn = [replace(q, halves=is_map and q.kind == "lines" and alternates(q.flat, solution.t)) for q in with_order(drawn)]
    drawn = [one for q in drawn for one in (q, q.spectrum if ax is None else None) if one]
    with project_style():
        axes, beside = grid(drawn, stacked=all(q.name not in solution.observables for q in drawn)) if ax is None else ([ax], [])
        labels: list[EndLabels | None] = []
        for panel, quantity in zip(axes, drawn, strict=True):
            label, more = draw_quantity(panel, quantity, time_axis, choice=choice)
            notes += more
            if quantity.kind in ("lines", "bundle") and ax is None:
                notes += shade_below(panel, quantity.floor, whole=bool(choice.scale("y")))
            labels.append(label)
        strips = [pair for pair in zip(axes, drawn, strict=True) if pair[1].strip and ax is None]
        for panel, (lines, quantity) in zip(beside, strips, strict=True):
            notes += draw_strip(panel, lines, quantity, time_axis, log=bool(choice.scale("c")))
        events = {name: Events.of(occurrences) for name, occurrences in solution.events.items() if len(occurrences) and ax is None}
        panels = list(zip(axes, drawn, strict=True))
        handles, more = draw_events(panels, events, time_axis)
        halves = [Line2D([], [], color=INK, ls=DASHES[odd], label=half) for odd, half in enumerate(HALVES)]
        handles = [*(halves if any(q.halves for q in drawn) else []), *handles]
        notes += more
        draw_levels(panels, solution.attrs.get("levels", {}))
        notes.sort(key=lambda note: note == ENDED)  # after the grey that it refers to
        end = [literal(f"stopped at t = {float(solution.t[-1]):.6g}: {solution.status}")] * (solution.status not in ("ok", "event"))
        about = description({"model": solution.model, **solution.attrs}) if ax is None else ""
        title = (literal(str(solution.model)), [*end, *dict.fromkeys(notes)], handles)
        return finish(axes, labels, title, ax=ax, time_axis=time_axis, beside=beside, about=about)


def changes_early(drawn: Sequence[Quantity], t: Array) -> bool:
    """Whether half of the quantities, all in the mean, make most of their way in the first EARLY of times t (T,) from 0, and none little.

    Such a picture needs a logarithmic time. The way is the least of that on a linear and on a logarithmic axis of values: what decays by
    one factor in equal times is even on the latter. Few saved times stay as they are.
    """
    if len(t) <= MARKED or t[0] != 0:
        return False
    shares = [share for q in drawn if (share := early_share(q, t)) is not None]
    return bool(shares) and float(np.median(shares)) >= MOST and min(shares) >= LITTLE


def early_share(quantity: Quantity, t: Array) -> float | None:
    """The share of its way that the quantity makes in the first EARLY of times t (T,); None where it does not change."""
    values = quantity.flat[:, np.isfinite(quantity.flat).all(axis=0)]
    positive = values.size and values.min() >= 0 < values.max()
    logs = [np.log(np.maximum(values, max(quantity.floor, EPS * values.max())))] if positive else []
    ways = [np.append(0.0, np.cumsum(np.linalg.norm(np.diff(one, axis=0), axis=1))) for one in (values, *logs)]
    return min((float(np.interp(EARLY * t[-1], t, way) / way[-1]) for way in ways if way[-1] > 0), default=None)


def choose_quantities(solution: "Solution", choice: Choice) -> tuple[list[Quantity], list[Quantity], list[Quantity]]:
    """(quantities on the page, those left out, constant observables) of a Solution. Raises ParamError for a choice it does not have."""
    choice.check()
    choice.refuse_axes("an integration")
    states, observables = quantities(on_host(solution.y), solution), quantities(solution.observables, solution)
    names = choice.names({q.name: q.shape for q in (*states, *observables)}, str(solution.model))
    states, observables = ([q.part(choice.component(q.name, q.shape)) for q in part if q.name in names] for part in (states, observables))
    still = [q for q in observables if q.is_constant and not choice.var]
    requested = {name: of for names in solution.attrs.get("sensitivities", {}).values() for of, name in names.items()}
    return *page_of(states, [q for q in observables if q not in still], choice, requested), still


def page_of(
    states: Sequence[Quantity], observables: Sequence[Quantity], choice: Choice, requested: Mapping[str, str]
) -> tuple[list[Quantity], list[Quantity]]:
    """(quantities on the page, those left out): losses and entropies first, and below them those that have strips.

    Those with a view are the page, after them losses and entropies, then requested sensitivities {name: of which quantity}, those of a
    view first. Without views, losses and entropies have a place before states, then other numbers, then what has strips. All as long as
    PANELS panels are not full, or the row above strips. What was chosen by name, or all, is drawn.
    """
    # a loss says most of a run in one curve, and a page without the states would say nothing of the model
    every = [*sorted(observables, key=lambda q: ("loss" not in q.name, "entropy" not in q.name)), *states]
    first = [q for q in every if q in observables and ("loss" in q.name or "entropy" in q.name)]
    views = page = [q for q in every if q.view]
    if choice.var or choice.all:
        views, page = [], every
    else:
        room, page = PANELS - sum(1 + bool(q.strip) for q in views), [*views]
        shown = {q.name for q in views}
        numbers = [q for q in observables if not q.shape]
        after = sorted((q for q in every if q.name in requested), key=lambda q: requested[q.name] not in shown)
        rest = [*first, *after] if views else [*first, *(q for q in [*states, *numbers] if not q.strip), *states, *every]
        if any(q.strip for q in views):
            room = max(room, COLUMNS - sum(not q.strip for q in views))
        for q in dict.fromkeys(q for q in rest if q not in views):
            size = 1 + bool(q.strip)
            if size <= room or room == PANELS:
                page.append(q)
                room -= size
    page = sorted(page, key=lambda q: (bool(q.strip), bool(views) and not q.view and q not in first, every.index(q)))
    return page, [q for q in every if q not in page]


def refuse_scales(choice: Choice, drawn: Sequence[Quantity]) -> None:
    """Raises ParamError if a logarithmic scale was chosen that no panel has."""
    if not any(q.kind == "map" or q.strip for q in drawn):
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
        state = name if name in solution.y else ""
        floor = floor_of(values, solution.attrs, state=state)
        if not state:  # the tolerance says where errors may begin, the estimate, where they do
            floor = solution.observable_floors.get(name, floor)
        floor = max(floor, EPS * float(np.max(np.abs(values), where=np.isfinite(values), initial=0.0)))
        view = str(solution.attrs.get("views", {}).get(name, ""))
        marks = marks_of(name, values.shape[1:], solution)
        result.append(Quantity(name, values, shown, jump_times(name, values.shape[1:], solution), floor, view, marks=marks))
    return result


def with_rasters(drawn: Sequence[Quantity], solution: "Solution", *, maps: bool = True) -> list[Quantity]:
    """The quantities, with a raster before the first whose components have more than MAX_MARKS marks of an event.

    maps: lines that more than TANGLED of them would tangle are rows of a map.
    """
    result, rasters = list[Quantity](), set[str]()
    for q in drawn:
        for event, (numbers, components) in q.marks.items() if q.count > 1 else ():
            events = Events.of(solution.events[event])
            n = len(events)
            many = len(numbers) == n and mark_count(q, events.t[numbers], components) > MAX_MARKS
            if event not in rasters and many and events.indices is not None:
                rasters.add(event)
                result.append(Quantity(event, q.values, q.dims, view=RASTER, marks={event: q.marks[event]}))
                q = replace(q, view=q.view or "Map") if maps and n > TANGLED and q.kind == "lines" else q
        result.append(q)
    return result


def grid(drawn: Sequence[Quantity], *, stacked: bool) -> tuple[list[Axes], list[Axes]]:
    """(axes of the quantities, axes of their strips): rows of two panels or three, below them a row a strip, beside its lines.

    A spectrum is below the lines of its matrix, which is before it.
    stacked: up to three without strips stand one above the other.
    """
    alone = [q for q in drawn if not q.strip and q.view != SPECTRUM]
    maps, strips, n = [q.kind == "map" for q in alone], sum(bool(q.strip) for q in drawn), len(alone)
    if not strips and (n == 1 or (stacked and n <= 3)):
        heights = [(ALONE if n == 1 else STACKED) + BAR * with_bar for with_bar in maps]
        return add_panels(Block(heights, [(i, 0) for i in range(n)], (1,)), width=WIDTH), []
    columns = 3 if strips and n in (3, 5, 6) else 2
    heights = row_heights(maps, columns, LOW if strips or n > 4 else ROW) if strips or n > columns else [BESIDE + BAR * any(maps)]
    high = float(np.clip((PAGE - FOOT - HEAD - sum(heights)) / max(strips, 1), *STRIP))
    lines, tall = list[Cell](), list[float]()
    for q, below in pairwise([*drawn, None]):
        if q is not None and q.strip:  # of two rows, the lower one for the spectrum
            row, spectrum = 2 * len(tall), below is not None and below.view == SPECTRUM
            lines += [(slice(row, row + 2 - spectrum), 0), *[(row + 1, 0)] * spectrum]
            tall.append(2 * CURVES if spectrum else STRIP[1] if q.strip == "Points" else high)
    halves = [height / 2 for height in tall for _ in range(2)]  # of both sides, so that a page of html has them in order of reading
    beside = Block(halves, [(slice(2 * k, 2 * k + 2), 0) for k in range(strips)], (1,))
    axes = add_panels(
        Block(heights, cells_in_rows(n, columns), (1,) * columns),
        Block(halves, lines, (1,), beside=beside),
        width=PAGE if strips else None,
    )
    return axes[: len(drawn)], axes[len(drawn) :]


def captions(events: Mapping[str, Events]) -> list[str]:
    """Captions of events {name: Events} for the legend: name, number, times."""
    texts = []
    for name, occurrences in events.items():
        times = [time_text(t) for t in (occurrences.t.min(), occurrences.t.max())]
        noise = 0 if occurrences.below is None else int(occurrences.below.sum())
        below = f", {noise} below atol" if noise else ""
        count = f" ({len(occurrences)}×{below})" if len(occurrences) > 1 or noise else ""
        texts.append(f"{literal(name)}{count}: t = {' to '.join(dict.fromkeys(times))}")
    return texts


def draw_events(
    panels: Sequence[tuple[Axes, Quantity]], events: Mapping[str, Events], time_axis: TimeAxis
) -> tuple[list[Line2D], list[str]]:
    """Draws events {name: Events}, none of them empty, in panels over time; returns their handles for a legend, and notes.

    An event has one kind of mark in the whole picture. Marks stand on the curves of the components that it reads, or sets; of one without
    an index also on the curve of every number. Where a panel of its curves has none for it, or more than MAX_MARKS, or no panel has such a
    curve, up to ACROSS times are lines across the panels, behind the curves, and more are ticks in its raster, or at the foot; an event
    with an index that has curves keeps to their panels. Events beyond LEGEND have one look and one entry.
    """
    handles, notes = [], list[str]()
    rows: dict[Axes, list[set[int]]] = {ax: [] for ax, _ in panels}
    shown = {}  # what the captions count: of one component its own occurrences
    for name, one in events.items():
        numbers = [q.marks[name][0] for _, q in panels if name in q.marks and one.indices is not None]
        shown[name] = one[np.unique(np.concatenate(numbers))] if any(map(len, numbers)) else one
    rest = len(events) - LEGEND + 1 if len(events) > LEGEND else 0
    for number, ((name, occurrences), caption) in enumerate(zip(events.items(), captions(shown), strict=True)):
        named = number < len(events) - rest
        color, marker = (COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]) if named else (GREY, "o")
        style: dict[str, Any] = {"color": color, "marker": marker, "mfc": "white", "mew": 0.7, "ms": SIZE if named else SIZE / 2, "ls": ""}
        caption = caption if named else f"{rest} more events"
        style["label"] = f"_{caption}"  # the entry of the legend is one for all
        raster = [(ax, q) for ax, q in panels if q.kind == "raster" and q.name == name]
        curves = [(ax, q) for ax, q in raster or panels if raster or q.kind != "raster"]
        belongs = [(ax, q) for ax, q in curves if name in q.marks]
        curves = belongs if belongs and occurrences.indices is not None else curves
        on_curves = [(ax, q) for ax, q in curves if stands_on_curves(q, name, occurrences, time_axis)]
        on_curves = [] if any(pair not in on_curves for pair in belongs) else on_curves
        for ax, quantity in on_curves or curves:
            chosen, components, _ = marked_in(quantity, name, occurrences)
            marked = occurrences[chosen]
            if raster and components is not None:
                positions = time_axis.positions(marked.t)
                draw_raster(ax, quantity, positions, components[len(components) - len(positions) :], style)
            elif on_curves and components is not None:
                draw_marks(ax, quantity, marked, components, time_axis, style)
            else:
                few = named and len(occurrences) <= ACROSS
                notes += draw_ticks(ax, occurrences[np.unique(chosen)], time_axis, style, rows[ax], across=few)
        if not on_curves:
            style |= {"marker": "|", "mfc": color, "ms": 2 * SIZE}
        if named or number + 1 == len(events):
            handles.append(Line2D([], [], **style | {"label": caption}))
    return handles, notes


def stands_on_curves(quantity: Quantity, name: str, events: Events, time_axis: TimeAxis) -> bool:
    """Whether the marks of an event in the panel of a quantity are few and have known heights on its curves."""
    chosen, _, few = marked_in(quantity, name, events)
    return few and (is_near(events.t[chosen], time_axis) or is_between(events.t[chosen], quantity, time_axis))


def marked_in(quantity: Quantity, name: str, events: Events) -> tuple[Array, Array | None, bool]:
    """(numbers of the occurrences of an event in the panel of a quantity, their components, whether they stand on the curves).

    Without components, or where there are many, they are ticks.
    """
    every = np.arange(len(events))
    chosen, components = quantity.marks.get(name, (every, every * 0 if quantity.count == 1 and events.indices is None else None))
    few = components is not None and has_curves(quantity) and mark_count(quantity, events.t[chosen], components) <= MAX_MARKS
    # of a larger bundle not every line is drawn
    return chosen, components, few and (quantity.kind != "bundle" or quantity.count <= LINES_OF_BUNDLE)


def mark_count(quantity: Quantity, t: Array, components: Array) -> int:
    """How many marks events at times t (n,) have on the curves of components (n,): both sides of a jump have one."""
    return len(t) + sum(
        int(np.isin(t[components == i], jumps).sum()) for i, jumps in enumerate(quantity.jumps if quantity.kind != "map" else ())
    )


def draw_ticks(
    axes: Axes, events: Events, time_axis: TimeAxis, style: Mapping[str, Any], rows: list[set[int]], *, across: bool
) -> list[str]:  # fmt: skip
    """Draws a tick at the foot for each event; where many would touch, one for each of BINS parts, the higher the more.

    across: instead a line as high as the panel, or lower by a tick, and before it, where it would hide another.

    rows: parts where other events have ticks of the first height, the second and so on; these have the first at which they touch none, so
    that all are seen. Returns notes.
    """
    scaled = np.log10 if time_axis.log else np.asarray
    low, high = scaled(time_axis.x[[0, -1]])
    positions = time_axis.positions(events.t)
    part = ((scaled(positions) - low) / ((high - low) or 1.0) * BINS).astype(int).clip(0, BINS - 1)
    parts, counts = np.unique(part, return_counts=True)
    near = set((parts[:, None] + (-1, 0, 1)).ravel().tolist())
    row = next((k for k, others in enumerate(rows) if not near & others), len(rows))
    rows += [set()] * (row == len(rows))
    rows[row] = rows[row] | set(parts.tolist())
    shades, width = style["color"], 0.5
    if len(positions) <= MAX_MARKS:  # they may touch, and stand where they are
        faint = np.zeros(len(events), bool) if events.below is None else events.below
        shades = [to_rgba(style["color"], FAINT if one else 0.6 if across else 1.0) for one in faint[len(faint) - len(positions) :]]
        counts, width = np.ones(len(positions), int), 1.0
    elif counts.max() > 1:
        middle = low + (parts + 0.5) / BINS * (high - low)
        positions = 10**middle if time_axis.log else middle
    most = int(counts.max(initial=1))
    heights = 0.8 * ROW_OF_TICKS * (0.4 + 0.6 * counts / most)  # one alone is seen too
    heights += row * ROW_OF_TICKS  # all begin at the foot, the higher behind: a tick above it would read as a value
    if across:
        heights, width = np.full(len(positions), max(1 - row * ROW_OF_TICKS, ROW_OF_TICKS)), 0.5
    order = 1.5 + row / 100 if across else 2 - row / 100  # lines are behind curves
    look: Any = {"color": shades, "lw": width, "label": style["label"], "zorder": order}
    axes.vlines(positions, 0, heights, transform=axes.get_xaxis_transform(), **look)
    return ["a tick at the foot is higher where it stands for more events"] * (most > 1)


def draw_raster(axes: Axes, quantity: Quantity, positions: Array, components: Array, style: Mapping[str, Any]) -> None:
    """Draws a tick at each position (n,) in the row of its component (n,), as high as the rows of a panel in a stack allow."""
    size = min(max(HIGH / quantity.count, 1.0), 2 * SIZE)
    light = min(1.0, BINS / max(np.bincount(components, minlength=1).max(), 1))  # ticks that touch are no block
    width = max(0.7 * light, 0.2)
    axes.plot(
        positions,
        components,
        color=style["color"],
        label=style["label"],
        marker="|",
        ms=size,
        mew=width,
        alpha=max(light, 0.2),
        ls="",
        rasterized=len(positions) > LARGEST,
    )


def has_curves(quantity: Quantity) -> bool:
    """Whether its panel has the value of a component upwards, or in a map its row."""
    return quantity.kind in ("lines", "map") or (quantity.kind == "bundle" and len(quantity.shape) < 2)  # not singular values


def draw_levels(panels: Sequence[tuple[Axes, Quantity]], levels: Mapping[str, Sequence[float]]) -> None:
    """Draws thresholds of events, and the values that they set, as thin lines. levels {state or observable: values}."""
    for ax, quantity in panels:
        for value in levels.get(quantity.name, ()) if has_curves(quantity) and quantity.kind != "map" else ():
            ax.axhline(value, color=GREY, lw=0.5, ls=(0, (4, 2)), zorder=0)


def mark_heights(quantity: Quantity, i: int, at: float, time_axis: TimeAxis) -> list[float]:
    """Where an event of component i at a time stands: on its row of a map or its line, at a jump on both sides of it."""
    if quantity.kind == "map":
        return [float(i)]
    t, line, _ = quantity.curve(i, time_axis.t, time_axis.rows)
    there = np.flatnonzero(np.abs(t - at) <= SIDE * np.ptp(t))
    jumps = bool(quantity.jumps) and at in quantity.jumps[i]
    if len(there) or jumps:
        return np.ma.compressed(line[there[[0, -1] if jumps else [-1]]]).tolist() if len(there) else []
    scaled = np.log if time_axis.log else np.asarray
    return [float(np.interp(scaled(time_axis.positions([at])[0]), scaled(time_axis.positions(t)), np.ma.filled(line, np.nan)))]


def draw_marks(
    axes: Axes, quantity: Quantity, events: Events, components: Array, time_axis: TimeAxis, style: Mapping[str, Any]
) -> None:  # fmt: skip
    """Draws a mark for each event on the line of its component (n,), or on its row of a map; at a jump, on both sides of it."""
    for event, i in zip(events, components.tolist(), strict=True):
        x = time_axis.positions([event["t"]])
        if not len(x):
            continue
        heights = mark_heights(quantity, i, event["t"], time_axis)
        low = min(axes.get_ylim()) if axes.get_yscale() == "log" else -np.inf  # where an axis ends above noise, a mark has not left it
        look = {**style, "label": f"{style['label']}{ON_CURVE}{quantity.part_name(i)}"}
        for y in heights:
            axes.plot(x, [max(y, low)], zorder=3, clip_on=False, **look, alpha=FAINT if BELOW in event else None)
