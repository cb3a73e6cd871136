"""A table whose rows a telephone shows one below the other: each cell knows its heading (`td` of odesim.css).

html has no way for a style to read the head of a column, and a page without scripts none but this.
"""

import re
from typing import Any

from sphinx.application import Sphinx

TABLE = re.compile(r'<table class="docutils.*?</table>', re.DOTALL)
HEAD = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)


def with_headings(page: str) -> str:
    """The html of a page with `data-head` at each cell of a table after the first of its row."""
    return TABLE.sub(lambda table: rows_with(table[0], [re.sub("<[^>]+>", "", head).strip() for head in HEAD.findall(table[0])]), page)


def rows_with(table: str, heads: list[str]) -> str:
    """A table whose cells have the headings of their columns."""

    def row(found: re.Match[str]) -> str:
        names = iter(["", *heads[1:]])
        return re.sub(r"<td\b", lambda cell: f'<td data-head="{name}"' if (name := next(names, "")) else cell[0], found[0])

    return ROW.sub(row, table)


def setup(app: Sphinx) -> dict[str, Any]:
    """Rewrites the body of each page before it is written."""
    app.connect("html-page-context", lambda app, page, template, context, tree: context.update(body=with_headings(context.get("body", ""))))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
