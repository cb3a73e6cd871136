"""Step control of an explicit run on its arrays, by the rules of odesim.solve.step.control."""

import math
from typing import Any

import numpy as np

from odesim.runtime.memory import call, doubles, ints
from odesim.solve.explicit.norms import helper, squares
from odesim.solve.explicit.places import (
    ALPHA,
    ATOL,
    BETA,
    COEF,
    COUNT,
    GROW,
    LOG_OLD,
    LONGEST,
    REAL,
    RETRY,
    RHS_CALLS,
    ROWS,
    RTOL,
    SHRINK,
    STAGE,
    START_POWER,
    T0,
    T1,
    TABLE,
    WIDTH,
    WORK,
    H,
    K,
    N,
)
from odesim.solve.step.arithmetic import exp2, log2, power
from odesim.solve.step.control import LEAST, LOG2_LEAST_OLD, SAFETY, at_most, first_step, next_step, pi_goal, steepest, trial_step


@helper
def set_next_step(at: Any, h: float, error: float) -> None:
    """Sets H to the step after h with this error norm, accepted if error <= 1."""
    real, count = doubles(at[REAL]), ints(at[COUNT])
    fits = error <= 1.0
    size = log2(error if error > LEAST else LEAST)
    factor = SAFETY * exp2(pi_goal(size, real[LOG_OLD], fits, real[ALPHA], real[BETA]))
    real[H] = at_most(next_step(h, error, factor, count[RETRY] != 0, real[SHRINK], real[GROW]), real[LONGEST])
    if fits:
        real[LOG_OLD] = size if size > LOG2_LEAST_OLD else LOG2_LEAST_OLD
    count[RETRY] = 0 if fits else 1


@helper
def set_first_step(at: Any) -> None:
    """Sets H to the first step, small relative to the state and its first two derivatives. Uses the second stage."""
    real, count, coef, y = doubles(at[REAL]), ints(at[COUNT]), doubles(at[COEF]), at[WORK]
    span, atol, rtol = real[T1] - real[T0], real[ATOL], real[RTOL]
    coef[0], coef[1] = 1.0, 1.0
    size = math.sqrt(squares(at, y, np.int64(0), y, y, atol, rtol) / at[N])
    slope = math.sqrt(squares(at, np.int64(0), np.int64(1), y, y, atol, rtol) / at[N])
    h, most = trial_step(size, slope, span)
    coef[0] = h
    call(at[STAGE], (at[TABLE], real[T0] + h, y, at[K], at[ROWS], at[COEF], 1, 1, y + 2 * at[N] * at[WIDTH]))
    count[RHS_CALLS] += 1
    coef[0] = -1.0
    steep = steepest(slope, math.sqrt(squares(at, np.int64(0), np.int64(2), y, y, atol, rtol) / at[N]) / h)
    real[H] = first_step(power(0.01 / steep, real[START_POWER]), steep, most, real[T0], span, real[LONGEST])
