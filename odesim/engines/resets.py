"""Events that a run stops at: which happen at a time, what they set, and what that sets off."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.engines.conditions import BLOCK, ENTRIES, NEXT, values
from odesim.engines.saltation import StateSetter
from odesim.engines.switching import Switching
from odesim.solve.codes import Status
from odesim.solve.resets import Acted, Which
from odesim.solve.switched import MOMENT, TOGETHER
from odesim.symbolic.expr import time
from odesim.symbolic.guards import Guard

FEW = 4
"""So many times of one event pile up, if they lie within a MOMENT or its function left 0 in between by rounding only."""
REPEATS = 100
"""So many times one event may happen at one time, set off by resets of others."""
ROUNDINGS = 4
NEVER, TINY = -1e38, 1e-30
"""A time before every run, and what stands for 0 with a sign."""


class Resetting:
    """The events that one run stops at (odesim.solve.resets.Resets)."""

    def __init__(self, switching: Switching) -> None:
        self._switching, self._conditions = switching, switching.conditions
        self._events = StateSetter(switching)
        self._watched = self._events.watched
        self.begin()

    def begin(self) -> None:
        """Forgets an earlier run."""
        self._last: dict[Which, float] = {}
        self._past: dict[Which, deque[float]] = {}
        self._still: dict[Which, int] = {}
        self._ahead: dict[int, tuple[int, Array]] = {}
        self._acts: list[Which] = []
        edges = np.concatenate([[self._conditions.t0], self._switching.stops, [self._conditions.t1]])
        after = min(edges[-1] + (self._conditions.t1 - self._conditions.t0) * NEXT, self._switching.next_time)
        beyond = 0.5 * edges[-1] + 0.5 * after  # an event at the end of the span happens, none after it
        self._middles = np.append(0.5 * edges[:-1] + 0.5 * edges[1:], beyond)
        for w in self._watched:
            if w.side:
                self._switching.modes[w.side][...] = 1.0
                self._switching.modes[w.until][...] = NEVER

    def act(self, t: float, y: Array, found: Sequence[Which], part: int, end: float) -> Acted | None:
        """Applies the events that happen at t: see odesim.solve.resets.Resets."""
        roots = sorted(
            {which for which in found if self._events.event(which).resets or self._events.event(which).terminal} | self._timed(part)
        )
        if not roots:
            return None
        roots = sorted({*roots, *self._together(t, y, set(found) | set(roots))})
        done: dict[Which, float] = {}
        self._acts = []
        for root in roots:
            if root not in done:
                y, why = self._chain(root, roots, done, t, y, end)
                if why is not None:
                    return Acted(y, tuple(self._acts), *why)
        for which, noise in done.items():
            excursion = self._settle(which, noise, t, y) * (t - self._last.get(which, -math.inf))
            self._last[which] = t
            self._still[which] = self._still.get(which, 0) + 1 if excursion <= noise else 0
            times = self._past.setdefault(which, deque(maxlen=FEW))
            times.append(t)
            brief = len(times) == FEW and t - times[0] <= MOMENT * max(abs(t), t - self._conditions.t0)
            if self._events.event(which).resets and (brief or self._still[which] >= FEW):
                return Acted(y, tuple(self._acts), Status.SLIDING, self.piles_up(t, which))
        self._switching.refresh([name for w in self._watched for name in w.parameters])
        return Acted(y, tuple(self._acts))

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
        self, root: Which, roots: Sequence[Which], done: dict[Which, float], t: float, y: Array, end: float
    ) -> tuple[Array, tuple[Status, str] | None]:
        """Applies an event's resets and the events they trigger; returns the state, and why the run must stop, or None.

        done: {event: the size below which its function counts as 0}; the events that happen are added to it.
        """
        slopes = self._events.time_slopes(root, t, y) if self._events.event(root).resets else {}
        if slopes is None:
            what = f"the event {self._events.name(root)} only touches 0 at t = {t:.9g}, where there are no sensitivities"
            return y, (Status.NON_FINITE, f"{what}; integrate without them, or end the span before it")
        y = self._events.moved(y, t, slopes, 1.0)
        wave = [root]
        while wave:
            which = wave.pop(0)
            if which in done and self._acts.count(which) >= REPEATS:
                what = f"the event {self._events.name(which)} sets itself off by its resets at t = {t:.9g}"
                return y, (Status.SLIDING, f"{what}, more than {REPEATS} times; end the span before it, or let a terminal event end it")
            done[which] = self._noise(which, t, y, which == root and which not in done)
            self._acts.append(which)
            if not self._events.event(which).resets:
                continue
            before = self._events.functions(t, y)
            y, obstacle = self._events.set_states(which, t, y, slopes)
            if obstacle:
                return y, obstacle
            passed = self._passed(before, self._events.functions(t, y), done)
            wave += [other for other in passed if other != which and (other in done or other not in roots)]
        y, why = self._switching.begin(t, y, end)
        return (y, (Status.SLIDING, why)) if why else (self._events.moved(y, t, slopes, -1.0), None)

    def _passed(self, before: Sequence[Array], after: Sequence[Array], done: Mapping[Which, float]) -> list[Which]:
        """The events whose functions a reset took across 0; those that were 0 here only once they had left it."""
        found = []
        for e, (w, a, b) in enumerate(zip(self._watched, before, after, strict=True)):
            for i in np.flatnonzero(passes(a, b, w.event.direction)).tolist():
                if abs(a[i]) > done.get((e, i), 0.0):
                    found.append((e, i))
        return found

    def _timed(self, part: int) -> set[Which]:
        """The events on the time alone at the end of this part of the span; none within one (-1)."""
        found = set()
        for e, w in enumerate(self._watched):
            if w.times is not None and part >= 0:
                there = passes(self._side(e, part), self._side(e, part + 1), w.event.direction)
                found |= {(e, i) for i in np.flatnonzero(there).tolist()}
        return found

    def _side(self, e: int, k: int) -> Array:
        """The function of an event on the time alone in part k of the span (components,), computed for many parts at once."""
        first, rows = self._ahead.get(e, (0, np.empty((0, 0))))
        if not first <= k < first + len(rows):
            c, w = self._conditions, self._watched[e]
            most = max(2, min(BLOCK, ENTRIES // max(1, int(np.prod(self._events.shapes[e])))))
            at = self._middles[k : k + most]
            rows = values(w.event.expr, w.axes, c.sizes, c.shared, {str(time): at}).reshape(len(at), -1)
            first, _ = self._ahead[e] = k, rows
        return rows[k - first]

    def _together(self, t: float, y: Array, known: set[Which]) -> set[Which]:
        """Further events whose functions have passed 0 at t, by no more than rounding of the time."""
        found, moment = set(), TOGETHER * max(abs(t), t - self._conditions.t0)
        for e, w in enumerate(self._watched):
            if w.times is not None or isinstance(w.event, Guard):
                continue
            g = self._events.function(w, t, y)
            rate = self._events.rate(w, t, y)
            way = w.event.direction
            there = (np.abs(g) <= moment * np.abs(rate)) & (g * rate >= 0) & (rate * way > 0 if way else rate != 0)
            new = {(e, i) for i in np.flatnonzero(there).tolist()} - known
            found |= {which for which in new if self._last.get(which, -np.inf) < t - moment}
        return found

    def _noise(self, which: Which, t: float, y: Array, is_root: bool) -> float:
        """The size to which rounding may bring an event's function where it is 0."""
        e, i = which
        w = self._watched[e]
        if w.times is not None:
            return 0.0
        shaken = (y * (1 + ROUNDINGS * float(np.finfo(y.dtype).eps) * np.cos(1.0 + 2.4 * np.arange(len(y))))).astype(y.dtype)
        g, other = (self._events.function(w, t, at)[i] for at in (y, shaken))
        return float(np.nan_to_num(abs(other - g) + (ROUNDINGS * abs(g) if is_root else 0.0)))

    def _settle(self, which: Which, noise: float, t: float, y: Array) -> float:
        """Puts a function that is 0 but for rounding on the side of 0 to which the run takes it.

        Returns |its rate|; inf for one that rests, or is not 0.
        """
        e, i = which
        w, modes = self._watched[e], self._switching.modes
        if not w.side or w.times is not None:
            return math.inf
        near = abs(self._events.function(w, t, y)[i]) <= noise
        rate = float(np.nan_to_num(self._events.rate(w, t, y)[i])) if near else math.inf
        modes[w.side].ravel()[i] = TINY * np.sign(rate)
        modes[w.until].ravel()[i] = just_after(t, modes[w.until].dtype) if near else NEVER
        return abs(rate) or math.inf


def passes(a: Array, b: Array, direction: int) -> Array:
    """Whether functions that jump from a to b pass 0, or come to it, in their direction."""
    up, down = (a < 0) & (b >= 0), (a > 0) & (b <= 0)
    return up if direction > 0 else down if direction < 0 else up | down


def just_after(t: float, dtype: Any) -> Any:
    """The least number of this type that is t or more."""
    near = np.array(t).astype(dtype)
    return near if near >= t else np.nextafter(near, np.array(np.inf, dtype))
