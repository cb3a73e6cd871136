"""Where the panels of a page of html stand: as in the picture where there is room for them, on a phone one below the other."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from odesim.base.arrays import Array
from odesim.plot.formulas import words_of
from odesim.plot.header import balanced
from odesim.plot.layout import span_of
from odesim.plot.style import root_figure

PIXELS = 150.0  # of an inch: letters of 7 points have some 15
STRETCH, PHONE = 1.4, 360  # of panels where there is room for them; pixels of the narrowest window that has all
NARROWEST = 640  # pixels of the narrowest window with panels as in the picture
BAR = 30  # pixels above the picture, where plotly has its buttons
LETTER, LINE = 0.55, 1.3  # width and height of a letter, of its size
SAMPLE, ENTRY_TYPE, ENTRY = 45, 11, 24  # pixels of the sample, the letters and the height of an entry of a legend
LETTERS = int((PHONE - SAMPLE) / (LETTER * ENTRY_TYPE))  # of such an entry that fit a phone
TICKS, BETWEEN = 24, 14  # pixels below a panel and between two, one below the other
LAST = 10**6  # row of a panel without a place in a grid


@dataclass(frozen=True)
class Block:
    """A panel with the Axes that go where it goes: its colour bar, insets, twins; boxes in pixels of the figure, from below.

    numbers: of the Axes, its own first. boxes: of these. outer: with labels.
    """

    axes: Axes
    numbers: list[int]
    boxes: list[Bbox]
    outer: Bbox

    def ends(self, part: Bbox, panel: Bbox, dim: int) -> list[float]:
        """Where the ends of a box go if the panel goes to another place: inside in proportion, outside as far from its edge."""
        (low, high), (first, last) = panel.get_points()[:, dim], self.boxes[0].get_points()[:, dim]
        x: Array = part.get_points()[:, dim]
        inside = low + (x - first) * (high - low) / (last - first)
        return [float(end) for end in np.select([x < first, x > last], [x + low - first, x + high - last], inside)]


def blocks_of(every: list[Axes]) -> list[Block]:
    """The Blocks of a figure in order of reading."""
    scaled = [PIXELS / root_figure(axes).dpi for axes in every]
    inner = [Bbox(k * axes.get_window_extent().get_points()) for k, axes in zip(scaled, every, strict=True)]
    outer = [Bbox(k * (axes.get_tightbbox() or axes.get_window_extent()).get_points()) for k, axes in zip(scaled, every, strict=True)]
    first: dict[int, list[int]] = {}
    for k, (axes, box) in enumerate(zip(every, inner, strict=True)):
        if axes.get_label() != "<colorbar>" and not any(apart(inner[m], box) == 0 for m in first):
            first[k] = [k]
    for k, box in enumerate(inner):
        if k not in first:
            first[min(first, key=lambda m: apart(inner[m], box))].append(k)
    blocks = [Block(every[m], [k + 1 for k in p], [inner[k] for k in p], Bbox.union([outer[k] for k in p])) for m, p in first.items()]
    return sorted(blocks, key=cell_of)


def cell_of(block: Block) -> tuple[int, int]:
    """(row, column) where a panel begins in the grid of its figure; of one without, after all others."""
    if block.axes.get_subplotspec() is None:
        return LAST, 0
    span = span_of(block.axes)
    return span.rowspan.start, span.colspan.start


def apart(one: Bbox, other: Bbox) -> float:
    """How far two boxes are apart, 0 where they meet."""
    (low, high), (first, last) = one.get_points(), other.get_points()
    return float(np.maximum(0, np.maximum(low - last, first - high)).sum())


def arrangement(page: Any, heads: list[Any], blocks: list[Block], names: list[str], width: float, *, narrow: bool) -> dict[str, Any]:
    """What relayout takes: the places of Axes, words above them, and room between for the legend.

    width: of the figure, in pixels. names: in the legend.
    """
    width, panels = (PHONE, stacked(blocks)) if narrow else (STRETCH * width, beside(blocks))
    height = max((panel.y1 + block.outer.y1 - block.boxes[0].y1 for block, panel in zip(blocks, panels, strict=True)), default=1.0)
    places: dict[str, Any] = {}
    for block, panel in zip(blocks, panels, strict=True):
        for number, part in zip(block.numbers, block.boxes, strict=True):
            for dim, size in enumerate((width, height)):
                places[f"{axis_name('xy'[dim], number)}.domain"] = np.clip(np.divide(block.ends(part, panel, dim), size), 0, 1).tolist()
        x = axis_name("x", block.numbers[0])
        places[f"{x}.showticklabels"] = page["layout"][x]["showticklabels"] or (narrow and bool(page["layout"][x]["ticks"]))
    top, tops = float(BAR), list[float]()
    for k, text in enumerate(heads):
        size = float(text.get_fontsize()) * PIXELS / 72
        lines = [balanced(line, int(width / (LETTER * size))) for line in (text.get_label() or text.get_text()).split("\n")]
        places[f"annotations[{k}].text"] = words_of("\n".join(lines))
        tops.append(top)
        top += LINE * size * len("\n".join(lines).split("\n"))
    top += BETWEEN + legend_height(names, PHONE if narrow else NARROWEST)
    places |= {f"annotations[{k}].yshift": top - y for k, y in enumerate(tops)}
    return places | {"margin.t": top, "margin.b": 0, "height": height + top}


def legend_height(names: list[str], width: float) -> float:
    """Pixels that the entries of a legend take in a window as wide, at most. names: in html."""
    lines = [[re.sub("<[^>]*>", "", line) for line in name.split("<br>")] for name in names]
    widest = max((SAMPLE + LETTER * ENTRY_TYPE * len(line) for entry in lines for line in entry), default=width)
    rows = -(-len(names) // max(int(width / widest), 1))
    return rows * max((ENTRY + (len(entry) - 1) * LINE * ENTRY_TYPE for entry in lines), default=0.0)


def axis_name(letter: str, number: int) -> str:
    """The name of an axis in a layout."""
    return f"{letter}axis{number if number > 1 else ''}"


def beside(blocks: list[Block]) -> list[Bbox]:
    """The boxes of panels as in the picture, larger."""
    foot = min((block.outer.y0 for block in blocks), default=0.0)
    return [Bbox(STRETCH * (block.boxes[0].get_points() - (0, foot))) for block in blocks]


def stacked(blocks: list[Block]) -> list[Bbox]:
    """The boxes of panels one below the other, in a window as wide as a phone; one whose axes have one unit keeps its form."""
    boxes, y = [], 0.0
    left = max((min(block.boxes[0].x0 - block.outer.x0, PHONE / 5) for block in blocks), default=0.0)
    for block in reversed(blocks):
        inner, outer = block.boxes[0], block.outer
        low, high = max(left, inner.x0 - outer.x0), PHONE - max(outer.x1 - inner.x1, TICKS / 2)
        y += max(inner.y0 - outer.y0, TICKS)
        height = inner.height * ((high - low) / inner.width if block.axes.get_aspect() != "auto" else 1)
        boxes.append(Bbox([[low, y], [high, y + height]]))
        y += height + outer.y1 - inner.y1 + BETWEEN
    return boxes[::-1]
