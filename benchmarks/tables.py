"""Formats the tables of benchmarks as Markdown.

A Table's columns are (heading, key of a row, format); a row is a dict of plain numbers and texts, and what it lacks stays empty.
"""

from collections.abc import Mapping
from typing import Any


def cell(value: Any, form: str) -> str:
    """A value as text in its format; empty if there is none."""
    return "" if value is None else format(value, "" if isinstance(value, str) else form)


def markdown(table: Mapping[str, Any]) -> str:
    """A table as Markdown, after a line with its title."""
    columns = table["columns"]
    lines = [[cell(row.get(key), form) for _, key, form in columns] for row in table["rows"]]
    grid = [f"| {' | '.join(line)} |" for line in ([heading for heading, _, _ in columns], *lines)]
    return "\n".join([table["title"], "", grid[0], "|---" * len(columns) + "|", *grid[1:]])
