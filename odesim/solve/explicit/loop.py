"""The loop over the steps of any explicit method and any system; all its state lies in the arrays it is given."""

import math

import numpy as np
from numba import njit

from odesim.arrays import Array
from odesim.solve.explicit.call import call
from odesim.solve.explicit.control import first_step, next_step
from odesim.solve.explicit.dense import interpolate, more_stages, save_until
from odesim.solve.explicit.events import find_events
from odesim.solve.explicit.norms import all_finite, fill, squares
from odesim.solve.explicit.slots import (
    ATOL,
    BUFFER_FULL,
    COEF,
    EVENTS,
    FINISHED,
    FIXED,
    FIXED_LAST,
    FOUND,
    G,
    H,
    K_,
    LAST,
    MAX,
    NOT_FINITE,
    OUT,
    PHASE,
    PIECES,
    REJECTED,
    RETRY,
    RHS_CALLS,
    ROWS,
    ROWS_ALL,
    RTOL,
    RUNNING,
    SAVED,
    SLICE,
    STAGE,
    STEPS,
    STOP,
    STOPPED_BY_EVENT,
    T0,
    T1,
    T_STOP,
    TABLE,
    THETA_STOP,
    TOO_MANY_STEPS,
    TOO_SMALL,
    TOTAL,
    WIDTH,
    WORK,
    T,
    Y,
)


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def begin(at: Array, count: Array, real: Array, coef: Array, work: Array, block: Array, sums: Array, save: Array, size: int) -> bool:
    """The first derivative, the first step, the events and the saved state at t0; False where the derivative is not finite."""
    n = work.shape[1]
    call(at[STAGE], (at[TABLE], real[T0], at[WORK], at[K_], at[ROWS], at[COEF], 0, 0, at[WORK] + 2 * n * at[WIDTH]))
    count[RHS_CALLS] += 1
    if not all_finite(at, coef, np.int64(0), work[0], block, sums):
        return False
    if real[FIXED] == 0.0:
        first_step(at, count, real, coef, work, block, sums)
    if size > 0:
        call(at[EVENTS], (at[TABLE], real[T0], at[WORK], at[G]))
    if len(save) > 0 and save[0] == real[T0]:
        fill(at, n, at[WORK], np.int64(0), at[OUT])
        count[SAVED] = 1
    return True


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def error_norm(
    at: Array, real: Array, coef: Array, stages: int, h: float, E: Array, old: Array, new: Array, block: Array, sums: Array
) -> float:
    """The error norm of a step from old to new (n,); E (2, stages): a second row that is not zero is mixed with the first.

    Hairer, Norsett, Wanner I, II.10: |e5|^2 / sqrt(|e5|^2 + 0.01 |e3|^2).
    """
    first = 0.0
    for row in range(2):
        size = 0.0
        for j in range(stages):
            coef[j] = h * E[row, j]
            size += abs(E[row, j])
        if size > 0.0:
            total = squares(at, np.int64(0), stages, old, new, block, sums, real[ATOL], real[RTOL]) / len(old)
            if row == 0:
                first = total
            elif total > 0.0 or total - total != 0.0:
                return first / math.sqrt(first + 0.01 * total)
    return math.sqrt(first)


@njit(cache=True, nogil=True, error_model="numpy")
def run(
    at: Array, count: Array, real: Array, A: Array, c: Array, E: Array, P: Array, coef: Array, rows: Array, work: Array, block: Array,
    sums: Array, save: Array, g: Array, direction: Array, terminal: Array, found_t: Array, found_i: Array,
) -> int:  # fmt: skip
    """Goes on for at most SLICE steps and says how it stands; the arrays hold everything for the next call.

    A (stages, stages), c: stage LAST is the new state, its derivative the first stage of the next step; behind it come
    the stages of the dense output. E (2, stages) error weights, P (stages, degree) interpolant. work (3, n): two states, scratch.
    """
    n, size, last = work.shape[1], g.shape[1], count[LAST]
    row = n * at[WIDTH]
    fixed = real[FIXED] > 0.0
    if count[PHASE] == 0:
        count[PHASE] = 1
        if not begin(at, count, real, coef, work, block, sums, save, size):
            return NOT_FINITE
    for _ in range(count[SLICE]):
        t = real[T]
        if t >= real[T1]:
            return FINISHED
        if count[STOP] != 0:
            return RUNNING
        if count[STEPS] + count[REJECTED] >= count[MAX]:
            return TOO_MANY_STEPS
        if len(found_t) - count[FOUND] < size * count[PIECES]:
            return BUFFER_FULL
        if fixed:
            k = count[STEPS] + 1
            h = real[FIXED] if k < count[TOTAL] else real[FIXED_LAST]
            new = real[T0] + k * real[FIXED] if k < count[TOTAL] else real[T1]
        else:
            h = real[H]
            new = t + h
            if t + 1.01 * h >= real[T1]:
                new = real[T1]
            elif new == t or h < 2.2e-15 * abs(t) or h < 2.2e-15 * (t - real[T0]):
                return TOO_SMALL
            h = new - t
        y = at[WORK] + count[Y] * row
        for s in range(1, last + 1):
            for j in range(s):
                coef[j] = h * A[s, j]
            target = 1 - count[Y] if s == last else 2
            time = t + c[s] * h if c[s] < 1.0 else new
            call(at[STAGE], (at[TABLE], time, y, at[K_], at[ROWS], at[COEF], s, s, at[WORK] + target * row))
        count[RHS_CALLS] += last
        state = work[1 - count[Y]]
        error = 0.0
        if not fixed:
            error = error_norm(at, real, coef, last + 1, h, E, work[count[Y]], state, block, sums)
            if error > 1.0 and error < math.inf:
                count[REJECTED] += 1
                next_step(count, real, h, error)
                continue
        good = error <= 1.0
        if good and (fixed or E[0, last] == 0.0):
            good = all_finite(at, coef, last, state, block, sums)
        dense = size > 0 or (count[SAVED] < len(save) and save[count[SAVED]] < new)
        if good and dense and count[ROWS_ALL] > last + 1:
            good = more_stages(at, count, t, h, A, c, coef, work, block, sums)
        if not good:
            if fixed:
                return NOT_FINITE
            count[REJECTED] += 1
            count[RETRY] = 1
            real[H] = 0.25 * h
            continue
        real[T_STOP] = new
        stopped = False
        if size > 0:
            stopped = find_events(at, count, real, t, h, new, P, coef, n, g, direction, terminal, found_t, found_i)
        end = real[T_STOP]
        save_until(at, count, n, t, h, end, new, P, coef, save)
        if stopped and real[THETA_STOP] < 1.0:
            interpolate(at, count, n, P, coef, h, real[THETA_STOP], at[WORK] + 2 * row)
            fill(at, n, at[WORK] + 2 * row, np.int64(0), at[WORK] + (1 - count[Y]) * row)
        if not fixed:
            next_step(count, real, h, error)
        count[STEPS] += 1
        count[Y] = 1 - count[Y]
        rows[0], rows[last] = rows[last], rows[0]
        real[T] = end
        if stopped:
            return STOPPED_BY_EVENT
    return FINISHED if real[T] >= real[T1] else RUNNING
