"""Zeros of the event functions inside an accepted step: the inputs of odesim.solve.step.search for an explicit run."""

import math
from typing import Any

import numpy as np

from odesim.codegen.runtime.memory import call, doubles, floats, ints
from odesim.solve.explicit.dense import interpolate
from odesim.solve.explicit.norms import helper
from odesim.solve.explicit.places import (
    COUNT,
    EVENTS,
    FACTS,
    FOUND,
    LAST,
    LENGTH,
    PIECES,
    REAL,
    ROOM,
    SIZE,
    T0,
    T_STOP,
    TABLE,
    THETA_STOP,
    WIDTH,
    WORK,
    ZEROS,
    G,
    N,
    T,
)
from odesim.solve.step.search import passed, search


@helper
def sample(at: Any, l: int, k: int, i: int) -> float:
    """The value of component i at the end of piece k: entry (k + 1, i) of G."""
    place = (k + 1) * at[SIZE] + i
    return np.float64(floats(at[G])[place]) if at[WIDTH] == 4 else doubles(at[G])[place]


@helper
def put(at: Any, k: int, i: int, g: float) -> None:
    """Sets the value that sample(at, l, k, i) returns."""
    place = (k + 1) * at[SIZE] + i
    if at[WIDTH] == 4:
        floats(at[G])[place] = g
    else:
        doubles(at[G])[place] = g


@helper
def evaluate(at: Any, t: float, h: float, new: float, theta: float, k: int) -> None:
    """Sets sample k to the event functions at t + theta h; theta = 1: at the new state, whose time is new."""
    scratch = at[WORK] + 2 * at[N] * at[WIDTH]
    interpolate(at, h, theta, scratch)
    time = t + theta * h if theta < 1.0 else new
    call(at[EVENTS], (at[TABLE], time, scratch, at[G] + (k + 1) * at[SIZE] * at[WIDTH]))


@helper
def probe(at: Any, l: int, theta: float, i: int) -> float:
    """The value of component i at theta < 1 of the step that begins at T."""
    real = doubles(at[REAL])
    evaluate(at, real[T], real[LENGTH], real[T], theta, at[PIECES] + 1)
    return sample(at, l, at[PIECES] + 1, i)


@helper
def begin_events(at: Any) -> None:
    """Evaluates the event functions at the start."""
    call(at[EVENTS], (at[TABLE], doubles(at[REAL])[T0], at[WORK], at[G] + at[SIZE] * at[WIDTH]))
    for i in range(at[SIZE]):
        put(at, np.int64(-1), i, math.nan)


@helper
def find_events(at: Any, t: float, h: float, new: float) -> bool:
    """Appends the zeros in (t, new] to ZEROS; returns whether one is terminal: the first one's place goes to T_STOP, THETA_STOP.

    Sample 0 is that at t, and afterwards that at new.
    """
    count, real, last = ints(at[COUNT]), doubles(at[REAL]), at[PIECES]
    real[LENGTH] = h
    for piece in range(last):
        evaluate(at, t, h, new, (piece + 1) / last, piece + 1)
    facts, zeros = ints(at[FACTS]), doubles(at[ZEROS])
    if at[LAST] == 0:
        count[FOUND], real[T_STOP], real[THETA_STOP] = passed(sample, at, np.int64(0), facts, at[SIZE], new, zeros, count[FOUND], at[ROOM])
    else:
        count[FOUND], real[T_STOP], real[THETA_STOP] = search(
            sample, probe, at, np.int64(0), facts, at[SIZE], last, t, h, new, zeros, count[FOUND], at[ROOM], np.int64(-1)
        )
    for i in range(at[SIZE]):
        put(at, np.int64(-1), i, sample(at, np.int64(0), last - 1, i))
        put(at, np.int64(0), i, sample(at, np.int64(0), last, i))
    return real[THETA_STOP] >= 0.0
