"""The search for zeros in a step of one system, on the processor: compiled by itself, and called by its address."""

from typing import Any

import numpy as np

from odesim.runtime.memory import call, doubles, floats, ints
from odesim.stepper.crossings import probe, put_all, sample
from odesim.stepper.operations import helper
from odesim.stepper.search import passed
from odesim.stepper.slots import ANSWER, COUNTS, FACTS, FOUND, LAST, PIECES, ROOM, SEARCH, SEARCHED, SIZE, WIDTH, ZEROS, N, X, Y, Z

DIGIT = 10.0  # times atol: a smaller state is not known to a digit


@helper
def find_events(at: Any, t: float, used: float, new: float, atol: float) -> tuple[float, float]:
    """Appends the zeros in (t, new] to ZEROS. Returns the time and the theta of the first terminal one, or new and -1.

    atol: of states that errors are held against; 0 where there are no errors, in a run of fixed steps.
    """
    counts, every, none = ints(at[COUNTS]), np.int64(-1), np.int64(0)
    if at[LAST] == 0:
        facts, zeros = ints(at[FACTS]), doubles(at[ZEROS])
        counts[FOUND], end, place = passed(sample, at, none, facts, at[SIZE], new, zeros, counts[FOUND], at[ROOM])
        return end, place
    call(at[SEARCH], (at[SEARCHED], none, counts[FOUND], every, t, used, new))
    answer = doubles(at[ANSWER])
    found = int(answer[0])
    if found > counts[FOUND] and atol > 0.0:
        mark_small(at, t, new, found, atol)
    counts[FOUND] = found
    return answer[1], answer[2]


@helper
def without_small(at: Any, t: float, state: int, atol: float) -> bool:
    """Sets the sample of the probe to the event functions at t and a state in which components not known to a digit are 0.

    These are below ten times atol before and after the step. Returns whether there are any.
    """
    least, small, scratch = DIGIT * atol, False, at[X]
    for i in range(at[N]):
        if at[WIDTH] == 4:
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
def mark_small(at: Any, t: float, new: float, found: int, atol: float) -> None:
    """Adds 1/2 to the number of each zero of this step whose function has another sign at an end without such components."""
    counts, zeros, none = ints(at[COUNTS]), doubles(at[ZEROS]), np.int64(0)
    for k in range(2):
        if not without_small(at, t if k == 0 else new, at[Y] if k == 0 else at[Z], atol):
            return
        for j in range(counts[FOUND], found):
            i = int(zeros[2 * j + 1])
            g, rest = sample(at, none, none if k == 0 else at[PIECES], i), sample(at, none, at[PIECES] + 1, i)
            if g * rest <= 0.0 and g != rest:
                zeros[2 * j + 1] = i + 0.5


def probed(address: int, theta: float, l: int, _: int) -> None:
    """Puts the event functions at theta where the search looks for them; address: that of the table of the run."""
    probe(ints(address), l, theta, np.int64(0))
