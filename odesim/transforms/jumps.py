"""Where a right-hand side may jump or pulse: a test of conditions on states, and a search for functions of time."""

import random
from collections.abc import Iterator, Mapping
from itertools import islice, product
from math import prod
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, Symbol

from odesim.symbolic.indices import time
from odesim.symbolic.layered import layers_in, names_read
from odesim.symbolic.reductions import REDUCTIONS, inside, rebuilt
from odesim.symbolic.system import System
from odesim.symbolic.times import has_ranges

COMPARISONS = (sp.StrictLessThan, sp.LessThan, sp.StrictGreaterThan, sp.GreaterThan)
DIGITS = 330
TOLERANCE = sp.Float("1e-300")
"""How far two sides are apart: (y/100)**50 has 1e-100 about y = 1, and is no small jump at y = 100."""
FAR, SATURATING = 300, (sp.exp, sp.tanh, sp.erf, sp.erfc)
"""Functions that are flat to TOLERANCE where their arguments are larger than FAR."""
NEAR = sp.Float("1e-1000")
"""How near to the boundary, in its own units, both sides are compared: on it, conditions that hold on one side only may hold on none."""
POINTS, TRIALS = 4, 40
MOST_COMBINATIONS = 128
"""Combinations of other conditions that are tried; with more than these, a right-hand side is taken to jump."""


# Random points beside the boundary, on both sides of it, in many digits: sympy cannot prove that two sides are equal, and a proof is not
# needed to be right. A jump that is seen where there is none costs stops of a run; one that is missed costs its order. Other conditions may
# hide the jump, as in (t < a) & (y < b) for t above a. So every combination of their outcomes is tried, and a jump in one of them counts.
def may_jump(rhs: Any, kind: str, g: Expr) -> bool:
    """Whether rhs may jump where g changes its sign (kind "sign") or is a whole number (kind "level"); True where it is undecided."""
    sums: dict[Any, Symbol] = {}
    bodies = [_without_sums(rhs, sums)]
    visited = 0
    while visited < len(sums):
        bodies.append(_without_sums(list(sums)[visited].function, sums))
        visited += 1
    flat = _without_sums(g, sums)
    flat = _primitive(flat) if kind == "sign" else flat
    return any(_jumps(term, kind, flat) for body in bodies for term in sp.Add.make_args(body))


def _without_sums(e: Any, sums: dict[Any, Symbol]) -> Any:
    """e with each sum, expanded as the conditions are, replaced by a symbol; sums gets {sum: symbol}."""
    if isinstance(e, REDUCTIONS):
        e = sp.expand(e)
        if isinstance(e, REDUCTIONS):
            return sums.setdefault(e, Symbol(f"_sum{len(sums)}", real=True))
    if not e.args or isinstance(e, Indexed):
        return e
    return rebuilt(e, tuple(_without_sums(a, sums) for a in e.args))


def _jumps(body: Any, kind: str, g: Expr) -> bool:
    above, below = _one_side(body, kind, g, 1), _one_side(body, kind, g, -1)
    if above == below:
        return False
    level = Symbol("_level", integer=True)
    surface = g if kind == "sign" else g - level
    beside = [_solve_boundary(surface - side * NEAR) for side in (1, -1)]
    if beside[0] is None or beside[1] is None:
        return True
    above, below = _replace(above, beside[0]), _replace(below, beside[1])  # decides the conditions that follow from the boundary
    other = _outcomes(sp.Tuple(above, below))
    if prod(map(len, other.values())) > MOST_COMBINATIONS:
        return True
    for outcome in product(*other.values()):
        chosen = dict(zip(other, outcome, strict=True))
        if _differ(_replace(above, chosen), _replace(below, chosen)):
            return True
    return False


