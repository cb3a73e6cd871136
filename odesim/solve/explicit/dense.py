"""States inside a step, and the saved ones among them."""

from typing import Any

import numpy as np

from odesim.runtime.memory import call, doubles, ints
from odesim.solve.explicit.norms import all_finite, fill, helper
from odesim.solve.explicit.places import (
    COEF,
    COUNT,
    DEGREE,
    LAST,
    OUT,
    RHS_CALLS,
    ROWS,
    ROWS_ALL,
    SAVE,
    SAVED,
    SAVES,
    STAGE,
    TABLE,
    WIDTH,
    WORK,
    A,
    C,
    K,
    N,
    P,
    Y,
)
from odesim.solve.step.interpolant import weight


@helper
def more_stages(at: Any, t: float, h: float) -> bool:
    """Computes the stages of dense output; returns whether they are finite."""
    count, coef = ints(at[COUNT]), doubles(at[COEF])
    row = at[N] * at[WIDTH]
    y, scratch = at[WORK] + count[Y] * row, at[WORK] + 2 * row
    for s in range(at[LAST] + 1, at[ROWS_ALL]):
        for j in range(s):
            coef[j] = h * doubles(at[A])[s * at[ROWS_ALL] + j]
        call(at[STAGE], (at[TABLE], t + doubles(at[C])[s] * h, y, at[K], at[ROWS], at[COEF], s, s, scratch))
        count[RHS_CALLS] += 1
        if not all_finite(at, s, scratch):
            return False
    return True


@helper
def interpolate(at: Any, h: float, theta: float, target: int) -> None:
    """Sets target (n,) to y(t + theta h), with the weights of odesim.solve.step.interpolant. theta = 1 is the new state itself."""
    coef, count = doubles(at[COEF]), ints(at[COUNT])
    for j in range(at[ROWS_ALL]):
        coef[j] = h * weight(doubles(at[P] + 8 * j * at[DEGREE]), at[DEGREE], theta)
    row = at[N] * at[WIDTH]
    if theta < 1.0:
        fill(at, at[WORK] + count[Y] * row, at[ROWS_ALL], target)
    else:
        fill(at, at[WORK] + (1 - count[Y]) * row, np.int64(0), target)


@helper
def save_until(at: Any, t: float, h: float, end: float, new: float) -> None:
    """Fills the saved rows whose times lie in (t, end]; the step goes from t to new."""
    count, save = ints(at[COUNT]), doubles(at[SAVE])
    while count[SAVED] < at[SAVES] and save[count[SAVED]] <= end:
        i = count[SAVED]
        theta = (save[i] - t) / h if save[i] < new else 1.0
        interpolate(at, h, theta, at[OUT] + i * at[N] * at[WIDTH])
        count[SAVED] = i + 1
