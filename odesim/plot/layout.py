"""The places of panels in a figure: rows and columns, the time label below, a colour bar above; or axes that the user gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from odesim.base.errors import ParamError, counted
from odesim.inputs.registry import summary
from odesim.plot.header import add_header, balanced
from odesim.plot.labels import EndLabels, place_labels, set_intervals
from odesim.plot.scales import TimeAxis
from odesim.plot.style import PAGE, WIDTH, compute_layout, new_figure, root_figure

ALONE, BESIDE, STACKED, ROW, LOW, BAR = 46.0, 36.0, 19.0, 26.0, 20.0, 6.0
# heights in mm: a single panel, one of a row, of a stack, of a grid, of a grid of many or above others; a colour bar
STRIP = 24.0, 34.0  # the least and the largest height of a strip of maps in mm
HEAD = 16.0  # mm: title, a line below it, and two of notes, or a legend
SHARES = 1, 1  # widths of a block and of the one beside it
BLOCK = 1000  # more than the rows of a block
FOOT = 7.0  # mm: the time label
TITLE, SHORT = 42, 12  # letters that fit across the picture, and surely under one of two columns
Cell = tuple[Any, Any]
"""(rows, columns) of a panel in a block."""


@dataclass(frozen=True)
class Block:
    """Rows of a page with columns of their own: heights in mm, the cells of its panels, relative widths of its columns.

    beside: a block of the same height at its right, whose labels and colour bars take no room from its panels.
    """

    heights: Sequence[float]
    cells: Sequence[Cell]
    widths: Sequence[float] = (1, 1)
    beside: "Block | None" = None


def add_panels(*blocks: Block, width: float | None = None) -> list[Axes]:
    """Axes of a new figure in blocks one above the other, last those beside; width in mm, None: of a page that is wider than high.

    The labels beside the panels of a block take no room from those of another one.
    """
    totals = [sum(block.heights) for block in blocks if block.cells]
    blocks = tuple(block for block in blocks if block.cells)
    high = sum(totals) + FOOT
    figure = new_figure(high, width=width or (WIDTH if high + HEAD <= WIDTH else PAGE))
    # a grid with finer columns would not do: matplotlib makes all columns inside a panel as wide as the widest label
    alone = len(blocks) == 1 and not blocks[0].beside
    rows: Any = None if alone else figure.add_gridspec(len(blocks), 2, height_ratios=totals, width_ratios=SHARES)
    axes, beside = list[Axes](), list[Axes]()
    for k, left in enumerate(blocks):
        for block, columns, found in ((left, 0 if left.beside else slice(0, 2), axes), (left.beside, 1, beside)):
            if block:
                make: Any = figure.add_gridspec if alone else rows[k, columns].subgridspec
                grid = make(len(block.heights), len(block.widths), height_ratios=block.heights, width_ratios=block.widths)
                found += [figure.add_subplot(grid[cell]) for cell in block.cells]
    return [*axes, *beside]


def row_heights(maps: Sequence[bool], columns: int = 2, height: float = ROW) -> list[float]:
    """Heights in mm of the rows of cells_in_rows. maps: which panels need space for a colour bar."""
    rows = [row for row, _ in cells_in_rows(len(maps), columns)]
    return [height + BAR * any(bar for bar, place in zip(maps, rows, strict=True) if place == row) for row in dict.fromkeys(rows)]


def panels_and_tables(maps: Sequence[bool], tables: Sequence[float] = (), ax: Axes | None = None) -> tuple[list[Axes], list[Axes]]:
    """(axes, axes of tables): rows of two, of three above tables, and below them rows of two tables; or the user's Axes.

    maps: which panels need space for a colour bar; tables: heights in mm. Raises ParamError for the user's Axes and several panels.
    """
    n = len(maps)
    if ax is not None:
        if n + len(tables) != 1:
            raise ParamError(f"ax is one panel, and this picture has {counted(n, 'panel')}: choose one with var and index")
        return [ax] * n, [ax] * len(tables)
    columns = 3 if tables and (n > 4 or n == 3) else 2
    heights = [ALONE + BAR * maps[0]] if n == 1 and not tables else row_heights(maps, columns, LOW if tables or n > 4 else ROW)
    below = cells_in_rows(len(tables))
    deep = [max(h for h, (row, _) in zip(tables, below, strict=True) if row == k) for k in dict.fromkeys(row for row, _ in below)]
    axes = add_panels(Block(heights, cells_in_rows(n, columns), (1,) * columns), Block(deep, below))
    return axes[:n], axes[n:]


def cells_in_rows(n: int, columns: int = 2) -> list[tuple[int, slice]]:
    """(row, columns) of n panels in as few rows as hold them, about equally many in each; where all have as many, the last fills its row.

    So their edges are in line with those of other rows. Where a row has fewer, all panels have one size, and a place stays empty. Of two
    columns the first panel, which is a loss where there is one, fills the first row instead.
    """
    rows = -(-n // columns)
    if columns == 2 and n % 2:
        return [(0, slice(0, 2)), *((1 + k // 2, slice(k % 2, k % 2 + 1)) for k in range(n - 1))]
    counts = [n // rows + (row < n % rows) for row in range(rows)]
    end = columns if len(set(counts)) == 1 else 0
    return [(row, slice(k, end if k + 1 == count and end else k + 1)) for row, count in enumerate(counts) for k in range(count)]


def description(attributes: Mapping[str, Any]) -> str:
    """What the model of a result is, in prose for below the title: the first line of its file; empty where it has none."""
    return summary(str(attributes.get("model", "")), attributes)


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
    their own. about: a line of prose below the title.
    """
    figure, ends = root_figure([*axes, *beside][0]), [label for label in labels if label]
    if ax is not None:
        if time_axis:
            ax.set_xlabel(time_axis.label)
        for label in ends:
            label.gather().place()
        return figure
    for other in axes[1:] if time_axis else ():  # a window, and a page of html, zoom them together
        other.sharex(axes[0])
    lowest = label_time(axes, time_axis) if time_axis else []
    add_header(figure, *header, about=about)
    figure.align_ylabels(axes)
    laid_out = time_axis is not None and fit_time(figure, lowest, [*axes, *beside], time_axis)
    place_labels(figure, ends, laid_out=laid_out)
    return figure


