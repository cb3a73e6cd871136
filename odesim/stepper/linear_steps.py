# ruff: noqa: F821
# mypy: disable-error-code="name-defined"
"""What the driver of an implicit step calls: right-hand sides in float64, linear systems by address, linear invariants. Compiled with it.

`at` is a pointer to the run's table (table.py), all else addresses of rows (n,) of float64. Who answers the linear systems is a matter of
addresses: compiled elimination (front_solver.py), or functions of Python around LAPACK.
"""

import math
from typing import Any

import numpy as np

from odesim.runtime.intrinsics import call, doubles, floats, ints
from odesim.stepper.control import move_back
from odesim.stepper.crossings import evaluate, put_all
from odesim.stepper.operations import helper, loops, tree_sum

TINY = 1e-300
"""The least absolute tolerance that a run has."""


@helper
def jacobian_row(at: Any, turn: float) -> int:
    """The address of one of the two Jacobians."""
    return at[JACOBIANS] + 8 * int(turn) * at[JACOBIAN_SIZE]


@loops
def row_sum(at: Any, row: int) -> float:
    """The sum of a row: blocks of 1024, as odesim.runtime.sums."""
    sums, x, n = doubles(at[SUMS]), doubles(row), at[N]
    blocks = (n + 1023) // 1024
    for block in range(blocks):
        lo = 1024 * block
        hi = lo + 1024 if lo + 1024 < n else n
        lanes = 32 if hi - lo > 64 else 1
        for j in range(lanes):
            sums[j] = 0.0
        for start in range(lo, hi, lanes):
            rest = hi - start
            for j in range(rest if rest < lanes else lanes):
                sums[j] += x[start + j]
        sums[32 + block] = tree_sum(at, np.int64(0), lanes)
    return tree_sum(at, np.int64(32), blocks) if blocks > 0 else 0.0


@helper
def seen(at: Any, y: int) -> int:
    """The address of a state as the system sees it, in its own type."""
    if at[SINGLE] == 0:
        return y
    for i in range(at[N]):
        floats(at[RAW])[i] = doubles(y)[i]
    return at[RAW]


@helper
def right(at: Any, t: float, y: int, target: int) -> None:
    """target = f(t, y); NaN where y is not finite in the system's type."""
    n, none, one, single = at[N], np.int64(0), np.int64(1), at[SINGLE] == 1
    width = 4 if single else 8
    state, raw, out = seen(at, y), at[RAW] + n * width, at[RAW] + 2 * n * width if single else target
    scaled = at[SYSTEM_COMBINE] != 0  # `combine` alone knows how
    call(at[SYSTEM_STAGE], (at[SYSTEM_TABLE], t, state, raw if scaled else out, at[ZERO], at[ONE], none, none, none))
    for lo in range(0, n if scaled else 0, 1024):
        hi = lo + 1024 if lo + 1024 < n else n
        call(at[SYSTEM_COMBINE], (at[SYSTEM_TABLE], none, raw, at[ZERO], at[ONE], one, lo, hi, out + lo * width))
    if single:
        wild = 0.0
        for i in range(n):
            wild += floats(state)[i] - floats(state)[i]
        for i in range(n):
            doubles(target)[i] = floats(out)[i] + wild


@helper
def linear(at: Any, t: float, y: int, f: int, J: int) -> None:
    """f(t, y) and, in J, what the functions of the linear systems keep of the Jacobian and df/dt there."""
    right(at, t, y, f)
    call(at[LINEAR], (at[SYSTEMS], t, y, J))


@helper
def along(at: Any, J: int, f: int, target: int) -> None:
    """target = J f + df/dt."""
    call(at[ALONG], (at[SYSTEMS], J, f, target))


@helper
def eliminate(at: Any, J: int, y: int, g: float) -> bool:
    """Makes 1 - g J ready; whether that can be."""
    call(at[ELIMINATE], (at[SYSTEMS], J, g, at[TRUTH]))
    return ints(at[TRUTH])[0] != 0


