# ruff: noqa: F821
# mypy: disable-error-code="name-defined"
"""What the driver of one system calls on whole rows: sums, combinations, states inside a step, laws. Compiled with it.

`at` is a pointer to the run's table (RUN in table.py), whose places are in the text that this is joined with; y, new, target are addresses
of rows.
"""

from typing import Any

import numpy as np

from odesim.runtime.functions import njit
from odesim.runtime.intrinsics import call, doubles, floats, ints
from odesim.stepper.control import weight

# fastmath is said: what says nothing takes over that of whoever calls it first
helper, loops = njit(fastmath=False), njit(fastmath=False, loops=True)


@helper
def entry(row: int, i: int, single: bool) -> float:
    """Component i of a row of float64 or, if single, of float32."""
    return np.float64(floats(row)[i]) if single else doubles(row)[i]


@helper
def tree_sum(at: Any, first: int, count: int) -> float:
    """The sum of count > 0 entries of SUMS from the first on, upper half added to the lower one; they are overwritten."""
    sums = doubles(at[SUMS] + 8 * first)
    # by halves, as every reduction of the house: threads of a GPU can do the same, and the error grows as log(count)
    while count > 1:
        half = (count + 1) // 2
        for i in range(count - half):
            sums[i] += sums[i + half]
        count = half
    return sums[0]


@helper
def fill(at: Any, y: int, ns: int, target: int) -> None:
    """Sets target (n,) to y (n,), or 0 where that address is 0, + sum_j coef[j] k_j over ns stages."""
    for lo in range(0, at[N], 1024):
        hi = lo + 1024 if lo + 1024 < at[N] else at[N]
        call(at[COMBINE], (at[TABLE], y, at[K], at[ORDER], at[COEF], ns, lo, hi, target + lo * at[WIDTH]))


@helper
def weigh(at: Any, factor: float, table: int, count: int) -> None:
    """Sets coef[j] to factor times entry j of this table (count,)."""
    coef = doubles(at[COEF])
    for j in range(count):
        coef[j] = factor * doubles(table)[j]


@helper
def weigh_one(at: Any, stage: int) -> None:
    """Sets coef to the weights of this stage alone."""
    # only `combine` knows how stages lie in memory: a stage alone is a combination with one weight that is not 0
    coef = doubles(at[COEF])
    for j in range(stage):
        coef[j] = 0.0
    coef[stage] = 1.0


@helper
def weigh_inside(at: Any, factor: float, theta: float) -> None:
    """Sets coef[j] to factor times the weight of stage j at theta, by the interpolant."""
    coef = doubles(at[COEF])
    for j in range(at[ALL]):
        coef[j] = factor * weight(doubles(at[P] + 8 * j * at[DEGREE]), at[DEGREE], theta)


@helper
def judge(at: Any, t: float, first: int) -> None:
    """Holds the laws' values at t against their senses (odesim.stepper.laws): LAW_WORST and LAW_TIME. first: 1 at the start.

    What was once NaN stays so, with its time.
    """
    sense, best, worst, times = ints(at[LAW_SENSE]), doubles(at[LAW_BEST]), doubles(at[LAW_WORST]), doubles(at[LAW_TIME])
    for i in range(at[LAW_SIZE]):
        now = entry(at[LAW_NOW], i, at[WIDTH] == 4)
        if first == 1:
            best[i] = now
            worst[i] = 0.0
            times[i] = t
        off = now - best[i]
        if sense[i] == 0:
            off = abs(off)
        elif sense[i] == 1:
            if now < best[i]:
                best[i] = now
        elif sense[i] == 2:
            off = -off
            if now > best[i]:
                best[i] = now
        else:
            off = -now
        # not off > worst: a violation that is not a number counts, and is the last one
        if worst[i] == worst[i] and not off <= worst[i]:
            worst[i] = off
            times[i] = t


@helper
def watch_laws(at: Any, t: float, y: int) -> None:
    """Updates the violations with the state y (n,) at t."""
    call(at[LAWS_AT], (at[LAW_TABLE], t, y, at[LAW_NOW]))
    judge(at, t, np.int64(0))


@helper
def begin_laws(at: Any, t: float, y: int) -> None:
    """The laws at the start: what they are held against, unless this run continues another."""
    call(at[LAWS_AT], (at[LAW_TABLE], t, y, at[LAW_NOW]))
    judge(at, t, 1 - ints(at[COUNTS])[LATER])
