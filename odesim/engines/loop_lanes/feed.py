"""Feeds lanes with members: their starts, and the next member in the lane of one that has ended."""

import math
from typing import Any

from odesim.engines.loop_lanes.look import judged, limited
from odesim.engines.loop_lanes.memory import (
    AT_END,
    AT_LIMIT,
    EMPTY,
    RUNNING,
    STUCK,
    WILD,
    copy_rows,
    helper,
    lane_row,
    right,
    slope_at,
    stage_at,
    state_at,
    sum_at,
)
from odesim.engines.loop_lanes.places import (
    CLOCK,
    CODE0,
    END,
    END_Y,
    FIRST,
    H0,
    IS_SAVING,
    K0,
    LANES,
    LIMIT,
    LONGEST,
    MEMBER,
    MOST,
    NEXT,
    OLD_ERROR,
    OUT,
    OWN,
    PILOT,
    REAL,
    REFUSED,
    REJECTED,
    RETRY,
    SAVE,
    SAVED,
    SAVES,
    START_POWER,
    STATE_OF,
    STATUS,
    STEP,
    STEPS,
    STOP,
    T0,
    T1,
    T_END,
    TAKEN,
    TIME,
    TOTAL,
    USED,
    Y0,
    Y0_STEP,
    M,
    N,
)
from odesim.engines.loop_lanes.step import norms, step
from odesim.runtime.memory import doubles, ints
from odesim.stepper.control import LOG2_LEAST_OLD, first_step, steepest, trial_step
from odesim.stepper.powers import power


@helper
def fill(at: Any, i: int, l: int) -> None:
    """Puts member i at its start into lane l: its state, and its parameters also where stages read them."""
    y, z, n = doubles(state_at(at)), doubles(stage_at(at)), at[N]
    start, own, count = doubles(at[Y0] + 8 * i * at[Y0_STEP]), doubles(at[OWN] + 8 * i * (at[M] - n)), at[M] - n
    for k in range(n):
        y[k * LANES + l] = start[k]
    for k in range(count):
        y[(n + k) * LANES + l] = own[k]
        z[(n + k) * LANES + l] = own[k]
    if at[CLOCK] >= 0:
        y[at[CLOCK] * LANES + l] = doubles(at[REAL])[T0]


@helper
def begin(at: Any) -> None:
    """Sets derivative 0, STEP and STATE_OF of all lanes at their start, Hairer, Norsett, Wanner I, II.4."""
    real, n, y, f = doubles(at[REAL]), at[N], doubles(state_at(at)), slope_at(at, 0)
    h, size, state, total, most = lane_row(at, USED), lane_row(at, STEP), lane_row(at, STATE_OF), lane_row(at, TOTAL), lane_row(at, NEXT)
    slope, span = lane_row(at, TIME), real[T1] - real[T0]
    right(at, state_at(at), f)
    for l in range(LANES):
        state[l] = RUNNING
    for i in range(n):
        for l in range(LANES):
            a, b = y[i * LANES + l], doubles(f)[i * LANES + l]
            state[l] = state[l] if (a - a) + (b - b) == 0.0 else WILD
    norms(at, state_at(at), state_at(at), state_at(at))
    for l in range(LANES):
        size[l] = math.sqrt(total[l] / n)
    norms(at, f, state_at(at), state_at(at))
    for l in range(LANES):
        slope[l] = math.sqrt(total[l] / n)
        h[l], most[l] = trial_step(size[l], slope[l], span)
    z, g, e = doubles(stage_at(at)), doubles(slope_at(at, 1)), doubles(sum_at(at))
    copy_rows(state_at(at), stage_at(at), at[M])
    for i in range(n):
        for l in range(LANES):
            z[i * LANES + l] = y[i * LANES + l] + h[l] * doubles(f)[i * LANES + l]
    if at[CLOCK] >= 0:
        for l in range(LANES):
            z[at[CLOCK] * LANES + l] = real[T0] + h[l]
    right(at, stage_at(at), slope_at(at, 1))
    for q in range(n * LANES):
        e[q] = g[q] - doubles(f)[q]
    norms(at, sum_at(at), state_at(at), state_at(at))
    for l in range(LANES):
        steep = steepest(slope[l], math.sqrt(total[l] / n) / h[l])
        size[l] = first_step(power(0.01 / steep, real[START_POWER]), steep, most[l], real[T0], span, real[LONGEST])


