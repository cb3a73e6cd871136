"""Text tables in 80 columns, and formats of numbers and shapes."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

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


def wrap(text: str, room: int, start: str) -> list[str]:
    """Lines of text with at most `room` characters each: the first after `start`, the others indented. No break at GLUE."""
    pieces = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
    lines = [(start + pieces[0]).rstrip(), *(" " * len(start) + piece for piece in pieces[1:])]
    return [line.replace(GLUE, " ") for line in lines]


def wrap_paragraph(text: str, indent: str = "") -> str:
    """text wrapped at WIDTH, every line indented."""
    return textwrap.fill(" ".join(text.split()), WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def wrap_formula(text: str, first: str = "  ", rest: str = "      ") -> str:
    """A formula in lines of at most WIDTH, broken after spaces, * and / outside [brackets]. first, rest: indents of lines."""
    pieces, depth = [""], 0
    for character in text:
        pieces[-1] += character
        depth += (character == "[") - (character == "]")
        if depth == 0 and character in " */":
            pieces.append("")
    lines = [first]
    for piece in pieces:
        if len((lines[-1] + piece).rstrip()) > WIDTH and lines[-1].strip():
            lines.append(rest)
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
