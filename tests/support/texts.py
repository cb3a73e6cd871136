"""What a reader sees in a drawn figure: the words and where they lie, the notes, whether panels fill the grid."""

from itertools import combinations
from typing import Any

from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from odesim.plot.style import NOTE

SLACK = 1.0  # pixels of 400 to the inch: type has a margin of its own


def hidden_ticks(figure: Figure) -> set[Text]:
    """Labels of ticks outside the limits of their axis: they exist but are not drawn."""
    found: set[Text] = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            scaled: Any = axis.get_transform().transform
            low, high = sorted(scaled(axis.get_view_interval()))
            room = 1e-6 * (high - low)
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if not low - room <= scaled(tick.get_loc()) <= high + room:
                    found |= {tick.label1, tick.label2}
    return found


def drawn_texts(figure: Figure) -> list[tuple[str, Bbox]]:
    """Every word drawn and its box in pixels."""
    figure.draw_without_rendering()
    hidden = hidden_ticks(figure)
    texts = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip() and t not in hidden]
    return [(text.get_text(), text.get_window_extent()) for text in texts]


def clashes(figure: Figure, texts: list[tuple[str, Bbox]]) -> list[tuple[str, str]]:
    """Pairs of the drawn texts that overlap, and those that leave the figure (paired with `edge`)."""
    found = []
    for (one, a), (other, b) in combinations(texts, 2):
        width = min(a.x1, b.x1) - max(a.x0, b.x0)
        height = min(a.y1, b.y1) - max(a.y0, b.y0)
        if width > SLACK and height > SLACK:
            found.append((one, other))
    page = figure.bbox
    for text, box in texts:
        if box.x0 < -SLACK or box.y0 < -SLACK or box.x1 > page.x1 + SLACK or box.y1 > page.y1 + SLACK:
            found.append((text, "edge"))
    return found


def notes(figure: Figure) -> list[str]:
    """The notes under the title, each line of them."""
    return [line for text in figure.texts if text.get_fontsize() == NOTE for line in text.get_text().split("\n")]


def has_filled_rows(figure: Figure) -> bool:
    """Whether panels fill each row of their grid from the left, no cell twice; in a row with an empty place each is one cell wide."""
    panels: list[Any] = [axes.get_subplotspec() for axes in figure.axes if not str(axes.get_label()).startswith("<colorbar")]
    return all(_fill(grid, [span for span in panels if span.get_gridspec() is grid]) for grid in {span.get_gridspec() for span in panels})


def _fill(grid: Any, spans: list[Any]) -> bool:
    """Whether the panels of a grid do."""
    rows, columns = grid.get_geometry()
    cells = [sorted(column for span in spans if row in span.rowspan for column in span.colspan) for row in range(rows)]
    short = {row for row in range(rows) if len(cells[row]) < columns}
    return all(row and row == [*range(len(row))] for row in cells) and all(
        len(span.colspan) == 1 for span in spans if short.intersection(span.rowspan)
    )
