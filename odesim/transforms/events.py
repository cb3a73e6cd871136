"""Events of a run: those at which it stops, guards of what states assume, and which functions of events are polynomials."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import count
from typing import Any

import sympy as sp
from sympy import Expr, Interval, Symbol

from odesim.base.errors import SpecError
from odesim.ir.derive import Direction, directional_derivative, twin_direction, unit_direction
from odesim.symbolic.assumptions import assumed_intervals, set_text
from odesim.symbolic.checks import on_time
from odesim.symbolic.definition import Definition, all_names, twin_state
from odesim.symbolic.indices import IndexedBase, base_name, time
from odesim.symbolic.layered import names_read
from odesim.symbolic.parts import Event, Param, free_in_order, key_indices
from odesim.symbolic.reductions import MaxOver, over
from odesim.symbolic.system import System
from odesim.symbolic.times import AnyTimes, Times, UnknownTimesError, without_remainders, zero_times
from odesim.transforms.jumps import COMPARISONS, may_jump
from odesim.transforms.sensitivity import fresh_indices, shape_of, used_names

# Guards: a state x > 0 leaves its set where x <= -SLACK and x' < 0. A solution crosses the boundary of a set only where its derivative
# points outwards (Nagumo 1942). So a small error of a step or an interpolant, as in a decay x' = -x long after its start, ends no run.
SLACK = "assumed_slack"
"""Name of the parameter for how far outside its set a state still counts as inside: the absolute tolerance of a run.

A state with a tolerance of its own has its own parameter, `assumed_slack_NAME`, of the shape of the state.
"""


@dataclass(frozen=True)
class Guard(Event):
    """The event that a component of a state is SLACK or more outside its set and moves further out.

    In a Map it is the event that the component is outside.
    state: its name. sign: sign * state is the distance from the boundary, positive inside. words: the set.
    """

    state: str = ""
    sign: int = 1
    words: str = ""


def add_guards(system: System, names: Collection[str] = ()) -> System:
    """The System with the parameter SLACK and with guards after its own events; the System itself where no state assumes a set.

    own: the states with an absolute tolerance of their own.
    """
    sets = {name: interval for name, interval in assumed_intervals(system).items() if interval is not None}
    if not sets:
        return system
    params = {"": Param(Symbol(SLACK, real=True), 1e-9, Interval(-sp.oo, sp.oo), "how far outside its set a state still counts as inside")}
    for name in sorted(sets.keys() & names):
        symbol = IndexedBase(f"{SLACK}_{name}", shape=system.shapes[name]) if system.shapes[name] else Symbol(f"{SLACK}_{name}", real=True)
        params[name] = replace(params[""], symbol=symbol)
    if taken := {p.name for p in params.values()} & all_names(system):
        word = min(taken)
        raise SpecError(f"{system.name}: {word!r} is needed where states assume a set; call it something else, such as {word}_1")
    guards = []
    for key in system.equations:
        name = base_name(key)
        if name in sets:
            sign = 1 if sets[name].start == 0 else -1
            axes = [(i, system.axes[i]) for i in key_indices(key)]
            slack = params.get(name, params[""]).symbol
            out = -sign * key - (slack[key_indices(key)] if system.shapes[name] and name in params else slack)
            if not system.discrete:
                out = sp.Min(out, -sign * system.equations[key], evaluate=False)
            words = set_text(sets[name])
            expr = -(over(MaxOver, out, *axes) if axes else out)
            guards.append(Guard(f"{name} leaves {words}", expr, -1, True, state=name, sign=sign, words=words))
    return replace(system, events=(*system.events, *guards), params=(*system.params, *params.values()))


JUMPING = (sp.floor, sp.sign, sp.Heaviside)
MOVED = "reset_moved"
"""Name of the derivative of an event's time in the slope of a reset."""


