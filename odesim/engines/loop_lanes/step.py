"""One explicit step of all lanes, each with its own time and size: stages, error, control and saved times, as in a single run."""

import math
from typing import Any

from odesim.engines.loop_lanes.memory import (
    AT_END,
    AT_LIMIT,
    ROW,
    RUNNING,
    STUCK,
    copy_rows,
    helper,
    lane_row,
    new_at,
    right,
    slope_at,
    stage_at,
    state_at,
    sum_at,
)
from odesim.engines.loop_lanes.places import (
    ALPHA,
    ATOL,
    BETA,
    CLOCK,
    DEGREE,
    ERROR,
    FIRST_TOTAL,
    FITS,
    GROW,
    IS_SAVING,
    LANES,
    LAST,
    LIMIT,
    LONGEST,
    MEMBER,
    NEW,
    NEXT,
    OLD_ERROR,
    OUT,
    REAL,
    REFUSED,
    RETRY,
    ROWS_ALL,
    RTOL,
    SAVE,
    SAVED,
    SAVES,
    SHRINK,
    STATE_OF,
    STEP,
    T0,
    T1,
    TAKEN,
    TIME,
    TOTAL,
    USED,
    A,
    C,
    E,
    N,
    P,
)
from odesim.runtime.memory import doubles
from odesim.stepper.control import LEAST, LOG2_LEAST_OLD, SAFETY, at_most, next_step, pi_goal, step_end, too_small, weight
from odesim.stepper.powers import exp2, log2


@helper
def add_slopes(at: Any, weights: int, count: int) -> None:
    """Sets the sum (N rows) to sum_j w_j k_j over so many derivatives; weights: the address of w."""
    total, size = doubles(sum_at(at)), at[N] * LANES
    for q in range(size):
        total[q] = 0.0
    for j in range(count):
        w = doubles(weights)[j]
        if w != 0.0:
            k = doubles(slope_at(at, j))
            for q in range(size):
                total[q] += w * k[q]


@helper
def stage(at: Any, s: int) -> None:
    """Computes derivative s of all lanes."""
    add_slopes(at, at[A] + 8 * s * at[ROWS_ALL], s)
    y, z, total, h = doubles(state_at(at)), doubles(stage_at(at)), doubles(sum_at(at)), lane_row(at, USED)
    for i in range(at[N]):
        for l in range(LANES):
            z[i * LANES + l] = y[i * LANES + l] + h[l] * total[i * LANES + l]
    if at[CLOCK] >= 0:
        c, t, new = doubles(at[C])[s], lane_row(at, TIME), lane_row(at, NEW)
        clock = doubles(stage_at(at) + at[CLOCK] * ROW)
        for l in range(LANES):
            clock[l] = t[l] + c * h[l] if c < 1.0 else new[l]
    right(at, stage_at(at), slope_at(at, s))


@helper
def norms(at: Any, what: int, old: int, new: int) -> None:
    """Sets TOTAL of each lane to the sum over states of (what / (atol + rtol max(|old|, |new|)))^2, not finite where new is not."""
    total, real = lane_row(at, TOTAL), doubles(at[REAL])
    atol, rtol, e, a, b = real[ATOL], real[RTOL], doubles(what), doubles(old), doubles(new)
    for l in range(LANES):
        total[l] = 0.0
    for i in range(at[N]):
        for l in range(LANES):
            q = i * LANES + l
            x, y = abs(a[q]), abs(b[q])
            r = e[q] / (atol + rtol * (x if x > y else y))
            total[l] += r * r + (y - y)


@helper
def errors(at: Any) -> None:
    """Sets ERROR of each lane to the norm of the error of its step; NaN where the new state or its derivative is not finite."""
    n, stages = at[N], at[LAST] + 1
    total, first, error, h = lane_row(at, TOTAL), lane_row(at, FIRST_TOTAL), lane_row(at, ERROR), lane_row(at, USED)
    for row in range(2):
        weights, used = at[E] + 8 * row * stages, 0.0
        for j in range(stages):
            used += abs(doubles(weights)[j])
        if used == 0.0:
            continue
        add_slopes(at, weights, stages)
        e = doubles(sum_at(at))
        for i in range(n):
            for l in range(LANES):
                e[i * LANES + l] *= h[l]  # before the squares: that of a step below 1e-154 is lost
        norms(at, sum_at(at), state_at(at), new_at(at))
        for l in range(LANES):
            x = total[l] / n
            if row == 0:
                first[l], error[l] = x, math.sqrt(x)
            elif x != 0.0:
                error[l] = first[l] / math.sqrt(first[l] + 0.01 * x)
    if doubles(at[E])[at[LAST]] == 0.0:
        spoil(at, at[LAST], False)


@helper
def spoil(at: Any, s: int, saving: bool) -> None:
    """Sets ERROR to NaN in lanes that would accept their step, where derivative s is not finite. saving: where a saved time is within it.

    A step that is rejected anyway keeps its error, and with it the next step: as in a single run, and whatever other lanes do.
    """
    x, error, total, after, new = doubles(slope_at(at, s)), lane_row(at, ERROR), lane_row(at, TOTAL), lane_row(at, NEXT), lane_row(at, NEW)
    for l in range(LANES):
        total[l] = 0.0
    for i in range(at[N]):
        for l in range(LANES):
            y = x[i * LANES + l]
            total[l] += y - y
    for l in range(LANES):
        error[l] += total[l] if error[l] <= 1.0 and (after[l] < new[l] or not saving) else 0.0


