"""Words around a picture: a title with a line below it and a legend above the panels, notes below them; broken to the width of the page."""

import re
from collections.abc import Sequence
from html import unescape
from textwrap import fill
from typing import Any

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text

from odesim.plot.formulas import typeset, words_of
from odesim.plot.style import LARGE, NORMAL, NOTE, WIDTH, root_figure

PAUSE = re.compile("([,:;] )")
TOGETHER = 58  # letters of two notes or more in one line
FORMULA = re.compile(r"(?<!\\)\$.*?(?<!\\)\$")
FIRST, NEXT = "\ue000", "\ue001"  # letters of no text, which stand for those of a formula while lines are broken
STANDS = re.compile(f"{FIRST}(?:\n?{NEXT})*")
TAG = re.compile("<[^>]*>")
LETTERS = 80  # of a line: more do not fit across 80 mm
SPACING = 1.3  # of lines, in heights of the type
EDGE, BETWEEN, MARGIN = 0.6, 1.0, 1.5  # mm above the title, between the parts, and beside the legend


# matplotlib reserves no room for a title of several lines beside a legend outside of the panels: so their heights are added up here
def add_header(
    figure: Figure, title: str, notes: Sequence[str] = (), handles: Sequence[Artist] = (), *, about: str = "", last: str = ""
) -> None:
    """Writes a title and a legend of handles above the panels, and notes below them. The figure grows by their height.

    Short notes share a line; about: a line of prose below the title, whose mathematics is drawn as formulas. last: a line that
    changes from frame to frame, below the title, and so are the notes then.

    title and notes are plain text, except for formulas that odesim made of names; notes are broken into lines.
    """
    head = figure.suptitle(title, y=1.0, va="top", linespacing=SPACING)
    head.set_label(title)  # unbroken: a page of html has lines of another width
    fit_line(head)
    lines = in_lines(notes, figure.get_figwidth() * 25.4)
    above, below = ([*lines, last], []) if last else ([typeset(about)] * bool(about), lines)
    top, foot = (small_text(figure, words, va) for words, va in ((above, "top"), (below, "bottom")))
    for text in filter(None, (top, foot)):
        text.set_text(shortened(text) if text is top and not last else text.get_text())
        break_to_width(text)
    legend = make_legend(figure, handles) if handles else None
    below_title = EDGE + height_of(head)
    below_words = below_title + height_of(top)
    panels = below_words + (BETWEEN + size_of(legend)[1] if legend else 0.0) + BETWEEN
    end = EDGE + height_of(foot) + BETWEEN if foot else 0.0
    total = figure.get_figheight() * 25.4 + panels + end
    figure.set_figheight(total / 25.4)
    head.set_y(1 - EDGE / total)
    if top:
        top.set_y(1 - below_title / total)
    if foot:
        foot.set_y(EDGE / total)
    if legend:
        legend.set_bbox_to_anchor((0.5, 1 - (below_words + BETWEEN) / total), transform=figure.transFigure)
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, end / total, 1, 1 - (panels + end) / total))


def small_text(figure: Figure, lines: Sequence[str], place: Any) -> Text | None:
    """Lines in small type in the middle of the figure; None without any."""
    if not lines:
        return None
    text = figure.text(0.5, 0.5, "\n".join(lines), fontsize=NOTE, ha="center", va=place, linespacing=SPACING)
    text.set_label(text.get_text())
    return text


def in_lines(notes: Sequence[str], width: float = WIDTH) -> list[str]:
    """The notes, short ones together in a line, the first that has room. width: of the figure in mm."""
    lines: list[str] = []
    for note in notes:
        free = [
            k for k, line in enumerate(lines) if "\n" not in note and letter_count(line) + letter_count(note) <= TOGETHER * width / WIDTH
        ]
        if free:
            lines[free[0]] += f"; {note}"
        else:
            lines.append(note)
    return lines


def letter_count(text: str) -> int:
    """The number of letters that are drawn of the last line of a text: of formulas those without their marks."""
    return len(unescape(TAG.sub("", words_of(text.rpartition("\n")[2]))))


