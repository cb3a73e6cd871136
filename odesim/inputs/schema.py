"""The schema of a System: the shape, default and domain of each parameter and state, read once, without sympy afterwards."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import isfinite
from typing import Any

import numpy as np
import sympy as sp
from sympy import Expr, Indexed, Symbol
from sympy.printing.str import StrPrinter

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, SpecError
from odesim.base.memo import IdentityKey, Memo
from odesim.ir.passes import lower_expressions
from odesim.symbolic.assumptions import assumed_intervals
from odesim.symbolic.definition import all_expressions
from odesim.symbolic.indices import array_at, base_name
from odesim.symbolic.layered import names_read
from odesim.symbolic.parts import Constraint, Param, domain_text, free_in_order, key_indices, required_arguments
from odesim.symbolic.reductions import subexpressions
from odesim.symbolic.system import System
from odesim.targets.numpy_text import ArrayFunction

# sympy decides about one number at a time, thousands of times slower than numpy compares an array, and an ensemble has 10^7 of them: so a
# set becomes comparisons of arrays, once for each System. A set without such a form is still decided by sympy.
Outside = Callable[[Any], Any]
"""A test: numbers of any shape -> bools of that shape, True where a number lies outside."""


@dataclass(frozen=True)
class Domain:
    """A set of numbers. outside: None where every finite number lies inside. text: "[0, 1]", "the whole numbers from 1"."""

    text: str
    outside: Outside | None


def compile_domain(domain: Any) -> Domain:
    """The Domain of a sympy Set of real numbers. Raises SpecError where the set depends on symbols."""
    if domain.free_symbols:
        raise SpecError(f"domain {domain} depends on {sorted(map(str, domain.free_symbols))[0]}; write that as a Constraint")
    return Domain(domain_text(domain), _outside(domain))


def _outside(domain: Any) -> Outside | None:
    if domain in (sp.S.Reals, sp.S.UniversalSet, sp.S.Complexes):
        return None
    if isinstance(domain, sp.Union | sp.Intersection):
        parts = [_outside(d) for d in domain.args]
        tests = [part for part in parts if part]
        if not tests or (isinstance(domain, sp.Union) and None in parts):
            return None
        combine = np.logical_and if isinstance(domain, sp.Union) else np.logical_or
        return lambda x: reduce(combine, [test(x) for test in tests])
    if isinstance(domain, sp.Interval):
        low, high = float(domain.start), float(domain.end)
        below, above = (np.less_equal if domain.left_open else np.less), (np.greater_equal if domain.right_open else np.greater)
        return None if (low, high) == (-np.inf, np.inf) else lambda x: below(x, low) | above(x, high)
    if domain in (sp.S.Integers, sp.S.Naturals, sp.S.Naturals0):
        least = {sp.S.Naturals: 1.0, sp.S.Naturals0: 0.0}.get(domain, -np.inf)
        return lambda x: (x % 1 != 0) | (x < least)
    if isinstance(domain, sp.Range) and domain.size != 0:
        first, last, step = float(domain.inf), float(domain.sup), abs(int(domain.step))
        anchor = int(domain.start) if domain.start.is_finite else int(domain.stop) if domain.stop.is_finite else 0
        return lambda x: (x < first) | (x > last) | ((x - anchor) % step != 0)
    if isinstance(domain, sp.FiniteSet) and all(x.is_number for x in domain):
        allowed = [float(x) for x in domain]
        return lambda x: ~np.isin(x, allowed)
    return lambda x: _decided_by_sympy(domain, x)


def _decided_by_sympy(domain: Any, x: Any) -> Array:
    """Where x lies outside, for sets without a test of their own: sympy decides slowly about each different number."""
    different, where = np.unique(x, return_inverse=True)
    bad = [domain.contains(sp.Rational(float(v))) is not sp.true for v in different]
    return np.array(bad)[where].reshape(np.shape(x))


@dataclass(frozen=True)
class Extent:
    """The length of an axis: const + sum of factor * size over terms. text: as written, "L - 1"."""

    text: str
    const: int
    terms: tuple[tuple[str, int], ...]

    def value(self, sizes: Mapping[str, int]) -> int:
        """The length for these sizes. Raises KeyError where a size is missing."""
        n = self.const
        for name, factor in self.terms:
            n += factor * sizes[name]
        return n


def make_extent(expr: Any) -> Extent:
    """The Extent of a sympy expression or a number. Raises SpecError unless it is a sum of sizes with whole factors."""
    parts = sp.expand(sp.sympify(expr)).as_coefficients_dict()
    const = parts.pop(sp.S.One, sp.S.Zero)
    if not all(s.is_Symbol and f.is_Integer for s, f in parts.items()) or not const.is_Integer:
        raise SpecError(f"extent {expr} is not a whole number plus multiples of sizes")
    return Extent(str(expr), int(const), tuple(sorted((s.name, int(f)) for s, f in parts.items() if f != 0)))


Default = Callable[[Mapping[str, int], Mapping[str, Any]], Any]
REALS = Domain("(-inf, inf)", None)


@dataclass(frozen=True)
class Formula:
    """An expression in parameters, sizes and its indices, compiled for whole arrays."""

    expr: Expr
    indices: tuple[Symbol, ...]
    function: ArrayFunction
    extents: tuple[Extent, ...]

    def __call__(self, sizes: Mapping[str, int], values: Mapping[str, Any]) -> Array:
        """The values of the expression, an array with one axis per index."""
        value = np.asarray(self.function(sizes, values)["_value"], float)
        return np.broadcast_to(value, tuple(e.value(sizes) for e in self.extents)) if self.extents else value


@dataclass(frozen=True)
class Rule:
    """A Constraint as an expression and a target: sum - 1 == 0 has the expression sum and the target 1.

    expr: the constraint's expression without its number. formula: expr, compiled. of_start: it reads states.
    """

    constraint: Constraint
    expr: Expr
    target: float
    formula: Formula
    of_start: bool


@dataclass(frozen=True)
class Place:
    """A parameter or a state: where numbers go.

    start: its default. indexes: the size whose rows the values name, or None; cover: all of them.
    """

    name: str
    extents: tuple[Extent, ...]
    start: float | Default | Formula
    domain: Domain = REALS
    integer: bool = False
    indexes: str | None = None
    cover: bool = True

    @cached_property
    def plain(self) -> float | None:
        """The default, where it is a number for no shape that no check refuses, as of most states with a name of their own; else None."""
        start, free = self.start, self.domain.outside is None and not (self.integer or self.extents)
        return start if free and type(start) is float and isfinite(start) else None

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def shape_text(self) -> str:
        """The shape as text, "(K, S)"."""
        inside = ", ".join(e.text for e in self.extents)
        return f"({inside},)" if self.rank == 1 else f"({inside})"


@dataclass(frozen=True)
class Schema:
    """All facts about a System that binding needs, without symbols to handle.

    numbered_elements: (element, index, extent of that axis, event) of every element with a number as index. The event is the name of the
    one that has it, or empty.
    """

    name: str
    params: tuple[Place, ...]
    states: tuple[Place, ...]
    sizes: tuple[str, ...]
    size_defaults: dict[str, int]
    axes: tuple[Extent, ...]
    span: tuple[float, float]
    rules: tuple[Rule, ...]
    numbered_elements: tuple[tuple[str, int, Extent, str], ...]


# reading a System takes 20 ms of sympy, binding numbers to it 0.1 ms: a sweep binds many times
_SCHEMAS: Memo[Schema] = Memo()


def make_schema(system: System) -> Schema:
    """The schema of a System, cached for the last 64. Raises SpecError where a shape, default or domain cannot be used."""
    return _SCHEMAS(IdentityKey(system), lambda: _schema(system))


def _schema(s: System) -> Schema:
    try:
        sets = assumed_intervals(s)
        return Schema(
            name=s.name,
            params=tuple(map(_param_place, s.params)),
            states=tuple(_state_place(s, k, sets[base_name(k)]) for k in s.equations),
            sizes=s.size_names,
            size_defaults={str(k): int(n) for k, n in s.sizes.items()},
            axes=tuple(map(make_extent, s.axes.values())),
            span=(float(s.span[0]), float(s.span[1])),
            rules=tuple(_rule(s, c) for c in s.constraints),
            numbered_elements=_numbered_elements(s),
        )
    except SpecError as e:
        raise SpecError(f"{s.name}: {e}") from None


def _numbered_elements(s: System) -> tuple[tuple[str, int, Extent, str], ...]:
    shapes = {**s.shapes, **{p.name: p.shape for p in s.params}}  # those of layers stand in their arrays
    elements = subexpressions(all_expressions(s), Indexed)
    events = {a: event.name for event in s.events for a in sp.sympify(event.expr).atoms(Indexed)}
    pairs = ((a, i, n) for a in elements for i, n in zip(a.indices, shapes.get(base_name(a), a.base.shape), strict=True))
    return tuple(sorted(((str(a), int(i), make_extent(n), events.get(a, "")) for a, i, n in pairs if i.is_Integer), key=str))


def _param_place(p: Param) -> Place:
    return Place(
        name=p.name,
        extents=tuple(map(make_extent, p.shape)),
        start=_default(p),
        domain=compile_domain(p.domain),
        integer=p.integer,
        indexes=None if p.indexes is None else str(p.indexes),
        cover=p.cover,
    )


def _default(p: Param) -> float | Default:
    """The default of a parameter: a number, or a function of (sizes, parameters)."""
    if not callable(p.default):
        try:
            x = float(p.default)
        except (TypeError, ValueError):
            raise SpecError(f"the default of {p.name} is neither a number nor a function: {p.default!r}") from None
        return int(x) if p.integer and x.is_integer() else x
    f = p.default
    return (lambda sizes, _: f(sizes)) if required_arguments(f) == 1 else f


def _state_place(s: System, key: Indexed | Symbol, assumed: sp.Interval | None) -> Place:
    """The place of a state's initial value, whose domain is the set that its symbol assumes."""
    name = base_name(key)
    initial_key, expr = next((k, e) for k, e in s.initial.items() if base_name(k) == name)
    start = float(expr) if expr.is_number and not expr.atoms(Indexed) else _formula(s, expr, key_indices(initial_key))
    extents = tuple(make_extent(s.axes[i]) for i in key_indices(key))
    if assumed is None:
        return Place(name, extents, start)
    domain = compile_domain(assumed)
    return Place(name, extents, start, replace(domain, text=f"{domain.text}, which its symbol assumes"))


