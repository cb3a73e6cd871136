"""The picture of Lyapunov exponents: their running means, with the error at the end."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from odesim.plot.labels import add_header
from odesim.plot.layout import add_panels, cells_in_rows
from odesim.plot.style import FAINT, few_ticks, literal, ordered_colors, project_style

if TYPE_CHECKING:
    import xarray


def figure_of_exponents(data: "xarray.Dataset") -> Figure:
    """A Figure of a Dataset of odesim.lyapunov: the mean of each exponent up to each time."""
    with project_style():
        (axes,) = add_panels([42.0], cells_in_rows(1, 1), columns=1)
        axes.axhline(0.0, color=FAINT, lw=0.5)
        times, values, errors = data["time"].values, data["value"].values, data["error"].values
        for k, color in enumerate(ordered_colors(len(values))):
            axes.plot(times, data["running"].values[:, k], color=color)
            axes.errorbar(times[-1], values[k], errors[k], color=color, capsize=1.5, marker="o", ms=2.0)
        few_ticks(axes)
        late = data["running"].values[len(times) // 10 :]  # the first means are of a few pieces, and far off
        low, high = float(np.min(late)), float(np.max(late))
        axes.set_ylim(low - 0.15 * (high - low + 1e-12), max(high, 0.0) + 0.15 * (high - low + 1e-12))
        axes.set_xlabel("updates" if data.attrs["lyapunov"] == 2 else literal(data.attrs.get("time_unit", "") or "time"))
        axes.set_ylabel("mean exponent")
        figure = axes.figure
        title = literal(f"{data.attrs['model']}, dimension {float(data['dimension']):.4g}")
        add_header(figure, title)  # type: ignore[arg-type]
        return figure  # type: ignore[return-value]
