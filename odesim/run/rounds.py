"""Rounds: the members of lanes that stop at events, each at its own, and go on from there together.

In a round every member that still runs is integrated in the lanes to where it stops next: at an event, or at the end of a part of its span.
Then the events act, for arrays of members (odesim.run.resets), and the next round begins. The rules are those of
odesim.run.integrate.Segments, whose segments are the rounds of one run: a member has the bits of that run.
"""

from collections.abc import Callable, Mapping

import numpy as np

from odesim.base.arrays import Array
from odesim.ensembles.request import Chunk, EnsembleRequest
from odesim.run.conditions import Parts, Turns
from odesim.run.event_functions import Point
from odesim.run.integrate import MOMENT, TOGETHER, length_of, together
from odesim.run.lane_dense import start_sums
from odesim.run.lane_plan import AT, KernelPlan
from odesim.run.resets import Effects, Resetting
from odesim.stepper.codes import Code

ROOM = 8
"""Occurrences of each event within one round that there is room for at first; members that have more do the round again."""


class LaneFlow:
    """The members of one call of lanes (odesim.run.event_functions.Flow). slopes: their derivatives, as a Flow has them."""

    def __init__(self, request: EnsembleRequest, parts: Parts, params: Mapping[str, Array], count: int) -> None:
        held = parts.conditions.held
        self.conditions, self.layout, self.dtype, self.parts = parts.conditions, request.layout, request.dtype, parts
        self.own = params
        self.sides = {w: np.zeros((count, int(np.prod(parts.conditions.shape(e))))) for e in held.watched for w in e.parameters}
        pairs = held.system.sensitivities
        derivatives = {twin for each in pairs.values() for twin in each.values()}
        self.states = [name for name in self.layout.names if name not in derivatives]
        self.pairs = {p: {v: d for v, d in each.items() if v in self.layout.names} for p, each in pairs.items()}
        self.slopes_into: Callable[[Array, Array, Array, Array], None]

    def slopes(self, members: Array, t: Array, y: Array) -> Array:
        """The derivatives (k, n) of members (k,) at t (k,) and y (k, n)."""
        out = np.empty(y.shape)
        if len(members):
            self.slopes_into(members, t, y, out)
        return out.astype(y.dtype, copy=False)

    def begin_again(self, at: Point) -> tuple[Array, dict[int, str]]:
        """Nothing: conditions of members in lanes are on time alone, and held for the part that is at hand."""
        return at.y, {}

    def refresh(self, names: list[str]) -> None:
        """Nothing: the kernel reads what is held."""