def _rule(s: System, c: Constraint) -> Rule:
    number, expr = (sp.S.Zero, c.expr) if c.sense == "increasing" else c.expr.as_coeff_Add()
    return Rule(c, expr, 0.0 - float(number), _formula(s, expr, free_in_order(expr, s.axes)), not names_read(expr).isdisjoint(s.states))


def _formula(s: System, expr: Expr, indices: tuple[Symbol, ...]) -> Formula:
    function = ArrayFunction(lower_expressions({array_at("_value", indices, s.axes): expr}, s.axes), products=False)
    return Formula(expr, indices, function, tuple(make_extent(s.axes[i]) for i in indices))


# Rules, and the sentences about those that are broken.


def check_rule(rule: Rule, values: Array, first: int | None = None) -> None:
    """Raises ParamError where values (N, *shape) of the rule's formula break it, naming the worst entry of the first such row.

    first: the rows are members first, first + 1, ..., and the message names the member.
    """
    broken = _does_not_increase(rule, values) if rule.constraint.sense == "increasing" else _is_violated(rule, values)
    if broken is not None:
        member, sentence = broken
        raise ParamError(sentence if first is None else f"{sentence} in member {first + member}")


def _is_violated(rule: Rule, values: Array) -> tuple[int, str] | None:
    """The first row of values that breaks an equation or a bound, and the sentence about it."""
    x = values - rule.target
    violation = abs(x) if rule.constraint.sense == "==0" else -x
    valid = (violation <= rule.constraint.tol).reshape(len(x), -1).all(axis=1)  # NaN breaks a rule too
    if valid.all():
        return None
    member = int(np.argmin(valid))
    row = np.where(np.isnan(violation[member]), np.inf, violation[member])
    worst = tuple(map(int, np.unravel_index(int(row.argmax()), row.shape)))
    return member, _broken_rule_text(rule, worst, float(x[member][worst]) + rule.target)


