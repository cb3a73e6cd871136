"""Zeros of event functions inside an accepted step, on the interpolant: one search for all integrators.

It begins with the functions' values at the ends of the pieces of the step. An integrator brings two functions, of its own numbers `at`
and a lane l. sample(at, l, k, i) is component i at the end of piece k. k = 0 is the start of the step and k = -1 the last sample before it
(NaN where there is none). probe(at, l, theta, i) computes component i at theta of the step, and all others with it. These then are
sample(at, l, pieces + 1, i). For i = -1 it computes them in the state from which a run goes on at theta, linear invariants restored.

A function that has one sign and then the other passes zero: that counts. One that touches zero and keeps its sign does not. But one that
is zero where a step ends counts, for the rest is not known there. A zero at the start of a step was counted before.

facts (2, size): the direction and the kind of each component. The kind is TERMINAL, STRAIGHT or 0. STRAIGHT: the component is the
polynomial through its samples, as an event that is affine in the state.

marks: bit i of a whole number is 0 where component i has no place to look at; -1 if that is not known. The last of MARKS + 1 bits is
that of all further components too.

memory: pairs (time, component) up to `room`, then 2 * POINTS numbers for the samples of one component.
"""

import math
from typing import Any

import numpy as np

from odesim.stepper.search_samples import (
    EXACT,
    MARKS,
    POINTS,
    STRAIGHT,
    TERMINAL,
    TOGETHER_AT_MOST,
    crosses,
    divided,
    guess,
    helper,
    inserted,
    narrowed,
    passes,
    place,
    places_in,
    zero_between,
)

ROUNDING = 1e-15
"""Of the largest sample: how far a polynomial through them is off at least."""
TESTED = 0.5
"""So many pieces before the end of a step the polynomials are held against the functions."""
WORSE = 100.0
"""How much further off they may be elsewhere."""
FINE = 1e-9
"""Of a piece: how far from the function's zero that of a polynomial may be."""
BEFORE = 4.0
"""Widths before a zero at which a function that has come to stay is zero too."""
BESIDE = 0.75
"""Of the width that a bracket may have: how far from a zero the other end of its bracket is tried."""


@helper
def modelled(sample: Any, at: Any, l: int, i: int, pieces: int, theta: float) -> float:
    """Component i at theta on the polynomial through its samples, by the barycentric formula."""
    weight, above, below = 1.0, 0.0, 0.0
    for k in range(pieces + 1):
        part = weight / (theta - k / pieces)
        above += part * sample(at, l, k, i)
        below += part
        weight *= (k - pieces) / (k + 1)
    return above / below


@helper
def bisected(
    sample: Any, at: Any, l: int, i: int, pieces: int, lo: float, hi: float, g_lo: float, g_hi: float, width: float
) -> float:  # fmt: skip
    """The theta between lo and hi at which the polynomial through the samples of component i has crossed zero, by Illinois steps."""
    side, trial = 0, 0
    while hi - lo > width and g_hi != 0.0 and trial < 200:
        trial += 1
        theta = guess(lo, hi, g_lo, g_hi, trial)
        if not lo < theta < hi:
            break
        lo, hi, g_lo, g_hi, side = narrowed(lo, hi, g_lo, g_hi, side, theta, modelled(sample, at, l, i, pieces, theta))
    return hi


@helper
def with_dips(sample: Any, at: Any, l: int, i: int, pieces: int, memory: Any, line: int) -> int:
    """The number of samples in memory from `line` on, after enough are added to show where the polynomial passes zero.

    One that comes to the other side of zero by less than rounding touches zero.
    """
    n, j, least, before = pieces + 1, 0, 0.0, sample(at, l, -1, i)
    for k in range(n):
        g = sample(at, l, k, i)
        memory[line + k], memory[line + POINTS + k] = k / pieces, g
        least = max(least, ROUNDING * abs(g))
    while j + 1 < n:
        theta, old = place(memory, line, n, j, before), n
        if theta > 0.0:
            g = modelled(sample, at, l, i, pieces, theta)
            n = inserted(memory, line, n, j, theta, 0.0 if abs(g) < least else g)
        j = max(j - 1, 0) if n > old else j + 1
    return n


