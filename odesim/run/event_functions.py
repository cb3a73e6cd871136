"""The functions and resets of events for arrays of members: their values, their rates, and the states that they set.

A member stands at a time of its own. One run is an array of one member: numpy gives a row the same bits, however many rows there are.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
from sympy import Expr, Indexed, Symbol
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanFunction

from odesim.base.arrays import Array, Layout, entry
from odesim.base.errors import SolveError
from odesim.ensembles.members import member_values
from odesim.inputs.schema import Formula, make_extent
from odesim.run.conditions import Parts, formula
from odesim.stepper.codes import Status
from odesim.stepper.occurrences import together
from odesim.symbolic.indices import base_name, time
from odesim.symbolic.layered import layers_in, names_read
from odesim.symbolic.parts import Event, key_indices
from odesim.transforms.events import MOVED, SLACK, Guard, Watched, free_of, jumps, rate, reads_any, slope

ROUNDED, ROUNDINGS = 1e-12, 64
"""Rounding may have moved each state and the time by this part of them, and by so many roundings of its own."""
TIME = str(time)


class Flow:
    """N members between their events: in lanes, whose conditions are on time alone, or one run (odesim.run.modes.Switching).

    per_member {name: (N, *shape)}: their parameters. sides {name: (N, components)}: what is held of their events. states: without
    sensitivities. pairs: {parameter: {state: its derivative}}. parts: of their spans. slopes(members (k,), t (k,), y (k, n)): derivatives.
    """

    slopes: Callable[[Array, Array, Array], Array]

    def __init__(self, parts: Parts, layout: Layout, dtype: str, sides: Mapping[str, Array], per_member: Mapping[str, Array]) -> None:
        self.conditions, self.parts, self.layout, self.dtype = parts.conditions, parts, layout, dtype
        self.sides, self.per_member, pairs = sides, per_member, parts.conditions.held.system.sensitivities
        twins = {twin for each in pairs.values() for twin in each.values()}
        self.states = [name for name in layout.names if name not in twins]
        self.pairs = {p: {v: d for v, d in each.items() if v in layout.names} for p, each in pairs.items()}

    def begin_again(self, at: "Point") -> tuple[Array, dict[int, str]]:
        """Holds the conditions of members that an event has moved: the states (k, n), and {row: why no segment can begin there}."""
        return at.y, {}  # those of members in lanes are held for the part that is at hand

    def refresh(self, names: Iterable[str] | None = None) -> None:
        """Brings new modes, all or these, to the right-hand side; the kernel of lanes reads what is held."""


class Point:
    """Members (k,) of a flow at times t (k,) in states y (k, n). late: the same members a moment later, where that is known."""

    def __init__(self, flow: Flow, members: Array, t: Array, y: Array, late: "Point | None" = None, same: Any = None) -> None:
        """same: what points of the same members and times have computed from these alone."""
        self.flow, self.members, self.t, self.y, self.late = flow, members, t, y, late
        self._same: dict[Any, Array] = {} if same is None else same
        self.functions: dict[int, tuple[Array, ...]] = {}

    def __len__(self) -> int:
        return len(self.members)

    def of(self, rows: Array | slice) -> "Point":
        """Some of the members; all for a slice."""
        if isinstance(rows, slice) or len(rows) == len(self):
            return self
        late, same = self.late and self.late.of(rows), {what: values[rows] for what, values in self._same.items()}
        some = Point(self.flow, self.members[rows], self.t[rows], self.y.take(rows, axis=0), late, same)
        some.functions = {e: tuple(values[rows] for values in each) for e, each in self.functions.items()}
        return some

    def at(self, rows: Array, y: Array, late: "Point | None") -> "Point":
        """The members at the same times, those of these rows in states y."""
        if len(rows) < len(self):
            y, some = self.y.copy(), y
            y[rows] = some
        return Point(self.flow, self.members, self.t, y, late, self._same)

    def _once(self, what: Any, make: Callable[[], Array]) -> Array:
        if what not in self._same:
            self._same[what] = make()
        return self._same[what]

    @property
    def spacing(self) -> Array:
        """The distance from each time to the next number (k,)."""
        return self._once("spacing", lambda: np.spacing(np.abs(self.t)))

    @property
    def nearby(self) -> Array:
        """How far from its time another event of a member is at one time with it (k,)."""
        return self._once("nearby", lambda: np.asarray(together(self.t, self.flow.conditions.t0, self.flow.dtype, self.spacing)))

    @cached_property
    def slope(self) -> Array:
        """The derivatives (k, n)."""
        return self.flow.slopes(self.members, self.t, self.y)

    @cached_property
    def rates(self) -> dict[str, Array]:
        """The derivatives of all states by name, {name: (k, *shape)}."""
        return self.flow.layout.split(self.slope.astype(np.float64))

    @cached_property
    def _numbers(self) -> dict[str, Array]:
        states = self.flow.layout.split(self.y.astype(np.float64))
        return {**states, TIME: self.t}

    def read(self, names: frozenset[str], around: bool = False, gates: frozenset[str] = frozenset()) -> dict[str, Array]:
        """Those of these names that are states, the time, or parameters that differ between members: {name: (k, *shape)}.

        around: of all members, then of all with other roundings in two ways, then a moment later, where that is known: (3 k or 4 k).
        gates: those that keep theirs where they are whole numbers.
        """
        per_member = {name: self._per_member(name) for name in names & self.flow.per_member.keys()}
        moving = {name: self._numbers[name] for name in names & self._numbers.keys()}
        if not around:
            return per_member | moving
        late = [] if self.late is None else [self.late._numbers]
        shaken = [{name: values * by[name] for name, values in moving.items()} for by in factors(self.flow.layout, self.flow.dtype)]
        for each in shaken:
            each.update({name: np.where(v == np.rint(v), v, each[name]) for name, v in moving.items() if name in gates})
        if self.flow.dtype != "float64":
            shaken = [{n: v if n == TIME else v.astype(self.flow.dtype).astype(np.float64) for n, v in each.items()} for each in shaken]
        every = [moving, *shaken, *late]
        per_member = {name: np.concatenate([values] * len(every)) for name, values in per_member.items()}
        return per_member | {name: np.concatenate([each[name] for each in every]) for name in moving}

    def _per_member(self, name: str) -> Array:
        return self._once((name,), lambda: self.flow.per_member[name].take(self.members, axis=0))

    def later(self, by: Array) -> "Point":
        """The members a little later (k,), along a straight line."""
        return Point(self.flow, self.members, self.t + by, self.y + by.astype(self.y.dtype)[:, None] * self.slope)

    def and_late(self) -> "Point":
        """All members, and after them all a moment later (2 k) where that is known."""
        if self.late is None:
            return self
        t, y = (np.concatenate([getattr(self, name), getattr(self.late, name)]) for name in ("t", "y"))
        return Point(self.flow, np.tile(self.members, 2), t, y)


def rounded(dtype: str) -> float:
    """The part of itself by which rounding may have moved a state."""
    return max(ROUNDED, ROUNDINGS * float(np.finfo(dtype).eps))


@lru_cache(maxsize=64)
def factors(layout: Layout, dtype: str) -> list[dict[str, Array]]:
    """Factors of states and the time that stand for other roundings of them, in two ways."""
    return [{**layout.split(by[:-1]), TIME: by[-1]} for by in other_roundings(layout.size + 1, rounded(dtype))]


def other_roundings(count: int, part: float) -> list[Array]:
    """Factors (count,) that change numbers by this part of them, in two ways."""
    # cosines and sines at steps that are no part of a turn: no two numbers change alike, as x and y in x - y, and none in neither way
    turns = 1.0 + 2.4 * np.arange(count)
    return [1 + part * turn(turns) for turn in (np.cos, np.sin)]


Slopes: TypeAlias = dict[str, Array]
"""{parameter: derivatives (k, *its shape)} of the times of events."""


class EventFunctions:
    """The functions and resets of the events of a flow. watched: its events; shapes: of their components."""

    def __init__(self, flow: Flow) -> None:
        self.flow, self._conditions = flow, flow.conditions
        self.watched, self._system = self._conditions.held.watched, self._conditions.held.original
        self.shapes = [tuple(make_extent(n).value(self._conditions.sizes) for n in w.extents) for w in self.watched]
        self._formulas: dict[Any, tuple[Formula, frozenset[str], bool, frozenset[str]]] = {}
        known = self._conditions.expressions
        if "resets" not in known:
            known["resets"] = [self._resets(w) for w in self.watched]
        self._sets = known["resets"]
        for w in self.watched:
            if flow.pairs and w.event.resets and jumps(w.event.expr) and reads_any(w.event.expr, (*self._system.states, *flow.pairs)):
                raise SolveError(
                    f"{self._system.name}: there are no sensitivities through the resets of event {w.event.name!r}, whose function "
                    f"{w.event.expr} may jump: write one that passes 0 smoothly, such as sin(pi*t/T)"
                )

    def _resets(self, w: Watched) -> list[tuple[Any, Expr, str, tuple[Symbol, ...], dict[Symbol, Any]]]:
        """Of each reset of an event its state, expression, name, own indices, and all indices with their extents."""
        every = [(key, expr, base_name(key), free_of(key, w.indices, self._system.axes)) for key, expr in w.event.resets.items()]
        return [(*reset, {**w.axes, **{j: self._system.axes[j] for j in reset[-1]}}) for reset in every]

    def event(self, e: int) -> Event:
        """The event with this number."""
        return self.watched[e].event

    def name(self, e: int, i: int) -> str:
        """`bounce[2]`: the name of an event with the component."""
        shape = self.shapes[e]
        return entry(self.event(e).name, np.unravel_index(i, shape) if shape else ())

    def moment_at(self, at: Point) -> Array:
        """The length of a moment (k,), also at the start."""
        c, dtype = self._conditions, self.flow.dtype  # in which the time is too, up to which a side is held
        spacing = at.spacing if dtype == "float64" else np.spacing(np.abs(at.t.astype(dtype)))
        return np.maximum(at.nearby, np.maximum(np.spacing(c.t1 - c.t0), spacing))

    def function(self, e: int, at: Point) -> tuple[Array, ...]:
        """The function of an event, how far rounding of the time and the state moves it, and how far a moment: each (k, components)."""
        if e not in at.functions:
            w = self.watched[e]
            every = self.values(w.event.expr, w.axes, at, around=True)
            g, one, two, *late = every.reshape(3 + (at.late is not None), len(at), -1)
            moment = numbers(np.abs(late[0] - g)) if late else np.zeros_like(g)
            at.functions[e] = g, numbers(np.abs(one - g) + np.abs(two - g)), moment
        return at.functions[e]

    def rate(self, e: int, at: Point) -> Array:
        """d/dt of an event's function along the run, (k, components)."""
        w, known = self.watched[e], self._conditions.expressions
        if ("event", w.event.name) not in known:
            known["event", w.event.name] = rate(self._system, w.event.expr, {name: f"rate_{name}" for name in self.flow.states})
        rates = {f"rate_{name}": at.rates[name] for name in self.flow.states}
        return numbers(self.values(known["event", w.event.name], w.axes, at, rates).reshape(len(at), -1))

    def set_states(self, e: int, i: Array, at: Point, slopes: Slopes) -> tuple[Array, dict[int, tuple[Status, str]]]:
        """The states (k, n) after the resets of components i (k,) of an event; {row: why a run cannot go on}, where states stay."""
        after = at.y.copy()
        parts, taken = self.flow.layout.split(after), dict[str, list[Array]]()
        obstacles: dict[int, tuple[Status, str]] = {}
        for key, expr, name, free, axes in self._sets[e]:
            place = self._place(key, free, e, i)
            self._check_taken(taken.setdefault(name, []), place, parts[name].shape[1:], e, i, name)
            new = self._component(self.values(expr, axes, at), e, i)
            parts[name][place] = new
            obstacles = {**self._obstacles(e, i, key, new, at), **obstacles}
            for p, moved in slopes.items():
                along = self._slope((e, key, p), expr, p, moved=True)
                there = self.values(along[0], {**axes, **along[1]}, at, {MOVED: moved})
                parts[self.flow.pairs[p][name]][place] = self._component(there, e, i)
        for row in obstacles:
            after[row] = at.y[row]
        return after, obstacles

    def _check_taken(self, taken: list[Array], place: tuple[Array, ...], shape: tuple[int, ...], e: int, i: Array, name: str) -> None:
        """Raises SolveError where a reset sets an element that is already taken (k, elements)."""
        taken.append(np.ravel_multi_index(place[1:], shape).reshape(len(i), -1) if shape else np.zeros((len(i), 1), np.int64))
        if len(taken) > 1 or taken[0].shape[1] > 1:
            twice = (np.diff(np.sort(np.concatenate(taken, axis=1), axis=1), axis=1) == 0).any(axis=1)
            if twice.any():
                which = self.name(e, int(i[np.argmax(twice)]))
                raise SolveError(f"{self._system.name}: the event {which} sets an element of {name} twice")

    def _obstacles(self, e: int, i: Array, key: Any, new: Array, at: Point) -> dict[int, tuple[Status, str]]:
        """{row: why a run cannot go on with these new values of a state}."""
        guard = next((w.event for w in self.watched if isinstance(w.event, Guard) and w.event.state == base_name(key)), None)
        lost = ~np.isfinite(new)
        out = guard.sign * new < -self._conditions.shared.get(SLACK, 0.0) if guard else np.zeros_like(lost)
        obstacles: dict[int, tuple[Status, str]] = {}
        for row in np.flatnonzero((lost | out).reshape(len(new), -1).any(axis=1)).tolist():
            bad, where = lost[row] if lost[row].any() else out[row], f"at t = {at.t[row]:.9g}"
            what = f"the event {self.name(e, int(i[row]))} sets {key} to {float(np.extract(bad, new[row])[0]):.6g}"
            if lost[row].any():
                obstacles[row] = Status.NON_FINITE, f"{what} {where}; change its reset, or end the span before it"
            else:
                words = guard.words if guard else ""
                obstacles[row] = Status.LEFT_DOMAIN, f"{what}, which leaves {words} that its symbol assumes, {where}"
        return obstacles

    def _place(self, key: Any, free: tuple[Symbol, ...], e: int, i: Array) -> tuple[Array, ...]:
        """The places in a state's array (k, *shape) that a reset sets: arrays (k, *free indices), the first of which is the row."""
        c, lead = self._conditions, (len(i),) + (1,) * len(free)
        at: dict[Any, Any] = {}
        if self.watched[e].indices:
            numbers = np.unravel_index(i, self.shapes[e])
            at = {index: n.reshape(lead) for index, n in zip(self.watched[e].indices, numbers, strict=True)}
        counts = [make_extent(self._system.axes[j]).value(c.sizes) for j in free]
        at |= dict(zip(free, (n[None] for n in np.ix_(*map(np.arange, counts))) if counts else (), strict=True))

        def number(index: Any) -> Any:
            if isinstance(index, Indexed):
                return np.asarray(c.shared[base_name(index)])[tuple(map(number, index.indices))]
            return at[index] if index in at else int(index)

        return tuple(np.broadcast_arrays(np.arange(len(i)).reshape(lead), *(number(j) for j in key_indices(key))))

    def _component(self, every: Array, e: int, i: Array) -> Array:
        """The values of one component (k,) of an event for each member, of values for all of them."""
        rank = len(self.shapes[e])
        if not rank:
            return every
        rows: Array = every.reshape(len(i), -1, *every.shape[1 + rank :])
        return rows[np.arange(len(i)), i]

    def time_slopes(self, e: int, i: Array, at: Point) -> tuple[Slopes, Array]:
        """Derivatives of the times of components i (k,) of an event, 0 at the start of a run; and which of them have none (k,)."""
        w, slopes = self.watched[e], dict[str, Array]()
        left, lost = at.t != self._conditions.t0, np.zeros(len(at), bool)
        # a function that has come to 0 to stay, as Max(x, 0), has no slope there: that of a moment before counts
        for here in (at, at.later(-at.nearby)) if self.flow.pairs else ():
            rate, moves = self._component(self.rate(e, here).reshape(len(at), *self.shapes[e]), e, i), np.zeros(len(at), bool)
            for p in self.flow.pairs:
                expr, along = self._slope((e, p), w.event.expr, p, moved=False)
                by = -self._component(self.values(expr, {**w.axes, **along}, here), e, i)
                rates = rate.reshape(len(at), *[1] * (by.ndim - 1))
                slopes.setdefault(p, np.zeros_like(by))
                np.divide(by, rates, out=slopes[p], where=(rates != 0) & left.reshape(rates.shape))
                moves |= (by != 0).reshape(len(at), -1).any(axis=1)
            lost |= left & (rate == 0) & moves
            left = left & (rate == 0) & ~moves
        return slopes, lost

    def moved(self, at: Point, slopes: Slopes, sign: float) -> Array:
        """The states with sensitivities along the moving times of events (sign 1), or back at fixed times (-1)."""
        if not slopes:
            return at.y
        y = at.y.copy()
        parts = self.flow.layout.split(y)
        for p, moved in slopes.items():
            for v, twin in self.flow.pairs[p].items():
                rate, rank = at.rates[v], moved.ndim - 1
                by = rate.reshape(*rate.shape, *[1] * rank) * moved.reshape(len(at), *[1] * (rate.ndim - 1), *moved.shape[1:])
                parts[twin] += (sign * by).astype(y.dtype)
        return y

    def _slope(self, name: Any, expr: Any, p: str, *, moved: bool) -> tuple[Any, dict[Symbol, Any]]:
        known = self._conditions.expressions
        if ("reset", name) not in known:
            known["reset", name] = slope(self._system, expr, p, moved=moved)
        return known["reset", name]

    def values(
        self, expr: Expr, axes: Mapping[Symbol, Any], at: Point, more: Mapping[str, Array] | None = None, *, around: bool = False
    ) -> Array:
        """An expression for each member and all values of the indices of axes, (k, *extents); more: what it reads besides."""
        key = expr, tuple(axes.items())
        if key not in self._formulas:
            # a memory was set to its whole number: with another rounding a gate such as `on >= 1`, or `Eq(Mod(n, 2), 1)`, would not hold
            gates = self._conditions.held.memories - read_outside_conditions(expr)
            self._formulas[key] = formula(expr, tuple(axes), key[1]), frozenset(names_read(expr)), bool(layers_in(expr)), gates
        f, reads, layered, gates = self._formulas[key]
        mine, count = at.read(reads, around, gates), len(at) * (3 + (at.late is not None) if around else 1)
        if more:
            mine |= {name: more[name] for name in reads & more.keys()}
        sizes, shared = self._conditions.sizes, self._conditions.shared
        # with an index of members layers would be written out, each wherever one is read: seven Newton steps take hours
        if mine and layered:
            return np.stack([f(sizes, {**shared, **{name: values[k] for name, values in mine.items()}}) for k in range(count)])
        every = member_values(f, axes, sizes, shared, mine) if mine else f(sizes, shared)[None]
        return every if len(every) == count else np.broadcast_to(every, (count, *every.shape[1:]))


def read_outside_conditions(e: Any) -> frozenset[str]:
    """The names that an expression reads other than in conditions."""
    if isinstance(e, Relational | BooleanFunction):
        return frozenset()
    parts = () if isinstance(e, Indexed) or layers_in(e) else e.args
    return frozenset().union(*map(read_outside_conditions, parts)) if parts else frozenset(names_read(e))


def numbers(a: Array) -> Array:
    """An array with 0 for nan, and large numbers for infinite ones."""
    return a if np.isfinite(a).all() else np.nan_to_num(a)
