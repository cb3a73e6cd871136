"""The Jacobian of a Program by the chain rule: slopes of statements are combined, for blocks along one axis or for a dense matrix."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import prod
from string import ascii_letters
from typing import Any

import numpy as np
from sympy import Expr, Indexed, Symbol

from odesim.base.arrays import Array, Layout
from odesim.ir.adjoint import Dependence, LocalDerivatives
from odesim.ir.linear_systems import Dense, Jacobian, Structured
from odesim.ir.program import Statement
from odesim.symbolic.indices import Clipped, Neighbour, Wrapped, base_name

LOCAL, SUMMED = "(local)", "(summed)"
WIDE = 1e6
"""Terms of a product above which einsum's search for matrix products pays."""


class NotLocalError(Exception):
    """The right-hand side couples different places along the axis that should index the blocks."""


@dataclass(frozen=True)
class Product:
    """One product of the chain rule, as an einsum: a slope times the derivatives of the array that the statement reads.

    kind: LOCAL for derivatives by the states at one place; SUMMED for derivatives of a new sum, place by place. Otherwise it is the name
    of the sum by which both sides are differentiated. text: of the einsum. ones: loops that neither factor has.
    """

    dependence: Dependence
    kind: str
    text: str
    ones: tuple[Symbol, ...]


@dataclass
class ChainPlan:
    """The chain rule for blocks along an axis of extent block_extent; None: for the dense Jacobian, where every state is a sum.

    Arrays with that axis depend on the states at their own place, and on sums. Sums are sums over the axis, and states without the axis.
    axes: {array: indices}. block_states: states with the axis. sums: {sum: indices}. steps: the products of each statement. local: arrays
    that depend on the states at their place. sums_read: {array: the sums it depends on}.
    """

    derivatives: LocalDerivatives
    block_extent: Expr | None
    axes: dict[str, tuple[Symbol, ...]]
    block_states: list[str] = field(default_factory=list)
    sums: dict[str, tuple[Symbol, ...]] = field(default_factory=dict)
    steps: list[tuple[Statement, list[Product]]] = field(default_factory=list)
    local: set[str] = field(default_factory=set)
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
            plan.local.add(name)
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
        return tuple(dict.fromkeys(j for k in i.indices for j in loop_indices(k)))
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
    there = {id(dependence): _reads_its_place(plan, dependence, within[0] if within else None) for dependence in dependences}
    new = any(there.values()) and s.bound in within
    sums: set[str] = set()
    for dependence in dependences:
        if there[id(dependence)] and dependence.read in plan.local:
            yield _product(dependence, SUMMED if new else LOCAL, 1, tuple(within) if new else ())
            if not new:
                plan.local.add(s.name)
        for g in sorted(plan.sums_read.get(dependence.read, ())):
            yield _product(dependence, g, len(plan.sums[g]))
            sums.add(g)
    if new:
        plan.sums[s.name], sums = s.free, {s.name}
    plan.sums_read[s.name] = sums


def _reads_its_place(plan: ChainPlan, dependence: Dependence, within: Symbol | None) -> bool:
    """Whether an array along the blocks is read, at the place of the statement. Raises NotLocalError where it is at another one."""
    place = plan.block_axis(dependence.read)
    if place is not None and (within is None or dependence.indices[place] != within):
        raise NotLocalError
    return place is not None


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