@helper
def straight_zeros(
    sample: Any, at: Any, l: int, i: int, pieces: int, direction: int,
    t: float, h: float, new: float, width: float, memory: Any, line: int, count: int, room: int,
) -> int:  # fmt: skip
    """straight_search of a component without dips."""
    ready = False
    for j in range(pieces):
        a, b, k = sample(at, l, j, i), sample(at, l, j + 1, i), j + 1
        after = b
        while after == 0.0 and k < pieces:  # where it is zero, the next sample tells
            k += 1
            after = sample(at, l, k, i)
        if not passes(a, after, direction):
            continue
        if not ready:
            for k in range(pieces + 1):
                memory[line + k] = sample(at, l, k, i)
            divided(memory, line, pieces)
            ready = True
        s = -1.0
        if b != 0.0:
            s, _ = zero_between(memory, line, pieces, float(j), float(j + 1), j + a / (a - b))
        theta = s / pieces if s > 0.0 else bisected(sample, at, l, i, pieces, j / pieces, (j + 1) / pieces, a, b, width)
        if count < room:
            memory[2 * count], memory[2 * count + 1] = t + theta * h if theta < 1.0 else new, float(i)
            count += 1
    return count


@helper
def straight_search(
    sample: Any, at: Any, l: int, i: int, pieces: int, direction: int,
    t: float, h: float, new: float, memory: Any, line: int, count: int, room: int,
) -> int:  # fmt: skip
    """The number of zeros in memory, after those of component i in a step of h from t to new are added. line: where memory has space."""
    passed, dips = places_in(sample, at, l, i, pieces, direction)
    n, width = pieces + 1, 2.2e-16 * (1.0 + abs(new) / h)
    if dips > 0:
        n = with_dips(sample, at, l, i, pieces, memory, line)
    elif passed == 0:
        return count
    if n == pieces + 1:
        return straight_zeros(sample, at, l, i, pieces, direction, t, h, new, width, memory, line, count, room)
    for j in range(n - 1):
        if crosses(memory, line, n, j, direction) and count < room:
            g_a, g_b = memory[line + POINTS + j], memory[line + POINTS + j + 1]
            theta = bisected(sample, at, l, i, pieces, memory[line + j], memory[line + j + 1], g_a, g_b, width)
            memory[2 * count], memory[2 * count + 1] = t + theta * h if theta < 1.0 else new, float(i)
            count += 1
    return count


@helper
def value(sample: Any, probe: Any, at: Any, l: int, i: int, pieces: int, theta: float, exact: bool) -> float:
    """Component i between its samples. exact: on the function itself."""
    if exact:
        return probe(at, l, theta, i)
    return modelled(sample, at, l, i, pieces, theta)


@helper
def root(
    sample: Any, probe: Any, at: Any, l: int, i: int, pieces: int, exact: bool,
    lo: float, hi: float, g_lo: float, g_hi: float, width: float, guessed: float, slope: float,
) -> float:  # fmt: skip
    """The theta between lo and hi at which component i has crossed zero: Illinois steps, every fourth one a bisection.

    The first trial is the guess, if there is one (not -1), the second a Newton step from its value and the slope there. A value that is
    zero but for rounding is bracketed at once. Ends when the bracket is narrower than width. A function that is zero before that too has
    come to zero to stay: that is when it came.
    """
    side, trial, theta, g = np.int64(0), np.int64(0), guessed, 0.0
    while hi - lo > width and g_hi != 0.0 and trial < 200:
        trial += 1
        if guessed < 0.0 or trial > 2:
            theta = guess(lo, hi, g_lo, g_hi, trial)
        elif trial == 2:
            near = abs(g) <= BESIDE * width * abs(slope)
            theta = (theta + BESIDE * width if g * g_lo > 0.0 else theta - BESIDE * width) if near else theta - g / slope
        if not lo < theta < hi:
            if trial > 2 or guessed < 0.0:
                break
            theta = guess(lo, hi, g_lo, g_hi, trial)
        g = value(sample, probe, at, l, i, pieces, theta, exact)
        lo, hi, g_lo, g_hi, side = narrowed(lo, hi, g_lo, g_hi, side, theta, g)
    if g_hi == 0.0 and (exact or trial == 0) and probe(at, l, max(lo, hi - BEFORE * width), i) == 0.0:
        while hi - lo > width and lo < lo + 0.5 * (hi - lo) < hi:
            theta = lo + 0.5 * (hi - lo)
            if probe(at, l, theta, i) == 0.0:
                hi = theta
            else:
                lo = theta
    return hi


@helper
def guess_between(memory: Any, line: int, n: int, j: int) -> tuple[float, float]:
    """(theta, slope) at the zero between samples j and j + 1 of the polynomial through all n, the ends of pieces; (-1, 0) if none."""
    first, free, pieces = line + POINTS, line + n, n - 1
    for k in range(n):
        memory[free + k] = memory[first + k]
    divided(memory, free, pieces)
    g_a, g_b = memory[first + j], memory[first + j + 1]
    s, slope = zero_between(memory, free, pieces, float(j), float(j + 1), j + g_a / (g_a - g_b))
    if s <= 0.0:
        return -1.0, 0.0
    return s / pieces, slope * pieces