def _outcomes(e: Any) -> dict[Any, tuple[Any, ...]]:
    """{condition, step or maximum in e: the values it can take}."""
    values: dict[Any, tuple[Any, ...]] = {}
    for part in sp.preorder_traversal(e):
        if isinstance(part, COMPARISONS):
            values[part] = (sp.true, sp.false)
        elif isinstance(part, sp.sign):
            values[part] = (sp.S.One, sp.S.NegativeOne)
        elif isinstance(part, sp.Heaviside):
            values[part] = (sp.S.One, sp.S.Zero)
        elif isinstance(part, sp.floor):
            values[part] = (sp.S.Zero, sp.S.One)
        elif isinstance(part, sp.Max | sp.Min):
            values[part] = part.args
        elif isinstance(part, sp.Abs):
            values[part] = (part.args[0], -part.args[0])
    return values


def _replace(e: Any, values: dict[Any, Any]) -> Any:
    """e with its terms replaced by their values, outer terms first."""
    if e in values:
        return values[e] if isinstance(e, Symbol | Indexed) else _replace(values[e], values)
    if not e.args or isinstance(e, Indexed):
        return e
    args = tuple(_replace(a, values) for a in e.args)
    return e.func(*args) if args != e.args else e


def _differ(above: Any, below: Any) -> bool:
    """Whether the values on the two sides of the boundary differ; True where too few points can be evaluated."""
    if above == below:
        return False
    equal = 0
    for point in islice(_points(sp.Tuple(above, below)), TRIALS):
        try:
            sides = [_at(e, point).evalf(DIGITS) for e in (above, below)]
        except (TypeError, ValueError, ZeroDivisionError, AttributeError):
            continue
        if sp.nan not in sides:  # nan on one side: the right-hand side is not defined there, and no step crosses
            if not all(x.is_number and x.is_real and x.is_finite for x in sides):
                continue
            if abs(sides[0] - sides[1]) > TOLERANCE * (1 + abs(sides[0])):
                return True
        equal += 1
        if equal >= POINTS:
            return False
    return True


