"""Jumps without a condition: poles inside bounded functions and the cut of atan2, written with the condition on whose sides they differ.

tanh(1/v)  ->  tanh(1/|v|) if v > 0 else tanh(-1/|v|);    atan(a/b)  ->  atan2(a, b) if b > 0 else atan2(-a, -b), smooth where b passes 0.
x/|x| is 1, -1 or not a number. So a run stops at the jump, and each side has its own limit there.
"""

from itertools import permutations
from typing import Any

import sympy as sp
from sympy import Expr, Indexed

from odesim.symbolic.layered import layers_in
from odesim.symbolic.reductions import REDUCTIONS
from odesim.transforms.conditions import Depends

BOUNDED = (sp.tanh, sp.erf, sp.erfc)
TINY = 1e-30
"""Added to |v|: far below rounding, and no power of it is infinite."""


def may_have_sides(part: Any) -> bool:
    """Whether with_sides may change an expression with this part."""
    if part.is_Pow:
        odd = part.exp.is_integer and part.exp.is_odd and part.exp.is_negative
        return bool(odd) and not (part.base.is_nonnegative or part.base.has(sp.exp, *REDUCTIONS) or layers_in(part.base))
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
    args = tuple(with_sides(a, depends, inside=within) for a in e.args)
    if args != e.args:
        e = sp.Piecewise(*args, evaluate=False) if isinstance(e, sp.Piecewise) else e.func(*args)
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


def _may_pass_zero(v: Expr, depends: Depends) -> bool:
    """Whether v may change its sign in a run, as far as its form shows; sums, such as those of a softmax, count as positive."""
    return depends(v) and not (v.is_nonnegative or v.is_nonpositive or v.has(*REDUCTIONS) or layers_in(v))


def _reciprocal(v: Expr, power: Any) -> Any:
    size = (sp.Abs(v) + TINY) ** -power
    return _choice(v > 0, size, -size)


def _choice(condition: Any, case: Any, other: Any) -> Any:
    return sp.Piecewise((case, condition), (other, True), evaluate=False)
