"""Switches: conditions at which a right-hand side jumps are held constant by parameters, so that it is smooth between two switches.

Piecewise((a, t < s), (b, True))  ->  Piecewise((a, held by switch_0), (b, True)), with the times at which switch_0 changes.
The parameter of a condition is the sign of its expression, 1, -1 or 0, or AS_WRITTEN to compute the condition as it is written. The
parameter of a floor is its value, or FREE to compute the floor as it is written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, Symbol

from odesim.base.errors import SpecError
from odesim.symbolic.indices import IndexedBase, base_name, index, time
from odesim.symbolic.layered import changed, layers_in, names_read, with_layers
from odesim.symbolic.parts import Event, Param
from odesim.symbolic.reductions import REDUCTIONS, free_indices, inside
from odesim.symbolic.system import System
from odesim.symbolic.times import (
    KNOWN,
    AnyTimes,
    BetweenKinksError,
    Pulses,
    UnknownTimesError,
    break_times,
    has_kinked_sums,
    whole_number_times,
    without_remainders,
    zero_times,
)
from odesim.transforms.conditions import STEPS, Depends, by_cases, may_have_sides, resting, signed, with_sides, without_poles
from odesim.transforms.events import Guard, Watched, stopped_system, watched_events
from odesim.transforms.jumps import COMPARISONS, may_jump, pulses_in
from odesim.transforms.sensitivity import used_names

# Parameters and not another text for each mode: a run compiles one kernel, however often its conditions change.
AS_WRITTEN = 2.0
"""The value of a condition's parameter where the condition is computed as it is written."""
FREE = 1e17
"""The value of a floor's parameter where the floor is computed as it is written."""
HALF = sp.Rational(1, 2)
TINY = 1e-30
"""Replaces 0 in the expression of a condition on states, with the sign of the run's side; its square is above 0 too."""
STEPPED = (*COMPARISONS, *STEPS, sp.floor, sp.ceiling, sp.Mod, sp.frac, sp.Abs, sp.Max, sp.Min)


@dataclass(frozen=True)
class Switch:
    """One condition that is held, for each value of its indices: a change of sign (kind "sign") or a rounding down (kind "level").

    name: its parameter, with shape extents, or (1,) without indices. times: of its changes, where it depends on the time alone.
    as_written: the expression; smooth: the expression with the floors of other switches held. text: as the model writes it.
    """

    name: str
    kind: str
    as_written: Expr
    smooth: Expr
    indices: tuple[Symbol, ...]
    extents: tuple[Any, ...]
    times: tuple[AnyTimes, ...] | None
    text: str

    @property
    def axes(self) -> dict[Symbol, Any]:
        return dict(zip(self.indices, self.extents, strict=True))

    @property
    def parameter(self) -> Indexed:
        """The element of its parameter in an expression."""
        return parameter(self.name, self.indices, self.extents)


@dataclass(frozen=True)
class Kink:
    """Times at which a right-hand side has a kink or a pulse, for each value of the indices."""

    indices: tuple[Symbol, ...]
    extents: tuple[Any, ...]
    times: tuple[AnyTimes, ...]


@dataclass(frozen=True, eq=False)
class HeldSystem:
    """A System whose jumping conditions are held by parameters.

    original: without held conditions; its events pass 0 where they jumped across it. system: with them; the events of switches on states
    come last, one or two per switch.
    watched: the events of the original, where runs stop at some.
    """

    original: System
    system: System
    switches: tuple[Switch, ...]
    kinks: tuple[Kink, ...]
    watched: tuple[Watched, ...] = ()

    @cached_property
    def stops(self) -> bool:
        """Whether a run has to stop at switches, kinks or events."""
        return bool(self.switches or self.kinks or self.watched)

    @cached_property
    def in_fixed_steps(self) -> "HeldSystem":
        """The form for fixed steps, which pass over pulses as they are told to."""
        kinks = tuple(kink for kink in self.kinks if not any(isinstance(at, Pulses) for at in kink.times))
        return self if len(kinks) == len(self.kinks) else replace(self, kinks=kinks)

    @cached_property
    def memories(self) -> frozenset[str]:
        """The states that only resets change."""
        return memories(self.original)

    @property
    def on_states(self) -> tuple[Switch, ...]:
        """The switches whose conditions depend on states."""
        return tuple(s for s in self.switches if s.times is None)