@helper
def begin_all(at: Any) -> None:
    """Computes what is known of members before they have a lane."""
    n, first, end = at[N], at[FIRST], at[END]
    for tile in range(first, end, LANES):
        for l in range(LANES):
            fill(at, tile + l if tile + l < end else end - 1, l)
        begin(at)
        f, size, state = doubles(slope_at(at, 0)), lane_row(at, STEP), lane_row(at, STATE_OF)
        for l in range(LANES if tile + LANES <= end else end - tile):
            i = tile + l
            doubles(at[H0])[i], doubles(at[CODE0])[i] = size[l], state[l]
            for k in range(n):
                doubles(at[K0])[i * n + k] = f[k * LANES + l]


@helper
def take(at: Any, i: int, l: int) -> None:
    """Gives lane l to member i."""
    fill(at, i, l)
    n, f, t0 = at[N], doubles(slope_at(at, 0)), doubles(at[REAL])[T0]
    for k in range(n):
        f[k * LANES + l] = doubles(at[K0])[i * n + k]
    lane_row(at, STEP)[l], lane_row(at, STATE_OF)[l] = doubles(at[H0])[i], doubles(at[CODE0])[i]
    lane_row(at, TIME)[l], lane_row(at, OLD_ERROR)[l], lane_row(at, RETRY)[l] = t0, LOG2_LEAST_OLD, 0.0
    lane_row(at, TAKEN)[l], lane_row(at, REFUSED)[l], lane_row(at, LIMIT)[l] = (
        0.0,
        0.0,
        float(at[PILOT] if at[PILOT] < at[MOST] else at[MOST]),
    )
    lane_row(at, MEMBER)[l], lane_row(at, SAVED)[l], lane_row(at, NEXT)[l] = float(i), 0.0, math.inf
    if at[IS_SAVING] != 0:
        save = doubles(at[SAVE])
        q = 1 if at[SAVES] > 0 and save[0] == t0 else 0
        if q == 1:
            for k in range(n):
                doubles(at[OUT] + 8 * n * i * at[SAVES])[k] = doubles(state_at(at))[k * LANES + l]
        lane_row(at, SAVED)[l], lane_row(at, NEXT)[l] = float(q), save[q] if q < at[SAVES] else math.inf


@helper
def leave(at: Any, l: int, code: float) -> None:
    """Writes how the member of lane l has ended."""
    i, n, y = int(lane_row(at, MEMBER)[l]), at[N], doubles(state_at(at))
    ints(at[STATUS])[i], doubles(at[T_END])[i] = int(code), lane_row(at, TIME)[l]
    ints(at[STEPS])[i], ints(at[REJECTED])[i] = int(lane_row(at, TAKEN)[l]), int(lane_row(at, REFUSED)[l])
    if at[IS_SAVING] == 0 and code == AT_END:
        for k in range(n):
            doubles(at[OUT] + 8 * n * i)[k] = y[k * LANES + l]
    if at[END_Y] != 0:
        for k in range(n):
            doubles(at[END_Y] + 8 * n * i)[k] = y[k * LANES + l]


@helper
def ended_code(at: Any, l: int) -> float:
    """The Code of lane l, where its step says that its member has come to an end."""
    code = lane_row(at, STATE_OF)[l]
    if code == AT_LIMIT:
        code = limited(at, l)
    elif code == STUCK:
        code = judged(at, l)
    return code


def run(address: int) -> None:
    """Integrates members FIRST to END - 1 of the call whose table is at this address."""
    at = ints(address)
    begin_all(at)
    stop, state, member = ints(at[STOP]), lane_row(at, STATE_OF), lane_row(at, MEMBER)
    following, live = at[FIRST], 0
    for l in range(LANES):
        fill(at, at[END] - 1, l)
        take(at, at[END] - 1, l)
        member[l], state[l], lane_row(at, NEXT)[l] = -1.0, EMPTY, math.inf
    while True:
        for l in range(LANES):
            while state[l] != RUNNING:
                if member[l] >= 0.0:
                    code = ended_code(at, l)
                    if code == RUNNING:
                        state[l] = RUNNING
                        break
                    leave(at, l, code)
                    live -= 1
                    member[l], state[l], lane_row(at, NEXT)[l] = -1.0, EMPTY, math.inf
                if following >= at[END] or stop[0] != 0:
                    break
                take(at, following, l)
                following += 1
                live += 1
        if live == 0 or stop[0] > 1:
            return
        idle = LANES - live
        ended = idle
        while ended == idle:
            ended = step(at)