class Rounds:
    """The rounds of one call of an engine.

    march(table, members): integrates members (k,) in the lanes, each over its part; table: the addresses that it is told. arrays: states
    Y0 (N, n), where members start, and then where they are; LAST (N, n), where the lanes leave them; SUMS of the invariants of a stiff
    method; STOP. turns, chunk: what the lanes write.
    """

    def __init__(
        self,
        plan: KernelPlan,
        request: EnsembleRequest,
        flow: LaneFlow,
        turns: Turns,
        arrays: Mapping[str, Array],
        chunk: Chunk,
        march: Callable[[Array, Array], None],
    ) -> None:
        self.plan, self.request, self.flow, self.turns, self.chunk, self.march = plan, request, flow, turns, chunk, march
        self.states, self.last, self.sums, self.stop = arrays["Y0"], arrays["LAST"], arrays["SUMS"], arrays["STOP"]
        count = len(self.states)
        self.events = Resetting(flow, count)
        self.part, self.t = np.zeros(count, np.int64), np.full(count, request.t0)
        self.reset = np.zeros(count, bool)  # whether an event set states at the start of this round

    def run(self, table: Array, first: int, end: int) -> None:
        """Integrates members first to end - 1."""
        members = np.arange(first, end)
        found = Found(table, first, end, self.plan.watch.names if self.plan.watch is not None else 0, self.events)
        self.flow.parts.begin(members, self.part[members])
        at = self._point(members, self.t[members], self.states[members])
        effects = self.events.begin(at)
        known = np.ones(len(members), bool)
        members = members[self._after(effects, at, np.zeros(effects.times.shape, bool), known, np.full(len(members), int(Code.OK)))]
        begun = False
        while len(members):
            if self.stop[0]:
                self.turns.codes[members] = Code.RUNNING
                return
            members = self._round(found, members, begun)
            begun = True

    def _point(self, members: Array, t: Array, y: Array) -> Point:
        return Point(self.flow, members, t, y.astype(self.flow.dtype, copy=False))

    def _moment(self, t: Array) -> Array:
        return np.asarray(together(t, self.request.t0, self.flow.dtype))

    def _ends(self, members: Array) -> Array:
        """The ends of the parts at hand."""
        return self.flow.parts.edges[self.flow.parts.first[members] + self.part[members] + 1]

    def _round(self, found: "Found", members: Array, begun: bool) -> Array:
        """Integrates members to where they stop next, and lets the events act there; returns those that go on."""
        codes, start = self.turns.codes, self.t[members]
        near = self._near(members, start) & begun  # a straight line leads so far
        marching = members[~near]
        codes[members[near]], found.counts[members[near] - found.first] = Code.OK, 0
        if len(marching):
            self._march(found, marching)
            self.t[marching], self.states[marching] = self.chunk.t_end[marching], self.last[marching]
        found.record(self.chunk, members)
        codes[members[(codes[members] == Code.EVENT) & found.outside(members)]] = Code.LEFT_DOMAIN
        brief = self.t[members] - start <= length_of(MOMENT, self.t[members], self.request.t0)
        codes[members[(codes[members] == Code.STEP_TOO_SMALL) & brief & self.reset[members]]] = Code.SLIDING
        members = members[np.isin(codes[members], (Code.OK, Code.EVENT))]
        if len(members):
            self._hop(members[self._near(members, self.t[members])])
            return self._act(found, members)
        return members

    def _near(self, members: Array, t: Array) -> Array:
        """Whether no more than a moment is left of the part at hand."""
        left = self._ends(members) - t
        return np.asarray((left > 0) & (left <= self._moment(t)))

    def _march(self, found: "Found", members: Array) -> None:
        """Integrates members in the lanes; once more with more room where one has had more events than there is room for."""
        turns = self.turns
        turns.start[members], turns.end[members] = self.t[members], self._ends(members)
        kept = [values[members] for values in (turns.steps, turns.rejected, turns.places)]
        while True:
            turns.codes[members] = Code.RUNNING
            found.counts[members - found.first] = 0
            self.march(found.table(), members)
            over = found.counts[members - found.first].max(axis=1, initial=0) > found.room
            if not over.any():
                return
            members, kept = np.ascontiguousarray(members[over]), [values[over] for values in kept]
            found.grow()
            for values, before in zip((turns.steps, turns.rejected, turns.places), kept, strict=True):
                values[members] = before

    def _hop(self, members: Array) -> None:
        """Takes members to the ends of their parts, which are so near that a straight line leads there."""
        if not len(members):
            return
        at = self._point(members, self.t[members], self.states[members])
        end = self._ends(members)
        self.states[members], self.t[members] = at.later(end - at.t).y, end
        self._save(members, self.turns.places[members], np.searchsorted(self.request.times, end, side="right"))

    def _save(self, members: Array, first: Array, end: Array) -> None:
        """Writes the states of members into their saved times first (k,) to end - 1."""
        if not self.plan.saves:
            return
        for more in range(int((end - first).max(initial=0))):
            rows = first + more < end
            self.chunk.y[members[rows], first[rows] + more] = self.states[members[rows]]
        self.turns.places[members] = np.maximum(end, self.turns.places[members])

    def _act(self, found: "Found", members: Array) -> Array:
        """Lets the events act at which members have stopped; returns the members that go on."""
        turns, chunk, request, t = self.turns, self.chunk, self.request, self.t[members]
        done, final = t >= self._ends(members), t >= request.t1
        recorded = found.recent(members, t - self._moment(t))
        at = self._point(members, t, self.states[members])
        roots, some = self.events.collect(at, recorded, np.where(done, self.part[members], -1))
        self.part[members] += done & ~final
        stopped = ~final & (chunk.steps[members] + chunk.rejected[members] >= request.options.max_steps)
        before, on = turns.codes[members], np.flatnonzero(done & ~final & ~stopped)
        turns.codes[members[stopped]] = Code.MAX_STEPS
        if len(on) and self.flow.parts.modes:
            self.flow.parts.begin(members[on], self.part[members[on]])
        self.reset[members] = False
        rows = np.flatnonzero(some & ~stopped)
        going = ~stopped
        if len(rows):
            effects = self.events.act(at.of(rows), roots[rows])
            going[rows] = self._after(effects, at.of(rows), recorded[rows], done[rows], before[rows])
        over = going & final
        turns.codes[members[over]] = Code.OK
        chunk.t_end[members], self.last[members] = t, self.states[members]
        if not self.plan.saves:
            chunk.y[members[final], 0] = self.states[members[final]]
        return members[going & ~final]

    def _after(self, effects: Effects, at: Point, recorded: Array, known: Array, codes: Array) -> Array:
        """Goes on from what events have set, and ends members (k,) that they end; returns which go on.

        recorded (k, columns): events that the segments have recorded. known (k,): whether the time was known beforehand. codes (k,): how
        the segments ended.
        """
        members, events, going = at.members, self.events, np.ones(len(at), bool)
        for rows, columns in effects.acts:
            new = ~recorded[rows, columns]
            recorded[rows, columns] = False  # the segment has recorded it, once
            e = events.event_of[columns[new]]
            record(self.chunk, members[rows[new]], e, at.t[rows[new]], columns[new] - events.first[e])
        acted = effects.times > 0
        self.reset[members] = moved = acted[:, events.sets].any(axis=1)
        if moved.any():
            mine, places = members[moved], self.turns.places[members[moved]]
            self.states[mine] = effects.y[moved]
            # a known time is off by rounding only
            back = np.where(known, TOGETHER[1] * np.spacing(np.abs(at.t)), self._moment(at.t))[moved]
            self._save(mine, np.searchsorted(self.request.times, at.t[moved] - back), places)
            if self.sums.shape[1]:
                own = {name: values[mine] for name, values in self.flow.own.items()}
                self.sums[mine] = start_sums(self.plan, self.states[mine], self.flow.conditions.shared, own)
        for row, (status, _) in effects.stopped.items():
            going[row], self.turns.codes[members[row]] = False, status.code
        ends = acted & events.ends
        ended = ends.any(axis=1) & going
        outside = ~(ends & ~events.guards).any(axis=1) & (moved | (codes != Code.EVENT))
        self.turns.codes[members[ended]] = np.where(outside, Code.LEFT_DOMAIN, Code.EVENT)[ended]
        self.chunk.t_end[members], self.last[members] = at.t, self.states[members]
        return going & ~ended


