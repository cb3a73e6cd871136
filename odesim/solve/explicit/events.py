"""Zeros of the event functions inside an accepted step, on the interpolant, piece by piece."""

from typing import Any

import numpy as np

from odesim.codegen.runtime.memory import call, doubles, floats, ints
from odesim.solve.explicit.dense import interpolate
from odesim.solve.explicit.norms import helper
from odesim.solve.explicit.places import (
    COUNT,
    DIRECTION,
    EVENTS,
    FOUND,
    FOUND_I,
    FOUND_T,
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
from odesim.solve.step.roots import guess, narrowed, passes

EXACT = 8


@helper
def value(at: Any, row: int, i: int) -> float:
    """Entry (row, i) of G (PIECES + 2, SIZE)."""
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
def modelled(at: Any, i: int, theta: float) -> float:
    """Component i at theta on the polynomial through its values at the ends of all pieces, by the barycentric formula."""
    weight, above, below = 1.0, 0.0, 0.0
    for k in range(at[PIECES] + 1):
        part = weight / (theta - k / at[PIECES])
        above += part * value(at, k, i)
        below += part
        weight *= (k - at[PIECES]) / (k + 1)
    return above / below


@helper
def crosses(at: Any, piece: int, i: int) -> bool:
    """Whether component i passes zero in this piece."""
    return passes(value(at, piece, i), value(at, piece + 1, i), ints(at[DIRECTION])[i])


@helper
def root(at: Any, t: float, h: float, new: float, piece: int, i: int, exact: bool) -> float:
    """The theta in a piece at which component i has crossed zero: Illinois steps, every fourth one a bisection.

    Ends when the bracket is as narrow as the floats around the time. exact: on the event functions themselves.
    """
    lo, hi = piece / at[PIECES], (piece + 1) / at[PIECES]
    g_lo, g_hi = value(at, piece, i), value(at, piece + 1, i)
    width = 2.2e-16 * (1.0 + abs(new) / h)
    side = 0
    trial = 0
    while hi - lo > width and g_hi != 0.0 and trial < 200:
        trial += 1
        theta = guess(lo, hi, g_lo, g_hi, trial)
        if not lo < theta < hi:
            break
        if exact:
            evaluate(at, t, h, new, theta, at[PIECES] + 1)
            g = value(at, at[PIECES] + 1, i)
        else:
            g = modelled(at, i, theta)
        lo, hi, g_lo, g_hi, side = narrowed(lo, hi, g_lo, g_hi, side, theta, g)
    return hi


@helper
def find_events(at: Any, t: float, h: float, new: float) -> bool:
    """Appends the zeros in (t, new] to FOUND_T, FOUND_I; whether one is terminal: the first one's place goes to T_STOP, THETA_STOP.

    Up to EXACT zeros in a step are searched on the event functions; more of them, as of a vector with many components, on the
    polynomials through the values at the ends of the pieces, which for a function linear in the state is the interpolant itself.
    Row 0 of G holds the values at t, and afterwards the values at new.
    """
    count, real, last = ints(at[COUNT]), doubles(at[REAL]), at[PIECES]
    zeros = 0
    for piece in range(last):
        evaluate(at, t, h, new, (piece + 1) / last, piece + 1)
        for i in range(at[SIZE]):
            if crosses(at, piece, i):
                zeros += 1
    stopped = False
    real[T_STOP] = new
    if zeros > 0:
        for piece in range(last):
            for i in range(at[SIZE]):
                if crosses(at, piece, i):
                    theta = root(at, t, h, new, piece, i, zeros <= EXACT)
                    time = t + theta * h if theta < 1.0 else new
                    doubles(at[FOUND_T])[count[FOUND]] = time
                    ints(at[FOUND_I])[count[FOUND]] = i
                    count[FOUND] += 1
                    if ints(at[TERMINAL])[i] != 0 and (not stopped or time < real[T_STOP]):
                        stopped = True
                        real[T_STOP], real[THETA_STOP] = time, theta
            if stopped:
                break
    for i in range(at[SIZE]):
        if at[WIDTH] == 4:
            floats(at[G])[i] = floats(at[G])[last * at[SIZE] + i]
        else:
            doubles(at[G])[i] = doubles(at[G])[last * at[SIZE] + i]
    return stopped
