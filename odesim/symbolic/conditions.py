"""Conditions written with `and` and `or` only, as generated code has them."""

from typing import Any

import sympy as sp

from odesim.symbolic.indices import Inside
from odesim.symbolic.reductions import UpTo

OTHERS = sp.Not | sp.ITE | sp.Xor | sp.Implies | sp.Equivalent


def plain_condition(e: Any) -> Any:
    """e without `not`, `xor` and choices between conditions.

    not (a > b or c > d)  ->  a <= b and c <= d        (a if c else b)  ->  (c and a) or (not c and b)
    """
    holes = {c: sp.Dummy(f"condition{n}") for n, c in enumerate(sorted(e.atoms(Inside, UpTo), key=str))}
    plain = sp.to_nnf(e.xreplace(holes))
    found = {sp.Not(hole): opposite(c) for c, hole in holes.items()} | {hole: c for c, hole in holes.items()}
    return plain.xreplace(found)


def opposite(c: Any) -> Any:
    """The condition that holds where c, a condition on places, does not."""
    if isinstance(c, UpTo):
        a, b, shift = c.args
        return UpTo(b, a, -shift - 1)
    i, shift, n = c.args
    return UpTo(i, 0, -shift - 1) if shift.is_negative else UpTo(n, i, shift)


def plain_cases(e: sp.Piecewise) -> sp.Piecewise:
    """A Piecewise with plain conditions: sympy makes choices of those that compare a Piecewise, such as a neighbour that may be 0.

    a if (x if c else 0) > b else d  ->  a if (c and x > b) or (not c and 0 > b) else d
    """
    if not e.has(sp.ITE):
        return e
    return e.func(*((value, plain_condition(c) if c.has(sp.ITE) else c) for value, c in e.args))
