"""The picture of a global sensitivity: two bars for each number that varies, with errors, the largest first."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from odesim.base.errors import counted
from odesim.plot.labels import add_header, symbol
from odesim.plot.layout import add_panels
from odesim.plot.style import CATEGORIES, few_ticks, literal, project_style

if TYPE_CHECKING:
    import xarray

BARS = {
    "sobol": (("total", "first"), "part of the variance"),
    "morris": (("size", "spread"), "effect over the range"),
}
"""The two bars of each measure, the first of which sorts, and the name of their axis."""
MOST, MOST_FACTORS = 3, 10
ROW, EDGE = 5.5, 6.0  # mm


def figure_of_sensitivity(data: "xarray.Dataset") -> Figure:
    """A Figure of a Dataset of odesim.sensitivity or odesim.screening: of three quantities at most, each with its ten largest factors."""
    names, words = BARS[data.attrs["sensitivity"]]
    labels = [str(label) for label in data["quantity"].values][:MOST]
    shown = min(data.sizes["factor"], MOST_FACTORS)
    with project_style():
        panels = add_panels([ROW * shown + EDGE], [(0, k) for k in range(len(labels))], columns=len(labels))
        for k, (axes, label) in enumerate(zip(panels, labels, strict=True)):
            largest = np.argsort(-data[names[0]].values[k], kind="stable")[:shown]  # NaN comes last
            for n, name in enumerate(names):
                values = data[name].values[k][largest]
                errors = data[f"{name}_error"].values[k][largest] if f"{name}_error" in data else None
                places = np.arange(shown) + 0.38 * (n - 0.5)
                axes.barh(places, values, 0.36, xerr=errors, color=CATEGORIES[n], error_kw={"lw": 0.6, "capsize": 1.2})
            few_ticks(axes, x=4 if len(labels) < MOST else 2)
            axes.set_yticks(np.arange(shown), [label_of(str(data["factor"].values[i])) for i in largest])
            axes.invert_yaxis()
            axes.axvline(0.0, color="black", lw=0.5)
            if len(labels) > 1:
                axes.set_title(label_of(label))
            axes.set_xlabel(words if len(labels) == 1 else "")
        figure = panels[0].figure
        title = f"{data.attrs['model']}, {label_of(labels[0])}" if len(labels) == 1 else literal(data.attrs["model"])
        notes = [words] * (len(labels) > 1)
        notes += [f"{data.sizes['quantity'] - MOST} more quantities are not drawn"] * (data.sizes["quantity"] > MOST)
        notes += [f"the {shown} largest of {counted(data.sizes['factor'], 'number')}"] * (data.sizes["factor"] > shown)
        handles = [Patch(color=CATEGORIES[n], label=name) for n, name in enumerate(names)]
        add_header(figure, title, notes, handles)  # type: ignore[arg-type]
        return figure  # type: ignore[return-value]


def label_of(entry: str) -> str:
    """An entry such as v[0][1] as a formula."""
    return symbol(entry.replace("][", ","))
