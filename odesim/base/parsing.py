"""Syntax trees of Python text, one thread at a time."""

import ast
from typing import Any

from odesim.base.memo import ForkLock

# Python 3.11 counts the depth of a tree in one place for all threads: two at once end in a SystemError (its issue 106905)
_LOCK = ForkLock()


def parse(text: str, mode: str = "exec") -> Any:
    """The tree of text, as ast.parse gives it. Raises SyntaxError."""
    with _LOCK:
        return ast.parse(text, mode=mode)
