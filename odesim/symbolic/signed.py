"""Functions of events whose conditions jump, as functions with the same sign that pass 0 where these jump across it.

Piecewise((1, (a < x) & (x < b)), (-1, True))  ->  Min(x - a, b - x)

A search that looks at a few times of a step sees where such a function falls or rises towards 0. It sees nothing of one that jumps.
"""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import sympy as sp
from sympy import Expr, Indexed

from odesim.symbolic.layered import names_read
from odesim.symbolic.reductions import REDUCTIONS
from odesim.transforms.jumps import may_jump

LESS, MORE = (sp.StrictLessThan, sp.LessThan), (sp.StrictGreaterThan, sp.GreaterThan)
FLAT = (sp.Max, sp.Min, sp.Abs, sp.Piecewise, sp.floor, sp.sign, sp.Heaviside)
"""What may be 0 for more than a moment."""
MOST = 32
"""Combinations of branches of one function; one that has more stays as it is."""


class _UnsignedError(Exception):
    """A function has no such form."""


def signed(e: Expr, states: Iterable[str]) -> Expr:
    """A function with the sign of e that does not jump at its conditions.

    e, where it jumps at none, reads none of these states, or has no such form.
    """
    if not names_read(e) & set(states):
        return e
    flat = _stepless(e)
    conditions = [c for p in flat.atoms(sp.Piecewise) for _, condition in p.args for c in condition.atoms(*LESS, *MORE)]
    if not any(may_jump(flat, "sign", c.lhs - c.rhs) for c in conditions):
        return e
    try:
        return _of_sign(flat)
    except _UnsignedError:
        return e


def _stepless(e: Any) -> Any:
    """e with branches for signs and steps."""
    if not e.args or isinstance(e, (Indexed, *REDUCTIONS)):
        return e
    args = [_stepless(a) for a in e.args]
    if isinstance(e, sp.sign | sp.Heaviside):
        low, at_0 = (sp.S.NegativeOne, sp.S.Zero) if isinstance(e, sp.sign) else (sp.S.Zero, args[1])
        stays = [(low, args[0] < 0), (at_0, True)] if args[0].has(*FLAT) else [(low, True)]
        return sp.Piecewise((1, args[0] > 0), *stays)
    return e if tuple(args) == e.args else e.func(*args)


def _of_sign(e: Any) -> Expr:
    """A function with the sign of e that does not jump at its conditions. Raises _UnsignedError."""
    terms = []
    for value, inside, condition in _branches(e):
        if inside is sp.oo:
            terms.append(value)
        elif value.is_positive:
            terms.append(inside)
        elif not value.is_negative:  # there the other terms are negative
            terms.append(sp.Piecewise((sp.Min(inside, value), condition), (inside, True), evaluate=False))
    return sp.Max(*terms) if terms else sp.S.NegativeOne


def _branches(e: Any) -> Iterator[tuple[Expr, Expr, Any]]:
    """(expression, function that is positive where it holds, condition) of all branches of e. Raises _UnsignedError."""
    if not e.has(sp.Piecewise) or isinstance(e, Indexed):
        yield e, sp.oo, sp.true
        return
    if isinstance(e, REDUCTIONS):
        raise _UnsignedError
    if isinstance(e, sp.Piecewise):
        left, before = sp.oo, sp.true
        for value, condition in e.args:
            here = _positive_where(condition)
            for inner, inside, when in _branches(value):
                yield inner, sp.Min(left, here, inside), sp.And(before, condition, when)
            left, before = sp.Min(left, -here), sp.And(before, sp.Not(condition))
        return
    parts = [list(_branches(a)) for a in e.args]
    if sp.prod(map(len, parts)) > MOST:
        raise _UnsignedError
    for chosen in product(*parts):
        values, insides, conditions = zip(*chosen, strict=True)
        yield e.func(*values), sp.Min(*insides), sp.And(*conditions)


def _positive_where(condition: Any) -> Expr:
    """A function that is positive where a condition holds and negative elsewhere. Raises _UnsignedError."""
    if condition in (sp.true, sp.false):
        return sp.oo if condition == sp.true else -sp.oo
    if isinstance(condition, LESS):
        return _of_sign(condition.rhs - condition.lhs)
    if isinstance(condition, MORE):
        return _of_sign(condition.lhs - condition.rhs)
    if isinstance(condition, sp.And | sp.Or):
        return (sp.Min if isinstance(condition, sp.And) else sp.Max)(*map(_positive_where, condition.args))
    if isinstance(condition, sp.Not):
        return -_positive_where(condition.args[0])
    raise _UnsignedError
