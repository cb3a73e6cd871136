"""Runs and members whose right-hand side overflows unseen (odesim.targets.observe): they end where it was right, as not a number.

It is looked at where states are known when a run is done: at its start, its saved times and its end. That costs a step nothing, and misses
what overflows between two of them and comes back.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from odesim.base.arrays import Array, Layout, array_namespace, extreme, on_host
from odesim.base.errors import SpecError
from odesim.base.memo import IdentityKey, Memo
from odesim.ensembles.request import Chunk, EnsembleRequest
from odesim.inputs.bind import Numbers
from odesim.run.observables import extreme_members
from odesim.run.problem import parts_of
from odesim.stepper.codes import UNDONE, Status
from odesim.stepper.problem import Raw
from odesim.symbolic.system import System
from odesim.targets.observe import Wrong, wrong_values
from odesim.transforms.lanes import LANES, TIME, lane_system

ROWS = 4096
"""States that are looked at together."""
ENDED = (Status.BLOW_UP, Status.NON_FINITE)  # these say already that numbers there mean little
REMEDY = "take larger units, or write it otherwise"
_LANES: Memo[System | None] = Memo(32)


def first_overflow(
    system: System, sizes: Mapping[str, int], shared: Mapping[str, Any], per_member: Mapping[str, Array], dtype: str
) -> tuple[int, str] | None:
    """The first of R states in which the right-hand side overflows unseen, and what is wrong there; None if it is right in all.

    per_member {name: (R, *shape)}: states, and parameters that differ, with the times as `t` (R,); shared: other parameters.
    """
    first_rows = [
        (first + int(np.argmax(rows)), state, wrong) for first, state, rows, wrong in _overflows(system, sizes, shared, per_member, dtype)
    ]
    if not first_rows:
        return None
    row, state, wrong = min(first_rows, key=lambda each: each[0])
    at = np.unravel_index(int(np.argmax(wrong.where)), wrong.where.shape)
    here = {**shared, **{name: values[row] for name, values in per_member.items() if name != "t"}}
    sizes_of = {n: float(np.max(np.abs(value), initial=0.0)) for n, value in here.items()}
    name = max(sizes_of, key=lambda n: sizes_of[n])
    if not extreme((sizes_of[name],), dtype):  # it is too small
        name = next((n for n, value in here.items() if extreme((value,), dtype)), name)
    what = f"{name} = {sizes_of[name]:g} overflows in the right-hand side of {state}"
    return row, f"{what}: at t = {per_member['t'][row]:.9g} it is {wrong.values[at]:g} in {dtype}, right {wrong.right[at]:g}"


def _overflows(
    system: System, sizes: Mapping[str, int], shared: Mapping[str, Any], per_member: Mapping[str, Array], dtype: str
) -> Iterator[tuple[int, str, Array, Wrong]]:
    """(first, state, which rows (k,) from there are wrong, and how the first of these is), part by part of R."""
    names, count = {str(name) for name in system.states}, len(per_member["t"])
    differing = tuple(name for name in per_member if name not in names and name != "t")

    def in_lanes() -> System | None:
        try:
            return lane_system(system, differing)
        except SpecError:
            return None

    wide = _LANES((IdentityKey(system), differing), in_lanes)
    rates = parts_of(wide or system, "numpy", dtype, False).compiled.arrays
    # layers, maps, and whole numbers of a member's own have no lanes: one after another
    for first in range(0, count, ROWS if wide else 1):
        rows = {name: values[first : first + (ROWS if wide else 1)] for name, values in per_member.items()}
        k = len(rows["t"])
        if wide:
            rows = {TIME if name == "t" else name: np.moveaxis(values, 0, -1) for name, values in rows.items()}
        else:
            rows = {name: values[0] for name, values in rows.items()}
        for name, wrong in wrong_values(rates, {**sizes, LANES: k}, {**shared, **rows}, dtype).items():
            by_row = Wrong(*(np.moveaxis(x, -1, 0) if wide else x[None] for x in wrong))
            bad = np.asarray(by_row.where.reshape(k, -1).any(axis=1))
            yield first, name.removeprefix("d_"), bad, Wrong(*(x[np.argmax(bad)] for x in by_row))


def run_without_overflow(system: System, numbers: Numbers, raw: Raw, layout: Layout, dtype: str) -> Raw:
    """A run, ended before the first state at which its right-hand side overflows unseen. layout: of its states."""
    if raw.status in ENDED:
        return raw
    rows, times = np.concatenate([on_host(raw.y), on_host(raw.y_last)[None]]), np.append(raw.t, raw.t_last)
    states = layout.split(rows)
    overflow = first_overflow(system, numbers.sizes, numbers.params, {**states, "t": times}, dtype)
    if overflow is None:
        return raw
    return ended_at(raw, overflow[0] - 1, numbers, layout, dtype, f"{overflow[1]}; what is before it is kept: {REMEDY}")


def ended_at(raw: Raw, last: int, numbers: Numbers, layout: Layout, dtype: str, message: str) -> Raw:
    """A run that ends as not a number at this one of its saved times, or at its start (-1)."""
    t_last = float(raw.t[last]) if last >= 0 else numbers.t0
    y_last = on_host(raw.y[last]) if last >= 0 else layout.join(numbers.initial, dtype)
    t, y = (raw.t[: last + 1], raw.y[: last + 1]) if last >= 0 else (np.array([t_last]), array_namespace(raw.y).asarray(y_last)[None])
    events = {name: each[: int(np.searchsorted(each.t, t_last, side="right"))] for name, each in raw.events.items()}
    return replace(raw, t=t, y=y, events=events, status=Status.NON_FINITE, message=message, t_last=t_last, y_last=y_last)


def end_overflows(
    request: EnsembleRequest, numbers: Numbers, chunk: Chunk, params: Mapping[str, Array], initial: Mapping[str, Array]
) -> None:
    """Ends members before the first state at which their right-hand side overflows unseen. params, initial: their own {name: (N, ...)}."""
    look = extreme_members(request, numbers, chunk, params, initial)
    look &= np.isin(chunk.status, [UNDONE, *(s.number for s in (*ENDED, Status.INTERRUPTED))], invert=True)
    chosen, times = np.flatnonzero(look), request.times
    each = max(1, ROWS // (len(times) + 2))
    for first in range(0, len(chosen), each):
        _end_some(request, numbers, chunk, chosen[first : first + each], params, initial)


def _end_some(
    request: EnsembleRequest, numbers: Numbers, chunk: Chunk, members: Array, params: Mapping[str, Array], initial: Mapping[str, Array]
) -> None:
    """Ends those of these members (k,) that overflow."""
    layout, (y, t, known) = request.layout, states_of(request, numbers, chunk, members, initial)
    member, place = np.nonzero(known)
    names = {p.name for p in request.system.params}
    per_member = {name: values[members[member]] for name, values in params.items() if name in names}
    bad = np.zeros(known.shape, bool)
    states = layout.split(y[member, place])
    for first, _, rows, _ in _overflows(
        request.system, numbers.sizes, numbers.params, {**states, **per_member, "t": t[member, place]}, request.dtype
    ):
        at = first + np.flatnonzero(rows)
        bad[member[at], place[at]] = True
    for row in np.flatnonzero(bad.any(axis=1)).tolist():
        before = np.flatnonzero(known[row, : np.argmax(bad[row])])
        end_member(
            request,
            chunk,
            int(members[row]),
            *((float(t[row, before[-1]]), y[row, before[-1]]) if len(before) else (request.t0, y[row, 0])),
        )


def states_of(
    request: EnsembleRequest, numbers: Numbers, chunk: Chunk, members: Array, initial: Mapping[str, Array]
) -> tuple[Array, Array, Array]:
    """Of members (k,) the states (k, places, n) at the start, the saved times and the end, the times (k, places), which are known."""
    layout, k, last = request.layout, len(members), request.times <= chunk.t_end[members][:, None]
    start = np.empty((k, layout.size))
    for name, view in layout.split(start).items():
        view[...] = initial[name][members] if name in initial else numbers.initial[name]
    ends = chunk.y_end[members] if chunk.y_end.size else np.full((k, layout.size), np.nan)
    y = np.concatenate([start[:, None], np.asarray(on_host(chunk.y[members]), np.float64), ends[:, None]], axis=1)
    t = np.concatenate([np.full((k, 1), request.t0), np.broadcast_to(request.times, last.shape), chunk.t_end[members][:, None]], axis=1)
    return y, t, np.isfinite(y).all(axis=2) & np.isfinite(t)


def end_member(request: EnsembleRequest, chunk: Chunk, i: int, t_end: float, y_end: Array) -> None:
    """Ends member i as not a number at a time, with the state (n,) there."""
    chunk.status[i], chunk.t_end[i] = Status.NON_FINITE.number, t_end
    chunk.y[i, int(np.searchsorted(request.times, t_end, side="right")) :] = np.nan
    if chunk.y_end.size:
        chunk.y_end[i] = y_end
    later = chunk.event_t[i] > t_end
    chunk.event_count[i] = np.where(later.any(axis=1), (chunk.event_t[i] <= t_end).sum(axis=1), chunk.event_count[i])
    chunk.event_t[i][later], chunk.event_index[i][later] = np.nan, -1
    chunk.blow_up[i] = np.nan
