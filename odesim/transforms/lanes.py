"""The System of several members side by side: every state, and what differs between members, has one more axis, the last one."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, Symbol

from odesim.base.errors import SpecError
from odesim.symbolic.definition import all_names
from odesim.symbolic.indices import IndexedBase, base_name, index, sizes, time
from odesim.symbolic.layered import layers_in
from odesim.symbolic.parts import Key, key_indices
from odesim.symbolic.system import System

# The last axis: members lie beside each other in memory, and the innermost loop of every statement is a vector over them.
LANES = "n_lanes"
"""The size of the last axis."""
TIME = "t_lanes"
"""The state that holds the times of members, where the right-hand side reads the time."""
(LANE,), (COUNT,) = index("l_lanes"), sizes(LANES)
CLOCK = IndexedBase(TIME, shape=(COUNT,))
NAMES = {LANES, TIME, LANE.name}


def is_lane(extent: Any) -> bool:
    """Whether an axis of this extent is that of members."""
    return isinstance(extent, Symbol) and extent.name == LANES


@dataclass(frozen=True)
class Lanes:
    """Expressions with an index for the lane wherever a member has numbers of its own. shapes: of these arrays, without the lane."""

    shapes: Mapping[str, tuple[Any, ...]]

    def key(self, name: str, indices: tuple[Any, ...]) -> Key:
        """An element of such an array in the lane."""
        return IndexedBase(name, shape=(*self.shapes[name], COUNT))[(*indices, LANE)]

    def __call__(self, e: Expr) -> Expr:
        """v[i]*x + t  ->  v[i, l_lanes]*x + t_lanes[l_lanes]"""
        swap: dict[Any, Any] = {a: self.key(base_name(a), tuple(a.indices)) for a in e.atoms(Indexed) if base_name(a) in self.shapes}
        swap |= {s: self.key(s.name, ()) for s in e.atoms(Symbol) if s.name in self.shapes and not self.shapes[s.name]}
        swap |= {time: CLOCK[LANE]} if e.has(time) else {}
        return e.xreplace(swap)


def lane_system(system: System, differing: Collection[str]) -> System:
    """The System of LANES members. differing: the parameters that differ between members; they become states that do not change.

    The states come first and in their order, then those parameters in theirs, then TIME. Raises SpecError for what has no such form:
    whole numbers that differ, layers, names that are taken.
    """
    if layers_in(*system.equations.values()) or system.discrete:
        raise SpecError(f"{system.name}: layers, and updates of a map, have no lanes")
    per_member = [p for p in system.params if p.name in differing]
    if taken := sorted(NAMES & all_names(system)):
        raise SpecError(f"{system.name}: {taken[0]!r} is needed for lanes; call it something else, such as {taken[0]}_1")
    for p in per_member:
        if p.integer or p.indexes is not None:
            raise SpecError(f"{system.name}: the whole number {p.name} differs between members")
    shapes: dict[str, tuple[Any, ...]] = {name: tuple(shape) for name, shape in system.shapes.items()}
    lanes = Lanes(shapes | {p.name: tuple(p.shape) for p in per_member})
    axes = {**system.axes, LANE: COUNT}
    equations = {lanes.key(base_name(key), key_indices(key)): lanes(sp.sympify(e)) for key, e in system.equations.items()}
    for p in per_member:
        indices = tuple(index(" ".join(f"{p.name}_{k}_lanes" for k in range(len(p.shape))))) if p.shape else ()
        axes |= dict(zip(indices, p.shape, strict=True))
        equations[lanes.key(p.name, indices)] = sp.S.Zero
    if any(e.has(CLOCK) for e in equations.values()):
        equations[CLOCK[LANE]] = sp.S.Zero
    return System(
        name=f"{system.name}.lanes",
        source=system.source,
        axes=axes,
        equations=equations,
        params=tuple(p for p in system.params if p.name not in differing),
        initial=dict.fromkeys(equations, sp.S.Zero),
        sizes=system.sizes,
        span=system.span,
        boundary=system.boundary,
    )
