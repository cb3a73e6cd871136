"""The size of a step: a PI rule and a first guess, in arithmetic that gives the same bits on every machine.

Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I (1993), II.4: the rule (4.13), the first step (p. 169).
"""

import math

import numpy as np
from numba import njit

from odesim.arrays import Array
from odesim.solve.explicit.call import call
from odesim.solve.explicit.norms import block_sum, combine_block, tree_sum
from odesim.solve.explicit.slots import (
    ALPHA,
    BETA,
    BLOCK,
    COEF,
    ERROR_OLD,
    GROW,
    H,
    K_,
    RHS_CALLS,
    ROWS,
    RTOL,
    ATOL,
    SAFETY,
    SHRINK,
    STAGE,
    START_POWER,
    T0,
    T1,
    TABLE,
    WIDTH,
    WORK,
)


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
def power(x: float, exponent: float) -> float:
    """x ** exponent for 0 < x < inf to about 1e-7: pow of the C library differs from machine to machine."""
    mantissa, whole = math.frexp(x)
    if mantissa < 0.7071067811865476:
        mantissa, whole = 2 * mantissa, whole - 1
    s = (mantissa - 1) / (mantissa + 1)
    q = s * s
    log2 = 2.8853900817779268 * s * (1 + q * (1 / 3 + q * (1 / 5 + q * (1 / 7 + q / 9)))) + whole
    goal = min(max(log2 * exponent, -1000.0), 1000.0)
    nearest = math.floor(goal + 0.5)
    u = (goal - nearest) * 0.6931471805599453
    return math.ldexp(1 + u * (1 + u / 2 * (1 + u / 3 * (1 + u / 4 * (1 + u / 5 * (1 + u / 6))))), int(nearest))


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
def growth(real: Array, error: float) -> float:
    """The factor for the next step after an accepted one with this error norm; keeps the error for the step after."""
    error = max(error, 1e-10)
    factor = real[SAFETY] * power(error, -real[ALPHA]) * power(real[ERROR_OLD], real[BETA])
    real[ERROR_OLD] = max(error, 1e-4)
    return min(max(factor, real[SHRINK]), real[GROW])


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
def _norm(at: Array, block: Array, ns: int, y: Array, sums: Array, atol: float, rtol: float) -> float:
    """The root mean square of sum_j coef[j] k_j in units of the tolerance at y; of y itself where ns is 0."""
    n = len(y)
    blocks = (n + 1023) // 1024
    for k in range(blocks):
        lo = 1024 * k
        hi = min(n, lo + 1024)
        if ns > 0:
            combine_block(at, 0, ns, lo, hi, at[BLOCK])
            sums[32 + k] = block_sum(block, 0, y, y, lo, hi, sums, atol, rtol)
        else:
            sums[32 + k] = block_sum(y, lo, y, y, lo, hi, sums, atol, rtol)
    return math.sqrt(tree_sum(sums, 32, blocks) / n)


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
def first_step(at: Array, count: Array, real: Array, coef: Array, work: Array, block: Array, sums: Array) -> None:
    """Puts the first step into H: small against the state and its first two derivatives. Uses the second stage."""
    y = work[0]
    span, atol, rtol = real[T1] - real[T0], real[ATOL], real[RTOL]
    size = _norm(at, block, 0, y, sums, atol, rtol)
    coef[0], coef[1] = 1.0, 0.0
    slope = _norm(at, block, 1, y, sums, atol, rtol)
    h = 0.01 * size / slope
    if not (size > 1e-5 and slope > 1e-5 and h > 1e-12 * span):
        h = 1e-6 * span
    h = min(h, span)
    coef[0] = h
    n = work.shape[1]
    call(at[STAGE], (at[TABLE], real[T0] + h, at[WORK], at[K_], at[ROWS], at[COEF], 1, 1, at[WORK] + 2 * n * at[WIDTH]))
    count[RHS_CALLS] += 1
    coef[0], coef[1] = -1.0, 1.0
    change = _norm(at, block, 2, y, sums, atol, rtol) / h
    steepest = max(slope, change) if np.isfinite(change) else slope
    guess = power(0.01 / steepest, real[START_POWER]) if 1e-15 < steepest < 1e300 else max(1e-6 * span, 1e-3 * h)
    real[H] = min(100 * h, guess, span)
