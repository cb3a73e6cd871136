"""Indices, sizes, sums, maxima and softmax: the parts from which a System's equations are built."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, IndexedBase, Sum, Symbol

from odesim.base.errors import SpecError, value_text
from odesim.base.parsing import readable
from odesim.symbolic.bound import bind_indices
from odesim.symbolic.reductions import REDUCTIONS, MaxOver, Shift, SumOver
from odesim.symbolic.weighted import Counted, Weighted

time = Symbol("t", real=True)
"""The independent variable, for right-hand sides that depend on it (schedules)."""


@readable
def index(names: str) -> tuple[Symbol, ...]:
    """Loop indices: plain integer symbols that start at 0 (never sympy.Idx, which breaks .subs and LaTeX)."""
    return sp.symbols(_check_names("index", names), integer=True, nonnegative=True, seq=True)


@readable
def sizes(names: str) -> tuple[Symbol, ...]:
    """Extents of axes: positive integer symbols."""
    return sp.symbols(_check_names("sizes", names), integer=True, positive=True, seq=True)


def _check_names(call: str, names: Any) -> str:
    if not isinstance(names, str) or not names.replace(",", " ").strip():
        raise SpecError(
            f"{call}() takes names in one text, such as {call}({'i j' if call == 'index' else 'M N'!r}), not {value_text(names)}"
        )
    return names


@readable
def over(op: type, body: Any, *axes: tuple[Symbol, Any]) -> Expr:
    """Sum, MaxOver or Shift from 0: over(Sum, f, (k, M)) is sum_{k=0}^{M-1} f, and over(Sum, f, (k, i + 1)) goes up to the index i.

    Its k is a symbol of its own that prints as k: nothing that is put into the sum later can mean it (see at()).
    """
    if not (isinstance(op, type) and issubclass(op, Sum | MaxOver)):
        raise SpecError(f"over({value_text(getattr(op, '__name__', op))}, ...): the first argument is Sum or MaxOver")
    body, limits = argument_expression("over()", body), []
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
    return bind_indices(op if issubclass(op, MaxOver) else SumOver, body, limits)


@readable
def softmax(f: Any, axis: tuple[Symbol, Any], weight: Any = 1) -> Expr:
    """w_l exp(f_l) / sum_l w_l exp(f_l) over axis = (l, M), without overflow. Entries of weight 0 do not count, whatever f_l is there."""
    f, weight = argument_expression("softmax()", f), argument_expression("the weight of softmax()", weight)
    e = shifted_exp(f, axis, weight)
    return e / over(Sum, e, axis)


@readable
def logsumexp(f: Any, axis: tuple[Symbol, Any], weight: Any = 1) -> Expr:
    """log sum_l w_l exp(f_l) over axis = (l, M), without overflow. Entries of weight 0 do not count, whatever f_l is there."""
    f, weight = argument_expression("logsumexp()", f), argument_expression("the weight of logsumexp()", weight)
    return shift(f, axis, weight) + sp.log(over(Sum, shifted_exp(f, axis, weight), axis))


@readable
def shifted_exp(f: Any, axis: tuple[Symbol, Any], weight: Any = 1) -> Expr:
    """w_l exp(f_l - top) with top the largest f_l over axis = (l, M) where w_l is not 0: for ratios in which top cancels."""
    f, weight = argument_expression("shifted_exp()", f), argument_expression("the weight of shifted_exp()", weight)
    return Weighted(weight, f - shift(f, axis, weight))


@readable
def shift(f: Any, axis: tuple[Symbol, Any], weight: Any = 1) -> Expr:
    """The largest f_l over axis = (l, M) where w_l is not 0, for ratios in which it cancels: its derivative is 0."""
    return over(Shift, Counted(argument_expression("the weight of shift()", weight), argument_expression("shift()", f)), axis)


def argument_expression(call: str, e: Any) -> Expr:
    """e as an expression. Raises SpecError; call: the function named in the message."""
    try:
        expression = sp.sympify(e, strict=True)
    except Exception:  # sympy calls methods of an unknown object, which may raise anything
        expression = None
    if not isinstance(expression, Expr) or expression.is_Matrix:
        raise SpecError(f"{call} takes an expression, not {value_text(e)}")
    return expression


def free_indices(e: Any, declared: set[Symbol]) -> set[Symbol]:
    """The declared indices of e that no reduction inside it binds."""
    if isinstance(e, REDUCTIONS):
        bound = {lim[0] for lim in e.limits}
        inside = free_indices(e.function, declared | bound) & declared
        return inside.union(*(free_indices(end, declared) for _, *ends in e.limits for end in ends)) - bound
    if isinstance(e, Symbol):
        return {e} & declared
    indices: set[Symbol] = set()
    for a in e.args:
        indices |= free_indices(a, declared)
    return indices


def base_name(x: Any) -> str:
    """The name of a state or parameter, written as an Indexed, an IndexedBase or a Symbol."""
    if isinstance(x, Indexed):
        return str(x.base.label)
    return str(x.label) if isinstance(x, IndexedBase) else str(x)
