"""Rounds: the members of lanes that stop at events, each at its own, and go on from there together.

In a round every member that still runs is integrated in the lanes to where it stops next: at an event, or at the end of a part of its span.
Then the events act, by rules that are compiled (odesim.run.one_reset) where one event sets states, for arrays of members
(odesim.run.resets) elsewhere, and the next round begins. The rules are those of
odesim.run.integrate.Segments, whose segments are the rounds of one run: a member has the bits of that run.
"""

from collections.abc import Callable

import numpy as np

from odesim.base.arrays import Array, put_rows, rows_where
from odesim.ensembles.request import Chunk, EnsembleRequest
from odesim.run.conditions import Turns
from odesim.run.event_functions import Flow, Point
from odesim.run.lane_call import Columns, address_of, call_table
from odesim.run.lane_dense import start_sums
from odesim.run.lane_plan import AT, KernelPlan
from odesim.run.resets import Effects, Resetting
from odesim.stepper.codes import Code
from odesim.stepper.occurrences import MOMENT, TOGETHER, length_of

ROOM = 8
"""Occurrences of each event within one round that there is room for at first; members that have more do the round again."""


class Rounds:
    """The rounds of one call of an engine.

    march(table, members): integrates members (k,) in the lanes, each over its part; table: the addresses that it is told. arrays: states
    Y0 (N, n), where members start, and LAST (N, n), where they are, from which the lanes take them on; SUMS of the invariants of a stiff
    method; STOP. turns, chunk: what the lanes write. chunk.t_end: where members are. resets(table, members): the compiled rules of
    events, where there are any.
    """

    def __init__(
        self,
        plan: KernelPlan,
        request: EnsembleRequest,
        flow: Flow,
        turns: Turns,
        arrays: Columns,
        chunk: Chunk,
        march: Callable[[Array, Array], None],
        resets: Callable[[Array, Array], None] | None = None,
    ) -> None:
        self.plan, self.request, self.flow, self.turns, self.chunk, self.march = plan, request, flow, turns, chunk, march
        self.first, self.states, self.sums, self.stop, self.t = arrays["Y0"], arrays["LAST"], arrays["SUMS"], arrays["STOP"], chunk.t_end
        self.events = Resetting(flow, len(self.states))
        self.part = np.zeros(len(self.states), np.int64)
        self.compiled = resets
        self.reset = np.zeros(len(self.states), bool)  # whether an event set states at the start of this round

    def run(self, table: Array, first: int, end: int) -> None:
        """Integrates members first to end - 1."""
        members = np.arange(first, end)
        store = EventStore(table, first, end, self.plan.watch.names if self.plan.watch is not None else 0, self.events, self.chunk)
        self.t[first:end], self.states[first:end] = self.request.t0, self.first[first:end]
        self.flow.parts.begin(members, self.part[members])
        at = self._point(members)
        effects = self.events.begin(at, self.request.options.max_steps)
        known = np.ones(len(members), bool)
        members = members[self._after(effects, at, np.zeros(effects.times.shape, bool), known, np.full(len(members), int(Code.OK)))]
        near = np.zeros(len(members), bool)
        while len(members):
            if self.stop[0]:
                self.turns.codes[members] = Code.RUNNING
                return
            members, near = self._round(store, members, near)

    def _point(self, members: Array) -> Point:
        return Point(self.flow, members, self.t[members], self.states.take(members, axis=0).astype(self.flow.dtype, copy=False))

    def _ends(self, members: Array) -> Array:
        """The ends of the parts at hand."""
        return self.flow.parts.edges[self.flow.parts.first[members] + self.part[members] + 1]

    def _round(self, store: "EventStore", members: Array, near: Array) -> tuple[Array, Array]:
        """Integrates members to where they stop next, and lets the events act there; returns those that go on.

        near (k,): which are so near the ends of their parts that a straight line leads there.
        """
        codes, begun, ends = self.turns.codes, self.t.take(members), self._ends(members)
        codes[members], store.counts[members - store.first], self.turns.end[members] = Code.OK, 0, ends
        if len(marching := members[~near] if near.any() else members):
            self._march(store, marching)
        if self.compiled is None:
            return self._others(store, members, begun, ends)
        acted = np.zeros(len(members), np.int64)
        self.compiled(store.table(ACTED=acted), members)
        going, ended, others = members[acted == 1], members[acted == 2], acted == 0
        self.reset[going] = True
        self._begin_sums(going)
        if not self.plan.saves:
            self.chunk.y[ended, 0] = self.states[ended]
        near = np.zeros(len(going), bool)
        if not others.any():
            return going, near
        rest, near_rest = self._others(store, members[others], begun[others], ends[others])
        return np.concatenate([going, rest]), np.concatenate([near, near_rest])

    def _begin_sums(self, members: Array) -> None:
        """Computes the sums that a stiff method keeps for members whose states have been set."""
        if self.sums.shape[1] and len(members):
            per_member = {name: values[members] for name, values in self.flow.per_member.items()}
            self.sums[members] = start_sums(self.plan, self.states[members], self.flow.conditions.shared, per_member)

    def _others(self, store: "EventStore", members: Array, begun: Array, ends: Array) -> tuple[Array, Array]:
        """Lets the events act where members have stopped, whatever happens there; returns those that go on, as a round does.

        begun, ends (k,): where their parts began, and where they end.
        """
        codes = self.turns.codes
        at, code = self._point(members), codes.take(members)
        if store.guards:
            code[(code == Code.EVENT) & store.outside(members)] = Code.LEFT_DOMAIN
        if len(small := np.flatnonzero(code == Code.STEP_TOO_SMALL)):
            brief = at.t[small] - begun[small] <= length_of(MOMENT, at.t[small], self.request.t0)
            code[small[brief & self.reset[members[small]]]] = Code.SLIDING
        codes[members] = code
        going = (code == Code.OK) | (code == Code.EVENT)
        near = going & is_near(at, ends)
        if near.any():
            self._hop(at.of(np.flatnonzero(near)), ends[near])
            at = self._point(members)
        recorded = store.record(at)
        rows = rows_where(going)
        return self._act(at.of(rows), recorded[rows], ends[rows]) if going.any() else (members[rows], near[rows])

    def _march(self, store: "EventStore", members: Array) -> None:
        """Integrates members in the lanes; once more with more room where one has had more events than there is room for."""
        turns = self.turns
        arrays = turns.steps, turns.rejected, turns.places, self.t, self.states
        kept = [values.take(members, axis=0) for values in arrays]
        while True:
            turns.codes[members] = Code.RUNNING
            self.march(store.table(), members)
            if store.counts.max(initial=0) <= store.room:
                return
            over = store.counts[members - store.first].max(axis=1) > store.room
            members, kept = np.ascontiguousarray(members[over]), [values[over] for values in kept]
            store.grow()
            store.counts[members - store.first] = 0
            for values, before in zip(arrays, kept, strict=True):
                values[members] = before

    def _hop(self, at: Point, end: Array) -> None:
        """Takes members to the ends of their parts (k,), to which a straight line leads."""
        members = at.members
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

    def _act(self, at: Point, recorded: Array, ends: Array) -> tuple[Array, Array]:
        """Lets the events act where members have stopped; returns the members that go on, and which are near the ends of their parts.

        recorded (k, columns): events that they have had there. ends (k,): of their parts.
        """
        turns, chunk, request, members = self.turns, self.chunk, self.request, at.members
        done, final = at.t >= ends, at.t >= request.t1
        roots, some = self.events.collect(at, recorded, np.where(done, self.part[members], -1))
        self.part[members] += done & ~final
        stopped = ~final & (chunk.steps[members] + chunk.rejected[members] >= request.options.max_steps)
        before, on = turns.codes[members], np.flatnonzero(done & ~final & ~stopped)
        turns.codes[members[stopped]] = Code.MAX_STEPS
        if len(on) and self.flow.parts.modes:
            self.flow.parts.begin(members[on], self.part[members[on]])
        self.reset[members] = False
        some &= ~stopped
        going = ~stopped
        if some.any():
            there = at.of(rows := rows_where(some))
            going[rows] = self._after(self.events.act(there, roots[rows]), there, recorded[rows], done[rows], before[rows])
        turns.codes[members[going & final]] = Code.OK
        if not self.plan.saves and final.any():
            chunk.y[members[final], 0] = self.states[members[final]]
        going &= ~final
        return members[going], is_near(at, self._ends(members))[going]

    def _after(self, effects: Effects, at: Point, recorded: Array, known: Array, codes: Array) -> Array:
        """Goes on from what events have set, and ends members (k,) that they end; returns which go on.

        recorded (k, columns): events that the segments have recorded. known (k,): whether the time was known beforehand. codes (k,): how
        the segments ended.
        """
        members, events, going = at.members, self.events, np.ones(len(at), bool)
        for acting, columns in effects.acts:
            new = ~recorded[acting, columns]
            recorded[acting, columns] = False  # the segment has recorded it, once
            e = events.event_of[columns[new]]
            record(self.chunk, members[acting[new]], e, at.t[acting[new]], columns[new] - events.first[e])
        acted = effects.times > 0
        self.reset[members] = moved = np.asarray(acted[:, events.sets].any(axis=1))
        if moved.any():
            mine = members[rows := rows_where(moved)]
            put_rows(self.states, mine, effects.y[rows])
            if self.plan.saves:
                back = np.where(known, TOGETHER[1] * at.spacing, at.nearby)  # a known time is off by rounding only
                self._save(mine, np.searchsorted(self.request.times, (at.t - back)[rows]), self.turns.places[mine])
            self._begin_sums(mine)
        for row, (status, _) in effects.stopped.items():
            going[row], self.turns.codes[members[row]] = False, status.code
        if (ends := acted & events.ends).any():
            ended = ends.any(axis=1) & going
            outside = ~(ends & ~events.guards).any(axis=1) & (moved | (codes != Code.EVENT))
            self.turns.codes[members[ended]] = np.where(outside, Code.LEFT_DOMAIN, Code.EVENT)[ended]
            going &= ~ended
        return going


