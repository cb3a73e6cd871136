"""The picture of an ensemble: median and middle 80 % of its members against time, or how they are spread at the end."""

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.errors import StoreError
from odesim.plot.clock import Clock, clock_of
from odesim.plot.labels import EndLabels, end_labels, settle
from odesim.plot.panels import Quantity, last_finite, set_value_scale
from odesim.plot.solution import LINE, MARGIN, TITLE, label_time
from odesim.plot.style import broken, few_ticks, ordered_colors, plain, styled
from odesim.plot.trajectory import panels
from odesim.wording import many, ordinal

if TYPE_CHECKING:
    import xarray

PANELS, COMPONENTS = 6, 5  # of the states and observables, and of each of them
SAMPLE, BYTES = 20_000, 1 << 27  # members whose quantiles are taken, and what they may take in memory
LEVELS = (0.1, 0.5, 0.9)
BINS = 60


def figure_of_ensemble(run: "xarray.Dataset") -> Figure:
    """The picture of an ensemble (member, time, ...): for a few components of each state and observable median and middle 80 %
    of the members.

    Where one time is saved: histograms. Members that failed are left out where they have no value.
    """
    names = [*run.attrs["states"], *run.attrs["observables"]][:PANELS]
    status = run["status"].values
    if not (status >= 0).any():
        raise StoreError("no member is done yet: there is nothing to draw")
    size = sum(int(np.prod(run[name].shape[1:])) for name in names) * 8
    every = max(1, -(-run.sizes["member"] // max(1, min(SAMPLE, BYTES // max(size, 1)))))
    part = run[names].isel(member=slice(None, None, every))
    shown = {name: Quantity(name, part[name].values.swapaxes(0, 1), tuple(map(str, part[name].dims[2:]))) for name in names}
    clock = clock_of(run["time"].values, run.attrs.get("time_unit", "")) if run.sizes["time"] > 1 else None
    with styled():
        title = title_of(run, status, every)
        figure, axes = panels([False] * len(names), MARGIN + LINE * title.count("\n"))
        labels = [draw_members(ax, q, clock) if clock else draw_spread(ax, q) for ax, q in zip(axes, shown.values(), strict=True)]
        if clock:
            label_time(axes, clock)
        figure.suptitle(title, linespacing=1.3)
        figure.align_ylabels(axes)
        settle(figure, [label for label in labels if label])
    return figure


def chosen(quantity: Quantity) -> list[tuple[str, Any]]:
    """(index, values (T, N)) of a few components, evenly spread. quantity: values (T, N, *shape)."""
    shape = quantity.values.shape[2:]
    flat = quantity.values.reshape(*quantity.values.shape[:2], -1)
    picked = np.unique(np.linspace(0, flat.shape[2] - 1, min(flat.shape[2], COMPONENTS)).round().astype(int))
    return [(",".join(map(str, np.unravel_index(i, shape))) if shape else "", flat[:, :, i]) for i in picked]


def draw_members(axes: Axes, quantity: Quantity, clock: Clock) -> EndLabels | None:
    """Median and middle 80 % of the members at each time, one colour a component."""
    axes.set_xscale("log" if clock.log else "linear")
    parts = chosen(quantity)
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
    axes.set_ylabel(broken(quantity.title))
    axes.set_xlim(clock.x[0], clock.x[-1])
    few_ticks(axes)
    return end_labels(axes, [name for name, _ in parts], last_finite(values)) if quantity.dims else None


def draw_spread(axes: Axes, quantity: Quantity) -> EndLabels | None:
    """How many members lie where at the one time that is saved, one outline a component."""
    parts = chosen(quantity)
    for color, (name, values) in zip(ordered_colors(len(parts)), parts, strict=True):
        finite = values[0][np.isfinite(values[0])]
        if len(finite):
            axes.hist(finite, bins=BINS, histtype="step", color=color, label=name)
    axes.set_xlabel(broken(quantity.title))
    axes.set_ylabel("members")
    few_ticks(axes)
    if quantity.dims and axes.has_data():
        axes.legend(frameon=False)
    return None


def title_of(run: "xarray.Dataset", status: Any, every: int) -> str:
    """Model and members; under it what is drawn of them, how many failed and how many are not done."""
    names = run.attrs["status_names"]
    bad = [(name, int((status == k).sum())) for k, name in enumerate(names) if name not in ("ok", "event")]
    failed = ", ".join(f"{n} {name}" for name, n in bad if n)
    lines = [f"{run.attrs['model']}, {many(len(status), 'member')}"]
    lines += ["median and middle 80 % of the members"] if run.sizes["time"] > 1 else [f"at t = {run['time'].values[0]:.4g}"]
    lines += [f"failed: {failed}"] * bool(failed) + [f"not done: {int((status < 0).sum())}"] * bool((status < 0).any())
    lines += [f"every {ordinal(every)} member is drawn"] * (every > 1)
    hidden = [*run.attrs["states"], *run.attrs["observables"]][PANELS:]
    lines += [f"not shown: {', '.join(hidden)}"] * bool(hidden)
    return plain("\n".join(fill(line, TITLE) for line in lines))
