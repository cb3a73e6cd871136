"""The loop over the steps of any explicit method and any system; its whole state is in the arrays given."""

import math
from typing import Any

import numpy as np

from odesim.runtime.memory import call, doubles, ints
from odesim.solve.codes import Code
from odesim.solve.explicit.control import set_first_step, set_next_step
from odesim.solve.explicit.dense import interpolate, more_stages, save_until
from odesim.solve.explicit.events import begin_events
from odesim.solve.explicit.laws import watch_laws
from odesim.solve.explicit.norms import all_finite, fill, helper, squares
from odesim.solve.explicit.places import (
    ATOL,
    COEF,
    COUNT,
    FIXED,
    FIXED_LAST,
    FOUND,
    LAST,
    LATER,
    LAW_SIZE,
    MAX,
    NEEDED,
    OUT,
    PHASE,
    REAL,
    REJECTED,
    RHS_CALLS,
    ROOM,
    ROWS,
    ROWS_ALL,
    RTOL,
    SAVE,
    SAVED,
    SAVES,
    SIZE,
    SLICE,
    STAGE,
    STEPS,
    STOP,
    T0,
    T1,
    T_STOP,
    TABLE,
    THETA_STOP,
    TOTAL,
    WIDTH,
    WORK,
    A,
    C,
    E,
    H,
    K,
    N,
    T,
    Y,
)
from odesim.solve.explicit.zeros import find_events
from odesim.solve.step.control import moment, step_end, too_small


@helper
def begin(at: Any) -> bool:
    """Computes the first derivative, first step, events and saved state at t0; returns False if it or the state is not finite.

    A map (LAST = 0) has no derivative.
    """
    count, real, y = ints(at[COUNT]), doubles(at[REAL]), at[WORK]
    if at[LAST] == 0:
        if squares(at, y, np.int64(0), y, y, math.inf, 0.0) != 0.0:
            return False
    else:
        call(at[STAGE], (at[TABLE], real[T0], y, at[K], at[ROWS], at[COEF], 0, 0, 0))
        count[RHS_CALLS] += 1
        if not all_finite(at, np.int64(0), y):
            return False
    if real[FIXED] == 0.0:
        set_first_step(at)
    if at[SIZE] > 0:
        begin_events(at)
    if at[LAW_SIZE] > 0:
        watch_laws(at, real[T0], y, 1 - count[LATER])
    if at[SAVES] > 0 and doubles(at[SAVE])[0] == real[T0]:
        fill(at, y, np.int64(0), at[OUT])
        count[SAVED] = 1
    return True


@helper
def error_norm(at: Any, h: float, old: int, new: int) -> float:
    """The error norm of a step from old to new (n,); a second row of E that is not zero is mixed with the first.

    Hairer, Norsett, Wanner I, II.10: |e5|^2 / sqrt(|e5|^2 + 0.01 |e3|^2).
    """
    coef, real, stages = doubles(at[COEF]), doubles(at[REAL]), at[LAST] + 1
    first = 0.0
    for row in range(2):
        used = 0.0
        for j in range(stages):
            weight = doubles(at[E])[row * stages + j]
            coef[j] = h * weight
            used += abs(weight)
        if used > 0.0:
            total = squares(at, np.int64(0), stages, old, new, real[ATOL], real[RTOL]) / at[N]
            if row == 0:
                first = total
            elif total != 0.0:
                return first / math.sqrt(first + 0.01 * total)
    return math.sqrt(first)


@helper
def update(at: Any, t: float, old: int, after: int) -> None:
    """Sets after (n,) to the right-hand side at t and old (n,): one update of a map."""
    call(at[STAGE], (at[TABLE], t, old, at[K], at[ROWS], at[COEF], 0, 0, 0))
    doubles(at[COEF])[0] = 1.0
    fill(at, np.int64(0), np.int64(1), after)
    ints(at[COUNT])[RHS_CALLS] += 1


