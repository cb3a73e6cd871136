"""The conditions on time of a right-hand side: when they change, and their values between; times of events on time alone.

Runs stop at these times, so that every step sees one smooth right-hand side. In lanes all members of a block run in parts, from one change
of their conditions to the next: the k-th part of every member is done before any next one, with the conditions of each as its parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from sympy import Add, Expr, Symbol

from odesim.base.arrays import Array
from odesim.base.errors import SolveError
from odesim.base.memo import IdentityKey, Memo
from odesim.ensembles.members import member_values, own_names_read
from odesim.ensembles.request import EnsembleRequest
from odesim.inputs.bind import Numbers
from odesim.inputs.schema import Formula, make_extent
from odesim.run.zeros import form_of, isolated_rows, pulse_rows
from odesim.stepper.codes import Code
from odesim.symbolic.indices import time
from odesim.symbolic.layered import names_read
from odesim.symbolic.times import AnyTimes, Pulses, Times
from odesim.targets.numpy_text import expression_function
from odesim.transforms.events import Watched
from odesim.transforms.modes import AS_WRITTEN, FREE, HeldSystem, Kink, Switch

MOST_TIMES = 10**7
"""Times of one run at which conditions change: 80 MB, and a step each; more is a mistake in a period."""
NEXT = 2.0**-10
"""Part of a span's length, beyond its end, that is searched for the next time."""
TOGETHER = 4
"""Two times no further apart than so many roundings are one: of the times themselves, or of the span's ends where zeros are isolated."""
BLOCK, ENTRIES = 512, 1 << 18
"""Parts of a span whose conditions are computed at once, and how many these may be."""
_EXPRESSIONS: Memo[dict[Any, Any]] = Memo()


@lru_cache(maxsize=4096)
def formula(expr: Expr, indices: tuple[Symbol, ...], axes: tuple[tuple[Symbol, Any], ...]) -> Formula:
    """An expression as a function of whole arrays. Without BLAS, whose bits are the processor's."""
    extents = dict(axes)
    return Formula(expr, indices, expression_function(expr, indices, axes, products=False), tuple(make_extent(extents[i]) for i in indices))


def values(
    expr: Expr, axes: Mapping[Symbol, Any], sizes: Mapping[str, int], shared: Mapping[str, Any], per_member: Mapping[str, Array]
) -> Array:
    """The values of expr for N members with rows per_member {name: (N, ...)}: (N, *shape), or (1, *shape) if it reads none of them."""
    f = formula(expr, tuple(axes), tuple(axes.items()))
    mine = {name: per_member[name] for name in own_names_read(f, frozenset(per_member))} if per_member else {}
    with np.errstate(all="ignore"):
        return member_values(f, axes, sizes, shared, mine) if mine else f(sizes, shared)[None]


