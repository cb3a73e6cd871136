"""Draws a matrix of a training, such as attention to tokens: the rows and columns with the largest entries, by their words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from odesim.base.arrays import Array
from odesim.plot.labels import symbol
from odesim.plot.panels import draw_cells
from odesim.plot.style import SMALL, can_draw, literal

ROWS, COLUMNS, PLAIN = 20, 24, 60  # largest numbers of rows, of columns, and of columns that are shown in their own order
LINE, BARE, LEAST, HEAD = 2.7, 1.4, 12.0, 9.0  # mm: a row with a name, or without, at least all rows, a colour bar with its label
LETTERS, LETTER = 14, 1.3  # of a name, longer ones are cut; mm of a letter


@dataclass(frozen=True)
class Table:
    """A matrix (m, n) to draw, its axes, and what is to be said above it. labels {axis: names of its places}."""

    name: str
    values: Array
    dims: tuple[str, str]
    when: str
    labels: Mapping[str, Any]

    def names(self, axis: int) -> list[str] | None:
        """Names of the places along an axis, None where there are none."""
        names = self.labels.get(self.dims[axis])
        return None if names is None or len(names) < self.values.shape[axis] else place_names(names)

    @property
    def chosen(self) -> tuple[Array, Array]:
        """(rows, columns) to draw: if there are many those with the largest entries, columns in the order of their rows."""
        size = np.nan_to_num(np.abs(self.values))
        rows = np.sort(np.argsort(-size.max(axis=1), kind="stable")[:ROWS])
        if self.values.shape[1] <= PLAIN and self.names(1) is None:
            return rows, np.arange(self.values.shape[1])
        size = size[rows]
        columns = np.argsort(-size.max(axis=0), kind="stable")[:COLUMNS]
        return rows, columns[np.lexsort((-size.max(axis=0)[columns], size.argmax(axis=0)[columns]))]

    @property
    def height(self) -> float:
        """The height of its panel in mm."""
        rows, columns = self.chosen
        left, below = self.places(0, rows), self.places(1, columns)
        return HEAD + max(LEAST, (LINE if left else BARE) * len(rows)) + (LETTER * max(map(len, below)) if below else 4.0) + 3.0

    def places(self, axis: int, chosen: Array) -> list[str] | None:
        """Labels of the chosen places along an axis: their names, or their numbers where they are only some; else None."""
        names = self.names(axis)
        if names:
            return [literal(names[i]) for i in chosen]
        return [str(i) for i in chosen] if len(chosen) < self.values.shape[axis] else None


def draw_table(axes: Axes, table: Table, *, log: bool = False) -> None:
    """Draws the matrix with row 0 on top, its rows and columns by name where they have names. log: logarithmic colours."""
    rows, columns = table.chosen
    part = " of ".join(map(str, (len(columns), table.values.shape[1])))
    said = f"{symbol(table.name, most=40)} {table.when}" + f", columns: the top {part}" * (len(columns) < table.values.shape[1])
    x, y = (np.arange(n + 1) - 0.5 for n in (len(columns), len(rows)))
    draw_cells(axes, x, y, np.ma.masked_invalid(table.values[np.ix_(rows, columns)]), said, colors_from=0.0 if log else None)
    label_places(axes, table)


def label_places(axes: Axes, table: Table) -> None:
    """Labels the chosen rows and columns of a table by name, or by number where only some are drawn, and its axes."""
    rows, columns = table.chosen
    for axis, places, number, angle in ((axes.yaxis, rows, 0, 0), (axes.xaxis, columns, 1, 90)):
        labels = table.places(number, places)
        if labels:
            axis.set_ticks(range(len(places)), labels, fontsize=SMALL, rotation=angle)
        else:
            axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=True))
    axes.set_ylabel(symbol(table.dims[0]))
    axes.set_xlabel(symbol(table.dims[1]))


def place_names(names: Sequence[str]) -> list[str]:
    """Names as they are drawn, cut where long; `#7` for the one at place 7 with letters that the font of pictures does not have."""
    return [short(str(name)) if can_draw(str(name)) else f"#{place}" for place, name in enumerate(names)]


def short(name: str) -> str:
    """A name of at most LETTERS letters."""
    return name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"
