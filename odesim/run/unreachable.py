"""Known states to which no solution comes: a step has passed over a pole of the right-hand side, or through a 0 that no solution leaves.

q' = -V q/(K + q) from q = 1 stays above 0. With K = 1e-9 every stage of a step from 1 to -1 sees -V: its error is 0, and q falls on for
ever. No solution comes to q = -K.

q' = -q**2/(K**2 + q**2) stays above 0 too, and a step may not see K. Where the rate of a state is 0 with the state, whatever the others
are, and grows no faster than it, the state keeps its sign: q = 0 is the one solution there. A run in which such a state has both signs, and
much more of the second than its tolerance, is wrong since it crossed.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy as sp
from sympy import Expr, Indexed, Symbol

from odesim.base.arrays import Array, Layout
from odesim.base.memo import IdentityKey, Memo
from odesim.inputs.bind import Numbers
from odesim.run.conditions import values
from odesim.symbolic.indices import base_name
from odesim.symbolic.indices import time as clock
from odesim.symbolic.layered import layers_in, names_read
from odesim.symbolic.reductions import REDUCTIONS, free_indices
from odesim.symbolic.system import System
from odesim.transforms.events import is_affine

Tolerances = tuple[float, Mapping[str, Array]]
"""rtol, and atol by state."""

Looked = tuple[Mapping[Expr, Mapping[Symbol, Any]], tuple[str, ...]]
"""The divisors of a right-hand side that may be 0, {divisor: its axes}, and the states that keep their sign, as the forms show."""
_LOOKED_AT: Memo[Looked] = Memo(32)


def looked_at(system: System) -> Looked:
    """What is looked at in runs of a System, found once a process."""
    if system.discrete or system.noise:
        return {}, ()
    return _LOOKED_AT(IdentityKey(system), lambda: (divisors(system), keepers(system)))


@dataclass(frozen=True)
class Track:
    """R known states along a run, or along several, one after another.

    rows {name: (R, *shape)}: states, times `t`, and parameters that differ between runs; numbers: sizes and other parameters.
    arrays(sizes, values): the right-hand side, {d_<state>: its rate}. divisors, keepers: what is looked at.
    """

    system: System
    numbers: Numbers
    rows: Mapping[str, Array]
    arrays: Callable[[Mapping[str, int], Mapping[str, Any]], Mapping[str, Any]]
    divisors: Mapping[Expr, Mapping[Symbol, Any]]
    keepers: tuple[str, ...]

    def of(self, some: Array | slice) -> "Track":
        """Some of the states."""
        return replace(self, rows={name: values[some] for name, values in self.rows.items()})

    @property
    def moving(self) -> set[str]:
        """The names of what changes along a run."""
        return {*self.system.states, "t"}

    def between(self, part: float) -> dict[str, Any]:
        """What is at this part of the straight way from the first state to the next."""
        return {name: v[0] + part * (v[1] - v[0]) if name in self.moving else v[0] for name, v in self.rows.items()}

    def rates(self, point: Mapping[str, Any]) -> Mapping[str, Any]:
        """{d_<state>: its rate} at such a point."""
        with np.errstate(all="ignore"):
            return self.arrays(self.numbers.sizes, {**self.numbers.params, **point})

    def values(self, e: Expr) -> Array:
        """The components (R, components) of a divisor."""
        return values(e, self.divisors[e], self.numbers.sizes, self.numbers.params, self.rows).reshape(len(self.rows["t"]), -1)


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


def is_set(system: System) -> set[str]:
    """The states that events set, to any number."""
    return {base_name(key) for event in system.events for key in event.resets}


# Poles.

BESIDE = 1e-13
"""Part of the way between two states, from where a divisor is 0, at which the right-hand side is looked at; and at ten times that."""
FASTER = 5.0
"""How much more it differs there: ten times at a pole of order 1, nothing where a factor is 0 too, as in 0/x."""
MOST = 64
"""Changes of sign of one divisor that are looked at: each costs four right-hand sides, and large systems may have as many as states."""
HALVINGS = 52
"""Of the way between two states, to its last bit."""


def is_above(e: Any) -> bool:
    """Whether an expression is never below 0, as its form shows: sums of what is positive, as a softmax divides by, are not."""
    if isinstance(e, REDUCTIONS):
        return is_above(e.args[0])
    if isinstance(e, sp.Add | sp.Mul):
        return all(map(is_above, e.args))
    if e.is_Pow and not e.exp.is_even:
        return is_above(e.base)
    return isinstance(e, sp.Pow | sp.exp) or bool(e.is_nonnegative)  # elements of arrays are real, which sympy does not know


def divisors(system: System) -> dict[Expr, dict[Symbol, Any]]:
    """{divisor in the right-hand side that reads states: its axes}; without those that have a sign, or that resets move."""
    powers = {p for e in system.equations.values() for p in sp.preorder_traversal(e) if p.is_Pow and p.exp.is_integer}
    poles = {p.base for p in powers if p.exp.is_negative and not layers_in(p.base) and not (is_above(p.base) or is_above(-p.base))}
    bases = {e for e in poles if (read := names_read(e) & {*system.states}) and not read & is_set(system)}
    indices = {e: {i for a in e.atoms(Indexed) for place in a.indices for i in place.free_symbols & e.free_symbols} for e in bases}
    inside = sorted((e for e in bases if indices[e] <= {*system.axes}), key=sp.default_sort_key)
    return {e: {i: system.axes[i] for i in free_indices(e, {*system.axes})} for e in inside}


def first_pole(track: Track) -> tuple[int, Expr] | None:
    """The last state before the first pole between two of them, and the divisor that is 0 there."""
    poles = []
    for e in track.divisors:
        d = track.values(e)
        if d.min(initial=np.inf) > 0 or d.max(initial=-np.inf) < 0:  # nearly always: half of what is left costs more than this
            continue
        for k, i in np.argwhere(np.sign(d[:-1]) * np.sign(d[1:]) < 0)[:MOST].tolist():
            if _is_pole(track.of(slice(k, k + 2)), e, i, (float(d[k, i]), float(d[k + 1, i]))):
                poles.append((k, e))
                break
    return min(poles, key=lambda pole: pole[0]) if poles else None


def _is_pole(two: Track, e: Expr, component: int, d: tuple[float, float]) -> bool:
    """Whether the right-hand side has a pole between two states, at which a component of its divisor e is d."""
    where = d[0] / (d[0] - d[1]) if is_affine(two.system, e) else _zero(two, e, component, d)
    size = max(float(np.max(np.abs(two.rows[name]))) for name in names_read(e) & two.moving)
    beside = BESIDE * max(1.0, size / abs(d[0] - d[1]))

    def at(part: float) -> Array:
        every = two.rates(two.between(part))
        return np.concatenate([np.ravel(every[name]) for name in sorted(every) if name.startswith("d_")])

    with np.errstate(all="ignore"):
        ends = np.maximum(np.abs(at(0.0)), np.abs(at(1.0)))
        above, below = ([at(where + sign * by * beside) for by in (1, 10, 100)] for sign in (1, -1))
        odd, even = ([a + sign * b for a, b in zip(above, below, strict=True)] for sign in (-1, 1))
        # a constant beside the pole is in neither: it may be much larger
        growing = (odd[0], odd[1]), (even[0] - even[1], even[1] - even[2])
        return any(bool((np.abs(near) > np.maximum(FASTER * np.abs(far), ends)).any()) for near, far in growing)


def _zero(two: Track, e: Expr, component: int, d: tuple[float, float]) -> float:
    """The part of the way at which a component of a divisor, d at two states, is 0: by halving, since it need not be affine."""
    # not by brentq of scipy, which ends where a divisor is not a number between them, as one with a pole of its own
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        there = replace(two, rows={name: np.asarray(v)[None] for name, v in two.between(middle).items()})
        low, high = (middle, high) if float(there.values(e)[0, component]) * d[0] > 0 else (low, middle)
    return (low + high) / 2


# Signs.

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
    out, tolerances = {}, layout.split(np.broadcast_to(atol, layout.size))
    for name in keepers:
        size, least_right = np.abs(layout.split(y)[name]).reshape(*y.shape[:-1], -1), tolerances[name].ravel()
        least = np.minimum.accumulate(size, axis=-2)
        lost = (least > 0) & (least < least_right) & (size > AGAIN * least_right)
        if lost.any():
            out[name] = float(least[lost].min())
    return out
