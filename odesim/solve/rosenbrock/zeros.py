"""The compiled search for zeros of events in a step of a stiff run."""

from typing import Any

import numpy as np
from numba import njit

from odesim.codegen.runtime.memory import call, doubles, ints
from odesim.solve.rosenbrock.table import ASK, FACTS, PIECES, ROOM, ROWS, SIZE, STEP, ZEROS
from odesim.solve.step.roots import helper
from odesim.solve.step.search import search

_compile: Any = njit  # some of its options are not in its type
exported = _compile("int64(int64)", error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


@helper
def sample(at: Any, l: int, k: int, i: int) -> float:
    """The value of component i at the end of piece k."""
    return doubles(at[ROWS])[(k + 1) * at[SIZE] + i]


@helper
def probe(at: Any, l: int, theta: float, i: int) -> float:
    """The value of component i at theta."""
    call(at[ASK], (np.int64(0), theta, np.int64(0), np.int64(0)))
    return sample(at, l, at[PIECES] + 1, i)


@exported
def zeros(address: int) -> int:
    """Searches a step; returns the number of zeros."""
    at = ints(address)
    step, facts, found = doubles(at[STEP]), ints(at[FACTS]), doubles(at[ZEROS])
    t, new, h, none = step[0], step[1], step[2], np.int64(0)
    size, pieces, room, unknown = at[SIZE], at[PIECES], at[ROOM], np.int64(-1)
    count, step[3], step[4] = search(sample, probe, at, none, facts, size, pieces, t, h, new, found, none, room, unknown)
    return count
