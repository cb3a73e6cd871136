"""The picture of statistics over members, of odesim.ensemble(reduce=...): a fan of quantiles, or the mean and its standard deviation."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.base.arrays import Array
from odesim.base.errors import counted
from odesim.plot.choice import TIME, Choice
from odesim.plot.ensemble import PANELS
from odesim.plot.ensemble_panels import colors_of, set_panel_note
from odesim.plot.labels import EndLabels, end_labels
from odesim.plot.layout import finish, panels_and_tables
from odesim.plot.members import MEMBER, Drawn, components
from odesim.plot.panels import last_finite, thousands
from odesim.plot.scales import TimeAxis, make_log, make_time_axis, spans
from odesim.plot.style import INK, few_log_ticks, few_ticks, literal, project_style

if TYPE_CHECKING:
    import xarray

COUNT, ALPHAS = "_count", (0.15, 0.25)


def figure_of_statistics(data: "xarray.Dataset", choice: Choice | None = None, ax: Axes | None = None) -> Figure:
    """A Figure of the statistics (time, ...) of an ensemble, a panel for each quantity, a colour for each component.

    With quantiles: median, middle 50 % and 90 %, and a dashed mean. Else the mean, and a standard deviation on either side.
    ax: Axes to draw a picture of one panel on, without title and notes. Raises ParamError for a choice that they do not have.
    """
    choice = choice or Choice()
    choice.check()
    choice.refuse_axes("one of statistics")
    choice.refuse_colors()
    whole = {str(name).removesuffix(COUNT): v.expand_dims(MEMBER) for name, v in data.data_vars.items() if str(name).endswith(COUNT)}
    shapes = {name: v.shape[2:] for name, v in whole.items()}
    names = choice.names(shapes, str(data.attrs["model"]), "kept state or observable")
    shown, hidden = choice.page(names, PANELS)
    drawn = [components(whole, name, choice) for name in shown]  # type: ignore[arg-type]
    time_axis = make_time_axis(data[TIME].values, data.attrs.get("time_unit", ""), choice.scale("x"))
    with project_style():
        axes, _ = panels_and_tables([False] * len(drawn), ax=ax)
        labels, notes = [], [meaning(data)]
        for panel, d in zip(axes, drawn, strict=True):
            label, more = draw_fan(panel, data, d, time_axis, choice)
            labels.append(label)
            notes += more
        notes += [literal(f"ended early: {early}") for early in ended_early(data)]
        notes += hidden
        title = literal(f"{data.attrs['model']}, {counted(int(data.attrs['members']), 'member')}")
        return finish(axes, labels, (title, [*dict.fromkeys(notes)], ()), ax=ax, time_axis=time_axis)


def meaning(data: "xarray.Dataset") -> str:
    """What lines and bands are."""
    kinds = {str(name).rpartition("_")[2] for name in data.data_vars}
    mean = ["mean (dashed)" if "quantiles" in kinds else "mean"] * ("mean" in kinds)
    spread = ["median, middle 50 % and 90 %"] if "quantiles" in kinds else ["standard deviation"] * ("var" in kinds)
    return ", ".join([*mean, *spread]) + " of the members"


def ended_early(data: "xarray.Dataset") -> list[str]:
    """How many members had each status but ok."""
    return [f"{thousands(n)} {name}" for name, n in data.attrs["statuses"].items() if name != "ok"]


def draw_fan(axes: Axes, data: "xarray.Dataset", drawn: Drawn, time_axis: TimeAxis, choice: Choice) -> tuple[EndLabels | None, list[str]]:
    """Draws the statistics of one quantity; returns the labels of its components, and notes."""
    import xarray as xr

    pick = {dim: xr.DataArray(drawn.indices[:, k], dims="component") for k, dim in enumerate(drawn.dims)}

    def values(statistic: str) -> Array | None:
        """(..., T, C), None where it was not asked for."""
        if (name := f"{drawn.name}_{statistic}") not in data:
            return None
        found = np.asarray(data[name].isel({TIME: time_axis.rows}).isel(pick).values, float)
        return found if drawn.dims else found[..., None]

    x, mean, var, quantiles = time_axis.x, *map(values, ("mean", "var", "quantiles"))
    bands: list[tuple[Array, Array]] = []
    middle: Any = mean
    if quantiles is not None:
        middle, bands = quantiles[2], [(quantiles[0], quantiles[4]), (quantiles[1], quantiles[3])]
    elif var is not None:
        deviation = np.sqrt(var)
        middle, bands = (deviation, []) if mean is None else (mean, [(mean - deviation, mean + deviation)])
    for k, color in enumerate(colors_of(drawn)):
        for (low, high), alpha in zip(bands, ALPHAS, strict=False):
            axes.fill_between(x, low[:, k], high[:, k], color=color, alpha=alpha, lw=0)
        axes.plot(x, middle[:, k], color=color)
        if quantiles is not None and mean is not None:
            axes.plot(x, mean[:, k], color=INK, ls="--", lw=0.8)
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
