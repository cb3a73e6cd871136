"""Zeros of the event functions inside an accepted step, on the interpolant, piece by piece."""

from typing import Any

import numpy as np

from odesim.solve.explicit.dense import interpolate
from odesim.solve.explicit.memory import call, doubles, floats, ints
from odesim.solve.explicit.norms import helper
from odesim.solve.explicit.slots import (
    COUNT,
    DIRECTION,
    EVENTS,
    FOUND,
    FOUND_I,
    FOUND_T,
    G_OLD,
    PIECES,
    REAL,
    SIZE,
    T_STOP,
    TABLE,
    TERMINAL,
    THETA_STOP,
    WIDTH,
    WORK,
    G,
    N,
)


@helper
def value(at: Any, row: int, i: int) -> float:
    """Entry (row, i) of G (3, SIZE)."""
    k = row * at[SIZE] + i
    return np.float64(floats(at[G])[k]) if at[WIDTH] == 4 else doubles(at[G])[k]


@helper
def evaluate(at: Any, t: float, h: float, new: float, theta: float, row: int) -> None:
    """Row row of G = the event functions at t + theta h; theta = 1: at the new state, whose time is new."""
    scratch = at[WORK] + 2 * at[N] * at[WIDTH]
    interpolate(at, h, theta, scratch)
    time = t + theta * h if theta < 1.0 else new
    call(at[EVENTS], (at[TABLE], time, scratch, at[G] + row * at[SIZE] * at[WIDTH]))


@helper
def root(at: Any, t: float, h: float, new: float, i: int, lo: float, hi: float) -> float:
    """The theta in (lo, hi] where component i has crossed zero: Illinois steps, every fourth one a bisection.

    Its values at lo and hi are in rows 1 - G_OLD and G_OLD of G. Ends when the bracket is as narrow as the floats around the time.
    """
    after = ints(at[COUNT])[G_OLD]
    g_lo, g_hi = value(at, 1 - after, i), value(at, after, i)
    width = 2.2e-16 * (1.0 + abs(new) / h)
    side = 0
    trial = 0
    while hi - lo > width and g_hi != 0.0 and trial < 200:
        trial += 1
        theta = hi - g_hi * ((hi - lo) / (g_hi - g_lo))
        if trial % 4 == 0 or not lo < theta < hi:
            theta = lo + 0.5 * (hi - lo)
        evaluate(at, t, h, new, theta, np.int64(2))
        g = value(at, np.int64(2), i)
        if g * g_lo > 0.0:
            lo, g_lo = theta, g
            if side == 1:
                g_hi *= 0.5
            side = 1
        else:
            hi, g_hi = theta, g
            if side == 2:
                g_lo *= 0.5
            side = 2
    return hi


@helper
def find_events(at: Any, t: float, h: float, new: float) -> bool:
    """Appends the zeros in (t, new] to FOUND_T, FOUND_I; True at the first terminal one, whose place goes to T_STOP, THETA_STOP.

    Row G_OLD of G holds the values at t, and afterwards the values at new. A zero at t itself was counted before.
    """
    count, real = ints(at[COUNT]), doubles(at[REAL])
    real[T_STOP] = new
    stopped = False
    for piece in range(at[PIECES]):
        lo, hi = piece / at[PIECES], (piece + 1) / at[PIECES]
        before = count[G_OLD]
        after = 1 - before
        evaluate(at, t, h, new, hi, after)
        count[G_OLD] = after
        for i in range(at[SIZE]):
            a, b, direction = value(at, before, i), value(at, after, i), ints(at[DIRECTION])[i]
            if (a < 0.0 and b >= 0.0 and direction >= 0) or (a > 0.0 and b <= 0.0 and direction <= 0):
                theta = root(at, t, h, new, i, lo, hi)
                time = t + theta * h if theta < 1.0 else new
                doubles(at[FOUND_T])[count[FOUND]] = time
                ints(at[FOUND_I])[count[FOUND]] = i
                count[FOUND] += 1
                if ints(at[TERMINAL])[i] != 0 and (not stopped or time < real[T_STOP]):
                    stopped = True
                    real[T_STOP], real[THETA_STOP] = time, theta
        if stopped:
            return True
    return False
