"""Events that a run stops at: which happen at a time, what they set, and what that sets off.

The side of a function is its sign, and 0 where it is 0 but for rounding, also of the time: the resets act on the state a moment later too,
and tell by how much that changes a function. At one time the events whose functions have come to 0 are
collected first. Then each acts, and once more for each time that a reset of another event takes its function from one side to the other,
or to 0. At last a function that is 0 gets the side to which the run takes it. It is held there until it has come out of its rounding.

A reset y+ = r(y-, t, p) at the time tau of g(t, y, p) = 0 carries S = dy/dp to S+ = r_y (S- + f- tau') + r_t tau' + r_p - f+ tau',
with tau' = dtau/dp = -(g_y S- + g_p) / (g_y f- + g_t). (Hiskens & Pai 2000, Trajectory sensitivity analysis of hybrid systems.)
"""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

import numpy as np
from sympy import Indexed, Symbol

from odesim.base.arrays import Array
from odesim.base.errors import SolveError
from odesim.inputs.schema import make_extent
from odesim.run.conditions import BLOCK, ENTRIES, NEXT, values
from odesim.run.integrate import MOMENT, length_of, together
from odesim.run.modes import Switching
from odesim.stepper.codes import Status
from odesim.stepper.problem import Acted, Which
from odesim.symbolic.indices import base_name, time
from odesim.symbolic.layered import names_read
from odesim.symbolic.parts import Event, key_indices
from odesim.transforms.events import MOVED, SLACK, Guard, event_rate, free_of, jumps, reads_any, slope

FEW = 4
"""So many times of one event pile up, if each is no more than a MOMENT after the one before, or its function has only moved by rounding."""
FEWEST = 4
"""A function moves by so many roundings of its states and the time at least."""
REPEATS = 100
"""So many times one event may happen at one time, set off by resets of others."""
SLOW = 1e-6
"""Part of the span for which a function is held on its side of 0 at most."""
AHEAD = 1e-9
"""Part of the span after which a function that rests at 0 is looked at again."""
ROUNDED, ROUNDINGS = 1e-12, 64
"""Rounding may have moved each state and the time by this part of them, and by so many roundings of its own."""
NEVER, TINY = -1e38, 1e-30
"""A time before every run, and what stands for 0 with a sign."""


