"""Jacobians as numbers, and systems (shift - J) x = b with them: dense, or small blocks plus a matrix of low rank."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from odesim.base.arrays import Array

ENOUGH = 1e-14
"""A backward error, relative to the size of all terms, that needs no refinement."""
WORST = 1e-11
"""One that is not accepted any more."""
WEAK = 1e-5
"""A diagonal entry this small against its terms is moved into the part of low rank."""
MOST_WEAK = 64


class UnsolvableError(ArithmeticError):
    """(shift - J) x = b has no solution to rounding: a step of another size does."""


class Solver(Protocol):
    """(shift - J) x = b for one shift."""

    def __call__(self, b: Array) -> Array:
        """x (n,) for b (n,). Raises UnsolvableError."""


@dataclass(frozen=True)
class Dense:
    """A Jacobian (n, n)."""

    J: Array

    def __matmul__(self, x: Array) -> Array:
        return self.J @ x  # type: ignore[no-any-return]

    def dense(self) -> Array:
        return self.J

    def solver(self, shift: float) -> Solver:
        """(shift - J) x = b by elimination with pivots. Raises UnsolvableError."""
        matrix = -self.J
        matrix[np.diag_indices_from(matrix)] += shift
        return _eliminate(matrix)


@dataclass(frozen=True)
class Structured:
    """J = blocks + U G^T. blocks (N, p, p): block k couples the components places[k] (p,); U, G (n, R), one column a hoisted sum.

    places (N, p): each component in at most one block, and those in none have the block 0.
    """

    blocks: Array
    places: Array
    U: Array
    G: Array

    @cached_property
    def n(self) -> int:
        return len(self.U)

    @cached_property
    def plain(self) -> bool:
        """Whether block k is component k alone."""
        return self.places.shape == (self.n, 1) and bool(np.array_equal(self.places[:, 0], np.arange(self.n)))

    def __matmul__(self, x: Array) -> Array:
        return self.apart(self.blocks, x) + (self.U @ (self.G.T @ x) if self.U.shape[1] else 0.0)

    def apart(self, blocks: Array, x: Array) -> Array:
        """blocks (N, p, p) times the components of x (n,) or (n, k) at their places, 0 elsewhere."""
        if self.plain:
            return blocks[:, 0] * x if x.ndim == 2 else blocks[:, 0, 0] * x
        columns = x if x.ndim == 2 else x[:, None]
        out = np.zeros_like(columns)
        out[self.places] = blocks @ columns[self.places]
        return out.reshape(x.shape)

    def dense(self) -> Array:
        """J (n, n)."""
        out = self.U @ self.G.T
        out[self.places[:, :, None], self.places[:, None, :]] += self.blocks
        return out

    def solver(self, shift: float) -> Solver:
        """(shift - J) x = b at the cost of n (p^2 + R). Raises UnsolvableError."""
        return Woodbury(self, shift)


class Woodbury:
    """(W - U G^T) x = b with W = shift - blocks, by Woodbury's formula, refined until its residual is that of a stable method.

    Where W is nearly singular though the whole is not, the formula loses digits: diagonal entries that cancel are made large
    and the difference is a column of U more; what is left is seen by the residual and never returned.
    """

    def __init__(self, J: Structured, shift: float) -> None:
        self.J, self.shift = J, shift
        if not (np.isfinite(J.blocks).all() and np.isfinite(J.U).all() and np.isfinite(J.G).all()):
            raise UnsolvableError
        self._outside = np.ones(J.n)
        self._outside[J.places] = 0.0
        U, G = J.U, J.G
        if J.blocks.shape[1] == 1:
            d = J.blocks[:, 0, 0]
            w, size = shift - d, shift + np.abs(d)
            if U.shape[1] and (weak := np.flatnonzero(np.abs(w) < WEAK * size)).size:
                if len(weak) > MOST_WEAK:
                    raise UnsolvableError
                unit = np.zeros((J.n, len(weak)))
                unit[J.places[weak, 0], range(len(weak))] = 1.0
                U, G = np.hstack([U, unit * (size - w)[weak]]), np.hstack([G, unit])
                w[weak] = size[weak]
            self._inverse: Array = 1 / w[:, None, None]
        else:
            try:
                self._inverse = np.linalg.inv(shift * np.eye(J.blocks.shape[1]) - J.blocks)
            except np.linalg.LinAlgError:
                raise UnsolvableError from None
        self.G, self.rank = G, U.shape[1]
        if self.rank:
            self.spread = self._local(U)
            self.small = _eliminate(np.eye(self.rank) - G.T @ self.spread)

    def __call__(self, b: Array) -> Array:
        x = self._once(b)
        if self.J.blocks.shape[1] == 1 and not self.rank:
            return x  # a division each
        for _ in range(4):
            residual = b - self.shift * x + self.J @ x
            size = np.abs(b) + self.shift * np.abs(x) + self._sizes(np.abs(x))
            error = float(np.max(np.abs(residual) / np.where(size == 0, 1, size), initial=0.0))
            if error <= ENOUGH:
                return x
            x = x + self._once(residual)
        if not error <= WORST:
            raise UnsolvableError
        return x

    def _once(self, b: Array) -> Array:
        x = self._local(b)
        return x + self.spread @ self.small(self.G.T @ x) if self.rank else x

    def _local(self, b: Array) -> Array:
        """W^-1 b for b (n,) or (n, k)."""
        inside = self.J.apart(self._inverse, b)
        if self.J.plain:
            return inside
        outside = self._outside / self.shift
        return inside + (outside[:, None] if b.ndim == 2 else outside) * b

    def _sizes(self, x: Array) -> Array:
        """|blocks| x + |U| |G|^T x."""
        U, G, blocks = self._absolute
        return self.J.apart(blocks, x) + U @ (G.T @ x)  # type: ignore[no-any-return]

    @cached_property
    def _absolute(self) -> tuple[Array, Array, Array]:
        return np.abs(self.J.U), np.abs(self.J.G), np.abs(self.J.blocks)


def _eliminate(matrix: Array) -> Solver:
    """x = matrix^-1 b by LAPACK. Raises UnsolvableError where matrix (n, n) is singular."""
    from scipy.linalg import lapack  # nothing but a stiff method needs scipy

    # the transpose of an array in rows is one in columns, as LAPACK wants it
    if not np.isfinite(matrix).all():  # an infinite entry would solve every system by 0
        raise UnsolvableError
    factors, pivots, info = lapack.dgetrf(matrix.T, overwrite_a=1)
    if info != 0:
        raise UnsolvableError

    def solve(b: Array) -> Array:
        x: Any = lapack.dgetrs(factors, pivots, b, trans=1)[0]
        return x  # type: ignore[no-any-return]

    return solve
