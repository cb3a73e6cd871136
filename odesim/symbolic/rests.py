"""Conditions on functions that come to 0 and stay there, written by cases: each case is a function that passes 0, or 0 itself.

Max(x, 0) > 0  ->  x > 0 if x >= 0 else 0 > 0. A run can see where x passes 0. Of Max(x, 0) it sees a zero and no change of sign.
"""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import sympy as sp
from sympy import Expr, Indexed

from odesim.symbolic.reductions import REDUCTIONS, MaxOver, plain_condition

ORDER = (sp.StrictLessThan, sp.LessThan, sp.StrictGreaterThan, sp.GreaterThan)
STEPS = (sp.sign, sp.Heaviside)
PIECES = (sp.Abs, sp.Max, sp.Min, *STEPS)
TOTALS = (sp.Sum, MaxOver)
MOST_CASES = 128
"""Cases of one condition; one with more is left as it is."""
Depends = Callable[[Any], bool]


def by_cases(e: Any, depends: Depends) -> Any:
    """e with its conditions and steps written by cases where their functions rest at 0. depends(part): whether that changes in a run."""
    if not e.args or isinstance(e, Indexed) or not depends(e):
        return e
    if isinstance(e, REDUCTIONS):
        return e.func(by_cases(e.function, depends), *e.limits)
    args = tuple(by_cases(a, depends) for a in e.args)
    if args != e.args:
        e = sp.Piecewise(*args, evaluate=False) if isinstance(e, sp.Piecewise) else e.func(*args)
    if isinstance(e, ORDER):
        return _split(e.lhs - e.rhs, lambda g: e.func(g, 0), sp.ITE, depends) or e
    if isinstance(e, STEPS):
        return _split(e.args[0], lambda g: e.func(g, *e.args[1:]), _choice, depends) or e
    return e


def _split(g: Expr, made: Callable[[Expr], Any], choose: Callable[..., Any], depends: Depends) -> Any:
    """made(g) as a choice between cases of g, where one of them is 0 throughout; None where none is."""
    tried = count()

    def cases(g: Expr, sums: dict[Any, Expr]) -> tuple[Any, bool]:
        part = next((a for a in _pieces(g) if depends(a)), None)
        if part is None or next(tried) > MOST_CASES:
            return made(g.xreplace(sums)), sp.expand(g) == 0
        hole = sp.Dummy("sum", real=True)
        *arms, (other, _) = _arms(part, hole, depends)
        chosen, rests = cases(g.xreplace({part: other}), {**sums, hole: part})
        for value, condition in reversed(arms):
            case, also = cases(g.xreplace({part: value}), sums)
            chosen, rests = choose(condition, case, chosen), rests or also
        return (chosen, True) if rests else (made(g.xreplace(sums)), False)

    chosen, rests = cases(g, {})
    return chosen if rests else None


def _choice(condition: Any, case: Any, other: Any) -> Any:
    return sp.Piecewise((case, condition), (other, True), evaluate=False)


def _pieces(e: Any) -> Iterator[Any]:
    """The pieces and sums in e that are not within a sum or a maximum over an index, inner ones first."""
    if not isinstance(e, (*REDUCTIONS, Indexed)):
        for a in e.args:
            yield from _pieces(a)
    if isinstance(e, (*PIECES, *TOTALS)) or (isinstance(e, sp.Piecewise) and e.args[-1][1] == True):  # noqa: E712
        yield e


def _arms(e: Expr, hole: Expr, depends: Depends) -> Iterator[tuple[Any, Any]]:
    """The expressions that e may be equal to, each with its condition where those before do not hold; the last has none."""
    u = e.args[0]
    if isinstance(e, sp.Abs):
        yield from ((u, u >= 0), (-u, True))
    elif isinstance(e, STEPS):
        step = isinstance(e, sp.Heaviside)
        yield from ((sp.S.One, u > 0), (-sp.S.One + step, u < 0), (e.args[1] if step else sp.S.Zero, True))
    elif isinstance(e, sp.Piecewise):
        yield from e.args
    elif isinstance(e, TOTALS):
        rests = _rests(e, depends)
        yield from () if rests is None else ((sp.S.Zero, rests),)
        yield hole, True
    else:
        for k, a in enumerate(e.args):
            yield a, sp.And(*(a >= b if isinstance(e, sp.Max) else a <= b for b in e.args[k + 1 :]))


def _rests(e: Any, depends: Depends) -> Any:
    """The condition that all terms of a sum or maximum rest at 0; None where they do not, or it is no `and` of comparisons."""
    each = _split(e.function, lambda g: sp.true if sp.expand(g) == 0 else sp.false, sp.ITE, depends)
    parts = () if each is None else sp.And.make_args(plain_condition(each))
    if not parts or not all(isinstance(c, ORDER) for c in parts):
        return None
    rising = (sp.StrictGreaterThan, sp.GreaterThan)
    found = []
    for c in parts:
        most = MaxOver(c.rhs - c.lhs if isinstance(c, rising) else c.lhs - c.rhs, *e.limits)
        found.append(most < 0 if isinstance(c, sp.StrictGreaterThan | sp.StrictLessThan) else most <= 0)
    return sp.And(*found)
