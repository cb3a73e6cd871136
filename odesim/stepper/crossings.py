"""The event functions inside a step of one system: samples, for the search for zeros. Compiled with the driver."""

import math
from typing import Any

import numpy as np

from odesim.runtime.memory import call, doubles, floats
from odesim.stepper.operations import fill, helper, weigh_inside
from odesim.stepper.slots import ALL, EVENTS_AT, LOOKED, PIECES, SIZE, TABLE, WIDTH, G, X, Y, Z


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
    call(at[EVENTS_AT], (at[TABLE], t, y, row))
    if at[WIDTH] == 4:
        for i in range(at[SIZE] - 1, -1, -1):  # from the last one: none is overwritten before it is read
            doubles(row)[i] = floats(row)[i]


@helper
def evaluate(at: Any, theta: float, new: float, k: int) -> None:
    """Sets sample k to the event functions at theta of the step that is searched; theta = 1: at the new state, whose time is new."""
    t, used = doubles(at[LOOKED])[0], doubles(at[LOOKED])[1]
    if theta < 1.0:
        weigh_inside(at, used, theta)
        fill(at, at[Y], at[ALL], at[X])
        put_all(at, t + theta * used, at[X], k)
    else:
        put_all(at, new, at[Z], k)


@helper
def probe(at: Any, l: int, theta: float, i: int) -> float:
    """The value of component i at theta < 1 of the step that is searched."""
    evaluate(at, theta, 0.0, at[PIECES] + 1)
    return sample(at, l, at[PIECES] + 1, i)


@helper
def begin_events(at: Any, t: float, y: int) -> None:
    """Evaluates the event functions at the start."""
    put_all(at, t, y, np.int64(0))
    for i in range(at[SIZE]):
        put(at, np.int64(-1), i, math.nan)


@helper
def sample_events(at: Any, t: float, used: float, new: float) -> None:
    """Samples the event functions at the ends of all pieces of a step of this length from t to new."""
    doubles(at[LOOKED])[0], doubles(at[LOOKED])[1] = t, used
    for piece in range(at[PIECES]):
        evaluate(at, (piece + 1) / at[PIECES], new, piece + 1)


@helper
def keep_samples(at: Any) -> None:
    """Makes the last two samples the first two of the next step."""
    last = at[PIECES]
    for i in range(at[SIZE]):
        put(at, np.int64(-1), i, sample(at, np.int64(0), last - 1, i))
        put(at, np.int64(0), i, sample(at, np.int64(0), last, i))
