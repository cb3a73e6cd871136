"""The picture of a fit: data as points with the fitted curves, and below what is left over."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from odesim.plot.labels import add_header, symbol
from odesim.plot.layout import add_panels
from odesim.plot.style import CATEGORIES, FAINT, few_ticks, literal, ordered_colors, project_style

if TYPE_CHECKING:
    import xarray

MOST = 3
"""Quantities that are drawn, each with its residuals below; of several entries of an array each has a colour."""


def figure_of_fit(data: "xarray.Dataset") -> Figure:
    """A Figure of a Dataset of odesim.fit."""
    labels = [str(label) for label in data["column"].values]
    heads = list(dict.fromkeys(label.partition("[")[0] for label in labels))
    shown = heads[:MOST]
    with project_style():
        cells = [(row, k) for row in (0, 1) for k in range(len(shown))]
        axes = add_panels([34.0, 15.0], cells, columns=len(shown))
        for k, head in enumerate(shown):
            upper, lower = axes[k], axes[len(shown) + k]
            places = [i for i, label in enumerate(labels) if label.partition("[")[0] == head]
            lower.axhline(0.0, color=FAINT, lw=0.5)
            for color, i in zip(ordered_colors(len(places)) if len(places) > 1 else CATEGORIES, places, strict=False):
                upper.plot(data["curve_time"], data["curve"].values[:, i], color=color)
                upper.plot(data["time"], data["data"].values[:, i], "o", color=color, ms=1.8, mew=0)
                lower.plot(data["time"], data["residual"].values[:, i], "o", color=color, ms=1.8, mew=0)
            few_ticks(upper)
            few_ticks(lower, y=3)
            upper.tick_params(labelbottom=False)
            lower.set_xlim(upper.get_xlim())
            lower.set_xlabel(literal(data.attrs.get("time_unit", "") or "time"))
            upper.set_ylabel(symbol(head))
        axes[len(shown)].set_ylabel("residual")
        figure = axes[0].figure
        values = [f"{symbol(str(n))} = {v:.4g}" for n, v in zip(data["free"].values[:MOST], data["value"].values[:MOST], strict=True)]
        notes = [", ".join(values) + ", ..." * (data.sizes["free"] > MOST)]
        notes += [f"{len(heads) - MOST} more quantities are not drawn"] * (len(heads) > MOST)
        add_header(figure, literal(f"{data.attrs['model']}, fit"), notes)  # type: ignore[arg-type]
        figure.align_ylabels(np.array(axes))  # type: ignore[union-attr]
        return figure  # type: ignore[return-value]