def record(chunk: Chunk, members: Array, events: Array, t: Array, components: Array) -> None:
    """Writes one more occurrence of an event (k,) of each of these members (k,), which differ."""
    if not chunk.event_count.shape[1] or not len(members):
        return
    place = chunk.event_count[members, events]
    room = place < chunk.event_t.shape[2]
    at = members[room], events[room], place[room]
    chunk.event_t[at], chunk.event_index[at] = t[room], components[room]
    chunk.event_count[members, events] = place + 1


class Found:
    """The events that the lanes find in one round of members first to end - 1."""

    def __init__(self, table: Array, first: int, end: int, names: int, events: Resetting) -> None:
        self._table, self.first, self._names, self._events = table.copy(), first, names, events
        self.counts, self.room = np.zeros((end - first, names), np.int64), ROOM
        self._times, self._places = np.zeros((*self.counts.shape, ROOM)), np.zeros((*self.counts.shape, ROOM), np.int64)

    def grow(self) -> None:
        """Makes room for as many as members have had."""
        more = (0, 0), (0, 0), (0, int(self.counts.max()) - self.room)
        self._times, self._places = np.pad(self._times, more), np.pad(self._places, more)
        self.room = self._times.shape[2]

    def table(self) -> Array:
        """The addresses that the lanes are told: members have the numbers that they have in the whole call."""
        back = 8 * self.first * self._names
        self._table[AT["KEPT"]] = self.room
        self._table[AT["FOUND_T"]] = self._times.ctypes.data - back * self.room
        self._table[AT["FOUND_I"]] = self._places.ctypes.data - back * self.room
        self._table[AT["FOUND_N"]] = self.counts.ctypes.data - back
        return self._table

    def record(self, chunk: Chunk, members: Array) -> None:
        """Writes the events of members among those of the whole run."""
        rows = members - self.first
        for e in range(self._names):
            for k in range(int(self.counts[rows, e].max(initial=0))):
                some = rows[self.counts[rows, e] > k]
                every = np.full(len(some), e)
                record(chunk, some + self.first, every, self._times[some, e, k], self._places[some, e, k])

    def outside(self, members: Array) -> Array:
        """Which members (k,) have left a set that a state assumes."""
        guards = np.unique(self._events.event_of[self._events.guards])
        return (self.counts[np.ix_(members - self.first, guards)] > 0).any(axis=1)

    def recent(self, members: Array, since: Array) -> Array:
        """The events (k, columns) that members have had since a time (k,)."""
        rows, recent = members - self.first, np.zeros((len(members), len(self._events.event_of)), bool)
        there = np.arange(self.room) < self.counts[rows][..., None]
        at = np.nonzero(there & (self._times[rows] >= since[:, None, None]))
        recent[at[0], self._events.first[at[1]] + self._places[rows[at[0]], at[1], at[2]]] = True
        return recent
