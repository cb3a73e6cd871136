"""The picture of an ensemble: a map over two numbers that differ between members, a curve over one, else bands or histograms."""

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, StoreError, counted
from odesim.plot.choice import STORE, TIME, Choice
from odesim.plot.ensemble_panels import POINTS, doubt, draw_curve, draw_map, draw_members, draw_spread, is_grid, lost_note, member_floor
from odesim.plot.labels import EndLabels, not_shown, symbol
from odesim.plot.layout import description, finish, panels_and_tables, share_axes
from odesim.plot.members import (
    BYTES,
    COMPONENTS,
    MEMBER,
    Drawn,
    Varied,
    chosen_numbers,
    components,
    find_varied,
    member_values,
    names_in,
    varied_numbers,
    without_copies,
)
from odesim.plot.panels import thousands
from odesim.plot.quantities import LINES
from odesim.plot.scales import ALIKE, TimeAxis, make_time_axis
from odesim.plot.style import SMALL, literal, project_style

if TYPE_CHECKING:
    import xarray

PANELS, MAPS = 6, 4  # of states and observables; of their components in maps
FLAT = 0.01  # of the values: members that differ by less are seen as one


def figure_of_ensemble(run: "xarray.Dataset", choice: Choice | None = None, ax: Axes | None = None) -> Figure:
    """A Figure of an ensemble Dataset (member, time, ...).

    Where members differ in two numbers: a map of values at the end over them, a cell for each pair of a grid. In one number: values at
    the end against it. Else median and middle 80 % of all members against time; at a single time a histogram, of an array a row for each
    component. Members that ended early stay at their value at the end in the panel of a quantity of which it is stored, and are left
    out of another one from their end on.

    Parameters
    ----------
    run : xarray.Dataset
        As of `ensemble`, or of `open_run`.
    choice : Choice
        Quantities, axes, time, component, scales; default: as the members differ.
    ax : Axes
        To draw a picture of one panel on, without title and notes.

    Returns
    -------
    Figure
        Of matplotlib.

    Raises
    ------
    ParamError
        For a choice that the run does not have.
    StoreError
        If no member is done.

    Examples
    --------
    >>> runs = odesim.ensemble("hopfield.two_patterns", grid={"beta": [0.5, 1, 2, 4]})
    >>> figure = odesim.plot.figure_of_ensemble(runs)
    >>> figure.axes[0].get_xlabel()
    '$\\\\beta$'
    """
    choice = choice or Choice()
    choice.check()
    names = chosen_names(run, choice)
    row = choice.row(run["time"].values)
    over = chosen_axes(run, choice)
    if len(over) != 2:
        choice.refuse_colors()
    first, flat = differing_first(run, choice.page(names, len(names))[0], row, choice)
    most = len(first) if choice.all else PANELS
    shown, hidden = first[:most], first[most:]
    shown = shown if choice.var else sorted(shown, key=lambda name: (name in flat, name in names_in(run, "states")))  # as of a single run
    bands = not over and run.sizes["time"] > 1 and choice.at is None
    # a row for each component has room for more of them than lines of different colours, and memory for those of many members
    most = COMPONENTS if over or bands else int(np.clip(BYTES // (8 * run.sizes[MEMBER]), COMPONENTS, LINES))
    drawn = [components(run, name, choice, most) for name in shown]
    time_axis = make_time_axis(run["time"].values, run.attrs.get("time_unit", ""), choice.scale("x")) if bands else None
    with project_style():
        if len(over) == 2:
            axes, labels, notes = draw_maps(run, drawn, over, row, choice, ax)
        elif over:
            axes, labels, notes = draw_curves(run, drawn, over[0], row, choice, ax)
        elif time_axis:
            axes, labels, notes = draw_bands(run, drawn, time_axis, choice, ax)
        else:
            axes, labels, notes = draw_histograms(run, drawn, row, choice, ax)
        title = title_of(run, None if bands else row)
        notes += [f"members differ by less than {FLAT:.0%} of the values".replace("%", " %")] * (not bands and {*shown} <= flat)
        header = (title, [*dict.fromkeys(notes), *not_shown(hidden)], ())
        about = description(run.attrs) if ax is None else ""
        return finish(axes, labels, header, ax=ax, time_axis=time_axis, about=about)


def differing_first(run: "xarray.Dataset", names: list[str], row: int, choice: Choice) -> tuple[list[str], set[str]]:
    """(names, those in which members hardly differ at that time): these come last, unless names were chosen."""
    flat = set()
    for name in names if run.sizes[MEMBER] > 1 else ():
        values = member_values(run, components(run, name, choice), [row])[:, 0]
        values = values[np.isfinite(values).all(axis=1)]
        if not len(values):
            continue
        # what is positive may be seen by decades, each component on its own scale
        sizes = np.abs(values).max(axis=0 if values.min() > 0 else None)
        ranges = np.ptp(values, axis=0)
        if ranges.max() > 0 and np.all(ranges < FLAT * sizes):
            flat.add(name)
    return names if choice.var else sorted(names, key=lambda name: name in flat), flat


def chosen_names(run: "xarray.Dataset", choice: Choice) -> list[str]:
    """The states and observables to draw. Raises ParamError for those that the run does not have, and StoreError if no member is done."""
    if not (run["status"].values >= 0).any():
        raise StoreError("no member is done yet: there is nothing to draw")
    shapes = {name: run[name].shape[2:] for key in ("states", "observables") for name in names_in(run, key)}
    return choice.names(shapes, str(run.attrs["model"]), "stored state or observable", STORE)


def chosen_axes(run: "xarray.Dataset", choice: Choice) -> list[Varied]:
    """The numbers along the axes: two of a map, one of a curve, none against time. Raises ParamError."""
    if choice.x == TIME:
        if run.sizes["time"] < 2:
            raise ParamError("x = 'time' needs more than one saved time, and there is one: save more (--save N)")
        return []
    if choice.x is not None:
        return [find_varied(run, text, option) for option, text in (("x", choice.x), ("y", choice.y)) if text is not None]
    numbers = varied_numbers(run)
    return [] if numbers is None or len(numbers) > 2 or any(len(v.points) < 2 for v in numbers) else numbers


Panels = tuple[list[Axes], list[EndLabels | None], list[str]]
"""Axes, labels of lines that are not placed yet, and notes."""


def draw_maps(run: "xarray.Dataset", drawn: list[Drawn], over: list[Varied], row: int, choice: Choice, ax: Axes | None) -> Panels:
    """Draws a map for each component, at most MAPS."""
    x, y = over
    each = max(MAPS // len(drawn), 1)
    quantities, notes = at_one_time(run, [components(run, d.name, choice, each) for d in drawn], row, choice)
    parts: list[tuple[str, Array, Drawn]] = []
    some: list[tuple[int, Drawn]] = []  # quantities of which not all components are shown
    for d, distinct, values, equal in quantities:
        notes += equal
        shown = [(distinct.symbol(k), values[:, k], d) for k in range(len(distinct.indices))][: MAPS - len(parts)]
        parts += shown
        some += [(len(shown), d)] * (len(shown) < d.count and not equal and choice.index is None)
    axes, _ = panels_and_tables([True] * len(parts), ax=ax)
    for panel, (label, column, d) in zip(axes, parts, strict=True):
        notes += draw_map(panel, x, y, column, label, choice, member_floor(run, d))
        notes += doubt(panel, run, d, column)
    share_axes(axes)
    lost = ~np.isfinite(np.stack([column for _, column, _ in parts])).all(axis=0)
    points = not is_grid(x, y) and len(lost) <= POINTS
    sentence = lost_note(run, lost)
    return axes, [], [*notes, *component_notes(some), *[("× " if points else "hatched: ") + sentence] * bool(sentence)]


def at_one_time(
    run: "xarray.Dataset", drawn: list[Drawn], row: int, choice: Choice
) -> tuple[list[tuple[Drawn, Drawn, Array, list[str]]], list[str]]:
    """([(quantity, its distinct components, their values (N, C), notes)], notes on those left out) of one time.

    Of several quantities that nobody has chosen, constants are left out, but for the first where all are.
    """
    every = [(d, *without_copies(d, member_values(run, d, [row])[:, 0])) for d in drawn]
    constant = [constant_note(distinct, values) if len(drawn) > 1 and not choice.var else "" for _, distinct, values, _ in every]
    varying = [one for one, note in zip(every, constant, strict=True) if not note]
    return varying or every[:1], [*filter(None, constant)]


def constant_note(drawn: Drawn, values: Array) -> str:
    """A note in the place of a panel where all finite values (N, C) of a quantity are one number within ALIKE; empty where they differ."""
    finite = values[np.isfinite(values)]
    one = len(finite) and np.ptp(finite) <= ALIKE * np.abs(finite).max()
    return f"constant: {symbol(drawn.name, drawn.dims)} = {finite[0] + 0.0:.4g}" if one else ""


def component_notes(some: list[tuple[int, Drawn]]) -> list[str]:
    """Of which quantities so many components are shown, a note for all with the same numbers."""
    names: dict[str, list[str]] = {}
    for count, drawn in some:
        names.setdefault(f"{count} of {counted(drawn.count, 'component')}", []).append(symbol(drawn.name))
    return [f"{numbers} of {', '.join(quantities)}" for numbers, quantities in names.items()]


def draw_curves(run: "xarray.Dataset", drawn: list[Drawn], x: Varied, row: int, choice: Choice, ax: Axes | None) -> Panels:
    """Draws values at one time against one number, a panel for each quantity."""
    numbers = varied_numbers(run)
    alone = numbers is not None and len(numbers) == 1
    labels: list[EndLabels | None] = []
    curves, constant = at_one_time(run, drawn, row, choice)
    notes = ["median and middle 80 % of the members"] * (len(x.points) < len(x.values) or not alone) + constant
    lost: Any = np.zeros(run.sizes[MEMBER], bool)
    axes, _ = panels_and_tables([False] * len(curves), ax=ax)
    for panel, (d, distinct, values, equal) in zip(axes, curves, strict=True):
        notes += equal
        lost |= ~np.isfinite(values).all(axis=1)
        floor = member_floor(run, d)
        label, more = draw_curve(panel, x, distinct, values, choice, alone=alone, floor=floor)
        notes += doubt(panel, run, d, values, whole=bool(choice.scale("y")))
        if len(d.indices) < d.count and choice.index is None:
            panel.set_title(f"{len(d.indices)} of {counted(d.count, 'component')}", loc="right", fontsize=SMALL)
        labels.append(label)
        notes += more
    share_axes(axes)
    sentence = lost_note(run, lost)
    return axes, labels, notes + [f"× {sentence}"] * bool(sentence)


def draw_bands(run: "xarray.Dataset", drawn: list[Drawn], time_axis: TimeAxis, choice: Choice, ax: Axes | None) -> Panels:
    """Draws median and middle 80 % of all members against time, or a line for each of few, a panel for each quantity."""
    axes, _ = panels_and_tables([False] * len(drawn), ax=ax)
    labels, notes = zip(*(draw_members(panel, run, d, time_axis, choice) for panel, d in zip(axes, drawn, strict=True)), strict=True)
    return axes, [*labels], [*time_axis.notes, *chain(*notes), *status_notes(run)]


def draw_histograms(run: "xarray.Dataset", drawn: list[Drawn], row: int, choice: Choice, ax: Axes | None) -> Panels:
    """Draws values at one time, a panel for each quantity: a histogram, or a row for each component."""
    axes, _ = panels_and_tables([False] * len(drawn), ax=ax)
    done, notes = run["status"].values >= 0, list[str]()
    for panel, d in zip(axes, drawn, strict=True):
        values = member_values(run, d, [row])[:, 0][done]
        notes += draw_spread(panel, values, d, choice)
        notes += doubt(panel, run, d, values, across=True)
    return axes, [], notes + status_notes(run)


def title_of(run: "xarray.Dataset", row: int | None = None) -> str:
    """The title: the model and the number of members, the numbers by which they were chosen, and the time of values at one time."""
    fixed = "".join(f", {name} = {value:.4g}" for name, value in chosen_numbers(run).items())
    when = f", $t$ = {run['time'].values[row]:.4g}" if row is not None else ""
    return literal(f"{run.attrs['model']}, {counted(run.sizes[MEMBER], 'member')}") + fixed + when


def status_notes(run: "xarray.Dataset") -> list[str]:
    """How many members ended early, and how many are not done."""
    status = run["status"].values
    early = [(name, int((status == k).sum())) for k, name in enumerate(run.attrs["status_names"]) if name != "ok"]
    ended = ", ".join(f"{thousands(n)} {name}" for name, n in early if n)
    undone = int((status < 0).sum())
    return [literal(f"ended early: {ended}")] * bool(ended) + [f"not done: {thousands(undone)}"] * bool(undone)
