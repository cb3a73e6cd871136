"""Values between two steps: y(t + theta h) = y + h sum_j b_j(theta) k_j, the b_j polynomials without constant term."""

from numba import njit

from odesim.arrays import Array
from odesim.solve.explicit.call import call
from odesim.solve.explicit.norms import all_finite, combine_block, copy
from odesim.solve.explicit.slots import (
    BLOCK,
    COEF,
    K_,
    LAST,
    OUT,
    RHS_CALLS,
    ROWS,
    ROWS_ALL,
    SAVED,
    STAGE,
    TABLE,
    WIDTH,
    WORK,
    Y,
)


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
def more_stages(
    at: Array, count: Array, t: float, h: float, A: Array, c: Array, coef: Array, work: Array, block: Array
) -> bool:
    """Computes the stages that only dense output needs; whether they are finite."""
    n = work.shape[1]
    width = n * at[WIDTH]
    for s in range(count[LAST] + 1, count[ROWS_ALL]):
        for j in range(s):
            coef[j] = h * A[s, j]
        call(at[STAGE], (at[TABLE], t + c[s] * h, at[WORK] + count[Y] * width, at[K_], at[ROWS], at[COEF], s, s, at[WORK] + 2 * width))
        count[RHS_CALLS] += 1
        if not all_finite(at, coef, block, at[BLOCK], s, work[2]):
            return False
    return True


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
def interpolate(at: Array, count: Array, n: int, P: Array, coef: Array, h: float, theta: float, target: int) -> None:
    """target (n,) = y(t + theta h); P (stages, degree): b_j = sum_p P[j, p] theta^(p+1)."""
    for j in range(count[ROWS_ALL]):
        value = 0.0
        for p in range(P.shape[1] - 1, -1, -1):
            value = (value + P[j, p]) * theta
        coef[j] = h * value
    y = at[WORK] + count[Y] * n * at[WIDTH]
    for lo in range(0, n, 1024):
        combine_block(at, y, count[ROWS_ALL], lo, min(n, lo + 1024), target + lo * at[WIDTH])


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
def save_until(
    at: Array, count: Array, t: float, h: float, end: float, new: float, P: Array, coef: Array, work: Array, save: Array, out: Array
) -> None:
    """Fills the rows of out (T, n) whose times lie in (t, end]; the step goes from t to new."""
    n = work.shape[1]
    while count[SAVED] < len(save) and save[count[SAVED]] <= end:
        i = count[SAVED]
        if save[i] == new:
            copy(work[1 - count[Y]], out[i])
        else:
            interpolate(at, count, n, P, coef, h, (save[i] - t) / h, at[OUT] + i * n * at[WIDTH])
        count[SAVED] += 1
