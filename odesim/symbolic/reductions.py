"""Sums and maxima over an index, kept as they are written."""

from collections.abc import Iterable
from typing import Any

import sympy as sp
from sympy import Expr, Sum
from sympy.concrete.expr_with_limits import ExprWithLimits


def unfolded(cls: type, body: Any, limits: Iterable[Any]) -> Any:
    """cls(body, *limits) as written: sympy's own constructor moves a Piecewise out, past the index it depends on."""
    e = Expr.__new__(cls, sp.sympify(body), *(sp.Tuple(*lim) for lim in limits))
    e.is_commutative = True
    return e


class SumOver(Sum):  # type: ignore[misc]
    """sum_k body, kept as written."""

    def __new__(cls, body: Any, *limits: Any, **_: Any) -> Any:
        return unfolded(cls, body, limits)

    def _latex(self, printer: Any) -> str:
        return str(printer._print_Sum(self))

    def doit(self, **_: Any) -> Expr:
        return self


class MaxOver(ExprWithLimits):  # type: ignore[misc]
    """max_k body, as a shift that cancels: its derivative is 0 by definition."""

    def __new__(cls, body: Any, *limits: Any, **_: Any) -> Any:
        return unfolded(cls, body, limits)

    is_extended_real = True

    def _eval_derivative(self, symbol: Any) -> Expr:
        return sp.S.Zero

    def _latex(self, printer: Any) -> str:
        return rf"\max_{{{printer._print(self.limits[0][0])}}} {printer._print(self.function)}"

    def _pretty(self, printer: Any) -> Any:
        return printer._print(sp.Function(f"max_{self.limits[0][0]}")(self.function))


class Shift(MaxOver):
    """A MaxOver that softmax() or logsumexp() puts in against overflow: its value does not matter, so that it may be shown as 0."""


REDUCTIONS = (Sum, MaxOver)