# An event on states stops a run where g passes 0. After a reset g may be 0 but for rounding. For a moment it then counts as `side`, of the
# sign to which the run takes it, also where the event does not stop the run. If g is on the other side, it passes `zero`. An event on the
# time alone stops a run at times that follow from the parameters. Its function is held at 1: no step looks for its zeros, and no step that
# is longer than its period misses them.
@dataclass(frozen=True)
class Watched:
    """An event of a System whose runs stop at events: its indices with their extents, and its parameters.

    side, until, zero: their names, empty for the end of a set; their arrays have shape extents, or (1,). stops: whether runs stop at it.
    times: of an event on the time alone.
    """

    event: Event
    indices: tuple[Symbol, ...]
    extents: tuple[Any, ...]
    side: str = ""
    until: str = ""
    zero: str = ""
    stops: bool = False
    times: tuple[AnyTimes, ...] | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return (self.side, self.until, self.zero) if self.side else ()

    @property
    def axes(self) -> dict[Symbol, Any]:
        return dict(zip(self.indices, self.extents, strict=True))

    @property
    def stopping(self) -> Expr:
        """The function whose zeros end a segment of a run."""
        side, until, zero = (IndexedBase(name, shape=self.extents or (1,))[self.indices or (0,)] for name in self.parameters)
        return side if self.times is not None else sp.Piecewise((side, time <= until), (self.event.expr - zero, True), evaluate=False)


def watched_events(system: System) -> tuple[Watched, ...]:
    """All events of a System, in their order; empty where no run stops at any."""
    known = [known_times(system, event) for event in system.events]
    if not any(event.resets or event.at_start or times for event, times in zip(system.events, known, strict=True)):
        return ()
    taken, watched = used_names(system), []
    for event, times in zip(system.events, known, strict=True):
        indices = free_in_order(event.expr, system.axes)
        extents = tuple(system.axes[i] for i in indices)
        if isinstance(event, Guard):
            watched.append(Watched(event, indices, extents))
            continue
        every = ((f"side_{n}", f"until_{n}", f"zero_{n}") for n in count())
        names = next(three for three in every if taken.isdisjoint({*three, *(f"d_{p}" for p in three)}))
        taken |= set(names)
        watched.append(Watched(event, indices, extents, *names, bool(event.resets or event.at_start) or times is not None, times))
    return tuple(watched)


def known_times(system: System, event: Event) -> tuple[AnyTimes, ...] | None:
    """The times of an event on the time alone at which a run stops; None for others, and where they are unknown.

    Steps of any length find the zero of a function that is affine in time by its sign at their ends.
    """
    if not on_time(system, event.expr):
        return None
    try:
        times = tuple(zero_times(event.expr))
    except UnknownTimesError:
        return None
    affine = event.expr.is_polynomial(time) and sp.degree(event.expr, time) == 1
    return times if event.resets or not affine else None


def happens_often(event: Event, times: tuple[AnyTimes, ...] | None) -> bool:
    """Whether an event with these times may pass 0 more often than steps in another time see: at once or twice by a parabola's dip."""
    most = 2 if event.expr.is_polynomial(time) else 1
    return bool(times) and (len(times or ()) > most or any(not isinstance(at, Times) or at.period is not None for at in times or ()))


def stopped_system(system: System, watched: Iterable[Watched]) -> System:
    """The System whose watched events end a segment of a run. watched: of its first events."""
    params, events = list(system.params), list(system.events)
    for n, w in enumerate(watched):
        for name in w.parameters:
            symbol = IndexedBase(name, shape=w.extents or (1,))
            params.append(Param(symbol, 0.0, sp.Interval(-sp.oo, sp.oo), f"of the event {w.event.name}"))
            events[n] = replace(w.event, expr=w.stopping, terminal=w.event.terminal or w.stops)
    return replace(system, params=tuple(params), events=tuple(events))


