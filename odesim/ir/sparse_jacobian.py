"""The Jacobian of a Program as one sparse matrix with a fixed pattern, for right-hand sides that couple neighbours, grids, graphs or trees.

Arrays between the states and their rates are unknowns of their own beside the states, so that no chain rule multiplies anything out:
with d rate = A dy + B ds and ds = C dy + D ds of the statements, (shift - J) x = b is

    (shift - A)  x - B s = b
            - C  x + (1 - D) s = 0

A sum over all states is then one full row and one full column, and a sum up to each element (prefix) a band: s[i] - s[i - 1] = what is
added. The entries are the slopes of the statements themselves. Their places depend on the indices alone; the numbers go there at a step.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from sympy import Symbol

from odesim.base.arrays import Array, Layout
from odesim.ir.adjoint import Dependence, LocalDerivatives
from odesim.ir.fronts import Entries
from odesim.ir.jacobian import places
from odesim.ir.linear_systems import Sparse
from odesim.ir.program import Statement

FILL = 30.0
"""Operations of a sparse decomposition for each entry and each root of the number of unknowns: what a grid in the plane takes."""


class SparseChain:
    """The places of the entries for given sizes; called with the slopes, it returns the Jacobian. layout: of the states."""

    def __init__(self, derivatives: LocalDerivatives, extents: Mapping[Symbol, int], layout: Layout, params: Mapping[str, Any]) -> None:
        self.layout, self._extents, self._params = layout, extents, params
        self._places: dict[str, Array] = dict(layout.split(np.arange(layout.size)))
        statements = {d.statement.name: d.statement for d in derivatives.dependences}
        read = {d.read for d in derivatives.dependences}
        rates = {target: state for state, target in derivatives.targets.items() if target in statements}
        self._starts, self.count = dict[str, int](), 0
        for name, axes in derivatives.program.outputs.items():
            self._starts[name] = self.count
            self.count += prod(extents[i] for i in axes)
        unknowns, entries, turned = layout.size, list[tuple[Array, ...]](), list[Array]()
        for s in statements.values():
            if s.name in rates and s.name not in read and s.along is None:
                self._places[s.name] = self._places[rates[s.name]]
                continue
            shape = tuple(extents[i] for i in s.free)
            self._places[s.name] = here = unknowns + np.arange(prod(shape)).reshape(shape)
            unknowns += here.size
            entries.append(self._constant(here, here, 1.0))
            if s.along is not None:
                ordered = np.moveaxis(here, s.free.index(s.along), 0)[:: 1 if s.op == "prefix" else -1]
                entries.append(self._constant(ordered[1:], ordered[:-1], -1.0))
                turned.append(ordered)
            if s.name in rates:
                entries.append(self._constant(self._places[rates[s.name]], here, -1.0))
        entries += [self._entries_of(d) for d in derivatives.dependences]
        none = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))
        rows, columns, factors, sources = (np.concatenate(parts) for parts in zip(none, *entries, strict=True))
        rank = np.arange(unknowns)
        rank[: layout.size] = unknowns
        for ordered in turned:
            rank[ordered.ravel()] = np.sort(rank[ordered.ravel()])
        order = np.argsort(rank[rows], kind="stable")
        tangent = order[(rows[order] != columns[order]) | (rows[order] < layout.size)]
        self.entries = Entries(layout.size, unknowns, self.count, rows, columns, factors, sources, tangent)

    @property
    def cost(self) -> float:
        """Multiplications of a decomposition, beside what calling it takes."""
        return FILL * len(self.entries.pattern.rows) * float(np.sqrt(self.entries.unknowns))

    @property
    def share(self) -> float:
        """The entries' share of all places."""
        return len(self.entries.pattern.rows) / self.entries.unknowns**2

    def __call__(self, slopes: Mapping[str, Any], _: Mapping[str, Any]) -> Sparse:
        """The Jacobian for {name: slopes}."""
        return self.entries.at(np.concatenate([*(np.ravel(slopes[name]).astype(np.float64) for name in self._starts), [1.0]]))

    def _constant(self, rows: Array, columns: Array, value: float) -> tuple[Array, ...]:
        return rows.ravel(), columns.ravel(), np.full(rows.size, value), np.full(rows.size, self.count)

    def _entries_of(self, d: Dependence) -> tuple[Array, ...]:
        """The entries that the slopes of a dependence are; one that reads beyond an end has none there."""
        s = d.statement
        grid = tuple(self._extents[i] for i in s.loops)
        target = (s.via, *s.free[1:]) if s.op == "scatter" else s.free
        row, column = (self._element(self._places[name], at, s, grid) for name, at in ((s.name, target), (d.read, d.indices)))
        inside = (row >= 0) & (column >= 0)
        extents = [self._extents[i] for i in d.axes]
        numbers = self._starts[d.slope] + np.arange(prod(extents)).reshape(extents)
        order = np.argsort([s.loops.index(i) for i in d.axes])
        numbers = numbers.transpose(order).reshape([n if i in d.axes else 1 for i, n in zip(s.loops, grid, strict=True)])
        source = np.broadcast_to(numbers, grid)[inside]
        return row[inside], column[inside], np.full(source.size, -1.0), source

    def _element(self, unknowns: Array, indices: Any, s: Statement, grid: tuple[int, ...]) -> Array:
        """The unknown that an element of an array is, for all values of the loops (grid); -1 beyond an end."""
        at = [places(i, n, s.loops, self._params) for i, n in zip(indices, unknowns.shape, strict=True)]
        beyond = np.zeros(grid, bool)
        for i, n in zip(at, unknowns.shape, strict=True):
            beyond |= (i < 0) | (i >= n)
        inside = tuple(np.clip(i, 0, max(n - 1, 0)) for i, n in zip(at, unknowns.shape, strict=True))
        return np.where(beyond, -1, np.broadcast_to(unknowns[inside] if inside else unknowns, grid))


def sparse_entries(derivatives: LocalDerivatives, extents: Mapping[Symbol, int]) -> int:
    """The number of entries of the matrix, before those at one place are added up."""
    return sum(prod(extents[i] for i in d.statement.loops) for d in derivatives.dependences)
