"""Zeros of the event functions inside an accepted step, on the interpolant, piece by piece."""

import ctypes
import math
from collections.abc import Callable

import numpy as np

from odesim.base.arrays import Array
from odesim.solve.problem import Problem

EXACT = 8
_EVENTS = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_double, ctypes.c_int64, ctypes.c_int64)

Between = Callable[[float], tuple[float, Array]]
"""theta -> (time, state (n,)) within the step."""


class Search:
    """The event functions of a problem, and their values g (size,) where the last step ended."""

    def __init__(self, problem: Problem, pieces: int) -> None:
        self.problem, self.pieces = problem, pieces
        specs = problem.events
        self.size = problem.rhs.n_events
        self.terminal = np.array([e.terminal for e in specs for _ in range(e.size)], bool)
        self.direction = np.array([e.direction for e in specs for _ in range(e.size)], np.int64)
        self.g = np.empty(0)
        self._found: list[tuple[Array, Array]] = []

    def found(self) -> tuple[Array, Array]:
        """Times and component numbers of the zeros kept so far."""
        times, numbers = zip(*[(np.empty(0), np.empty(0, np.int64)), *self._found], strict=True)
        return np.concatenate(times), np.concatenate(numbers)

    def values(self, t: float, y: Array) -> Array:
        """The event functions (size,) at (t, y)."""
        rhs = self.problem.rhs
        seen, out = np.ascontiguousarray(y, rhs.dtype), np.empty(self.size, rhs.dtype)
        _EVENTS(rhs.events)(rhs.table, t, seen.ctypes.data, out.ctypes.data)
        rhs.check()
        return out.astype(np.float64)

    def find(self, t: float, h: float, new: float, between: Between) -> float | None:
        """Keeps the zeros of a step of h from t to new up to the first terminal one, and returns the theta of that one.

        Up to EXACT zeros in a step are searched on the event functions, more of them on the polynomials through their values at the
        ends of the pieces. A zero where the step begins was counted before.
        """
        ends = np.linspace(0, 1, self.pieces + 1)
        rows = np.stack([self.g, *(self.values(*between(theta)) for theta in ends[1:])])
        self.g = rows[-1]
        up = (rows[:-1] < 0) & (rows[1:] >= 0) & (self.direction >= 0)
        down = (rows[:-1] > 0) & (rows[1:] <= 0) & (self.direction <= 0)
        piece, which = np.nonzero(up | down)
        if not len(piece):
            return None

        def exact(theta: Array) -> Array:
            return np.array([self.values(*between(float(at)))[i] for at, i in zip(theta, which, strict=True)])

        g = exact if len(piece) <= EXACT else _polynomials(ends, rows[:, which])
        width = 2.2e-16 * (1 + abs(new) / h)
        theta = roots(g, ends[piece], ends[piece + 1], rows[piece, which], rows[piece + 1, which], width)
        stops = theta[self.terminal[which]]
        stop = float(stops.min()) if len(stops) else None
        kept = theta <= (1.0 if stop is None else stop)
        self._found.append((np.where(theta < 1, t + theta * h, new)[kept], which[kept]))
        return stop


def roots(g: Callable[[Array], Array], lo: Array, hi: Array, g_lo: Array, g_hi: Array, width: float) -> Array:
    """theta (k,) at which each component of g has crossed zero between lo and hi: Illinois steps, every fourth one a bisection."""
    lo, hi, g_lo, g_hi = (np.array(a, float) for a in (lo, hi, g_lo, g_hi))
    side = np.zeros(len(lo), np.int64)
    for trial in range(1, 201):
        open_ = (hi - lo > width) & (g_hi != 0)
        if not open_.any():
            break
        with np.errstate(all="ignore"):
            theta = hi - g_hi * ((hi - lo) / (g_hi - g_lo))
        middle = lo + 0.5 * (hi - lo)
        theta = np.where((lo < theta) & (theta < hi) & (trial % 4 != 0), theta, middle)
        value = g(np.where(open_, theta, hi))
        left, right = open_ & (value * g_lo > 0), open_ & ~(value * g_lo > 0)
        lo, g_lo = np.where(left, theta, lo), np.where(left, value, np.where(right & (side == 2), 0.5 * g_lo, g_lo))
        hi, g_hi = np.where(right, theta, hi), np.where(right, value, np.where(left & (side == 1), 0.5 * g_hi, g_hi))
        side = np.where(left, 1, np.where(right, 2, side))
    return hi


def _polynomials(ends: Array, rows: Array) -> Callable[[Array], Array]:
    """theta (k,) -> the k polynomials through rows (len(ends), k) at ends, each at its own theta, by the barycentric formula."""
    degree = len(ends) - 1
    weights = [(-1) ** j * math.comb(degree, j) for j in range(degree + 1)]

    def at(theta: Array) -> Array:
        above, below = np.zeros_like(theta), np.zeros_like(theta)
        met = np.full(theta.shape, -1)
        for j, (end, weight) in enumerate(zip(ends, weights, strict=True)):
            gap = theta - end
            met[gap == 0] = j
            part = weight / np.where(gap == 0, 1, gap)
            above += part * rows[j]
            below += part
        return np.where(met >= 0, rows[met, np.arange(len(met))], above / np.where(below == 0, 1, below))

    return at
