"""Known states to which no solution comes: a step has passed over a pole (poles.py), or through a 0 that no solution leaves (signs.py)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from odesim.base.arrays import Array
from odesim.base.memo import IdentityKey, Memo
from odesim.run.poles import divisors, first_pole
from odesim.run.signs import MUCH, first_crossing, keepers
from odesim.run.track import Tolerances, Track
from odesim.symbolic.layered import names_read
from odesim.symbolic.system import System

Looked = tuple[Mapping[Expr, Mapping[Symbol, Any]], tuple[str, ...]]
"""The divisors of a right-hand side that may be 0, {divisor: its axes}, and the states that keep their sign, as the forms show."""
_LOOKED_AT: Memo[Looked] = Memo(32)


def looked_at(system: System) -> Looked:
    """What is looked at in runs of a System, found once a process."""
    if system.discrete or system.noise:
        return {}, ()
    return _LOOKED_AT(IdentityKey(system), lambda: (divisors(system), keepers(system)))


def first_unreachable(track: Track, tolerances: Tolerances | None) -> tuple[int, str, str] | None:
    """The last state of one run before the first to which no solution comes, what a step did there, and a remedy.

    tolerances: how far a state may be beyond 0; None where signs are not looked at.
    """
    wrong = list[tuple[int, str, str]]()
    if (pole := first_pole(track)) is not None:
        states = ", ".join(sorted(names_read(pole[1]) & {*track.system.states}))
        what = f"passed over a pole of the right-hand side, where {pole[1]} = 0"
        wrong.append((pole[0], what, f"limit max_step, or write Max(x, 0) for a state x ({states}) that is never negative"))
    if tolerances is not None and (crossing := first_crossing(track, tolerances)) is not None:
        remedy = "limit max_step, take a smaller atol, or write Max({0}, 0) for {0} if it is never negative".format(crossing[1])
        wrong.append((crossing[0], f"took {crossing[1]} through 0, where its rate is 0 too", remedy))
    return min(wrong, key=lambda each: each[0], default=None)


def suspects(track: Track, member: Array, tolerances: Tolerances | None) -> list[int]:
    """The members of which a divisor has both signs, or a state that keeps its sign; member (R,): whose state each is."""
    crossed, (ids, place) = set[int](), np.unique(member, return_inverse=True)
    for e in track.divisors:
        d = track.values(e)
        seen = np.zeros((2, len(ids), d.shape[1]), bool)
        for there, sign in zip(seen, (1, -1), strict=True):
            np.logical_or.at(there, place, sign * d > 0)
        crossed.update(ids[seen.all(axis=0).max(axis=1, initial=False)].tolist())
    starts = np.searchsorted(member, member)
    for name, atol in tolerances[1].items() if tolerances else ():
        if name in track.keepers:
            y = track.rows[name].reshape(len(member), -1)
            crossed.update(member[(y * np.sign(y[starts]) < -MUCH * atol.ravel()).any(axis=1)].tolist())
    return sorted(crossed)