def _does_not_increase(rule: Rule, values: Array) -> tuple[int, str] | None:
    """The first row of values that does not increase along the axis of points, and the sentence about it."""
    expr, indices = rule.expr, rule.formula.indices
    k = expr.indices[-1] if isinstance(expr, Indexed) else indices[-1]
    axis = 1 + indices.index(k)
    rises = np.diff(values, axis=axis) > 0
    if rises.all():
        return None
    member, *place = map(int, np.unravel_index(int(np.argmin(rises)), rises.shape))
    after = [p + (n + 1 == axis) for n, p in enumerate(place)]
    before, here = (number_text(float(values[(member, *at)])) for at in (place, after))
    at = ", ".join(f"{i} = {p}" for i, p in zip(indices, after, strict=True))
    return member, f"{rule.constraint.name}: {_formula_text(expr)} must increase along {k}, and {here} at {at} follows {before}"


def _broken_rule_text(rule: Rule, indices: tuple[int, ...], value: float) -> str:
    """The sentence about a broken rule, for the value of its formula at these indices.

    `rows of P must sum to 1: row 2 sums to 0.93 (tolerance 1e-06)`, `M is at least K: M - K must be at least 0; it is -1`.
    A name that says no more than the formula is left out: `L must be at least 2; it is 1`.
    """
    c, expr = rule.constraint, rule.expr
    sign = -1 if c.sense == ">=0" and expr.as_coeff_Mul()[0].is_negative else 1  # x**2 at most 1, not -x**2 at least -1
    need = f"{'be' if c.sense == '==0' else 'be at least' if sign > 0 else 'be at most'} {sign * rule.target + 0.0:g}"
    tolerance = f" (tolerance {c.tol:g})" if c.tol else ""
    array = _sum_of_last_axis(expr)
    if array is not None and c.sense == "==0":
        rows = len(array.indices) == 2
        what, which = (f"rows of {array.base}", f"row {indices[0]}") if rows else (str(array.base), "it")
        return f"{what} must sum to {rule.target:g}: {which} sums to {_unlike(value, rule.target)}{tolerance}"
    place = "".join(f"{' at' if n == 0 else ','} {i} = {k}" for n, (i, k) in enumerate(zip(rule.formula.indices, indices, strict=True)))
    requirement = f"{_formula_text(sign * expr)} must {need}"
    name = "" if requirement.replace(" must be ", " is ") == c.name else f"{c.name}: "
    return f"{name}{requirement}; it is {_unlike(sign * value + 0.0, sign * rule.target + 0.0)}{place}{tolerance}"


