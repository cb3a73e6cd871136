"""States that a step has taken through a 0 that no solution leaves: q' = -q**2/(K**2 + q**2) stays above 0, and a step may not see K.

Where the rate of a state is 0 with the state, whatever the others are, and grows no faster than it, the state keeps its sign: q = 0 is the
one solution there. A run in which such a state has both signs, and much more of the second than its tolerance, is wrong since it crossed.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import sympy as sp
from sympy import Expr

from odesim.base.arrays import Array, Layout
from odesim.base.memo import IdentityKey, Memo
from odesim.run.problem import parts_of
from odesim.symbolic.indices import base_name
from odesim.symbolic.indices import time as clock
from odesim.symbolic.layered import layers_in, names_read
from odesim.symbolic.reductions import REDUCTIONS
from odesim.symbolic.system import System

MUCH = 100.0
"""So many tolerances beyond 0 are no error of steps about a state that fades: these are of one tolerance or a few."""
AGAIN = 10.0
"""So many tolerances are a number with a digit that should be right."""
BESIDE = 1e-50
"""Beside 0, and ten times that, the rate is looked at: no part of a formula is as small, and its fourth power is a number yet."""
FASTER = 9.0
"""How much more the rate is there at least: ten times where it is Lipschitz, 3.2 times for sqrt(q), whose solutions may leave 0."""
STILL_0 = (sp.Abs, sp.sin, sp.tan, sp.sinh, sp.tanh, sp.asin, sp.atan, sp.asinh, sp.erf)
_KEEPERS: Memo[tuple[str, ...]] = Memo(32)


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
    divisors = [p.base for p in e.atoms(sp.Pow) if not p.exp.is_nonnegative] + [sp.cos(p.args[0]) for p in e.atoms(sp.tan)]
    return any(names_read(d) & moving and not d.is_positive for d in divisors)


def keepers(system: System) -> tuple[str, ...]:
    """The states that keep their sign, as far as the forms of their rates show."""

    def keeps(name: str, key: Any, e: Expr) -> bool:
        others = {*system.states, clock.name} - {name}
        return not layers_in(e) and vanishes(e, key) and not may_be_infinite(e, others)

    def find() -> tuple[str, ...]:
        moved = {base_name(key) for event in system.events for key in event.resets}
        return tuple(n for key, e in system.equations.items() if e != 0 and (n := base_name(key)) not in moved and keeps(n, key, e))

    return () if system.discrete or system.noise else _KEEPERS(IdentityKey(system), find)


def beyond(y: Array, rtol: float, atol: Any) -> Array:
    """Which states (..., R, components), in the order of time, are beyond 0 as seen from the first by much more than the tolerance."""
    most = np.fmax.reduce(np.abs(y), axis=-2, keepdims=True)
    return np.asarray(y * np.sign(y[..., :1, :]) < -MUCH * (atol + rtol * most))


def by_state(system: System, y: Array, layout: Layout, atol: Any) -> Iterator[tuple[str, Array, Array]]:
    """The name of each state that keeps its sign, its numbers (..., R, components) in states y (..., R, n), and its tolerances."""
    tolerances = np.broadcast_to(atol, layout.size)
    for name, first, end in zip(layout.names, layout.offsets[:-1], layout.offsets[1:], strict=True):
        if name in keepers(system):
            yield name, y[..., first:end], tolerances[first:end]


def returned(system: System, y: Array, layout: Layout, atol: Any) -> dict[str, float]:
    """{state that keeps its sign: the least size, below its tolerance, from which a component grows to AGAIN tolerances}, y (..., R, n).

    What is below atol may be wrong in every digit, and a state whose rate is 0 with it grows in proportion to what it was there.
    """
    out = {}
    for name, mine, tolerances in by_state(system, y, layout, atol):
        size = np.abs(mine)
        least = np.minimum.accumulate(size, axis=-2)
        lost = (least > 0) & (least < tolerances) & (size > AGAIN * tolerances)
        if lost.any():
            out[name] = float(least[lost].min())
    return out


def first_crossing(
    system: System, sizes: Mapping[str, int], shared: Mapping[str, Any], rows: Mapping[str, Array], layout: Layout, rtol: float, atol: Any
) -> tuple[int, str] | None:
    """The last of R states, in the order of time, before a state that keeps its sign first has the other one, and its name."""
    crossings = []
    y = np.concatenate([rows[name].reshape(len(rows["t"]), -1) for name in layout.names], axis=1)
    for name, mine, tolerances in by_state(system, y, layout, atol):
        if (wrong := beyond(mine, rtol, tolerances)).any():
            k = int(np.argmax(wrong.any(axis=1)))
            i = int(np.argmax(wrong[k]))
            last = int(np.flatnonzero(mine[:k, i] * mine[0, i] > 0)[-1])
            two = {n: v[last : last + 2] for n, v in rows.items()}
            if _is_lipschitz(system, sizes, shared, two, name, i):
                crossings.append((last, name))
    return min(crossings) if crossings else None


def _is_lipschitz(
    system: System, sizes: Mapping[str, int], shared: Mapping[str, Any], rows: Mapping[str, Array], name: str, i: int
) -> bool:
    """Whether the rate of a component grows no faster than it, where it is 0 between two states. rows {name: (2, *shape)}."""
    (before, after), moving = rows[name].reshape(2, -1)[:, i], {*system.states, "t"}
    point = {n: v[0] + before / (before - after) * (v[1] - v[0]) if n in moving else v[0] for n, v in rows.items()}
    rates = parts_of(system, "numpy", "float64", False).compiled.arrays

    def at(size: float) -> float:
        point[name] = np.array(point[name], np.float64)
        point[name].reshape(-1)[i] = np.copysign(size, before)
        with np.errstate(all="ignore"):
            return abs(float(np.ravel(rates(sizes, {**shared, **point})[f"d_{name}"])[i]))

    return at(10 * BESIDE) >= FASTER * at(BESIDE)
