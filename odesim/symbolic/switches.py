"""Conditions at which a right side jumps, held by parameters: between two switches the right side is smooth.

Piecewise((a, t < s), (b, True))  ->  Piecewise((a, held by switch_0), (b, True)), with the times at which switch_0 changes.
A parameter of a condition is the sign that its expression has there, 1, -1 or 0, or PLAIN where the condition is taken as it is written;
that of a floor is its value, or FREE where it is taken as written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, Symbol

from odesim.errors import SpecError
from odesim.symbolic.continuity import jumps
from odesim.symbolic.crossings import Times, UnknownTimesError, breaks, whole, without_remainders, zeros
from odesim.symbolic.derive import Direction, directional, element, twin_of, unit
from odesim.symbolic.elements import IndexedBase
from odesim.symbolic.expr import base_name, free_indices, index, time
from odesim.symbolic.parts import Event, Param, key_indices
from odesim.symbolic.program import names
from odesim.symbolic.reductions import REDUCTIONS
from odesim.symbolic.sensitivity import _fresh, names_in
from odesim.symbolic.system import System

PLAIN = 2.0
"""The value of a condition's parameter where the condition is computed as it is written."""
FREE = 1e17
"""The value of a floor's parameter where the floor is computed as it is written."""
HALF = sp.Rational(1, 2)
TINY = 1e-30
"""What stands for 0 in the expression of a condition on states, on the side where the run is; products of two such are above 0 too."""
ORDER = (sp.StrictLessThan, sp.LessThan, sp.StrictGreaterThan, sp.GreaterThan)
STEPS = (sp.sign, sp.Heaviside)
STEPPED = (*ORDER, *STEPS, sp.floor, sp.ceiling, sp.Mod, sp.frac, sp.Abs, sp.Max, sp.Min)


@dataclass(frozen=True)
class Switch:
    """One condition: its expression changes sign (kind "sign") or is rounded down (kind "level"), for every value of its indices.

    name: its parameter, of shape extents, or (1,) where there are no indices. times: where it depends on the time alone. plain: the
    expression with the floors of other switches as they are written, smooth: with these held. text: how the model writes it.
    """

    name: str
    kind: str
    plain: Expr
    smooth: Expr
    indices: tuple[Symbol, ...]
    extents: tuple[Any, ...]
    times: tuple[Times, ...] | None
    text: str

    @property
    def axes(self) -> dict[Symbol, Any]:
        return dict(zip(self.indices, self.extents, strict=True))

    @property
    def parameter(self) -> Indexed:
        """Its element in an expression."""
        return parameter(self.name, self.indices, self.extents)


@dataclass(frozen=True)
class Kink:
    """Times at which a right side has a kink in the time, for every value of the indices."""

    indices: tuple[Symbol, ...]
    extents: tuple[Any, ...]
    times: tuple[Times, ...]


@dataclass(frozen=True, eq=False)
class HeldSystem:
    """A System whose conditions are held, and these. system: its events on states come last, one or two a switch, in their order."""

    original: System
    system: System
    switches: tuple[Switch, ...]
    kinks: tuple[Kink, ...]

    @property
    def stops(self) -> bool:
        """Whether runs stop on the way."""
        return bool(self.switches or self.kinks)

    @property
    def on_states(self) -> tuple[Switch, ...]:
        return tuple(s for s in self.switches if s.times is None)


def parameter(name: str, indices: tuple[Symbol, ...], extents: tuple[Any, ...]) -> Indexed:
    return IndexedBase(name, shape=extents)[indices] if indices else IndexedBase(name, shape=(1,))[0]


def hold(system: System) -> HeldSystem:
    """The System with its jumping conditions on time and states held. Raises SpecError where the times of one cannot be computed."""
    if not any(isinstance(part, STEPPED) for rhs in system.equations.values() for part in sp.preorder_traversal(rhs)):
        return HeldSystem(system, system, (), ())
    work = _Work(system)
    rates = {key: work.rewrite(rhs, dict(system.axes)) for key, rhs in system.equations.items()}
    if not work.switches:
        return HeldSystem(system, system, (), tuple(work.kinks))
    params = tuple(Param(s.parameter.base, 0.0, sp.Interval(-sp.oo, sp.oo), f"held condition {s.text}") for s in work.switches)
    axes, events = dict(system.axes), list(system.events)
    for s in work.switches:
        if s.times is None:
            axes.update(s.axes)
            events += [Event(f"{s.name} {n}", e, way, True) for n, (e, way) in enumerate(watched(s))]
    made = replace(system, equations=rates, params=(*system.params, *params), axes=axes, events=tuple(events))
    return HeldSystem(system, made, tuple(work.switches), tuple(work.kinks))