# 1 + exp(-1000*(x - y)**2) is 1 at most points, and 2 where y = x. What such a function is there stands for what it may be.
def _at(e: Any, point: dict[Any, Any]) -> Any:
    """e at a point. What saturates far from 0 has a random argument there, one for each value."""
    if e in point:
        return point[e]
    if not e.free_symbols:
        return e
    args = [_at(a, point) for a in e.args]
    last = isinstance(e, SATURATING) or (e.is_Pow and e.exp.free_symbols)
    if last and (u := args[-1].evalf(DIGITS)).is_real and abs(u) > FAR:
        args[-1] = sp.Float(random.Random(str(u.evalf(DIGITS // 2))).uniform(-2.0, 2.0), DIGITS)
    return e.func(*args)


def _one_side(e: Any, kind: str, g: Expr, side: int) -> Any:
    """e on one side of the boundary of g: above it (side 1) or below (side -1)."""
    if not e.args or isinstance(e, Indexed):
        return e
    if kind == "sign":
        part, turned = None, 0
        if isinstance(e, COMPARISONS):
            part, turned = sp.expand(e.lhs - e.rhs), 1
        elif isinstance(e, sp.sign | sp.Heaviside):
            part, turned = e.args[0], 1
        if part is not None:
            part = _primitive(part)
            if part == _primitive(-g):
                part, turned = g, -turned
            if part == g:
                up = turned * side > 0
                if isinstance(e, COMPARISONS):
                    return sp.true if up == isinstance(e, sp.StrictGreaterThan | sp.GreaterThan) else sp.false
                return sp.S.One if up else (sp.S.NegativeOne if isinstance(e, sp.sign) else sp.S.Zero)
    elif isinstance(e, sp.floor) and e.args[0] == g:
        return Symbol("_level", integer=True) - (0 if side > 0 else 1)
    args = tuple(_one_side(a, kind, g, side) for a in e.args)
    if args == e.args:
        return e
    return sp.Piecewise(*args) if isinstance(e, sp.Piecewise) else e.func(*args)


def _primitive(e: Expr) -> Expr:
    """e without its positive numerical factor."""
    return sp.expand(e).as_content_primitive()[1]


def _solve_boundary(surface: Expr) -> dict[Any, Expr] | None:
    """{a: value}: surface = 0 solved for one state or number a in which it is affine; None where there is none."""
    indices = {i for a in surface.atoms(Indexed) for i in a.free_symbols}
    for a in sorted([*surface.atoms(Indexed), *(surface.free_symbols - indices)], key=str):
        if isinstance(a, Symbol) and (a == time or a.is_integer):
            continue
        slope = sp.expand(surface.diff(a)) if isinstance(a, Symbol) else sp.expand(_slope(surface, a))
        if slope != 0 and not slope.has(a):
            return {a: sp.expand(a - surface / slope)}
    return None


def _slope(surface: Expr, a: Indexed) -> Expr:
    hole = sp.Dummy("hole", real=True)
    return surface.xreplace({a: hole}).diff(hole)


def _points(e: Any) -> Iterator[dict[Any, Any]]:
    """Random values for everything that e reads, endlessly; every other point has positive values only."""
    generator = random.Random(1)
    elements = sorted(e.atoms(Indexed), key=str)
    symbols = [s for s in sorted(e.free_symbols, key=str) if isinstance(s, Symbol)]
    while True:
        for low in (0.2, -2.0):
            point: dict[Any, Any] = {a: sp.Float(generator.uniform(low, 2.0), DIGITS) for a in elements}
            for s in symbols:
                positive = low > 0 or s.is_positive or s.is_nonnegative
                number = generator.uniform(0.2, 2.0) if positive else generator.uniform(low, 2.0)
                point[s] = sp.Integer(generator.randint(0, 3)) if s.is_integer else sp.Float(number, DIGITS)
            yield point


# Functions of time that may rest, rise and fall, so briefly that a step passes over them: error control sees nothing of what no stage has
# met.
FLAT_POWER = 8
"""A whole power as high as that is flat where what is raised is small."""


def pulses_in(system: System) -> Iterator[tuple[Expr, Mapping[Symbol, Any]]]:
    """(function of time alone, {index: extent} around it) of each part of the right-hand sides that may be a pulse."""
    states = set(system.states)
    rates = list(system.equations.values())
    seen: set[Expr] = set()
    for e, axes in [*((rhs, system.axes) for rhs in rates), *((layer.definition, layer.axes) for layer in layers_in(*rates))]:
        for g, scope in _of_time(e, dict(axes), states):
            if g not in seen and may_pulse(g):
                seen.add(g)
                yield g, scope


def _of_time(e: Any, scope: dict[Symbol, Any], states: set[str]) -> Iterator[tuple[Expr, Mapping[Symbol, Any]]]:
    """The largest parts of e that change with time and not with states; of sums their terms, too."""
    if not getattr(e, "args", ()) or not e.has(time):
        return
    if isinstance(e, Expr) and not names_read(e) & states:
        yield e, scope
        if not e.is_Add:
            return
    if isinstance(e, REDUCTIONS):
        scope = inside(e.limits, scope)
    elif e.is_Add or e.is_Mul:
        of_time = [a for a in e.args if a.has(time) and not names_read(a) & states]
        if 1 < len(of_time) < len(e.args):
            yield from _of_time(e.func(*of_time), scope, states)
            return
    for a in (e.function,) if isinstance(e, REDUCTIONS) else e.args:
        yield from _of_time(a, scope, states)


def may_pulse(g: Expr) -> bool:
    """Whether a function of time may rest, rise and fall, and its ranges are known.

    Sines, powers and one monotone function such as exp(-t/T) do not: a step sees from its ends that they change.
    """
    if not has_ranges(g):
        return False
    flat = set()
    for part in sp.preorder_traversal(g):
        if not part.args or not part.has(time) or part.is_Add or part.is_Mul or isinstance(part, (sp.sin, sp.cos, *REDUCTIONS)):
            continue
        if part.is_Pow and part.exp.is_integer and part.exp.is_positive and not part.exp >= FLAT_POWER:
            continue
        inner = part.exp if part.is_Pow and part.exp.has(time) else part.args[0]
        if inner.diff(time).has(time):
            return True
        flat.add((part.func, inner))
    return len(flat) > 1
