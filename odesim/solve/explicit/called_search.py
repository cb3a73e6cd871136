"""The search for zeros in a step, on the processor: compiled by itself, and called by its address."""

from typing import Any

import numpy as np

from odesim.runtime.memory import call, doubles, floats, ints
from odesim.solve.explicit.events import probe, put_all, sample
from odesim.solve.explicit.norms import helper
from odesim.solve.explicit.places import (
    ANSWER,
    ATOL,
    COUNT,
    FIXED,
    FOUND,
    LAST,
    PIECES,
    REAL,
    SEARCH,
    SEARCHED,
    WIDTH,
    WORK,
    ZEROS,
    N,
    Y,
)

DIGIT = 10.0  # times atol: a smaller state is not known to a digit


@helper
def searched(at: Any, t: float, h: float, new: float) -> tuple[int, float, float]:
    """odesim.solve.step.search.search of the step of h from t to new."""
    every = np.int64(-1)
    call(at[SEARCH], (at[SEARCHED], np.int64(0), ints(at[COUNT])[FOUND], every, t, h, new))
    answer = doubles(at[ANSWER])
    if int(answer[0]) > ints(at[COUNT])[FOUND] and doubles(at[REAL])[FIXED] == 0.0 and at[LAST] > 0:
        mark_small(at, t, new, int(answer[0]))
    return int(answer[0]), answer[1], answer[2]


@helper
def without_small(at: Any, t: float, state: int) -> bool:
    """Sets the sample of the probe to the event functions at t and a state in which components not known to a digit are 0.

    These are below ten times atol before and after the step. Returns whether there are any.
    """
    row, least, small = at[N] * at[WIDTH], DIGIT * doubles(at[REAL])[ATOL], False
    a, b, seen, scratch = at[WORK], at[WORK] + row, state, at[WORK] + 2 * row
    for i in range(at[N]):
        if at[WIDTH] == 4:
            both = max(abs(floats(a)[i]), abs(floats(b)[i]))
            floats(scratch)[i] = np.float32(0.0) if both <= least else floats(seen)[i]
        else:
            both = max(abs(doubles(a)[i]), abs(doubles(b)[i]))
            doubles(scratch)[i] = 0.0 if both <= least else doubles(seen)[i]
        small = small or (both > 0.0 and both <= least)
    if small:
        put_all(at, t, scratch, at[PIECES] + 1)
    return small


@helper
def mark_small(at: Any, t: float, new: float, found: int) -> None:
    """Adds 1/2 to the number of each zero of this step whose function has another sign at an end without such components."""
    count, zeros, none = ints(at[COUNT]), doubles(at[ZEROS]), np.int64(0)
    row = at[N] * at[WIDTH]
    for k in range(2):
        y = count[Y] if k == 0 else 1 - count[Y]
        if not without_small(at, t if k == 0 else new, at[WORK] + y * row):
            return
        for j in range(count[FOUND], found):
            i = int(zeros[2 * j + 1])
            g, rest = sample(at, none, none if k == 0 else at[PIECES], i), sample(at, none, at[PIECES] + 1, i)
            if g * rest <= 0.0 and g != rest:
                zeros[2 * j + 1] = i + 0.5


def probed(address: int, theta: float, l: int, _: int) -> None:
    """Puts the event functions at theta where the search looks for them; address: that of the table of the run."""
    probe(ints(address), l, theta, np.int64(0))
