"""A Rosenbrock method as numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odesim.base.arrays import Array


@dataclass(frozen=True, eq=False)
class Rosenbrock:
    """A Rosenbrock method of s stages in the variables that need no product with the Jacobian J.

    (1/(gamma h) - J) u_i = f(t + alpha_i h, y + sum_{j<i} A[i, j] u_j) + sum_{j<i} C[i, j]/h u_j + h d_i df/dt,
    after Hairer and Wanner, Solving Ordinary Differential Equations II (1996), IV.7. It is stiffly accurate: the last
    stage starts from the embedded solution, the new state is that plus u_s, and u_s is the error estimate.
    A, C (s, s) below their diagonals; H (k, s): the interpolant of order dense_order, see `dense`.
    error_order: the power of h in the error norm.
    """

    name: str
    order: int
    gamma: float
    A: Array
    C: Array
    H: Array
    error_order: int
    dense_order: int
    source: str

    adaptive = True

    @cached_property
    def stages(self) -> int:
        """s."""
        return len(self.A)

    @cached_property
    def Gamma(self) -> Array:
        """(s, s): u = Gamma k, where k are the stages of the usual form; gamma on the diagonal."""
        return np.linalg.inv(np.eye(self.stages) / self.gamma - self.C)

    @cached_property
    def alpha(self) -> Array:
        """(s,): the times of the stages, in steps from t."""
        return _whole((self.A @ self.Gamma).sum(axis=1))

    @cached_property
    def d(self) -> Array:
        """(s,): the weights of df/dt."""
        return _whole(self.Gamma.sum(axis=1))

    @cached_property
    def weights(self) -> Array:
        """(s,): the new state is y + sum_j weights[j] u_j."""
        last = self.A[-1].copy()
        last[-1] = 1.0
        return last

    @cached_property
    def P(self) -> Array:
        """(s, k + 1): the coefficients of dense by powers of theta, from theta^1 on."""
        bent = np.zeros((self.stages, len(self.H) + 1))
        bent[:, :-1] += self.H.T
        bent[:, 1:] -= self.H.T
        bent[:, 0] += self.weights
        return bent

    @cached_property
    def last(self) -> int:
        """The number of the last stage."""
        return self.stages - 1

    def dense(self, theta: float) -> Array:
        """(s,): y(t + theta h) = y + sum_j dense[j] u_j, which is (1-theta) y + theta (y1 + (1-theta) sum_k theta^k H[k] u)."""
        bent = np.polynomial.polynomial.polyval(theta, self.H)
        return theta * (self.weights + (1 - theta) * bent)

    def dense_slope(self, theta: float) -> Array:
        """The derivative of dense by theta (s,)."""
        bent = np.polynomial.polynomial.polyval(theta, self.H)
        bent_slope = np.polynomial.polynomial.polyval(theta, np.polynomial.polynomial.polyder(self.H))
        return self.weights + (1 - 2 * theta) * bent + theta * (1 - theta) * bent_slope


def _whole(a: Array) -> Array:
    """The array a with entries within 1e-12 of an integer set to it, which rounding has moved."""
    return np.where(np.abs(a - np.rint(a)) < 1e-12, np.rint(a), a)


def make_rosenbrock(
    name: str,
    *,
    order: int,
    gamma: float,
    A: Sequence[Sequence[float]],
    C: Sequence[Sequence[float]],
    H: Sequence[Sequence[float]],
    error_order: int,
    dense_order: int,
    source: str,
) -> Rosenbrock:
    """The Rosenbrock of these rows; A and C without their diagonals and what lies above them."""
    s = len(A)
    full = []
    for rows in (A, C):
        square = np.zeros((s, s))
        for i, row in enumerate(rows):
            square[i, : len(row)] = row
        full.append(square)
    bent = np.array(H, float)
    for array in (*full, bent):
        array.setflags(write=False)
    return Rosenbrock(name, order, gamma, full[0], full[1], bent, error_order, dense_order, source)
