"""Indices, sizes, and sums over them: the words in which a System is written."""

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, IndexedBase, Sum, Symbol

from odesim.errors import SpecError, value_text
from odesim.symbolic.bound import bound_to
from odesim.symbolic.reductions import REDUCTIONS, MaxOver, Shift, SumOver
from odesim.symbolic.weighted import Counted, Weighted

time = Symbol("t", real=True)
"""The independent variable, for right sides that depend on it (schedules)."""


def index(names: str) -> tuple[Symbol, ...]:
    """Loop indices: plain integer symbols that start at 0 (never sympy.Idx, which breaks .subs and LaTeX)."""
    return sp.symbols(_names("index", names), integer=True, nonnegative=True, seq=True)


def sizes(names: str) -> tuple[Symbol, ...]:
    """Extents of axes: positive integer symbols."""
    return sp.symbols(_names("sizes", names), integer=True, positive=True, seq=True)


def _names(call: str, names: Any) -> str:
    if not isinstance(names, str) or not names.replace(",", " ").strip():
        raise SpecError(
            f"{call}() takes names in one text, such as {call}({'i j' if call == 'index' else 'M N'!r}), not {value_text(names)}"
        )
    return names


def over(op: type, body: Any, *axes: tuple[Symbol, Any]) -> Expr:
    """Sum, MaxOver or Shift from 0: over(Sum, f, (k, M)) is sum_{k=0}^{M-1} f.

    Its k is a symbol of its own that prints as k: nothing that is put into the sum later can mean it (see at()).
    """
    if not (isinstance(op, type) and issubclass(op, Sum | MaxOver)):
        raise SpecError(f"over({value_text(getattr(op, '__name__', op))}, ...): the first argument is Sum or MaxOver")
    body, limits = part("over()", body), []
    for axis in axes:
        k, n = axis if isinstance(axis, tuple) and len(axis) == 2 else (None, None)
        if not isinstance(k, Symbol) or isinstance(n, bool) or not isinstance(n, Expr | Integral):
            raise SpecError(
                f"over({op.__name__}, {value_text(body)}, ...): write each axis as (index, extent), such as (k, M), not {value_text(axis)}"
            )
        limits.append((k, 0, n - 1))
    twice = [k.name for k, _, _ in limits if [j.name for j, _, _ in limits].count(k.name) > 1]
    if twice or not limits:
        raise SpecError(f"over({op.__name__}, {body}, ...): {f'index {twice[0]} is there twice' if twice else 'there is no axis (k, M)'}")
    return bound_to(op if issubclass(op, MaxOver) else SumOver, body, limits)


def softmax(f: Any, axis: tuple[Symbol, Any], weight: Any = 1) -> Expr:
    """w_l exp(f_l) / sum_l w_l exp(f_l) over axis = (l, M), without overflow. Entries of weight 0 do not count, whatever f_l is there."""
    f, weight = part("softmax()", f), part("the weight of softmax()", weight)
    e = shifted_exp(f, axis, weight)
    return e / over(Sum, e, axis)


def logsumexp(f: Any, axis: tuple[Symbol, Any], weight: Any = 1) -> Expr:
    """log sum_l w_l exp(f_l) over axis = (l, M), without overflow. Entries of weight 0 do not count, whatever f_l is there."""
    f, weight = part("logsumexp()", f), part("the weight of logsumexp()", weight)
    return shift(f, axis, weight) + sp.log(over(Sum, shifted_exp(f, axis, weight), axis))


def shifted_exp(f: Any, axis: tuple[Symbol, Any], weight: Any = 1) -> Expr:
    """w_l exp(f_l - top) with top the largest f_l over axis = (l, M) where w_l is not 0: for ratios in which top cancels."""
    f, weight = part("shifted_exp()", f), part("the weight of shifted_exp()", weight)
    return Weighted(weight, f - shift(f, axis, weight))


def shift(f: Any, axis: tuple[Symbol, Any], weight: Any = 1) -> Expr:
    """The largest f_l over axis = (l, M) where w_l is not 0, for ratios in which it cancels: its derivative is 0."""
    return over(Shift, Counted(part("the weight of shift()", weight), part("shift()", f)), axis)


def part(call: str, e: Any) -> Expr:
    """e as an expression."""
    try:
        made = sp.sympify(e, strict=True)
    except Exception:  # sympy asks an unknown object what it is
        made = None
    if not isinstance(made, Expr) or made.is_Matrix:
        raise SpecError(f"{call} takes an expression, not {value_text(e)}")
    return made


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
