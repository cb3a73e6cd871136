"""Times at which something happens: formulas in parameters, single or periodic, or else the zeros of a function of time.

t < a[i]  ->  a[i];    Mod(t, q) < w  ->  k q and w + k q;    |t - a| < w  ->  a + w, a - w. Times at which nothing changes do no harm.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import sympy as sp
from sympy import Expr

from odesim.base.intervals import FUNCTIONS
from odesim.symbolic.indices import time
from odesim.symbolic.layered import without_layers
from odesim.symbolic.reductions import REDUCTIONS, SumOver

LIMITS: dict[Any, tuple[int, ...]] = {sp.log: (0,), sp.asin: (-1, 1), sp.acos: (-1, 1), sp.atanh: (-1, 1), sp.acosh: (1,)}
"""{function: the ends of its domain}."""
KNOWN = f"write it with sums, products and powers, remainders, and {', '.join(sorted(FUNCTIONS))} of the time"
"""Advice on expressions whose times are known, for messages."""


class UnknownTimesError(Exception):
    """No formula is known for the times at which an expression changes its sign."""


class BetweenKinksError(UnknownTimesError):
    """No formula is known, since terms of a sum have kinks; a run stops at these, and its search finds zeros between them."""


class _OfExpressions:
    """Times that follow from expressions."""

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions from which the times are computed."""
        return tuple(e for e in vars(self).values() if e is not None)

    def renamed(self, moved: Mapping[Any, Any]) -> Self:
        """These times with other names of indices."""
        return type(self)(*(e.xreplace(moved) for e in self.expressions))


@dataclass(frozen=True)
class Times(_OfExpressions):
    """The times first + k period for all whole numbers k; only first where period is None. Both are free of the time."""

    first: Expr
    period: Expr | None = None


@dataclass(frozen=True)
class Zeros(_OfExpressions):
    """The times at which `function` is 0 or jumps across it, for which no formula is known: interval arithmetic isolates them."""

    function: Expr


class Pulses(Zeros):
    """The times at which `function`, which rests elsewhere, rises and falls: so briefly that a step may pass over it."""


AnyTimes = Times | Zeros


def isolated(g: Expr) -> Zeros:
    """The times at which g is 0, to be isolated. Raises UnknownTimesError where its ranges are not known."""
    if not has_ranges(g):
        raise UnknownTimesError
    return Zeros(g)


def has_ranges(e: Expr, *, summed: bool = False) -> bool:
    """Whether interval arithmetic knows the ranges of e over a span of time; summed: within a sum."""
    if not e.has(time) or e == time:
        return True
    if isinstance(e, SumOver):
        whole = all(n.is_positive for n in e.limits[0][2].free_symbols)  # up to a size, not up to an index
        plain = not summed and len(e.limits) == 1 and whole and not floors_of(e)
        return plain and has_ranges(e.function, summed=True)
    known = e.is_Add or e.is_Mul or e.is_Pow or type(e).__name__ in FUNCTIONS
    return known and all(has_ranges(a, summed=summed) for a in e.args)


def floors_of(e: Expr) -> list[Expr]:
    """The whole parts in e that change with time."""
    return sorted((a for a in e.atoms(sp.floor) if a.has(time)), key=str)


def with_levels(e: Expr) -> tuple[Expr, dict[Expr, Expr]]:
    """e with a symbol for each whole part that changes with time, and {whole part: its symbol}."""
    levels = {a: sp.Dummy("level", integer=True) for a in floors_of(e)}
    return e.xreplace(levels), levels


def edges(e: Expr) -> list[Expr]:
    """The functions of time whose zeros begin or end the domain of e: u for log(u), sqrt(u)."""
    functions = []
    for part in sp.preorder_traversal(e):
        if part.args and part.args[0].has(time):
            root = part.is_Pow and not part.exp.is_integer
            functions += [part.args[0] - limit for limit in ((0,) if root else LIMITS.get(part.func, ()))]
    return functions


KINKS = (sp.Abs, sp.Max, sp.Min)
JUMPS = (sp.sign, sp.Heaviside)


