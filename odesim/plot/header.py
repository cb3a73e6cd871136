"""The head of a picture: a title, notes in smaller type, a legend; the figure grows by its height."""

from collections.abc import Sequence
from textwrap import fill
from typing import Any

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from odesim.plot.style import LARGE, NOTE, WIDTH

LETTERS, NOTE_LETTERS = 42, 54  # that fit across 80 mm, in the title and in a note
SPACING = 1.3  # of lines, in heights of the type
EDGE, GAP, MARGIN = 0.6, 1.0, 1.5  # mm above the title, between the parts, and beside the legend


def add_header(figure: Figure, title: str, notes: Sequence[str] = (), handles: Sequence[Artist] = ()) -> None:
    """Writes a title, notes in smaller type and a legend of handles above the panels. The figure grows by their height.

    title and notes are plain text, except for formulas that odesim made of names, and are broken into lines.
    """
    width = figure.get_figwidth() * 25.4 / WIDTH
    lines = "\n".join(fill(line, int(LETTERS * width)) for line in title.split("\n"))
    small = "\n".join(fill(note, int(NOTE_LETTERS * width)) for note in notes)
    legend = make_legend(figure, handles) if handles else None
    below_title = EDGE + height_of(lines, LARGE)
    below_notes = below_title + (height_of(small, NOTE) if small else 0.0)
    panels = below_notes + (GAP + size_of(legend)[1] if legend else 0.0) + GAP
    total = figure.get_figheight() * 25.4 + panels
    figure.set_figheight(total / 25.4)
    figure.suptitle(lines, y=1 - EDGE / total, va="top", linespacing=SPACING)
    if small:
        figure.text(0.5, 1 - below_title / total, small, fontsize=NOTE, ha="center", va="top", linespacing=SPACING)
    if legend:
        legend.set_bbox_to_anchor((0.5, 1 - (below_notes + GAP) / total), transform=figure.transFigure)
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, 0, 1, 1 - panels / total))


def make_legend(figure: Figure, handles: Sequence[Artist]) -> Legend:
    """The legend with as few rows as fit into the width of the figure."""
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(handles=handles, loc="upper center", ncols=columns, columnspacing=1.2, borderpad=0, borderaxespad=0)
        if size_of(legend)[0] < figure.get_figwidth() * 25.4 - 2 * MARGIN or columns == 1:
            break
        legend.remove()
    return legend


def size_of(legend: Legend) -> tuple[float, float]:
    """(width, height) of a legend in mm."""
    figure: Any = legend.get_figure(root=True)
    box = legend.get_window_extent(figure.canvas.get_renderer())
    return box.width / figure.dpi * 25.4, box.height / figure.dpi * 25.4


def height_of(text: str, size: float) -> float:
    """The height in mm of lines of text with this size in points."""
    return SPACING * size * (1 + text.count("\n")) / 72 * 25.4