class Chain:
    """A ChainPlan with sizes: called with the slopes, it returns the Jacobian.

    The derivatives of an array are stored in two kinds. Those by the states at its place have shape (*axes, p). Those by each sum have
    shape (*axes, *axes of the sum).
    """

    def __init__(self, plan: ChainPlan, extents: Mapping[Symbol, int], layout: Layout) -> None:
        self.plan, self.extents, self.layout = plan, extents, layout
        self._flat = layout.split(np.arange(layout.size))
        self._shapes = {g: tuple(extents[i] for i in axes) for g, axes in plan.sums.items()}
        parts = [_front(self._flat[name], plan.block_axis(name)) for name in plan.block_states]
        self.places = np.hstack(parts) if parts else np.zeros((0, 0), np.int64)
        self._starts = dict(zip(plan.block_states, np.cumsum([0, *(part.shape[1] for part in parts)]).tolist(), strict=False))

    @property
    def width(self) -> int:
        """The size p of a block."""
        return int(self.places.shape[1])

    @property
    def rank(self) -> int:
        """The rank R of the part of low rank."""
        return sum(prod(self._shapes[g]) for g in self.plan.used_sums)

    def __call__(self, slopes: Mapping[str, Any], params: Mapping[str, Any]) -> Jacobian:
        """The Jacobian for {name: slopes} and the parameters, which are used as indices."""
        states = [n for n in self.plan.derivatives.states if n not in self.plan.block_states]
        local = {name: self._unit_blocks(name) for name in self.plan.block_states}
        by_sum = {name: {name: self._unit(name)} for name in states}
        columns = {name: self._unit_rows(name) for name in states} if self.plan.block_extent is not None else {}
        for s, products in self.plan.steps:
            if s.name in self.plan.sums:
                by_sum[s.name] = {s.name: self._unit(s.name)}
                columns[s.name] = np.zeros((prod(self._shapes[s.name]), self.layout.size))
            for product in products:
                dependence, kind = product.dependence, product.kind
                inner = local[dependence.read] if kind in (LOCAL, SUMMED) else by_sum[dependence.read][kind]
                term = self._multiply(product, slopes[dependence.slope], gather(inner, dependence.indices, params))
                if s.op == "scatter":
                    term = self._scatter(s, term, params)
                elif s.along is not None:
                    term = partial_sums(term, s.free.index(s.along), s.op)
                if kind == LOCAL:
                    _add(local, s.name, term)
                elif kind == SUMMED:
                    columns[s.name][:, self.places] += term.reshape(-1, *self.places.shape)
                elif s.name in self.plan.sums:
                    columns[s.name] += term.reshape(len(columns[s.name]), -1) @ columns[kind]
                else:
                    _add(by_sum.setdefault(s.name, {}), kind, term)
        if self.plan.block_extent is None:
            return self._dense(by_sum)
        return self._structured(local, *self._low_rank(by_sum, columns))

    def _multiply(self, product: Product, slope: Any, inner: Array) -> Array:
        """The product of a slope and the derivatives of the array read."""
        ones = [np.ones(self.extents[i]) for i in product.ones]
        # for shorter products einsum's search for an order takes longer than the sum
        terms = prod(self.extents[i] for i in product.dependence.statement.loops) * inner.size
        return np.einsum(product.text, np.asarray(slope, np.float64), inner, *ones, optimize=terms > WIDE)

    def _scatter(self, s: Statement, term: Array, params: Mapping[str, Any]) -> Array:
        """The entries of term (loops, ...) added up in the rows via[...]: out[via[...], free[1:], ...]."""
        out = np.zeros((*(self.extents[i] for i in s.free), *term.shape[len(s.loops) :]))
        np.add.at(out, tuple(places(i, n, s.loops, params) for i, n in zip((s.via, *s.free[1:]), out.shape, strict=False)), term)
        return out

    def _unit_blocks(self, name: str) -> Array:
        """The derivative of a state by the states at its place (*axes, p): 1 by itself, 0 by others."""
        place, shape = self.plan.block_axis(name) or 0, self._flat[name].shape
        inner = [n for k, n in enumerate(shape) if k != place]
        unit = np.eye(prod(inner), self.width, self._starts[name]).reshape((*inner, self.width))
        return np.broadcast_to(np.expand_dims(unit, place), (*shape, self.width))

    def _unit(self, g: str) -> Array:
        """The derivative of a sum by itself, (*axes, *axes)."""
        shape = self._shapes[g]
        return np.eye(prod(shape)).reshape((*shape, *shape))

    def _unit_rows(self, name: str) -> Array:
        """The derivative of a state by all states, (size, n)."""
        where = self._flat[name].ravel()
        rows = np.zeros((len(where), self.layout.size))
        rows[range(len(where)), where] = 1.0
        return rows

    def _dense(self, by_sum: Mapping[str, Mapping[str, Array]]) -> Dense:
        J = np.zeros((self.layout.size, self.layout.size))
        for state, target in self.plan.derivatives.targets.items():
            rows = self._flat[state].ravel()
            for g, slopes in by_sum.get(target, {}).items():
                J[rows[:, None], self._flat[g].ravel()] = slopes.reshape(len(rows), -1)
        return Dense(J)

    def _structured(self, local: Mapping[str, Array], U: Array, G: Array) -> Structured:
        count, p = self.places.shape
        blocks = np.zeros((count, p, p))
        for state, target in self.plan.derivatives.targets.items():
            if target in local:
                block_rows = np.moveaxis(local[target], self.plan.block_axis(state) or 0, 0).reshape(len(self.places), -1, self.width)
                blocks[:, self._starts[state] : self._starts[state] + block_rows.shape[1]] = block_rows
        return Structured(blocks, self.places, U, G)

    def _low_rank(self, by_sum: Mapping[str, Mapping[str, Array]], columns: Mapping[str, Array]) -> tuple[Array, Array]:
        """U and G (n, R), one column for each sum."""
        used_sums = self.plan.used_sums
        starts = dict(zip(used_sums, np.cumsum([0, *(len(columns[g]) for g in used_sums)]).tolist(), strict=False))
        U = np.zeros((self.layout.size, self.rank))
        for state, target in self.plan.derivatives.targets.items():
            rows = self._flat[state].ravel()
            for g, slopes in by_sum.get(target, {}).items():
                U[rows, starts[g] : starts[g] + len(columns[g])] = slopes.reshape(len(rows), -1)
        G = np.concatenate([columns[g] for g in used_sums]).T if used_sums else np.zeros((self.layout.size, 0))
        return U, np.ascontiguousarray(G)


