"""Jacobians as numbers, and the solution of (shift - J) x = b: dense, blocks and low rank, sparse, or by products alone."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from odesim.base.arrays import Array

SMALL_ERROR = 1e-14
"""The backward error, relative to the size of all terms, below which a solution needs no refinement."""
LARGEST_ERROR = 1e-11
"""The backward error above which a solution is not accepted."""
WEAK = 1e-5
"""The size of a diagonal entry, relative to its terms, below which it is moved into the part of low rank."""
MOST_WEAK = 64


class UnsolvableError(ArithmeticError):
    """The system (shift - J) x = b is singular to rounding; with a step of another size it is not."""


class Solver(Protocol):
    """A solver of (shift - J) x = b for one shift."""

    def __call__(self, b: Array) -> Array:
        """The solution x (n,) for b (n,). Raises UnsolvableError."""


@dataclass(frozen=True)
class Dense:
    """A Jacobian as a dense matrix J (n, n)."""

    J: Array

    def __matmul__(self, x: Array) -> Array:
        return self.J @ x

    def dense(self) -> Array:
        return self.J

    def solver(self, shift: float, least: float | Array = 0.0) -> Solver:
        """The solver of (shift - J) x = b by LU decomposition with pivots, not refined. Raises UnsolvableError."""
        matrix = -self.J
        matrix[np.diag_indices_from(matrix)] += shift
        return eliminate(matrix)


@dataclass(frozen=True)
class Structured:
    """A Jacobian J = blocks + U G^T.

    blocks (N, p, p): block k couples the components places[k] (p,). places (N, p): each component is in at most one block; a component
    in none has a block of 0. U, G (n, R): one column for each sum.
    """

    blocks: Array
    places: Array
    U: Array
    G: Array

    @cached_property
    def n(self) -> int:
        return len(self.U)

    @cached_property
    def is_diagonal(self) -> bool:
        """Whether block k is the single component k."""
        return self.places.shape == (self.n, 1) and bool(np.array_equal(self.places[:, 0], np.arange(self.n)))

    def __matmul__(self, x: Array) -> Array:
        return self.multiply_blocks(self.blocks, x) + (self.U @ (self.G.T @ x) if self.U.shape[1] else 0.0)

    def multiply_blocks(self, blocks: Array, x: Array) -> Array:
        """The product of blocks (N, p, p) with x (n,) or (n, k), at their places; 0 elsewhere."""
        if self.is_diagonal:
            return blocks[:, 0] * x if x.ndim == 2 else blocks[:, 0, 0] * x
        columns = x if x.ndim == 2 else x[:, None]
        out = np.zeros_like(columns)
        out[self.places] = blocks @ columns[self.places]
        return out.reshape(x.shape)

    def dense(self) -> Array:
        """The matrix J (n, n)."""
        out = self.U @ self.G.T
        out[self.places[:, :, None], self.places[:, None, :]] += self.blocks
        return out

    def solver(self, shift: float, least: float | Array = 0.0) -> Solver:
        """The solver of (shift - J) x = b, at a cost of n (p^2 + R). least: as for refined. Raises UnsolvableError."""
        return Woodbury(self, shift, least)


class Woodbury:
    """A solver of (W - U G^T) x = b with W = shift - blocks, by Woodbury's formula with iterative refinement.

    Where W is nearly singular though the whole matrix is not, the formula loses digits. Diagonal entries that cancel are therefore
    made large, with the difference in a new column of U. The residual shows any other loss, and such a solution is never returned.
    """

    def __init__(self, J: Structured, shift: float, least: float | Array) -> None:
        self.J, self.shift, self.least = J, shift, least
        if not (np.isfinite(J.blocks).all() and np.isfinite(J.U).all() and np.isfinite(J.G).all()):
            raise UnsolvableError
        self._outside = np.ones(J.n)
        self._outside[J.places] = 0.0
        U, G = J.U, J.G
        if J.blocks.shape[1] == 1:
            d = J.blocks[:, 0, 0]
            w, size = shift - d, shift + np.abs(d)
            # where shift - d cancels, Woodbury's formula subtracts large numbers: the entry is made large, the difference one more column
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
            self.inverse_U = self._solve_blocks(U)
            self.small_solver = eliminate(np.eye(self.rank) - G.T @ self.inverse_U)

    def __call__(self, b: Array) -> Array:
        if self.J.blocks.shape[1] == 1 and not self.rank:
            return self._solve_unrefined(b)  # one division per component
        return refined(self._solve_unrefined, self.J, self.shift, b, self._term_sizes, self.least)

    def _solve_unrefined(self, b: Array) -> Array:
        """x by Woodbury's formula, without refinement."""
        x = self._solve_blocks(b)
        return x + self.inverse_U @ self.small_solver(self.G.T @ x) if self.rank else x

    def _solve_blocks(self, b: Array) -> Array:
        """W^-1 b for b (n,) or (n, k)."""
        inside = self.J.multiply_blocks(self._inverse, b)
        if self.J.is_diagonal:
            return inside
        outside = self._outside / self.shift
        return inside + (outside[:, None] if b.ndim == 2 else outside) * b

    def _term_sizes(self, x: Array) -> Array:
        """The sizes of the terms of J x: |blocks| x + |U| |G|^T x, for x >= 0."""
        U, G, blocks = self._absolute
        return self.J.multiply_blocks(blocks, x) + U @ (G.T @ x)

    @cached_property
    def _absolute(self) -> tuple[Array, Array, Array]:
        return np.abs(self.J.U), np.abs(self.J.G), np.abs(self.J.blocks)


