"""What is looked at when a run is done: whether it went on where nothing showed that it was wrong. It then ends before, as not a number.

A right-hand side may overflow unseen (odesim.run.overflow), and a step may lead to where no solution comes (odesim.run.unreachable). Both
are looked at where states are known: at the start, the saved times and the end. That costs a step nothing, and misses what overflows
between two of them and comes back. Members have the same rules: the few that may be wrong are found among all of a chunk at once.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odesim.base.arrays import Array, Layout, array_namespace, extreme, on_host
from odesim.base.options import RunOptions
from odesim.ensembles.request import Chunk, EnsembleRequest
from odesim.inputs.bind import Numbers
from odesim.run.observables import extreme_members
from odesim.run.overflow import REMEDY, ROWS, first_overflow, overflows
from odesim.run.problem import Parts, parts_of
from odesim.run.track import Tolerances, Track
from odesim.run.unreachable import first_unreachable, looked_at, suspects
from odesim.stepper.codes import UNDONE, Status
from odesim.stepper.problem import Raw, usable
from odesim.symbolic.system import System

ENDED = (Status.NON_FINITE, Status.BLOW_UP)
"""These say already that numbers there mean little."""
SINGULAR = (Status.STEP_TOO_SMALL, *ENDED)
"""These say that a singularity is where the run ends: x' = -1/x comes to its pole, and the last step may end just behind it.

