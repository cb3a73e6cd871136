"""Indices, sizes, and sums over them: the words in which a System is written."""

from collections.abc import Iterable, Iterator
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, IndexedBase, Sum, Symbol
from sympy.concrete.expr_with_limits import ExprWithLimits

time = Symbol("t", real=True)
"""The independent variable, for right sides that depend on it (schedules)."""


def index(names: str) -> tuple[Symbol, ...]:
    """Loop indices: plain integer symbols that start at 0 (never sympy.Idx, which breaks .subs and LaTeX)."""
    return sp.symbols(names, integer=True, nonnegative=True, seq=True)


def sizes(names: str) -> tuple[Symbol, ...]:
    """Extents of axes: positive integer symbols."""
    return sp.symbols(names, integer=True, positive=True, seq=True)


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


def over(op: type, body: Any, *axes: tuple[Symbol, Any]) -> Expr:
    """Sum, MaxOver or Shift from 0: over(Sum, f, (k, M)) is sum_{k=0}^{M-1} f."""
    limits = [(k, 0, n - 1) for k, n in axes]
    return op(body, *limits) if issubclass(op, MaxOver) else SumOver(body, *limits)


def softmax(f: Any, axis: tuple[Symbol, Any], weight: Any = 1) -> Expr:
    """w_l exp(f_l) / sum_l w_l exp(f_l) over axis = (l, M), with the shift that keeps exp from overflowing."""
    k, n = axis
    top = _maximum(f, k, n)
    other = _fresh(k, f, weight)
    e = sp.sympify(weight) * sp.exp(f - top)
    return e / over(Sum, e.xreplace({k: other}), (other, n))


def logsumexp(f: Any, axis: tuple[Symbol, Any], weight: Any = 1) -> Expr:
    """log sum_l w_l exp(f_l) over axis = (l, M), without overflow."""
    k, n = axis
    top = _maximum(f, k, n)
    return top + sp.log(over(Sum, sp.sympify(weight) * sp.exp(f - top), (k, n)))


def _maximum(f: Any, k: Symbol, n: Any) -> Expr:
    other = _fresh(k, f)
    return Shift(sp.sympify(f).xreplace({k: other}), (other, 0, n - 1))


def _fresh(k: Symbol, *near: Any) -> Symbol:
    """An index like k that none of the expressions uses."""
    used = {s.name for e in near for s in sp.sympify(e).atoms(Symbol)}
    name = next(f"{k}_{j}" for j in range(1, 1000) if f"{k}_{j}" not in used)
    return index(name)[0]


def free_indices(e: Any, declared: set[Symbol]) -> set[Symbol]:
    """The declared indices of e that no reduction inside it binds."""
    if isinstance(e, REDUCTIONS):
        bound = {lim[0] for lim in e.limits}
        return (free_indices(e.function, declared | bound) & declared) - bound
    if isinstance(e, Symbol):
        return {e} & declared
    found: set[Symbol] = set()
    for a in e.args:
        found |= free_indices(a, declared)
    return found


def indexed(e: Any) -> Iterator[Indexed]:
    """Every array element read in e, inner ones of gathered indices too, in a fixed order."""
    return iter(sorted(e.atoms(Indexed), key=str))


def base_name(x: Any) -> str:
    """The name of a state or parameter: of an Indexed, an IndexedBase or a Symbol."""
    if isinstance(x, Indexed):
        return str(x.base.label)
    return str(x.label) if isinstance(x, IndexedBase) else str(x)