def is_near(at: Point, ends: Array) -> Array:
    """Which members have no more than a moment left to these times (k,)."""
    left = ends - at.t
    return np.asarray((left > 0) & (left <= at.nearby))


def record(chunk: Chunk, members: Array, events: Array, t: Array, components: Array) -> None:
    """Writes one more occurrence of an event (k,) of each of these members (k,), which differ."""
    if not chunk.event_count.shape[1] or not len(members):
        return
    place = chunk.event_count[members, events]
    room = place < chunk.event_t.shape[2]
    at = members[room], events[room], place[room]
    chunk.event_t[at], chunk.event_index[at] = t[room], components[room]
    chunk.event_count[members, events] = place + 1


class EventStore:
    """The events that the lanes find in one round of members first to end - 1."""

    def __init__(self, table: Array, first: int, end: int, names: int, events: Resetting, chunk: Chunk) -> None:
        self.first, self._names, self._events, self._chunk = first, names, events, chunk
        listed = {"LISTED_T": chunk.event_t, "LISTED_I": chunk.event_index, "LISTED_N": chunk.event_count, "MARKS": events.marks}
        starts = {"Y0": int(table[AT["LAST"]]), "PART_START": int(table[AT["T_END"]])}
        self._table = call_table({**listed, **starts, "LISTED": chunk.event_t.shape[2] if chunk.event_count.shape[1] else -1}, table)
        self.guards = np.unique(events.event_of[events.guards]).tolist()
        self.counts, self.room = np.zeros((end - first, names), np.int64), ROOM
        self._times, self._places = np.zeros((*self.counts.shape, ROOM)), np.zeros((*self.counts.shape, ROOM), np.int64)

    def grow(self) -> None:
        """Makes room for as many as members have had."""
        more = (0, 0), (0, 0), (0, int(self.counts.max()) - self.room)
        self._times, self._places = np.pad(self._times, more), np.pad(self._places, more)
        self.room = self._times.shape[2]

    def table(self, **more: Array) -> Array:
        """The addresses that the lanes are told, and more: members have the numbers that they have in the whole call."""
        columns = {"FOUND_T": self._times, "FOUND_I": self._places, "FOUND_N": self.counts}
        back = {name: address_of(array) - self.first * array[0].nbytes for name, array in columns.items()}
        return call_table({**back, "KEPT": self.room, **more}, self._table)

    def record(self, at: Point) -> Array:
        """Writes the events of members among those of the whole run; returns which (k, columns) were at the times of the members."""
        rows, since = at.members - self.first, at.t - at.nearby
        counts, recent = self.counts.take(rows, axis=0), np.zeros((len(at), len(self._events.event_of)), bool)
        for e in range(self._names):
            for k in range(int(counts[:, e].max(initial=0))):
                some = np.flatnonzero(counts[:, e] > k)
                t, components = self._times[rows[some], e, k], self._places[rows[some], e, k]
                record(self._chunk, at.members[some], np.full(len(some), e), t, components)
                recent[some, self._events.first[e] + components] |= t >= since[some]
        return recent

    def outside(self, members: Array) -> Array:
        """Which members (k,) have left a set that a state assumes."""
        return (self.counts[np.ix_(members - self.first, self.guards)] > 0).any(axis=1)