def partial_sums(a: Array, axis: int, op: str) -> Array:
    """The sums along an axis up to each element, or from each element on where op is "suffix"."""
    return np.cumsum(a, axis) if op == "prefix" else np.flip(np.cumsum(np.flip(a, axis), axis), axis)


def gather(a: Array, indices: tuple[Any, ...], params: Mapping[str, Any]) -> Array:
    """The elements a[indices, ...], with one axis for each loop index: numbers, index arrays and neighbours select, loop indices stay."""
    for axis, i in reversed(list(enumerate(indices))):
        if not isinstance(i, Symbol):
            a = np.take(a, places(i, a.shape[axis], loop_indices(i), params), axis)
    return a


def places(i: Any, n: int, loops: Sequence[Symbol], params: Mapping[str, Any]) -> Any:
    """The places on an axis of length n that an index reads, with one axis for each of these loops; Padded ones may lie beyond the ends."""
    if isinstance(i, Symbol):
        return np.arange(n).reshape([-1 if j == i else 1 for j in loops])
    if isinstance(i, Indexed):
        array = np.asarray(params[base_name(i)])
        inner = (places(k, m, loops, params) for k, m in zip(i.indices, array.shape, strict=True))
        return array[tuple(inner)].astype(np.int64)
    if isinstance(i, Neighbour):
        place = places(i.args[0], n, loops, params) + int(i.args[1])
        return place % n if isinstance(i, Wrapped) else np.clip(place, 0, n - 1) if isinstance(i, Clipped) else place
    return int(i)


def _add(sums: dict[Any, Array], name: Any, term: Array) -> None:
    """Adds term to sums[name], which starts from 0."""
    sums[name] = sums[name] + term if name in sums else term


def _front(a: Array, axis: int | None) -> Array:
    """a with this axis first and the other axes merged into one: (N, q)."""
    return np.moveaxis(a, axis or 0, 0).reshape(a.shape[axis or 0], -1)
