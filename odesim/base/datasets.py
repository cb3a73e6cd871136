"""`run.odesim` of a Dataset that odesim made or opened: its picture, and its grid as axes.

draw() is the one function of the lower floors that reaches the room of pictures, by name and only when something is drawn: so solutions,
trainings and Datasets have a method `plot`, and computing imports no matplotlib.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.errors import ParamError, counted
from odesim.base.parsing import check_keywords

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

    from odesim.base.arrays import Array

MEMBER = "member"


def draw(what: str, thing: Any, ax: Any = None, **words: Any) -> Any:
    """The Axes of the panels of a picture of a thing. what: the kind of picture; words: what to draw, as Choice has it."""
    return import_module("odesim.plot.methods").draw(what, thing, ax, **words)


def unstack(run: "xarray.Dataset") -> "xarray.Dataset":
    """The Dataset with an axis for each number of its grid in the place of `member`, each in increasing order.

    Of zipped numbers the first is the axis. Members may have any order, and be left out: there is NaN. Raises ParamError if two members
    have the same numbers, or what differs is no grid.
    """
    if MEMBER not in run.dims:
        raise ParamError("this Dataset has no members: unstack is for ensembles")
    coords = {str(name): v for name, v in run.coords.items() if v.dims[:1] == (MEMBER,) and name != MEMBER}
    zipped = [name for name, v in coords.items() if v.attrs.get("design") == "zip"]
    axes = [name for name, v in coords.items() if v.ndim == 1 and name not in zipped[1:]]
    points = {name: len(np.unique(coords[name].values)) for name in axes}
    count, cells = run.sizes[MEMBER], int(np.prod([float(n) for n in points.values()])) if axes else 0
    random = [
        name for name in coords if coords[name].attrs.get("design", "grid").split()[0] not in ("grid", "zip") or coords[name].ndim > 1
    ]
    if not axes or random:
        what = f"{random[0]} is {coords[random[0]].attrs.get('design') or 'an array'}" if random else "nothing differs"
        raise ParamError(f"the {counted(count, 'member')} form no grid: {what}; unstack is for numbers of grid and zipped")
    if (len(axes) == 1 and points[axes[0]] < count) or cells < count:
        raise ParamError(f"{counted(count, 'member')} have only {counted(cells, 'place')} on the grid of {', '.join(axes)}: some are equal")
    index: Any = {MEMBER: axes}
    flat = run.drop_vars(MEMBER, errors="ignore").set_index(index)
    if len(axes) == 1:
        return flat.rename({MEMBER: axes[0]}).sortby(axes[0])
    dims = {name: [*axes, *(d for d in v.dims if d != MEMBER)] for name, v in run.variables.items() if MEMBER in v.dims}
    unstacked = flat.unstack(MEMBER)
    return unstacked.assign({name: unstacked[name].transpose(*dims[name]) for name in unstacked.data_vars if name in dims})


NAME = "odesim"


class Accessor:
    """Methods of a run as a Dataset: `run.odesim.plot()`, `run.odesim.unstack()`."""

    def __init__(self, run: "xarray.Dataset") -> None:
        self._run = run

    @check_keywords
    def plot(
        self,
        var: str | Iterable[str] = (),
        *,
        x: str | None = None,
        y: str | None = None,
        at: float | None = None,
        index: int | Iterable[int] | None = None,
        log: str | None = None,
        all: bool = False,
        ax: "Axes | None" = None,
    ) -> "Axes | Array":
        """Draws the run; returns the Axes of the picture, an array of them if it has several panels.

        Of an ensemble, which may be cut (isel, sel) or unstacked: a map over two numbers that differ between members, a curve over one,
        else median and middle 80 % of all members against time. var: names, default six panels; all: every one; x, y: numbers that differ
        ("mu", "mu[3]"), or x="time"; at: a saved time, default the last; index: a component; log: letters of logarithmic axes (x, y, and
        c for colours), or "none": values <= 0 are left out and counted; ax: Axes to draw a picture of one panel on.
        `odesim.plot.save(axes, path)` writes the picture. Raises ParamError.
        """
        return draw("dataset", self._run, ax, var=var, x=x, y=y, at=at, index=index, log=log, all=all)

    def unstack(self) -> "xarray.Dataset":
        """The Dataset with an axis for each number of its grid in the place of `member`. Raises ParamError if it is no grid."""
        return unstack(self._run)


def register() -> None:
    """Gives Datasets the accessor `odesim`, once."""
    import xarray

    if not hasattr(xarray.Dataset, NAME):
        xarray.register_dataset_accessor(NAME)(Accessor)


def with_accessor(run: "xarray.Dataset") -> "xarray.Dataset":
    """run, now that all Datasets have the accessor `odesim`."""
    register()
    return run
