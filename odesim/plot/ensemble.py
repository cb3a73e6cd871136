"""The picture of an ensemble: median and middle 80 % of its members against time, or how they are spread at the end."""

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
SAMPLE, BYTES = 20_000, 1 << 27  # members whose quantiles are taken, a random subset of more, and what they may take in memory
LEVELS = (0.1, 0.5, 0.9)
BINS = 60
REACH = 2.0  # spans of the middle 99 %: what is farther off is counted, not drawn


def figure_of_ensemble(run: "xarray.Dataset") -> Figure:
    """The picture of an ensemble (member, time, ...): for a few components of each state and observable median and middle 80 %
    of the members.

    Where one time is saved: histograms. A member that ended early stays at its last value, and the title says how many do; one that
    has none is left out of a panel, which says so.
    """
    names = [*run.attrs["states"], *run.attrs["observables"]][:PANELS]
    status = run["status"].values
    if not (status >= 0).any():
        raise StoreError("no member is done yet: there is nothing to draw")
    size = sum(int(np.prod(run[name].shape[1:])) for name in names) * 8
    members = np.flatnonzero(status >= 0)
    members = members[random_indices(len(members), max(1, min(SAMPLE, BYTES // max(size, 1))))]
    part = run.isel(member=members)
    shown = {name: Quantity(name, hold_last_values(part, name).swapaxes(0, 1), tuple(map(str, part[name].dims[2:]))) for name in names}
    clock = make_time_axis(run["time"].values, run.attrs.get("time_unit", "")) if run.sizes["time"] > 1 else None
    with project_style():
        title = title_of(run, status, len(members))
        figure, axes = panels([False] * len(names), MARGIN + LINE * title.count("\n"))
        labels = [draw_members(ax, q, clock) if clock else draw_spread(ax, q) for ax, q in zip(axes, shown.values(), strict=True)]
        lowest = label_time(axes, clock) if clock else []
        figure.suptitle(title, linespacing=1.3)
        figure.align_ylabels(axes)
        if clock:
            fit_time(figure, lowest, axes, clock)
        place_labels(figure, [label for label in labels if label])
    return figure


def hold_last_values(run: "xarray.Dataset", name: str) -> Any:
    """Values (N, T, *shape) of the members, after the end of one that ended early its last value: at its end, or saved before."""
    values = run[name].values
    after = run["time"].values > run["t_end"].values[:, None]  # (N, T)
    after[run["status"].values == list(run.attrs["status_names"]).index("ok")] = False
    if not after.any():
        return values
    values = values.copy()
    last = np.where(after.any(axis=1), np.argmax(after, axis=1), 0) - 1  # the last saved time before the end; -1: none
    rows = np.arange(len(values))
    ends = np.where((last >= 0).reshape(-1, *[1] * (values.ndim - 2)), values[rows, np.maximum(last, 0)], np.nan)
    if f"{name}_end" in run:
        own = run[f"{name}_end"].values
        ends = np.where(np.isfinite(own), own, ends)
    member, time = np.nonzero(after)
    values[member, time] = ends[member]
    return values


def pick_components(quantity: Quantity) -> list[tuple[str, Any]]:
    """(index, values (T, N)) of a few components, evenly spread. quantity: values (T, N, *shape)."""
    shape = quantity.values.shape[2:]
    flat = quantity.values.reshape(*quantity.values.shape[:2], -1)
    picked = np.unique(np.linspace(0, flat.shape[2] - 1, min(flat.shape[2], COMPONENTS)).round().astype(int))
    return [(",".join(map(str, np.unravel_index(i, shape))) if shape else "", flat[:, :, i]) for i in picked]


def draw_members(axes: Axes, quantity: Quantity, clock: TimeAxis) -> EndLabels | None:
    """Median and middle 80 % of the members at each time, one colour a component."""
    axes.set_xscale("log" if clock.log else "linear")
    parts = pick_components(quantity)
    medians = []
    for color, (_, values) in zip(ordered_colors(len(parts)), parts, strict=True):
        rows = np.ma.masked_invalid(values[clock.rows])
        marks = np.full((len(LEVELS), len(rows)), np.nan)
        kept = rows.count(axis=1) > 0
        marks[:, kept] = np.nanquantile(rows[kept].filled(np.nan), LEVELS, axis=1)
        axes.fill_between(clock.x, marks[0], marks[2], color=color, alpha=0.2, lw=0)
        axes.plot(clock.x, marks[1], color=color)
        medians.append(marks[1])
    values = np.ma.masked_invalid(np.array(medians).T)
    set_value_scale(axes, values)
    axes.set_ylabel(break_lines(quantity.title))
    axes.set_xlim(clock.x[0], clock.x[-1])
    few_ticks(axes)
    set_panel_note(axes, quantity, parts)
    return end_labels(axes, [name for name, _ in parts], last_finite(values)) if quantity.dims else None


def set_panel_note(axes: Axes, quantity: Quantity, parts: list[tuple[str, Any]], more: str = "") -> None:
    """Says above a panel how many components it shows, and how many members have a value at all its times, where not all."""
    whole = np.isfinite(np.stack([values for _, values in parts])).all(axis=(0, 1))
    count = int(np.prod(quantity.values.shape[2:], dtype=int))
    said = [f"{len(parts)} of {thousands(count)}"] * (len(parts) < count)
    said += [f"{thousands(int(whole.sum()))} of {counted(len(whole), 'member')}"] * (not whole.all())
    axes.set_title(", ".join([*said, *[more] * bool(more)]), loc="right", fontsize=SMALL)


def draw_spread(axes: Axes, quantity: Quantity) -> EndLabels | None:
    """How many members lie where at the one time that is saved, one outline a component."""
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
    """From where to where values (n,) are counted: all of them, but for few (1 %) that lie far beyond the others."""
    low, high = np.quantile(values, (0.005, 0.995))
    reach = REACH * (high - low)
    return (float(max(values.min(), low - reach)), float(min(values.max(), high + reach))) if reach > 0 else (values.min(), values.max())


def title_of(run: "xarray.Dataset", status: Any, drawn: int) -> str:
    """Model and members; under it what is drawn of them, how many ended early and how many are not done."""
    names = run.attrs["status_names"]
    early = [(name, int((status == k).sum())) for k, name in enumerate(names) if name != "ok"]
    ended = ", ".join(f"{thousands(n)} {name}" for name, n in early if n)
    done = int((status >= 0).sum())
    lines = [f"{run.attrs['model']}, {counted(len(status), 'member')}"]
    lines += ["median and middle 80 % of the members"] if run.sizes["time"] > 1 else [f"at t = {run['time'].values[0]:.4g}"]
    lines += [f"held at their last value: {ended}"] * bool(ended)
    lines += [f"not done: {thousands(len(status) - done)}"] * (done < len(status))
    lines += [f"drawn: {thousands(drawn)} at random"] * (drawn < done)
    hidden = [*run.attrs["states"], *run.attrs["observables"]][PANELS:]
    lines += [f"not shown: {', '.join(hidden)}"] * bool(hidden)
    return literal("\n".join(fill(line, TITLE) for line in lines))