def parameter(name: str, indices: tuple[Symbol, ...], extents: tuple[Any, ...]) -> Indexed:
    """The element of a switch's parameter at these indices."""
    return IndexedBase(name, shape=extents)[indices] if indices else IndexedBase(name, shape=(1,))[0]


def hold_conditions(system: System) -> HeldSystem:
    """The System with its jumping conditions on time and states held, and with events that end a segment where runs stop at them.

    Raises SpecError where the times of a condition cannot be computed.
    """
    if system.discrete:  # an update computes every condition as it is written
        return HeldSystem(system, system, (), ())
    depends, moving = moving_in(system), {*system.states} - memories(system)

    def plain(event: Event) -> Event:
        expr = signed(event.expr, moving)
        return replace(event, expr=expr if isinstance(event, Guard) else resting(without_poles(expr, depends), depends))

    events = tuple(map(plain, system.events))
    if any(event.expr is not other.expr for event, other in zip(events, system.events, strict=True)):
        system = replace(system, events=events)
    held = _hold_conditions(system)
    if pulses := tuple(Kink(*_placed(g, scope), (Pulses(g),)) for g, scope in pulses_in(system)):
        held = replace(held, kinks=(*held.kinks, *pulses))
    if kinks := tuple(_kinks_of_events(system)):
        held = replace(held, kinks=(*held.kinks, *kinks))
    watched = watched_events(system)
    if not watched:
        return held
    known = (Kink(w.indices, w.extents, w.times) for w in watched if w.times)
    return replace(held, system=stopped_system(held.system, watched), kinks=(*held.kinks, *known), watched=watched)


def _kinks_of_events(system: System) -> Iterator[Kink]:
    """The kinks and jumps in sums of events' functions, as of tables: a run stops there, or a step would pass over a peak between two."""
    for event in system.events:
        if not isinstance(event, Guard) and has_kinked_sums(event.expr):
            work = _SwitchRewriter(system, system.equations)
            work.rewrite(event.expr, dict(system.axes))
            yield from work.kinks
            yield from (Kink(s.indices, s.extents, s.times) for s in work.switches if s.times)


def _placed(e: Expr, scope: Mapping[Symbol, Any]) -> tuple[tuple[Symbol, ...], tuple[Any, ...]]:
    """(free indices of e in order, their extents)."""
    indices = tuple(sorted(free_indices(e, set(scope)), key=sp.default_sort_key))
    return indices, tuple(scope[i] for i in indices)


def moving_in(system: System) -> Depends:
    """A function that says whether an expression changes in a run of the System: with its states, or the time."""
    moving = {*system.states, str(time)}
    return lambda e: not moving.isdisjoint(names_read(e))


def memories(system: System) -> frozenset[str]:
    """The states that only resets change."""
    return frozenset(system.states) - {base_name(key) for key, rhs in system.equations.items() if rhs != 0}


def _hold_conditions(system: System) -> HeldSystem:
    depends = moving_in(system)

    def may_jump_unseen(e: Any) -> bool:
        # the times of a condition on time alone follow from what the model wrote, jumps included; atan2, put for an atan, would hide them
        return depends(e) and (not isinstance(e, sp.core.relational.Relational) or not names_read(e).isdisjoint(system.states))

    plain = dict(system.equations)
    parts = [part for rhs in with_layers(plain.values()) for part in sp.preorder_traversal(rhs)]
    if any(may_have_sides(part) and depends(part) for part in parts):
        plain = {key: changed(rhs, lambda e, _: with_sides(e, may_jump_unseen)) for key, rhs in plain.items()}
        parts = [part for rhs in with_layers(plain.values()) for part in sp.preorder_traversal(rhs)]
    if not any(isinstance(part, STEPPED) for part in parts):
        return HeldSystem(system, system, (), ())
    if any(isinstance(part, (*COMPARISONS, *STEPS)) for part in parts):
        plain = {key: changed(rhs, lambda e, _: by_cases(e, depends)) for key, rhs in plain.items()}
    work = _SwitchRewriter(system, plain)
    rates = {key: work.rewrite(rhs, dict(system.axes)) for key, rhs in plain.items()}
    if not work.switches:
        return HeldSystem(system, system, (), tuple(work.kinks))
    params = tuple(Param(s.parameter.base, 0.0, sp.Interval(-sp.oo, sp.oo), f"held condition {s.text}") for s in work.switches)
    axes, events = dict(system.axes), list(system.events)
    for s in work.switches:
        if s.times is None:
            axes.update(s.axes)
            events += [Event(f"{s.name} {n}", e, way, True) for n, (e, way) in enumerate(switch_events(s))]
    held = replace(system, equations=rates, params=(*system.params, *params), axes=axes, events=tuple(events))
    return HeldSystem(system, held, tuple(work.switches), tuple(work.kinks))


