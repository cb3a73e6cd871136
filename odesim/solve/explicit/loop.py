"""The loop over the steps of any explicit method and any system; all its state lies in the arrays it is given."""

import math

import numpy as np
from numba import njit

from odesim.arrays import Array
from odesim.solve.explicit.call import call
from odesim.solve.explicit.control import first_step, growth, power
from odesim.solve.explicit.dense import interpolate, more_stages, save_until
from odesim.solve.explicit.events import event_values, find_events
from odesim.solve.explicit.norms import all_finite, block_sum, combine_block, copy, tree_sum
from odesim.solve.explicit.slots import (
    ALPHA,
    ATOL,
    BLOCK,
    BUFFER_FULL,
    COEF,
    FINISHED,
    FIXED,
    FIXED_LAST,
    FOUND,
    H,
    K_,
    LAST,
    MAX,
    NOT_FINITE,
    PHASE,
    PIECES,
    REJECTED,
    RETRY,
    RHS_CALLS,
    ROWS,
    ROWS_ALL,
    RTOL,
    RUNNING,
    SAFETY,
    SAVED,
    SHRINK,
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


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
def _begin(
    at: Array, count: Array, real: Array, coef: Array, work: Array, block: Array, sums: Array, save: Array, out: Array, size: int
) -> int:
    """The first derivative, the first step, the events and the saved state at t0."""
    call(at[STAGE], (at[TABLE], real[T0], at[WORK], at[K_], at[ROWS], at[COEF], 0, 0, at[WORK] + 2 * work.shape[1] * at[WIDTH]))
    count[RHS_CALLS] += 1
    if not all_finite(at, coef, block, at[BLOCK], 0, work[0]):
        return NOT_FINITE
    if real[FIXED] == 0.0:
        first_step(at, count, real, coef, work, block, sums)
    if size > 0:
        event_values(at, real[T0], at[WORK], 0, size)
    while count[SAVED] < len(save) and save[count[SAVED]] <= real[T0]:
        copy(work[0], out[count[SAVED]])
        count[SAVED] += 1
    return RUNNING


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
def _error(
    at: Array, coef: Array, stages: int, h: float, E: Array, old: Array, new: Array, block: Array, sums: Array, atol: float, rtol: float
) -> float:
    """The error norm of a step; E (2, stages): where the second row is not zero the two are mixed as in DOP853.

    Hairer, Norsett, Wanner I, II.10: |e5|^2 / sqrt(|e5|^2 + 0.01 |e3|^2).
    """
    n = len(old)
    both = False
    for j in range(stages):
        both = both or E[1, j] != 0.0
    blocks = (n + 1023) // 1024
    for row in range(2 if both else 1):
        for j in range(stages):
            coef[j] = h * E[row, j]
        for k in range(blocks):
            lo = 1024 * k
            hi = min(n, lo + 1024)
            combine_block(at, 0, stages, lo, hi, at[BLOCK])
            sums[32 + row * blocks + k] = block_sum(block, 0, old, new, lo, hi, sums, atol, rtol)
    first = tree_sum(sums, 32, blocks)
    if not both:
        return math.sqrt(first / n)
    second = tree_sum(sums, 32 + blocks, blocks)
    mixed = first + 0.01 * second
    return first / math.sqrt(mixed * n) if mixed > 0.0 else mixed


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def run(
    at: Array, count: Array, real: Array, A: Array, c: Array, E: Array, P: Array, coef: Array, rows: Array, work: Array, block: Array,
    sums: Array, save: Array, out: Array, g: Array, direction: Array, terminal: Array, found_t: Array, found_i: Array,
) -> int:  # fmt: skip
    """Goes on for at most SLICE steps and says how it stands; the arrays hold everything for the next call.

    A (stages, stages), c: the last step stage is the new state, its derivative the first stage of the next step; behind it come
    the stages of the dense output. E (2, stages) error weights, P (stages, degree) interpolant. work (3, n): two states, scratch.
    """
    n, size, last = work.shape[1], g.shape[1], count[LAST]
    row = n * at[WIDTH]
    fixed = real[FIXED] > 0.0
    if count[PHASE] == 0:
        count[PHASE] = 1
        code = _begin(at, count, real, coef, work, block, sums, save, out, size)
        if code != RUNNING:
            return code
    left = count[SLICE]
    while True:
        t = real[T]
        if t >= real[T1]:
            return FINISHED
        if left == 0 or count[STOP] != 0:
            return RUNNING
        if count[STEPS] + count[REJECTED] >= count[MAX]:
            return TOO_MANY_STEPS
        if len(found_t) - count[FOUND] < size * count[PIECES]:
            return BUFFER_FULL
        left -= 1
        if fixed:
            k = count[STEPS] + 1
            final = k >= count[TOTAL]
            h = real[FIXED_LAST] if final else real[FIXED]
            new = real[T1] if final else real[T0] + k * real[FIXED]
        else:
            h = real[H]
            if h < 2.2e-15 * max(abs(t), t - real[T0]) and t + 1.01 * h < real[T1] or t + h == t:
                return TOO_SMALL
            new = real[T1] if t + 1.01 * h >= real[T1] else t + h
            h = new - t
        y = at[WORK] + count[Y] * row
        for s in range(1, last + 1):
            for j in range(s):
                coef[j] = h * A[s, j]
            time = new if c[s] == 1.0 else t + c[s] * h
            target = at[WORK] + (1 - count[Y] if s == last else 2) * row
            call(at[STAGE], (at[TABLE], time, y, at[K_], at[ROWS], at[COEF], s, s, target))
        count[RHS_CALLS] += last
        old_state, new_state = work[count[Y]], work[1 - count[Y]]
        error = 0.0
        good = True
        if not fixed:
            error = _error(at, coef, last + 1, h, E, old_state, new_state, block, sums, real[ATOL], real[RTOL])
            good = np.isfinite(error)
        if good and error <= 1.0 and (fixed or E[0, last] == 0.0):
            good = all_finite(at, coef, block, at[BLOCK], last, new_state)
        if good and error > 1.0:
            count[REJECTED] += 1
            count[RETRY] = 1
            real[H] = h * min(max(real[SAFETY] * power(error, -real[ALPHA]), real[SHRINK]), 0.9)
            continue
        dense = size > 0 or (count[SAVED] < len(save) and save[count[SAVED]] < new)
        if good and dense and count[ROWS_ALL] > last + 1:
            good = more_stages(at, count, t, h, A, c, coef, work, block)
        if not good:
            if fixed:
                return NOT_FINITE
            count[REJECTED] += 1
            count[RETRY] = 1
            real[H] = 0.25 * h
            continue
        end = new
        stopped = False
        if size > 0:
            stopped = find_events(at, count, real, t, h, new, P, coef, n, g, direction, terminal, found_t, found_i)
            end = real[T_STOP]
        save_until(at, count, t, h, end, new, P, coef, work, save, out)
        count[STEPS] += 1
        if stopped and real[THETA_STOP] < 1.0:
            interpolate(at, count, n, P, coef, h, real[THETA_STOP], at[WORK] + 2 * row)
            copy(work[2], new_state)
        if not fixed:
            factor = growth(real, error)
            real[H] = h * (min(factor, 1.0) if count[RETRY] != 0 else factor)
            count[RETRY] = 0
        rows[0], rows[last] = rows[last], rows[0]
        count[Y] = 1 - count[Y]
        real[T] = end
        if stopped:
            return STOPPED_BY_EVENT
