"""The subexpressions of expressions, each looked at once: a tree of sympy holds one as often as it is read."""

from collections.abc import Iterable
from typing import Any

import sympy as sp


def subexpressions(expressions: Iterable[Any], *kinds: type) -> set[Any]:
    """All subexpressions of these kinds; an expression is a subexpression of itself."""
    left: list[Any] = [sp.sympify(e) for e in expressions]
    seen = set(left)
    while left:
        new = {a for a in left.pop().args if isinstance(a, sp.Basic)} - seen
        seen |= new
        left += new
    return {e for e in seen if isinstance(e, kinds)}