def rate(system: System, e: Expr, twins: Mapping[str, str]) -> Expr:
    """The time derivative of an expression, where each state v changes at the rate twins[v]."""
    ways: dict[str, Direction] = {str(time): lambda _: sp.S.One}
    for key in system.equations:
        if base_name(key) in twins:
            ways[base_name(key)] = twin_direction(twin_state(key, twins[base_name(key)]))
    return directional_derivative(e, ways)


def slope(system: System, e: Expr, name: str, *, moved: bool) -> tuple[Expr, dict[Symbol, Any]]:
    """(derivative of e by `name`, axes of `name`); the System has sensitivities to `name` among its states.

    moved: with the time, whose own derivative is then the parameter MOVED with these axes.
    """
    shape = shape_of(system, name)
    along = fresh_indices(name, len(shape), used_names(system) | {i.name for i in e.atoms(Symbol)})
    ways: dict[str, Direction] = {}
    for key in system.equations:
        twin = system.sensitivities[name].get(base_name(key))
        if twin is not None:
            ways[base_name(key)] = twin_direction(twin_state(key, twin, along, shape))
    if name not in system.states:
        ways[name] = unit_direction(along)
    if moved:
        ways[str(time)] = lambda _: IndexedBase(MOVED, shape=shape)[along] if along else Symbol(MOVED, real=True)
    axes = dict(zip(along, shape, strict=True))
    return directional_derivative(e, ways, axes), axes


def jumps(e: Expr) -> bool:
    """Whether e may jump, so that its derivatives do not say how it changes."""
    e = without_remainders(e)
    conditions = [c for p in e.atoms(sp.Piecewise) for _, condition in p.args for c in condition.atoms(*COMPARISONS)]
    return bool(e.has(*JUMPING)) or any(may_jump(e, "sign", c.lhs - c.rhs) for c in conditions)


def reads_any(e: Expr, names: Iterable[str]) -> bool:
    """Whether e reads one of these names."""
    return not names_read(e).isdisjoint(names)


def free_of(key: Any, event_indices: Iterable[Symbol], axes: Mapping[Symbol, Any]) -> tuple[Symbol, ...]:
    """The indices of a reset's state that are not the event's own: they run over their axes."""
    return tuple(dict.fromkeys(i for i in key_indices(key) if i in axes and i not in set(event_indices)))


def jumping_names(system: System) -> dict[str, dict[str, str]]:
    """{event: {state or observable that jumps there: its components, as components_named has them}}."""
    jumping = {}
    for event in system.events:
        event_indices = free_in_order(event.expr, system.axes)
        names = components_named(event.resets, event_indices)
        if names:
            names |= {twin: "all" for pairs in system.sensitivities.values() for twin in pairs.values() if twin in system.states}
            reads = [n for n, e in system.observables.items() if not isinstance(e, Expr) or reads_any(e, names)]
            jumping[event.name] = {**names, **dict.fromkeys(reads, "all")}
    return jumping


def watched_names(system: System) -> dict[str, dict[str, str]]:
    """{event: {state or observable that its function reads: its components, as components_named has them}}.

    Of an observable, it is a function of this one alone, and parameters.
    """
    watched, shapes, states = {}, system.shapes, {*system.states, time.name}
    for event in system.events:
        if not isinstance(event, Guard):
            event_indices = free_in_order(event.expr, system.axes)
            read = [key for key in event.expr.free_symbols | event.expr.atoms(sp.Indexed) if base_name(key) in shapes]
            keys = [key for key in read if len(key_indices(key)) == len(shapes[base_name(key)])]  # not the name of an array
            names = {base_name(key): "component" for key in keys if event_indices and key_indices(key) == event_indices}
            names = components_named(keys, event_indices) | names
            names |= {name: "component" for name, _ in watched_observables(system, event)}
            names |= {  # an even function may have -e, which sympy prefers: cos(x - y) is cos(y - x)
                name: "component"
                for name, e in system.observables.items()
                if isinstance(e, Expr)
                and reads_any(e, states)
                and not reads_any(event.expr.xreplace(dict.fromkeys((e, -e), sp.Dummy())), states)
            }
            watched[event.name] = names
    return {name: names for name, names in watched.items() if names}


