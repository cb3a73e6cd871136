"""The event functions inside an accepted step: the inputs of odesim.solve.step.search for an explicit run."""

import math
from typing import Any

import numpy as np

from odesim.runtime.memory import call, doubles, floats
from odesim.solve.explicit.dense import interpolate
from odesim.solve.explicit.norms import helper
from odesim.solve.explicit.places import (
    EVENTS,
    LENGTH,
    PIECES,
    REAL,
    SIZE,
    T0,
    TABLE,
    WIDTH,
    WORK,
    G,
    N,
    T,
)


@helper
def sample(at: Any, l: int, k: int, i: int) -> float:
    """The value of component i at the end of piece k: entry (k + 1, i) of G."""
    return doubles(at[G])[(k + 1) * at[SIZE] + i]


@helper
def put(at: Any, k: int, i: int, g: float) -> None:
    """Sets the value that sample(at, l, k, i) returns."""
    doubles(at[G])[(k + 1) * at[SIZE] + i] = g


@helper
def put_all(at: Any, t: float, y: int, k: int) -> None:
    """Sets sample k to the event functions at time t and the state at this address."""
    row = at[G] + 8 * (k + 1) * at[SIZE]
    call(at[EVENTS], (at[TABLE], t, y, row))
    if at[WIDTH] == 4:
        for i in range(at[SIZE] - 1, -1, -1):  # from the last one: none is overwritten before it is read
            doubles(row)[i] = floats(row)[i]


@helper
def evaluate(at: Any, t: float, h: float, new: float, theta: float, k: int) -> None:
    """Sets sample k to the event functions at t + theta h; theta = 1: at the new state, whose time is new."""
    scratch = at[WORK] + 2 * at[N] * at[WIDTH]
    interpolate(at, h, theta, scratch)
    put_all(at, t + theta * h if theta < 1.0 else new, scratch, k)


@helper
def probe(at: Any, l: int, theta: float, i: int) -> float:
    """The value of component i at theta < 1 of the step that begins at T."""
    real = doubles(at[REAL])
    evaluate(at, real[T], real[LENGTH], real[T], theta, at[PIECES] + 1)
    return sample(at, l, at[PIECES] + 1, i)


@helper
def begin_events(at: Any) -> None:
    """Evaluates the event functions at the start."""
    put_all(at, doubles(at[REAL])[T0], at[WORK], np.int64(0))
    for i in range(at[SIZE]):
        put(at, np.int64(-1), i, math.nan)