@helper
def closer(sample: Any, probe: Any, at: Any, l: int, i: int, pieces: int, exact: bool, memory: Any, line: int, n: int) -> int:
    """The number of samples, after enough are added to show where component i passes zero.

    A polynomial that comes to the other side of zero by less than its error only touches zero. The last probe, at TESTED, gives that error.
    """
    least, before = 0.0, sample(at, l, np.int64(-1), i)
    if not exact:
        for k in range(n):
            least = max(least, ROUNDING * abs(memory[line + POINTS + k]))
        off = abs(modelled(sample, at, l, i, pieces, 1.0 - TESTED / pieces) - sample(at, l, pieces + 1, i))
        least = max(least, WORSE * off)
    j = np.int64(0)
    while j + 1 < n:
        theta, old = place(memory, line, n, j, before), n
        if theta > 0.0:
            g = value(sample, probe, at, l, i, pieces, theta, exact)
            n = inserted(memory, line, n, j, theta, 0.0 if abs(g) < least else g)
        if n > old:
            j = max(j - 1, np.int64(0))
        else:
            j += 1
    return n


@helper
def places_of_all(sample: Any, at: Any, l: int, facts: Any, size: int, pieces: int) -> tuple[int, int]:
    """The sums of places_in over all components."""
    zeros, dips = 0, 0
    for i in range(size):
        passed, more = places_in(sample, at, l, i, pieces, facts[i])
        zeros, dips = zeros + passed, dips + more
    return zeros, dips


@helper
def roughness(sample: Any, probe: Any, at: Any, l: int, facts: Any, size: int, pieces: int, memory: Any, line: int) -> float:
    """How far the polynomials that search() relies on are from the functions, in units of what zeros to FINE of a piece allow.

    0 where it relies on none. The error is that at TESTED. Where a polynomial passes zero, FINE of a piece times its slope is allowed.
    Where it only may, FINE of all its change is, and more if it stays away from zero by WORSE times the error.
    """
    worst, zeros, places = 0.0, 0, 0
    if size > TOGETHER_AT_MOST:
        zeros, places = places_of_all(sample, at, l, facts, size, pieces)
    if zeros + places <= EXACT:
        return worst
    probe(at, l, 1.0 - TESTED / pieces, np.int64(0))
    for i in range(size):
        passed, dips = places_in(sample, at, l, i, pieces, facts[i])
        if passed + dips == 0 or facts[size + i] == STRAIGHT:
            continue
        low, high, near, allowed = math.inf, -math.inf, math.inf, math.inf
        for k in range(pieces + 1):
            g = memory[line + POINTS + k] = sample(at, l, k, i)
            low, high, near = min(low, g), max(high, g), min(near, abs(g))
        for k in range(pieces):
            if passes(memory[line + POINTS + k], memory[line + POINTS + k + 1], facts[i]):
                _, slope = guess_between(memory, line, pieces + 1, k)
                allowed = min(allowed, FINE * abs(slope) / pieces)
        if passed == 0:
            allowed = max(FINE * (high - low), near / WORSE)
        off = abs(modelled(sample, at, l, i, pieces, 1.0 - TESTED / pieces) - sample(at, l, pieces + 1, i))
        if not off <= worst * allowed:
            worst = off / allowed
    return worst


@helper
def met(
    sample: Any, probe: Any, at: Any, l: int, facts: Any, size: int, pieces: int,
    t: float, h: float, new: float, stop: float, theta_stop: float, memory: Any, first: int, count: int, room: int,
) -> int:  # fmt: skip
    """The number of zeros in memory, after those beside a terminal one are put on the side of it where the functions have them.

    Two components may be zero at one time. Rounding puts their zeros a little before or after each other, and a run that goes on from
    `stop` sees its state alone. So what has passed zero in that state does so at `stop`, and what has not passed does so later.
    """
    probe(at, l, theta_stop, np.int64(-1))
    k, r, last = min(int(theta_stop * pieces), pieces - 1), first, count
    begun, end = t + k / pieces * h, t + (k + 1) / pieces * h if k + 1 < pieces else new
    for i in range(size):
        a, b, g = sample(at, l, k, i), sample(at, l, k + 1, i), sample(at, l, pieces + 1, i)
        up_to, beyond, one = 0, 0, r
        while r < last and memory[2 * r + 1] == i:
            if begun <= memory[2 * r] <= end:
                one = r if up_to + beyond == 0 else one
                if memory[2 * r] <= stop:
                    up_to += 1
                else:
                    beyond += 1
            r += 1
        if passes(a, g, facts[i]) and up_to == 0:
            if beyond > 0:
                memory[2 * one] = stop
            elif count < room:
                memory[2 * count], memory[2 * count + 1] = stop, float(i)
                count += 1
        elif facts[size + i] != TERMINAL and a * g > 0.0 and passes(a, b, facts[i]) and up_to == 1 and beyond == 0:
            memory[2 * one] = math.inf
    return count


