"""The head of a picture: a title, notes in smaller type, a legend; the figure grows by its height."""

import re
from collections.abc import Sequence
from textwrap import fill
from typing import Any

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text

from odesim.plot.style import NOTE, WIDTH

TOGETHER = 58  # letters of two notes or more in one line
MARKUP = re.compile(r"\\[a-z]+|[${}_^\\]")
LETTERS = 80  # of a line: more do not fit across 80 mm
SPACING = 1.3  # of lines, in heights of the type
EDGE, GAP, MARGIN = 0.6, 1.0, 1.5  # mm above the title, between the parts, and beside the legend


def add_header(figure: Figure, title: str, notes: Sequence[str] = (), handles: Sequence[Artist] = (), *, last: str = "") -> None:
    """Writes a title, notes in smaller type and a legend of handles above the panels. The figure grows by their height.

    Short notes share a line; last: a note with a line of its own below them.

    title and notes are plain text, except for formulas that odesim made of names, and are broken into lines.
    """
    head = figure.suptitle(title, y=1.0, va="top", linespacing=SPACING)
    small = figure.text(
        0.5, 0.5, "\n".join([*in_lines(notes), *[last] * bool(last)]), fontsize=NOTE, ha="center", va="top", linespacing=SPACING
    )
    for text in (head, small):
        break_to_width(text)
    legend = make_legend(figure, handles) if handles else None
    below_title = EDGE + height_of(head)
    below_notes = below_title + height_of(small)
    panels = below_notes + (GAP + size_of(legend)[1] if legend else 0.0) + GAP
    total = figure.get_figheight() * 25.4 + panels
    figure.set_figheight(total / 25.4)
    head.set_y(1 - EDGE / total)
    small.set_y(1 - below_title / total)
    if legend:
        legend.set_bbox_to_anchor((0.5, 1 - (below_notes + GAP) / total), transform=figure.transFigure)
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, 0, 1, 1 - panels / total))


def in_lines(notes: Sequence[str]) -> list[str]:
    """The notes, short ones together in a line."""
    lines: list[str] = []
    for note in notes:
        if lines and "\n" not in note and letter_count(lines[-1]) + letter_count(note) <= TOGETHER:
            lines[-1] += f"; {note}"
        else:
            lines.append(note)
    return lines


def letter_count(text: str) -> int:
    """The number of letters of the last line of a text, without the marks of formulas."""
    return len(MARKUP.sub("", text.rpartition("\n")[2]))


def break_to_width(text: Text) -> None:
    """Breaks the lines of a text so that they fit into the width of its figure."""
    figure: Any = text.get_figure(root=True)
    lines = text.get_text().split("\n")
    room = figure.bbox.width - 2 * MARGIN / 25.4 * figure.dpi
    for letters in range(int(LETTERS * figure.get_figwidth() * 25.4 / WIDTH), 5, -2):
        if text.get_window_extent(figure.canvas.get_renderer()).width <= room:
            break
        text.set_text("\n".join(fill(line, letters) for line in lines))


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


def height_of(text: Text) -> float:
    """The height in mm of the lines of a text."""
    lines = text.get_text()
    return SPACING * float(text.get_fontsize()) * (1 + lines.count("\n")) / 72 * 25.4 if lines else 0.0
