"""Poles between two known states of a run: a step may pass over one unseen.

q' = -V q/(K + q) from q = 1 stays above 0. With K = 1e-9 every stage of a step from 1 to -1 sees -V: its error is 0, and q falls on for
ever. No solution comes to q = -K.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp
from sympy import Expr, Indexed, Symbol

from odesim.base.arrays import Array
from odesim.run.track import Track, is_set
from odesim.symbolic.layered import layers_in, names_read
from odesim.symbolic.reductions import REDUCTIONS, free_indices
from odesim.symbolic.system import System
from odesim.transforms.events import is_affine

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