# A time too many costs a step; a time that is missing costs a wrong number. So every branch of a Piecewise counts, also one that is not
# taken.
def zero_times(g: Expr) -> list[AnyTimes]:
    """All times at which g may change its sign, and perhaps others. Raises UnknownTimesError."""
    g = without_remainders(without_layers(g, str(time)))
    if not g.has(time):
        return []
    if has_kinked_sums(g):
        raise BetweenKinksError
    inner = next((a for a in sp.postorder_traversal(g) if isinstance(a, (*KINKS, *JUMPS, sp.Piecewise)) and a.has(time)), None)
    if inner is None:
        return _smooth_zeros(g)
    times = break_times(inner)
    for branch in _branches(inner):
        times += zero_times(g.xreplace({inner: branch}))
    return times


def has_kinked_sums(g: Expr) -> bool:
    """Whether terms of a sum in g have kinks or jumps in time, as those of a table have."""
    sums = without_layers(g, str(time)).atoms(*REDUCTIONS)
    return any(part.has(time) for total in sums for part in total.function.atoms(*KINKS, *JUMPS, sp.Piecewise))


def break_times(e: Expr) -> list[AnyTimes]:
    """All times at which an expression in time jumps or has a kink, and perhaps others. Raises UnknownTimesError."""
    times: list[AnyTimes] = []
    for part in sp.postorder_traversal(without_remainders(without_layers(e, str(time)))):
        if not part.has(time):
            continue
        if isinstance(part, sp.core.relational.Relational) and not isinstance(part, sp.Eq | sp.Ne):
            times += zero_times(part.lhs - part.rhs)
        elif isinstance(part, (sp.Abs, *JUMPS)):
            times += zero_times(part.args[0])
        elif isinstance(part, sp.Max | sp.Min):
            times += [t for k, a in enumerate(part.args) for b in part.args[:k] for t in zero_times(a - b)]
        elif isinstance(part, sp.floor | sp.ceiling):
            times += whole_number_times(part.args[0])
    return times


def whole_number_times(u: Expr) -> list[AnyTimes]:
    """The times at which u is a whole number. Raises UnknownTimesError."""
    u = without_layers(u, str(time))
    if not with_levels(u)[0].has(time):
        return []  # a floor within a floor: the inner one gives all times
    try:
        slope, start = affine_coefficients(u)
    except UnknownTimesError:
        return [isolated(sp.sin(sp.pi * u))]
    return [Times(-start / slope, 1 / slope)]


def affine_coefficients(u: Expr) -> tuple[Expr, Expr]:
    """(a, b) of u = a t + b. Raises UnknownTimesError."""
    slope = sp.expand(u.diff(time))
    # atan(tan(t)) has the slope 1 and jumps
    if slope.has(time) or slope == 0 or any(a.has(time) for a in u.atoms(sp.atan, sp.asin, sp.acos)):
        raise UnknownTimesError
    return slope, u.xreplace({time: sp.S.Zero})


def without_remainders(e: Expr) -> Expr:
    """Mod(u, q) -> u - q floor(u/q), frac(u) -> u - floor(u), ceiling(u) -> -floor(-u)."""
    if not e.args or isinstance(e, sp.Indexed):
        return e
    args = [without_remainders(a) for a in e.args]
    if isinstance(e, sp.Mod):
        return args[0] - args[1] * sp.floor(args[0] / args[1])
    if isinstance(e, sp.frac):
        return args[0] - sp.floor(args[0])
    if isinstance(e, sp.ceiling):
        return -sp.floor(-args[0])
    return e.func(*args) if tuple(args) != e.args else e


def _branches(e: Expr) -> Iterator[Expr]:
    """The expressions that e may be equal to between its breaks."""
    if isinstance(e, sp.Abs):
        yield from (e.args[0], -e.args[0])
    elif isinstance(e, sp.Piecewise):
        yield from (value for value, _ in e.args)
    elif isinstance(e, JUMPS):
        yield from (sp.S.One, sp.S.NegativeOne if isinstance(e, sp.sign) else sp.S.Zero)
    else:
        yield from e.args


