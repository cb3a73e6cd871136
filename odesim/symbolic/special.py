"""Special functions: derivatives where sympy's have a pole or a case, and what their arguments must be."""

from collections.abc import Callable, Collection
from typing import Any

import sympy as sp
from sympy import Expr

SLOPES: dict[Any, Callable[..., Expr]] = {
    sp.sinc: lambda x: -sp.jn(1, x),
    sp.jn: lambda n, x: (n * spherical(n - 1, x) - (n + 1) * spherical(n + 1, x)) / (2 * n + 1),
}
"""{function: its derivative by its last argument}; the other arguments are whole numbers."""


def spherical(n: Any, x: Any) -> Expr:
    """The spherical Bessel function j_n(x); j_0 is sinc."""
    return sp.sinc(x) if n == 0 else sp.jn(n, x)


def slope(e: Expr, n: int) -> Expr | None:
    """The derivative of a special function by its n-th argument; None for every other expression."""
    rule = SLOPES.get(type(e))
    if rule is None:
        return None
    return rule(*e.args) if n == len(e.args) - 1 else sp.S.Zero


def argument_mistake(e: Expr, integers: Collection[str]) -> str | None:
    """A sentence where an argument of e must be a whole number and is not. integers: names of indices, sizes and index parameters."""
    if isinstance(e, sp.binomial):
        for a in e.args:
            if not is_whole(a, integers):
                return f"{e}: {a} is no whole number; binomial() takes whole numbers, indices, sizes and index parameters"
    return None


def is_whole(e: Expr, integers: Collection[str]) -> bool:
    """Whether e is made of whole numbers by sums and products."""
    if isinstance(e, sp.Indexed):
        return str(e.base.label) in integers
    if isinstance(e, sp.Symbol):
        return e.name in integers
    return bool(e.is_Integer) or ((e.is_Add or e.is_Mul) and all(is_whole(a, integers) for a in e.args))
