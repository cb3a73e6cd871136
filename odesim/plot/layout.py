"""The places of panels in a figure: rows and columns, the time label below, a colour bar above; or axes that the user gives."""

from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.base.errors import ParamError, counted
from odesim.plot.labels import EndLabels, add_header, balanced, place_labels, set_intervals
from odesim.plot.scales import TimeAxis
from odesim.plot.style import WIDTH, compute_layout, new_figure, root_figure

ALONE, BESIDE, STACKED, ROW, LOW, STRIP, BAR = 46.0, 36.0, 19.0, 26.0, 20.0, 32.0, 6.0
# heights in mm: a single panel, one of a row, of a stack, of a grid, of a grid above tables, a strip of maps; a colour bar
FINE = 6  # columns of a grid whose rows have two panels or three
FOOT = 7.0  # mm: the time label
TITLE, SHORT = 42, 12  # letters that fit across the picture, and surely under one of two columns
Cell = tuple[Any, Any]
"""(rows, columns) of a panel in a grid."""


def add_panels(heights: Sequence[float], cells: Sequence[Cell], *, columns: int = 2, width: float = WIDTH) -> list[Axes]:
    """Axes of a new figure, whose rows have these heights in mm, at the cells of its grid."""
    figure = new_figure(FOOT + sum(heights), width=width)
    grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    return [figure.add_subplot(grid[cell]) for cell in cells]


def row_heights(maps: Sequence[bool], columns: int = 2, height: float = ROW) -> list[float]:
    """Heights in mm of the rows of cells_in_rows. maps: which panels need space for a colour bar."""
    rows = [row for row, _ in cells_in_rows(len(maps), columns)]
    return [height + BAR * any(bar for bar, place in zip(maps, rows, strict=True) if place == row) for row in dict.fromkeys(rows)]


def panels_and_tables(maps: Sequence[bool], tables: Sequence[float] = (), ax: Axes | None = None) -> tuple[list[Axes], list[Axes]]:
    """(axes, axes of tables): rows of two, of three where there are many, and below them rows of two tables; or the user's Axes.

    maps: which panels need space for a colour bar; tables: heights in mm. Many panels, or tables, are a page of 120 mm, so that it is
    wider than high. Raises ParamError for the user's Axes and several panels.
    """
    n = len(maps)
    if ax is not None:
        if n + len(tables) != 1:
            raise ParamError(f"ax is one panel, and this picture has {counted(n, 'panel')}: choose one with var and index")
        return [ax] * n, [ax] * len(tables)
    columns, wide = 3 if n > 4 or (n == 3 and tables) else 2, n > 4 or bool(tables)
    heights = [ALONE + BAR * maps[0]] if n == 1 and not tables else row_heights(maps, columns, LOW if tables else ROW)
    below = cells_in_rows(len(tables))
    cells = fine_cells(cells_in_rows(n, columns), columns) + fine_cells([(len(heights) + row, span) for row, span in below], 2)
    deep = [max(h for h, (row, _) in zip(tables, below, strict=True) if row == k) for k in dict.fromkeys(row for row, _ in below)]
    axes = add_panels([*heights, *deep], cells, columns=FINE, width=WIDTH * (1.5 if wide else 1))
    return axes[:n], axes[n:]


