"""Values between two steps: y(t + theta h) = y + h sum_j b_j(theta) k_j, the b_j polynomials without constant term."""

import numpy as np
from numba import njit

from odesim.arrays import Array
from odesim.solve.explicit.call import call
from odesim.solve.explicit.norms import all_finite, fill
from odesim.solve.explicit.slots import COEF, K_, LAST, OUT, RHS_CALLS, ROWS, ROWS_ALL, SAVED, STAGE, TABLE, WIDTH, WORK, Y


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def more_stages(
    at: Array, count: Array, t: float, h: float, A: Array, c: Array, coef: Array, work: Array, block: Array, sums: Array
) -> bool:
    """Computes the stages that only dense output needs; whether they are finite."""
    row = work.shape[1] * at[WIDTH]
    y, scratch = at[WORK] + count[Y] * row, at[WORK] + 2 * row
    for s in range(count[LAST] + 1, count[ROWS_ALL]):
        for j in range(s):
            coef[j] = h * A[s, j]
        call(at[STAGE], (at[TABLE], t + c[s] * h, y, at[K_], at[ROWS], at[COEF], s, s, scratch))
        count[RHS_CALLS] += 1
        if not all_finite(at, coef, s, work[2], block, sums):
            return False
    return True


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def interpolate(at: Array, count: Array, n: int, P: Array, coef: Array, h: float, theta: float, target: int) -> None:
    """target (n,) = y(t + theta h); P (stages, degree): b_j = sum_p P[j, p] theta^(p+1). theta = 1 is the new state itself."""
    degree = P.shape[1]
    for j in range(count[ROWS_ALL]):
        value = 0.0
        for p in range(degree):
            value = (value + P[j, degree - 1 - p]) * theta
        coef[j] = h * value
    row = n * at[WIDTH]
    if theta < 1.0:
        fill(at, n, at[WORK] + count[Y] * row, count[ROWS_ALL], target)
    else:
        fill(at, n, at[WORK] + (1 - count[Y]) * row, np.int64(0), target)


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def save_until(at: Array, count: Array, n: int, t: float, h: float, end: float, new: float, P: Array, coef: Array, save: Array) -> None:
    """Fills the saved rows whose times lie in (t, end]; the step goes from t to new."""
    for i in range(count[SAVED], len(save)):
        if save[i] > end:
            break
        theta = (save[i] - t) / h if save[i] < new else 1.0
        interpolate(at, count, n, P, coef, h, theta, at[OUT] + i * n * at[WIDTH])
        count[SAVED] += 1
