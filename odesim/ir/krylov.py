"""Linear systems (shift - J) x = b of a Jacobian that is known by its products alone, to a part of what a step's error may be."""

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


class Krylov:
    """A solver of (shift - J) x = b by least residuals over a space of directions, which all right sides of one step share.

    The stages of a Rosenbrock step are systems of one matrix: the first finds most directions, and the others begin with the best x in
    their span. Products are orthonormal, as in GCR. A direction is the residual over shift - d, d the decay on the diagonal. Where the
    residual hardly falls it is the last product, so that nothing breaks down as GCR does (P. Jiranek, M. Rozloznik, M. Gutknecht, SIAM J.
    Matrix Anal. Appl. 30 (2008) 1483).
    units (n,): the errors that a step may have, in which residuals are measured.
    """

    def __init__(self, J: Products, shift: float, units: Array) -> None:
        self._J, self._shift, self._units = J, shift, units
        # what grows is left to the products: 1 - d / shift might be 0
        self._rough, self._products = 1 / (1 - np.minimum(J.diagonal, 0.0) / shift), 0
        self._directions, self._images = np.empty((2, 0, len(units)))

    def __call__(self, b: Array) -> Array:
        """The solution x (n,) for b (n,). Raises UnsolvableError where MOST directions do not suffice."""
        scale, small = self._shift * self._units, PART * np.sqrt(len(b))
        rest = b / scale
        parts = self._images[: self._products] @ rest
        rest -= parts @ self._images[: self._products]
        x = parts @ self._directions[: self._products]
        size, before = float(np.linalg.norm(rest)), np.inf
        while not size <= small:
            k = self._products
            if k == MOST or not np.isfinite(size):
                raise UnsolvableError
            p = self._rough * rest / size if size <= FALLS * before or k == 0 else self._images[k - 1].copy()
            q = p - (self._J @ (self._units * p)) / scale
            for _ in range(2):  # once leaves the images orthogonal to some 1e-16 times the condition of the matrix
                along = self._images[:k] @ q
                q -= along @ self._images[:k]
                p -= along @ self._directions[:k]
            length = float(np.linalg.norm(q))
            if not length > 0.0:
                raise UnsolvableError
            self._append(p / length, q / length)
            part = float(self._images[k] @ rest)
            rest -= part * self._images[k]
            x += part * self._directions[k]
            size, before = float(np.linalg.norm(rest)), size
        return np.asarray(self._units * x)

    def _append(self, direction: Array, image: Array) -> None:
        k = self._products
        if k == len(self._images):
            room = np.empty((max(k, 8), len(image)))
            self._directions, self._images = (np.concatenate([a, room]) for a in (self._directions, self._images))
        self._directions[k], self._images[k] = direction, image
        self._products = k + 1
