"""The pictures of the methods `plot` of solutions, ensembles, trainings and comparisons."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, no_such, value_text
from odesim.plot.choice import TIME, Choice, make_choice
from odesim.plot.comparison import figure_of_comparison
from odesim.plot.dynamics import ANSWERS
from odesim.plot.ensemble import figure_of_ensemble
from odesim.plot.members import as_members, as_solution
from odesim.plot.solution import figure_of_solution
from odesim.plot.statistics import figure_of_statistics
from odesim.plot.trajectory import figure_of_trajectory

if TYPE_CHECKING:
    import xarray

COLOR_BAR = "<colorbar>"  # what matplotlib calls the Axes of a colour bar


def draw(what: str, thing: Any, ax: Axes | None = None, **words: Any) -> Axes | Array:
    """The Axes of the one panel of a picture, or an array (n,) of those of several; ax if it is drawn there.

    what: `solution`, `dataset`, `training` or `comparison`. Raises ParamError.
    """
    if ax is not None and not isinstance(ax, Axes):
        raise ParamError(f"ax must be Axes of matplotlib, as plt.subplots() makes them, not {value_text(ax)}")
    figure = PICTURES[what](thing, make_choice(**words), ax)
    panels: Any = np.array([axes for axes in figure.axes if axes.get_label() != COLOR_BAR], object) if ax is None else [ax]
    return panels if len(panels) > 1 else panels[0]


def draw_dataset(run: "xarray.Dataset", choice: Choice, ax: Axes | None) -> Figure:
    """The Figure of what odesim computed, as a Dataset. Raises ParamError for another one."""
    if "status_names" in run.attrs:
        return figure_of_ensemble(as_members(run), choice, ax)
    if "task" in run.attrs:
        return figure_of_trajectory(choice.of_training(run), choice=choice, ax=ax)
    if "statistics" in run.attrs:
        return figure_of_statistics(run, choice, ax)
    for what, figure_of in ANSWERS.items():
        if what in run.attrs:
            return figure_of(run)
    if "states" in run.attrs and TIME in run.coords:
        return figure_of_solution(as_solution(run), choice, ax)
    raise ParamError("this Dataset is no run of odesim: its attributes name no states")


def draw_comparison(comparison: Any, choice: Choice, ax: Axes | None) -> Figure:
    """The Figure of the chosen observables of a Comparison. Raises ParamError."""
    for name in choice.var:
        if name not in comparison.theory:
            raise ParamError(no_such("observable", name, comparison.theory, "the comparison"))
    names = list(choice.var) or list(comparison.theory)
    sides = ({name: side[name] for name in names} for side in (comparison.theory, comparison.training))
    return figure_of_comparison(replace(comparison, **dict(zip(("theory", "training"), sides, strict=True))), ax)


PICTURES: Mapping[str, Callable[[Any, Choice, Axes | None], Figure]] = {
    "solution": figure_of_solution, "dataset": draw_dataset, "training": draw_dataset, "comparison": draw_comparison,
}  # fmt: skip
