"""Runs and members that a step has taken to where no solution comes: they end before it, as not a number.

That is over a pole of the right-hand side (odesim.run.poles), or a state to the other side of a 0 that it cannot leave (odesim.run.signs).
This is looked at where states are known when a run is done, as overflows are: it costs a step nothing.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from odesim.base.arrays import Array, Layout, on_host
from odesim.base.memo import IdentityKey, Memo
from odesim.base.options import RunOptions
from odesim.ensembles.request import Chunk, EnsembleRequest
from odesim.inputs.bind import Numbers
from odesim.run.overflow import ROWS, end_member, ended_at, states_of
from odesim.run.poles import crossings, divisors, first_pole
from odesim.run.signs import beyond, by_state, first_crossing, keepers
from odesim.stepper.codes import UNDONE, Status
from odesim.stepper.problem import Raw, usable
from odesim.symbolic.layered import names_read
from odesim.symbolic.system import System

ENDED = (Status.BLOW_UP, Status.NON_FINITE, Status.STEP_TOO_SMALL)
"""These say already that a singularity is where the run ends: x' = -1/x comes to its pole, and the last step may end just behind it.

A blow-up of a state on the wrong side of 0 is none of the solution: of y' = y (x - 1), below 0 by less than atol, what follows is wrong.
"""
_LOOKED_AT: Memo[tuple[bool, bool]] = Memo(32)


def looked_at(system: System) -> tuple[bool, bool]:
    """Whether the right-hand side has divisors that may be 0, and whether some states keep their sign."""
    return _LOOKED_AT(IdentityKey(system), lambda: (bool(divisors(system)), bool(keepers(system))))


def _first(
    system: System, numbers: Numbers, rows: Mapping[str, Array], layout: Layout, tolerances: tuple[float, Any] | None, *, poles: bool
) -> tuple[int, str, str] | None:
    """The last of R states before the first that no solution comes to, what a step did there, and a remedy. rows {name: (R, *shape)}."""
    found = []
    if poles and (pole := first_pole(system, numbers.sizes, numbers.params, rows)) is not None:
        states = ", ".join(sorted(names_read(pole[1]) & {*system.states}))
        what = f"passed over a pole of the right-hand side, where {pole[1]} = 0"
        found.append((pole[0], what, f"limit max_step, or write Max(x, 0) for a state x ({states}) that is never negative"))
    if tolerances is not None:
        crossing = first_crossing(system, numbers.sizes, numbers.params, rows, layout, *tolerances)
        if crossing is not None:
            remedy = "limit max_step, take a smaller atol, or write Max({0}, 0) for {0} if it is never negative".format(crossing[1])
            found.append((crossing[0], f"took {crossing[1]} through 0, where its rate is 0 too", remedy))
    return min(found, key=lambda each: each[0], default=None)


def run_where_solutions_are(
    system: System, numbers: Numbers, start: Array, raw: Raw, layout: Layout, dtype: str, options: RunOptions
) -> Raw:
    """A run from this start (n,), ended before it first comes to where no solution does. layout: of its states."""
    divided, signed = looked_at(system)
    divided, signed = divided and raw.status not in ENDED, signed and raw.status not in ENDED[1:]
    if not (signed or divided):
        return raw
    y, last = raw.y, raw.y_last
    if not isinstance(y, np.ndarray):
        y, last, start = on_host(y), on_host(last), on_host(start)
    if signed:  # most often none has another sign, which costs little to see. Of fixed steps nobody says how far they may be off
        saved = raw.t.size and raw.t[-1] == raw.t_last
        signed = options.step is None and (((y < 0) != (start < 0)).any() or (not saved and ((last < 0) != (start < 0)).any()))
    if not (signed or divided):
        return raw
    y, times = np.vstack([start, y, last]), np.hstack([numbers.t0, raw.t, raw.t_last])
    tolerances = usable(options, layout, dtype) if signed else None
    wrong = _first(system, numbers, {**layout.split(y), "t": times}, layout, tolerances, poles=divided)
    if wrong is None:
        return raw
    row, what, remedy = wrong
    where = f"between t = {times[row]:.9g} and {times[row + 1]:.9g} a step {what}"
    return ended_at(raw, row - 1, numbers, layout, dtype, f"{where}: no solution does; what is before it is kept: {remedy}")


def end_where_no_solutions_are(
    request: EnsembleRequest, numbers: Numbers, chunk: Chunk, params: Mapping[str, Array], initial: Mapping[str, Array]
) -> None:
    """Ends members before they first come to where no solution does. params, initial: their own {name: (N, ...)}."""
    system, layout = request.system, request.layout
    divided, signed = looked_at(system)
    tolerances = usable(request.options, layout, request.dtype) if signed and request.options.step is None else None
    if not (divided or tolerances):
        return
    names = {p.name for p in system.params}
    skipped = (*ENDED[1:], Status.INTERRUPTED) if tolerances else (*ENDED, Status.INTERRUPTED)
    chosen = np.flatnonzero(np.isin(chunk.status, [UNDONE, *(s.number for s in skipped)], invert=True))
    each = max(1, ROWS // (len(request.times) + 2))
    for first in range(0, len(chosen), each):
        members = chosen[first : first + each]
        y, t, known = states_of(request, numbers, chunk, members, initial)
        member, place = np.nonzero(known)
        rows = {**layout.split(y[member, place]), **{n: v[members[member]] for n, v in params.items() if n in names}}
        rows["t"] = t[member, place]
        suspect = np.zeros(len(members), bool)
        for _, d in crossings(system, numbers.sizes, numbers.params, rows):
            seen = [np.zeros((len(members), d.shape[1]), bool) for _ in range(2)]
            for there, sign in zip(seen, (1, -1), strict=True):
                np.logical_or.at(there, member, sign * d > 0)
            suspect |= (seen[0] & seen[1]).any(axis=1)
        rtol, each_atol = tolerances or (0.0, 0.0)
        for _, mine, atol in by_state(system, y, layout, each_atol) if tolerances else ():
            suspect |= beyond(mine, rtol, atol).any(axis=(1, 2))
        for k in np.flatnonzero(suspect).tolist():
            own = {name: v[member == k] for name, v in rows.items()}
            blown = chunk.status[members[k]] == Status.BLOW_UP.number
            wrong = _first(system, numbers, own, layout, tolerances, poles=not blown)
            if wrong is not None:
                end_member(request, chunk, int(members[k]), float(own["t"][wrong[0]]), y[k][known[k]][wrong[0]])
