"""What commands print: text in 80 columns, numbers and shapes, and a line of progress on a terminal."""

import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, Self

import click

from odesim.base.errors import escaped

WIDTH = 79
GAP = "  "
GLUE = "\N{NO-BREAK SPACE}"  # a space at which no line is broken; printed as an ordinary space


def echo(text: str, *, nl: bool = True) -> None:
    """Prints text to stdout, with control characters escaped. nl: with a line end."""
    click.echo(escaped(text), nl=nl)


def table(rows: Iterable[Sequence[str]], header: Sequence[str] = (), *, indent: str = "  ", right: Sequence[int] = ()) -> str:
    """A table as text: aligned columns, the last one wrapped at WIDTH. right: columns aligned to the right."""
    body = [tuple(escaped(str(text), GLUE) for text in row) for row in rows]
    lines_of_cells = [tuple(header), *body] if header else body
    if not lines_of_cells:
        return ""
    last = len(lines_of_cells[0]) - 1
    widths = [max(len(row[i]) for row in lines_of_cells) for i in range(last)]
    room = WIDTH - len(indent) - sum(w + len(GAP) for w in widths)
    lines = []
    for row in lines_of_cells:
        cells = [text.rjust(w) if i in right else text.ljust(w) for i, (text, w) in enumerate(zip(row, widths, strict=False))]
        start = indent + "".join(cell + GAP for cell in cells)
        lines += wrap(row[last], max(room, 20), start)
    return "\n".join(lines)


def file_rows(stored: Path | None, drawn: Path | None) -> list[tuple[str, str]]:
    """Rows of a table on the files that a command wrote."""
    return [(name, str(path)) for name, path in (("stored", stored), ("drawn", drawn)) if path]


def wrap(text: str, room: int, start: str) -> list[str]:
    """Lines of text with at most `room` characters each: the first after `start`, the others indented. No break at GLUE."""
    pieces = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
    lines = [(start + pieces[0]).rstrip(), *(" " * len(start) + piece for piece in pieces[1:])]
    return [line.replace(GLUE, " ") for line in lines]


def wrap_paragraph(text: str, indent: str = "") -> str:
    """text wrapped at WIDTH, every line indented."""
    return textwrap.fill(" ".join(text.split()), WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def wrap_formula(text: str) -> str:
    """A formula in indented lines of at most WIDTH, broken after spaces, * and / outside [brackets]; further lines more than the first."""
    pieces, depth = [""], 0
    for character in text:
        pieces[-1] += character
        depth += (character == "[") - (character == "]")
        if depth == 0 and character in " */":
            pieces.append("")
    lines = ["  "]
    for piece in pieces:
        if len((lines[-1] + piece).rstrip()) > WIDTH and lines[-1].strip():
            lines.append("      ")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def number_text(value: Any) -> str:
    """A number as text with six digits."""
    return f"{value + 0.0:.6g}"  # of -0.0: 0


def shape_text(shape: Sequence[Any]) -> str:
    """A shape as text: `(3, 4)`, or an empty string for a number."""
    return f"({', '.join(map(str, shape))})" if shape else ""


def bytes_text(size: int) -> str:
    """A number of bytes as text: `1.5 MB`."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.3g} {unit}" if unit != "B" else f"{size} B"


BAR = 20  # characters
FIRST, AGAIN = 0.5, 0.1  # s: a short run shows nothing; at most ten lines a second
LONG = 2.0  # s of compiling that a person notices


class Progress:
    """Call it with the fraction done; used as a context, it wipes its line at the end, and says what compiling took if that was long.

    About how long the rest takes follows from what is done since the first call: before it, a run is read and compiled.
    """

    first, began = -1.0, 0.0

    def __init__(self, label: str, watched: bool | None = None) -> None:
        label = escaped(label, "")
        self.label = label if len(label) <= 30 else f"...{label[-27:]}"
        self.watched = sys.stderr.isatty() if watched is None else watched
        self.start = time.monotonic()
        self.next = self.start + FIRST
        self.width = 0
        self.line = self.covered = ""
        self.compiled = 0.0  # s

    def __enter__(self) -> Self:
        from odesim.targets.native import WATCHERS

        self._show(f"{self.label}: starting")
        WATCHERS.append(self.built)
        return self

    def __exit__(self, *_: object) -> None:
        from odesim.targets.native import WATCHERS

        WATCHERS.remove(self.built)
        self._show("")
        if self.watched:
            note = f"{self.label}: compiled in {self.compiled:.0f} s, kept for later runs\n" if self.compiled >= LONG else ""
            print(f"\r{note}", end="", file=sys.stderr, flush=True)

    def built(self, seconds: float | None) -> None:
        """Says that machine code is built, from None to the seconds that it took: no other line comes before it is there."""
        if seconds is None:
            self.covered = self.line
            self._show(f"{self.label}: compiling")
        else:
            self.compiled += seconds
            self._show(self.covered)

    def __call__(self, fraction: float) -> None:
        """Shows the fraction (0 to 1) done, the time it took and about how long the rest takes."""
        now = time.monotonic()
        if self.first < 0:
            self.first, self.began, self.next = fraction, now, now + FIRST
        if not self.watched or now < self.next:
            return
        self.next = now + AGAIN
        rate = (fraction - self.first) / (now - self.began)
        left = f", about {duration((1 - fraction) / rate)} left" if rate > 0 else ""
        self._show(f"{self.label}: {100 * min(max(fraction, 0.0), 1.0):5.1f} %, {duration(now - self.start)}{left}")

    def _show(self, line: str) -> None:
        """Writes the line over the last one."""
        if self.watched:
            print("\r" + line.ljust(self.width), end="", file=sys.stderr, flush=True)
            self.line, self.width = line, max(self.width, len(line))


class Counter(Progress):
    """A bar that counts things done, out of how many, with about the time that the rest takes: a resumed run has not done the first now."""

    def count(self, done: int, total: int, state: Callable[[], str], unit: str = "") -> None:
        """Shows the line, ten times a second at most, with what state() says; unit: of what a rate is shown, else the time spent."""
        now = time.monotonic()
        if self.first < 0:
            self.first, self.began = done, now
        if not self.watched or now < self.next:
            return
        self.next = now + AGAIN
        rate = (done - self.first) / (now - self.began) if done > self.first else 0.0
        line = [f"{done}/{total}", state()]
        if not unit:
            line.append(duration(now - self.start))
        elif rate:
            line.append(f"{thousands(rate)} {unit}/s")
        if rate:
            line.append(f"about {duration((total - done) / rate)} left")
        text = ", ".join(line)
        # a line that is wider than the terminal could not be written over
        room = get_terminal_size().columns - len(self.label) - 5
        text = text if len(text) < room else text.replace(", about ", ", ")
        size = min(BAR, room - len(text))
        bar = f"[{('#' * (size * done // total)).ljust(size, '.')}] " if size > 0 else ""
        self._show(f"{self.label} {bar}{text}")


def thousands(rate: float) -> str:
    """950, 22.8k or 1.3M."""
    return f"{rate:.3g}" if rate < 999.5 else f"{rate / 1e3:.3g}k" if rate < 999.5e3 else f"{rate / 1e6:.3g}M"


def duration(seconds: float) -> str:
    """45 s, 12 min or 3.5 h."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
