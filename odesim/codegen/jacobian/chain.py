"""The chain rule in numbers: slopes of statements, put together to a Jacobian that is dense or blocks plus low rank."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from sympy import Indexed, Symbol

from odesim.base.arrays import Array, Layout
from odesim.codegen.jacobian.plan import LOCAL, SUMMED, ChainPlan, Product
from odesim.codegen.jacobian.structured import Dense, Structured
from odesim.symbolic.expr import base_name
from odesim.symbolic.program import Statement

WIDE = 1e6
"""A product with more terms than this is worth einsum's search for matrix products."""


class Chain:
    """A Plan with sizes: called with the slopes it gives the Jacobian.

    An array is known by its derivatives by the states at its own place (*axes, p), and by each sum (*axes, *axes of the sum).
    """

    def __init__(self, plan: ChainPlan, extents: Mapping[Symbol, int], layout: Layout) -> None:
        self.plan, self.extents, self.layout = plan, extents, layout
        self._flat = layout.split(np.arange(layout.size))
        self._shapes = {g: tuple(extents[i] for i in axes) for g, axes in plan.sums.items()}
        parts = [_front(self._flat[name], plan.place(name)) for name in plan.inside]
        self.places = np.hstack(parts) if parts else np.zeros((0, 0), np.int64)
        self._starts = dict(zip(plan.inside, np.cumsum([0, *(part.shape[1] for part in parts)]).tolist(), strict=False))

    @property
    def width(self) -> int:
        """p, the components in a block."""
        return int(self.places.shape[1])

    @property
    def rank(self) -> int:
        """R, the columns of the part of low rank."""
        return sum(prod(self._shapes[g]) for g in self.plan.used)

    def __call__(self, slopes: Mapping[str, Any], params: Mapping[str, Any]) -> Dense | Structured:
        """J from the slopes by name and the parameters that gather."""
        states = [n for n in self.plan.derivatives.states if n not in self.plan.inside]
        local = {name: self._own_place(name) for name in self.plan.inside}
        onto = {name: {name: self._one(name)} for name in states}
        columns = {name: self._unit_rows(name) for name in states} if self.plan.along is not None else {}
        for s, products in self.plan.steps:
            if s.name in self.plan.sums:
                onto[s.name] = {s.name: self._one(s.name)}
                columns[s.name] = np.zeros((prod(self._shapes[s.name]), self.layout.size))
            for product in products:
                link, kind = product.link, product.kind
                known = local[link.read] if kind in (LOCAL, SUMMED) else onto[link.read][kind]
                made = self._multiply(product, slopes[link.slope], taken(known, link.indices, params))
                if s.op == "scatter":
                    made = self._scattered(s, made, params)
                if kind == LOCAL:
                    _add(local, s.name, made)
                elif kind == SUMMED:
                    columns[s.name][:, self.places] += made.reshape(-1, *self.places.shape)
                elif s.name in self.plan.sums:
                    columns[s.name] += made.reshape(len(columns[s.name]), -1) @ columns[kind]
                else:
                    _add(onto.setdefault(s.name, {}), kind, made)
        return self._dense(onto) if self.plan.along is None else self._structured(local, onto, columns)

    def _multiply(self, product: Product, slope: Any, known: Array) -> Array:
        ones = [np.ones(self.extents[i]) for i in product.ones]
        terms = prod(self.extents[i] for i in product.link.statement.loops) * known.size
        return np.einsum(product.text, np.asarray(slope, np.float64), known, *ones, optimize=terms > WIDE)  # type: ignore[no-any-return]

    def _scattered(self, s: Statement, made: Array, params: Mapping[str, Any]) -> Array:
        """made (loops, ...) added up by rows: out[via[...], free[1:], ...]."""
        assert isinstance(s.via, Indexed)
        rank = len(s.loops)
        rows = taken(params[base_name(s.via)], s.via.indices, params)
        order = [s.loops.index(i) for i in _loops(s.via)]
        rows = np.expand_dims(rows.transpose(np.argsort(order)), [k for k in range(rank) if k not in order])
        others = [np.arange(self.extents[i]).reshape([-1 if k == s.loops.index(i) else 1 for k in range(rank)]) for i in s.free[1:]]
        out = np.zeros((*(self.extents[i] for i in s.free), *made.shape[rank:]))
        np.add.at(out, (rows, *others), made)
        return out

    def _own_place(self, name: str) -> Array:
        """The derivative of a state by the states at its place (*axes, p): one for itself."""
        place, shape = self.plan.place(name) or 0, self._flat[name].shape
        inner = [n for k, n in enumerate(shape) if k != place]
        unit = np.eye(prod(inner), self.width, self._starts[name]).reshape((*inner, self.width))
        return np.broadcast_to(np.expand_dims(unit, place), (*shape, self.width))

    def _one(self, g: str) -> Array:
        """The derivative of a sum by itself."""
        shape = self._shapes[g]
        return np.eye(prod(shape)).reshape((*shape, *shape))

    def _unit_rows(self, name: str) -> Array:
        """The derivative of a state by all states (size, n)."""
        where = self._flat[name].ravel()
        rows = np.zeros((len(where), self.layout.size))
        rows[range(len(where)), where] = 1.0
        return rows

    def _dense(self, onto: Mapping[str, Mapping[str, Array]]) -> Dense:
        J = np.zeros((self.layout.size, self.layout.size))
        for state, target in self.plan.derivatives.targets.items():
            rows = self._flat[state].ravel()
            for g, made in onto.get(target, {}).items():
                J[rows[:, None], self._flat[g].ravel()] = made.reshape(len(rows), -1)
        return Dense(J)

    def _structured(self, local: Mapping[str, Array], onto: Mapping[str, Mapping[str, Array]], columns: Mapping[str, Array]) -> Structured:
        count, p = self.places.shape
        used = self.plan.used
        starts = dict(zip(used, np.cumsum([0, *(len(columns[g]) for g in used)]).tolist(), strict=False))
        blocks, U = np.zeros((count, p, p)), np.zeros((self.layout.size, self.rank))
        for state, target in self.plan.derivatives.targets.items():
            rows = self._flat[state].ravel()
            if target in local:
                own = np.moveaxis(local[target], self.plan.place(state) or 0, 0).reshape(count, -1, p)
                blocks[:, self._starts[state] : self._starts[state] + own.shape[1]] = own
            for g, made in onto.get(target, {}).items():
                U[rows, starts[g] : starts[g] + len(columns[g])] = made.reshape(len(rows), -1)
        G = np.concatenate([columns[g] for g in used]).T if used else np.zeros((self.layout.size, 0))
        return Structured(blocks, self.places, U, np.ascontiguousarray(G))


def taken(a: Array, indices: tuple[Any, ...], params: Mapping[str, Any]) -> Array:
    """a[indices, ...] with an axis for each loop index in them: numbers and gathered places are taken, plain indices stay."""
    for axis, i in reversed(list(enumerate(indices))):
        if isinstance(i, Indexed):
            a = np.take(a, taken(np.asarray(params[base_name(i)]), i.indices, params).astype(np.int64), axis)
        elif not isinstance(i, Symbol):
            a = np.take(a, int(i), axis)
    return a


def _loops(i: Indexed) -> list[Symbol]:
    return [j for k in i.indices for j in (_loops(k) if isinstance(k, Indexed) else [k]) if isinstance(j, Symbol)]


def _add(parts: dict[str, Array], name: str, made: Array) -> None:
    parts[name] = parts[name] + made if name in parts else made


def _front(a: Array, axis: int | None) -> Array:
    """a with this axis first and the others in one: (N, q)."""
    return np.moveaxis(a, axis or 0, 0).reshape(a.shape[axis or 0], -1)
