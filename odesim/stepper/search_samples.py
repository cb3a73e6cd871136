"""What samples of a function in one step show: where it passes zero, where it may dip, the polynomial through them; and their numbers."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from odesim.runtime.functions import njit

# What a search for zeros in a step needs in memory, and the kinds of components.

TOGETHER_AT_MOST = 64
"""The most components that are always searched on the functions themselves, which are computed together."""
EXACT = 8
"""The most zeros and dips of a step that are searched on the functions themselves where there are more components.

With more of them the polynomials through the samples are searched, in parts of the step where they are not the functions closely enough.
For a function linear in the state these are the interpolant itself.
"""
MARKS = 52
"""The last bit of the marks of a step's components: a float64 holds as many."""
POINTS = 96
"""The most samples of a function in one step."""
NEAR = 1e-3
"""How near to an end of a piece of a step, in parts of the piece, its slope there is looked at."""
SETTLED = 1e-9
"""Of a piece: what follows a Newton step as short as that is below rounding."""
TERMINAL = 1
"""The kind of a component at whose zeros a run ends."""
STRAIGHT = 2
"""The kind of a component whose zeros are those of the polynomial through its samples."""


def kinds(terminal: Sequence[bool], affine: Sequence[bool]) -> list[int]:
    """The kinds of events, by whether each ends a run and is affine in the state and in time; 0 of those that are neither.

    Where a run ends at one event, zeros of the others are searched as its own are, on the functions. So none is lost or counted twice.
    """
    if any(terminal):
        return [TERMINAL if ends else 0 for ends in terminal]
    return [STRAIGHT if a else 0 for a in affine]


def most_zeros(events: int, pieces: int) -> int:
    """The number of zeros for which a step has room, all events together."""
    return (events + min(events, TOGETHER_AT_MOST)) * pieces + 4 * EXACT


def memory_size(room: int, size: int = 0, pieces: int = 0) -> int:
    """The length of the array `memory` (odesim.stepper.search), with space for the samples of a part of a step where it may need them."""
    return 2 * (room + POINTS) + ((pieces + 2) * size if size > TOGETHER_AT_MOST else 0)


# fastmath is said: what says nothing takes over that of whoever calls it first
helper = njit(fastmath=False)


@helper
def passes(a: float, b: float, direction: int) -> bool:
    """Whether a function that goes from a to b passes zero, or ends on it, in its direction. A zero at a was counted before."""
    return (a < 0.0 and b >= 0.0 and direction >= 0) or (a > 0.0 and b <= 0.0 and direction <= 0)


@helper
def guess(lo: float, hi: float, g_lo: float, g_hi: float, trial: int) -> float:
    """The next point between lo and hi: on the chord, every fourth time the midpoint. Not between them if they are neighbours."""
    theta = hi - g_hi * ((hi - lo) / (g_hi - g_lo))
    return lo + 0.5 * (hi - lo) if trial % 4 == 0 or not lo < theta < hi else theta


@helper
def narrowed(lo: float, hi: float, g_lo: float, g_hi: float, side: int, theta: float, g: float) -> tuple[float, float, float, float, int]:
    """(lo, hi, g_lo, g_hi, side) once the function is known to be g at theta: an end that stays twice counts half (Illinois).

    side: which end the step before moved, 1 the lower, 2 the upper, 0 none.
    """
    if g * g_lo > 0.0:
        return theta, hi, g, 0.5 * g_hi if side == 1 else g_hi, 1
    return lo, theta, 0.5 * g_lo if side == 2 else g_lo, g, 2


NARROW = 1e-9
"""Of a step: samples as near as that hide nothing."""
MARGIN = 0.01
"""Of a piece: what is looked at lies no nearer to its ends."""


@helper
def hints(before: float, a: float, b: float, after: float) -> bool:
    """Whether of samples at equal distances that have no sign between them a and b may have a dip between them.

    before, after: the samples beside them; infinite where none is known and the function may come down, or go up, as it likes.
    """
    a, b = abs(a), abs(b)
    return a + a <= abs(before) and b + b <= abs(after)


