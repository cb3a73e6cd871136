"""Derivatives of expressions along directions, and of a System along one of its states: jvp."""

from collections.abc import Callable, Mapping
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, KroneckerDelta, Sum, Symbol

from odesim.errors import SpecError
from odesim.symbolic.crossings import without_remainders
from odesim.symbolic.elements import IndexedBase
from odesim.symbolic.expr import base_name
from odesim.symbolic.logs import XLogY
from odesim.symbolic.lowering import all_names
from odesim.symbolic.parts import Key, key_indices
from odesim.symbolic.reductions import AtMax, MaxOver, Shift, at_max
from odesim.symbolic.system import System

Direction = Callable[[tuple[Any, ...]], Any]
STEPS = (sp.sign, sp.Heaviside, sp.floor, sp.ceiling)
"""Functions that are constant but for their jumps: their derivative is 0, as that of a condition is."""


def jvp(system: System) -> System:
    """The System with a direction w_v beside each state v: dw/dt = J(t, v) w, the derivative of the right side along w.

    Its new right side at any (v, w) is the exact product J w, through nested sums, shifts and gathers.
    """
    twins = [twin_of(key, beside(system, "w", base_name(key))) for key in system.equations]
    ways: dict[str, Direction] = {base_name(key): element(twin) for key, twin in zip(system.equations, twins, strict=True)}
    more = {twin: directional(rhs, ways) for twin, rhs in zip(twins, system.equations.values(), strict=True)}
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


def beside(system: System, letter: str, state: str) -> str:
    """The name u_v of what stands beside a state v. Raises SpecError where the System has that name already."""
    name = f"{letter}_{state}"
    for own in sorted({name, f"d_{name}"} & all_names(system)):
        raise SpecError(f"{system.name}: {own!r} is needed for a derivative of {state}; call it something else, such as {own}_1")
    return name


def directional(e: Expr, ways: Mapping[str, Direction]) -> Expr:
    """d/d eps of e with every x[i] replaced by x[i] + eps * ways["x"](i), at eps = 0."""
    return _Directional(ways)(sp.sympify(e))


class _Directional:
    """The chain rule, once for each distinct part: nested sums repeat their parts many times."""

    def __init__(self, ways: Mapping[str, Direction]):
        self.ways = ways
        self._known: dict[Expr, Expr] = {}

    def __call__(self, e: Any) -> Any:
        if e not in self._known:
            self._known[e] = self._derivative(e)
        return self._known[e]

    def _derivative(self, e: Any) -> Any:
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
            return self._chosen(e)
        if isinstance(e, XLogY):
            return e.along(*map(self, e.args))
        slopes = [(n, self(a)) for n, a in enumerate(e.args)]
        return sp.Add(*(_partial(e, n) * slope for n, slope in slopes if slope != 0))

    def _chosen(self, e: Any) -> Expr:
        """Of a Max or Min, two arguments at a time: where they are equal each has half of the slope, so that all shares add up to 1."""
        first, *others = e.args
        value, slope = first, self(first)
        for other in others:
            ahead = value - other if isinstance(e, sp.Max) else other - value
            slope = sp.Heaviside(ahead) * slope + sp.Heaviside(-ahead) * self(other)
            value = e.func(value, other)
        return slope


def _partial(e: Expr, n: int) -> Expr:
    """de/d(its n-th argument)."""
    if e.is_Add:
        return sp.S.One
    if e.is_Mul:
        return sp.Mul(*(a for k, a in enumerate(e.args) if k != n))
    if e.is_Pow and n == 0:  # sympy's b**e*e/b is not a number at b = 0
        return e.exp * e.base ** (e.exp - 1)
    if e.is_Pow and e.exp.free_symbols:
        return XLogY(e, e.base)
    hole = sp.Dummy("hole", real=True)
    return e.func(*(hole if k == n else a for k, a in enumerate(e.args))).diff(hole).xreplace({hole: e.args[n]})


def twin_of(key: Key, name: str, along: tuple[Symbol, ...] = (), extents: tuple[Any, ...] = ()) -> Key:
    """The state of that name beside key, with more axes behind, as it stands in an equation."""
    if not key_indices(key) and not along:
        return Symbol(name, real=True)
    shape = (*(key.base.shape if isinstance(key, Indexed) else ()), *extents)
    return IndexedBase(name, shape=shape)[(*key_indices(key), *along)]


def element(twin: Key) -> Direction:
    """The direction in which the element x[i] moves: the same element of its twin."""
    if isinstance(twin, Symbol):
        return lambda _: twin
    return lambda i: twin.base[(*i, *twin.indices[len(i) :])]


def unit(along: tuple[Symbol, ...]) -> Direction:
    """The direction of one entry of an array: that at `along`."""
    return lambda i: sp.Mul(*(KroneckerDelta(a, b) for a, b in zip(i, along, strict=True)))
