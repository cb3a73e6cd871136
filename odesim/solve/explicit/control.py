"""The size of a step: a PI rule and a first guess, in arithmetic that gives the same bits on every machine.

Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I (1993), II.4 (first step, p. 169) and II (1996), IV.2 (PI rule).
"""

import math
from typing import Any

import numpy as np

from odesim.codegen.runtime.memory import bits, call, doubles, fma, from_bits, ints
from odesim.solve.explicit.norms import helper, squares
from odesim.solve.explicit.places import (
    ALPHA,
    ATOL,
    BETA,
    COEF,
    COUNT,
    GROW,
    LOG2_LEAST,
    LOG_OLD,
    LONGEST,
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

MAGIC = 1.5 * 2.0**52 + 1023.0  # adding it rounds to an integer n and leaves n + 1023 in the low bits


@helper
def log2(x: float) -> float:
    """log2(x) for normal x > 0 to about 1.3e-5: the C library's differs from machine to machine. Minimax on [1, 2)."""
    exponent = np.float64((bits(x) >> 52) - 1023)
    u = from_bits((bits(x) & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000) - 1.5
    low, middle = fma(u, 0.96183967, 0.58495049), fma(u, 0.14142303, -0.3197489)
    return exponent + fma(u * u, fma(u * u, fma(u, 0.04487313, -0.08001169), middle), low)


@helper
def exp2(x: float) -> float:
    """2^x to about 1e-7, x held within [-1000, 1000]. Minimax on [-1/2, 1/2]."""
    x = x if x < 1000.0 else 1000.0
    x = x if x > -1000.0 else -1000.0
    z = x + MAGIC
    u = x - (z - MAGIC)
    low, middle = fma(u, 0.69314697, 1.00000007), fma(u, 0.05550713, 0.2402212)
    return from_bits(bits(z) << 52) * fma(u * u, fma(u * u, fma(u, 0.00132765, 0.00967554), middle), low)


@helper
def next_step(at: Any, h: float, error: float) -> None:
    """Puts into H what follows a step h with this error norm, accepted where error <= 1; after a rejection no step grows.

    The factor is safety error^-alpha old_error^beta, by logarithms to base 2.
    """
    real, count = doubles(at[REAL]), ints(at[COUNT])
    size = log2(error if error > 1e-10 else 1e-10)
    goal = -real[ALPHA] * size
    grow = 0.9
    if error <= 1.0:
        goal += real[BETA] * real[LOG_OLD]
        real[LOG_OLD] = size if size > LOG2_LEAST else LOG2_LEAST
        grow = real[GROW] if count[RETRY] == 0 else 1.0
    count[RETRY] = 1 if error > 1.0 else 0
    factor = real[SAFETY] * exp2(goal)
    if factor < real[SHRINK]:
        factor = real[SHRINK]
    following = h * (factor if factor < grow else grow)
    real[H] = real[LONGEST] if following > real[LONGEST] else following


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
    guess = exp2(real[START_POWER] * log2(0.01 / steepest)) if 1e-15 < steepest < 1e300 else 1e-6 * span
    guess = guess if guess < most else most
    real[H] = real[LONGEST] if guess > real[LONGEST] else guess