def space_ticks(axes: Sequence[Axes], time_axis: TimeAxis) -> None:
    """Reduces the ticks of the time axes of two columns if tick labels have four digits or more and would touch."""
    if len(axes) > 1 and not time_axis.log and len(f"{time_axis.x[-1]:.0f}") > 3:
        for ax in axes:
            set_intervals(ax.xaxis, 3)


def label_time(axes: Sequence[Axes], time_axis: TimeAxis) -> list[Axes]:
    """Writes the time label under panels with none below; returns these. Rows that all have panels of their width below have no ticks'."""
    lowest = []
    for ax, span in spans_of(axes):
        ticks = ax.xaxis.get_major_locator()
        if time_axis.whole and isinstance(ticks, MaxNLocator):
            ticks.set_params(integer=True)  # there is no update 2.5
        if all(has_below(other, axes) for _, other in spans_of(axes) if other.rowspan == span.rowspan):
            ax.tick_params(axis="x", which="both", labelbottom=False)
        elif not any(is_over(span, other) for _, other in spans_of(axes)):
            ax.set_xlabel(balanced(time_axis.label, TITLE))
            lowest.append(ax)
    return lowest


@dataclass(frozen=True)
class Span:
    """Rows of a panel, counted over all blocks, and its columns in thousandths of the width."""

    rowspan: range
    colspan: range


def spans_of(axes: Sequence[Axes]) -> list[tuple[Axes, Span]]:
    """(axes, Span) of each panel."""
    return [(ax, span_of(ax)) for ax in axes]


def span_of(ax: Axes) -> Span:
    """The Span of a panel."""
    spec: Any = ax.get_subplotspec()
    top = spec.get_topmost_subplotspec()
    low, high = column_ends(spec)
    start, stop = column_ends(top) if top is not spec else (0.0, 1.0)
    first, last = (round(1000 * (start + (stop - start) * end)) for end in (low, high))
    before = BLOCK * top.rowspan.start if top is not spec else 0
    return Span(range(before + spec.rowspan.start, before + spec.rowspan.stop), range(first, last))


def column_ends(spec: Any) -> list[float]:
    """Where the columns of a place in a grid begin and end, in widths of the grid."""
    grid = spec.get_gridspec()
    ends = np.cumsum([0, *(grid.get_width_ratios() or [1] * grid.ncols)])
    return [float(ends[k] / ends[-1]) for k in (spec.colspan.start, spec.colspan.stop)]


def is_over(span: Span, other: Span) -> bool:
    """Whether the other panel lies below, in the columns of this one or in a later block."""
    columns = other.colspan.start < span.colspan.stop and span.colspan.start < other.colspan.stop
    later = other.rowspan.start // BLOCK > span.rowspan.start // BLOCK
    return later or (columns and other.rowspan.start >= span.rowspan.stop)


def has_below(span: Span, axes: Sequence[Axes]) -> bool:
    """Whether one of the axes has the columns of this span, and lies below it."""
    return any(other.colspan == span.colspan and other.rowspan.start >= span.rowspan.stop for _, other in spans_of(axes))


def fit_time(figure: Figure, lowest: Sequence[Axes], every: Sequence[Axes], time_axis: TimeAxis) -> bool:
    """Breaks the time label into lines until it fits its column, which matplotlib's layout does not ensure.

    Whether the layout is computed and holds: a label that fitted has not changed it.
    """
    starts = [int(span.colspan.start) for _, span in spans_of(every)]
    if not any(starts) or len(time_axis.label) <= SHORT:
        return False
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
            return letters == TITLE  # as label_time wrote it
    return False


def share_axes(axes: list[Axes]) -> None:
    """Removes labels of axes that the panel below, or to the left, has too."""
    for ax, span in spans_of(axes) if len(axes) > 1 else ():
        if has_below(span, axes):
            ax.set_xlabel("")
        left = any(other.rowspan == span.rowspan and other.colspan.stop <= span.colspan.start for _, other in spans_of(axes))
        # all panels have the same label beside them
        if left and len({other.get_ylabel() for other in axes if other is ax or other.get_ylabel()}) == 1:
            ax.set_ylabel("")
