"""Directional derivatives of expressions, and of a System's right-hand side: jvp."""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain, combinations
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, KroneckerDelta, Sum, Symbol

from odesim.base.errors import SpecError
from odesim.symbolic.definition import all_names, twin_state
from odesim.symbolic.functions import Share, XLogY, special_slope
from odesim.symbolic.indices import Inside, base_name, padded_as_choice
from odesim.symbolic.layered import Layer, Value, layers_in
from odesim.symbolic.parts import Key
from odesim.symbolic.reductions import AtMax, MaxOver, Shift, SumOver, UpTo, at_max, free_indices, triangle
from odesim.symbolic.system import System
from odesim.symbolic.times import without_remainders

Direction = Callable[[tuple[Any, ...]], Any]
STEPS = (sp.sign, sp.Heaviside, sp.floor, sp.ceiling)
"""Step functions: constant between their jumps, with derivative 0, like a condition."""
HOLDING = (sp.Max, sp.Min, sp.Abs, sp.Piecewise, *STEPS)
"""Functions that may hold an expression at a value."""
STEEP: dict[Any, tuple[int, ...]] = {sp.asin: (-1, 1), sp.acos: (-1, 1), sp.acosh: (1,)}
"""{function: arguments at which it is a number and its slope is not}; also powers between 0 and 1 of 0."""

SATURATING = (sp.Pow, sp.exp, sp.tanh, sp.atan, sp.atan2, sp.erf, sp.erfc)
"""Functions that may be finite where an argument is infinite."""
LEAST = sp.Float(2.2250738585072014e-308)
"""The least positive float64 with all digits."""


def jvp(system: System) -> System:
    """The System with a direction w_v added for each state v: dw/dt = J(t, v) w, with J the Jacobian of the right-hand side.

    The right-hand side of w is the exact product J w, through nested sums, shifts and gathers.
    """
    twins = [twin_state(key, twin_name(system, "w", base_name(key))) for key in system.equations]
    ways: dict[str, Direction] = {base_name(key): twin_direction(twin) for key, twin in zip(system.equations, twins, strict=True)}
    more = {twin: directional_derivative(rhs, ways) for twin, rhs in zip(twins, system.equations.values(), strict=True)}
    return System(
        name=f"{system.name}.jvp",
        source=system.source,
        axes=system.axes,
        equations={**system.equations, **more},
        params=system.params,
        initial={**system.initial, **dict.fromkeys(twins, sp.S.Zero)},
        sizes=system.sizes,
        span=system.span,
        time=system.time,
        constraints=system.constraints,
    )


def twin_name(system: System, letter: str, state: str) -> str:
    """The name u_v of the twin of a state v, for letter u. Raises SpecError where the System has that name already."""
    name = f"{letter}_{state}"
    for taken in sorted({name, f"d_{name}"} & all_names(system)):
        raise SpecError(f"{system.name}: {taken!r} is needed for a derivative of {state}; call it something else, such as {taken}_1")
    return name


def directional_derivative(
    e: Expr, ways: Mapping[str, Direction], along: Mapping[Symbol, Any] | None = None, *, finite: bool = False
) -> Expr:
    """The derivative of e along directions: d/d eps of e with every x[i] replaced by x[i] + eps * ways["x"](i), at eps = 0.

    along: {index: extent} of indices that directions have beside those of x. finite: 0 where e stands still as a part of it overflows, as
    1/(1 + exp(-x)) does, and not 0 times infinity. It is also 0 at a pole within, 1/(1 + 1/x) at 0: for stiff methods, not for results.
    """
    rule = _ChainRule(ways, along or {}, finite)
    for layer in layers_in(e):
        rule.layer(layer)
    return rule(sp.sympify(e))