def _smooth_zeros(g: Expr) -> list[AnyTimes]:
    """Times of the zeros of an expression whose only jumps are floors, and of the edges of its domain."""
    floors = floors_of(g)
    times = [*(t for u in edges(g) for t in zero_times(u)), *(t for a in floors for t in whole_number_times(a.args[0]))]
    try:
        zeros = _between_floors(g) if floors else _solve(g, sp.S.Zero)
    except UnknownTimesError:
        return [*times, isolated(g)]
    # real and finite ones: exp(t) = 0 has one at infinity
    return times + [at for at in zeros if not any(e.has(sp.I, sp.zoo, sp.oo, -sp.oo, sp.nan) for e in at.expressions)]


def _between_floors(g: Expr) -> list[AnyTimes]:
    """Times of the zeros between the jumps of floors, of an expression affine in time and in one floor. Raises UnknownTimesError."""
    flat, levels = with_levels(g)
    flat = sp.expand(flat)
    if not flat.has(time):
        return []
    slope, start = affine_coefficients(flat)
    left = [level for level in levels.values() if flat.has(level)]
    if len(left) != 1 or slope.has(left[0]):
        raise UnknownTimesError
    step = sp.expand(start.diff(left[0]))
    if step.has(left[0]):
        raise UnknownTimesError
    first = -start.xreplace({left[0]: sp.S.Zero}) / slope
    return [Times(first, None if step == 0 else -step / slope)]


# Inverting by hand and not by sympy.solve: it is exact, fast, and says at once what it cannot do; solve() may take minutes and lose roots.
def _solve(e: Expr, target: Expr) -> list[AnyTimes]:
    """The times at which e equals target, by inverting one function after another. Raises UnknownTimesError."""
    try:
        slope, start = affine_coefficients(e)
        return [Times((target - start) / slope)]
    except UnknownTimesError:
        pass
    if e.is_Add or e.is_Mul:
        inside = [a for a in e.args if a.has(time)]
        rest = e.func(*(a for a in e.args if a not in inside))
        if len(inside) == 1:
            return _solve(inside[0], target - rest if e.is_Add else target / rest)
        if e.is_Mul and target == 0:
            return [t for a in inside for t in _solve(a, sp.S.Zero)]
        return _quadratic(e, target)
    if isinstance(e, sp.exp):
        return _solve(e.args[0], sp.log(target))
    if isinstance(e, sp.log):
        return _solve(e.args[0], sp.exp(target))
    if isinstance(e, sp.tanh):
        return _solve(e.args[0], sp.log((1 + target) / (1 - target)) / 2)
    if isinstance(e, sp.sin | sp.cos):
        angle = sp.asin(target) if isinstance(e, sp.sin) else sp.acos(target)
        slope, start = affine_coefficients(e.args[0])
        other = sp.pi - angle if isinstance(e, sp.sin) else -angle
        return [Times((a - start) / slope, 2 * sp.pi / slope) for a in (angle, other)]
    if e.is_Pow and not e.exp.has(time):
        if e.exp == sp.Rational(1, 2):
            return _solve(e.base, target**2)
        if e.exp.is_Integer and e.exp > 0:
            size = sp.Abs(target) ** (1 / e.exp)
            return [t for root in (size, -size) for t in _solve(e.base, root)]
    if e.is_Pow and not e.base.has(time):
        return _solve(e.exp, sp.log(target) / sp.log(e.base))
    raise UnknownTimesError


def _quadratic(e: Expr, target: Expr) -> list[AnyTimes]:
    """The zeros of e - target = a t^2 + b t + c, without loss of digits where b^2 is far above 4 a c. Raises UnknownTimesError."""
    a = sp.expand(e.diff(time, 2)) / 2
    if a.has(time) or a == 0:
        raise UnknownTimesError
    b, c = e.diff(time).xreplace({time: sp.S.Zero}), e.xreplace({time: sp.S.Zero}) - target
    root = sp.sqrt(b**2 - 4 * a * c)
    q = -(b + sp.Piecewise((root, b >= 0), (-root, True))) / 2
    return [Times(q / a), Times(c / q)]
