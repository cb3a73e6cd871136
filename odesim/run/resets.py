"""Events that members stop at: which happen at a time, what they set, and what that sets off. A run is one member.

The side of a function is its sign, and 0 where it is 0 but for rounding, also of the time: the resets act on the state a moment later too,
and tell by how much that changes a function. At one time the events whose functions have come to 0 are
collected first. Then each acts, and once more for each time that a reset of another event takes its function from one side to the other,
or to 0. At last a function that is 0 gets the side to which the run takes it. It is held there until it has come out of its rounding.

A reset y+ = r(y-, t, p) at the time tau of g(t, y, p) = 0 carries S = dy/dp to S+ = r_y (S- + f- tau') + r_t tau' + r_p - f+ tau',
with tau' = dtau/dp = -(g_y S- + g_p) / (g_y f- + g_t). (Hiskens & Pai 2000, Trajectory sensitivity analysis of hybrid systems.)

A component of an event has a column, its number among those of all events. What members do at one time is done for all of them at once, in
as many turns as one of them has events.
"""

from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from odesim.base.arrays import Array, put_rows, rows_where
from odesim.run.conditions import BLOCK, ENTRIES, values
from odesim.run.event_functions import TIME, EventFunctions, Flow, Point, Slopes, rounded
from odesim.stepper.codes import Status
from odesim.stepper.occurrences import MOMENT, length_of
from odesim.symbolic.indices import base_name
from odesim.symbolic.layered import names_read
from odesim.transforms.events import Guard, is_affine

FEW = 4
"""So many times of one event pile up, if each is no more than a MOMENT after the one before, or its function has only moved by rounding."""
QUICK, SHRINK = 1024, 0.8
"""So many times of one event, of which the last half took at most this part of the time of the half before, and so on four times.

Times 1 - 1/k have .5. A burst at a rate of 1/((1 - t)^2 + .002^2), which ends after 1,569 times, has .97 at its 1,024th.
"""
FEWEST = 4
"""A function moves by so many roundings of its states and the time at least."""
REPEATS = 100
"""So many times one event may happen at one time, set off by resets of others."""
SLOW = 1e-6
"""Part of the span for which a function is held on its side of 0 at most."""
AHEAD = 1e-9
"""Part of the span after which a function that rests at 0 is looked at again."""
MARKS = 9
"""Numbers that are kept of each component of an event in each member."""
NEVER, TINY = -1e38, 1e-30
"""A time before every run, and what stands for 0 with a sign."""


class Effects:
    """The events of members (k,) at one time: the states y (k, n) after them, and {row: why that member cannot go on}.

    acts: the rows and columns of events, in the order in which they acted. times (k, columns): how often.
    """

    def __init__(self, at: Point, columns: int) -> None:
        self.times = np.zeros((len(at), columns), np.int64)
        self.stopped: dict[int, tuple[Status, str]] = {}
        self.acts: list[tuple[Array, Array]] = []
        self._here = at

    @property
    def y(self) -> Array:
        return self._here.y

    def going(self, rows: Array) -> Array:
        """Those of these rows that go on."""
        return rows[[row not in self.stopped for row in rows.tolist()]] if self.stopped else rows

    def here(self, rows: Array) -> Point:
        """The members of these rows as they now are."""
        return self._here.of(rows)

    def put(self, rows: Array, y: Array, late: Array | None = None) -> None:
        """Sets the states of these rows, and those a moment later."""
        after = self._here.late
        self._here = self._here.at(rows, y, after if after is None or late is None else after.at(rows, late, None))

    def change(self, rows: Array, new: Callable[[Point], Array]) -> None:
        """Sets the states of these rows to new ones, if it makes any."""
        here = self.here(rows)
        if (y := new(here)) is not here.y:
            self.put(rows, y)