@helper
def hidden(a: float, b: float, g_a: float, g_b: float, before: float, after: float) -> float:
    """The place between a and b at which a function that is g_a, g_b >= 0 there may be below zero; -1: nowhere.

    before, after: the slopes of the chords that end in a and begin in b; -inf, inf where none is known.
    """
    width = b - a
    if not (width >= NARROW and before < 0.0 < after and g_a + before * width <= 0.0 and g_b - after * width <= 0.0):
        return -1.0
    if before == -math.inf:
        return a + NEAR * width
    if after == math.inf:
        return b - NEAR * width
    where = (g_b - g_a - after * width) / (before - after)
    if g_a + before * where > 0.0:
        return -1.0
    return a + min(max(where, MARGIN * width), (1.0 - MARGIN) * width)


TRIALS = 8
"""Newton steps at most; from a chord of a piece three or four reach rounding."""


@helper
def divided(c: Any, first: int, pieces: int) -> None:
    """Turns the values in c from `first` on into the coefficients of the polynomial through them."""
    for m in range(1, pieces + 1):
        part = 1.0 / m
        for k in range(pieces, m - 1, -1):
            c[first + k] = (c[first + k] - c[first + k - 1]) * part


@helper
def zero_between(c: Any, first: int, pieces: int, a: float, b: float, s: float) -> tuple[float, float]:
    """(where between a and b the polynomial is zero, its slope there) by Newton steps from s; (-1, 0) where they leave a to b."""
    for _ in range(TRIALS):
        p, slope = c[first + pieces], 0.0
        for k in range(pieces - 1, -1, -1):
            slope = slope * (s - k) + p
            p = p * (s - k) + c[first + k]
        step = p / slope
        s -= step
        if not a < s < b:
            return -1.0, 0.0
        if abs(step) < SETTLED:
            return s, slope
    return -1.0, 0.0


@helper
def side_of(memory: Any, first: int, j: int) -> float:
    """The sign of the function between samples j and j + 1: that of the last nonzero sample up to j, or of the next."""
    k = j
    while k > 0 and memory[first + k] == 0.0:
        k -= 1
    g = memory[first + k] if memory[first + k] != 0.0 else memory[first + j + 1]
    return 1.0 if g > 0.0 else (-1.0 if g < 0.0 else 0.0)


@helper
def place(memory: Any, line: int, n: int, j: int, before: float) -> float:
    """The place between samples j and j + 1 at which the function may have another sign than there; -1: nowhere."""
    first = line + POINTS
    side = side_of(memory, first, j)
    g_a, g_b = side * memory[first + j], side * memory[first + j + 1]
    if not (side != 0.0 and g_a >= 0.0 and g_b >= 0.0):
        return -1.0
    falls, rises = 0.0 if side * before <= g_a else -math.inf, math.inf
    if j > 0:
        falls = (g_a - side * memory[first + j - 1]) / (memory[line + j] - memory[line + j - 1])
    if j + 2 < n:
        rises = (side * memory[first + j + 2] - g_b) / (memory[line + j + 2] - memory[line + j + 1])
    return hidden(memory[line + j], memory[line + j + 1], g_a, g_b, falls, rises)


@helper
def crosses(memory: Any, line: int, n: int, j: int, direction: int) -> bool:
    """Whether the function passes zero between samples j and j + 1, or at the latter. Where it is zero, the next one tells."""
    k = j + 1
    while k < n - 1 and memory[line + POINTS + k] == 0.0:
        k += 1
    return passes(memory[line + POINTS + j], memory[line + POINTS + k], direction)


@helper
def inserted(memory: Any, line: int, n: int, j: int, theta: float, g: float) -> int:
    """The number of samples, after one more is inserted behind sample j if theta lies between that and the next one."""
    if n == POINTS or not memory[line + j] < theta < memory[line + j + 1]:
        return n
    for k in range(n, j + 1, -1):
        memory[line + k] = memory[line + k - 1]
        memory[line + POINTS + k] = memory[line + POINTS + k - 1]
    memory[line + j + 1], memory[line + POINTS + j + 1] = theta, g
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
