"""Times at which something happens, as formulas in parameters or as the zeros of a function of time, and what these are made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy import Expr

from odesim.base.intervals import FUNCTIONS
from odesim.symbolic.indices import time
from odesim.symbolic.reductions import SumOver

LIMITS: dict[Any, tuple[int, ...]] = {sp.log: (0,), sp.asin: (-1, 1), sp.acos: (-1, 1), sp.atanh: (-1, 1), sp.acosh: (1,)}
"""{function: the ends of its domain}."""
KNOWN = f"write it with sums, products and powers, remainders, and {', '.join(sorted(FUNCTIONS))} of the time"
"""Advice on expressions whose times are known, for messages."""


class UnknownTimesError(Exception):
    """No formula is known for the times at which an expression changes its sign."""


@dataclass(frozen=True)
class Times:
    """The times first + k period for all whole numbers k; only first where period is None. Both are free of the time."""

    first: Expr
    period: Expr | None = None

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions from which the times are computed."""
        return (self.first,) if self.period is None else (self.first, self.period)

    def renamed(self, moved: Mapping[Any, Any]) -> "Times":
        """These times with other names of indices."""
        return Times(self.first.xreplace(moved), None if self.period is None else self.period.xreplace(moved))


@dataclass(frozen=True)
class Zeros:
    """The times at which `function` is 0 or jumps across it, for which no formula is known: interval arithmetic isolates them."""

    function: Expr

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions from which the times are computed."""
        return (self.function,)

    def renamed(self, moved: Mapping[Any, Any]) -> "Zeros":
        """These times with other names of indices."""
        return Zeros(self.function.xreplace(moved))


@dataclass(frozen=True)
class Pulses:
    """The times at which `function`, which rests elsewhere, rises and falls: so briefly that a step may pass over it."""

    function: Expr

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions from which the times are computed."""
        return (self.function,)

    def renamed(self, moved: Mapping[Any, Any]) -> "Pulses":
        """These times with other names of indices."""
        return Pulses(self.function.xreplace(moved))


AnyTimes = Times | Zeros | Pulses


def isolated(g: Expr) -> Zeros:
    """The times at which g is 0, to be isolated. Raises UnknownTimesError where its ranges are not known."""
    if not has_ranges(g):
        raise UnknownTimesError
    return Zeros(g)


def has_ranges(e: Expr, *, summed: bool = False) -> bool:
    """Whether interval arithmetic knows the ranges of e over a span of time; summed: within a sum."""
    if not e.has(time) or e == time:
        return True
    if isinstance(e, SumOver):
        whole = all(n.is_positive for n in e.limits[0][2].free_symbols)  # up to a size, not up to an index
        plain = not summed and len(e.limits) == 1 and whole and not floors_of(e)
        return plain and has_ranges(e.function, summed=True)
    known = e.is_Add or e.is_Mul or e.is_Pow or type(e).__name__ in FUNCTIONS
    return known and all(has_ranges(a, summed=summed) for a in e.args)


def floors_of(e: Expr) -> list[Expr]:
    """The whole parts in e that change with time."""
    return sorted((a for a in e.atoms(sp.floor) if a.has(time)), key=str)


def with_levels(e: Expr) -> tuple[Expr, dict[Expr, Expr]]:
    """e with a symbol for each whole part that changes with time, and {whole part: its symbol}."""
    levels = {a: sp.Dummy("level", integer=True) for a in floors_of(e)}
    return e.xreplace(levels), levels


def edges(e: Expr) -> list[Expr]:
    """The functions of time whose zeros begin or end the domain of e: u for log(u), sqrt(u)."""
    found = []
    for part in sp.preorder_traversal(e):
        if part.args and part.args[0].has(time):
            root = part.is_Pow and not part.exp.is_integer
            found += [part.args[0] - limit for limit in ((0,) if root else LIMITS.get(part.func, ()))]
    return found