def watched(s: Switch) -> list[tuple[Expr, int]]:
    """The functions whose zeros end a segment at a condition on states, and their directions."""
    if s.kind == "sign":
        g, m = s.smooth, s.parameter
        return [(sp.Piecewise((g, sp.Ne(g, 0)), (m * TINY, m < PLAIN - HALF), (0, True), evaluate=False), 0)]
    g = s.smooth - s.parameter
    return [(sp.Piecewise((g, sp.Ne(g, 0)), (TINY, True), evaluate=False), -1), (g - 1, 1)]


def drift(system: System, s: Switch, twins: Mapping[str, str]) -> Expr:
    """d/dt of a switch's expression where the states v move at the rates twins[v]."""
    ways: dict[str, Direction] = {str(time): lambda _: sp.S.One}
    for key in system.equations:
        if base_name(key) in twins:
            ways[base_name(key)] = element(twin_of(key, twins[base_name(key)]))
    return directional(s.smooth, ways)


def slope(system: System, s: Switch, name: str) -> tuple[Expr, dict[Symbol, Any]]:
    """The derivative of a switch's expression by `name`, of whose sensitivities the System has states, and the axes of `name`."""
    shape = system.shapes[name] if name in system.states else system.param(name).shape
    along = _fresh(name, len(shape), names_in(system) | {i.name for i in s.indices})
    ways: dict[str, Direction] = {}
    for key in system.equations:
        twin = system.sensitivities[name].get(base_name(key))
        if twin is not None:
            ways[base_name(key)] = element(twin_of(key, twin, along, shape))
    if name not in system.states:
        ways[name] = unit(along)
    return directional(s.smooth, ways), dict(zip(along, shape, strict=True))


