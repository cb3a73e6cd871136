"""Samples of one function in a step, and where they show zeros.

They lie in `found` from `line` on: POINTS places in the step, increasing, then POINTS values; how many there are is n. `before` is the
last sample before the step, NaN where there is none.
"""

import math
from typing import Any

import numpy as np

from odesim.solve.step.dips import hidden, hints
from odesim.solve.step.roots import helper, passes
from odesim.solve.step.sizes import POINTS


@helper
def side_of(found: Any, first: int, j: int) -> float:
    """The sign of the function between samples j and j + 1: that of the last nonzero sample up to j, or of the next."""
    k = j
    while k > 0 and found[first + k] == 0.0:
        k -= 1
    g = found[first + k] if found[first + k] != 0.0 else found[first + j + 1]
    return 1.0 if g > 0.0 else (-1.0 if g < 0.0 else 0.0)


@helper
def place(found: Any, line: int, n: int, j: int, before: float) -> float:
    """The place between samples j and j + 1 at which the function may have another sign than there; -1: nowhere."""
    first = line + POINTS
    side = side_of(found, first, j)
    g_a, g_b = side * found[first + j], side * found[first + j + 1]
    if not (side != 0.0 and g_a >= 0.0 and g_b >= 0.0):
        return -1.0
    falls, rises = 0.0 if side * before <= g_a else -math.inf, math.inf
    if j > 0:
        falls = (g_a - side * found[first + j - 1]) / (found[line + j] - found[line + j - 1])
    if j + 2 < n:
        rises = (side * found[first + j + 2] - g_b) / (found[line + j + 2] - found[line + j + 1])
    return hidden(found[line + j], found[line + j + 1], g_a, g_b, falls, rises)


@helper
def crosses(found: Any, line: int, n: int, j: int, direction: int) -> bool:
    """Whether the function passes zero between samples j and j + 1, or at the latter. Where it is zero, the next one tells."""
    k = j + 1
    while k < n - 1 and found[line + POINTS + k] == 0.0:
        k += 1
    return passes(found[line + POINTS + j], found[line + POINTS + k], direction)


@helper
def inserted(found: Any, line: int, n: int, j: int, theta: float, g: float) -> int:
    """The number of samples, after one more is inserted behind sample j if theta lies between that and the next one."""
    if n == POINTS or not found[line + j] < theta < found[line + j + 1]:
        return n
    for k in range(n, j + 1, -1):
        found[line + k] = found[line + k - 1]
        found[line + POINTS + k] = found[line + POINTS + k - 1]
    found[line + j + 1], found[line + POINTS + j + 1] = theta, g
    return n + 1


@helper
def places_in(sample: Any, at: Any, l: int, i: int, pieces: int, direction: int) -> tuple[int, int]:
    """(in how many pieces component i passes zero, in how many it may).

    Nowhere, where its samples have one sign and none is half of another.
    """
    low, high = math.inf, -math.inf
    for k in range(pieces + 1):
        g = sample(at, l, k, i)
        low, high = (g if g < low else low), (g if g > high else high)
    if low + low > high or high + high < low:
        return 0, 0
    passed, dips, a, b = 0, 0, sample(at, l, np.int64(0), i), sample(at, l, np.int64(1), i)
    before = 0.0 if (sample(at, l, np.int64(-1), i) - a) * a <= 0.0 else math.inf
    for k in range(pieces):
        after = sample(at, l, k + 2, i) if k + 2 <= pieces else math.inf
        if passes(a, b, direction):
            passed += 1
        if a * b >= 0.0 and (a != 0.0 or b != 0.0) and hints(before, a, b, after):
            dips += 1
        before, a, b = a, b, after
    return passed, dips
