"""The places of panels in a figure: rows and columns, the time label below, a colour bar above; or axes that the user gives."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from odesim.base.errors import ParamError, counted
from odesim.plot.labels import EndLabels, add_header, place_labels
from odesim.plot.scales import TimeAxis
from odesim.plot.style import compute_layout, new_figure, root_figure

ALONE, BESIDE, STACKED, ROW, MATRIX, BAR = 46.0, 36.0, 23.0, 26.0, 34.0, 6.0
# heights in mm: a single panel, one of two, of a stack, of a grid, of a matrix; a colour bar
FOOT = 7.0  # mm: the time label
TITLE, SHORT = 42, 12  # letters that fit across the picture, and surely under one of two columns


@dataclass
class Canvas:
    """The place where panels are drawn. hidden: notes on what is not shown; ax: the user's Axes, of which the layout stays as it is."""

    hidden: Sequence[str]
    ax: Axes | None = None
    axes: list[Axes] = field(default_factory=list)

    def panels(self, maps: Sequence[bool]) -> tuple[Figure, list[Axes]]:
        """(Figure, axes) with as many panels. maps: which of them have a colour bar. Raises ParamError if ax is one, and they are more."""
        if self.ax is None:
            figure, self.axes, _ = panels_and_tables(maps, [])
            return figure, self.axes
        check_one(len(maps))
        self.axes = [self.ax]
        return root_figure(self.ax), self.axes

    def finish(self, title: str, notes: Sequence[str], labels: Sequence[EndLabels | None] = ()) -> None:
        """The head of a figure, and its last layout."""
        if self.ax is None:
            figure = root_figure(self.axes[0])
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


def panels_and_tables(maps: Sequence[bool], tables: Sequence[float]) -> tuple[Figure, list[Axes], list[Axes]]:
    """(Figure, axes, axes of tables): rows of two, then a wide row of its own for each table.

    maps: which panels need space for a colour bar; tables: heights in mm.
    """
    n = len(maps)
    heights = [(ALONE if n == 1 else ROW) + BAR * any(maps[i : i + 2]) for i in range(0, n, 2)]
    figure = new_figure(FOOT + sum(heights) + sum(tables))
    cells = figure.add_gridspec(len(heights) + len(tables), 2, height_ratios=[*heights, *tables])
    axes = [figure.add_subplot(cells[cell]) for cell in cells_in_rows(n)]
    return figure, axes, [figure.add_subplot(cells[len(heights) + k, :]) for k in range(len(tables))]


def space_ticks(axes: Sequence[Axes], time_axis: TimeAxis) -> None:
    """Reduces the ticks of the time axes of two columns if tick labels have four digits or more and would touch."""
    if len(axes) > 1 and not time_axis.log and len(f"{time_axis.x[-1]:.0f}") > 3:
        for ax in axes:
            ax.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 2.5, 5, 10]))


def cells_in_rows(n: int, columns: int = 2, above: int = 0) -> list[tuple[int, slice]]:
    """(row, columns) of n panels in rows under `above` rows; those of the last row are wider if they can fill it evenly."""
    rest = n % columns
    wide = columns // rest if rest and columns % rest == 0 else 1
    parts = [divmod(i, columns) for i in range(n)]
    spans = [(row, place, wide if row == n // columns else 1) for row, place in parts]
    return [(above + row, slice(place * span, (place + 1) * span)) for row, place, span in spans]


def label_time(axes: Sequence[Axes], time_axis: TimeAxis) -> list[Axes]:
    """Writes the time label under panels with none of their width below and removes tick labels of others; returns the first."""
    spans: list[Any] = [ax.get_subplotspec() for ax in axes]
    lowest = []
    for ax, span in zip(axes, spans, strict=True):
        if any(other.colspan == span.colspan and other.rowspan.start >= span.rowspan.stop for other in spans):
            ax.tick_params(axis="x", which="both", labelbottom=False)
        else:
            ax.set_xlabel(fill(time_axis.label, TITLE))
            lowest.append(ax)
    return lowest


def fit_time(figure: Figure, lowest: Sequence[Axes], every: Sequence[Axes], time_axis: TimeAxis) -> None:
    """Breaks the time label into lines until it fits its column, which matplotlib's layout does not ensure."""
    spans: list[Any] = [ax.get_subplotspec() for ax in every]
    starts = [int(span.colspan.start) for span in spans]
    if not any(starts) or len(time_axis.label) <= SHORT:
        return
    compute_layout(figure)
    boxes: list[Any] = [ax.get_tightbbox() for ax in every]
    borders = {first: min(box.x0 for box, start in zip(boxes, starts, strict=True) if start == first) for first in starts if first}
    for ax, span in zip(every, spans, strict=True):
        if ax in lowest:
            low, high = borders.get(span.colspan.start, 0.0), borders.get(span.colspan.stop, figure.bbox.x1)
            box = ax.get_window_extent()
            middle = (box.x0 + box.x1) / 2
            for letters in range(TITLE, 5, -2):
                ax.set_xlabel(fill(time_axis.label, letters))
                if ax.xaxis.label.get_window_extent().width < 2 * min(middle - low, high - middle):
                    break


def share_axes(axes: list[Axes]) -> None:
    """Removes labels of axes that the panel below, or to the left, has too."""
    spans: list[Any] = [ax.get_subplotspec() for ax in axes] if len(axes) > 1 else []
    for ax, span in zip(axes, spans, strict=False):
        if any(other.colspan == span.colspan and other.rowspan.start >= span.rowspan.stop for other in spans):
            ax.set_xlabel("")
        if any(other.rowspan == span.rowspan and other.colspan.stop <= span.colspan.start for other in spans) and same_label(ax, axes):
            ax.set_ylabel("")


def same_label(axes: Axes, every: list[Axes]) -> bool:
    """Whether all panels have the same label beside them."""
    return len({ax.get_ylabel() for ax in every if ax is axes or ax.get_ylabel()}) == 1