def refined(
    solve: Callable[[Array], Array], J: Any, shift: float, b: Array, term_sizes: Callable[[Array], Array], least: float | Array
) -> Array:
    """The solution of (shift - J) x = b by an inexact solver. Raises UnsolvableError where the residual stays large.

    term_sizes: a function of |x| that gives the sizes of the terms of J x. least: the size from which components of x count.
    """
    # Each row is held against its own terms: components of many sizes stand side by side. But far from the front of a local start they fall
    # below 1e-308, where numbers have few digits, and the rounding of large components cannot be refined away beyond 1e-32 of their size.
    x = solve(b)
    for _ in range(4):
        residual = b - shift * x + J @ x
        sizes = np.abs(x) + least
        size = np.abs(b) + shift * sizes + term_sizes(sizes)
        error = float(np.max(np.abs(residual) / np.where(size == 0, 1, size), initial=0.0))
        if error <= SMALL_ERROR:
            return x
        x = x + solve(residual)
    if not error <= LARGEST_ERROR:
        raise UnsolvableError
    return x


def eliminate(matrix: Array) -> Solver:
    """The solver of matrix x = b by LAPACK. Raises UnsolvableError where matrix (n, n) is singular."""
    from scipy.linalg import lapack  # only stiff methods need scipy

    if not np.isfinite(matrix).all():  # an infinite entry would solve every system by 0
        raise UnsolvableError
    # LAPACK by itself: scipy's lu_factor would check and copy what was checked above
    # the transpose of a C-contiguous array is in column order, as LAPACK needs it
    factors, pivots, info = lapack.dgetrf(matrix.T, overwrite_a=1)
    if info != 0:
        raise UnsolvableError

    def solve(b: Array) -> Array:
        return lapack.dgetrs(factors, pivots, b, trans=1)[0]

    return solve


class Pattern:
    """The places of the entries of a sparse matrix of unknowns, the first n of which are states; entries at one place add up.

    rows (entries,): in the order of columns. diagonal (n,): the entries that shifts go to. fill(values): the entries from the values at
    the places that were given, in their order.
    """

    def __init__(self, n: int, unknowns: int, rows: Array, columns: Array) -> None:
        self.n, self.unknowns = n, unknowns
        states = np.arange(n)
        keys, which = np.unique(np.concatenate([columns, states]) * unknowns + np.concatenate([rows, states]), return_inverse=True)
        self._which = which[: len(rows)]
        self.rows = (keys % unknowns).astype(np.int32)
        self._starts = np.searchsorted(keys, np.arange(unknowns + 1) * unknowns).astype(np.int32)
        self.diagonal = which[len(rows) :]

    def fill(self, values: Array) -> Array:
        return np.bincount(self._which, values, len(self.rows)).astype(np.float64, copy=False)  # without values it counts

    def matrix(self, entries: Array) -> Any:
        """The matrix of scipy, column by column."""
        from scipy.sparse import csc_array  # only stiff methods need scipy

        return csc_array((entries, self.rows, self._starts), shape=(self.unknowns, self.unknowns))


@dataclass(frozen=True)
class Sparse:
    """A Jacobian J of states, in a sparse matrix with more unknowns: J x = A x + B s where s = C x + D s.

    entries: of the matrix [[-A, -B], [-C, 1 - D]] in its pattern.
    """

    pattern: Pattern
    entries: Array

    def __matmul__(self, x: Array) -> Array:
        return -(self._matrix[: len(x)] @ np.concatenate([x, self._others(x)]))

    def _others(self, x: Array) -> Array:
        """The unknowns s beside the states x."""
        n = self.pattern.n
        if self.pattern.unknowns == n:
            return np.zeros(0)
        return self._inner(-(self._matrix[n:, :n] @ x))

    @cached_property
    def _inner(self) -> Any:
        from scipy.sparse.linalg import splu

        return splu(self._matrix[self.pattern.n :, self.pattern.n :].tocsc()).solve

    @cached_property
    def _matrix(self) -> Any:
        return self.pattern.matrix(self.entries)

    def dense(self) -> Array:
        """The matrix J (n, n)."""
        return np.stack([self @ e for e in np.eye(self.pattern.n)], axis=1)

    def solver(self, shift: float, least: float | Array = 0.0) -> Solver:
        """The solver of (shift - J) x = b by sparse LU decomposition with pivots, not refined. Raises UnsolvableError."""
        from scipy.sparse.linalg import splu

        if not np.isfinite(self.entries).all():
            raise UnsolvableError
        entries, n = self.entries.copy(), self.pattern.n
        entries[self.pattern.diagonal] += shift
        try:
            solve = splu(self.pattern.matrix(entries)).solve
        except RuntimeError:  # exactly singular
            raise UnsolvableError from None
        rest = np.zeros(self.pattern.unknowns - n)
        return lambda b: solve(np.concatenate([b, rest]))[:n]