@helper
def drift(at: Any, J: int, g: float, later: float, target: int) -> None:
    """Adds g later df/dt."""
    if at[DRIFT] != 0 and later != 0.0:
        call(at[DRIFT], (at[SYSTEMS], J, g * later, target))


@helper
def solve(at: Any, J: int, g: float, b: int, x: int) -> None:
    """x of (1 - g J) x = b; NaN where that has no solution."""
    call(at[SOLVE], (at[SYSTEMS], J, g, b, x))


@helper
def solved(at: Any, good: bool, J: int, g: float, x: int, b: int) -> bool:
    """Whether there was a solution; one that overflows is left to the error norm."""
    n = at[N]
    for i in range(n):
        if not math.isnan(doubles(x)[i]):
            return good
    return good and n == 0


@loops
def restore(at: Any, y: int) -> None:
    """Moves y to where the linear invariants have their values; what is far below any absolute tolerance is 0."""
    # decaying components would stay at 5e-324, which rounding does not let fall, and arithmetic on such numbers takes 100 times as long:
    # a fourfold time of a whole run
    for i in range(at[N]):
        if abs(doubles(y)[i]) < TINY:
            doubles(y)[i] = 0.0
    if at[INVARIANTS] != 0:
        move_back(doubles(at[INVARIANTS]), doubles(y))


def combined(address: int, y: int, K: int, rows: int, coef: int, ns: int, lo: int, hi: int, target: int) -> None:
    """What `combine` of a system does, on rows of float64."""
    n, out, weights, order = ints(address)[N], doubles(target), doubles(coef), ints(rows)
    for i in range(lo, hi):
        out[i - lo] = doubles(y)[i] if y != 0 else 0.0
    j = 0
    while j < ns:
        if j + 3 < ns and weights[j] * weights[j + 1] * weights[j + 2] * weights[j + 3] != 0.0:  # four in one pass over `out`
            a, b, c, d = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
            p, q = doubles(K + 8 * n * order[j]), doubles(K + 8 * n * order[j + 1])
            r, s = doubles(K + 8 * n * order[j + 2]), doubles(K + 8 * n * order[j + 3])
            for i in range(lo, hi):
                out[i - lo] = (((out[i - lo] + a * p[i]) + b * q[i]) + c * r[i]) + d * s[i]
            j += 4
        else:
            if weights[j] != 0.0:
                k = doubles(K + 8 * n * order[j])
                for i in range(lo, hi):
                    out[i - lo] += weights[j] * k[i]
            j += 1


@helper
def widen(at: Any, g: int, size: int) -> None:
    """Makes float64 of numbers that the system wrote in its own type, in place."""
    if at[SINGLE] == 1:
        for i in range(size - 1, -1, -1):
            doubles(g)[i] = floats(g)[i]


def watched(address: int, t: float, y: int, g: int) -> None:
    """The event functions of the system at a state of float64."""
    at = ints(address)
    call(at[SYSTEM_EVENTS], (at[SYSTEM_EVENTS_TABLE], t, seen(at, y), g))
    widen(at, g, at[SIZE])


def judged(address: int, t: float, y: int, g: int) -> None:
    """The values of its laws."""
    at = ints(address)
    call(at[SYSTEM_LAWS], (at[SYSTEM_LAW_TABLE], t, seen(at, y), g))
    widen(at, g, at[LAW_SIZE])


def probed(address: int, theta: float, l: int, i: int) -> None:
    """Puts the event functions at theta where the search looks for them: as a run goes on from there, where i < 0."""
    at = ints(address)
    evaluate(at, theta, 0.0, at[PIECES] + 1)
    if i < 0:
        restore(at, at[X])
        put_all(at, doubles(at[LOOKED])[0] + theta * doubles(at[LOOKED])[1], at[X], at[PIECES] + 1)
