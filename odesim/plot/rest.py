"""The picture of rest states: their eigenvalues, and where they are, filled if nothing grows there."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from odesim.base.errors import counted
from odesim.plot.labels import add_header
from odesim.plot.layout import add_panels, cells_in_rows
from odesim.plot.style import CATEGORIES, FAINT, few_ticks, literal, project_style

if TYPE_CHECKING:
    import xarray

COLORS = dict(zip(("stable", "neutral", "saddle", "unstable"), (CATEGORIES[0], CATEGORIES[2], CATEGORIES[1], CATEGORIES[3]), strict=True))
INDEX = "growing directions"
HEIGHT = 42.0  # mm


def figure_of_rest(data: "xarray.Dataset") -> Figure:
    """A Figure of the rest states of a Dataset of odesim.rest: eigenvalues in the complex plane, and loss against index, or states.

    Without a loss the states are drawn by their first two numbers, or the only one beside its fastest eigenvalue.
    """
    with project_style():
        plane, place = add_panels([HEIGHT], cells_in_rows(2))
        draw_eigenvalues(plane, data)
        draw_places(place, data)
        for axes in (plane, place):
            few_ticks(axes)
            axes.margins(0.12)
        if place.get_xlabel() == INDEX:
            place.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        figure = plane.figure
        kinds = [kind for kind in COLORS if kind in data["stability"].values]
        dots = [Line2D([], [], ls="", marker="o", color=COLORS[kind], mfc=filled(kind), label=kind, ms=3.5) for kind in kinds]
        title = literal(f"{data.attrs['model']}, {counted(data.sizes['rest'], 'rest state')}")
        add_header(figure, title, (), dots)  # type: ignore[arg-type]
        return figure  # type: ignore[return-value]


def filled(stability: str) -> str:
    """The face of a dot: open where something grows."""
    return COLORS[stability] if stability in ("stable", "neutral") else "white"


def draw_eigenvalues(axes: Axes, data: "xarray.Dataset") -> None:
    """The eigenvalues of each state, and the line across which they grow."""
    if data.attrs["discrete"]:
        turn = np.linspace(0, 2 * np.pi, 181)
        axes.plot(np.cos(turn), np.sin(turn), color=FAINT, lw=0.5)
    else:
        axes.axvline(0.0, color=FAINT, lw=0.5)
    for k, kind in enumerate(data["stability"].values):
        real, imaginary = (data[f"eigenvalue_{part}"].values[k] for part in ("real", "imag"))
        axes.plot(real, imaginary, "o", color=COLORS[str(kind)], mfc=filled(str(kind)), ms=3.5)
    what = "multiplier" if data.attrs["discrete"] else "eigenvalue"
    axes.set_xlabel(f"{what}, real part")
    axes.set_ylabel("imaginary part")


def draw_places(axes: Axes, data: "xarray.Dataset") -> None:
    """The rest states: loss against index, or two numbers of each."""
    names = data.attrs["rest_states"].split()
    numbers = np.concatenate([data[name].values.reshape(data.sizes["rest"], -1) for name in names], axis=1)
    if "loss" in data and data["loss"].ndim == 1:
        x, y, labels = data["index"].values, data["loss"].values, (INDEX, "loss")
    else:
        ways = [f"{name}[{', '.join(map(str, at))}]" if at else name for name in names for at in np.ndindex(data[name].shape[1:])]
        x, y = numbers[:, 0], numbers[:, 1] if len(ways) > 1 else data["eigenvalue_real"].values[:, 0]
        labels = (literal(ways[0]), literal(ways[1]) if len(ways) > 1 else "eigenvalue, real part")
    for k, kind in enumerate(data["stability"].values):
        axes.plot(x[k], y[k], "o", color=COLORS[str(kind)], mfc=filled(str(kind)), ms=3.5)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