@helper
def begin_step(at: Any) -> None:
    """Sets USED and NEW of all lanes, and STATE_OF of those whose step is lost in rounding."""
    real, t, size = doubles(at[REAL]), lane_row(at, TIME), lane_row(at, STEP)
    new, used, state = lane_row(at, NEW), lane_row(at, USED), lane_row(at, STATE_OF)
    for l in range(LANES):
        end, last = step_end(t[l], size[l], real[T1])
        small = (not last) and too_small(t[l], size[l], end, real[T0])
        new[l], used[l] = end, end - t[l]
        state[l] = STUCK if small and state[l] == RUNNING else state[l]


@helper
def save_steps(at: Any) -> None:
    """Writes lanes whose step is accepted at their saved times within it."""
    save, n, fits, t, new, h = doubles(at[SAVE]), at[N], lane_row(at, FITS), lane_row(at, TIME), lane_row(at, NEW), lane_row(at, USED)
    after, member, saved, old, fresh = lane_row(at, NEXT), lane_row(at, MEMBER), lane_row(at, SAVED), state_at(at), new_at(at)
    for l in range(LANES):
        while fits[l] != 0.0 and after[l] <= new[l]:
            q = int(saved[l])
            out = doubles(at[OUT] + 8 * n * (int(member[l]) * at[SAVES] + q))
            if after[l] < new[l]:
                theta = (after[l] - t[l]) / h[l]
                for i in range(n):
                    out[i] = 0.0
                for j in range(at[ROWS_ALL]):
                    w, k = weight(doubles(at[P] + 8 * j * at[DEGREE]), at[DEGREE], theta), doubles(slope_at(at, j))
                    for i in range(n):
                        out[i] += w * k[i * LANES + l]
                for i in range(n):
                    out[i] = doubles(old)[i * LANES + l] + h[l] * out[i]
            else:
                for i in range(n):
                    out[i] = doubles(fresh)[i * LANES + l]
            saved[l] = q + 1.0
            after[l] = save[q + 1] if q + 1 < at[SAVES] else math.inf


@helper
def more_stages(at: Any) -> None:
    """Computes the derivatives that only the interpolant needs, if a lane has a saved time within its step.

    Sets ERROR to NaN where they are not finite.
    """
    error, after, new, due = lane_row(at, ERROR), lane_row(at, NEXT), lane_row(at, NEW), 0
    for l in range(LANES):
        due += 1 if error[l] <= 1.0 and after[l] < new[l] else 0
    if due > 0:
        for s in range(at[LAST] + 1, at[ROWS_ALL]):
            stage(at, s)
            spoil(at, s, True)


@helper
def control(at: Any) -> int:
    """Accepts or rejects the step of each lane, and chooses the next one; returns how many lanes have come to an end."""
    real, error, old, retry = doubles(at[REAL]), lane_row(at, ERROR), lane_row(at, OLD_ERROR), lane_row(at, RETRY)
    size, new, used, state = lane_row(at, STEP), lane_row(at, NEW), lane_row(at, USED), lane_row(at, STATE_OF)
    fits, limit, taken, lost, ended = lane_row(at, FITS), lane_row(at, LIMIT), lane_row(at, TAKEN), lane_row(at, REFUSED), 0
    for l in range(LANES):
        running, good = state[l] == RUNNING, error[l] <= 1.0
        accept = running and good
        scale = log2(error[l] if error[l] > LEAST else LEAST)
        factor = SAFETY * exp2(pi_goal(scale, old[l], good, real[ALPHA], real[BETA]))
        following = at_most(next_step(used[l], error[l], factor, retry[l] != 0.0, real[SHRINK], real[GROW]), real[LONGEST])
        size[l] = following if running else size[l]
        old[l] = (scale if scale > LOG2_LEAST_OLD else LOG2_LEAST_OLD) if accept else old[l]
        retry[l] = 0.0 if good else 1.0
        taken[l] += 1.0 if accept else 0.0
        lost[l] += 1.0 if running and not good else 0.0
        fits[l] = 1.0 if accept else 0.0
        code = AT_LIMIT if taken[l] + lost[l] >= limit[l] else RUNNING
        code = AT_END if accept and new[l] == real[T1] else code
        state[l] = code if running else state[l]
        ended += 0 if state[l] == RUNNING else 1
    return ended


@helper
def accept_steps(at: Any) -> None:
    """Moves lanes whose step is accepted to its end."""
    y, z, fits, t, new = doubles(state_at(at)), doubles(new_at(at)), lane_row(at, FITS), lane_row(at, TIME), lane_row(at, NEW)
    first, last = doubles(slope_at(at, 0)), doubles(slope_at(at, at[LAST]))
    for i in range(at[N]):
        for l in range(LANES):
            q = i * LANES + l
            y[q] = z[q] if fits[l] != 0.0 else y[q]
            first[q] = last[q] if fits[l] != 0.0 else first[q]
    for l in range(LANES):
        t[l] = new[l] if fits[l] != 0.0 else t[l]


@helper
def step(at: Any) -> int:
    """One step of all lanes; returns how many have come to an end."""
    begin_step(at)
    for s in range(1, at[LAST] + 1):
        stage(at, s)
    copy_rows(stage_at(at), new_at(at), at[N])
    errors(at)
    if at[IS_SAVING] != 0:
        more_stages(at)
    ended = control(at)
    if at[IS_SAVING] != 0:
        save_steps(at)
    accept_steps(at)
    return ended