@dataclass(frozen=True)
class Conditions:
    """The conditions of a held System with what all members share: sizes, parameters, span, and times at which all runs stop."""

    held: HeldSystem
    sizes: dict[str, int]
    shared: Mapping[str, Any]
    t0: float
    t1: float
    stop_at: tuple[float, ...] = ()

    @cached_property
    def expressions(self) -> dict[Any, Any]:
        """Derivatives of the conditions' expressions, made when they are first needed."""
        return _EXPRESSIONS(IdentityKey(self.held), dict)

    @cached_property
    def on_time(self) -> tuple[Switch, ...]:
        return tuple(s for s in self.held.switches if s.times is not None)

    def shape(self, s: Switch | Watched) -> tuple[int, ...]:
        """The shape of the parameter of a switch or an event."""
        return tuple(make_extent(e).value(self.sizes) for e in s.extents) or (1,)

    def reads(self, names: frozenset[str]) -> frozenset[str]:
        """Which of these parameters the conditions on time depend on, their times included."""
        every = [s.as_written for s in self.on_time]
        parts: tuple[Switch | Kink, ...] = (*self.on_time, *self.held.kinks)
        for part in parts:
            every += [x for at in part.times or () for x in at.expressions]
        return names & frozenset[str]().union(*(names_read(e) for e in every))

    def stops(self, per_member: Mapping[str, Array], count: int) -> list[tuple[Array, float]]:
        """For each member the increasing times inside the span at which its run stops, and the first known time after its end.

        That is inf without one within NEXT of the span. Raises SolveError if there are too many.
        """
        rows = self._every(per_member, count)
        return [(self._increasing(every, near), float(np.min(every[every > self.t1 + near], initial=np.inf))) for every, near in rows]

    def _every(self, per_member: Mapping[str, Array], count: int) -> list[tuple[Array, Array]]:
        """For each member all times within the span and some beyond, and how near to each another one is the same."""
        stops = np.array(self.stop_at, float)
        times_of = [[np.stack([stops, np.spacing(np.abs(stops))])] for _ in range(count)]
        parts: tuple[Switch | Kink, ...] = (*self.on_time, *self.held.kinks)
        for part in parts:
            axes = dict(zip(part.indices, part.extents, strict=True))
            for times in part.times or ():
                rows = self._rows(times, axes, per_member)
                for i in range(count):
                    row = rows[i if len(rows) > 1 else 0]
                    times_of[i].append(np.stack([row, self._rounding(times, row)]))
        return [(every, TOGETHER * rounding) for every, rounding in (np.concatenate(parts, axis=1) for parts in times_of)]

    def _rounding(self, times: AnyTimes, row: Array) -> Array:
        """How far times are off by rounding: by that of themselves, unless they are differences or found by a search."""
        plain = isinstance(times, Times) and times.period is None and not times.first.has(Add)
        ends = 0.0 if plain else max(abs(self.t0), abs(self.t1))
        return np.spacing(np.maximum(np.abs(row), ends))

    def _rows(self, times: AnyTimes, axes: Mapping[Symbol, Any], per_member: Mapping[str, Array]) -> list[Array]:
        """The times of each member, or one row for all."""
        if not isinstance(times, Times):
            form = form_of(times.function)
            coefficients = [values(c.expr, {**axes, **c.axes}, self.sizes, self.shared, per_member) for c in form.coefficients]
            if isinstance(times, Pulses):
                return pulse_rows(form, coefficients, len(axes), (self.t0, self.t1))
            return isolated_rows(form, coefficients, len(axes), (self.t0, self.t1 + (self.t1 - self.t0) * NEXT))
        first = values(times.first, axes, self.sizes, self.shared, per_member)
        first = first.reshape(len(first), -1)
        if times.period is None:
            return list(first)
        period = values(times.period, axes, self.sizes, self.shared, per_member)
        first, period = np.broadcast_arrays(first, period.reshape(len(period), -1))
        return [np.concatenate([self._repeated(a, p) for a, p in zip(*row, strict=True)]) for row in zip(first, period, strict=True)]

    def _repeated(self, first: float, period: float) -> Array:
        """The times first + k period within the span, and the next ones."""
        if not (np.isfinite(first) and np.isfinite(period) and period != 0):
            return np.empty(0)
        low, high = sorted(((self.t0 - first) / period, (self.t1 - first) / period))
        if high - low > MOST_TIMES:
            often = f"{high - low:.3g} times between {self.t0:g} and {self.t1:g}: at most {MOST_TIMES}"
            raise SolveError(f"a condition changes, or an event happens, {often}")
        return np.asarray(first + np.arange(np.floor(low), np.ceil(high) + 2) * period)

    def _increasing(self, every: Array, near: Array) -> Array:
        inside = (every > self.t0 + near) & (every < self.t1 - near)
        order = np.argsort(every[inside])
        every, near = every[inside][order], near[inside][order]
        return every[np.append(True, np.diff(every) > np.maximum(near[1:], near[:-1]))[: len(every)]]

    def between(self, times: Array, per_member: Mapping[str, Array]) -> dict[str, Array]:
        """{parameter of a condition on time: (N, *shape)} for members at times (N,), which lie inside a segment."""
        modes = {}
        for s in self.on_time:
            g = values(s.as_written, s.axes, self.sizes, self.shared, {**per_member, str(time): times})
            held = settled(s, g) if s.kind == "level" else np.sign(g)  # where g is not defined no condition on it holds, as on a nan
            modes[s.name] = held.reshape(len(times), *self.shape(s))
        return modes


def settled(s: Switch, g: Array) -> Array:
    """The value of a switch's parameter if its expression is g."""
    with np.errstate(invalid="ignore"):
        return np.floor(np.nan_to_num(g, nan=FREE)) if s.kind == "level" else np.nan_to_num(np.sign(g), nan=AS_WRITTEN)


