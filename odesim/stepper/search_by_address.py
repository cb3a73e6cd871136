"""The search for zeros as functions of numbers and addresses: compiled once, for all integrators on the processor.

Each of them describes its steps by a table (table.py). t, h, new: the step, as in odesim.stepper.search. Their results are the numbers
of ANSWER.
"""

from typing import Any

import numpy as np
from numba import njit

from odesim.runtime.memory import call, doubles, ints
from odesim.stepper.search import search, straight_search
from odesim.stepper.search_samples import helper
from odesim.stepper.search_table import ANSWER, ASK, ASKED, BETWEEN, FACTS, GAP, PIECES, ROOM, ROWS, SIZE, ZEROS


@helper
def sample(at: Any, l: int, k: int, i: int) -> float:
    """The value of component i at the end of piece k."""
    rows, between, gap, _, _, _ = at
    return doubles(rows)[(k + 1) * between + i * gap + l]


@helper
def probe(at: Any, l: int, theta: float, i: int) -> float:
    """The value of component i at theta."""
    _, _, _, pieces, ask, what = at
    call(ask, (what, theta, l, np.int64(i)))
    return sample(at, l, pieces + 1, i)


@helper
def steps(at: Any) -> Any:
    """The entries of the table that are read for each sample."""
    return at[ROWS], at[BETWEEN], at[GAP], at[PIECES], at[ASK], at[ASKED]


def search_step(table: int, l: int, first: int, marks: int, t: float, h: float, new: float) -> None:
    """Searches a step of lane l. ANSWER: how many zeros there are in ZEROS, the time of the first terminal one or new, its theta or -1.

    first, marks: as odesim.stepper.search has them.
    """
    at = ints(table)
    facts, zeros, answer = ints(at[FACTS]), doubles(at[ZEROS]), doubles(at[ANSWER])
    count, stop, theta = search(sample, probe, steps(at), l, facts, at[SIZE], at[PIECES], t, h, new, zeros, first, at[ROOM], marks)
    answer[0], answer[1], answer[2] = count, stop, theta


def search_polynomial(table: int, l: int, i: int, t: float, h: float, new: float) -> None:
    """Searches component i, the polynomial through its samples, in a step of lane l. ANSWER: how many zeros there are in ZEROS."""
    at = ints(table)
    facts, zeros, room, none = ints(at[FACTS]), doubles(at[ZEROS]), at[ROOM], np.int64(0)
    count = straight_search(sample, steps(at), l, i, at[PIECES], facts[i], t, h, new, zeros, 2 * room, none, room)
    doubles(at[ANSWER])[0] = count


_compile: Any = njit  # some of its options are not in its type
_options: Any = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
step_searched = _compile("void(int64, int64, int64, int64, float64, float64, float64)", **_options)
polynomial_searched = _compile("void(int64, int64, int64, float64, float64, float64)", **_options)