def fine_cells(cells: Sequence[tuple[int, slice]], columns: int) -> list[tuple[int, slice]]:
    """Cells of a grid of so many columns, in one of FINE columns."""
    return [(row, slice(*(FINE // columns * end for end in (span.start, span.stop)))) for row, span in cells]


def cells_in_rows(n: int, columns: int = 2) -> list[tuple[int, slice]]:
    """(row, columns) of n panels in as few rows as hold them, about equally many in each; where all have as many, the last fills its row.

    So their edges are in line with those of other rows. Where a row has fewer, all panels have one size, and a place stays empty.
    """
    rows = -(-n // columns)
    counts = [n // rows + (row < n % rows) for row in range(rows)]
    end = columns if len(set(counts)) == 1 else 0
    return [(row, slice(k, end if k + 1 == count and end else k + 1)) for row, count in enumerate(counts) for k in range(count)]


def finish(
    axes: Sequence[Axes],
    labels: Sequence[EndLabels | None],
    header: tuple[str, Sequence[str], Sequence[Artist]],
    *,
    ax: Axes | None = None,
    time_axis: TimeAxis | None = None,
    beside: Sequence[Axes] = (),
    about: str = "",
) -> Figure:
    """The figure of these axes, with the time below, the header (title, notes, legend) above, and its last layout.

    On the user's Axes `ax` only the time is named, and the labels are placed. time_axis: of all panels. beside: panels without labels of
    their own. about: a line in words below the title.
    """
    figure, ends = root_figure([*axes, *beside][0]), [label for label in labels if label]
    if ax is not None:
        if time_axis:
            ax.set_xlabel(time_axis.label)
        for label in ends:
            label.gather().place()
        return figure
    lowest = label_time(axes, time_axis) if time_axis else []
    add_header(figure, *header, about=about)
    figure.align_ylabels(axes)
    if time_axis:
        fit_time(figure, lowest, [*axes, *beside], time_axis)
    place_labels(figure, ends)
    return figure


def space_ticks(axes: Sequence[Axes], time_axis: TimeAxis) -> None:
    """Reduces the ticks of the time axes of two columns if tick labels have four digits or more and would touch."""
    if len(axes) > 1 and not time_axis.log and len(f"{time_axis.x[-1]:.0f}") > 3:
        for ax in axes:
            set_intervals(ax.xaxis, 3)


def label_time(axes: Sequence[Axes], time_axis: TimeAxis) -> list[Axes]:
    """Writes the time label under rows of panels that do not all have one of their width below; returns these, others have no labels."""
    lowest = []
    for ax, span in spans_of(axes):
        if all(has_below(other, axes) for _, other in spans_of(axes) if other.rowspan == span.rowspan):
            ax.tick_params(axis="x", which="both", labelbottom=False)
        else:
            ax.set_xlabel(balanced(time_axis.label, TITLE))
            lowest.append(ax)
    return lowest


def spans_of(axes: Sequence[Axes]) -> list[tuple[Axes, Any]]:
    """(axes, rows and columns) of each panel."""
    return [(ax, ax.get_subplotspec()) for ax in axes]


def has_below(span: Any, axes: Sequence[Axes]) -> bool:
    """Whether one of the axes has the columns of this span, and lies below it."""
    return any(other.colspan == span.colspan and other.rowspan.start >= span.rowspan.stop for _, other in spans_of(axes))


def fit_time(figure: Figure, lowest: Sequence[Axes], every: Sequence[Axes], time_axis: TimeAxis) -> None:
    """Breaks the time label into lines until it fits its column, which matplotlib's layout does not ensure."""
    starts = [int(span.colspan.start) for _, span in spans_of(every)]
    if not any(starts) or len(time_axis.label) <= SHORT:
        return
    compute_layout(figure)
    boxes: list[Any] = [ax.get_tightbbox() for ax in every]
    borders = {first: min(box.x0 for box, start in zip(boxes, starts, strict=True) if start == first) for first in starts if first}
    room = []
    for ax, span in spans_of(lowest):
        low, high = borders.get(span.colspan.start, 0.0), borders.get(span.colspan.stop, figure.bbox.x1)
        box = ax.get_window_extent()
        middle = (box.x0 + box.x1) / 2
        room.append(2 * min(middle - low, high - middle))
    for letters in range(TITLE, 5, -2):  # of all columns alike
        for ax in lowest:
            ax.set_xlabel(balanced(time_axis.label, letters))
        if all(ax.xaxis.label.get_window_extent().width < width for ax, width in zip(lowest, room, strict=True)):
            break


def share_axes(axes: list[Axes]) -> None:
    """Removes labels of axes that the panel below, or to the left, has too."""
    for ax, span in spans_of(axes) if len(axes) > 1 else ():
        if has_below(span, axes):
            ax.set_xlabel("")
        left = any(other.rowspan == span.rowspan and other.colspan.stop <= span.colspan.start for _, other in spans_of(axes))
        # all panels have the same label beside them
        if left and len({other.get_ylabel() for other in axes if other is ax or other.get_ylabel()}) == 1:
            ax.set_ylabel("")