def part_obstacle(request: EnsembleRequest, *, rounds: bool = False) -> str:
    """Why lanes cannot integrate a request that runs in parts, so that members run one by one; empty if they can.

    rounds: whether members may stop at events and go on.
    """
    held = request.held
    if not request.switches:
        return ""
    if held is not None and held.watched and not (rounds and not request.system.discrete):
        events = [w.event for w in held.watched]
        at_start = "events at the start" if any(e.at_start for e in events) else "events on time alone"
        return "events that set states" if any(e.resets for e in events) else at_start
    if held is not None and held.on_states:
        return "conditions on states that jump"
    if request.options.step is not None:
        return "a fixed step in parts between times where conditions change"
    return "sensitivities with jumps" if request.system.sensitivities and held is not None and held.switches else ""


@dataclass(frozen=True)
class Parts:
    """The parts of count members: part k of member i goes from edges[first[i] + k] to the next edge, and there are counts[i] of them.

    Part counts[i] goes from the end of the span to the first known time after it, beyond[i]. modes: {parameter of a condition:
    (count, size)}, of the parts that are at hand. per_member: the values of members.
    """

    conditions: Conditions
    per_member: Mapping[str, Array]
    edges: Array
    first: Array
    counts: Array
    beyond: Array
    modes: dict[str, Array]

    def begin(self, members: Array, part: int | Array) -> tuple[Array, Array]:
        """(start, end) of this part, or these (k,), of members (k,), with their conditions held for it."""
        at = self.first[members] + part
        if self.modes:
            mine = {name: values[members] for name, values in self.per_member.items()}
            for name, rows in self.conditions.between(self.middle(members, part), mine).items():
                self.modes[name][members] = rows.reshape(len(members), -1)
        return self.edges[at], self.edges[at + 1]

    def middle(self, members: Array, part: int | Array) -> Array:
        """The middle of this part of members (k,), or the last one's where there are fewer."""
        last = self.counts[members]
        at = self.first[members] + np.minimum(part, last)
        end = np.where(part >= last, self.beyond[members], self.edges[np.minimum(at + 1, len(self.edges) - 1)])
        return np.asarray(0.5 * self.edges[at] + 0.5 * end)


class Turns:
    """The state of members that run in parts, one part each at a turn: codes, steps and rejected (count,); `most` steps are allowed."""

    def __init__(self, parts: Parts, codes: Array, steps: Array, rejected: Array, most: int) -> None:
        self.parts, self.codes, self.steps, self.rejected, self.most = parts, codes, steps, rejected, most
        self.start, self.end, self.places = np.zeros(len(codes)), np.zeros(len(codes)), np.zeros(len(codes), np.int64)

    def begin(self, members: Array, k: int) -> None:
        """Sets start and end for part k of members (m,), and holds their conditions."""
        self.start[members], self.end[members] = self.parts.begin(members, k)

    def left(self, members: Array, k: int) -> Array:
        """Members whose part k is unfinished and that have steps left.

        Sets their codes to RUNNING, and to MAX_STEPS where a part k is unfinished but no steps are left.
        """
        fine = members[self.codes[members] == Code.OK]
        left = fine[self.parts.counts[fine] > k]
        tried = self.steps[left] + self.rejected[left]
        self.codes[left] = np.where(tried >= self.most, Code.MAX_STEPS, Code.RUNNING)
        return np.ascontiguousarray(left[tried < self.most])


def parts_of(request: EnsembleRequest, numbers: Numbers, params: Mapping[str, Array], count: int) -> Parts:
    """The Parts of members with these parameters. Raises SolveError if there are too many."""
    assert request.held is not None
    conditions = Conditions(request.held, dict(numbers.sizes), numbers.params, request.t0, request.t1, request.options.stop_at)
    return make_parts(conditions, {name: params[name] for name in conditions.reads(frozenset(params))}, count)


def make_parts(conditions: Conditions, per_member: Mapping[str, Array], count: int) -> Parts:
    """The Parts of members with their own parameters that the conditions read. Raises SolveError if there are too many."""
    t0, t1 = conditions.t0, conditions.t1
    stops = conditions.stops(per_member, count if per_member else 1)
    rows = [np.concatenate([[t0], inside, [t1]]) for inside, _ in stops]
    beyond = np.array([min(t1 + (t1 - t0) * NEXT, following) for _, following in stops])
    lengths = np.array([len(row) for row in rows])
    first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    if not per_member:
        first, lengths, beyond = np.zeros(count, np.int64), np.full(count, lengths[0]), np.full(count, beyond[0])
    modes = {s.name: np.zeros((count, int(np.prod(conditions.shape(s))))) for s in conditions.on_time}
    return Parts(conditions, per_member, np.concatenate(rows), first, lengths - 1, beyond, modes)
