"""Poles of the right-hand side that a step has passed over.

q' = -V q/(K + q) from q = 1 stays above 0. With K = 1e-9 every stage of a step from 1 to -1 sees -V: its error is 0, and q falls on for
ever. No solution comes to q = -K. This is looked at where states are known when a run is done, as overflows are: it costs a step nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import sympy as sp
from sympy import Expr, Indexed, Symbol

from odesim.base.arrays import Array
from odesim.base.memo import IdentityKey, Memo
from odesim.run.conditions import values
from odesim.run.problem import parts_of
from odesim.symbolic.indices import base_name
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
_DIVISORS: Memo[dict[Expr, dict[Symbol, Any]]] = Memo(32)


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

    def find() -> dict[Expr, dict[Symbol, Any]]:
        moved = {base_name(key) for event in system.events for key in event.resets}
        powers = {p for e in system.equations.values() for p in sp.preorder_traversal(e) if p.is_Pow and p.exp.is_integer}
        poles = {p.base for p in powers if p.exp.is_negative and not layers_in(p.base) and not (is_above(p.base) or is_above(-p.base))}
        bases = {e for e in poles if (read := names_read(e) & {*system.states}) and not read & moved}
        indices = {e: {i for a in e.atoms(Indexed) for place in a.indices for i in place.free_symbols & e.free_symbols} for e in bases}
        inside = sorted((e for e in bases if indices[e] <= {*system.axes}), key=sp.default_sort_key)
        return {e: {i: system.axes[i] for i in free_indices(e, {*system.axes})} for e in inside}

    return {} if system.discrete or system.noise else _DIVISORS(IdentityKey(system), find)


def crossings(
    system: System, sizes: Mapping[str, int], shared: Mapping[str, Any], rows: Mapping[str, Array]
) -> Iterator[tuple[Expr, Array]]:
    """Each divisor with its values (R, components) in R states. rows {name: (R, *shape)}: states, parameters that differ, times `t`."""
    for e, axes in divisors(system).items():  # each reads a state, which each of the rows has
        yield e, values(e, axes, sizes, shared, rows).reshape(len(rows["t"]), -1)


def _between(rows: Mapping[str, Array], moving: set[str], part: float) -> dict[str, Array]:
    """What is at this part of the way from one state to the next. rows {name: (2, *shape)}; moving: names of what differs."""
    return {name: v[0] + part * (v[1] - v[0]) if name in moving else v[0] for name, v in rows.items()}


def _zero(divisor: Callable[[float], float], d: tuple[float, float]) -> float:
    """The part of the way between two states at which a divisor, d at these, is 0: by halving, since it need not be affine."""
    # not by brentq of scipy, which ends where a divisor is not a number between them, as one with a pole of its own
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if divisor(middle) * d[0] > 0 else (low, middle)
    return (low + high) / 2


def _is_pole(
    system: System,
    sizes: Mapping[str, int],
    shared: Mapping[str, Any],
    rows: Mapping[str, Array],
    e: Expr,
    component: int,
    d: tuple[float, float],
) -> bool:
    """Whether the right-hand side has a pole between two states, at which a component of its divisor e is d. rows {name: (2, *shape)}."""
    rates = parts_of(system, "numpy", "float64", False).compiled.arrays
    moving, where = {*system.states, "t"}, d[0] / (d[0] - d[1])
    if not is_affine(system, e):

        def divisor(part: float) -> float:
            point = {name: np.asarray(v)[None] for name, v in _between(rows, moving, part).items()}
            return float(values(e, divisors(system)[e], sizes, shared, point).reshape(-1)[component])

        where = _zero(divisor, d)
    size = max(float(np.max(np.abs(rows[name]))) for name in names_read(e) & moving)
    beside = BESIDE * max(1.0, size / abs(d[0] - d[1]))

    def at(part: float) -> Array:
        every = rates(sizes, {**shared, **_between(rows, moving, part)})
        return np.concatenate([np.ravel(every[name]) for name in sorted(every) if name.startswith("d_")])

    with np.errstate(all="ignore"):
        ends = np.maximum(np.abs(at(0.0)), np.abs(at(1.0)))
        above, below = ([at(where + sign * by * beside) for by in (1, 10, 100)] for sign in (1, -1))
        odd, even = ([a + sign * b for a, b in zip(above, below, strict=True)] for sign in (-1, 1))
        # a constant beside the pole is in neither: it may be much larger
        growing = (odd[0], odd[1]), (even[0] - even[1], even[1] - even[2])
        return any(bool((np.abs(near) > np.maximum(FASTER * np.abs(far), ends)).any()) for near, far in growing)


def first_pole(system: System, sizes: Mapping[str, int], shared: Mapping[str, Any], rows: Mapping[str, Array]) -> tuple[int, Expr] | None:
    """The last of R states, in the order of time, before the first pole between two of them, and the divisor that is 0 there."""
    poles = []
    for e, d in crossings(system, sizes, shared, rows):
        if d.min(initial=np.inf) > 0 or d.max(initial=-np.inf) < 0:  # nearly always: half of what is left costs more than this
            continue
        for k, i in np.argwhere(np.sign(d[:-1]) * np.sign(d[1:]) < 0)[:MOST].tolist():
            two = {name: v[k : k + 2] for name, v in rows.items()}
            if _is_pole(system, sizes, shared, two, e, i, (float(d[k, i]), float(d[k + 1, i]))):
                poles.append((k, e))
                break
    return min(poles, key=lambda pole: pole[0]) if poles else None
