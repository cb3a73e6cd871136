"""A line of code is an element of its own, so that what goes on below in a narrow window is indented (`.line` of odesim.css).

Nor does a line end inside a word such as `--plot` or `docs/index`: nothing breaks after a `.joint`.
"""

import re
from collections.abc import Iterator
from typing import Any

from pygments.formatters import HtmlFormatter
from sphinx.application import Sphinx
from sphinx.highlighting import PygmentsBridge


class LineFormatter(HtmlFormatter):  # type: ignore[type-arg]
    """HtmlFormatter with a span around each line, without its end."""

    def wrap(self, source: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """The lines of source, where the first of a pair says whether it is code, in their frame."""
        framed: Iterator[tuple[int, str]] = super().wrap((code, spanned(line) if code else line) for code, line in source)
        return framed


def spanned(line: str) -> str:
    """A line of html in its span, which knows by how much the code is indented."""
    line = line.rstrip("\n")
    text = re.sub("<[^>]+>", "", line)
    words = re.sub(r"(<[^>]+>)|([-/.=,:\]])(?!\s)", lambda m: m[1] or f'<span class="joint">{m[2]}</span>', line)
    return f'<span class="line" style="--in: {len(text) - len(text.lstrip())}ch">{words}</span>\n'


def setup(app: Sphinx) -> dict[str, Any]:
    """Makes all code of the site so."""
    PygmentsBridge.html_formatter = LineFormatter
    return {"parallel_read_safe": True, "parallel_write_safe": True}
