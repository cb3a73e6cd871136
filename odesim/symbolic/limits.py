"""Limits of sums and maxima that are indices: j <= i, and j >= i."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy import Expr, Symbol
from sympy.logic.boolalg import BooleanFunction

from odesim.symbolic.indices import Neighbour

FORMS = "from 0 to a size - 1, from 0 to an index (i or i - 1), or from an index (i or i + 1) to a size - 1"


class UpTo(BooleanFunction):  # type: ignore[misc]
    """The condition a <= b + c of two places and a number: UpTo(a, b, c)."""

    nargs = 3

    def readable(self) -> Any:
        """The condition in signs."""
        a, b, c = self.args
        return sp.Le(a, b + c)

    def _sympystr(self, printer: Any) -> str:
        return str(printer._print(self.readable()))

    def _latex(self, printer: Any) -> str:
        return str(printer._print(self.readable()))


@dataclass(frozen=True)
class Triangle:
    """The limits of a summed index j: j <= index + shift (op "prefix"), or j >= index + shift (op "suffix").

    index: an index, or a neighbour of one.
    """

    op: str
    index: Any
    shift: int

    def extent(self, extents: Mapping[Any, Any]) -> Any:
        """The number of places of the axis."""
        return self.index.args[2] if isinstance(self.index, Neighbour) else extents[self.index]

    def condition(self, j: Any) -> Any:
        """Whether j is within the limits."""
        return UpTo(j, self.index, self.shift) if self.op == "prefix" else UpTo(self.index, j, -self.shift)

    def count(self, extent: Any) -> Expr:
        """The number of values of j."""
        number = self.index + self.shift + 1 if self.op == "prefix" else extent - self.index - self.shift
        return sp.Max(0, number) if abs(self.shift) > 1 else number

    @property
    def empty(self) -> bool:
        """Whether there is no j for some value of the index."""
        return self.shift != 0

    def text(self, j: Any) -> str:
        """The limits on one line, such as j<=i."""
        sign = "<=" if self.op == "prefix" else ">="
        if abs(self.shift) == 1:
            return f"{j}{sign[0]}{self.index}"
        return f"{j}{sign}{self.index}" + (f"{self.shift:+d}" if self.shift else "")


def is_index(x: Any) -> bool:
    """Whether x is a symbol such as index() makes: a whole number from 0. Sizes are positive."""
    return isinstance(x, Symbol) and bool(x.is_integer and x.is_nonnegative) and not x.is_positive


def triangle(low: Any, high: Any) -> Triangle | None:
    """The Triangle of the limits low <= j <= high; None where neither is an index, perhaps with a number."""
    for op, bound in (("prefix", high), ("suffix", low)):
        c, i = sp.Add(*sp.Add.make_args(sp.sympify(bound))).as_coeff_Add()
        if (is_index(i) or isinstance(i, Neighbour)) and c.is_Integer:
            return Triangle(op, i, int(c))
    return None


def extent_of(low: Any, high: Any, extents: Mapping[Symbol, Any]) -> Any:
    """The extent of the axis that an index with these limits runs over, or a part of."""
    t = triangle(low, high)
    return sp.expand(high - low + 1) if t is None else t.extent(extents)


def limit_text(limit: Any) -> str:
    """The index of a sum on one line, with its limits where they are not the whole axis: j, j<=i, j<i."""
    j, low, high = limit
    t = triangle(low, high)
    return str(j) if t is None else t.text(j)


def limit_latex(limit: Any, printer: Any) -> str:
    """limit_text() in LaTeX."""
    j, low, high = limit
    t = triangle(low, high)
    return str(printer._print(j)) if t is None else t.text(printer._print(j)).replace("<=", r" \le ").replace(">=", r" \ge ")


def has_triangle(e: Any) -> bool:
    """Whether some index of a sum or maximum has an index as a limit."""
    return any(triangle(low, high) for _, low, high in e.limits)
