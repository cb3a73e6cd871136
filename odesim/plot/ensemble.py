"""The picture of an ensemble: median and middle 80 % of members against time, or histograms at a single time."""

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.errors import StoreError, counted
from odesim.plot.labels import EndLabels, end_labels, place_labels
from odesim.plot.panels import Quantity, last_finite, random_indices, set_value_scale, thousands
from odesim.plot.solution import LINE, MARGIN, TITLE, fit_time, label_time
from odesim.plot.style import SMALL, break_lines, few_ticks, literal, ordered_colors, project_style
from odesim.plot.times import TimeAxis, make_time_axis
from odesim.plot.trajectory import panels

if TYPE_CHECKING:
    import xarray

PANELS, COMPONENTS = 6, 5  # of the states and observables, and of each of them
SAMPLE, BYTES = 20_000, 1 << 27  # largest number of members drawn, a random subset of more, and their largest size in memory
LEVELS = (0.1, 0.5, 0.9)
BINS = 60
REACH = 2.0  # in widths of the middle 99 %: members farther off are counted, not drawn


def figure_of_ensemble(run: "xarray.Dataset") -> Figure:
    """A Figure of an ensemble Dataset (member, time, ...): median and middle 80 % of members, for some components of each array.

    With a single saved time: histograms. Members that ended early stay at their value at the end in the panel of a quantity of which it
    is stored, and are left out of another one from their end on. The title has the number of members that ended early, a panel that of
    those with values at all times. Raises StoreError if no member is done.
    """
    names = [*run.attrs["states"], *run.attrs["observables"]][:PANELS]
    status = run["status"].values
    if not (status >= 0).any():
        raise StoreError("no member is done yet: there is nothing to draw")
    size = sum(int(np.prod(run[name].shape[1:])) for name in names) * 8
    members = np.flatnonzero(status >= 0)
    members = members[random_indices(len(members), max(1, min(SAMPLE, BYTES // max(size, 1))))]
    part = run.isel(member=members)
    shown = {name: Quantity(name, hold_end_values(part, name).swapaxes(0, 1), tuple(map(str, part[name].dims[2:]))) for name in names}
    time_axis = make_time_axis(run["time"].values, run.attrs.get("time_unit", "")) if run.sizes["time"] > 1 else None
    with project_style():
        title = title_of(run, status, len(members))
        figure, axes = panels([False] * len(names), MARGIN + LINE * title.count("\n"))
        labels = [draw_members(ax, q, time_axis) if time_axis else draw_spread(ax, q) for ax, q in zip(axes, shown.values(), strict=True)]
        lowest = label_time(axes, time_axis) if time_axis else []
        figure.suptitle(title, linespacing=1.3)
        figure.align_ylabels(axes)
        if time_axis:
            fit_time(figure, lowest, axes, time_axis)
        place_labels(figure, [label for label in labels if label])
    return figure


def hold_end_values(run: "xarray.Dataset", name: str) -> Any:
    """Values (N, T, *shape) of the members of a Dataset; after an early end the value at the end, NaN where it is not stored."""
    values = run[name].values
    after = run["time"].values > run["t_end"].values[:, None]  # (N, T)
    after[run["status"].values == list(run.attrs["status_names"]).index("ok")] = False
    if not after.any():
        return values
    values = values.copy()
    stored = dict(zip(run.attrs["states"], run.attrs.get("kept", {}).get("ends", ()), strict=False))
    ends = run[stored[name]].values if name in stored else np.full((len(values), *values.shape[2:]), np.nan)
    member, time = np.nonzero(after)
    values[member, time] = ends[member]
    return values


def pick_components(quantity: Quantity) -> list[tuple[str, Any]]:
    """(index as text, values (T, N)) of at most COMPONENTS components, spread evenly. quantity: with values (T, N, *shape)."""
    shape = quantity.values.shape[2:]
    flat = quantity.values.reshape(*quantity.values.shape[:2], -1)
    chosen = np.unique(np.linspace(0, flat.shape[2] - 1, min(flat.shape[2], COMPONENTS)).round().astype(int))
    return [(",".join(map(str, np.unravel_index(i, shape))) if shape else "", flat[:, :, i]) for i in chosen]


def draw_members(axes: Axes, quantity: Quantity, time_axis: TimeAxis) -> EndLabels | None:
    """Draws median and middle 80 % of members against time, a colour for each component; returns their labels, or None."""
    axes.set_xscale("log" if time_axis.log else "linear")
    parts = pick_components(quantity)
    medians = []
    for color, (_, values) in zip(ordered_colors(len(parts)), parts, strict=True):
        rows = np.ma.masked_invalid(values[time_axis.rows])
        marks = np.full((len(LEVELS), len(rows)), np.nan)
        finite = rows.count(axis=1) > 0
        marks[:, finite] = np.nanquantile(rows[finite].filled(np.nan), LEVELS, axis=1)
        axes.fill_between(time_axis.x, marks[0], marks[2], color=color, alpha=0.2, lw=0)
        axes.plot(time_axis.x, marks[1], color=color)
        medians.append(marks[1])
    values = np.ma.masked_invalid(np.array(medians).T)
    set_value_scale(axes, values)
    axes.set_ylabel(break_lines(quantity.title))
    axes.set_xlim(time_axis.x[0], time_axis.x[-1])
    few_ticks(axes)
    set_panel_note(axes, quantity, parts)
    return end_labels(axes, [name for name, _ in parts], last_finite(values)) if quantity.dims else None


def set_panel_note(axes: Axes, quantity: Quantity, parts: list[tuple[str, Any]], more: str = "") -> None:
    """Writes above a panel how many components it shows and how many members have values at all times, unless all do."""
    complete = np.isfinite(np.stack([values for _, values in parts])).all(axis=(0, 1))
    count = int(np.prod(quantity.values.shape[2:], dtype=int))
    notes = [f"{len(parts)} of {thousands(count)}"] * (len(parts) < count)
    notes += [f"{thousands(int(complete.sum()))} of {counted(len(complete), 'member')}"] * (not complete.all())
    axes.set_title(", ".join([*notes, *[more] * bool(more)]), loc="right", fontsize=SMALL)


def draw_spread(axes: Axes, quantity: Quantity) -> EndLabels | None:
    """Draws histograms of members at the single saved time, an outline for each component."""
    parts = pick_components(quantity)
    beyond = 0
    for color, (name, values) in zip(ordered_colors(len(parts)), parts, strict=True):
        finite = values[0][np.isfinite(values[0])]
        if len(finite):
            low, high = central_range(finite)
            inside = finite[(finite >= low) & (finite <= high)]
            beyond += len(finite) - len(inside)
            axes.hist(inside, bins=BINS, histtype="step", color=color, label=name)
    set_panel_note(axes, quantity, parts, f"{beyond} beyond" * bool(beyond))
    axes.set_xlabel(break_lines(quantity.title))
    axes.set_ylabel("members")
    few_ticks(axes)
    if quantity.dims and axes.has_data():
        axes.legend(frameon=False)
    return None


def central_range(values: Any) -> tuple[float, float]:
    """(low, high) of a histogram of values (n,): their range, without outliers far beyond the middle 99 %."""
    low, high = np.quantile(values, (0.005, 0.995))
    reach = REACH * (high - low)
    return (float(max(values.min(), low - reach)), float(min(values.max(), high + reach))) if reach > 0 else (values.min(), values.max())


def title_of(run: "xarray.Dataset", status: Any, drawn: int) -> str:
    """The title: model and number of members, what is drawn, how many ended early, how many are not done."""
    names = run.attrs["status_names"]
    early = [(name, int((status == k).sum())) for k, name in enumerate(names) if name != "ok"]
    ended = ", ".join(f"{thousands(n)} {name}" for name, n in early if n)
    done = int((status >= 0).sum())
    lines = [f"{run.attrs['model']}, {counted(len(status), 'member')}"]
    lines += ["median and middle 80 % of the members"] if run.sizes["time"] > 1 else [f"at t = {run['time'].values[0]:.4g}"]
    lines += [f"ended early: {ended}"] * bool(ended)
    lines += [f"not done: {thousands(len(status) - done)}"] * (done < len(status))
    lines += [f"drawn: {thousands(drawn)} at random"] * (drawn < done)
    hidden = [*run.attrs["states"], *run.attrs["observables"]][PANELS:]
    lines += [f"not shown: {', '.join(hidden)}"] * bool(hidden)
    return literal("\n".join(fill(line, TITLE) for line in lines))
