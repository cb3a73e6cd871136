"""Modes: the values of conditions that are held between switches, along one run, and what changes them.

At a switch conditions change one after another: those on time, those that the run has met, and then those that are past their boundary,
by rounding or because the boundary itself jumps with another condition. That order is right wherever each boundary is a place of its own.
"""

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from odesim.base.arrays import Array, Layout
from odesim.base.memo import IdentityKey, Memo
from odesim.inputs.schema import make_extent
from odesim.run.conditions import BLOCK, ENTRIES, Conditions, formula, make_parts, settled
from odesim.run.event_functions import Flow, Point, other_roundings
from odesim.run.integrate import HELP
from odesim.stepper.occurrences import TOGETHER, length_of
from odesim.symbolic.indices import time
from odesim.symbolic.layered import names_read
from odesim.symbolic.system import System
from odesim.symbolic.times import edges
from odesim.transforms.events import rate, slope
from odesim.transforms.modes import AS_WRITTEN, FREE, HeldSystem, Switch, hold_conditions, switch_events

TIME = str(time)
POINTS = 4
"""So many times with their states are remembered as what expressions read there."""
NEAR = 1e-9
"""Of the largest value so far: below it a function is looked at more closely, whether it is 0 but for rounding."""
SHAKEN = 8
"""Roundings by which a state and a time are changed to see whether a run stands on a boundary: the steps to it were rounded as often."""
_HELD: Memo[HeldSystem] = Memo()


def held_of(system: System, step: float | None = None) -> HeldSystem:
    """The held form of a System, made once a process; step: a fixed one, which passes over pulses as it is told to. Raises SpecError."""
    held = _HELD(IdentityKey(system), lambda: hold_conditions(system))
    return held if step is None else held.in_fixed_steps


def first_of(caused: Mapping[str, dict[str, Array]], s: Switch) -> dict[str, Array] | None:
    """The entry of `caused` for the first switch, by name, that the expression of s reads; None if it reads none of them."""
    return next((caused[name] for name in sorted(names_read(s.smooth)) if name in caused), None)


