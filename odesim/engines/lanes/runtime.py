"""Zeros of event functions in one lane's step: the search of odesim.solve.explicit.events on values that lie in the rows of S.

A loop over lanes (events.py) has left the values at the ends of the pieces; what follows is rare, and done lane by lane. Values of
component i at the end of piece k stand in S[(base + k*size + i)*width + l], at the start of the step in k = 0. facts (4, size) says of
each component: its direction, whether it is terminal, which event it belongs to, and its number there.
"""

from typing import Any

import numpy as np

from odesim.solve.step.roots import guess, helper, narrowed, passes

EXACT = 8


@helper
def modelled(S: Any, first: int, gap: int, pieces: int, theta: float) -> float:
    """The polynomial through S[first + k*gap], k = 0..pieces, at theta, by the barycentric formula."""
    weight, above, below = 1.0, 0.0, 0.0
    for k in range(pieces + 1):
        part = weight / (theta - k / pieces)
        above += part * S[first + k * gap]
        below += part
        weight *= (k - pieces) / (k + 1)
    return above / below


@helper
def root(probe: Any, S: Any, l: int, i: int, first: int, gap: int, pieces: int, piece: int, width: float, exact: bool) -> float:
    """The theta in a piece at which component i has crossed zero: Illinois steps, every fourth one a bisection.

    Ends when the bracket is narrower than width. exact: on the event functions themselves, by probe(S, l, theta, i).
    """
    lo, hi = piece / pieces, (piece + 1) / pieces
    g_lo, g_hi = S[first + piece * gap], S[first + (piece + 1) * gap]
    side = 0
    trial = 0
    while hi - lo > width and g_hi != 0.0 and trial < 200:
        trial += 1
        theta = guess(lo, hi, g_lo, g_hi, trial)
        if not lo < theta < hi:
            break
        g = probe(S, l, theta, i) if exact else modelled(S, first, gap, pieces, theta)
        lo, hi, g_lo, g_hi, side = narrowed(lo, hi, g_lo, g_hi, side, theta, g)
    return hi


@helper
def search(
    probe: Any,
    S: Any,
    l: int,
    width: int,
    base: int,
    size: int,
    pieces: int,
    t: float,
    h: float,
    new: float,
    facts: Any,
    found: Any,
) -> Any:
    """(how many zeros, the time of the first terminal one or new, its theta or -1) of lane l's step of h from t to new.

    found holds time and component of each, of all that lie in the pieces up to that of the first terminal one. Up to EXACT zeros in a
    step are searched on the event functions, more of them on the polynomials through the values at the ends of the pieces.
    """
    zeros = np.int64(0)
    gap = size * width
    for piece in range(pieces):
        for i in range(size):
            at = (base + i) * width + l + piece * gap
            if passes(S[at], S[at + gap], facts[i]):
                zeros += 1
    count, stop, theta_stop = np.int64(0), new, -1.0
    narrow = 2.2e-16 * (1.0 + abs(new) / h)
    for piece in range(pieces):
        for i in range(size):
            first = (base + i) * width + l
            if passes(S[first + piece * gap], S[first + (piece + 1) * gap], facts[i]):
                theta = root(probe, S, l, i, first, gap, pieces, piece, narrow, zeros <= EXACT)
                time = t + theta * h if theta < 1.0 else new
                found[2 * count], found[2 * count + 1] = time, float(i)
                count += 1
                if facts[size + i] != 0 and (theta_stop < 0.0 or time < stop):
                    stop, theta_stop = time, theta
        if theta_stop >= 0.0:
            break
    return count, stop, theta_stop


@helper
def keep(found: Any, count: int, stop: float, facts: Any, size: int, first: int, most: int, times: Any, places: Any, counts: Any) -> None:
    """Puts the zeros up to stop among those of a member, in the order of time: the first `most` of each event, and how many there were.

    times, places (events, most) and counts (events,) of the member begin at row first.
    """
    for q in range(count):
        time, i = found[2 * q], int(found[2 * q + 1])
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
