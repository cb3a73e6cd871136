"""States that keep their sign: no solution leaves their 0, and a step may go through it unseen.

q' = -q**2/(K**2 + q**2) stays above 0, and a step may not see K. Where the rate of a state is 0 with the state, whatever the others
are, and grows no faster than it, the state keeps its sign: q = 0 is the one solution there. A run in which such a state has both signs, and
much more of the second than its tolerance, is wrong since it crossed.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
import sympy as sp
from sympy import Expr

from odesim.base.arrays import Array, Layout
from odesim.run.track import Tolerances, Track, is_set
from odesim.symbolic.indices import base_name
from odesim.symbolic.indices import time as clock
from odesim.symbolic.layered import layers_in, names_read
from odesim.symbolic.reductions import REDUCTIONS
from odesim.symbolic.system import System

MUCH = 100.0
"""So many tolerances beyond 0 are no error of steps about a state that fades: these are of one tolerance or a few."""
AGAIN = 10.0
"""So many tolerances are a number with a digit that should be right."""
NEAR = 1e-50
"""Beside 0, and ten times that, the rate is looked at: no part of a formula is as small, and its fourth power is a number yet."""
LIPSCHITZ = 9.0
"""How much more the rate is there at least: ten times where it is Lipschitz, 3.2 times for sqrt(q), whose solutions may leave 0."""
STILL_0 = (sp.Abs, sp.sin, sp.tan, sp.sinh, sp.tanh, sp.asin, sp.atan, sp.asinh, sp.erf)


def vanishes(e: Expr, q: Any) -> bool:
    """Whether an expression is 0 where q is, as its form shows."""
    if e == q or e == 0:
        return True
    if isinstance(e, sp.Mul):
        return any(vanishes(a, q) for a in e.args)
    if isinstance(e, sp.Add | sp.Max | sp.Min):
        return all(vanishes(a, q) for a in e.args)
    if isinstance(e, sp.Pow):
        return bool(e.exp.is_positive) and vanishes(e.base, q)
    return isinstance(e, (*STILL_0, *REDUCTIONS[:1])) and vanishes(e.args[0], q)


def may_be_infinite(e: Expr, moving: set[str]) -> bool:
    """Whether a part of e may have a pole where what is moving passes a value: then a state may come to 0 with it, as x = 1 - t does."""
    bases = [p.base for p in e.atoms(sp.Pow) if not p.exp.is_nonnegative] + [sp.cos(p.args[0]) for p in e.atoms(sp.tan)]
    return any(names_read(d) & moving and not d.is_positive for d in bases)


def keepers(system: System) -> tuple[str, ...]:
    """The states that keep their sign, as far as the forms of their rates show."""

    def keeps(name: str, key: Any, e: Expr) -> bool:
        others = {*system.states, clock.name} - {name}
        return e != 0 and not layers_in(e) and vanishes(e, key) and not may_be_infinite(e, others)

    named = ((base_name(key), key, e) for key, e in system.equations.items())
    return tuple(name for name, key, e in named if name not in is_set(system) and keeps(name, key, e))


def first_crossing(track: Track, tolerances: Tolerances) -> tuple[int, str] | None:
    """The last state before one that keeps its sign first has the other one, and the name of that."""
    changes, (rtol, atol) = [], tolerances
    for name in track.keepers:
        y = track.rows[name].reshape(len(track.rows["t"]), -1)
        # beyond 0 as seen from the first by much more than the tolerance
        wrong = y * np.sign(y[0]) < -MUCH * (atol[name].ravel() + rtol * np.fmax.reduce(np.abs(y)))
        if wrong.any():
            k = int(np.argmax(wrong.any(axis=1)))
            i = int(np.argmax(wrong[k]))
            last = int(np.flatnonzero(y[:k, i] * y[0, i] > 0)[-1])
            if _is_lipschitz(track.of(slice(last, last + 2)), name, i):
                changes.append((last, name))
    return min(changes, default=None)


def _is_lipschitz(two: Track, name: str, i: int) -> bool:
    """Whether the rate of a component grows no faster than it, where it is 0 between two states."""
    before, after = two.rows[name].reshape(2, -1)[:, i]
    point = two.between(before / (before - after))

    def at(size: float) -> float:
        point[name] = np.array(point[name], np.float64)
        point[name].reshape(-1)[i] = np.copysign(size, before)
        return abs(float(np.ravel(two.rates(point)[f"d_{name}"])[i]))

    return at(10 * NEAR) >= LIPSCHITZ * at(NEAR)


def returned(keepers: Collection[str], y: Array, layout: Layout, atol: Any) -> dict[str, float]:
    """{state that keeps its sign: the least size, below its tolerance, from which a component grows to AGAIN tolerances}, y (..., R, n).

    What is below atol may be wrong in every digit, and a state whose rate is 0 with it grows in proportion to what it was there.
    """
    size, least_right = np.abs(y), np.asarray(atol, np.float64)
    least = np.minimum.accumulate(size, axis=-2)
    lost = (least > 0) & (least < least_right) & (size > AGAIN * least_right)
    if not lost.any():  # most often
        return {}
    of, where = layout.split(least), layout.split(lost)
    return {name: float(of[name][where[name]].min()) for name in keepers if where[name].any()}
