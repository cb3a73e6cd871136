"""The picture of an ensemble: a map over two numbers that differ between members, a curve over one, else bands or histograms."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, StoreError, counted
from odesim.plot.choice import STORE, TIME, Choice
from odesim.plot.ensemble_panels import POINTS, draw_curve, draw_map, draw_members, draw_spread, is_grid, lost_note
from odesim.plot.labels import EndLabels, symbol
from odesim.plot.layout import Canvas, fit_time, label_time, share_axes
from odesim.plot.members import (
    MEMBER,
    Drawn,
    Varied,
    chosen_numbers,
    components,
    find_varied,
    is_state,
    member_values,
    names_in,
    varied_numbers,
    without_copies,
)
from odesim.plot.panels import thousands
from odesim.plot.scales import floor_of, make_time_axis
from odesim.plot.style import SMALL, literal, project_style

if TYPE_CHECKING:
    import xarray

PANELS, MAPS = 6, 4  # of states and observables; of their components in maps


def figure_of_ensemble(run: "xarray.Dataset", choice: Choice | None = None, ax: Axes | None = None) -> Figure:
    """A Figure of an ensemble Dataset (member, time, ...).

    Where members differ in two numbers: a map of values at the end over them, a cell for each pair of a grid. In one number: values at
    the end against it. Else median and middle 80 % of all members against time, or histograms at a single time. Members that ended
    early stay at their value at the end in the panel of a quantity of which it is stored, and are left out of another one from their
    end on. choice: quantities, axes, time, component, scales. ax: Axes to draw a picture of one panel on, without title and notes.
    Raises ParamError for a choice that the run does not have, and StoreError if no member is done.
    """
    choice = choice or Choice()
    choice.check()
    if not (run["status"].values >= 0).any():
        raise StoreError("no member is done yet: there is nothing to draw")
    shapes = {name: run[name].shape[2:] for key in ("states", "observables") for name in names_in(run, key)}
    names = choice.names(shapes, str(run.attrs["model"]), "stored state or observable", STORE)
    row = choice.row(run["time"].values)
    axes_over = chosen_axes(run, choice)
    drawn = [components(run, name, choice) for name in names[:PANELS]]
    hidden = [f"not shown: {', '.join(names[PANELS:])}"] * (len(names) > PANELS)
    with project_style():
        if len(axes_over) == 2:
            return map_figure(run, drawn, axes_over, row, choice, Canvas(hidden, ax))
        choice.refuse_colors()
        if axes_over:
            return curve_figure(run, drawn, axes_over[0], row, choice, Canvas(hidden, ax))
        if run.sizes["time"] > 1 and choice.at is None:
            return band_figure(run, drawn, choice, Canvas(hidden, ax))
        return histogram_figure(run, drawn, row, choice, Canvas(hidden, ax))


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


def map_figure(run: "xarray.Dataset", drawn: list[Drawn], over: list[Varied], row: int, choice: Choice, canvas: Canvas) -> Figure:
    """A map for each component, at most MAPS."""
    x, y = over
    each = max(MAPS // len(drawn), 1)
    notes: list[str] = []
    parts: list[tuple[Drawn, int, Array]] = []
    floors: dict[str, float] = {}
    all_equal: set[str] = set()
    for d in (components(run, d.name, choice, each) for d in drawn):
        distinct, values, equal = without_copies(d, member_values(run, d, [row])[:, 0])
        if (constant := constant_note(distinct, values)) and len(drawn) > 1 and not choice.var:
            notes.append(constant)
            continue
        notes += equal
        all_equal |= {d.name} if equal else set()
        floors[d.name] = floor_of(values, run.attrs, state=is_state(run, d))
        parts += [(distinct, k, values[:, k]) for k in range(len(distinct.indices))]
    parts = parts[:MAPS]
    drawn = [d for d in drawn if d.name in floors]
    figure, axes = canvas.panels([True] * len(parts))
    for ax, (d, k, column) in zip(axes, parts, strict=True):
        notes += draw_map(ax, x, y, column, d.symbol(k), choice, floors[d.name])
    share_axes(axes)
    lost = ~np.isfinite(np.stack([column for *_, column in parts])).all(axis=0)
    shown = {d.name: sum(part.name == d.name for part, *_ in parts) for d in drawn}
    if choice.index is None:
        notes += component_notes([(shown[d.name], d) for d in drawn if shown[d.name] < d.count and d.name not in all_equal])
    points = not is_grid(x, y) and len(lost) <= POINTS
    sentence = lost_note(run["status"].values, list(run.attrs["status_names"]), lost, len(lost))
    notes += [("× " if points else "hatched: ") + sentence] * bool(sentence)
    canvas.finish(title_of(run, row), list(dict.fromkeys(notes)))
    return figure


def constant_note(drawn: Drawn, values: Array) -> str:
    """A note in the place of a panel where all finite values (N, C) of a quantity are one number; empty where they differ."""
    finite = values[np.isfinite(values)]
    return f"constant: {symbol(drawn.name, drawn.dims)} = {finite[0] + 0.0:.4g}" if len(finite) and np.ptp(finite) == 0 else ""


def component_notes(some: list[tuple[int, Drawn]]) -> list[str]:
    """Of which quantities so many components are shown, a note for all with the same numbers."""
    names: dict[str, list[str]] = {}
    for count, drawn in some:
        names.setdefault(f"{count} of {counted(drawn.count, 'component')}", []).append(symbol(drawn.name))
    return [f"{numbers} of {', '.join(quantities)}" for numbers, quantities in names.items()]


def curve_figure(run: "xarray.Dataset", drawn: list[Drawn], x: Varied, row: int, choice: Choice, canvas: Canvas) -> Figure:
    """Values at one time against one number, a panel for each quantity."""
    numbers = varied_numbers(run)
    alone = numbers is not None and len(numbers) == 1
    labels: list[EndLabels | None] = []
    notes = ["median and middle 80 % of the members"] * (len(x.points) < len(x.values) or not alone)
    lost: Any = np.zeros(run.sizes[MEMBER], bool)
    curves = [(d, *without_copies(d, member_values(run, d, [row])[:, 0])) for d in drawn]
    constant = [constant_note(distinct, values) if len(drawn) > 1 and not choice.var else "" for _, distinct, values, _ in curves]
    notes += filter(None, constant)
    curves = [one for one, note in zip(curves, constant, strict=True) if not note] or curves[:1]
    figure, axes = canvas.panels([False] * len(curves))
    for ax, (d, distinct, values, equal) in zip(axes, curves, strict=True):
        notes += equal
        lost |= ~np.isfinite(values).all(axis=1)
        floor = floor_of(values, run.attrs, state=is_state(run, d))
        label, more = draw_curve(ax, x, distinct, values, choice, alone=alone, floor=floor)
        if len(d.indices) < d.count and choice.index is None:
            ax.set_title(f"{len(d.indices)} of {counted(d.count, 'component')}", loc="right", fontsize=SMALL)
        labels.append(label)
        notes += more
    share_axes(axes)
    sentence = lost_note(run["status"].values, list(run.attrs["status_names"]), lost, len(lost))
    notes += [f"× {sentence}"] * bool(sentence)
    canvas.finish(title_of(run, row), list(dict.fromkeys(notes)), labels)
    return figure


def band_figure(run: "xarray.Dataset", drawn: list[Drawn], choice: Choice, canvas: Canvas) -> Figure:
    """Median and middle 80 % of all members against time, a panel for each quantity."""
    time_axis = make_time_axis(run["time"].values, run.attrs.get("time_unit", ""), choice.scale("x"))
    figure, axes = canvas.panels([False] * len(drawn))
    panels = [draw_members(ax, run, d, time_axis, choice) for ax, d in zip(axes, drawn, strict=True)]
    notes = [time_axis.left_out] * (bool(time_axis.left_out) and bool(choice.scale("x"))) + [note for _, more in panels for note in more]
    lowest = label_time(axes, time_axis)
    if not canvas.ax:
        fit_time(figure, lowest, axes, time_axis)
    spread = ["median and middle 80 % of the members"] * (int((run["status"].values >= 0).sum()) > 1)
    canvas.finish(title_of(run), list(dict.fromkeys([*spread, *notes, *status_notes(run)])), [label for label, _ in panels])
    return figure


def histogram_figure(run: "xarray.Dataset", drawn: list[Drawn], row: int, choice: Choice, canvas: Canvas) -> Figure:
    """Histograms at one time, a panel for each quantity."""
    figure, axes = canvas.panels([False] * len(drawn))
    done = run["status"].values >= 0
    for ax, d in zip(axes, drawn, strict=True):
        draw_spread(ax, member_values(run, d, [row])[:, 0][done], d, choice)
    canvas.finish(title_of(run, row), status_notes(run))
    return figure


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
