"""`run.odesim` of a Dataset that odesim made or opened: its picture, and its grid as axes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from odesim.base.pictures import draw
from odesim.ensembles.accessor import unstack

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

    from odesim.base.arrays import Array

NAME = "odesim"


class Accessor:
    """Methods of a run as a Dataset: `run.odesim.plot()`, `run.odesim.unstack()`."""

    def __init__(self, run: "xarray.Dataset") -> None:
        self._run = run

    def plot(
        self,
        var: str | Iterable[str] = (),
        *,
        x: str | None = None,
        y: str | None = None,
        at: float | None = None,
        index: int | Iterable[int] | None = None,
        log: str | None = None,
        ax: "Axes | None" = None,
    ) -> "Axes | Array":
        """Draws the run; returns the Axes of the picture, an array of them if it has several panels.

        Of an ensemble, which may be cut (isel, sel) or unstacked: a map over two numbers that differ between members, a curve over one,
        else median and middle 80 % of all members against time. var: names, default all; x, y: numbers that differ ("mu", "mu[3]"), or
        x="time"; at: a saved time, default the last; index: a component; log: letters of logarithmic axes (x, y, and c for colours), or
        "none": values <= 0 are left out and counted; ax: Axes to draw a picture of one panel on. `odesim.plot.save(axes, path)` writes
        the picture. Raises ParamError.
        """
        drawn: Axes | Array = draw("dataset", self._run, ax, var=var, x=x, y=y, at=at, index=index, log=log)
        return drawn

    def unstack(self) -> "xarray.Dataset":
        """The Dataset with an axis for each number of its grid in the place of `member`. Raises ParamError if it is no grid."""
        return unstack(self._run)


def register() -> None:
    """Gives Datasets the accessor `odesim`, once."""
    import xarray

    if not hasattr(xarray.Dataset, NAME):
        xarray.register_dataset_accessor(NAME)(Accessor)
