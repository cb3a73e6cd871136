"""Linear systems of a matrix that is known by its products alone: those of a stiff step, and of Newton's method for rest states."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from odesim.base.arrays import Array
from odesim.ir.linear_systems import UnsolvableError

PART = 1e-3
"""The root mean square of what is left of a right side, in units of a step's error."""
MOST = 200
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
        """x (n,) with a residual of this length, or as near as MOST directions come, and whether it has it."""
        rest = b.astype(np.float64)
        parts = self._images[: self._products] @ rest
        rest -= parts @ self._images[: self._products]
        x = parts @ self._directions[: self._products]
        size, before = float(np.linalg.norm(rest)), np.inf
        while not size <= small:
            k = self._products
            if k == MOST or not np.isfinite(size):
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
        """The solution x (n,) for b (n,). Raises UnsolvableError where MOST directions do not suffice."""
        x, solved = self._solve(b / self._scale, PART * float(np.sqrt(len(b))))
        if not solved:
            raise UnsolvableError
        return self._units * x
