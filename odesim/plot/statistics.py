"""The picture of statistics over members, of odesim.ensemble(reduce=...): a fan of quantiles, or the mean and its standard deviation."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, counted
from odesim.plot.choice import TIME, Choice
from odesim.plot.ensemble import PANELS
from odesim.plot.ensemble_panels import colors_of, overlaps, set_panel_note
from odesim.plot.labels import EndLabels, end_labels, not_shown
from odesim.plot.layout import description, finish, panels_and_tables
from odesim.plot.members import MEMBER, Drawn, components
from odesim.plot.panels import last_finite, thousands
from odesim.plot.scales import TimeAxis, make_log, make_time_axis, spans
from odesim.plot.style import DASHES, INK, few_log_ticks, few_ticks, literal, project_style

if TYPE_CHECKING:
    import xarray

COUNT, HISTOGRAM, ALPHAS = "_count", "histogram", (0.08, 0.15, 0.25)
IN_ROW, FOR_ROW = 3, 0.22  # of a legend: entries in a row, and the height of a row in that of the data
ONCE = {"_time_mean": "mean over time", "_time_min": "least over time", "_time_max": "largest over time"}


def figure_of_statistics(data: "xarray.Dataset", choice: Choice | None = None, ax: Axes | None = None) -> Figure:
    """A Figure of the statistics (time, ...) of an ensemble, a panel for each quantity, a colour for each component.

    With quantiles: median, middle 50 % and 90 %, and a dashed mean. Else the mean, and a standard deviation on either side. The lightest
    band goes from the least to the largest member. Histograms are drawn of what members have once; of a quantity over time at the chosen
    time, and where there are only histograms, or one time. ax: Axes to draw a picture of one panel on, without title and notes. Raises
    ParamError for a choice that they do not have.
    """
    choice = choice or Choice()
    choice.check()
    for name, value in (("x", choice.x), ("y", choice.y)):
        if value is not None:
            raise ParamError(f"{name} is for ensembles with their members, and these are statistics")
    choice.refuse_colors()
    kinds = str(data.attrs["statistics"]).split(",")
    at = choice.at is not None or data.sizes[TIME] < 2 or kinds == [HISTOGRAM]
    if at and HISTOGRAM not in kinds:
        raise ParamError("a picture at a single time is a histogram: give histogram to reduce, or save more times")
    whole = {str(name).removesuffix(COUNT): v for name, v in data.data_vars.items() if str(name).endswith(COUNT)}
    once = [name for name, v in whole.items() if TIME not in v.dims]
    if HISTOGRAM not in kinds:
        whole = {name: v for name, v in whole.items() if name not in once}
    whole = {name: v.expand_dims((MEMBER, TIME) if name in once else MEMBER) for name, v in whole.items()}
    names = choice.names({name: v.shape[2:] for name, v in whole.items()}, str(data.attrs["model"]), "kept state or observable")
    shown, hidden = choice.page(names, PANELS)
    # panels of histograms are the last, so that the time is named below the others
    drawn = [components(whole, name, choice) for name in sorted(shown, key=lambda name: name in once)]  # type: ignore[arg-type]
    time_axis = make_time_axis(data[TIME].values, data.attrs.get("time_unit", ""), choice.scale("x"))
    with project_style():
        axes, _ = panels_and_tables([False] * len(drawn), ax=ax)
        fans, labels, notes = [], [], []
        for panel, d in zip(axes, drawn, strict=True):
            if at or d.name in once:
                draw_histogram(panel, data, d, None if d.name in once else choice.row(data[TIME].values), choice)
                continue
            label, more = draw_fan(panel, data, d, time_axis, choice)
            fans.append(panel)
            labels.append(label)
            notes += more
        notes = [meaning(kinds)] * bool(fans) + notes
        notes += [literal(f"ended early: {early}") for early in ended_early(data)]
        notes += not_shown(hidden)
        when = f", t = {data[TIME].values[choice.row(data[TIME].values)]:.6g}" * (at and any(d.name not in once for d in drawn))
        title = literal(f"{data.attrs['model']}, {counted(int(data.attrs['members']), 'member')}{when}")
        header, beside = (title, [*dict.fromkeys(notes)], ()), [panel for panel in axes if panel not in fans]
        about = description(data.attrs) if ax is None else ""
        return finish(fans, labels, header, ax=ax, time_axis=time_axis if fans else None, beside=beside, about=about)


def meaning(kinds: Sequence[str]) -> str:
    """What lines and bands are."""
    ends = {"min", "max"} <= {*kinds}
    mean = ["mean (dashed)" if "quantiles" in kinds else "mean"] * ("mean" in kinds)
    if "quantiles" in kinds:
        spread = ["median, middle 50 %, 90 % and all" if ends else "median, middle 50 % and 90 %"]
    else:
        spread = ["standard deviation"] * ("var" in kinds) + ["least and largest"] * ends
        if not (mean or spread):  # one end is a line where there is no other
            spread = ["largest" if "max" in kinds else "least"]
    return ", ".join([*mean, *spread]) + " of the members"


def ended_early(data: "xarray.Dataset") -> list[str]:
    """How many members had each status but ok."""
    return [f"{thousands(n)} {name}" for name, n in data.attrs["statuses"].items() if name != "ok"]


def values_of(data: "xarray.Dataset", drawn: Drawn, statistic: str, **rows: Any) -> Array | None:
    """Values (..., C) of a statistic of the components, at rows of dimensions, None where it was not asked for."""
    import xarray as xr

    if (name := f"{drawn.name}_{statistic}") not in data:
        return None
    pick = {dim: xr.DataArray(drawn.indices[:, k], dims="component") for k, dim in enumerate(drawn.dims)}
    values = np.asarray(data[name].isel(rows).isel(pick).values, float)
    return values if drawn.dims else values[..., None]


def draw_histogram(axes: Axes, data: "xarray.Dataset", drawn: Drawn, row: int | None, choice: Choice) -> None:
    """Draws the densities of the components, at a row of time where they have times."""
    rows = {} if row is None else {TIME: row}
    counts, edges = values_of(data, drawn, HISTOGRAM, **rows), values_of(data, drawn, "edges", **rows)
    assert counts is not None and edges is not None
    for k, color in enumerate(colors_of(drawn)):
        some = np.flatnonzero(np.diff(edges[:, k]) > 0)
        if len(some):
            ends = np.append(edges[some, k], edges[some[-1] + 1, k])
            heights = counts[some, k] / (np.diff(ends) * counts[:, k].sum())
            axes.stairs(heights, ends, color=color, fill=len(drawn.indices) == 1, label=drawn.symbol(k))
    axes.set_xscale("log" if choice.is_log("x", False) else "linear")
    axes.set_yscale("log" if choice.is_log("y", False) else "linear")
    ending = next((end for end in ONCE if row is None and drawn.name.endswith(end)), "")
    label = replace(drawn, name=drawn.name.removesuffix(ending)).label
    axes.set_xlabel(f"{label}, {ONCE[ending]}" if ending else label)
    axes.set_ylabel("density")
    few_ticks(axes)
    few_log_ticks(axes)
    whole = data[f"{drawn.name}{COUNT}"]
    set_panel_note(axes, drawn, int((whole if row is None else whole.isel({TIME: row})).values.min()), int(data.attrs["members"]))
    if len(drawn.indices) > 1 and axes.has_data():
        add_legend(axes, len(drawn.indices))


def add_legend(axes: Axes, count: int) -> None:
    """Adds a legend of components in a space of its own, above all that is drawn."""
    rows = -(-count // IN_ROW)
    low, high = axes.get_ylim()
    room = FOR_ROW * rows
    axes.set_ylim(low, high * (high / low) ** room if axes.get_yscale() == "log" else low + (high - low) * (1 + room))
    handles, _ = axes.get_legend_handles_labels()
    in_rows = [handles[k] for column in range(IN_ROW) for k in range(column, count, IN_ROW)]  # matplotlib fills columns
    axes.legend(handles=in_rows, frameon=False, loc="upper center", ncols=IN_ROW, columnspacing=1.2, handlelength=1.2, borderpad=0.1)


def draw_fan(axes: Axes, data: "xarray.Dataset", drawn: Drawn, time_axis: TimeAxis, choice: Choice) -> tuple[EndLabels | None, list[str]]:
    """Draws the statistics of one quantity; returns the labels of its components, and notes."""
    of = partial(values_of, data, drawn, time=time_axis.rows)
    x, mean, var, quantiles, least, largest = time_axis.x, *map(of, ("mean", "var", "quantiles", "min", "max"))
    middle: Any = mean
    bands = [(least, largest)] if least is not None and largest is not None else []
    if quantiles is not None:
        middle = quantiles[2]
        bands += [(quantiles[0], quantiles[4]), (quantiles[1], quantiles[3])]
    elif var is not None:
        deviation = np.sqrt(var)
        middle = deviation if mean is None else mean
        bands += [] if mean is None else [(mean - deviation, mean + deviation)]
    elif mean is None:
        middle = least if largest is None else largest
    edges = bool(bands) and overlaps(*bands[-1])  # colours that lie on each other are none
    for k, color in enumerate(colors_of(drawn)):
        for number, ((low, high), alpha) in enumerate(zip(bands, ALPHAS[-len(bands) :] if bands else (), strict=True)):
            for edge in (low, high) if edges else ():
                axes.plot(x, edge[:, k], color=color, lw=0.5, ls=DASHES[2 if number < len(bands) - 1 else 1], label=f"_{drawn.symbol(k)}")
            if not edges:
                axes.fill_between(x, low[:, k], high[:, k], color=color, alpha=alpha, lw=0, label=f"_{drawn.symbol(k)}")
        axes.plot(x, middle[:, k], color=color, label=drawn.symbol(k))
        if middle is largest and least is not None:
            axes.plot(x, least[:, k], color=color, label=f"_{drawn.symbol(k)}")
        if quantiles is not None and mean is not None:
            axes.plot(x, mean[:, k], color=INK if len(drawn.indices) == 1 else color, ls="--", lw=0.8, label=f"_{drawn.symbol(k)}")
    axes.set_xscale("log" if time_axis.log else "linear")
    whole = np.stack([middle, *(edge for band in bands for edge in band)])
    notes = make_log(axes, drawn.label) if choice.is_log("y", spans(whole)) else []
    axes.set_ylabel(drawn.label)
    axes.set_xlim(x[0], x[-1])
    few_ticks(axes)
    few_log_ticks(axes)
    set_panel_note(axes, drawn, int(data[f"{drawn.name}{COUNT}"].values.min()), int(data.attrs["members"]))
    if len(drawn.indices) == 1:
        return None, notes
    return end_labels(axes, drawn.labels, last_finite(np.ma.masked_invalid(middle)), float(x[-1])), notes
