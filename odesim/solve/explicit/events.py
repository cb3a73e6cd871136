"""Zeros of the event functions inside an accepted step, on the interpolant, piece by piece."""

import numpy as np
from numba import njit

from odesim.arrays import Array
from odesim.solve.explicit.call import call
from odesim.solve.explicit.dense import interpolate
from odesim.solve.explicit.slots import EVENTS, FOUND, G, G_OLD, PIECES, T_STOP, TABLE, THETA_STOP, WIDTH, WORK


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _values(
    at: Array, count: Array, t: float, h: float, new: float, P: Array, coef: Array, n: int, theta: float, row: int, size: int
) -> None:
    """Row row of g (3, size) = the event functions at t + theta h; theta = 1: at the new state, whose time is new."""
    scratch = at[WORK] + 2 * n * at[WIDTH]
    interpolate(at, count, n, P, coef, h, theta, scratch)
    time = t + theta * h if theta < 1.0 else new
    call(at[EVENTS], (at[TABLE], time, scratch, at[G] + row * size * at[WIDTH]))


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _root(
    at: Array, count: Array, t: float, h: float, new: float, P: Array, coef: Array, n: int, g: Array, i: int, lo: float, hi: float
) -> float:
    """The theta in (lo, hi] where component i has crossed zero: Illinois steps, every fourth one a bisection.

    g_lo and g_hi are its values in rows 1 - G_OLD and G_OLD of g. Ends when the bracket is as narrow as the floats around the time.
    """
    g_lo, g_hi = np.float64(g[1 - count[G_OLD], i]), np.float64(g[count[G_OLD], i])
    width = 2.2e-16 * (1.0 + abs(new) / h)
    side = 0
    for trial in range(200):
        if hi - lo <= width or g_hi == 0.0:
            break
        theta = hi - g_hi * ((hi - lo) / (g_hi - g_lo))
        if trial % 4 == 3 or not lo < theta < hi:
            theta = lo + 0.5 * (hi - lo)
        _values(at, count, t, h, new, P, coef, n, theta, np.int64(2), g.shape[1])
        value = np.float64(g[2, i])
        if value * g_lo > 0.0:
            lo, g_lo = theta, value
            if side == 1:
                g_hi *= 0.5
            side = 1
        else:
            hi, g_hi = theta, value
            if side == 2:
                g_lo *= 0.5
            side = 2
    return hi


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def find_events(
    at: Array, count: Array, real: Array, t: float, h: float, new: float, P: Array, coef: Array, n: int,
    g: Array, direction: Array, terminal: Array, found_t: Array, found_i: Array,
) -> bool:  # fmt: skip
    """Appends the zeros in (t, new] to found_t, found_i; True at the first terminal one, whose place goes to T_STOP, THETA_STOP.

    g (3, size): row G_OLD holds the values at t, and afterwards the values at new. A zero at t itself was counted before.
    """
    size = g.shape[1]
    real[T_STOP] = new
    stopped = False
    for piece in range(count[PIECES]):
        lo, hi = piece / count[PIECES], (piece + 1) / count[PIECES]
        a = count[G_OLD]
        b = 1 - a
        _values(at, count, t, h, new, P, coef, n, hi, b, size)
        count[G_OLD] = b
        for i in range(size):
            up = g[a, i] < 0.0 and g[b, i] >= 0.0 and direction[i] >= 0
            down = g[a, i] > 0.0 and g[b, i] <= 0.0 and direction[i] <= 0
            if up or down:
                theta = _root(at, count, t, h, new, P, coef, n, g, i, lo, hi)
                time = t + theta * h if theta < 1.0 else new
                found_t[count[FOUND]], found_i[count[FOUND]] = time, i
                count[FOUND] += 1
                if terminal[i] != 0 and (not stopped or time < real[T_STOP]):
                    stopped = True
                    real[T_STOP], real[THETA_STOP] = time, theta
        if stopped:
            return True
    return False