@helper
def search(
    sample: Any, probe: Any, at: Any, l: int, facts: Any, size: int, pieces: int,
    t: float, h: float, new: float, memory: Any, first: int, room: int, marks: int,
) -> Any:  # fmt: skip
    """Searches a step of h from t to new for zeros of all components.

    Returns the number of zeros in memory, the time of the first terminal one or new, and its theta or -1.
    The zeros of this step begin at `first`; some of those beyond the terminal one are among them.
    """
    line, count, stop, theta_stop, width = 2 * room, first, new, -1.0, 2.2e-16 * (1.0 + abs(new) / h)
    few, fewer, tested = size <= TOGETHER_AT_MOST, size <= TOGETHER_AT_MOST, False
    if not few:
        zeros, places = places_of_all(sample, at, l, facts, size, pieces)
        if zeros + places == 0:
            return count, stop, theta_stop
        few, fewer = zeros <= EXACT, zeros + places <= EXACT
    for i in range(size):
        if (marks >> min(i, MARKS)) & 1 == 0:
            continue
        if facts[size + i] == STRAIGHT:
            count = straight_search(sample, at, l, i, pieces, facts[i], t, h, new, memory, line, count, room)
            continue
        passed, dips = places_in(sample, at, l, i, pieces, facts[i])
        if passed + dips == 0:
            continue
        n = pieces + 1
        for k in range(n):
            memory[line + k], memory[line + POINTS + k] = k / pieces, sample(at, l, k, i)
        exact = few if dips == 0 else fewer
        if dips > 0:
            if not exact and not tested:
                probe(at, l, 1.0 - TESTED / pieces, np.int64(0))
                tested = True
            n = closer(sample, probe, at, l, i, pieces, exact, memory, line, n)
        for j in range(n - 1):
            if theta_stop >= 0.0 and memory[line + j] >= theta_stop:
                break
            if crosses(memory, line, n, j, facts[i]):
                a, b, g_a, g_b = memory[line + j], memory[line + j + 1], memory[line + POINTS + j], memory[line + POINTS + j + 1]
                guessed, slope = -1.0, 0.0
                if n == pieces + 1 and g_b != 0.0:
                    guessed, slope = guess_between(memory, line, n, j)
                theta = root(sample, probe, at, l, i, pieces, exact, a, b, g_a, g_b, width, guessed, slope)
                tested = tested and not exact and g_b != 0.0
                time = t + theta * h if theta < 1.0 else new
                if count < room:
                    memory[2 * count], memory[2 * count + 1] = time, float(i)
                    count += 1
                if facts[size + i] == TERMINAL and (theta_stop < 0.0 or time < stop):
                    stop, theta_stop = time, theta
    if 0.0 <= theta_stop < 1.0 and size > 1:
        count = met(sample, probe, at, l, facts, size, pieces, t, h, new, stop, theta_stop, memory, first, count, room)
    return count, stop, theta_stop


@helper
def passed(sample: Any, at: Any, l: int, facts: Any, size: int, new: float, memory: Any, first: int, room: int) -> Any:
    """search() for a step of one piece within which nothing happens, an update of a map: what passes zero does so at its end, new."""
    count, theta_stop = first, -1.0
    for i in range(size):
        if passes(sample(at, l, np.int64(0), i), sample(at, l, np.int64(1), i), facts[i]):
            if count < room:
                memory[2 * count], memory[2 * count + 1] = new, float(i)
                count += 1
            if facts[size + i] == TERMINAL:
                theta_stop = 1.0
    return count, new, theta_stop


@helper
def keep(zeros: Any, count: int, stop: float, facts: Any, size: int, first: int, most: int, times: Any, places: Any, counts: Any) -> None:
    """Puts the zeros up to stop among those of a member, in the order of time: the first `most` of each event, and their number.

    times, places (events, most) and counts (events,) of the member begin at row first. facts (4, size): as odesim.stepper.search has
    them, then of each component which event it belongs to, and its number there.
    """
    for q in range(count):
        time, i = zeros[2 * q], int(zeros[2 * q + 1])
        if not time <= stop:
            continue
        row = first + facts[2 * size + i]
        k = min(counts[row], most)
        counts[row] += 1
        while k > 0 and times[row * most + k - 1] > time:
            if k < most:
                times[row * most + k], places[row * most + k] = times[row * most + k - 1], places[row * most + k - 1]
            k -= 1
        if k < most:
            times[row * most + k], places[row * most + k] = time, facts[3 * size + i]
