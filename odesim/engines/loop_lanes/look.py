"""Checks of one lane alone: whether stability limits its steps, and whether its solution goes to infinity."""

import math
from typing import Any

from odesim.engines.loop_lanes.memory import (
    AT_LIMIT,
    HELD_BACK,
    ROW,
    RUNNING,
    STUCK,
    UNBOUNDED,
    copy_rows,
    helper,
    lane_row,
    right,
    slope_at,
    stage_at,
    state_at,
)
from odesim.engines.loop_lanes.places import (
    ATOL,
    BOUND,
    CLOCK,
    LANES,
    LIMIT,
    MOST,
    PILOT,
    REAL,
    REFUSED,
    ROWS_ALL,
    RTOL,
    SMALL,
    STEP,
    T0,
    T1,
    TAKEN,
    TIME,
    WORK,
    M,
    N,
)
from odesim.runtime.memory import doubles
from odesim.stepper.control import FAR, FEW, MANY, SHORT, runs_away


@helper
def radius(at: Any, l: int, h: float) -> float:
    """The spectral radius of the Jacobian in lane l, by power iterations on differences of the right-hand side; 0 where it is not known.

    The geometric mean of the last two growths: where units of components differ, each one alone may be far off.
    """
    n, real, last = at[N], doubles(at[REAL]), FEW
    least, small, spare = real[ATOL] / real[RTOL], real[SMALL], slope_at(at, at[ROWS_ALL])
    y, f, z, g = doubles(state_at(at)), doubles(slope_at(at, 0)), doubles(stage_at(at)), doubles(spare)
    copy_rows(state_at(at), stage_at(at), at[M])
    if at[CLOCK] >= 0:
        copy_rows(at[WORK] + TIME * ROW, stage_at(at) + at[CLOCK] * ROW, 1)
    for i in range(n):
        q = i * LANES + l
        a = abs(y[q])
        unit = a if a > least else least
        z[q] = y[q] + small * math.cos(1.0 + 2.4 * i) * (unit if unit > 0.0 else 1.0)
    growth, found, fine, k = 0.0, 0.0, True, 0
    while k < last and fine:
        right(at, stage_at(at), spare)
        size, grown = 0.0, 0.0
        for i in range(n):
            q = i * LANES + l
            a = abs(y[q])
            unit = a if a > least else least
            unit = unit if unit > 0.0 else 1.0
            a, b = (z[q] - y[q]) / unit, (g[q] - f[q]) / unit
            size, grown = size + a * a, grown + b * b
        fine = size > 0.0 and grown > 0.0 and grown < math.inf
        before, growth = growth, grown / size if fine else growth
        found = math.sqrt(math.sqrt(before) * math.sqrt(growth))
        scale = small * math.sqrt(n) / math.sqrt(grown) if fine else 0.0
        for i in range(n):
            q = i * LANES + l
            z[q] = y[q] + (g[q] - f[q]) * scale
        k += 1
        last = MANY if k == FEW and h * found > real[BOUND] else last
    copy_rows(state_at(at), stage_at(at), at[M])
    return found


@helper
def limited(at: Any, l: int) -> float:
    """The Code of lane l, whose member has come to its limit of steps.

    It is HANDED_OVER where stability holds the step and the rest is long. Then the place of the accepted steps holds the number of steps
    tried, and that of the rejected ones how many more it would take. Else it is MAX_STEPS at the most, or RUNNING with twice the limit.
    """
    most, taken, lost, limit = at[MOST], lane_row(at, TAKEN), lane_row(at, REFUSED), lane_row(at, LIMIT)
    if at[PILOT] >= most:
        return AT_LIMIT
    real, h, tried = doubles(at[REAL]), lane_row(at, STEP)[l], taken[l] + lost[l]
    left = (real[T1] - lane_row(at, TIME)[l]) / h
    if left >= SHORT * tried and h * radius(at, l, h) > real[BOUND]:
        taken[l], lost[l] = tried, left if left < FAR else FAR
        return HELD_BACK
    if tried >= most:
        return AT_LIMIT
    limit[l] = 2.0 * tried if 2.0 * tried < most else float(most)
    return RUNNING


@helper
def judged(at: Any, l: int) -> float:
    """BLOW_UP where lane l, whose step has become too small, is about to reach infinity, by the rule of odesim.stepper.report."""
    y, f, real, t = doubles(state_at(at)), doubles(slope_at(at, 0)), doubles(at[REAL]), lane_row(at, TIME)[l]
    most, value, slope = -1.0, 0.0, 0.0
    for i in range(at[N]):
        q = i * LANES + l
        weighed = abs(f[q]) / (real[ATOL] + real[RTOL] * abs(y[q]))
        if weighed > most:
            most, value, slope = weighed, y[q], f[q]
    passed = abs(t) if abs(t) > t - real[T0] else t - real[T0]
    return UNBOUNDED if runs_away(value, slope, passed) else STUCK