def components_named(keys: Iterable[Any], event_indices: tuple[Symbol, ...]) -> dict[str, str]:
    """{array: its components among these keys}: "component" is the event's own one alone, "0 2" or "0,1 1,1" are these, else "all"."""
    named: dict[str, set[tuple[Any, ...]]] = {}
    for key in keys:
        named.setdefault(base_name(key), set()).add(key_indices(key))
    return {
        name: "component"
        if indices == {event_indices}
        else " ".join(sorted(",".join(map(str, index)) for index in indices))
        if all(index and all(i.is_Integer for i in index) for index in indices)
        else "all"
        for name, indices in named.items()
    }


def watched_observables(system: System, event: Event) -> list[tuple[str, Expr]]:
    """(observable, number in parameters) where the event's function is this observable, less this number."""
    states = {*system.states, time.name}
    return [
        (name, rest)
        for name, e in system.observables.items()
        if isinstance(e, Expr) and reads_any(e, states) and not reads_any(rest := e - event.expr, states)
    ]


def levels(system: System) -> list[tuple[str, Expr]]:
    """(state, number in scalar parameters) at which events happen that watch it alone, and to which they set it; observables too."""
    plain = {p.symbol for p in system.params if not p.shape}
    events = [event for event in system.events if not isinstance(event, Guard)]
    twins = {twin for pairs in system.sensitivities.values() for twin in pairs.values()}
    resets = list[tuple[Any, Any]]()
    for event in events:
        fired = free_in_order(event.expr, system.axes)  # of a reset of all components, the value of the event's own
        same = {key: dict(zip(key_indices(key), fired, strict=False)) for key in event.resets}
        resets += [(key, sp.sympify(event.resets[key]).subs(way)) for key, way in same.items() if base_name(key) not in twins]
        resets += [(Symbol(name), value) for name, value in watched_observables(system, event)]
        keys = [key for key in event.expr.free_symbols | event.expr.atoms(sp.Indexed) if base_name(key) in system.states]
        if len({base_name(key) for key in keys}) > 1 or sum(isinstance(key, sp.Indexed) for key in keys) > 1:
            continue  # no state is alone, and a derivative of a long sum takes seconds
        resets += [(key, key - event.expr / slope) for key in keys if (slope := event.expr.diff(key)).free_symbols <= plain and slope != 0]
    return [(base_name(key), e) for key, value in resets if (e := sp.sympify(value).expand()).free_symbols <= plain]


def resets_key(system: System) -> str:
    """A text that names what events set, and which happen at the start, for the identity of a run; empty without such events."""
    parts: list[tuple[Any, ...]] = [(v.name, v.terminal, str(key), str(e)) for v in system.events for key, e in v.resets.items()]
    parts += [(event.name, "at the start") for event in system.events if event.at_start]
    return f"_{sha256(repr(parts).encode()).hexdigest()[:8]}" if parts else ""


# Along an interpolant, a polynomial, an affine function is a polynomial too: its zeros need no samples.
def is_affine(system: Definition, e: Expr) -> bool:
    """Whether e is a sum of states and time, each times what does not change along a solution, as far as its form shows."""
    moving = {*system.states, time.name}

    def constant(e: Any) -> bool:
        return not any(getattr(s, "name", "") in moving for s in e.free_symbols)

    def affine(e: Any) -> bool:
        if constant(e):
            return True
        if isinstance(e, sp.Add):
            return all(map(affine, e.args))
        if isinstance(e, sp.Mul):
            rest = [a for a in e.args if not constant(a)]
            return len(rest) == 1 and affine(rest[0])
        if isinstance(e, sp.Sum):
            return affine(e.function)
        if isinstance(e, sp.Indexed):
            return e.base.name in moving and all(map(constant, e.indices))
        return isinstance(e, sp.Symbol)

    return affine(e)
