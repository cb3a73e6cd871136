"""The plan of the chain rule for a System: its products, for blocks along one axis or for a dense Jacobian."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from string import ascii_letters
from typing import Any

from sympy import Expr, Indexed, Symbol

from odesim.ir.adjoint import Dependence, LocalDerivatives
from odesim.ir.program import Statement
from odesim.symbolic.indices import Neighbour, Wrapped

LOCAL, SUMMED = "(local)", "(summed)"
Path = tuple[tuple[type[Neighbour], int], ...]
"""Steps from one place along the blocks to another, in order: (Wrapped, 1) is to the right on a ring. () stays at the place."""


class NotLocalError(Exception):
    """The right-hand side couples different places along the axis that should index the blocks."""


@dataclass(frozen=True)
class Product:
    """One product of the chain rule, as an einsum: a slope times the derivatives of the array that the statement reads.

    kind: LOCAL for derivatives by the states at one place; SUMMED for derivatives of a new sum, place by place. Otherwise it is the name
    of the sum by which both sides are differentiated. text: of the einsum. ones: loops that neither factor has. inner: the path from the
    place of the array read to that of the states. path: from the place of the statement.
    """

    dependence: Dependence
    kind: str
    text: str
    ones: tuple[Symbol, ...]
    inner: Path = ()
    path: Path = ()


@dataclass
class ChainPlan:
    """The chain rule for blocks along an axis of extent block_extent; None: for the dense Jacobian, where every state is a sum.

    Arrays with that axis depend on the states at their own place, at places that paths lead to, and on sums. Sums are sums over the axis,
    and states without the axis.
    axes: {array: indices}. block_states: states with the axis. sums: {sum: indices}. steps: the products of each statement. local:
    {array: the paths to the places whose states it depends on}. sums_read: {array: the sums it depends on}.
    """

    derivatives: LocalDerivatives
    block_extent: Expr | None
    axes: dict[str, tuple[Symbol, ...]]
    block_states: list[str] = field(default_factory=list)
    sums: dict[str, tuple[Symbol, ...]] = field(default_factory=dict)
    steps: list[tuple[Statement, list[Product]]] = field(default_factory=list)
    local: dict[str, dict[Path, None]] = field(default_factory=dict)
    sums_read: dict[str, set[str]] = field(default_factory=dict)

    def block_axis(self, name: str) -> int | None:
        """The number of the axis of an array along the blocks; None without one. Raises NotLocalError where there are two."""
        axes = [
            n for n, i in enumerate(self.axes[name]) if self.block_extent is not None and self.derivatives.extents[i] == self.block_extent
        ]
        if len(axes) > 1:
            raise NotLocalError
        return axes[0] if axes else None

    @property
    def paths(self) -> list[Path]:
        """The paths from the places of the right-hand side to those whose states it depends on."""
        return list({path: None for t in self.derivatives.targets.values() for path in self.local.get(t, ())})

    @property
    def used_sums(self) -> list[str]:
        """The sums that the right-hand side depends on."""
        return sorted(set[str]().union(*(self.sums_read.get(t, set()) for t in self.derivatives.targets.values())))


def make_chain_plan(derivatives: LocalDerivatives, block_extent: Expr | None) -> ChainPlan:
    """The ChainPlan of a right-hand side for blocks of this extent. Raises NotLocalError where it has no such form."""
    plan = ChainPlan(
        derivatives, block_extent, {**{x.statement.name: x.statement.free for x in derivatives.dependences}, **derivatives.states}
    )
    for name, axes in derivatives.states.items():
        if plan.block_axis(name) is not None:
            plan.block_states.append(name)
            plan.local[name] = {(): None}
        else:
            plan.sums[name], plan.sums_read[name] = axes, {name}
    for s, dependences in group_by_statement(derivatives.dependences):
        plan.steps.append((s, list(_products(plan, s, dependences))))
    return plan


def group_by_statement(dependences: Sequence[Dependence]) -> Iterator[tuple[Statement, list[Dependence]]]:
    """The (statement, its dependences) pairs."""
    for _, group in groupby(dependences, lambda d: d.statement.name):
        members = list(group)
        yield members[0].statement, members


def loop_indices(i: Any) -> tuple[Symbol, ...]:
    """The loop indices in an index of an element: m, m + 1 -> (m,), 0 -> (), psi[n] -> (n,). Raises NotLocalError for anything else."""
    if isinstance(i, Symbol):
        return (i,)
    if isinstance(i, Indexed):
        return tuple(j for k in i.indices for j in loop_indices(k))
    if isinstance(i, Neighbour):
        return loop_indices(i.args[0])
    if not i.is_Integer:
        raise NotLocalError
    return ()


def _products(plan: ChainPlan, s: Statement, dependences: Sequence[Dependence]) -> Iterator[Product]:
    """The products of a statement. Records in the plan what the statement's array depends on."""
    within = [i for i in s.loops if plan.derivatives.extents[i] == plan.block_extent]
    if len(within) > 1 or (plan.block_extent is not None and s.op == "scatter") or s.along in within:
        raise NotLocalError
    steps = {id(dependence): _path_read(plan, dependence, within[0] if within else None) for dependence in dependences}
    new = any(step is not None for step in steps.values()) and s.bound in within
    sums: set[str] = set()
    for dependence in dependences:
        step = steps[id(dependence)]
        for inner in list(plan.local.get(dependence.read, ())) if step is not None else ():
            path = _joined(step or (), inner)
            yield replace(_product(dependence, SUMMED if new else LOCAL, 1, tuple(within) if new else ()), inner=inner, path=path)
            if not new:
                plan.local.setdefault(s.name, {})[path] = None
        for g in sorted(plan.sums_read.get(dependence.read, ())):
            yield _product(dependence, g, len(plan.sums[g]))
            sums.add(g)
    if new:
        plan.sums[s.name], sums = s.free, {s.name}
    plan.sums_read[s.name] = sums


def _path_read(plan: ChainPlan, dependence: Dependence, within: Symbol | None) -> Path | None:
    """The path to the place at which an array along the blocks is read; None for another array. Raises NotLocalError without a path."""
    place = plan.block_axis(dependence.read)
    if place is None:
        return None
    path: Path = ()
    i = dependence.indices[place]
    while isinstance(i, Neighbour):
        i, path = i.args[0], ((type(i), int(i.args[1])), *path)
    if within is None or i != within:
        raise NotLocalError
    return path


def _joined(first: Path, then: Path) -> Path:
    """One path after another; two steps on a ring are one."""
    steps = list(first)
    for kind, c in then:
        if steps and kind is Wrapped and steps[-1][0] is Wrapped:
            c += steps.pop()[1]
        if c:
            steps.append((kind, c))
    return tuple(steps)


def _product(dependence: Dependence, kind: str, tail: int, free: tuple[Symbol, ...] = ()) -> Product:
    """The einsum over the loops of a statement. tail: number of trailing axes. free: summed indices that the result keeps."""
    s = dependence.statement
    letter = dict(zip(s.loops, ascii_letters, strict=False))
    end = ascii_letters[len(letter) : len(letter) + tail]
    slope = "".join(letter[i] for i in dependence.axes)
    read = "".join(letter[j] for i in dependence.indices for j in loop_indices(i))
    goal = "".join(letter[i] for i in (s.loops if s.op == "scatter" else (*s.free, *free)))
    missing = tuple(i for i in s.loops if letter[i] not in slope + read)
    text = ",".join([slope, read + end, *(letter[i] for i in missing)]) + "->" + goal + end
    return Product(dependence, kind, text, missing)