class Resetting:
    """The events that one run stops at (odesim.stepper.problem.Resets)."""

    """The events that one run stops at (odesim.stepper.problem.Resets)."""

    def __init__(self, switching: Switching) -> None:
        self._switching, self._conditions = switching, switching.conditions
        self._events = StateSetter(switching)
        self._watched = self._events.watched
        self._on_states = [e for e, w in enumerate(self._watched) if w.times is None]
        reads = {e: names_read(self._watched[e].event.expr) for e in self._on_states}
        sets = [{base_name(key) for key in w.event.resets} for w in self._watched]
        self._moves = [[e for e in self._on_states if reads[e] & names] for names in sets]
        c = self._conditions
        edges = np.concatenate([[c.t0], switching.stops, [c.t1]])
        beyond = 0.5 * edges[-1] + 0.5 * min(edges[-1] + (c.t1 - c.t0) * NEXT, switching.next_time)
        self._middles = np.append(0.5 * edges[:-1] + 0.5 * edges[1:], beyond)  # an event at the end of the span happens, none after it
        self._forget()

    def _forget(self) -> None:
        """Forgets an earlier run."""
        self._last: dict[Which, tuple[float, int]] = {}
        self._ahead: dict[int, tuple[int, Array]] = {}
        self._rates = {e: np.zeros(1) for e in self._on_states}
        self._zeros = {
            e: np.zeros(int(np.prod(self._events.shapes[e]))) for e in self._on_states
        }  # what a function was when it was last taken for 0
        self._sides: dict[int, Array] = {}
        self._acts: list[Which] = []
        self._times: Counter[Which] = Counter()
        for w in self._watched:
            if w.side:
                self._switching.modes[w.side][...] = 1.0
                self._switching.modes[w.until][...] = NEVER
                self._switching.modes[w.zero][...] = 0.0

    def begin(self, t: float, y: Array, end: float) -> Acted | None:
        """Begins a run: see odesim.stepper.problem.Resets."""
        """Begins a run: see odesim.stepper.problem.Resets."""
        self._forget()
        self._since = t
        roots, rates = [], self._events.rates(t, y)
        self._late = t, y
        for e in self._on_states:
            self._rates[e] = self._rate(e, t, y, rates)
        for e, w in enumerate(self._watched):
            if w.event.at_start:
                g, off = self._function(e, t, y)
                near, way = np.abs(g) <= off, w.event.direction
                there = np.where(near, self._heading(e, t, y, self._events.rate(e, t, y, rates)), g) * way > 0 if way else near
                roots += [(e, i) for i in np.flatnonzero(there).tolist()]
        acted = self.act(roots, t, y, end)
        return acted if roots else None

    def collect(self, t: float, y: Array, found: AbstractSet[Which], part: int) -> list[Which] | None:
        """The events that happen at t: see odesim.stepper.problem.Resets."""
        """The events that happen at t: see odesim.stepper.problem.Resets."""
        roots = {*filter(self._stops, found), *self._timed(part)}
        self._late = t + self._moment(t), y + (self._moment(t) * self._switching.slope(t, y)).astype(y.dtype)
        rates, any_near = self._events.rates(t, y), False
        for e in self._on_states:
            w = self._watched[e]
            if not w.side:
                continue
            g, off = self._function(e, t, y)
            rate = self._rates[e] = self._rate(e, t, y, rates)
            side, until, _ = (self._switching.modes[name].ravel() for name in w.parameters)
            near = np.abs(g) <= off + self._moment(t) * np.abs(rate)
            any_near |= bool(near.any())
            there = near & (np.abs(rate) * (t - self._since) > off) & (rate * w.event.direction >= 0) & ~((until >= t) & (side * rate > 0))
            roots |= {(e, i) for i in np.flatnonzero(there).tolist()}
            for i in [i for k, i in found if k == e]:
                self._zeros[e][i] = max(self._zeros[e][i], abs(g[i]))  # so far from 0 has the search found it
        self._sides = {}
        return sorted(roots) if roots or any_near else None

    def _stops(self, which: Which) -> bool:
        """Whether an event ends a segment."""
        return self._watched[which[0]].stops or self.ends(which)

    def _moment(self, t: float) -> float:
        """The length of a moment at t, also at the start."""
        c = self._conditions
        dtype = self._switching.dtype  # in which the time is too, up to which a side is held
        return max(together(t, c.t0, dtype), float(np.spacing(c.t1 - c.t0)), float(np.spacing(np.abs(np.asarray(t, dtype)))))

    def _function(self, e: int, t: float, y: Array) -> tuple[Array, Array]:
        """An event's function, and how far rounding may move it."""
        g, off = self._events.function(e, t, y)
        return g, off + self._zeros[e] if e in self._zeros else off

    def _rate(self, e: int, t: float, y: Array, rates: Mapping[str, Array]) -> Array:
        """d/dt of an event's function, (components,); 0 for the end of a set."""
        return self._events.rate(e, t, y, rates) if self._watched[e].side else np.zeros(1)

    def _heading(self, e: int, t: float, y: Array, rate: Array) -> Array:
        """The sign with which a function leaves 0, (components,): that of its rate, or of its rate a little later where that is 0."""
        if rate.all():
            return np.sign(rate)
        ahead = AHEAD * (self._conditions.t1 - self._conditions.t0)
        then = t + ahead, (y + ahead * self._switching.slope(t, y)).astype(y.dtype)
        return np.sign(np.where(rate == 0, self._events.rate(e, *then, self._events.rates(*then)), rate))

    def _rests(self, e: int, t: float, y: Array, rate: Array) -> Array:
        """Which components of a function stay 0 from here on, whatever their rate, as Max(x, 0) does: at the edge its slope is a half."""
        ahead = AHEAD * (self._conditions.t1 - self._conditions.t0)
        then = t + ahead, (y + ahead * self._switching.slope(t, y)).astype(y.dtype)
        g, off = self._events.function(e, *then)
        rests: Array = (np.abs(g) <= off) & (np.abs(rate) * ahead > 4 * off)
        return rests

    def act(self, roots: Sequence[Which], t: float, y: Array, end: float) -> Acted:
        """Applies the events that happen at t: see odesim.stepper.problem.Resets."""
        """Applies the events that happen at t: see odesim.stepper.problem.Resets."""
        self._acts, self._times = [], Counter()
        # how their times move with the parameters, before one of them sets what the function of another reads
        slopes = {root: self._events.time_slopes(root, t, y) if self._events.event(root).resets else {} for root in roots}
        for root in roots:
            y, why = self._chain(root, slopes[root], t, y, end)
            if why is not None:
                return Acted(y, tuple(self._acts), *why)
        self._settle(t, y)
        for which in filter(lambda which: self._events.event(which).resets, self._times):
            last, times = self._last.get(which, (-np.inf, 0))
            known = self._watched[which[0]].times is not None  # as many as there are: they cannot pile up
            times = times + 1 if t - last <= self._shortest(which, t, y) and not known else 1
            self._last[which] = t, times
            if times == FEW:
                return Acted(y, tuple(self._acts), Status.SLIDING, self.piles_up(t, which))
        return Acted(y, tuple(self._acts))

    def _shortest(self, which: Which, t: float, y: Array) -> float:
        """The time after which an event may happen again: until then its function moves by no more than rounding."""
        e, i = which
        least = max(length_of(MOMENT, t, self._conditions.t0), FEW * self._moment(t))
        if e not in self._rates or self._rates[e][i] == 0:
            return least
        return max(least, FEW * float(self._roundings(y, self._events.function(e, t, y)[1])[i] / np.abs(self._rates[e][i])))

    def _roundings(self, y: Array, off: Array) -> Array:
        """By how much a few roundings of the last bit move functions, whose states may be off by as much as moves these by off."""
        return FEWEST * float(np.finfo(y.dtype).eps) / self._events.rounded(y.dtype) * off

    def _held(self, e: int, t: float, y: Array, off: Array, rate: Array) -> Array:
        """How long a function that is 0 but for rounding stays so, (components,): a moment, or longer where rounding outweighs its rate.

        A small difference of large states, as x + y - 1 with x at 1e-6, passes 0 wherever a step looks before it has come out of that.
        """
        moment, longest = self._moment(t), SLOW * (self._conditions.t1 - self._conditions.t0)
        least = self._roundings(y, off)
        held = np.clip(np.divide(least, np.abs(rate), out=np.zeros_like(off), where=rate != 0), moment, max(moment, longest))
        if held.max() > moment:  # where the rate grows, as of a ball that is thrown up a little, rounding lasts less long
            ahead = float(held.max())
            then = t + ahead, (y + ahead * self._switching.slope(t, y)).astype(y.dtype)
            later = np.abs(self._events.rate(e, *then, self._events.rates(*then)))
            held = np.clip(np.divide(least, later, out=held.copy(), where=later > np.abs(rate)), moment, held)
        return held

    def piles_up(self, t: float, which: Which) -> str:
        """The sentence that an event happens ever faster."""
        return (
            f"the event {self._events.name(which)} happens ever faster, again and again, at t = {t:.9g} (its times pile up there); "
            "end the span before it, or let a terminal event end the run"
        )

    def ends(self, which: Which) -> bool:
        """Whether an event ends the run."""
        return bool(self._events.event(which).terminal)

    def _chain(
        self, root: Which, slopes: dict[str, Array] | None, t: float, y: Array, end: float
    ) -> tuple[Array, tuple[Status, str] | None]:
        """Applies an event's resets and the events they set off; returns the state, and why the run must stop, or None.

        slopes: of the event's time by the parameters, as of StateSetter.time_slopes.
        """
        if slopes is None:
            what = f"the event {self._events.name(root)} only touches 0 at t = {t:.9g}, where there are no sensitivities"
            return y, (Status.NON_FINITE, f"{what}; integrate without them, or end the span before it")
        y = self._events.moved(y, t, slopes, 1.0)
        wave = deque([root])
        while wave:
            which = wave.popleft()
            self._times[which] += 1
            if self._times[which] > REPEATS:
                what = f"the event {self._events.name(which)} sets itself off by its resets at t = {t:.9g}"
                return y, (Status.SLIDING, f"{what}, more than {REPEATS} times; end the span before it, or let a terminal event end it")
            self._acts.append(which)
            if not self._events.event(which).resets:
                continue
            before = {e: self._side(e, t, y) for e in self._moves[which[0]]}
            y, obstacle = self._events.set_states(which, t, y, slopes)
            if obstacle:
                return y, obstacle
            self._late = self._late[0], self._events.set_states(which, *self._late, {})[0]
            for e, side in before.items():
                del self._sides[e]
                passed = passes(side, self._side(e, t, y), self._watched[e].event.direction)
                wave += [(e, i) for i in np.flatnonzero(passed).tolist() if (e, i) != which]
        if not self._events.event(root).resets:
            return y, None
        y, why = self._switching.begin(t, y, end)
        return (y, (Status.SLIDING, why)) if why else (self._events.moved(y, t, slopes, -1.0), None)

    def _side(self, e: int, t: float, y: Array) -> Array:
        """The sign of an event's function, and 0 where it is 0 but for rounding: (components,)."""
        if e not in self._sides:
            g, off = self._uncertain(e, t, y)
            self._sides[e] = np.sign(g) if isinstance(self._watched[e].event, Guard) else np.where(np.abs(g) <= off, 0.0, np.sign(g))
        return self._sides[e]

    def _uncertain(self, e: int, t: float, y: Array) -> tuple[Array, Array]:
        """An event's function, and how far rounding may move it, that of the time included."""
        g, off = self._function(e, t, y)
        return g, off + np.nan_to_num(np.abs(self._events.value(e, *self._late) - g))

    def _timed(self, part: int) -> set[Which]:
        """The events on the time alone at the end of this part of the span; none within one (-1)."""
        happening = set()
        for e, w in enumerate(self._watched):
            if w.times is not None and part >= 0:
                there = passes(self._between(e, part), self._between(e, part + 1), w.event.direction)
                happening |= {(e, i) for i in np.flatnonzero(there).tolist()}
        return happening

    def _between(self, e: int, k: int) -> Array:
        """The function of an event on the time alone in part k of the span (components,), computed for many parts at once."""
        first, rows = self._ahead.get(e, (0, np.empty((0, 0))))
        if not first <= k < first + len(rows):
            c, w = self._conditions, self._watched[e]
            most = max(2, min(BLOCK, ENTRIES // max(1, int(np.prod(self._events.shapes[e])))))
            at = self._middles[k : k + most]
            rows = values(w.event.expr, w.axes, c.sizes, c.shared, {str(time): at}).reshape(len(at), -1)
            first, _ = self._ahead[e] = k, rows
        return rows[k - first]

    def _settle(self, t: float, y: Array) -> None:
        """Holds functions that are 0 but for rounding on the side of 0 to which the run takes them.

        One that is on the other side by so much that the run does not lead from there in a moment counts from where it is.

        Where an event's resets stop its function at 0 and the run takes it on as before, it stays on the side from which it came: it
        happens again.
        """
        self._since, modes, rates = t, self._switching.modes, self._events.rates(t, y)
        for e in self._on_states:
            w, before = self._watched[e], self._rates[e]
            if not w.side:
                continue
            g, off = self._uncertain(e, t, y)
            rate = self._events.rate(e, t, y, rates)
            near = np.abs(g) <= off + self._moment(t) * np.abs(rate)
            side, until, zero = (modes[name].ravel() for name in w.parameters)
            zero[...], self._zeros[e] = 0.0, np.where(near, np.abs(g), 0.0)
            until[...] = NEVER
            if near.any():
                still = np.abs(rate) <= self._events.rounded(y.dtype) * np.abs(before)
                way = self._heading(e, t, y, np.where(still, 0.0, rate))
                way[self._rests(e, t, y, rate)] = 0.0
                acted = np.isin(np.arange(len(g)), [i for k, i in self._acts if k == e]) & bool(w.event.resets)
                side[...] = TINY * np.where(still & acted & (way * before > 0), -way, way)
                zero[...] = np.where(near & (g * side < 0) & (np.abs(g) > self._moment(t) * np.abs(rate)), g, 0.0)
                until[...] = np.where(near, just_after(t + self._held(e, t, y, off, rate), until.dtype), NEVER)
        self._switching.refresh([name for w in self._watched for name in w.parameters])


def passes(a: Array, b: Array, direction: int) -> Array:
    """Whether functions that jump from a to b pass 0, or come to it, in their direction."""
    up, down = (a < 0) & (b >= 0), (a > 0) & (b <= 0)
    return up if direction > 0 else down if direction < 0 else up | down


def just_after(t: Array, dtype: Any) -> Array:
    """The least numbers of this type that are t or more."""
    near = np.asarray(t).astype(dtype)
    return np.where(near >= t, near, np.nextafter(near, np.array(np.inf, dtype)))


class StateSetter:
    """The functions and resets of the events of one run. watched: its events; pairs: {parameter: {state: its derivative}}."""

    def __init__(self, switching: Switching) -> None:
        self._switching, self._conditions, self._layout = switching, switching.conditions, switching.layout
        self.watched, self._system = self._conditions.held.watched, self._conditions.held.original
        self.shapes = [tuple(make_extent(n).value(self._conditions.sizes) for n in w.extents) for w in self.watched]
        self.pairs = switching.pairs
        self._check()

    def _check(self) -> None:
        """Raises SolveError where there are no sensitivities."""
        for w in self.watched:
            if self.pairs and w.event.resets and jumps(w.event.expr) and reads_any(w.event.expr, (*self._system.states, *self.pairs)):
                raise SolveError(
                    f"{self._system.name}: there are no sensitivities through the resets of event {w.event.name!r}, whose function "
                    f"{w.event.expr} may jump: write one that passes 0 smoothly, such as sin(pi*t/T)"
                )

    def event(self, which: Which) -> Event:
        """The event that a component belongs to."""
        return self.watched[which[0]].event

    def name(self, which: Which) -> str:
        """`bounce[2]`: the name of an event with the component."""
        e, i = which
        shape = self.shapes[e]
        return self.event(which).name + (f"[{', '.join(map(str, np.unravel_index(i, shape)))}]" if shape else "")

    def rounded(self, dtype: Any) -> float:
        """The part of itself by which rounding may have moved a state."""
        return max(ROUNDED, ROUNDINGS * float(np.finfo(dtype).eps))

    def value(self, e: int, t: float, y: Array) -> Array:
        """The function of an event, (components,)."""
        w = self.watched[e]
        return self._value(w.event.expr, w.axes, t, y).ravel()

    def function(self, e: int, t: float, y: Array) -> tuple[Array, Array]:
        """The function of an event and how far rounding of the time and the state may move it, each (components,)."""
        g = self.value(e, t, y)
        return g, self._switching.rounding(partial(self.value, e), t, y, g, self.rounded(y.dtype))

    def rates(self, t: float, y: Array) -> dict[str, Array]:
        """What rate() reads: the derivatives of all states."""
        rates = self._switching.rate(t, y)
        return {f"rate_{name}": rates[name] for name in self._switching.states}

    def rate(self, e: int, t: float, y: Array, rates: Mapping[str, Array]) -> Array:
        """d/dt of an event's function along the run, (components,)."""
        w, known = self.watched[e], self._conditions.expressions
        if ("event", w.event.name) not in known:
            known["event", w.event.name] = event_rate(self._system, w, {name: f"rate_{name}" for name in self._switching.states})
        return np.nan_to_num(self._value(known["event", w.event.name], w.axes, t, y, **rates).ravel())

    def set_states(self, which: Which, t: float, y: Array, slopes: Mapping[str, Array]) -> tuple[Array, tuple[Status, str] | None]:
        """The state (n,) after the resets of one event; and why the run cannot go on from there, or None."""
        e, _ = which
        w = self.watched[e]
        after = y.copy()
        parts, taken = self._layout.split(after), dict[str, Any]()
        for key, expr in w.event.resets.items():
            name, free = base_name(key), free_of(key, w.indices, self._system.axes)
            axes = {j: self._system.axes[j] for j in free}
            place = self._place(key, free, which)
            flat = np.ravel_multi_index(place, parts[name].shape).ravel() if place else np.zeros(1, np.int64)
            if np.intersect1d(flat, taken.setdefault(name, np.empty(0, np.int64))).size or len(np.unique(flat)) < flat.size:
                raise SolveError(f"{self._system.name}: the event {self.name(which)} sets an element of {name} twice")
            taken[name] = np.append(taken[name], flat)
            new = self._component(self._value(expr, {**w.axes, **axes}, t, y), which)
            parts[name][place] = new
            if why := self._obstacle(which, key, new, t):
                return y, why
            for p, moved in slopes.items():
                along = self._slope((e, key, p), expr, p, moved=True)
                there = self._value(along[0], {**w.axes, **axes, **along[1]}, t, y, **{MOVED: moved})
                parts[self.pairs[p][name]][place] = self._component(there, which)
        return after, None

    def _obstacle(self, which: Which, key: Any, new: Array, t: float) -> tuple[Status, str] | None:
        """Why a run cannot go on with these new values of a state, or None."""
        guard = next((w.event for w in self.watched if isinstance(w.event, Guard) and w.event.state == base_name(key)), None)
        lost = ~np.isfinite(new)
        out = guard.sign * new < -self._conditions.shared.get(SLACK, 0.0) if guard else np.zeros_like(lost)
        if not (lost.any() or out.any()):
            return None
        what = f"the event {self.name(which)} sets {key} to {float(np.extract(lost if lost.any() else out, new)[0]):.6g}"
        if lost.any():
            return Status.NON_FINITE, f"{what} at t = {t:.9g}; change its reset, or end the span before it"
        return Status.LEFT_DOMAIN, f"{what}, which leaves {guard.words if guard else ''} that its symbol assumes, at t = {t:.9g}"

    def _place(self, key: Any, free: tuple[Symbol, ...], which: Which) -> tuple[Any, ...]:
        """The places in a state's array that a reset sets: one index array for each axis, of the shape of the free indices."""
        e, i = which
        c, w = self._conditions, self.watched[e]
        at: dict[Any, Any] = dict(zip(w.indices, map(int, np.unravel_index(i, self.shapes[e])), strict=True)) if w.indices else {}
        counts = [make_extent(self._system.axes[j]).value(c.sizes) for j in free]
        at |= dict(zip(free, np.ix_(*map(np.arange, counts)) if counts else (), strict=True))

        def number(index: Any) -> Any:
            if isinstance(index, Indexed):
                return np.asarray(c.shared[base_name(index)])[tuple(map(number, index.indices))]
            return at[index] if index in at else int(index)

        return tuple(np.broadcast_arrays(*(number(j) for j in key_indices(key))))

    def _component(self, every: Array, which: Which) -> Array:
        """The values of one component of an event, of values for all of them."""
        e, i = which
        rank = len(self.shapes[e])
        rows: Array = every.reshape(-1, *every.shape[rank:]) if rank else every[None]
        return rows[i if rank else 0]

    def time_slopes(self, which: Which, t: float, y: Array) -> dict[str, Array] | None:
        """{parameter: derivative of the event's time}, 0 at the start of a run; None where it has none."""
        (e, i), w = which, self.watched[which[0]]
        if not self.pairs:
            return {}
        # a function that has come to 0 to stay, as Max(x, 0), has no slope there: that of a moment before counts
        back = together(t, self._conditions.t0, self._switching.dtype)
        before = t - back, (y - back * self._switching.slope(t, y)).astype(y.dtype)
        slopes: dict[str, Array] = {}
        for at in ((t, y), before):
            for p in self.pairs:
                expr, along = self._slope((e, p), w.event.expr, p, moved=False)
                slopes[p] = -self._component(self._value(expr, {**w.axes, **along}, *at), which)
            if t == self._conditions.t0:
                return {p: np.zeros_like(s) for p, s in slopes.items()}
            rate = self.rate(e, *at, self.rates(*at))[i]
            if rate != 0:
                return {p: s / rate for p, s in slopes.items()}
            if any(np.any(s) for s in slopes.values()):
                return None
        return slopes

    def moved(self, y: Array, t: float, slopes: Mapping[str, Array], sign: float) -> Array:
        """The state with sensitivities along the moving time of an event (sign 1), or back at a fixed time (-1)."""
        if not slopes:
            return y
        rates, y = self._switching.rate(t, y), y.copy()
        parts = self._layout.split(y)
        for p, moved in slopes.items():
            for v, twin in self.pairs[p].items():
                parts[twin] += (sign * np.multiply.outer(rates[v], moved)).astype(y.dtype)
        return y

    def _slope(self, name: Any, expr: Any, p: str, *, moved: bool) -> tuple[Any, dict[Symbol, Any]]:
        known = self._conditions.expressions
        if ("reset", name) not in known:
            known["reset", name] = slope(self._system, expr, p, moved=moved)
        found: tuple[Any, dict[Symbol, Any]] = known["reset", name]
        return found

    def _value(self, expr: Any, axes: Mapping[Symbol, Any], t: float, y: Array, **more: Any) -> Array:
        return self._switching.value(expr, axes, t, y, **more)