def _unlike(value: float, target: float) -> str:
    """A value in six digits, or in as many as show that it is not the target."""
    return next(text for digits in (6, 9, 12, 17) if (text := f"{value:.{digits}g}") != f"{target:.{digits}g}" or digits == 17)


def _sum_of_last_axis(e: Any) -> Any:
    """The array element that e sums over its last index: P[n, l] or p[n]. None where e is anything else."""
    if isinstance(e, sp.Sum) and isinstance(e.function, Indexed) and len(e.limits) == 1 and e.limits[0][1] == 0:
        inside = e.function.indices
        if len(inside) <= 2 and inside[-1] == e.limits[0][0] and all(i.is_Symbol for i in inside):
            return e.function
    return None


def _formula_text(e: Any) -> str:
    """e as text: sums in words, subtracted terms last."""
    sums = sorted(e.atoms(sp.Sum), key=str)
    names = {s: sp.Symbol(f"sum of {s.function} over {', '.join(str(k) for k, *_ in s.limits)}") for s in sums}
    terms = sp.Add.make_args(e.xreplace(names))
    ordered = sp.Add(*sorted(terms, key=lambda x: x.could_extract_minus_sign()), evaluate=False) if len(terms) > 1 else terms[0]
    return StrPrinter({"order": "none"}).doprint(ordered)


def number_text(x: float) -> str:
    """x as text: in six digits where these are exact, else in full."""
    return f"{x:.6g}" if x == float(f"{x:.6g}") else repr(x)
