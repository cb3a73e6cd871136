"""The size of a step: a PI rule and a first guess, in arithmetic that gives the same bits on every machine.

Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I (1993), II.4 (first step, p. 169) and II (1996), IV.2 (PI rule).
"""

import math
from typing import Any

import numpy as np

from odesim.solve.explicit.memory import bits, call, doubles, from_bits, ints
from odesim.solve.explicit.norms import helper, squares
from odesim.solve.explicit.slots import (
    ALPHA,
    ATOL,
    BETA,
    COEF,
    COUNT,
    ERROR_OLD,
    GROW,
    REAL,
    RETRY,
    RHS_CALLS,
    ROWS,
    RTOL,
    SAFETY,
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


@helper
def power(x: float, exponent: float) -> float:
    """x ** exponent for normal x to about 1e-7, results kept in 2^-1000..2^1000: pow of the C library differs from machine to machine."""
    whole = (bits(x) >> 52) - 1023
    mantissa = from_bits((bits(x) & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000)
    s = (mantissa - 1.4142135623730951) / (mantissa + 1.4142135623730951)
    q = s * s
    log2 = 2.8853900817779268 * s * (1.0 + q * (1 / 3 + q * (1 / 5 + q * (1 / 7 + q / 9)))) + (whole + 0.5)
    goal = log2 * exponent
    if abs(goal) > 1000.0:
        goal = 1000.0 if goal > 0.0 else -1000.0
    nearest = np.int64(goal + 1000.5) - 1000
    u = (goal - nearest) * 0.6931471805599453
    series = 1.0 + u * (1.0 + u / 2 * (1.0 + u / 3 * (1.0 + u / 4 * (1.0 + u / 5 * (1.0 + u / 6)))))
    return series * from_bits((nearest + 1023) << 52)


@helper
def next_step(at: Any, h: float, error: float) -> None:
    """Puts into H what follows a step h with this error norm, accepted where error <= 1; after a rejection no step grows."""
    real, count = doubles(at[REAL]), ints(at[COUNT])
    error = error if error > 1e-10 else 1e-10
    factor = real[SAFETY] * power(error, -real[ALPHA])
    grow = 0.9
    if error <= 1.0:
        factor *= power(real[ERROR_OLD], real[BETA])
        real[ERROR_OLD] = error if error > 1e-4 else 1e-4
        grow = real[GROW] if count[RETRY] == 0 else 1.0
    count[RETRY] = 1 if error > 1.0 else 0
    if factor < real[SHRINK]:
        factor = real[SHRINK]
    real[H] = h * (factor if factor < grow else grow)


@helper
def first_step(at: Any) -> None:
    """Puts the first step into H: small against the state and its first two derivatives. Uses the second stage."""
    real, count, coef, y = doubles(at[REAL]), ints(at[COUNT]), doubles(at[COEF]), at[WORK]
    span, atol, rtol = real[T1] - real[T0], real[ATOL], real[RTOL]
    coef[0], coef[1] = 1.0, 1.0
    size = math.sqrt(squares(at, y, np.int64(0), y, y, atol, rtol) / at[N])
    slope = math.sqrt(squares(at, np.int64(0), np.int64(1), y, y, atol, rtol) / at[N])
    h = 0.01 * size / slope
    most = 100.0 * h
    if not (size > 1e-5 and slope > 1e-5 and h > 1e-12 * span):
        h, most = 1e-6 * span, span  # a state of 0 has no size to go by: h is for the second derivative only
    if h > span:
        h = span
    coef[0] = h
    call(at[STAGE], (at[TABLE], real[T0] + h, y, at[K], at[ROWS], at[COEF], 1, 1, y + 2 * at[N] * at[WIDTH]))
    count[RHS_CALLS] += 1
    coef[0] = -1.0
    change = math.sqrt(squares(at, np.int64(0), np.int64(2), y, y, atol, rtol) / at[N]) / h
    steepest = change if change > slope and change < 1e300 else slope
    guess = power(0.01 / steepest, real[START_POWER]) if 1e-15 < steepest < 1e300 else 1e-6 * span
    real[H] = guess if guess < most else most