class Switching(Flow):
    """The switches of one run (odesim.stepper.problem.Switches). modes: {parameter: its array, which changes between segments}."""

    def __init__(self, conditions: Conditions, layout: Layout, dtype: str) -> None:
        held = conditions.held
        self.modes = {s.name: np.zeros(conditions.shape(s), dtype) for s in held.switches}
        self.modes |= {name: np.zeros(conditions.shape(w), dtype) for w in held.watched for name in w.parameters}
        sides = {name: self.modes[name].reshape(1, -1) for w in held.watched for name in w.parameters}
        super().__init__(make_parts(conditions, {}, 1), layout, dtype, sides, {})
        self.stops, self._end = self.parts.edges[1:-1], conditions.t1
        self.slopes = lambda _, t, y: self.slope(float(t[0]), y[0])[None] if len(t) else y
        self.events = len(held.system.events) - len(held.original.events)
        self._rates = {name: f"rate_{name}" for name in self.states}
        # the switch of each event on states, and by how much it changes it: a level goes down by its first event, up by its second
        self._watched = [(s, way) for s in held.on_states for _, way in switch_events(s)]
        self._right: Any = None
        self._ahead: tuple[int, dict[str, Array]] = (0, {})
        self._points: list[tuple[float, Array, dict[str, Any]]] = []
        # of each switch on states, the values of its components where the run last stood, and their largest sizes so far
        self._seen = {s.name: np.zeros(self.modes[s.name].size) for s in held.on_states}
        self._largest = {name: g.copy() for name, g in self._seen.items()}
        self._at_once_at: dict[tuple[str, int], float] = {}

    def attach(self, right: Any) -> None:
        """Sets the right-hand side that reads the modes: right(t, y, out), and refresh(names) if it has a copy of them."""
        self._right = right

    def free(self) -> None:
        """Releases all conditions, so that the right-hand side can be evaluated at any point, outside runs."""
        for s in self.conditions.held.switches:
            self.modes[s.name][...] = FREE if s.kind == "level" else AS_WRITTEN
        self.refresh()

    def begin(self, t: float, y: Array, end: float) -> tuple[Array, str]:
        self._points, self._end = [], end
        self._at_once_at = {}
        for name, mode in self._at(end).items():
            self.modes[name][...] = mode
        for s in self.conditions.held.on_states:
            self.modes[s.name][...] = settled(s, self._value(s.smooth, s, t, y))
        self.refresh()
        for s in self.conditions.held.on_states:
            g = self._look(s, t, y)
            there = np.flatnonzero(g == (0 if s.kind == "sign" else np.floor(g)))
            if len(there) and (why := self._leave(s, there, t, y)):
                return y, why
        return y, ""

    def begin_again(self, at: Point) -> tuple[Array, dict[int, str]]:
        """Holds the conditions of the run, the one member, after an event: see odesim.run.event_functions.Flow."""
        if not len(at):
            return at.y, {}
        before = at.y[0]
        y, why = self.begin(float(at.t[0]), before, self._end)
        return (at.y if y is before else y[None]), {0: why} if why else {}

    def cross(self, t: float, y: Array, crossed: Sequence[tuple[int, int]], end: float) -> tuple[Array, str]:
        ahead, self._end = self._at(end), end
        if not crossed and not self.pairs and not self.events:
            for name, mode in ahead.items():
                self.modes[name][...] = mode
            self.refresh()
            return y, ""
        # One boundary may also be written in two ways, as s < a and s**2 < a**2. Rounding then puts one a little before the other, and the
        # right-hand side between them, which nobody wrote, may hold the run there. Whether it does is known only after the changes one by
        # one: then all that stand on the boundary but for rounding change together, if the flow goes on from there.
        before = self._copied()
        with np.errstate(divide="ignore", invalid="ignore"):  # a third right-hand side may not come to a boundary at all
            one_by_one = self._one_by_one(t, y, crossed, ahead)
        stopped = bool(one_by_one[1]) or not np.isfinite(one_by_one[0]).all()
        if not (stopped or self._stands_between(t, one_by_one[0], before)):
            return one_by_one
        after, at_once = self._copied(), self._at_once(t, y, crossed, ahead, before, stopped=stopped)
        if at_once is None:
            self._put(after)
        return at_once or one_by_one

    def _on_time(self, t: float, y: Array, ahead: Mapping[str, Array]) -> tuple[Array, dict[str, dict[str, Array]]]:
        """Changes the conditions on time to `ahead`: y, and d(the time)/d(each parameter) of those that have changed, by their names."""
        levels: dict[str, dict[str, Array]] = {}
        caused: dict[str, dict[str, Array]] = {}
        for s in sorted(self.conditions.on_time, key=lambda s: s.kind):  # levels first: other conditions may have these in them
            new = ahead[s.name].ravel()
            cause = first_of(levels, s)
            now = self.modes[s.name].ravel()
            for k in np.flatnonzero((new != now) & ~(np.isnan(new) & np.isnan(now))):
                y, moved = self._change(s, int(k), float(new[k]), t, y, cause)
                caused[s.name] = moved
                if s.kind == "level":
                    levels[s.name] = moved
        return y, caused

    def _one_by_one(self, t: float, y: Array, crossed: Sequence[tuple[int, int]], ahead: Mapping[str, Array]) -> tuple[Array, str]:
        """Changes conditions one after another: those on time, those that the run has met, and what is then past its boundary."""
        y, caused = self._on_time(t, y, ahead)
        done = {(self._watched[e][0].name, i) for e, i in crossed}
        for e, i in crossed:
            s, way = self._watched[e]
            if self._has_changed(s, i, t):
                continue
            old = float(self.modes[s.name].flat[i])
            if s.kind == "sign":
                way = int(-old) if old != AS_WRITTEN else int(np.sign(self._drift(s, t, y)[i]))
            y, change, why = self._pass(s, i, old + way if s.kind == "level" else way, way, t, y)
            if why:
                return y, why
            caused |= {} if change is None else {s.name: change}
        return self._together(t, y, done, caused)

    def _together(self, t: float, y: Array, done: set[tuple[str, int]], caused: Mapping[str, dict[str, Array]]) -> tuple[Array, str]:
        """Changes what is past its boundary: by no more than rounding, with others, which are done; or by a jump of the boundary itself.

        caused: d(the time)/d(each parameter) of the conditions that have just changed, by their names.
        """
        for s in self.conditions.held.on_states:
            cause = first_of(caused, s)
            g, mode = self._look(s, t, y), self.modes[s.name].ravel()
            if s.kind == "sign" and len(left := np.flatnonzero((mode == AS_WRITTEN) & ~np.isnan(g))):
                sides = np.sign(np.where(g == 0, self._drift(s, t, y), g))[left]
                self._set(s, left[sides != 0], sides[sides != 0])
            past = (g * mode < 0) & (mode != AS_WRITTEN) if s.kind == "sign" else ((g < mode) | (g > mode + 1)) & (mode < FREE)
            rests = (g == 0) & (mode != AS_WRITTEN) & (s.kind == "sign")
            if rests.any():
                rests &= self._drift(s, t, y) == 0
            for i in np.flatnonzero(past | rests).tolist():
                if (s.name, i) in done or self._has_changed(s, i, t):
                    continue
                if rests[i]:  # a jump has taken it to 0, and there it stays
                    y, _ = self._change(s, i, AS_WRITTEN, t, y, cause or {})
                    continue
                new = float(-mode[i] if s.kind == "sign" else np.floor(g[i]))
                way = new if s.kind == "sign" else new - float(mode[i])
                y, _, why = self._pass(s, i, new, way, t, y, cause)
                if why:
                    return y, why
        return y, ""

    def _near(self, s: Switch, mode: Array) -> Array:
        """Which components of a condition with these values were last seen near their boundary."""
        return np.asarray((np.abs(self._seen[s.name]) <= NEAR * self._largest[s.name]) & (np.abs(mode) == 1) & (s.kind == "sign"))

    def _stands_between(self, t: float, y: Array, before: Mapping[str, Array]) -> bool:
        """Whether the run has come to a boundary but for rounding, which it would now not come to: others that it has met stop it."""
        for s in self.conditions.held.on_states:
            mode = before[s.name].ravel()
            near = self._near(s, mode) & (self.modes[s.name].ravel() != -mode)
            if near.any() and (near & (self._drift(s, t, y) * mode >= 0)).any():
                return True
        return False

    def _at_once(
        self,
        t: float,
        y: Array,
        crossed: Sequence[tuple[int, int]],
        ahead: Mapping[str, Array],
        before: Mapping[str, Array],
        *,
        stopped: bool,
    ) -> tuple[Array, str] | None:
        """Changes all conditions at once on whose boundaries the run stands but for rounding; None where the flow does not go on then.

        A boundary may be written in two ways, as s < a and s**2 < a**2, and rounding puts each a little elsewhere. Between them the
        right-hand side may be a third one. stopped: whether it stops the run, or its sensitivities do not follow.
        """
        self._put(before)
        group: dict[tuple[str, int], tuple[Switch, float, float, float]] = {}
        for s in self.conditions.held.on_states:
            mode = self.modes[s.name].ravel()
            met = {i: way for e, i in crossed for other, way in [self._watched[e]] if other is s}
            g = self._look(s, t, y)
            near = self._near(s, mode)
            if not (met or near.any()):
                continue
            drift = self._drift(s, t, y)
            noise = self._rounding(s, t, y, g)
            noise += SHAKEN * np.spacing(abs(t)) * np.abs(drift)  # the state moves on with the time that is rounded
            for i in {*met, *np.flatnonzero(near & (np.abs(g) <= noise) & (drift * mode < 0)).tolist()}:
                way = float(-mode[i] if s.kind == "sign" else met[i])
                group[s.name, i] = s, float(mode[i] + way if s.kind == "level" else way), way, drift[i]
        if len(group) == (1 if stopped else len(crossed)) or any(
            abs(new) == AS_WRITTEN for s, new, _, _ in group.values() if s.kind == "sign"
        ):
            return None
        moved = {key: {p: self._slope(s, p, key[1], t, y) / -drift for p in self.pairs} for key, (s, _, _, drift) in group.items()}
        y, caused = self._on_time(t, y, ahead)
        for (name, i), (s, new, _, _) in group.items():
            y, caused[name] = self._change(s, i, new, t, y, moved[name, i])
        if any(way * self._drift(s, t, y)[i] < 0 for (_, i), (s, _, way, _) in group.items()):
            return None
        y, why = self._together(t, y, set(group), caused)
        if why:
            return None
        self._at_once_at |= dict.fromkeys(group, t)
        return y, ""

    def _has_changed(self, s: Switch, i: int, t: float) -> bool:
        """Whether a component has changed at once with others at this time but for rounding: it may come to its boundary only now."""
        changed = self._at_once_at.get((s.name, i))
        return changed is not None and t - changed <= length_of(TOGETHER, t, self.conditions.t0)

    def _copied(self) -> dict[str, Array]:
        return {name: mode.copy() for name, mode in self.modes.items()}

    def _put(self, modes: Mapping[str, Array]) -> None:
        for name, mode in modes.items():
            self.modes[name][...] = mode
        self.refresh()

    def _look(self, s: Switch, t: float, y: Array) -> Array:
        """The values of a switch's expression (components,), remembered."""
        g = self._smooth(s, t, y)
        self._seen[s.name], self._largest[s.name] = g, np.fmax(self._largest[s.name], np.where(np.isfinite(g), np.abs(g), 0))
        return g

    def _leave(self, s: Switch, there: Array, t: float, y: Array) -> str:
        """Chooses the side of components that start on their boundary by the direction of the flow; returns why there is none, or ""."""
        mode = self.modes[s.name].ravel()
        low = -1.0 if s.kind == "sign" else mode[there] - 1
        high, still = (1.0, AS_WRITTEN) if s.kind == "sign" else (mode[there], FREE)
        ways = []
        for value in (high, low, still):
            self._set(s, there, value)
            ways.append(self._drift(s, t, y)[there])
        up, down, plain = ways
        above, below = up > 0, down < 0
        stays = plain == 0
        if s.kind == "level":  # a whole number belongs to the part above it
            above, stays = up >= 0, np.zeros_like(stays)
        # a run that stays as written is at rest there, though it could also leave: x' = 1 for x > 0, else 0, from 0
        chosen = np.where(above & ~below, high, np.where(below & ~above, low, np.where(plain < 0, low, high)))
        chosen = np.where(stays | ~(above | below), still, chosen)
        self._set(s, there, chosen)
        lost = np.flatnonzero(~(above | below | stays))
        return self._sentence(s, int(there[lost[0]]), t) if len(lost) else ""

    def _pass(
        self, s: Switch, i: int, new: float, way: float, t: float, y: Array, cause: dict[str, Array] | None = None
    ) -> tuple[Array, dict[str, Array] | None, str]:
        """Moves component i across its boundary (_change); returns why the run cannot continue there, or "".

        If the flow leads back on the new side, and away from the boundary on the old one, rounding alone met it: nothing changes then.
        """
        old, before = float(self.modes[s.name].flat[i]), y
        y, moved = self._change(s, i, new, t, y, cause)
        if cause is not None or not way * self._drift(s, t, y)[i] < 0:
            return y, moved, ""
        self._set(s, np.array([i]), old)
        if old != (AS_WRITTEN if s.kind == "sign" else FREE) and way * self._drift(s, t, before)[i] < 0:
            return before, None, ""
        return y, moved, self._sentence(s, i, t)

    def words(self, crossed: tuple[int, int]) -> str:
        e, i = crossed
        return self._words(self._watched[e][0], i)

    def _words(self, s: Switch, i: int) -> str:
        shape = self.conditions.shape(s) if s.indices else ()
        at = f" (component {', '.join(map(str, np.unravel_index(i, shape)))})" if shape else ""
        return f"the boundary of the condition {s.text}{at}"

    def _sentence(self, s: Switch, i: int, t: float) -> str:
        return f"the solution comes at t = {t:.9g} to {self._words(s, i)}, to which both sides push it back (sliding); {HELP}"

    def _change(
        self, s: Switch, i: int, new: float, t: float, y: Array, cause: dict[str, Array] | None = None
    ) -> tuple[Array, dict[str, Array]]:
        """Sets component i of a switch to its new value; y, sensitivities changed by (f- - f+) dtau, and d(the time)/d(each parameter).

        The boundary g = 0 is met at tau with dtau = -(dg/dp + dg/dy S) / (dg/dt + dg/dy f-). cause: dtau where another switch is why.
        """
        if not self.pairs:
            self._set(s, np.array([i]), new)
            return y, {}
        before, moved = self.rate(t, y), cause
        if moved is None:
            what = s if np.isfinite(self.modes[s.name].flat[i] + new) else self._edge(s, i, t, y)
            rate = self._drift(what, t, y)[i]
            moved = {p: self._slope(what, p, i, t, y) / -rate for p in self.pairs}
        self._set(s, np.array([i]), new)
        after, y = self.rate(t, y), y.copy()
        parts = self.layout.split(y)
        for p, dtau in moved.items():
            for v, twin in self.pairs[p].items():
                parts[twin] += np.multiply.outer(before[v] - after[v], dtau).astype(y.dtype)
        return y, moved

    def _edge(self, s: Switch, i: int, t: float, y: Array) -> Switch:
        """The function that is 0 where component i of a switch's expression begins or ends to be defined, in the place of the switch."""
        candidates = [replace(s, name=f"{s.name} edge {n}", smooth=u) for n, u in enumerate(edges(s.smooth))] or [s]
        return min(candidates, key=lambda edge: abs(self._value(edge.smooth, edge, t, y).ravel()[i]))

    def _set(self, s: Switch, there: Array, value: Any) -> None:
        self.modes[s.name].ravel()[there] = value
        self.refresh([s.name])

    def _at(self, end: float) -> dict[str, Array]:
        """The modes of conditions on time in the part of the span that `end` belongs to, computed for many parts at once."""
        c = self.conditions
        if not c.on_time:
            return {}
        k = int(np.searchsorted(self.stops, end))
        first, rows = self._ahead
        if not rows or not first <= k < first + len(next(iter(rows.values()))):
            most = max(1, min(BLOCK, ENTRIES // sum(self.modes[s.name].size for s in c.on_time)))
            edges = np.concatenate([[c.t0], self.stops, [c.t1]])[k : k + most + 1]
            self._ahead = first, rows = k, c.between(0.5 * edges[:-1] + 0.5 * edges[1:], {})
        return {name: values[k - first] for name, values in rows.items()}

    def slope(self, t: float, y: Array) -> Array:
        """The derivative (n,) at (t, y)."""
        out = np.empty_like(y)
        self._right(t, np.ascontiguousarray(y), out)
        return out

    def rate(self, t: float, y: Array) -> dict[str, Array]:
        """The derivatives of all states, {name: shape}."""
        return self.layout.split(self.slope(t, y).astype(np.float64))

    def _drift(self, s: Switch, t: float, y: Array) -> Array:
        """d/dt of a switch's expression along the run, (components,)."""
        rates = self.rate(t, y)
        more: dict[str, Any] = {twin: rates[name] for name, twin in self._rates.items()}
        known = self.conditions.expressions
        if s.name not in known:
            known[s.name] = rate(self.conditions.held.system, s.smooth, self._rates)
        return self._value(known[s.name], s, t, y, **more).ravel()

    def _slope(self, s: Switch, p: str, i: int, t: float, y: Array) -> Array:
        """The derivative of component i of a switch's expression by all entries of p."""
        known = self.conditions.expressions
        if (s.name, p) not in known:
            known[s.name, p] = slope(self.conditions.held.system, s.smooth, p, moved=False)
        expr, along = known[s.name, p]
        slopes = self._value(expr, s, t, y, along)
        count = max(1, int(np.prod([e.value(self.conditions.sizes) for e in map(make_extent, s.extents)])))
        rows: Array = slopes.reshape(count, *slopes.shape[len(s.extents) :])
        return rows[i]

    def _rounding(self, s: Switch, t: float, y: Array, g: Array) -> Array:
        """How far a few roundings of the time and the states may move a switch's expression, which is g at (t, y)."""
        return np.nan_to_num(sum(np.abs(self._smooth(s, *at) - g) for at in shaken(t, y, SHAKEN * float(np.finfo(y.dtype).eps))))

    def _smooth(self, s: Switch, t: float, y: Array) -> Array:
        """The values of a switch's expression, (components,)."""
        return self._value(s.smooth, s, t, y).ravel()

    def _value(self, expr: Expr, s: Switch, t: float, y: Array, along: Mapping[Symbol, Any] | None = None, **more: Array) -> Array:
        return self.value(expr, {**s.axes, **(along or {})}, t, y, **more)

    def value(self, expr: Expr, axes: Mapping[Symbol, Any], t: float, y: Array, **more: Array) -> Array:
        """An expression for all values of the indices of axes."""
        f, known = formula(expr, tuple(axes), tuple(axes.items())), ChainMap(self.modes, self._numbers(t, y))
        read = {name: known[name] for name in f.function.inputs if name in known}
        with np.errstate(all="ignore"):
            return f(self.conditions.sizes, {**read, **more})

    def _numbers(self, t: float, y: Array) -> dict[str, Any]:
        """All but modes that an expression may read at (t, y); of the last few such points it is remembered."""
        for then, state, numbers in self._points:
            if then == t and state is y:
                return numbers
        numbers = {**self.conditions.shared, **self.layout.split(y.astype(np.float64)), TIME: t}
        self._points = [(t, y, numbers), *self._points[: POINTS - 1]]
        return numbers

    def refresh(self, names: Iterable[str] | None = None) -> None:
        """Brings new modes to the right-hand side."""
        refresh = getattr(self._right, "refresh", None)
        if refresh is not None:
            refresh(self.modes if names is None else names)


def shaken(t: float, y: Array, part: float) -> list[tuple[float, Array]]:
    """The time and the state with other roundings, by this part of them, in two ways."""
    return [(t * float(by[-1]), (y * by[:-1]).astype(y.dtype)) for by in other_roundings(len(y) + 1, part)]