class Resetting:
    """The events that N members stop at. first (events + 1,): the columns of their components."""

    def __init__(self, flow: Flow, count: int) -> None:
        self.flow, self.functions, self._conditions = flow, EventFunctions(flow), flow.conditions
        self._watched = self.functions.watched
        sizes = [int(np.prod(shape)) for shape in self.functions.shapes]
        self.first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.event_of = np.repeat(np.arange(len(sizes)), sizes)
        self._columns = [slice(a, b) for a, b in zip(self.first[:-1].tolist(), self.first[1:].tolist(), strict=True)]
        self._on_states = [e for e, w in enumerate(self._watched) if w.times is None]
        self._sided = [e for e in self._on_states if self._watched[e].side]
        reads = {e: names_read(self._watched[e].event.expr) for e in self._on_states}
        sets = [{base_name(key) for key in w.event.resets} for w in self._watched]
        self._affine = [is_affine(self._conditions.held.original, w.event.expr) for w in self._watched]
        self._moves = [[e for e in self._on_states if reads[e] & names] for names in sets]
        ends = np.array([bool(w.event.terminal) for w in self._watched])[self.event_of]
        self.ends, self.guards = ends, np.array([isinstance(w.event, Guard) for w in self._watched])[self.event_of]
        self.sets = np.array([bool(w.event.resets) for w in self._watched])[self.event_of]
        self._stops = ends | np.array([w.stops for w in self._watched])[self.event_of]
        # of each member, for compiled rules too (one_reset.py). zeros: what a function was when it was last taken for 0
        # counts: how often it has happened. due: at which count, always twice the one before, its halves are looked at
        self.marks, self._step = np.zeros((count, 1 + MARKS * len(self.event_of))), AHEAD * (self._conditions.t1 - self._conditions.t0)
        parts = np.split(self.marks[:, 1:], MARKS, axis=1)
        self._since = self.marks[:, 0]
        by_event = [[part[:, c] for c in self._columns] for part in parts]
        self._last, self._repeats, self._zeros, self._rates, self._counts, self._due, *self._halves = by_event
        most = max(2, min(BLOCK, ENTRIES // max(1, count * len(self.event_of))))
        timed = [e for e, w in enumerate(self._watched) if w.times is not None]
        self._ahead = {e: (np.full(count, -most), np.empty((count, most, sizes[e]))) for e in timed}

    def stand(self, t: float, y: Array, late: Point | None = None) -> Point:
        """One run, the first member, at t and y (n,); late: the same a moment later, where that is known."""
        return Point(self.flow, np.zeros(1, np.int64), np.array([t]), y[None], late)

    def begin(self, at: Point, most: int) -> Effects:
        """Begins runs of so many steps at most, which forget earlier ones, and applies the events that happen at their start."""
        m, self._since[at.members], self._most = at.members, at.t, most
        for e in range(len(self._watched)):
            self._last[e][m], self._repeats[e][m], self._zeros[e][m] = -np.inf, 0, 0.0
            self._counts[e][m], self._due[e][m] = 0, QUICK // 16
        for first, _ in self._ahead.values():
            first[m] = -(1 << 60)
        for w in self._watched:
            for name, value in zip(w.parameters, (1.0, NEVER, 0.0), strict=False):
                self.flow.sides[name][m] = value
        roots = np.zeros((len(at), len(self.event_of)), bool)
        for e, columns in enumerate(self._columns):
            if e in self._sided:
                self._rates[e][m] = self.functions.rate(e, at)
            if self._watched[e].event.at_start:
                g, off = self._function(e, at)
                near, way = np.abs(g) <= off, self._watched[e].event.direction
                there = np.where(near, self._heading(e, at, self.functions.rate(e, at)), g) * way > 0 if way else near
                roots[:, columns] = there
        return self.act(at, roots)

    def collect(self, at: Point, hits: Array, part: Array) -> tuple[Array, Array]:
        """The events (k, columns) that happen at a point, and where any function is 0 (k,). Conditions are still held as before.

        hits (k, columns): those that the segments found there. part (k,): the number of the part of the span, between its stops, that
        ends there; -1 for none.
        """
        m, moment = at.members, self.functions.moment_at(at)[:, None]
        roots, any_near = (hits & self._stops) | self._timed(m, part), np.zeros(len(at), bool)
        at.late = at.later(moment[:, 0])
        passed = (at.t - self._since[m])[:, None]
        for e in self._sided:
            w, columns = self._watched[e], self._columns[e]
            g, off = self._function(e, at)
            rate = self.functions.rate(e, at)
            side, until = (self.flow.sides[name].take(m, axis=0) for name in (w.side, w.until))
            near = np.abs(g) <= off + moment * np.abs(rate)
            any_near |= near.any(axis=1)
            there = near & (np.abs(rate) * passed > off) & (rate * w.event.direction >= 0) & ~((until >= at.t[:, None]) & (side * rate > 0))
            roots[:, columns] |= there
            zeros = self._zeros[e].take(m, axis=0)
            put_rows(self._zeros[e], m, np.where(hits[:, columns], np.maximum(zeros, np.abs(g)), zeros))  # so far off was the search
            put_rows(self._rates[e], m, rate)
        return roots, any_near | roots.any(axis=1)

    def act(self, at: Point, roots: Array) -> Effects:
        """Applies the events (k, columns) that have been collected at a point, and those that they set off."""
        acted = Effects(at, roots.shape[1])
        acted.stopped |= self._by_rounding(at, roots)
        count, order = roots.sum(axis=1), np.argsort(~roots, axis=1, kind="stable")
        turns = [np.flatnonzero(count > turn) for turn in range(int(count.max(initial=0)))]
        # how their times move with the parameters, before one of them sets what the function of another reads
        slopes = [list(self._slopes(at, rows, order[rows, turn])) for turn, rows in enumerate(turns)] if self.flow.pairs else []
        for turn, rows in enumerate(turns):
            going = acted.going(rows)
            columns = order[going, turn]
            plain = ~self.sets[columns]
            if plain.any():  # they set off nothing
                self._count(at, going[plain], columns[plain], acted)
            if slopes:
                for some, column, along, lost in slopes[turn]:
                    self._chain(at, some, column, along, lost, acted)
            elif not plain.all():
                self._chain(at, going[~plain], columns[~plain], {}, None, acted)
        if len(rows := acted.going(np.arange(len(at)))):
            after = acted.here(rows)
            self._settle(after, acted.times[rows] > 0)
            self._pile_up(after, rows, acted)
        return acted

    def _by_rounding(self, at: Point, roots: Array) -> dict[int, tuple[Status, str]]:
        """{row: why it cannot go on} of members in which an event sets states whose affine function has stayed 0 since the last stop.

        2 t - x stays 0 for x' = 2 once a reset makes it 0. Then its rounding passes 0 at any time.
        """
        stopped, passed = dict[int, tuple[Status, str]](), (at.t - self._since[at.members])[:, None]
        for e in self._sided:
            w, columns = self._watched[e], self._columns[e]
            if not (self._affine[e] and w.event.resets and roots[:, columns].any()):  # others may rest, and go on and come back
                continue
            g, off = self._function(e, at)
            rested = self.flow.sides[w.side].take(at.members, axis=0) == 0
            moves = np.abs(self._rates[e].take(at.members, axis=0)) * passed
            for row, i in np.argwhere(roots[:, columns] & rested & (np.abs(g) <= off) & (moves <= off)).tolist():
                what = f"the function of the event {self.functions.name(e, i)} stays 0 up to t = {at.t[row]:.9g}"
                why = f"{what}, so that rounding decides when it happens; end the span before it, or write the event otherwise"
                stopped[row] = Status.SLIDING, why
        return stopped

    def _slopes(self, at: Point, rows: Array, columns: Array) -> Iterator[tuple[Array, Array, Slopes, Array]]:
        """For each event among these columns that sets states: its rows and columns, how its times move, and where they have no slope."""
        for e, some in self._by_event(columns):
            if self._watched[e].event.resets:
                yield rows[some], columns[some], *self.functions.time_slopes(e, columns[some] - self.first[e], at.of(rows[some]))

    def _by_event(self, columns: Array) -> list[tuple[int, Array | slice]]:
        """The events of these columns, and where they are among them."""
        events = self.event_of[columns]
        if len(events) and (events == events[0]).all():
            return [(int(events[0]), slice(None))]
        return [(e, np.flatnonzero(events == e)) for e in np.unique(events).tolist()]

    def _pile_up(self, at: Point, rows: Array, acted: Effects) -> None:
        """Stops members of which an event happens ever faster."""
        times, m = acted.times[rows] > 0, at.members
        piled = np.zeros(times.shape, bool)
        for e, w in enumerate(self._watched):
            mine, columns = times[:, self._columns[e]], self._columns[e]
            if not w.event.resets or not mine.any():
                continue
            before, last = (values[e].take(m, axis=0) for values in (self._repeats, self._last))
            # those on time alone are as many as there are: they cannot pile up
            again = np.where((w.times is not None) | (at.t[:, None] - last > self._shortest(e, at)), 1, before + 1)
            put_rows(self._repeats[e], m, np.where(mine, again, before))
            put_rows(self._last[e], m, np.where(mine, at.t[:, None], last))
            piled[:, columns] = mine & ((again == FEW) | ((w.times is None) & self._quickens(e, at, mine)))
        for row in np.flatnonzero(piled.any(axis=1)).tolist():
            first = next(int(c[r == rows[row]][0]) for r, c in acted.acts if (piled[row, c[r == rows[row]]]).any())
            acted.stopped[int(rows[row])] = Status.SLIDING, self.piles_up(float(at.t[row]), first)

    def _quickens(self, e: int, at: Point, mine: Array) -> Array:
        """Which components (k, components) of those that happen have quickened to more times in the rest of the span than a run has steps.

        Of times that pile up as 1 - 1/k no two are ever a MOMENT apart in a run of 1e7 steps.
        """
        m, quick = at.members, np.zeros(mine.shape, bool)
        count = self._counts[e].take(m, axis=0) + mine
        put_rows(self._counts[e], m, count)
        for row, i in np.argwhere(mine & (count == self._due[e].take(m, axis=0))).tolist():
            half, before, shrunk = (values[e][m[row]] for values in self._halves)
            length, left = at.t[row] - half[i], self._conditions.t1 - at.t[row]
            ratio = length / before[i] if before[i] else 1.0
            shrunk[i] = shrunk[i] + 1 if ratio <= SHRINK else 0
            # the last half is a geometric series of halves; at its pace the rest of the span has more events than a run has steps
            endless = length * ratio < (1 - ratio) * left and left * count[row, i] / 2 > self._most * length
            quick[row, i] = count[row, i] >= QUICK and shrunk[i] >= 3 and endless
            half[i], before[i], self._due[e][m[row], i] = at.t[row], length, 2 * count[row, i]
        return quick

    def _shortest(self, e: int, at: Point) -> Array:
        """The time after which an event may happen again (k, components): until then its function moves by no more than rounding."""
        least = np.maximum(length_of(MOMENT, at.t, self._conditions.t0, at.spacing), FEW * self.functions.moment_at(at))[:, None]
        rate = np.abs(self._rates[e].take(at.members, axis=0))
        moves = self._roundings(self.functions.function(e, at)[1])
        return np.maximum(least, np.divide(FEW * moves, rate, out=np.zeros_like(rate), where=rate != 0))

    def _roundings(self, off: Array) -> Array:
        """By how much a few roundings of the last bit move functions, whose states may be off by as much as moves these by off."""
        return FEWEST * float(np.finfo(self.flow.dtype).eps) / rounded(self.flow.dtype) * off

    def _function(self, e: int, at: Point) -> tuple[Array, Array]:
        """An event's function, and how far rounding may move it, each (k, components)."""
        g, off, _ = self.functions.function(e, at)
        return g, off + self._zeros[e].take(at.members, axis=0)

    def _ahead_of(self, at: Point) -> Point:
        """The members a little later."""
        return at.later(np.full(len(at), self._step))

    def _heading(self, e: int, at: Point, rate: Array) -> Array:
        """The sign with which a function leaves 0 (k, components): that of its rate, or of its rate a little later where that is 0."""
        if rate.all():
            return np.sign(rate)
        return np.sign(np.where(rate == 0, self.functions.rate(e, self._ahead_of(at)), rate))

    def _rests(self, e: int, at: Point, rate: Array) -> Array:
        """Which components of a function stay 0 from here on, whatever their rate, as Max(x, 0) does: at the edge its slope is a half."""
        g, off, _ = self.functions.function(e, self._ahead_of(at))
        return (np.abs(g) <= off) & (np.abs(rate) * self._step > 4 * off)

    def _held(self, e: int, at: Point, off: Array, rate: Array) -> Array:
        """How long a function that is 0 but for rounding stays so: a moment, or longer where rounding outweighs its rate.

        A small difference of large states, as x + y - 1 with x at 1e-6, passes 0 wherever a step looks before it has come out of that.
        """
        moment, longest = self.functions.moment_at(at)[:, None], SLOW * (self._conditions.t1 - self._conditions.t0)
        least = self._roundings(off)
        held = np.divide(least, np.abs(rate), out=np.zeros_like(off), where=rate != 0)
        held = np.clip(held, moment, np.maximum(moment, longest))
        long = np.flatnonzero(held.max(axis=1) > moment[:, 0])
        if len(long):  # where the rate grows, as of a ball that is thrown up a little, rounding lasts less long
            later = np.abs(self.functions.rate(e, at.of(long).later(held[long].max(axis=1))))
            shorter = np.divide(least[long], later, out=held[long], where=later > np.abs(rate[long]))
            held[long] = np.clip(shorter, moment[long], held[long])
        return held

    def piles_up(self, t: float, column: int) -> str:
        """The sentence that an event happens ever faster."""
        return (
            f"the event {self.name_of(column)} happens ever faster, again and again, at t = {t:.9g} (its times pile up there); "
            "end the span before it, or let a terminal event end the run"
        )

    def name_of(self, column: int) -> str:
        """The event of a column, with the index of its component."""
        e = int(self.event_of[column])
        return self.functions.name(e, int(column - self.first[e]))

    def _count(self, at: Point, rows: Array, columns: Array, acted: Effects) -> Array:
        """Writes down that events act once more; stops members of which one does so too often, and returns the rows that go on."""
        acted.times[rows, columns] += 1
        many = acted.times[rows, columns] > REPEATS
        for row, column in zip(rows[many].tolist(), columns[many].tolist(), strict=True):
            what = f"the event {self.name_of(column)} sets itself off by its resets at t = {at.t[row]:.9g}"
            why = f"{what}, more than {REPEATS} times; end the span before it, or let a terminal event end it"
            acted.stopped[row] = Status.SLIDING, why
        acted.acts.append((rows[~many], columns[~many]))
        return ~many

    def _chain(self, at: Point, rows: Array, columns: Array, slopes: Slopes, lost: Array | None, acted: Effects) -> None:
        """Applies events that set states, one of each of these rows, and the events they set off.

        slopes, lost: of the events' times by the parameters, as of EventFunctions.time_slopes.
        """
        if lost is not None:
            for row, column in zip(rows[lost].tolist(), columns[lost].tolist(), strict=True):
                what = f"the event {self.name_of(column)} only touches 0 at t = {at.t[row]:.9g}, where there are no sensitivities"
                acted.stopped.setdefault(row, (Status.NON_FINITE, f"{what}; integrate without them, or end the span before it"))
            fine = np.array([row not in acted.stopped for row in rows.tolist()], bool)
            rows, columns, slopes = rows[fine], columns[fine], {p: by[fine] for p, by in slopes.items()}
        begun, waiting = rows, dict[int, deque[int]]()
        acted.change(rows, lambda here: self.functions.moved(here, slopes, 1.0))
        while len(rows):
            fine = self._count(at, rows, columns, acted)
            rows, columns = rows[fine], columns[fine]
            for e, some in self._by_event(columns):
                if self._watched[e].event.resets:
                    mine = {p: by[np.searchsorted(begun, rows[some])] for p, by in slopes.items()}
                    self._set(e, at, rows[some], columns[some], mine, acted, waiting)
            rows = acted.going(np.array(sorted(row for row, more in waiting.items() if more), np.int64))
            columns = np.array([waiting[row].popleft() for row in rows.tolist()], np.int64)
        rows = acted.going(begun)
        y, why = self.flow.begin_again(now := acted.here(rows))
        if y is not now.y:
            acted.put(rows, y)
        acted.stopped |= {int(rows[row]): (Status.SLIDING, what) for row, what in why.items()}
        fine = np.searchsorted(begun, acted.going(rows))
        acted.change(begun[fine], lambda here: self.functions.moved(here, {p: by[fine] for p, by in slopes.items()}, -1.0))

    def _set(self, e: int, at: Point, rows: Array, columns: Array, slopes: Slopes, acted: Effects, waiting: dict[int, deque[int]]) -> None:
        """Sets the states that components of an event set, one of each of these rows; what that sets off joins what waits."""
        here = acted.here(rows)
        before = [self._side(other, here) for other in self._moves[e]]
        both = here.and_late()
        twice = len(both) // len(here)
        slopes = {p: np.concatenate([by] * twice) for p, by in slopes.items()}
        y, obstacles = self.functions.set_states(e, np.tile(columns - self.first[e], twice), both, slopes)
        acted.put(rows, y[: len(here)], y[len(here) :])
        acted.stopped |= {int(rows[row]): why for row, why in obstacles.items() if row < len(here)}
        after = acted.here(rows)
        for other, side in zip(self._moves[e], before, strict=True):
            passed = passes(side, self._side(other, after), self._watched[other].event.direction)
            for row, component in zip(*map(np.ndarray.tolist, np.nonzero(passed)), strict=True):
                column = int(self.first[other]) + component
                if column != columns[row]:
                    waiting.setdefault(int(rows[row]), deque()).append(column)

    def _side(self, e: int, at: Point) -> Array:
        """The sign of an event's function, and 0 where it is 0 but for rounding: (k, components)."""
        g, off = self._uncertain(e, at)
        return np.sign(g) if isinstance(self._watched[e].event, Guard) else np.where(np.abs(g) <= off, 0.0, np.sign(g))

    def _uncertain(self, e: int, at: Point) -> tuple[Array, Array]:
        """An event's function, and how far rounding may move it, that of the time included."""
        g, off = self._function(e, at)
        return g, off + self.functions.function(e, at)[2]

    def _timed(self, members: Array, part: Array) -> Array:
        """The events on the time alone (k, columns) at the end of this part of members (k,); none within one (-1)."""
        happening, rows = np.zeros((len(members), len(self.event_of)), bool), np.flatnonzero(part >= 0)
        for e in self._ahead if len(rows) else ():
            before, after = (self._between(e, members[rows], part[rows] + more) for more in (0, 1))
            happening[rows, self._columns[e]] = passes(before, after, self._watched[e].event.direction)
        return happening

    def _between(self, e: int, members: Array, part: Array) -> Array:
        """The function of an event on the time alone in a part of members (k, components), computed for many parts at once."""
        first, rows = self._ahead[e]
        new = np.flatnonzero((part < first[members]) | (part >= first[members] + rows.shape[1]))
        if len(new):
            c, w, mine, most = self._conditions, self._watched[e], members[new], rows.shape[1]
            each = np.repeat(mine, most)
            times = self.flow.parts.middle(each, np.add.outer(part[new], np.arange(most)).ravel())
            per_member = {name: self.flow.per_member[name][each] for name in names_read(w.event.expr) & self.flow.per_member.keys()}
            every = values(w.event.expr, w.axes, c.sizes, c.shared, {**per_member, TIME: times})
            rows[mine], first[mine] = every.reshape(len(mine), most, -1), part[new]
        return np.asarray(rows[members, part - first[members]])

    def _settle(self, at: Point, acts: Array) -> None:
        """Holds functions that are 0 but for rounding on the side of 0 to which the run takes them. acts (k, columns): which have acted.

        One that is on the other side by so much that the run does not lead from there in a moment counts from where it is.

        Where an event's resets stop its function at 0 and the run takes it on as before, it stays on the side from which it came: it
        happens again.
        """
        m, sides = at.members, self.flow.sides
        self._since[m] = at.t
        moment = self.functions.moment_at(at)[:, None]
        for e in self._sided:
            w, before = self._watched[e], self._rates[e].take(m, axis=0)
            g, off = self._uncertain(e, at)
            rate = self.functions.rate(e, at)
            near = np.abs(g) <= off + moment * np.abs(rate)
            put_rows(self._zeros[e], m, np.where(near, np.abs(g), 0.0))
            zero, until, side = np.zeros_like(g), np.full_like(g, NEVER), sides[w.side].take(m, axis=0)
            some = near.any(axis=1)
            if some.any():
                there = at.of(rows := rows_where(some))
                at_once, acted = near[rows], acts[rows, self._columns[e]]
                by, g, off, rate, before = (values[rows] for values in (moment, g, off, rate, before))
                still = np.abs(rate) <= rounded(self.flow.dtype) * np.abs(before)
                way = self._heading(e, there, np.where(still, 0.0, rate))
                if not self._affine[e]:
                    way[self._rests(e, there, rate)] = 0.0
                stays = still & acted & (way * before > 0) & bool(w.event.resets)
                side[rows] = new = TINY * np.where(stays, -way, way)
                zero[rows] = np.where(at_once & (g * new < 0) & (np.abs(g) > by * np.abs(rate)), g, 0.0)
                until[rows] = np.where(at_once, just_after(there.t[:, None] + self._held(e, there, off, rate), self.flow.dtype), NEVER)
            for name, held in zip(w.parameters, (side, until, zero), strict=True):
                put_rows(sides[name], m, held.astype(self.flow.dtype, copy=False))
        self.flow.refresh([name for w in self._watched for name in w.parameters])


def passes(a: Array, b: Array, direction: int) -> Array:
    """Whether functions that jump from a to b pass 0, or come to it, in their direction."""
    up, down = (a < 0) & (b >= 0), (a > 0) & (b <= 0)
    return up if direction > 0 else down if direction < 0 else up | down


def just_after(t: Array, dtype: str) -> Array:
    """The least numbers of this type that are t or more."""
    near = np.asarray(t).astype(dtype, copy=False)
    return near if (near >= t).all() else np.where(near >= t, near, np.nextafter(near, np.array(np.inf, dtype)))
