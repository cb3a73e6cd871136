"""Norms of vectors in units of the tolerance, with a fixed order of summation.

They are summed in the order of odesim.runtime.sums: blocks of 1024, in each 32 strided sums.

`at` is a pointer to the run's table (places.py); y, e, old, new are addresses. A literal integer handed to a helper is written
np.int64(0): for a bare 0 numba compiles the helper once more.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from odesim.runtime.memory import call, doubles, floats
from odesim.solve.explicit.places import BLOCK, COEF, COMBINE, ROWS, SUMS, TABLE, WIDTH, K, N

_compile: Any = njit  # some of its options are not in its type
helper = _compile(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
exported = _compile("int64(int64)", error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
answering = _compile("void(int64, float64, int64, int64)", error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


@helper
def tree_sum(at: Any, first: int, count: int) -> float:
    """The sum of count > 0 entries of SUMS from the first on, upper half added to the lower one; they are overwritten."""
    sums = doubles(at[SUMS] + 8 * first)
    while count > 1:
        half = (count + 1) // 2
        for i in range(count - half):
            sums[i] += sums[i + half]
        count = half
    return sums[0]


@helper
def block_sum(at: Any, e: int, old: int, new: int, lo: int, hi: int, atol: float, rtol: float) -> float:
    """The sum over i = lo..hi-1 (at most 1024) of (e[i - lo] / (atol + rtol max(|old[i]|, |new[i]|)))^2.

    Not finite where an entry of e or new is not. Uses the first 32 of SUMS; up to 64 entries are summed in sequence.
    """
    sums = doubles(at[SUMS])
    lanes = 32 if hi - lo > 64 else 1
    single = at[WIDTH] == 4
    for j in range(lanes):
        sums[j] = 0.0
    for start in range(lo, hi, lanes):
        rest = hi - start
        for j in range(rest if rest < lanes else lanes):
            i = start + j
            if single:
                x, a, b = np.float64(floats(e)[i - lo]), np.float64(floats(old)[i]), np.float64(floats(new)[i])
            else:
                x, a, b = doubles(e)[i - lo], doubles(old)[i], doubles(new)[i]
            a, b = abs(a), abs(b)
            # b - b is 0, or NaN where the new state is not finite: the larger of NaN and x may be x
            quotient = x / (atol + rtol * (a if a > b else b))
            sums[j] += quotient * quotient + (b - b)
    return tree_sum(at, np.int64(0), lanes)


@helper
def squares(at: Any, y: int, ns: int, old: int, new: int, atol: float, rtol: float) -> float:
    """The sum of squares of (y or 0) + sum_j coef[j] k_j over ns stages, in units of the tolerance between old and new (n,)."""
    sums = doubles(at[SUMS])
    blocks = (at[N] + 1023) // 1024
    for k in range(blocks):
        lo = 1024 * k
        hi = lo + 1024 if lo + 1024 < at[N] else at[N]
        call(at[COMBINE], (at[TABLE], y, at[K], at[ROWS], at[COEF], ns, lo, hi, at[BLOCK]))
        sums[32 + k] = block_sum(at, at[BLOCK], old, new, lo, hi, atol, rtol)
    return tree_sum(at, np.int64(32), blocks)


@helper
def all_finite(at: Any, stage: int, new: int) -> bool:
    """Whether new (n,) and this stage's derivative are finite: in units of infinity they sum to 0, else to NaN."""
    coef = doubles(at[COEF])
    for j in range(stage):
        coef[j] = 0.0
    coef[stage] = 1.0
    return squares(at, np.int64(0), stage + 1, new, new, math.inf, 0.0) == 0.0


@helper
def fill(at: Any, y: int, ns: int, target: int) -> None:
    """Sets target (n,) to y (n,) + sum_j coef[j] k_j over ns stages."""
    for lo in range(0, at[N], 1024):
        hi = lo + 1024 if lo + 1024 < at[N] else at[N]
        call(at[COMBINE], (at[TABLE], y, at[K], at[ROWS], at[COEF], ns, lo, hi, target + lo * at[WIDTH]))