# Not sympy.diff: a run needs slopes of its own of shifts that cancel (0), of steps (0), where two arguments of a Max are equal (half of
# each), and where a Max holds what a root is taken of.
class _ChainRule:
    """The chain rule, applied once to each distinct part: nested sums repeat their parts many times."""

    def __init__(self, ways: Mapping[str, Direction], along: Mapping[Symbol, Any], finite: bool):
        self.ways, self.along, self.finite = ways, along, finite
        self._layers: dict[Layer, tuple[Layer, tuple[Symbol, ...]] | None] = {}
        self._cache: dict[Expr, Expr] = {}

    def __call__(self, e: Any) -> Any:
        if e not in self._cache:
            self._cache[e] = self._derivative(e)
        return self._cache[e]

    def layer(self, layer: Layer) -> tuple[Layer, tuple[Symbol, ...]] | None:
        """(derivative of a layer, its indices beside those of the layer); None where it is 0."""
        if layer not in self._layers:
            slope = layer.slope(self(layer.definition))
            more = tuple(i for i in self.along if i in free_indices(slope, {i}))
            axes = {**layer.axes, **{i: self.along[i] for i in more}}
            derivative = (
                Layer(f"d{layer.name}", tuple(axes), slope, tuple(axes.values())) if axes else Value(f"d{layer.name}", (), slope, (1,))
            )
            self._layers[layer] = None if slope == 0 else (derivative, more)
        return self._layers[layer]

    def _derivative(self, e: Any) -> Any:
        if isinstance(e, Indexed) and isinstance(e.base, Layer):
            slope_layer = self.layer(e.base)
            return sp.S.Zero if slope_layer is None else slope_layer[0].element((*e.base.places(e).values(), *slope_layer[1]))
        if isinstance(e, Indexed | Symbol):
            way = self.ways.get(base_name(e))
            return sp.S.Zero if way is None else way(tuple(e.indices) if isinstance(e, Indexed) else ())
        if isinstance(e, sp.Mod | sp.frac):
            return self(without_remainders(e))
        if not e.args or isinstance(e, (Shift, KroneckerDelta, *STEPS)):
            return sp.S.Zero
        if isinstance(e, Sum):
            body = self(e.function)
            return sp.S.Zero if body == 0 else e.func(body, *e.limits)
        if isinstance(e, MaxOver | AtMax):
            return at_max(e, self(e.function[1] if isinstance(e, AtMax) else e.function))
        if isinstance(e, sp.Piecewise):
            return sp.Piecewise(*((self(value), condition) for value, condition in e.args))
        if isinstance(e, sp.Max | sp.Min):
            return self._max_slope(e)
        if isinstance(e, XLogY | Share):
            return e.along(*map(self, e.args))
        slopes = [(n, self(a)) for n, a in enumerate(e.args)]
        return sp.Add(*(self._term(e, n, slope) for n, slope in slopes if slope != 0))

    def _term(self, e: Any, n: int, slope: Any) -> Expr:
        """The partial derivative of e by its n-th argument, times the slope of that argument.

        It is 0 where the argument is a constant as it lies beyond the end of an axis, such as 0 in sqrt(x[i + 1]): the partial
        derivative may be infinite there.
        """
        a = e.args[n] if e.is_Add or e.is_Mul else _with_choices(e.args[n])
        ends = sorted((c for c in a.atoms(Inside, UpTo) if c.free_symbols <= a.free_symbols), key=str)
        if e.is_Add or e.is_Mul or not ends:
            return self._times(_at_rest(e, n, _partial(e, n)), slope, isinstance(e, SATURATING))
        hole = sp.Dummy("hole", real=True)
        partial = _partial(e.func(*(hole if k == n else x for k, x in enumerate(e.args))), n)
        beyond = partial.xreplace({hole: _beyond(a, ends)})
        if beyond.is_number and beyond.is_finite:  # of 0**p sympy says that it is finite
            return _at_rest(e, n, _partial(e, n)) * slope
        still: list[set[Any]] = []
        for some in chain.from_iterable(combinations(ends, size) for size in range(1, len(ends) + 1)):
            if not any(ends_at_rest <= {*some} for ends_at_rest in still) and self(_beyond(a, some)) == 0:
                still.append({*some})
        moves = sp.And(*(sp.Or(*ends_at_rest) for ends_at_rest in still))
        there = e.args[n] + sp.Piecewise((0, moves), (1, True))  # sympy would make an infinity of 0**(-1/2) in a branch that is not taken
        return sp.Piecewise((_at_rest(e, n, partial.xreplace({hole: there})) * slope, moves), (0, True))

    def _max_slope(self, e: Any) -> Expr:
        """The derivative of a Max or Min, two arguments at a time: where both are equal, each counts half."""
        first, *others = e.args
        value, slope = first, self(first)
        for other in others:
            ahead = value - other if isinstance(e, sp.Max) else other - value
            slope = self._times(sp.Heaviside(ahead), slope, True) + self._times(sp.Heaviside(-ahead), self(other), True)
            value = e.func(value, other)
        return slope

    def _times(self, outer: Any, inner: Any, saturates: bool) -> Any:
        """The product of two slopes; 0 where the outer one is, if that saturates, so that the inner one may be infinite."""
        if not (self.finite and saturates and _may_overflow(inner)):
            return outer * inner
        there = sp.Abs(outer) >= LEAST  # sympy calls exp(x) != 0 true
        if there.has(sp.arg):  # of exp(log(s)**2) sympy says that it may be complex, where it knows no sign of s
            there = (outer >= LEAST) | (outer <= -LEAST)
        return _where(outer * inner, there)