def switch_events(s: Switch) -> list[tuple[Expr, int]]:
    """[(function, direction)] of the events that end a segment at a condition on states."""
    if s.kind == "sign":
        g, m = s.smooth, s.parameter
        return [(sp.Piecewise((g, sp.Ne(g, 0)), (m * TINY, m < AS_WRITTEN - HALF), (0, True), evaluate=False), 0)]
    g = s.smooth - s.parameter
    return [(sp.Piecewise((g, sp.Ne(g, 0)), (TINY, True), evaluate=False), -1), (g - 1, 1)]


class _SwitchRewriter:
    """A rewriting of right-hand sides that holds their conditions; it lists switches and kinks in the order of appearance."""

    def __init__(self, system: System, rates: Mapping[Any, Any]) -> None:
        self.system = system
        self.switches: list[Switch] = []
        self.kinks: list[Kink] = []
        self._by_key: dict[Any, Switch] = {}
        self._kinks: set[Any] = set()
        twins = {name for pairs in system.sensitivities.values() for name in pairs.values()}
        self._jumps: dict[Any, bool] = {}
        self._base = [without_remainders(rhs) for key, rhs in rates.items() if base_name(key) not in twins]
        self._states = set(system.states)
        self._taken = used_names(system)
        self._depends = moving_in(system)

    def rewrite(self, e: Any, scope: Mapping[Symbol, Any]) -> Any:
        """e with its conditions held. scope: {index: extent}."""
        if layers_in(e):
            return changed(e, self._rewritten, scope)
        return self._rewritten(e, scope)

    def _rewritten(self, e: Any, scope: Mapping[Symbol, Any]) -> Any:
        if not e.args or isinstance(e, Indexed) or not self._depends(e):
            return e
        if isinstance(e, REDUCTIONS):
            return e.func(self._rewritten(e.function, inside(e.limits, scope)), *e.limits)
        if isinstance(e, sp.Mod | sp.frac | sp.ceiling):
            return self._rewritten(without_remainders(e), scope)
        if isinstance(e, COMPARISONS):
            switch_here = self._switch("sign", e.lhs - e.rhs, scope, str(e))
            if switch_here is None:
                return e
            m, sign = switch_here
            return _held_condition(m, e, e.func(*(self._rewritten(a, scope) for a in e.args)), sign)
        if isinstance(e, STEPS):
            switch_here = self._switch("sign", e.args[0], scope, f"{e.args[0]} > 0")
            if switch_here is not None:
                (m, sign), written = switch_here, e.func(self._rewritten(e.args[0], scope), *e.args[1:])
                if isinstance(e, sp.sign):
                    return sp.Piecewise((sign * m, m < AS_WRITTEN - HALF), (written, True), evaluate=False)
                above, below = (m > HALF, m < -HALF)[::sign]
                return sp.Piecewise((written, m > AS_WRITTEN - HALF), (1, above), (0, below), (e.args[1], True), evaluate=False)
        elif isinstance(e, sp.floor):
            switch_here = self._switch("level", e.args[0], scope, str(e))
            if switch_here is not None:
                level, _ = switch_here
                return sp.Piecewise((level, level < FREE / 2), (e, True), evaluate=False)
        elif isinstance(e, sp.Abs | sp.Max | sp.Min):
            self._kink(e, scope)
        args = [self._rewritten(a, scope) for a in e.args]
        if isinstance(e, sp.Piecewise):
            return sp.Piecewise(*args, evaluate=False)
        return e.func(*args) if tuple(args) != e.args else e

    def _switch(self, kind: str, g: Expr, scope: Mapping[Symbol, Any], text: str) -> tuple[Indexed, int] | None:
        """(parameter of an expression's switch, its sign here); None where nothing jumps."""
        if not self._depends(g):
            return None
        sign, written = 1, g
        if kind == "sign":
            part = sp.expand(g).as_content_primitive()[1]
            g, sign = (-part, -1) if part.could_extract_minus_sign() else (part, 1)
            written = sign * written
        free, extents = _placed(g, scope)
        slots = {i: Symbol(f"_{n}", integer=True) for n, i in enumerate(free)}
        key = (kind, g.xreplace(slots), extents)
        if key not in self._by_key:
            on_states = bool(names_read(g) & self._states)
            if on_states and not self._jump(kind, g):
                return None
            times = None if on_states else self._times(kind, g, text)
            if kind == "sign" and on_states:
                written = without_poles(written, self._depends)
            smooth = self.rewrite(without_remainders(written), scope)  # expanded, differences of powers would lose digits
            name = self._name()
            indices = [index(f"{name}_i{n}")[0] for n in range(len(free))]
            moved = dict(zip(free, indices, strict=True))
            changes = [at.renamed(moved) for at in times or ()]
            s = Switch(
                name,
                kind,
                without_remainders(g).xreplace(moved),
                smooth.xreplace(moved),
                tuple(indices),
                extents,
                None if times is None else tuple(changes),
                text,
            )
            self._by_key[key] = s
            self.switches.append(s)
        return parameter(self._by_key[key].name, free, extents), sign

    def _name(self) -> str:
        name = next(name for name in (f"switch_{n}" for n in count()) if name not in self._taken and f"d_{name}" not in self._taken)
        self._taken.add(name)
        return name

    def _times(self, kind: str, g: Expr, text: str) -> list[AnyTimes] | None:
        """The times at which a function of time alone changes; None where they are found in a run, as those of states are."""
        try:
            return whole_number_times(without_remainders(g)) if kind == "level" else zero_times(g)
        except BetweenKinksError:
            return None
        except UnknownTimesError:
            raise SpecError(f"{self.system.name}: the times at which {text} changes cannot be computed: {KNOWN}") from None

    def _jump(self, kind: str, g: Expr) -> bool:
        """Whether the right-hand side of a state itself jumps where g changes its sign."""
        key = (kind, g)
        if key not in self._jumps:
            whole_parts = without_remainders(g)
            # in a layer, every condition counts as one at which the right-hand side jumps
            self._jumps[key] = any(layers_in(rhs) or may_jump(rhs, kind, whole_parts) for rhs in self._base)
        return self._jumps[key]

    def _kink(self, e: Expr, scope: Mapping[Symbol, Any]) -> None:
        """Records the times of the kinks of an Abs, Max or Min that depends on the time alone."""
        if names_read(e) & self._states:
            return
        try:
            times = break_times(e)
        except UnknownTimesError:
            return
        indices, extents = _placed(e, scope)
        if times and (e, indices) not in self._kinks:
            self._kinks.add((e, indices))
            self.kinks.append(Kink(indices, extents, tuple(times)))


def _held_condition(m: Expr, condition: Any, written: Any, sign: int) -> Any:
    """The condition in terms of m, the sign of its left side minus its right-hand side, or of the opposite where sign is -1.

    written: the condition itself, with other switches held in it.
    """
    plain = sp.And(m > AS_WRITTEN - HALF, written)
    if isinstance(condition, sp.StrictGreaterThan | sp.GreaterThan) == (sign > 0):
        least = HALF if isinstance(condition, sp.StrictGreaterThan | sp.StrictLessThan) else -HALF
        return sp.Or(sp.And(m > least, m < AS_WRITTEN - HALF), plain)
    most = -HALF if isinstance(condition, sp.StrictGreaterThan | sp.StrictLessThan) else HALF
    return sp.Or(m < most, plain)