@helper
def take_step(at: Any, t: float, h: float, new: float) -> float:
    """The error norm of a step from t to new, not finite where the step cannot be used; 0 with a fixed step.

    Leaves the new state in the row of WORK that is not Y, and its derivative in stage LAST.
    """
    count, real, coef = ints(at[COUNT]), doubles(at[REAL]), doubles(at[COEF])
    row = at[N] * at[WIDTH]
    old, after = at[WORK] + count[Y] * row, at[WORK] + (1 - count[Y]) * row
    for s in range(1, at[LAST] + 1):
        for j in range(s):
            coef[j] = h * doubles(at[A])[s * at[ROWS_ALL] + j]
        c = doubles(at[C])[s]
        target = after if s == at[LAST] else np.int64(0)
        call(at[STAGE], (at[TABLE], t + c * h if c < 1.0 else new, old, at[K], at[ROWS], at[COEF], s, s, target))
    count[RHS_CALLS] += at[LAST]
    if at[LAST] == 0:
        update(at, t, old, after)
    error = 0.0
    unseen = True
    if real[FIXED] == 0.0:
        error = error_norm(at, h, old, after)
        unseen = doubles(at[E])[at[LAST]] == 0.0
    if error <= 1.0 and unseen and not all_finite(at, at[LAST], after):
        error = math.nan
    save_next = count[SAVED] < at[SAVES] and doubles(at[SAVE])[count[SAVED]] < new
    if error <= 1.0 and (save_next or at[SIZE] > 0) and not more_stages(at, t, h):
        error = math.nan
    return error


def run(address: int) -> int:
    """Continues the run whose table is at this address for at most SLICE steps; returns its Code."""
    at = ints(address)
    count, real = ints(at[COUNT]), doubles(at[REAL])
    row = at[N] * at[WIDTH]
    if count[PHASE] == 0:
        count[PHASE] = 1
        if not begin(at):
            return Code.NON_FINITE
    for _ in range(count[SLICE]):
        t = real[T]
        if t >= real[T1]:
            return Code.OK
        if count[STOP] != 0:
            return Code.RUNNING
        if count[STEPS] + count[REJECTED] >= at[MAX]:
            return Code.MAX_STEPS
        if at[ROOM] - count[FOUND] < at[NEEDED]:
            return Code.BUFFER_FULL
        if real[FIXED] > 0.0:
            k = count[STEPS] + 1
            h = real[FIXED] if k < at[TOTAL] else real[FIXED_LAST]
            new = moment(k, real[T0], real[T1], real[FIXED], at[TOTAL])
        else:
            new, last = step_end(t, real[H], real[T1])
            if not last and too_small(t, real[H], new, real[T0]):
                return Code.STEP_TOO_SMALL
            h = new - t
        error = take_step(at, t, h, new)
        if not error <= 1.0:
            if real[FIXED] > 0.0:
                return Code.NON_FINITE
            count[REJECTED] += 1
            set_next_step(at, h, error)
            continue
        stopped = at[SIZE] > 0 and find_events(at, t, h, new)
        end = real[T_STOP] if stopped else new
        save_until(at, t, h, end, new)
        if stopped and real[THETA_STOP] < 1.0:
            scratch = at[WORK] + 2 * row
            interpolate(at, h, real[THETA_STOP], scratch)
            fill(at, scratch, np.int64(0), at[WORK] + (1 - count[Y]) * row)
        if at[LAW_SIZE] > 0:
            watch_laws(at, end, at[WORK] + (1 - count[Y]) * row, np.int64(0))
        if real[FIXED] == 0.0:
            set_next_step(at, h, error)
        count[STEPS] += 1
        count[Y] = 1 - count[Y]
        rows = ints(at[ROWS])
        rows[0], rows[at[LAST]] = rows[at[LAST]], rows[0]
        real[T] = end
        if stopped:
            return Code.EVENT
    return Code.OK if real[T] >= real[T1] else Code.RUNNING
