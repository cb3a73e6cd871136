# ruff: noqa: F821
# mypy: disable-error-code="name-defined"
"""The event functions inside a step of one system: their samples, and the search for zeros. Compiled with the driver.

The search itself (search.py) is compiled once for all integrators, and called by its address: a part of the driver, it would double what
a first call waits for. A GPU calls nothing by address: there find_events is another one (device.py).
"""

import math
from typing import Any

import numpy as np

from odesim.runtime.intrinsics import call, doubles, floats, ints
from odesim.stepper.operations import entry, fill, helper, weigh_inside
from odesim.stepper.search import passed

DIGIT = 10.0  # times atol: a smaller state is not known to a digit


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
    # the system writes in its own type, the search reads float64: float32 is widened in place
    row = at[G] + 8 * (k + 1) * at[SIZE]
    call(at[EVENTS_AT], (at[EVENTS_TABLE], t, y, row))
    if at[WIDTH] == 4:
        for i in range(at[SIZE] - 1, -1, -1):  # from the last one: none is overwritten before it is read
            doubles(row)[i] = floats(row)[i]


@helper
def evaluate(at: Any, theta: float, new: float, k: int) -> None:
    """Sets sample k to the event functions at theta of the step that is searched; theta = 1: at the new state, whose time is new."""
    t, used = doubles(at[LOOKED])[0], doubles(at[LOOKED])[1]
    if theta < 1.0:
        weigh_inside(at, 1.0 if at[IMPLICIT] == 1 else used, theta)
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


@helper
def find_events(at: Any, t: float, used: float, new: float) -> tuple[float, float]:
    """Appends the zeros in (t, new] to ZEROS. Returns the time and the theta of the first terminal one, or new and -1."""
    counts, every, none = ints(at[COUNTS]), np.int64(-1), np.int64(0)
    if at[LAST] == 0:  # nothing happens within an update of a map
        facts, zeros = ints(at[FACTS]), doubles(at[ZEROS])
        counts[FOUND], end, place = passed(sample, at, none, facts, at[SIZE], new, zeros, counts[FOUND], at[ROOM])
        return end, place
    call(at[SEARCH], (at[SEARCHED], none, counts[FOUND], every, t, used, new))
    answer = doubles(at[ANSWER])
    count = int(answer[0])
    if count > counts[FOUND] and at[ATOLS] > 0:
        mark_small(at, t, new, count)
    counts[FOUND] = count
    return answer[1], answer[2]


@helper
def without_small(at: Any, t: float, state: int) -> bool:
    """Sets the sample of the probe to the event functions at t and a state in which components not known to a digit are 0.

    These are below ten times atol before and after the step. Returns whether there are any.
    """
    small, scratch, single = False, at[X], at[WIDTH] == 4
    for i in range(at[N]):
        least = DIGIT * entry(at[ATOL], i if at[ATOLS] > 1 else np.int64(0), single)
        if single:
            both = max(abs(floats(at[Y])[i]), abs(floats(at[Z])[i]))
            floats(scratch)[i] = np.float32(0.0) if both <= least else floats(state)[i]
        else:
            both = max(abs(doubles(at[Y])[i]), abs(doubles(at[Z])[i]))
            doubles(scratch)[i] = 0.0 if both <= least else doubles(state)[i]
        small = small or (both > 0.0 and both <= least)
    if small:
        put_all(at, t, scratch, at[PIECES] + 1)
    return small


@helper
def mark_small(at: Any, t: float, new: float, count: int) -> None:
    """Adds 1/2 to the number of each zero of this step whose function has another sign at an end without such components."""
    counts, zeros, none = ints(at[COUNTS]), doubles(at[ZEROS]), np.int64(0)
    for k in range(2):
        if not without_small(at, t if k == 0 else new, at[Y] if k == 0 else at[Z]):
            return
        for j in range(counts[FOUND], count):
            i = int(zeros[2 * j + 1])
            g, rest = sample(at, none, none if k == 0 else at[PIECES], i), sample(at, none, at[PIECES] + 1, i)
            if g * rest <= 0.0 and g != rest:
                zeros[2 * j + 1] = i + 0.5


def probed(address: int, theta: float, l: int, _: int) -> None:
    """Puts the event functions at theta where the search looks for them; address: that of the table of the run."""
    probe(ints(address), l, theta, np.int64(0))