class _Work:
    """The switches found so far, in the order in which they are met."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.switches: list[Switch] = []
        self.kinks: list[Kink] = []
        self._known: dict[Any, Switch] = {}
        self._kinks: set[Any] = set()
        made = {name for pairs in system.sensitivities.values() for name in pairs.values()}
        self._jumps: dict[Any, bool] = {}
        self._base = [without_remainders(rhs) for key, rhs in system.equations.items() if base_name(key) not in made]
        self._states = set(system.states)
        self._taken = names_in(system)

    def rewrite(self, e: Any, scope: dict[Symbol, Any]) -> Any:
        """e with its conditions held. scope: {index: extent}."""
        if not e.args or isinstance(e, Indexed) or not self._depends(e):
            return e
        if isinstance(e, REDUCTIONS):
            inner = {**scope, **{k: high + 1 for k, _, high in e.limits}}
            return e.func(self.rewrite(e.function, inner), *e.limits)
        if isinstance(e, sp.Mod | sp.frac | sp.ceiling):
            return self.rewrite(without_remainders(e), scope)
        if isinstance(e, ORDER):
            found = self._switch("sign", sp.expand(e.lhs - e.rhs), scope, str(e))
            if found is None:
                return e
            s, own, sign = found
            return _held(parameter(s.name, own, s.extents), e, sign)
        if isinstance(e, STEPS):
            found = self._switch("sign", e.args[0], scope, f"{e.args[0]} > 0")
            if found is not None:
                s, own, sign = found
                m = parameter(s.name, own, s.extents)
                if isinstance(e, sp.sign):
                    return sp.Piecewise((sign * m, m < PLAIN - HALF), (e, True), evaluate=False)
                above, below = (m > HALF, m < -HALF)[::sign]
                return sp.Piecewise((e, m > PLAIN - HALF), (1, above), (0, below), (e.args[1], True), evaluate=False)
        elif isinstance(e, sp.floor):
            found = self._switch("level", e.args[0], scope, str(e))
            if found is not None:
                level = parameter(found[0].name, found[1], found[0].extents)
                return sp.Piecewise((level, level < FREE / 2), (e, True), evaluate=False)
        elif isinstance(e, sp.Abs | sp.Max | sp.Min):
            self._kink(e, scope)
        args = [self.rewrite(a, scope) for a in e.args]
        if isinstance(e, sp.Piecewise):
            return sp.Piecewise(*args, evaluate=False)
        return e.func(*args) if tuple(args) != e.args else e

    def _depends(self, e: Any) -> bool:
        return bool(names(e) & (self._states | {str(time)}))

    def _switch(self, kind: str, g: Expr, scope: dict[Symbol, Any], text: str) -> tuple[Switch, tuple[Symbol, ...], int] | None:
        """The switch of an expression, its indices there and its sign there; None where nothing jumps."""
        if not self._depends(g):
            return None
        sign = 1
        if kind == "sign":
            part = g.as_content_primitive()[1]
            g, sign = (-part, -1) if part.could_extract_minus_sign() else (part, 1)
        own = tuple(sorted(free_indices(g, set(scope)), key=sp.default_sort_key))
        extents = tuple(scope[i] for i in own)
        slots = {i: Symbol(f"_{n}", integer=True) for n, i in enumerate(own)}
        key = (kind, g.xreplace(slots), extents)
        if key not in self._known:
            on_states = bool(names(g) & self._states)
            if on_states and not self._jump(kind, g):
                return None
            times = None if on_states else self._times(kind, g, text)
            smooth = self.rewrite(without_remainders(g), scope)
            name = self._name()
            made = [index(f"{name}_i{n}")[0] for n in range(len(own))]
            moved = dict(zip(own, made, strict=True))
            found = [Times(*(x if x is None else x.xreplace(moved) for x in (t.first, t.period))) for t in times or ()]
            s = Switch(
                name,
                kind,
                without_remainders(g).xreplace(moved),
                smooth.xreplace(moved),
                tuple(made),
                extents,
                None if times is None else tuple(found),
                text,
            )
            self._known[key] = s
            self.switches.append(s)
        return self._known[key], own, sign

    def _name(self) -> str:
        name = next(name for name in (f"switch_{n}" for n in count()) if name not in self._taken and f"d_{name}" not in self._taken)
        self._taken.add(name)
        return name

    def _times(self, kind: str, g: Expr, text: str) -> list[Times]:
        try:
            return whole(without_remainders(g)) if kind == "level" else zeros(g)
        except UnknownTimesError:
            raise SpecError(
                f"{self.system.name}: the times at which {text} changes cannot be computed: known are conditions affine in t, their "
                "remainders and whole parts, one sin, cos, exp, log, tanh or power of such, and t^2; write the condition in these"
            ) from None

    def _jump(self, kind: str, g: Expr) -> bool:
        """Whether the right side of a state itself jumps where g changes its sign."""
        key = (kind, g)
        if key not in self._jumps:
            whole_parts = without_remainders(g)
            self._jumps[key] = any(jumps(rhs, kind, whole_parts) for rhs in self._base)
        return self._jumps[key]

    def _kink(self, e: Expr, scope: dict[Symbol, Any]) -> None:
        """Notes when an Abs, Max or Min of the time alone has its kinks; between them nothing need be known."""
        if names(e) & self._states:
            return
        try:
            found = breaks(e)
        except UnknownTimesError:
            return
        own = tuple(sorted(free_indices(e, set(scope)), key=sp.default_sort_key))
        if found and (e, own) not in self._kinks:
            self._kinks.add((e, own))
            self.kinks.append(Kink(own, tuple(scope[i] for i in own), tuple(found)))


def _held(m: Expr, condition: Any, sign: int) -> Any:
    """The condition by the sign m of its left side less its right one, which is turned where sign is -1."""
    plain = sp.And(m > PLAIN - HALF, condition)
    if isinstance(condition, sp.StrictGreaterThan | sp.GreaterThan) == (sign > 0):
        least = HALF if isinstance(condition, sp.StrictGreaterThan | sp.StrictLessThan) else -HALF
        return sp.Or(sp.And(m > least, m < PLAIN - HALF), plain)
    most = -HALF if isinstance(condition, sp.StrictGreaterThan | sp.StrictLessThan) else HALF
    return sp.Or(m < most, plain)


__all__ = ["FREE", "PLAIN", "HeldSystem", "Kink", "Switch", "drift", "hold", "key_indices", "slope", "watched"]
