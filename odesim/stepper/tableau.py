"""An explicit Runge-Kutta method as numbers, and a scheme for noise, which is one with the noise of its stages."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from odesim.base.arrays import Array


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
    full = np.zeros((total, total))
    for i, row in enumerate(A):
        full[i, : len(row)] = row
    weights = np.zeros((2, last + 1))
    for i, estimate in enumerate((E, E2)):
        weights[i, : len(estimate)] = estimate
    polynomials = np.zeros((total, max(map(len, P))))
    for j, coefficients in enumerate(P):
        polynomials[j, : len(coefficients)] = coefficients
    times = np.array(c, float)
    for array in (full, times, weights, polynomials):
        array.setflags(write=False)
    return Method(name, order, last, full, times, weights, polynomials, error_order, dense_order, gains, factors, source)


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
