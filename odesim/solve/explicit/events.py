"""Zeros of the event functions inside an accepted step, on the interpolant, piece by piece."""

from numba import njit

from odesim.arrays import Array
from odesim.solve.explicit.call import call
from odesim.solve.explicit.dense import interpolate
from odesim.solve.explicit.slots import EVENTS, FOUND, G, G_OLD, PIECES, T_STOP, TABLE, THETA_STOP, WIDTH, WORK, Y


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
def event_values(at: Array, time: float, y: int, row: int, size: int) -> None:
    """Row row of g (3, size) = the event functions at this time and state."""
    call(at[EVENTS], (at[TABLE], time, y, at[G] + row * size * at[WIDTH]))


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
def _root(
    at: Array, count: Array, t: float, h: float, P: Array, coef: Array, n: int, g: Array, i: int, lo: float, hi: float, g_lo: float, g_hi: float
) -> float:
    """The theta in (lo, hi] where component i has crossed zero: Illinois steps, every fourth one a bisection.

    Ends when the bracket is as narrow as the spacing of the floats around the time.
    """
    width = 2.2e-16 * max(abs(t + h) / h, 1.0)
    scratch = at[WORK] + 2 * n * at[WIDTH]
    side = 0
    for trial in range(200):
        if hi - lo <= width or g_hi == 0.0:
            break
        middle = lo + 0.5 * (hi - lo)
        theta = hi - g_hi * ((hi - lo) / (g_hi - g_lo))
        if trial % 4 == 3 or not lo < theta < hi:
            theta = middle
        interpolate(at, count, n, P, coef, h, theta, scratch)
        event_values(at, t + theta * h, scratch, 2, g.shape[1])
        value = float(g[2, i])
        if (value < 0.0 and g_lo < 0.0) or (value > 0.0 and g_lo > 0.0):
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


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
def find_events(
    at: Array, count: Array, real: Array, t: float, h: float, new: float, P: Array, coef: Array, n: int,
    g: Array, direction: Array, terminal: Array, found_t: Array, found_i: Array,
) -> bool:  # fmt: skip
    """Appends the zeros in (t, new] to found_t, found_i; True at the first terminal one, whose place goes to T_STOP, THETA_STOP.

    g (3, size): row G_OLD holds the values at t, and afterwards the values at new. A zero at t itself was counted before.
    """
    size = g.shape[1]
    pieces = count[PIECES]
    real[T_STOP] = new
    stopped = False
    for piece in range(pieces):
        lo, hi = piece / pieces, (piece + 1) / pieces
        a = count[G_OLD]
        b = 1 - a
        if piece + 1 == pieces:
            event_values(at, new, at[WORK] + (1 - count[Y]) * n * at[WIDTH], b, size)
        else:
            scratch = at[WORK] + 2 * n * at[WIDTH]
            interpolate(at, count, n, P, coef, h, hi, scratch)
            event_values(at, t + hi * h, scratch, b, size)
        count[G_OLD] = b
        for i in range(size):
            up = g[a, i] < 0.0 and g[b, i] >= 0.0
            down = g[a, i] > 0.0 and g[b, i] <= 0.0
            if not ((up and direction[i] >= 0) or (down and direction[i] <= 0)):
                continue
            theta = _root(at, count, t, h, P, coef, n, g, i, lo, hi, float(g[a, i]), float(g[b, i]))
            time = min(t + theta * h, new) if theta < 1.0 else new
            found_t[count[FOUND]], found_i[count[FOUND]] = time, i
            count[FOUND] += 1
            if terminal[i] and (not stopped or time < real[T_STOP]):
                stopped = True
                real[T_STOP], real[THETA_STOP] = time, theta
        if stopped:
            return True
    return False
