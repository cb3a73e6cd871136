"""The place where a picture is drawn: a figure of its own, or axes that the user gives."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.base.errors import ParamError, counted
from odesim.plot.labels import EndLabels, add_header, place_labels
from odesim.plot.layout import FOOT, panels


@dataclass
class Canvas:
    """The place where panels are drawn. hidden: notes on what is not shown; ax: the user's Axes, of which the layout stays as it is."""

    hidden: Sequence[str]
    ax: Axes | None = None
    axes: list[Axes] = field(default_factory=list)

    def panels(self, maps: Sequence[bool]) -> tuple[Figure, list[Axes]]:
        """(Figure, axes) with as many panels. maps: which of them have a colour bar. Raises ParamError if ax is one, and they are more."""
        if self.ax is None:
            figure, self.axes = panels(maps, FOOT)
            return figure, self.axes
        check_one(len(maps))
        own: Any = self.ax.get_figure(root=True)
        self.axes = [self.ax]
        return own, self.axes

    def finish(self, title: str, notes: Sequence[str], labels: Sequence[EndLabels | None] = ()) -> None:
        """The head of a figure, and its last layout."""
        figure: Any = self.axes[0].get_figure(root=True)
        if self.ax is None:
            add_header(figure, title, [*notes, *self.hidden])
            figure.align_ylabels(self.axes)
            place_labels(figure, [label for label in labels if label])
        for label in labels if self.ax is not None else ():
            if label:
                label.place()


def check_one(count: int) -> None:
    """Raises ParamError unless the picture has one panel, which is drawn on the user's Axes."""
    if count != 1:
        raise ParamError(f"ax is one panel, and this picture has {counted(count, 'panel')}: choose one with var and index")
