"""The picture of eigenvalues along a run: the rates of its modes, and the sharpness of its loss."""

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from odesim.plot.labels import add_header
from odesim.plot.layout import add_panels, cells_in_rows
from odesim.plot.style import CATEGORIES, FAINT, few_ticks, literal, ordered_colors, project_style

if TYPE_CHECKING:
    import xarray

LETTERS = 40  # of the name of an axis, in a line
MOST = 40
"""Modes that are drawn, evenly chosen among more, with the first and the last."""


def figure_of_spectrum(data: "xarray.Dataset") -> Figure:
    """A Figure of a Dataset of odesim.spectrum: real parts of eigenvalues, and the largest and least of a Hessian, over time."""
    kinds = [name for name in ("eigenvalue_real", "sharpness") if name in data]
    times = data["time"].values
    with project_style():
        panels = add_panels([42.0], cells_in_rows(len(kinds)) if len(kinds) > 1 else cells_in_rows(1, 1), columns=len(kinds))
        for axes, kind in zip(panels, kinds, strict=True):
            axes.axhline(0.0, color=FAINT, lw=0.5)
            if kind == "sharpness":
                axes.plot(times, data["lowest"].values, color=CATEGORIES[1])
                for k, row in enumerate(data["sharpness"].values.T):
                    axes.plot(times, row, color=CATEGORIES[0], lw=1.0 if k == 0 else 0.5)
                axes.set_ylabel("eigenvalue of the Hessian")
            else:
                values = data[kind].values
                if data.attrs["discrete"]:
                    values = np.hypot(values, data["eigenvalue_imag"].values)
                chosen = np.unique(np.linspace(0, values.shape[1] - 1, min(MOST, values.shape[1])).astype(int))
                for k, color in zip(chosen, ordered_colors(len(chosen)), strict=True):
                    axes.plot(times, values[:, k], color=color)
                axes.set_ylabel("size of a multiplier" if data.attrs["discrete"] else "eigenvalue, real part")
            few_ticks(axes)
            unit = "updates" if data.attrs["discrete"] else literal(data.attrs.get("time_unit", "") or "time")
            axes.set_xlabel(fill(unit, LETTERS // len(kinds)))
        notes = [f"sharpness (blue) and least eigenvalue (orange) of {data.attrs['loss']}"] * ("sharpness" in data)
        add_header(panels[0].figure, literal(f"{data.attrs['model']}, eigenvalues"), [literal(note) for note in notes])  # type: ignore[arg-type]
        return panels[0].figure  # type: ignore[return-value]
