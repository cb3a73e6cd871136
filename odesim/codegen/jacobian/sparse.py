"""Jacobians of neighbours on an axis as numbers: a sparse matrix plus a matrix of low rank."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from odesim.base.arrays import Array
from odesim.ir.linear_systems import Dense, Solver, Structured, UnsolvableError, eliminate, refined


@dataclass(frozen=True)
class Sparse:
    """A Jacobian J = S + U G^T with S[rows[k], columns[k]] = entries[k]; entries at one place add up. U, G (n, R)."""

    rows: Array
    columns: Array
    entries: Array
    U: Array
    G: Array

    @cached_property
    def matrix(self) -> Any:
        """S as a matrix of scipy, column by column."""
        from scipy.sparse import csc_array  # only stiff methods need scipy

        n = len(self.U)
        return csc_array((self.entries, (self.rows, self.columns)), shape=(n, n))

    def __matmul__(self, x: Array) -> Array:
        return self.matrix @ x + self.U @ (self.G.T @ x)  # type: ignore[no-any-return]

    def dense(self) -> Array:
        """The matrix J (n, n)."""
        return self.matrix.toarray() + self.U @ self.G.T  # type: ignore[no-any-return]

    def solver(self, shift: float, least: float = 0.0) -> Solver:
        """The solver of (shift - J) x = b by sparse LU decomposition with pivots. least: as for refined. Raises UnsolvableError."""
        return SparseSolver(self, shift, least)


Jacobian: TypeAlias = Dense | Structured | Sparse


class SparseSolver:
    """A solver of (shift - S - U G^T) x = b: sparse LU decomposition, and Woodbury's formula with iterative refinement."""

    def __init__(self, J: Sparse, shift: float, least: float) -> None:
        from scipy.sparse import eye_array
        from scipy.sparse.linalg import splu

        self.J, self.shift, self.least = J, shift, least
        if not (np.isfinite(J.entries).all() and np.isfinite(J.U).all() and np.isfinite(J.G).all()):
            raise UnsolvableError
        try:
            self._solve = splu((shift * eye_array(len(J.U), format="csc") - J.matrix).tocsc()).solve
        except RuntimeError:  # exactly singular
            raise UnsolvableError from None
        self.rank = J.U.shape[1]
        if self.rank:
            self._inverse_U = self._solve(J.U)
            self._small_solver = eliminate(np.eye(self.rank) - J.G.T @ self._inverse_U)

    def __call__(self, b: Array) -> Array:
        return refined(self._unrefined, self.J, self.shift, b, self._term_sizes, self.least)

    def _unrefined(self, b: Array) -> Array:
        x: Array = self._solve(b)
        return x + self._inverse_U @ self._small_solver(self.J.G.T @ x) if self.rank else x

    def _term_sizes(self, x: Array) -> Array:
        """The sizes of the terms of J x: |S| x + |U| |G|^T x, for x >= 0."""
        S, U, G = self._absolute
        return S @ x + U @ (G.T @ x)  # type: ignore[no-any-return]

    @cached_property
    def _absolute(self) -> tuple[Any, Array, Array]:
        return abs(self.J.matrix), np.abs(self.J.U), np.abs(self.J.G)
