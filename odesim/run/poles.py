"""Runs and members that a step has taken over a pole of the right-hand side: they end before it, as not a number.

q' = -V q/(K + q) from q = 1 stays above 0. With K = 1e-9 every stage of a step from 1 to -1 sees -V: its error is 0, and q falls on for
ever. No solution comes to q = -K. This is looked at where states are known when a run is done, as overflows are: it costs a step nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import sympy as sp
from sympy import Expr, Indexed, Symbol

from odesim.base.arrays import Array, Layout, on_host
from odesim.base.memo import IdentityKey, Memo
from odesim.ensembles.request import Chunk, EnsembleRequest
from odesim.inputs.bind import Numbers
from odesim.run.conditions import values
from odesim.run.overflow import ENDED, ROWS, end_member, ended_at, states_of
from odesim.run.problem import parts_of
from odesim.stepper.codes import UNDONE, Status
from odesim.stepper.problem import Raw
from odesim.symbolic.indices import base_name
from odesim.symbolic.layered import names_read
from odesim.symbolic.reductions import free_indices
from odesim.symbolic.system import System
from odesim.transforms.conditions import may_be_pole
from odesim.transforms.events import is_affine

BESIDE = 1e-13
"""Part of the way between two states, from where a divisor is 0, at which the right-hand side is looked at; and at ten times that."""
FASTER = 5.0
"""How much more it differs there on both sides: ten times at a pole, nothing where a factor is 0 too, as in 0/x."""
MOST = 64
"""Changes of sign of one divisor that are looked at: each costs four right-hand sides, and large systems may have as many as states."""
HALVINGS = 52
"""Of the way between two states, to its last bit."""
_DIVISORS: Memo[dict[Expr, dict[Symbol, Any]]] = Memo(32)


def divisors(system: System) -> dict[Expr, dict[Symbol, Any]]:
    """{divisor in the right-hand side that reads states: its axes}; without those that have a sign, or that resets move."""

    def find() -> dict[Expr, dict[Symbol, Any]]:
        moved = {base_name(key) for event in system.events for key in event.resets}
        powers = [p for e in system.equations.values() for p in sp.preorder_traversal(e) if p.is_Pow and may_be_pole(p)]
        bases = {e for e in {p.base for p in powers} if (read := names_read(e) & {*system.states}) and not read & moved}
        indices = {e: {i for a in e.atoms(Indexed) for place in a.indices for i in place.free_symbols} for e in bases}
        inside = sorted((e for e in bases if indices[e] <= {*system.axes}), key=sp.default_sort_key)
        return {e: {i: system.axes[i] for i in free_indices(e, {*system.axes})} for e in inside}

    return {} if system.discrete or system.noise else _DIVISORS(IdentityKey(system), find)


def _crossings(
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
        far, near = (np.abs(at(where + part) - at(where - part)) for part in (10 * beside, beside))
        return bool((near > np.maximum(FASTER * far, np.maximum(np.abs(at(0.0)), np.abs(at(1.0))))).any())


def first_pole(system: System, sizes: Mapping[str, int], shared: Mapping[str, Any], rows: Mapping[str, Array]) -> tuple[int, Expr] | None:
    """The last of R states, in the order of time, before the first pole between two of them, and the divisor that is 0 there."""
    poles = []
    for e, d in _crossings(system, sizes, shared, rows):
        if d.min(initial=np.inf) > 0 or d.max(initial=-np.inf) < 0:  # nearly always: half of what is left costs more than this
            continue
        for k, i in np.argwhere(np.sign(d[:-1]) * np.sign(d[1:]) < 0)[:MOST].tolist():
            two = {name: v[k : k + 2] for name, v in rows.items()}
            if _is_pole(system, sizes, shared, two, e, i, (float(d[k, i]), float(d[k + 1, i]))):
                poles.append((k, e))
                break
    return min(poles, key=lambda pole: pole[0]) if poles else None


def run_before_poles(system: System, numbers: Numbers, raw: Raw, layout: Layout, dtype: str) -> Raw:
    """A run, ended before the first pole of its right-hand side that it has passed over. layout: of its states."""
    if raw.status in ENDED or not divisors(system):
        return raw
    start = layout.join(numbers.initial, dtype)
    rows, times = np.vstack([start, on_host(raw.y), on_host(raw.y_last)]), np.hstack([numbers.t0, raw.t, raw.t_last])
    pole = first_pole(system, numbers.sizes, numbers.params, {**layout.split(rows), "t": times})
    if pole is None:
        return raw
    last, e = pole
    states = ", ".join(sorted(names_read(e) & {*system.states}))
    what = f"between t = {times[last]:.9g} and {times[last + 1]:.9g} a step passed over a pole of the right-hand side, where {e} = 0"
    remedy = (
        f"no solution does; what is before it is kept: limit max_step, or write Max(x, 0) for a state x ({states}) that is never negative"
    )
    return ended_at(raw, last - 1, numbers, layout, dtype, f"{what}: {remedy}")


def end_before_poles(
    request: EnsembleRequest, numbers: Numbers, chunk: Chunk, params: Mapping[str, Array], initial: Mapping[str, Array]
) -> None:
    """Ends members before the first pole of their right-hand side. params, initial: their own {name: (N, ...)}."""
    if not divisors(request.system):
        return
    names = {p.name for p in request.system.params}
    chosen = np.flatnonzero(np.isin(chunk.status, [UNDONE, *(s.number for s in (*ENDED, Status.INTERRUPTED))], invert=True))
    each = max(1, ROWS // (len(request.times) + 2))
    for first in range(0, len(chosen), each):
        members = chosen[first : first + each]
        y, t, known = states_of(request, numbers, chunk, members, initial)
        member, place = np.nonzero(known)
        rows = {**request.layout.split(y[member, place]), **{n: v[members[member]] for n, v in params.items() if n in names}}
        rows["t"] = t[member, place]
        both = np.zeros(len(members), bool)
        for _, d in _crossings(request.system, numbers.sizes, numbers.params, rows):
            seen = [np.zeros((len(members), d.shape[1]), bool) for _ in range(2)]
            for there, sign in zip(seen, (1, -1), strict=True):
                np.logical_or.at(there, member, sign * d > 0)
            both |= (seen[0] & seen[1]).any(axis=1)
        for k in np.flatnonzero(both).tolist():
            mine = {name: v[member == k] for name, v in rows.items()}
            pole = first_pole(request.system, numbers.sizes, numbers.params, mine)
            if pole is not None:
                end_member(request, chunk, int(members[k]), float(mine["t"][pole[0]]), y[k][known[k]][pole[0]])
