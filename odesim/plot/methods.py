"""What the methods `plot` of solutions, ensembles, trainings and comparisons draw."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.base.arrays import Array
from odesim.errors import ParamError, no_such
from odesim.plot.choice import Choice
from odesim.plot.comparison import figure_of_comparison
from odesim.plot.ensemble import figure_of_ensemble
from odesim.plot.solution import figure_of_solution
from odesim.plot.trajectory import figure_of_trajectory

if TYPE_CHECKING:
    import xarray

COLOR_BAR = "<colorbar>"  # what matplotlib calls the Axes of a colour bar


def draw(what: str, thing: Any, ax: Axes | None = None, **words: Any) -> Axes | Array:
    """The Axes of the one panel of a picture, or an array (n,) of those of several; ax if it is drawn there.

    what: `solution`, `dataset`, `training` or `comparison`. Raises ParamError.
    """
    figure = PICTURES[what](thing, make_choice(**words), ax)
    return panels_of(figure) if ax is None else ax


def panels_of(figure: Figure) -> Axes | Array:
    """The Axes of a figure without those of colour bars: one, or an array of them."""
    panels = np.array([axes for axes in figure.axes if axes.get_label() != COLOR_BAR], object)
    return panels if len(panels) > 1 else panels[0]


def make_choice(
    *,
    var: str | Iterable[str] = (),
    x: str | None = None,
    y: str | None = None,
    at: float | None = None,
    index: int | Iterable[int] | None = None,
    log: str | None = None,
) -> Choice:
    """The Choice of these words; a single name or number is one."""
    names = (var,) if isinstance(var, str) else tuple(var)
    numbers: Any = (index,) if index is None or not isinstance(index, Iterable) else index
    return Choice(names, x, y, at, None if index is None else tuple(map(int, numbers)), log)


def draw_dataset(run: "xarray.Dataset", choice: Choice, ax: Axes | None) -> Figure:
    """The Figure of an ensemble or a training as a Dataset. Raises ParamError for another one."""
    if "member" in run.dims and "status_names" in run.attrs:
        return figure_of_ensemble(run, choice, ax)
    if "task" in run.attrs:
        return draw_training(run, choice, ax)
    raise ParamError("this Dataset is neither an ensemble nor a training of odesim: Solution.plot() draws an integration")


def draw_training(run: "xarray.Dataset", choice: Choice, ax: Axes | None) -> Figure:
    """The Figure of a training as a Dataset. Raises ParamError."""
    refuse_axes(ax)
    return figure_of_trajectory(choice.of_training(run))


def draw_comparison(comparison: Any, choice: Choice, ax: Axes | None) -> Figure:
    """The Figure of the chosen observables of a Comparison. Raises ParamError."""
    refuse_axes(ax)
    for name in choice.var:
        if name not in comparison.theory:
            raise ParamError(no_such("observable", name, comparison.theory, "the comparison"))
    kept = list(choice.var) or list(comparison.theory)
    sides = ({name: side[name] for name in kept} for side in (comparison.theory, comparison.training))
    return figure_of_comparison(replace(comparison, **dict(zip(("theory", "training"), sides, strict=True))))


def refuse_axes(ax: Axes | None) -> None:
    """Raises ParamError if a picture of many panels is to be drawn on one."""
    if ax is not None:
        raise ParamError("ax is one panel, and this picture has several: it makes a Figure of its own")


PICTURES: Mapping[str, Callable[[Any, Choice, Axes | None], Figure]] = {
    "solution": figure_of_solution, "dataset": draw_dataset, "training": draw_training, "comparison": draw_comparison,
}  # fmt: skip
