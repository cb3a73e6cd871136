"""A method as numbers: explicit Runge-Kutta, a scheme for noise, which is one with the noise of its stages, and Rosenbrock."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.stepper.control import LEAST_OLD, STIFF_GROW, STIFF_SHRINK


@dataclass(frozen=True, eq=False)
class Method:
    """An explicit method with s = `last` stages, one more at the new point, and those that only dense output needs.

    A (S, S), c (S,): S counts the stages of dense output too. Row `last` of A is b, the weights of the new state. Stage `last` is the
    derivative there, and so the first stage of the next step. Of a map s = 0: stage 0 is the new state.
    E (2, last + 1): weights of the error estimate, all zero where there is none. A second row that is not zero belongs to a second
    estimate, mixed with the first as in DOP853.
    P (S, degree): y(t + theta h) = y + h sum_j sum_p P[j, p] theta^(p+1) k_j, of order dense_order.
    error_order: the power of h in the error norm. gains: (alpha, beta) of the step control.
    """

    name: str
    order: int
    last: int
    A: Array
    c: Array
    E: Array
    P: Array
    error_order: int
    dense_order: int
    gains: tuple[float, float]
    factors: tuple[float, float]
    source: str

    @property
    def b(self) -> Array:
        """The weights of the new state (last + 1,)."""
        return self.A[self.last, : self.last + 1]

    @cached_property
    def adaptive(self) -> bool:
        """Whether the method has an error estimate."""
        return bool(np.any(self.E))

    @cached_property
    def numbers(self) -> dict[str, float]:
        """The numbers of its control and estimate, by their names in the text of a step."""
        (alpha, beta), (shrink, grow) = self.gains, self.factors
        power = 1 / max(self.error_order, 1)  # a method without an estimate never reads it
        more = {"SECOND": bool(np.any(self.E[1])), "UNSEEN": float(self.E[0, self.last]) == 0.0}
        return {"ALPHA": alpha, "BETA": beta, "SHRINK": shrink, "GROW": grow, "START_POWER": power, **more}

    @cached_property
    def addresses(self) -> tuple[int, int, int, int]:
        """The addresses of A, c, E and P."""
        return self.A.ctypes.data, self.c.ctypes.data, self.E.ctypes.data, self.P.ctypes.data

    @cached_property
    def stages(self) -> int:
        """S, the number of stages, those of dense output included."""
        return len(self.c)


def rows(text: str) -> list[list[float]]:
    """The rows of numbers in a text, each ended by a semicolon; a row may be empty."""
    return [[float(number) for number in row.split()] for row in text.split(";")[:-1]]


def make_method(
    name: str,
    *,
    order: int,
    A: Sequence[Sequence[float]],
    c: Sequence[float],
    P: Sequence[Sequence[float]],
    last: int,
    dense_order: int,
    source: str,
    E: Sequence[float] = (),
    E2: Sequence[float] = (),
    error_order: int = 0,
    gains: tuple[float, float] = (0.0, 0.0),
    factors: tuple[float, float] = (0.2, 10.0),
) -> Method:
    """The Method of these rows; what is missing at their ends is zero."""
    # gains and factors belong to a method: what is best depends on its order and on how its estimate scatters. The zeros are stored, since
    # loops over a table take any method; those who write a step out leave them away
    total = len(c)
    times = np.array(c, float)
    times.setflags(write=False)
    weights, polynomials = _table((E, E2), 2, last + 1), _table(P, total, max(map(len, P)))
    return Method(name, order, last, _table(A, total, total), times, weights, polynomials, error_order, dense_order, gains, factors, source)


def _table(rows: Iterable[Sequence[float]], height: int, width: int) -> Array:
    """An array (height, width) of rows, 0 where they end; nobody changes it."""
    table = np.zeros((height, width))
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    table.setflags(write=False)
    return table


def step_cost(method: Method, right: float, n: int) -> float:
    """The cost of an explicit step in nanoseconds: right-hand sides, and sums of stages over n components."""
    return method.last * right + 0.06 * n * _terms(method) + 50.0


@cache
def _terms(method: Method) -> int:
    """The terms of all sums of stages."""
    return int(np.count_nonzero(method.A[: method.last + 1]))


@cache
def stable_up_to(method: Method) -> float:
    """The largest x > 0 for which the method is stable on y' = -y with steps of x."""
    for x in np.arange(0.05, 20.0, 0.05):
        stages = np.zeros(method.last + 1)
        for i in range(method.last + 1):
            stages[i] = 1 - x * float(method.A[i, :i] @ stages[:i])
        if abs(stages[-1]) > 1:
            return float(x)
    return 20.0


# A scheme for noise is the tableau of an explicit method, and the noise that each of its stages sees.
#
# A stage of a scheme evaluates F = f + sum_c g_c r_c, the right-hand side of odesim.ir.noise, with the rates
# r_c = (a xi0 + b xi1 + d + q (xi0^2 - 1)/2 + c (xi0^3 - 3 xi0)/6)/sqrt(h) of its row (a, b, d, q, c) of `noise`, whose end may be left
# out, from the two normal numbers of a step and channel (odesim.runtime.normals).
# So a stochastic step is an explicit step, whose text, lanes, saves and limits it shares.


@dataclass(frozen=True, eq=False)
class Scheme(Method):
    """A Method for noise. calculus: of the drift that it needs. second: its right-hand side has the term of Milstein.

    noise: (a, b, d, q, c) of each stage. kinds: of noise that it is for (odesim.ir.noise).
    """

    calculus: str = "ito"
    second: bool = False
    noise: tuple[tuple[float, ...], ...] = ()
    kinds: tuple[str, ...] = ()

    @property
    def draws(self) -> int:
        """How many normal numbers a step takes for each channel."""
        return 1 + any(row[1] for row in self.noise)


ALL = ("additive", "additive in time", "diagonal", "commuting", "general")


def make_scheme(name: str, A: Sequence[Sequence[float]], noise: Sequence[Sequence[float]], source: str, **more: Any) -> Scheme:
    """The Scheme with these stages and, as the last row of A, the weights of the new state; for ALL kinds of noise."""
    c = [sum(row) for row in A]
    # between two steps there is no path to speak of: states are saved at steps
    m = make_method(name, order=1, A=A, c=c, P=[(w,) for w in A[-1]], last=len(A) - 1, dense_order=1, source=source)
    return Scheme(**vars(m), noise=tuple((*row, 0.0, 0.0, 0.0)[:5] for row in noise), **{"kinds": ALL, **more})


# A Rosenbrock method as numbers.


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

    @cached_property
    def numbers(self) -> dict[str, float]:
        """Its gamma and the numbers of its control, by their names in the text of a step."""
        p = self.error_order
        powers = {"START_POWER": 1 / p, "ERROR_POWER": -0.5 / p, "MOST_LESS": LEAST_OLD ** (-1 / p)}
        return {"GAMMA": self.gamma, "SHRINK": STIFF_SHRINK, "GROW": STIFF_GROW, **powers}

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
    return Rosenbrock(name, order, gamma, _table(A, s, s), _table(C, s, s), _table(H, len(H), s), error_order, dense_order, source)
