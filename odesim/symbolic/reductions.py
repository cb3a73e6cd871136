"""Sums and maxima over an index, which sympy does not evaluate or rearrange."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import sympy as sp
from sympy import Expr, Sum
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.cache import cacheit

from odesim.symbolic.reductions import limit_latex, limit_text


@cacheit
def unevaluated(cls: type, body: Any, limits: Iterable[Any]) -> Any:
    """cls(body, *limits) without evaluation: sympy's own constructor moves a Piecewise out, past the index it depends on."""
    e = Expr.__new__(cls, sp.sympify(body), *(sp.Tuple(*lim) for lim in limits))
    e.is_commutative = True
    return e


class Reduction(ExprWithLimits):  # type: ignore[misc]
    """The base of sums and maxima. It looks up their free symbols once; sympy's own classes rebuild the body each time."""

    @cached_property
    def _free(self) -> frozenset[Any]:
        free = self.function.free_symbols
        for k, *bounds in self.limits:
            free = (free - {k}).union(*(bound.free_symbols for bound in bounds))
        return frozenset(free)

    @property
    def free_symbols(self) -> set[Any]:
        return {*self._free}

    @property
    def is_number(self) -> bool:
        return not self._free


class SumOver(Reduction, Sum):  # type: ignore[misc]
    """The sum of body over k, unevaluated."""

    def __new__(cls, body: Any, *limits: Any, **_: Any) -> Any:
        return unevaluated(cls, body, limits)

    def _latex(self, printer: Any) -> str:
        return str(printer._print_Sum(self))

    def doit(self, **_: Any) -> Expr:
        return self


class MaxOver(Reduction):
    """The maximum of body over k; its derivative is that of body at the first k where body is largest."""

    def __new__(cls, body: Any, *limits: Any, **_: Any) -> Any:
        return unevaluated(cls, body, limits)

    is_extended_real = True

    def _eval_derivative(self, symbol: Any) -> Expr:
        return at_max(self, self.function.diff(symbol))

    def _latex(self, printer: Any) -> str:
        return rf"\max_{{{limit_latex(self.limits[0], printer)}}} {printer._print(self.function)}"

    def _pretty(self, printer: Any) -> Any:
        return printer._print(sp.Function(f"max_{limit_text(self.limits[0])}")(self.function))


class Shift(MaxOver):
    """A maximum that prevents overflow and cancels: its derivative is 0, and it is printed as 0."""

    def _eval_derivative(self, symbol: Any) -> Expr:
        return sp.S.Zero


class AtMax(Reduction):
    """The value of g at the first k where f is largest: AtMax((f, g), (k, 0, M - 1))."""

    def __new__(cls, body: Any, *limits: Any, **_: Any) -> Any:
        return unevaluated(cls, body, limits)

    def _eval_derivative(self, symbol: Any) -> Expr:
        return at_max(self, self.function[1].diff(symbol))

    def _latex(self, printer: Any) -> str:
        f, g = (printer._print(a) for a in self.function)
        k = limit_latex(self.limits[0], printer)
        return rf"\left. {g} \right|_{{{k} = \arg\max_{{{k}}} {f}}}"

    def _pretty(self, printer: Any) -> Any:
        return printer._print(sp.Function("at_max")(*self.function))


def at_max(largest: Any, slope: Any) -> Any:
    """slope at the index where `largest`, a MaxOver or AtMax, takes its value."""
    f = largest.function[0] if isinstance(largest, AtMax) else largest.function
    return sp.S.Zero if slope == 0 else AtMax(sp.Tuple(f, slope), *largest.limits)


REDUCTIONS = (Sum, MaxOver, AtMax)