def _may_overflow(e: Expr) -> bool:
    """Whether e has an exponential or a pole; for other functions only arguments overflow that are beyond 1e50 themselves."""
    return e.has(sp.exp, sp.sinh, sp.cosh) or any(p.exp.is_positive is not True for p in e.atoms(sp.Pow))


def _at_rest(e: Expr, n: int, slope: Expr) -> Expr:
    """The derivative of e by its n-th argument; 0 where a Max holds that at a place where e is steep.

    sqrt(Max(x, 0)): 1/(2 sqrt(Max(x, 0))) for x > 0; below, infinity times the slope 0 of the Max would not be a number.
    """
    a = e.args[n]
    ends = STEEP.get(e.func, (0,) if e.is_Pow and n == 0 and e.exp.is_positive is not False else ())
    if not ends or not a.has(*HOLDING):
        return slope
    smooth = e.exp >= 1 if e.is_Pow else sp.false
    return _where(slope, sp.Or(sp.And(*(sp.Ne(a, end) for end in ends)), smooth))


def _where(slope: Any, condition: Any) -> Any:
    """slope where a condition holds, and 0 elsewhere.

    slope everywhere, where sympy takes a Piecewise of the condition out of a sum, past the index that it depends on.
    """
    chosen = sp.Piecewise((slope, condition), (0, True))
    return chosen if chosen.free_symbols <= slope.free_symbols | condition.free_symbols else slope


def _with_choices(a: Any) -> Any:
    """a with a choice for what is 0 beyond the end of an axis: an element beside its place, and a partial sum that may have no terms."""
    elements = {x: padded_as_choice(x) for x in a.atoms(Indexed)}
    sums: dict[Any, Any] = {}
    for x in a.atoms(SumOver):
        _, low, high = x.limits[0]
        t = triangle(low, high) if len(x.limits) == 1 else None
        if t is not None and t.shift:
            sums[x] = sp.Piecewise((x, t.condition(low if t.op == "prefix" else high)), (sp.S.Zero, True))
    return a.xreplace(sums).xreplace({x: choice for x, choice in elements.items() if choice != x})


def _beyond(a: Any, ends: Iterable[Any]) -> Any:
    """a where these conditions do not hold."""
    return a.xreplace(dict.fromkeys(ends, sp.false))


def _partial(e: Expr, n: int) -> Expr:
    """The derivative of e by its n-th argument."""
    if e.is_Add:
        return sp.S.One
    if e.is_Mul:
        return sp.Mul(*(a for k, a in enumerate(e.args) if k != n))
    special = special_slope(e, n)
    if special is not None:
        return special
    if e.is_Pow and n == 0:  # sympy's b**e*e/b is not a number at b = 0
        return e.exp * e.base ** (e.exp - 1)
    if e.is_Pow and e.exp.free_symbols:
        return XLogY(e, e.base)
    hole = sp.Dummy("hole", real=True)
    return e.func(*(hole if k == n else a for k, a in enumerate(e.args))).diff(hole).xreplace({hole: e.args[n]})


def twin_direction(twin: Key) -> Direction:
    """The direction of x given by its twin: the element x[i] moves by the same element of the twin."""
    if isinstance(twin, Symbol):
        return lambda _: twin
    return lambda i: twin.base[(*i, *twin.indices[len(i) :])]


def unit_direction(along: tuple[Symbol, ...]) -> Direction:
    """The direction that moves only the entry `along` of an array, by 1."""
    return lambda i: sp.Mul(*(KroneckerDelta(a, b) for a, b in zip(i, along, strict=True)))
