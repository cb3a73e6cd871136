"""Typed expressions cut into numbers, names and signs."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn

NUMBER = r"(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
TOKEN = re.compile(rf"\s*(?:{NUMBER}|(?P<name>[^\W\d]\w*)|(?P<sign>\*\*|[-+*/()\[\],]))")
HINTS = {"^": "write ** for a power", "=": "an expression is meant, not an equation: write a - b for a = b"}
HINTS |= dict.fromkeys("<>", "an expression is meant, not a condition: write a - b for a > b")


@dataclass(frozen=True)
class Token:
    """A number, name or sign of the text, or "end"; at: its place, from 0."""

    kind: str
    text: str
    at: int


def tokens(text: str, at: int, fail: Callable[[int, str], NoReturn]) -> Iterator[Token]:
    """The tokens of text from the place `at` on, and one for its end. fail: as for parse_expression."""
    end = max(len(text.rstrip()), at)
    while at < end:
        found = TOKEN.match(text, at)
        if not found or found.lastgroup is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            hint = HINTS.get(text[at])
            fail(at, hint or f"{text[at]!r} is no part of an expression")
        yield Token(found.lastgroup, found[found.lastgroup], found.start(found.lastgroup))
        at = found.end()
    yield Token("end", "", end)
