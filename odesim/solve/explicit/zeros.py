"""Zeros of the event functions inside an accepted step."""

from typing import Any

import numpy as np

from odesim.runtime.memory import doubles, ints
from odesim.solve.explicit.called_search import searched
from odesim.solve.explicit.events import evaluate, put, sample
from odesim.solve.explicit.norms import helper
from odesim.solve.explicit.places import COUNT, FACTS, FOUND, LAST, LENGTH, PIECES, REAL, ROOM, SIZE, T_STOP, THETA_STOP, ZEROS
from odesim.solve.step.search import passed


@helper
def find_events(at: Any, t: float, h: float, new: float) -> bool:
    """Appends the zeros in (t, new] to ZEROS; returns whether one is terminal: the first one's place goes to T_STOP, THETA_STOP.

    Sample 0 is that at t, and afterwards that at new.
    """
    count, real, last = ints(at[COUNT]), doubles(at[REAL]), at[PIECES]
    real[LENGTH] = h
    for piece in range(last):
        evaluate(at, t, h, new, (piece + 1) / last, piece + 1)
    if at[LAST] == 0:
        facts, zeros = ints(at[FACTS]), doubles(at[ZEROS])
        count[FOUND], real[T_STOP], real[THETA_STOP] = passed(sample, at, np.int64(0), facts, at[SIZE], new, zeros, count[FOUND], at[ROOM])
    else:
        count[FOUND], real[T_STOP], real[THETA_STOP] = searched(at, t, h, new)
    for i in range(at[SIZE]):
        put(at, np.int64(-1), i, sample(at, np.int64(0), last - 1, i))
        put(at, np.int64(0), i, sample(at, np.int64(0), last, i))
    return real[THETA_STOP] >= 0.0
