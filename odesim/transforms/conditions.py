"""Conditions in forms that a run can follow: where they rest at 0, jump at a pole or a cut, or an event's function jumps."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count, permutations, product
from typing import Any

import sympy as sp
from sympy import Expr, Indexed

from odesim.ir.derive import directional_derivative
from odesim.symbolic.indices import time
from odesim.symbolic.layered import layers_in, names_read
from odesim.symbolic.reductions import REDUCTIONS, MaxOver, plain_condition, rebuilt
from odesim.transforms.jumps import COMPARISONS, may_jump

STEPS = (sp.sign, sp.Heaviside)
PIECES = (sp.Abs, sp.Max, sp.Min, *STEPS)
TOTALS = (sp.Sum, MaxOver)
MOST_CASES = 128
"""Cases of one condition; one with more is left as it is."""
Depends = Callable[[Any], bool]


# Functions that come to 0 and stay there: Max(x, 0) > 0  ->  x > 0 if x >= 0 else 0 > 0. A run can see where x passes 0. Of Max(x, 0) it
# sees a zero and no change of sign.
def by_cases(e: Any, depends: Depends) -> Any:
    """e with its conditions and steps written by cases where their functions rest at 0. depends(part): whether that changes in a run."""
    if not e.args or isinstance(e, Indexed) or not depends(e):
        return e
    if isinstance(e, REDUCTIONS):
        return e.func(by_cases(e.function, depends), *e.limits)
    e = rebuilt(e, tuple(by_cases(a, depends) for a in e.args))
    if isinstance(e, COMPARISONS):
        return _split(e.lhs - e.rhs, lambda g: e.func(g, 0), sp.ITE, depends) or e
    if isinstance(e, STEPS):
        return _split(e.args[0], lambda g: e.func(g, *e.args[1:]), _choice, depends) or e
    return e


def resting(g: Expr, depends: Depends) -> Expr:
    """A function of an event with the cases in which it is 0 throughout written as 0; the same where there is none.

    |u| + u  ->  2 u if u >= 0 else 0. Otherwise rounding leaves 1e-17 of either sign there, and each change of it counts as a crossing.
    """
    cases: Expr | None = _split(g, lambda case: sp.S.Zero if sp.expand(case) == 0 else case, _choice, depends)
    return g if cases is None else cases


def _split(g: Expr, wrap: Callable[[Expr], Any], choose: Callable[..., Any], depends: Depends) -> Any:
    """wrap(g) as a choice between cases of g, where one of them is 0 throughout; None where none is."""
    if not g.has(*PIECES, sp.Piecewise):  # sums alone rest nowhere, and expanding them took a tenth of a second of a first call
        return None
    tried = count()

    def cases(g: Expr, sums: dict[Any, Expr]) -> tuple[Any, bool]:
        part = next((a for a in _pieces(g) if depends(a)), None)
        if part is None or next(tried) > MOST_CASES:
            return wrap(g.xreplace(sums)), sp.expand(g) == 0
        hole = sp.Dummy("sum", real=True)
        *arms, (other, _) = _arms(part, hole, depends)
        chosen, rests = cases(g.xreplace({part: other}), {**sums, hole: part})
        for value, condition in reversed(arms):
            case, also = cases(g.xreplace({part: value}), sums)
            chosen, rests = choose(condition, case, chosen), rests or also
        return (chosen, True) if rests else (wrap(g.xreplace(sums)), False)

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
    if not parts or not all(isinstance(c, COMPARISONS) for c in parts):
        return None
    rising = (sp.StrictGreaterThan, sp.GreaterThan)
    comparisons = []
    for c in parts:
        most = MaxOver(c.rhs - c.lhs if isinstance(c, rising) else c.lhs - c.rhs, *e.limits)
        comparisons.append(most < 0 if isinstance(c, sp.StrictGreaterThan | sp.StrictLessThan) else most <= 0)
    return sp.And(*comparisons)


BOUNDED = (sp.tanh, sp.erf, sp.erfc)
TINY = 1e-30
"""Added to |v|: far below rounding, and no power of it is infinite."""


# Jumps without a condition: tanh(1/v)  ->  tanh(1/|v|) if v > 0 else tanh(-1/|v|);  atan(a/b)  ->  atan2(a, b) if b > 0 else atan2(-a, -b),
# smooth where b passes 0. x/|x| is 1, -1 or not a number. So a run stops at the jump, and each side has its own limit there.
def may_be_pole(power: Any) -> bool:
    """Whether a power may have a pole at which it changes its sign; sums, such as those of a softmax, count as positive."""
    odd = power.exp.is_integer and power.exp.is_odd and power.exp.is_negative
    return bool(odd) and not (power.base.is_nonnegative or power.base.has(*REDUCTIONS) or layers_in(power.base))


def may_have_sides(part: Any) -> bool:
    """Whether with_sides may change an expression with this part."""
    if part.is_Pow:
        return may_be_pole(part) and not part.base.has(sp.exp)
    return isinstance(part, (sp.Abs, sp.atan, sp.atan2, *BOUNDED))


def with_sides(e: Any, depends: Depends, *, inside: bool = False) -> Any:
    """e with its cuts, and its poles where they are inside a bounded function, written by sides.

    depends(part): whether that changes in a run.
    """
    if not e.args or isinstance(e, Indexed) or not depends(e):
        return e
    if isinstance(e, sp.atan):
        above, below = sp.fraction(sp.together(e.args[0].replace(sp.tan, lambda u: sp.sin(u) / sp.cos(u))))
        if _may_pass_zero(below, depends):
            above, below = (with_sides(part, depends) for part in (above, below))
            return _choice(below > 0, sp.atan2(above, below), sp.atan2(-above, -below))
    divided = e.is_Pow and e.exp.is_number and e.exp.is_negative
    within = inside or isinstance(e, BOUNDED) or (divided and e.base.has(sp.exp))
    e = rebuilt(e, tuple(with_sides(a, depends, inside=within) for a in e.args))
    if isinstance(e, sp.atan2) and depends(e):
        y, x = e.args
        return _choice(x < 0, _choice(y >= 0, sp.atan2(-y, -x) + sp.pi, sp.atan2(-y, -x) - sp.pi), e)
    if e.is_Mul and (factors := _directions(list(e.args), depends)) != list(e.args):
        return sp.Mul(*factors)
    if inside and isinstance(e, sp.tan):
        return sp.sin(e.args[0]) * _reciprocal(sp.cos(e.args[0]), 1)
    if inside and divided and e.exp.is_integer and e.exp.is_odd and _may_pass_zero(e.base, depends) and not e.base.has(sp.exp):
        return _reciprocal(e.base, -e.exp)
    return e


def _directions(factors: list[Expr], depends: Depends) -> list[Expr]:
    """The factors of a product, with a/|b| and |a|/b by sides where a is a multiple of b."""
    if not any(isinstance(f, sp.Abs) or (f.is_Pow and isinstance(f.base, sp.Abs)) for f in factors):
        return factors
    for a, b in permutations(factors, 2):
        above, below = a, 1 / b
        size, v = (below, above) if isinstance(below, sp.Abs) else (above, below)
        if isinstance(size, sp.Abs) and _may_pass_zero(v, depends) and (k := sp.cancel(size.args[0] / v)).is_number:
            k = sp.Abs(k) if size is above else 1 / sp.Abs(k)
            rest = [f for f in factors if f not in (a, b)]
            return _directions([*rest, sp.Piecewise((k, v > 0), (-k, v < 0), (a * b, True), evaluate=False)], depends)
    return factors


def without_poles(e: Any, depends: Depends) -> Any:
    """A function with the sign of e that passes 0 where e has a pole: e times the square of a divisor that changes its sign.

    1/(x - c)  ->  x - c        tan(x)  ->  sin(x) cos(x)        e itself where no divisor may change its sign.
    """
    # A search brackets the pole as well as a zero. But beside it e is huge and of either sign, also after the run has stopped there,
    # and neither its value nor its slope says on which side the run stands. A product says it, as at every zero.
    if not any((part.is_Pow and may_have_sides(part)) or isinstance(part, sp.tan) for part in sp.preorder_traversal(e)):
        return e
    above, below = sp.fraction(sp.together(e.replace(sp.tan, lambda u: sp.sin(u) / sp.cos(u))))
    turning = [base for base, power in map(Expr.as_base_exp, sp.Mul.make_args(below)) if power.is_odd and _may_pass_zero(base, depends)]
    return above * sp.Mul(*turning) if turning else e


def _may_pass_zero(v: Expr, depends: Depends) -> bool:
    """Whether v may change its sign in a run, as far as its form shows; sums, such as those of a softmax, count as positive."""
    return depends(v) and not (v.is_nonnegative or v.is_nonpositive or v.has(*REDUCTIONS) or layers_in(v))


def _reciprocal(v: Expr, power: Any) -> Any:
    size = (sp.Abs(v) + TINY) ** -power
    return _choice(v > 0, size, -size)


LESS, MORE = (sp.StrictLessThan, sp.LessThan), (sp.StrictGreaterThan, sp.GreaterThan)
FLAT = (sp.Max, sp.Min, sp.Abs, sp.Piecewise, sp.floor, sp.sign, sp.Heaviside)
"""What may be 0 for more than a moment."""
MOST_BRANCHES = 32
"""Combinations of branches of one function; one that has more stays as it is."""


# Functions of events that jump: Piecewise((1, (a < x) & (x < b)), (-1, True))  ->  Min(x - a, b - x). A search that looks at a few times of
# a step sees where such a function falls or rises towards 0. It sees nothing of one that jumps.
class _UnsignedError(Exception):
    """A function has no such form."""


def signed(e: Expr, states: Iterable[str]) -> Expr:
    """A function with the sign of e that does not jump at its conditions.

    e, where it jumps at none, reads none of these states, or has no such form. states: those that change between resets.
    """
    if not names_read(e) & set(states):
        return e
    flat = _stepless(e)
    conditions = [c for p in flat.atoms(sp.Piecewise) for _, condition in p.args for c in condition.atoms(*LESS, *MORE)]
    if not any(may_jump(flat, "sign", c.lhs - c.rhs) for c in conditions):
        return e
    sides = {c: sp.Dummy(real=True) for c in conditions if not names_read(c) & set(states)}
    try:
        form = _of_sign(_put(flat, {c: side > 0 for c, side in sides.items()}))
    except _UnsignedError:
        return e
    return _put(form, {side: _side(c) for c, side in sides.items()})


def _put(e: Any, values: Mapping[Any, Any]) -> Any:
    if e in values or not e.args or isinstance(e, Indexed):
        return values.get(e, e)
    return rebuilt(e, tuple(_put(a, values) for a in e.args))


# A run stops exactly where a condition on time changes. A distance of 0 would be a zero of the event's function there, also between two
# positive branches: so it has the sign that it is about to get. A condition on parameters and on memories alone is no distance at all.
def _side(c: Any) -> Expr:
    """A function that is positive where a condition that reads no states that move holds, and negative elsewhere."""
    g = c.lhs - c.rhs if isinstance(c, MORE) else c.rhs - c.lhs
    if str(time) not in names_read(c):
        return _choice(c, sp.S.One, sp.S.NegativeOne)
    return _choice(sp.Ne(g, 0), g, TINY * directional_derivative(g, {str(time): lambda _: sp.S.One}))


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
    if sp.prod(map(len, parts)) > MOST_BRANCHES:
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
