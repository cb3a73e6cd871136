"""Plain tables for people, in 80 columns."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import click

from odesim.errors import escaped

WIDTH = 79
GAP = "  "
GLUE = "\N{NO-BREAK SPACE}"  # a space where no line is broken; printed as a plain one


def echo(text: str, *, nl: bool = True) -> None:
    """Prints text on stdout; what a terminal would act on is escaped, whoever the text is from."""
    click.echo(escaped(text), nl=nl)


def table(rows: Iterable[Sequence[str]], header: Sequence[str] = (), *, indent: str = "  ", right: Sequence[int] = ()) -> str:
    """Lines of aligned columns; the last one wraps at WIDTH. right: columns that end flush, for numbers."""
    body = [tuple(escaped(str(text), GLUE) for text in row) for row in rows]
    every = [tuple(header), *body] if header else body
    if not every:
        return ""
    last = len(every[0]) - 1
    widths = [max(len(row[i]) for row in every) for i in range(last)]
    room = WIDTH - len(indent) - sum(w + len(GAP) for w in widths)
    lines = []
    for row in every:
        cells = [text.rjust(w) if i in right else text.ljust(w) for i, (text, w) in enumerate(zip(row, widths, strict=False))]
        start = indent + "".join(cell + GAP for cell in cells)
        lines += wrap(row[last], max(room, 20), start)
    return "\n".join(lines)


def wrap(text: str, room: int, start: str) -> list[str]:
    """text in lines of at most room characters: the first after start, the others below it. No break at GLUE."""
    pieces = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
    lines = [(start + pieces[0]).rstrip(), *(" " * len(start) + piece for piece in pieces[1:])]
    return [line.replace(GLUE, " ") for line in lines]


def wrap_paragraph(text: str, indent: str = "") -> str:
    """text wrapped at WIDTH, every line after indent."""
    return textwrap.fill(" ".join(text.split()), WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def wrap_formula(text: str, first: str = "  ", rest: str = "      ") -> str:
    """text in lines of at most WIDTH, the first after first, the others after rest; broken after spaces, * and /, outside [brackets]."""
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
    """A number with six digits."""
    return f"{value:.6g}"


def shape_text(shape: Sequence[Any]) -> str:
    """(3, 4); nothing for a number."""
    return f"({', '.join(map(str, shape))})" if shape else ""


def bytes_text(size: int) -> str:
    """A count of bytes for people."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.3g} {unit}" if unit != "B" else f"{size} B"
