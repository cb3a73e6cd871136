"""The picture of branches: one number of the rest states against the parameter, dashed where something grows."""

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from odesim.plot.labels import add_header
from odesim.plot.layout import add_panels, cells_in_rows
from odesim.plot.style import CATEGORIES, FAINT, INK, few_ticks, literal, project_style

if TYPE_CHECKING:
    import xarray

MARKS = {"fold": ("o", CATEGORIES[1]), "branch": ("D", CATEGORIES[2]), "hopf": ("s", CATEGORIES[3])}
NAMES = {"fold": "fold", "branch": "branch point", "hopf": "Hopf point"}


def figure_of_branches(data: "xarray.Dataset") -> Figure:
    """A Figure of a Dataset of odesim.branch: the number of the states that varies most, against the parameter."""
    name, states = data.attrs["parameter"], data.attrs["rest_branches"].split()
    ways = [(state, at) for state in states for at in np.ndindex(data[state].shape[1:])]
    state, at = max(ways, key=lambda way: float(np.ptp(data[way[0]].values[(slice(None), *way[1])], axis=0)))
    x, y = data[name].values, data[state].values[(slice(None), *at)]
    with project_style():
        (axes,) = add_panels([48.0], cells_in_rows(1, 1), columns=1)
        for k in np.unique(data["branch"].values):
            rows = np.flatnonzero(data["branch"].values == k)
            grows = data["growing"].values[rows] > 0
            # a part goes on to the first point of the next one, so that the line has no gap
            cuts = [0, *(np.flatnonzero(np.diff(grows)) + 1).tolist(), len(rows)]
            for a, b in pairwise(cuts):
                part = rows[a : b + 1]
                axes.plot(x[part], y[part], color=FAINT if grows[a] else INK, ls="--" if grows[a] else "-")
        kinds = data["kind"].values
        for kind, (mark, color) in MARKS.items():
            those = kinds == kind
            axes.plot(data[f"special_{name}"].values[those], data[f"special_{state}"].values[(those, *at)], mark, color=color, ms=3.5)
        few_ticks(axes)
        axes.margins(0.05)
        axes.set_xlabel(literal(name))
        axes.set_ylabel(literal(f"{state}[{', '.join(map(str, at))}]" if at else state))
        legend = [Line2D([], [], color=INK, label="stable"), Line2D([], [], color=FAINT, ls="--", label="not stable")]
        legend += [Line2D([], [], ls="", marker=m, color=c, ms=3.5, label=NAMES[kind]) for kind, (m, c) in MARKS.items() if kind in kinds]
        figure = axes.figure
        add_header(figure, literal(f"{data.attrs['model']}, rest states"), (), legend)  # type: ignore[arg-type]
        return figure  # type: ignore[return-value]