Jacobian: TypeAlias = Dense | Structured | Sparse


# Linear systems of a matrix that is known by its products alone: those of a stiff step, and of Newton's method for rest states.

PART = 1e-3
"""The root mean square of what is left of a right side, in units of a step's error."""
MOST_DIRECTIONS = 200
"""Directions of one step: they take 16 n of memory each."""
FALLS = 0.9
"""A direction is the residual where the last one has made it smaller than this part of what it was."""


@dataclass(frozen=True)
class Products:
    """A Jacobian J by its products: times(x (n,)) is J x (n,). diagonal (n,): a part of its diagonal that is cheap to have."""

    times: Callable[[Array], Array]
    diagonal: Array

    def __matmul__(self, x: Array) -> Array:
        return self.times(x)


class LeastResiduals:
    """A solver of A x = b by least residuals over a space of directions, which all right sides share.

    The images of directions are orthonormal, as in GCR. A direction is the residual times `rough`, about the inverse of A. Where the
    residual hardly falls it is the last image, so that nothing breaks down as GCR does (P. Jiranek, M. Rozloznik, M. Gutknecht, SIAM J.
    Matrix Anal. Appl. 30 (2008) 1483). Without `rough` all directions are products of b: where A is singular and symmetric x is the
    solution of least norm, and where it is not, x is a rate of change too, so that what no rate changes keeps its value.
    """

    def __init__(self, product: Callable[[Array], Array], n: int, rough: float | Array = 1.0) -> None:
        self._product, self._rough, self._products = product, rough, 0
        self._directions, self._images = np.empty((2, 0, n))

    def __call__(self, b: Array, small: float) -> tuple[Array, bool]:
        """x (n,) with a residual of this length, or as near as MOST_DIRECTIONS directions come, and whether it has it."""
        rest = b.astype(np.float64)
        parts = self._images[: self._products] @ rest
        rest -= parts @ self._images[: self._products]
        x = parts @ self._directions[: self._products]
        size, before = float(np.linalg.norm(rest)), np.inf
        while not size <= small:
            k = self._products
            if k == MOST_DIRECTIONS or not np.isfinite(size):
                return np.asarray(x), False
            p = self._rough * rest / size if size <= FALLS * before or k == 0 else self._images[k - 1].copy()
            q = self._product(p)
            for _ in range(2):  # once leaves the images orthogonal to some 1e-16 times the condition of the matrix
                along = self._images[:k] @ q
                q -= along @ self._images[:k]
                p -= along @ self._directions[:k]
            length = float(np.linalg.norm(q))
            if not length > 0.0:
                return np.asarray(x), False
            self._append(p / length, q / length)
            part = float(self._images[k] @ rest)
            rest -= part * self._images[k]
            x += part * self._directions[k]
            size, before = float(np.linalg.norm(rest)), size
        return np.asarray(x), True

    def _append(self, direction: Array, image: Array) -> None:
        k = self._products
        if k == len(self._images):
            room = np.empty((max(k, 8), len(image)))
            self._directions, self._images = (np.concatenate([a, room]) for a in (self._directions, self._images))
        self._directions[k], self._images[k] = direction, image
        self._products = k + 1


class Krylov:
    """A solver of (shift - J) x = b. units (n,): the errors that a step may have, in which residuals are measured.

    The stages of a Rosenbrock step are systems of one matrix: the first finds most directions, and the others begin with the best x in
    their span.
    """

    def __init__(self, J: Products, shift: float, units: Array) -> None:
        self._units, self._scale = units, shift * units
        # what grows is left to the products: 1 - d / shift might be 0
        rough = 1 / (1 - np.minimum(J.diagonal, 0.0) / shift)
        self._solve = LeastResiduals(lambda p: p - (J @ (units * p)) / self._scale, len(units), rough)

    def __call__(self, b: Array) -> Array:
        """The solution x (n,) for b (n,). Raises UnsolvableError where MOST_DIRECTIONS directions do not suffice."""
        x, solved = self._solve(b / self._scale, PART * float(np.sqrt(len(b))))
        if not solved:
            raise UnsolvableError
        return self._units * x
