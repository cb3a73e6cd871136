"""Docstrings are plain text in sections of numpydoc: their stars and bars are no markup, single backticks are code."""

import re
from itertools import groupby, zip_longest
from typing import Any

from sphinx.application import Sphinx

EXAMPLES = "Examples"
FOLDED = ("Other Parameters", "Notes")  # what few readers look for: an entry fits on a screen, and all of it is a click away
CODE = re.compile(r"(`+)(.+?)\1")


def to_markup(line: str) -> str:
    """A line of a docstring as reStructuredText."""
    parts, last = [], 0
    for found in CODE.finditer(line):
        parts += [escape(line[last : found.start()]), f"``{found[2]}``"]
        last = found.end()
    return "".join([*parts, escape(line[last:])])


def escape(text: str) -> str:
    """text without markup: stars, bars and underscores at the end of a word stand for themselves."""
    return re.sub(r"([*|\\]|_(?!\w))", r"\\\1", text)


def process(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Rewrites the lines of a docstring in place: a section of numpydoc is a field, or folded, its entries are a list of definitions."""
    out: list[str] = []
    inside = ""
    for line, below in zip_longest(lines, lines[1:], fillvalue=""):
        if below and not below.strip("-") and line:
            inside = line
            out += ["", f".. dropdown:: {line}" if line in FOLDED else f":{line}:", ""]
        elif line.strip("-") or not line:
            out.append(
                ("    " if inside else "") + (line if line.lstrip().startswith((">>>", "...")) or EXAMPLES in inside else to_markup(line))
            )
    lines[:] = out


def without_private(app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: Any) -> Any:
    """(signature, what is returned) without the arguments that begin with _; None, as it is, where there is no signature."""
    return signature and (re.sub(r", _\w+(=[^,)]+)?", "", signature), returns)


def process_help(app: Sphinx, context: Any, lines: list[str]) -> None:
    """Rewrites the lines of a help page in place: bars and stars are no markup, lines with a bar in front are printed as they are."""
    out: list[str] = []
    for barred, group in groupby(lines, key=lambda line: line.startswith("| ")):
        block = list(group)
        out += (
            [".. code-block:: text", "", *(f"    {line[2:]}" for line in block), ""]
            if barred
            else [line if line.startswith(".. option::") else re.sub(r"([|*])", r"\\\1", line) for line in block]
        )
    lines[:] = out


def no_arguments(app: Sphinx, context: Any, lines: list[str]) -> None:
    """Leaves the list of arguments out, in place: the usage and the text have them."""
    lines.clear()


def setup(app: Sphinx) -> dict[str, Any]:
    """Connects to autodoc."""
    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-process-signature", without_private)
    for part in ("description", "options", "epilog"):
        app.connect(f"sphinx-click-process-{part}", process_help)
    app.connect("sphinx-click-process-arguments", no_arguments)
    return {"parallel_read_safe": True}
