"""Which products the chain rule takes, for blocks along one axis or for a dense Jacobian; made once for a System."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from string import ascii_letters
from typing import Any

from sympy import Expr, Indexed, Symbol

from odesim.symbolic.jacobian import Dependence, LocalDerivatives
from odesim.symbolic.program import Statement

LOCAL, SUMMED = "(local)", "(summed)"


class NotLocalError(Exception):
    """A right-hand side mixes different places of the axis that was to index the blocks."""


@dataclass(frozen=True)
class Product:
    """One einsum: a link's slope times what is known of the array it reads, with ones for the loops that neither has.

    kind: LOCAL: both sides are derivatives by the states at the same place; SUMMED: those of a new sum, place by place; else the
    name of the sum that both sides depend on.
    """

    link: Dependence
    kind: str
    text: str
    ones: tuple[Symbol, ...]


@dataclass
class ChainPlan:
    """The chain rule along an axis of this extent (None: all states are sums of their own, which is the dense Jacobian).

    Arrays with that axis depend on the states at their own place, and on sums: what is summed over the axis, and states without it.
    axes: array -> indices. inside: states with the axis. sums: sum -> indices. steps: the products of each statement. local:
    the arrays with a derivative by the states at their place; onto: array -> the sums it depends on.
    """

    derivatives: LocalDerivatives
    along: Expr | None
    axes: dict[str, tuple[Symbol, ...]]
    inside: list[str] = field(default_factory=list)
    sums: dict[str, tuple[Symbol, ...]] = field(default_factory=dict)
    steps: list[tuple[Statement, list[Product]]] = field(default_factory=list)
    local: set[str] = field(default_factory=set)
    onto: dict[str, set[str]] = field(default_factory=dict)

    def place(self, name: str) -> int | None:
        """Which axis of an array lies along the blocks. Raises NotLocalError where two do."""
        found = [n for n, i in enumerate(self.axes[name]) if self.along is not None and self.derivatives.extents[i] == self.along]
        if len(found) > 1:
            raise NotLocalError
        return found[0] if found else None

    @property
    def used(self) -> list[str]:
        """The sums that the right-hand side depends on."""
        return sorted(set[str]().union(*(self.onto.get(t, set()) for t in self.derivatives.targets.values())))


def make_plan(derivatives: LocalDerivatives, along: Expr | None) -> ChainPlan:
    """The Plan of a right-hand side. Raises NotLocalError where it has no such form."""
    plan = ChainPlan(derivatives, along, {**{x.statement.name: x.statement.free for x in derivatives.dependences}, **derivatives.states})
    for name, axes in derivatives.states.items():
        if plan.place(name) is not None:
            plan.inside.append(name)
            plan.local.add(name)
        else:
            plan.sums[name], plan.onto[name] = axes, {name}
    for s, mine in by_statement(derivatives.dependences):
        plan.steps.append((s, list(_products(plan, s, mine))))
    return plan


def by_statement(links: Sequence[Dependence]) -> Iterator[tuple[Statement, list[Dependence]]]:
    """The links of each statement together."""
    for _, group in groupby(links, lambda link: link.statement.name):
        mine = list(group)
        yield mine[0].statement, mine


def symbols(i: Any) -> tuple[Symbol, ...]:
    """The loop indices in the index of an element: m -> m, 0 -> none, psi[n] -> n. Raises NotLocalError for any other."""
    if isinstance(i, Symbol):
        return (i,)
    if isinstance(i, Indexed):
        return tuple(j for k in i.indices for j in symbols(k))
    if not i.is_Integer:
        raise NotLocalError
    return ()


def _products(plan: ChainPlan, s: Statement, links: Sequence[Dependence]) -> Iterator[Product]:
    """The products of a statement; enters in the plan what its array depends on."""
    within = [i for i in s.loops if plan.derivatives.extents[i] == plan.along]
    if len(within) > 1 or (plan.along is not None and s.op == "scatter"):
        raise NotLocalError
    beside = [link for link in links if _reads_place(plan, link, within[0] if within else None)]
    new = bool(beside) and s.bound in within
    onto: set[str] = set()
    for link in links:
        if link in beside and link.read in plan.local:
            yield _product(link, SUMMED if new else LOCAL, 1, tuple(within) if new else ())
            if not new:
                plan.local.add(s.name)
        for g in sorted(plan.onto.get(link.read, ())):
            yield _product(link, g, len(plan.sums[g]))
            onto.add(g)
    if new:
        plan.sums[s.name], onto = s.free, {s.name}
    plan.onto[s.name] = onto


def _reads_place(plan: ChainPlan, link: Dependence, within: Symbol | None) -> bool:
    """Whether a link reads an array along the blocks, at its own place. Raises NotLocalError where it is another place."""
    place = plan.place(link.read)
    if place is None:
        return False
    if within is None or link.indices[place] != within:
        raise NotLocalError
    return True


def _product(link: Dependence, kind: str, tail: int, kept: tuple[Symbol, ...] = ()) -> Product:
    """The einsum of a link over the loops of its statement, with as many axes behind those of the array read."""
    s = link.statement
    letter = dict(zip(s.loops, ascii_letters, strict=False))
    end = ascii_letters[len(letter) : len(letter) + tail]
    slope = "".join(letter[i] for i in link.axes)
    read = "".join(letter[j] for i in link.indices for j in symbols(i))
    goal = "".join(letter[i] for i in (s.loops if s.op == "scatter" else (*s.free, *kept)))
    missing = tuple(i for i in s.loops if letter[i] not in slope + read)
    text = ",".join([slope, read + end, *(letter[i] for i in missing)]) + "->" + goal + end
    return Product(link, kind, text, missing)