A blow-up of a state on the wrong side of 0 is none of the solution: of y' = y (x - 1), below 0 by less than atol, what follows is wrong.
"""


def checked_run(parts: Parts, numbers: Numbers, start: Array, raw: Raw, layout: Layout, dtype: str, options: RunOptions) -> Raw:
    """A run from this start (n,), ended before it is first wrong unseen. layout: of its states."""

    def track() -> Track:
        """The known states: the first is the start."""
        y = np.vstack([on_host(start), on_host(raw.y), on_host(raw.y_last)])
        rows = {**layout.split(y), "t": np.hstack([numbers.t0, raw.t, raw.t_last])}
        return Track(parts.system, numbers, rows, rates_of(parts.system), divided, kept)

    divided, kept = parts.derived[looked_at]
    if raw.status not in ENDED and extreme((raw.y, raw.y_last, *numbers.params.values()), dtype):
        overflow = first_overflow(parts.system, numbers.sizes, numbers.params, track().rows, dtype)
        if overflow is not None:
            return _ended_at(raw, overflow[0] - 1, numbers, start, f"{overflow[1]}; what is before it is kept: {REMEDY}")
    if raw.status in SINGULAR:
        divided, kept = {}, kept if raw.status is Status.BLOW_UP else ()
    if not (kept or divided):
        return raw
    signed = False
    if kept and options.step is None:  # of fixed steps nobody says how far they may be off
        y, last, first = (raw.y, raw.y_last, start) if isinstance(raw.y, np.ndarray) else map(on_host, (raw.y, raw.y_last, start))
        below, saved = first < 0, raw.t.size and raw.t[-1] == raw.t_last
        signed = ((y < 0) != below).any() or (not saved and ((last < 0) != below).any())  # most often not, which is cheap to see
    if not (signed or divided):
        return raw
    states = track()
    wrong = first_unreachable(states, tolerances_of(options, layout, dtype) if signed else None)
    if wrong is None:
        return raw
    row, what, remedy = wrong
    where = f"between t = {states.rows['t'][row]:.9g} and {states.rows['t'][row + 1]:.9g} a step {what}"
    return _ended_at(raw, row, numbers, start, f"{where}: no solution does; what is before it is kept: {remedy}")


def rates_of(system: System) -> Callable[[Mapping[str, int], Mapping[str, Any]], Mapping[str, Any]]:
    """The right-hand side of a System on arrays, as a Track has it, made where it is first called."""
    return lambda sizes, values: parts_of(system, "numpy", "float64", False).compiled.arrays(sizes, values)


def tolerances_of(options: RunOptions, layout: Layout, dtype: str) -> Tolerances:
    """The tolerances of a run."""
    rtol, atol = usable(options, layout, dtype)
    return rtol, layout.split(np.broadcast_to(atol, layout.size))


def _ended_at(raw: Raw, row: int, numbers: Numbers, start: Array, message: str) -> Raw:
    """A run that ends as not a number at this one of its known states, the start (0, or before it) or a saved one."""
    if row > 0:
        t, y, t_last, y_last = raw.t[:row], raw.y[:row], float(raw.t[row - 1]), on_host(raw.y[row - 1])
    else:
        t_last, y_last = numbers.t0, on_host(start)
        t, y = np.array([t_last]), array_namespace(raw.y).asarray(y_last)[None]
    events = {name: each[: int(np.searchsorted(each.t, t_last, side="right"))] for name, each in raw.events.items()}
    return replace(raw, t=t, y=y, events=events, status=Status.NON_FINITE, message=message, t_last=t_last, y_last=y_last)


def check_members(
    request: EnsembleRequest, numbers: Numbers, chunk: Chunk, params: Mapping[str, Array], initial: Mapping[str, Array]
) -> None:
    """Ends members before they are first wrong unseen. params, initial: their own {name: (N, ...)}."""
    members, (divided, kept) = _Members(request, numbers, chunk, params, initial), looked_at(request.system)
    signed = bool(kept) and request.options.step is None
    tolerances = tolerances_of(request.options, request.layout, request.dtype) if signed else None

    def overflowing(track: Track, member: Array) -> dict[int, int]:
        bad = np.zeros(len(member), bool)
        for first, _, wrong, _ in overflows(request.system, numbers.sizes, numbers.params, track.rows, request.dtype):
            bad[first + np.flatnonzero(wrong)] = True
        return {i: int(np.argmax(bad[member == i])) - 1 for i in np.unique(member[bad]).tolist()}

    def unreachable(track: Track, member: Array) -> dict[int, int]:
        wrong = {}
        for i in suspects(track, member, tolerances):
            blown = chunk.status[i] == Status.BLOW_UP.number
            wrong[i] = first_unreachable(replace(track.of(member == i), divisors={} if blown else divided), tolerances)
        return {i: last[0] for i, last in wrong.items() if last is not None}

    members.end(extreme_members(request, numbers, chunk, params, initial), ENDED, overflowing)
    if divided or signed:
        members.end(np.ones(len(chunk.status), bool), SINGULAR[:-1] if signed else SINGULAR, unreachable)


@dataclass(frozen=True)
class _Members:
    """The members of a chunk; arguments as of check_members."""

    request: EnsembleRequest
    numbers: Numbers
    chunk: Chunk
    params: Mapping[str, Array]
    initial: Mapping[str, Array]

    def end(self, look: Array, ended: Collection[Status], last_right: Callable[[Track, Array], Mapping[int, int]]) -> None:
        """Ends those of the members `look` (N,) that are wrong, except where one of the statuses `ended` says so already.

        last_right(track, member): of the known states of some members, member (R,) being whose each is, {member that is wrong: the number
        of its last right state, or -1}.
        """
        request, names = self.request, {p.name for p in self.request.system.params}
        others = [UNDONE, *(s.number for s in (*ended, Status.INTERRUPTED))]
        chosen = np.flatnonzero(look & np.isin(self.chunk.status, others, invert=True))
        each = max(1, ROWS // (len(request.times) + 2))
        for first in range(0, len(chosen), each):
            members = chosen[first : first + each]
            y, t, known = self._states_of(members)
            who = np.repeat(members, known.sum(axis=1))
            rows = {**request.layout.split(y[known]), **{n: v[who] for n, v in self.params.items() if n in names}, "t": t[known]}
            for i, row in last_right(
                Track(request.system, self.numbers, rows, rates_of(request.system), *looked_at(request.system)), who
            ).items():
                mine = who == i
                self._end_one(i, float(t[known][mine][max(row, 0)]), y[known][mine][max(row, 0)])

    def _states_of(self, members: Array) -> tuple[Array, Array, Array]:
        """Of members (k,) the states (k, places, n) at the start, the saved times and the end, the times (k, places), which are known."""
        chunk, times, k, n = self.chunk, self.request.times, len(members), self.request.layout.size
        start, last = np.empty((k, n)), chunk.t_end[members][:, None]
        for name, view in self.request.layout.split(start).items():
            view[...] = self.initial[name][members] if name in self.initial else self.numbers.initial[name]
        ends = chunk.y_end[members] if chunk.y_end.size else np.full((k, n), np.nan)
        y = np.concatenate([start[:, None], np.asarray(on_host(chunk.y[members]), np.float64), ends[:, None]], axis=1)
        t = np.concatenate([np.full((k, 1), self.request.t0), np.broadcast_to(times, (k, len(times))), last], axis=1)
        return y, t, np.isfinite(y).all(axis=2) & np.isfinite(t)

    def _end_one(self, i: int, t_end: float, y_end: Array) -> None:
        """Ends member i as not a number at a time, with the state (n,) there."""
        chunk = self.chunk
        chunk.status[i], chunk.t_end[i] = Status.NON_FINITE.number, t_end
        chunk.y[i, int(np.searchsorted(self.request.times, t_end, side="right")) :] = np.nan
        if chunk.y_end.size:
            chunk.y_end[i] = y_end
        later = chunk.event_t[i] > t_end
        chunk.event_count[i] = np.where(later.any(axis=1), (chunk.event_t[i] <= t_end).sum(axis=1), chunk.event_count[i])
        chunk.event_t[i][later], chunk.event_index[i][later] = np.nan, -1
        chunk.blow_up[i] = np.nan
