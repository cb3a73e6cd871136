"""Norms of vectors in units of the tolerance, summed in one order: blocks of 1024, in each 32 strided sums, then trees.

A literal integer handed to a helper is np.int64(0), not 0: for a literal numba compiles the helper once more.
"""

import numpy as np
from numba import njit

from odesim.arrays import Array
from odesim.solve.explicit.call import call
from odesim.solve.explicit.slots import BLOCK, COEF, COMBINE, K_, ROWS, TABLE, WIDTH


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def tree_sum(sums: Array, lo: int, count: int) -> float:
    """The sum of count > 0 entries from lo on, neighbours first; they are used up."""
    while count > 1:
        half = count // 2
        for i in range(half):
            sums[lo + i] = sums[lo + 2 * i] + sums[lo + 2 * i + 1]
        if count > 2 * half:
            sums[lo + half] = sums[lo + count - 1]
        count -= half
    return sums[lo]


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def block_sum(e: Array, old: Array, new: Array, lo: int, hi: int, sums: Array, atol: float, rtol: float) -> float:
    """The sum over i = lo..hi-1 (at most 1024) of (e[i - lo] / (atol + rtol max(|old[i]|, |new[i]|)))^2.

    Not finite where an entry of e or new is not. The first 32 of sums are scratch; up to 64 components are summed in sequence.
    """
    lanes = 32 if len(old) > 64 else 1
    for j in range(lanes):
        sums[j] = 0.0
    for start in range(lo, hi, lanes):
        rest = hi - start
        for j in range(rest if rest < lanes else lanes):
            i = start + j
            a, b = abs(old[i]), abs(new[i])
            # in this order a NaN in new is kept: max(NaN, x) drops it
            scale = atol + rtol * (a if a > b else b)
            quotient = e[i - lo] / scale
            sums[j] += quotient * quotient + (b - b)
    return tree_sum(sums, np.int64(0), lanes)


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def squares(at: Array, y: int, ns: int, old: Array, new: Array, block: Array, sums: Array, atol: float, rtol: float) -> float:
    """The sum of squares of (y or 0) + sum_j coef[j] k_j over ns stages, in units of the tolerance between old and new (n,)."""
    n = len(old)
    blocks = (n + 1023) // 1024
    for k in range(blocks):
        lo = 1024 * k
        hi = lo + 1024 if lo + 1024 < n else n
        call(at[COMBINE], (at[TABLE], y, at[K_], at[ROWS], at[COEF], ns, lo, hi, at[BLOCK]))
        sums[32 + k] = block_sum(block, old, new, lo, hi, sums, atol, rtol)
    return tree_sum(sums, np.int64(32), blocks)


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def all_finite(at: Array, coef: Array, stage: int, new: Array, block: Array, sums: Array) -> bool:
    """Whether new (n,) and the derivative in this stage are finite (and below 1e150 in size) everywhere."""
    for j in range(stage):
        coef[j] = 0.0
    coef[stage] = 1.0
    total = squares(at, np.int64(0), stage + 1, new, new, block, sums, 1.0, 0.0)
    return total - total == 0.0


@njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def fill(at: Array, n: int, y: int, ns: int, target: int) -> None:
    """target (n,) = y (n,) + sum_j coef[j] k_j over ns stages."""
    for lo in range(0, n, 1024):
        hi = lo + 1024 if lo + 1024 < n else n
        call(at[COMBINE], (at[TABLE], y, at[K_], at[ROWS], at[COEF], ns, lo, hi, target + lo * at[WIDTH]))