def hide_formulas(text: str) -> tuple[str, list[str]]:
    """(text, formulas): each formula as so many letters, without a space, as are drawn of it."""
    return FORMULA.sub(lambda found: FIRST + NEXT * (letter_count(found[0]) - 1), text), FORMULA.findall(text)


def show_formulas(text: str, formulas: Sequence[str]) -> str:
    """A text of hide_formulas, or its first part, with the formulas."""
    rest = iter(formulas)
    return STANDS.sub(lambda _: next(rest), text)


def break_to_width(text: Text) -> None:
    """Breaks the lines of a text so that they fit into the width of its figure."""
    figure = root_figure(text)
    lines = text.get_text().split("\n")
    room = figure.bbox.width - 2 * MARGIN / 25.4 * figure.dpi
    for letters in range(int(LETTERS * figure.get_figwidth() * 25.4 / WIDTH), 5, -2):
        if text.get_window_extent().width <= room:
            break
        text.set_text("\n".join(balanced(line, letters) for line in lines))


def balanced(line: str, most: int) -> str:
    """A line broken into as few lines of at most so many letters as hold it, about equally long: no word is left alone below.

    A formula stays in one piece, and counts as many letters as are drawn of it.
    """
    words, formulas = hide_formulas(line)
    count, longest = fill(words, most).count("\n"), max(map(len, words.split()), default=0)  # no word is cut
    while count and most > longest and fill(words, most - 1).count("\n") == count:
        most -= 1
    return show_formulas(fill(words, most), formulas)


def shortened(text: Text) -> str:
    """The words of a text up to the last comma, colon or semicolon up to which they fit into one line of its figure."""
    figure = root_figure(text)
    room = figure.bbox.width - 2 * MARGIN / 25.4 * figure.dpi
    words, formulas = hide_formulas(text.get_text())
    while text.get_window_extent().width > room and (parts := PAUSE.split(words))[1:]:
        words = "".join(parts[:-2])
        text.set_text(show_formulas(words, formulas))
    return text.get_text()


def fit_line(text: Text) -> None:
    """Makes the type of a title smaller, and then cuts its beginning, until it fits into one line of its figure: paths end in names."""
    figure = root_figure(text)
    room = figure.bbox.width - 2 * MARGIN / 25.4 * figure.dpi
    words = text.get_text()
    for size in (LARGE, NORMAL, NOTE):
        text.set_fontsize(size)
        if text.get_window_extent().width <= room:
            return
    for cut in range(4, len(words) if "$" not in words.replace(r"\$", "") else 0, 2):
        text.set_text("…" + words[cut:].removeprefix("$"))
        if text.get_window_extent().width <= room:
            return
    break_to_width(text)


def make_legend(figure: Figure, handles: Sequence[Artist]) -> Legend:
    """The legend with as few rows as fit into the width of the figure; an entry that is wider has several lines."""
    room = figure.get_figwidth() * 25.4 - 2 * MARGIN
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(handles=handles, loc="upper center", ncols=columns, columnspacing=1.2, borderpad=0, borderaxespad=0)
        if size_of(legend)[0] < room or columns == 1:
            break
        legend.remove()
    words = [text.get_text() for text in legend.get_texts()]
    for letters in range(int(LETTERS * figure.get_figwidth() * 25.4 / WIDTH), 5, -2):
        if size_of(legend)[0] < room:
            break
        for text, whole in zip(legend.get_texts(), words, strict=True):
            text.set_text(balanced(whole, letters))
    return legend


def size_of(legend: Legend) -> tuple[float, float]:
    """(width, height) of a legend in mm."""
    box, dpi = legend.get_window_extent(), root_figure(legend).dpi
    return box.width / dpi * 25.4, box.height / dpi * 25.4


def height_of(text: Text | None) -> float:
    """The height in mm of the lines of a text; 0 without one."""
    if text is None or not text.get_text():
        return 0.0
    return SPACING * float(text.get_fontsize()) * (1 + text.get_text().count("\n")) / 72 * 25.4
