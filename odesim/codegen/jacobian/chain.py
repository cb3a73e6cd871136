"""The chain rule in numbers: slopes of statements are combined to a Jacobian, dense or blocks plus low rank."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from sympy import Indexed, Symbol

from odesim.base.arrays import Array, Layout
from odesim.ir.jacobian import LOCAL, SUMMED, ChainPlan, Path, Product, loop_indices
from odesim.ir.linear_systems import Dense, Jacobian, Sparse, Structured
from odesim.ir.program import Statement
from odesim.symbolic.indices import Neighbour, Padded, Wrapped, base_name

WIDE = 1e6
"""Terms of a product above which einsum's search for matrix products pays."""


class Chain:
    """A ChainPlan with sizes: called with the slopes, it returns the Jacobian.

    The derivatives of an array are stored in two kinds. Those by the states at the places that paths lead to have shape (*axes, p) for each
    path. Those by each sum have shape (*axes, *axes of the sum).
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
        local: dict[str, dict[Any, Array]] = {name: {(): self._unit_blocks(name)} for name in self.plan.block_states}
        by_sum = {name: {name: self._unit(name)} for name in states}
        columns = {name: self._unit_rows(name) for name in states} if self.plan.block_extent is not None else {}
        for s, products in self.plan.steps:
            if s.name in self.plan.sums:
                by_sum[s.name] = {s.name: self._unit(s.name)}
                columns[s.name] = np.zeros((prod(self._shapes[s.name]), self.layout.size))
            for product in products:
                dependence, kind = product.dependence, product.kind
                inner = local[dependence.read][product.inner] if kind in (LOCAL, SUMMED) else by_sum[dependence.read][kind]
                term = self._multiply(product, slopes[dependence.slope], gather(inner, dependence.indices, params))
                if s.op == "scatter":
                    term = self._scatter(s, term, params)
                elif s.along is not None:
                    term = partial_sums(term, s.free.index(s.along), s.op)
                if kind == LOCAL:
                    _add(local.setdefault(s.name, {}), product.path, term)
                elif kind == SUMMED:
                    self._add_columns(columns[s.name], product.path, term.reshape(-1, *self.places.shape))
                elif s.name in self.plan.sums:
                    columns[s.name] += term.reshape(len(columns[s.name]), -1) @ columns[kind]
                else:
                    _add(by_sum.setdefault(s.name, {}), kind, term)
        if self.plan.block_extent is None:
            return self._dense(by_sum)
        U, G = self._low_rank(by_sum, columns)
        return self._sparse(local, U, G) if any(self.plan.paths) else self._structured(local, U, G)

    def _multiply(self, product: Product, slope: Any, inner: Array) -> Array:
        """The product of a slope and the derivatives of the array read."""
        ones = [np.ones(self.extents[i]) for i in product.ones]
        terms = prod(self.extents[i] for i in product.dependence.statement.loops) * inner.size
        return np.einsum(product.text, np.asarray(slope, np.float64), inner, *ones, optimize=terms > WIDE)  # type: ignore[no-any-return]

    def _scatter(self, s: Statement, term: Array, params: Mapping[str, Any]) -> Array:
        """The entries of term (loops, ...) added up in the rows via[...]: out[via[...], free[1:], ...]."""
        assert isinstance(s.via, Indexed)
        rank = len(s.loops)
        rows = gather(params[base_name(s.via)], s.via.indices, params)
        order = [s.loops.index(i) for i in _loops(s.via)]
        rows = np.expand_dims(rows.transpose(np.argsort(order)), [k for k in range(rank) if k not in order])
        others = [np.arange(self.extents[i]).reshape([-1 if k == s.loops.index(i) else 1 for k in range(rank)]) for i in s.free[1:]]
        out = np.zeros((*(self.extents[i] for i in s.free), *term.shape[rank:]))
        np.add.at(out, (rows, *others), term)
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

    def _add_columns(self, columns: Array, path: Path, term: Array) -> None:
        """Adds term (size, N, p) to the columns of the states that a path leads to."""
        if path:
            np.add.at(columns.T, self.places[self._ends(path)], np.moveaxis(term, 0, -1))
        else:
            columns[:, self.places] += term

    def _ends(self, path: Path) -> Array:
        """The place that a path leads to, from each place along the blocks."""
        place, n = np.arange(len(self.places)), len(self.places)
        for kind, c in path:
            place = _ended(place + c, kind, n)
        return place

    def _structured(self, local: Mapping[str, Mapping[Any, Array]], U: Array, G: Array) -> Structured:
        count, p = self.places.shape
        blocks = np.zeros((count, p, p))
        for state, target in self.plan.derivatives.targets.items():
            if target in local:
                block_rows = self._block_rows(state, local[target][()])
                blocks[:, self._starts[state] : self._starts[state] + block_rows.shape[1]] = block_rows
        return Structured(blocks, self.places, U, G)

    def _sparse(self, local: Mapping[str, Mapping[Any, Array]], U: Array, G: Array) -> Sparse:
        rows, columns, entries = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
        for state, target in self.plan.derivatives.targets.items():
            for path, slopes in local.get(target, {}).items():
                values, own = self._block_rows(state, slopes), _front(self._flat[state], self.plan.block_axis(state))
                hit = values != 0.0
                rows.append(np.broadcast_to(own[:, :, None], values.shape)[hit])
                columns.append(np.broadcast_to(self.places[self._ends(path)][:, None, :], values.shape)[hit])
                entries.append(values[hit])
        return Sparse(np.concatenate(rows), np.concatenate(columns), np.concatenate(entries), U, G)

    def _block_rows(self, state: str, slopes: Array) -> Array:
        """The derivatives (*axes, p) of a state's rate as rows of blocks, (N, q, p)."""
        return np.moveaxis(slopes, self.plan.block_axis(state) or 0, 0).reshape(len(self.places), -1, self.width)

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
            a = np.take(a, places(i, a.shape[axis], params), axis)
    return a


def places(i: Any, n: int, params: Mapping[str, Any]) -> Any:
    """The places on an axis of length n that an index reads, with one axis for each loop index."""
    if isinstance(i, Symbol):
        return np.arange(n)
    if isinstance(i, Indexed):
        return gather(np.asarray(params[base_name(i)]), i.indices, params).astype(np.int64)
    if isinstance(i, Neighbour):
        place = places(i.args[0], n, params) + int(i.args[1])
        return _ended(place, type(i), n)
    return int(i)


def _ended(place: Any, kind: type[Neighbour], n: int) -> Any:
    """A place beside an axis of n places, moved to the axis; inside another neighbour a Padded one stays."""
    return place if kind is Padded else place % n if kind is Wrapped else np.clip(place, 0, n - 1)


def _loops(i: Indexed) -> list[Symbol]:
    return [j for k in i.indices for j in loop_indices(k)]


def _add(sums: dict[Any, Array], name: Any, term: Array) -> None:
    """Adds term to sums[name], which starts from 0."""
    sums[name] = sums[name] + term if name in sums else term


def _front(a: Array, axis: int | None) -> Array:
    """a with this axis first and the other axes merged into one: (N, q)."""
    return np.moveaxis(a, axis or 0, 0).reshape(a.shape[axis or 0], -1)
