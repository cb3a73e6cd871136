"""Zeros of a component that is the polynomial through its samples: those of the polynomial, and no other evaluation of the function."""

from typing import Any

from odesim.solve.step.polynomial import divided, zero_between
from odesim.solve.step.roots import guess, helper, narrowed, passes
from odesim.solve.step.samples import crosses, inserted, place, places_in
from odesim.solve.step.sizes import POINTS

ROUNDING = 1e-15
"""Of the largest sample: how far a polynomial through them is off at least."""


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
def with_dips(sample: Any, at: Any, l: int, i: int, pieces: int, found: Any, line: int) -> int:
    """The number of samples in found from `line` on, after enough are added to show where the polynomial passes zero.

    One that comes to the other side of zero by less than rounding touches zero.
    """
    n, j, least, before = pieces + 1, 0, 0.0, sample(at, l, -1, i)
    for k in range(n):
        g = sample(at, l, k, i)
        found[line + k], found[line + POINTS + k] = k / pieces, g
        least = max(least, ROUNDING * abs(g))
    while j + 1 < n:
        theta, old = place(found, line, n, j, before), n
        if theta > 0.0:
            g = modelled(sample, at, l, i, pieces, theta)
            n = inserted(found, line, n, j, theta, 0.0 if abs(g) < least else g)
        j = max(j - 1, 0) if n > old else j + 1
    return n


@helper
def straight_zeros(
    sample: Any, at: Any, l: int, i: int, pieces: int, direction: int,
    t: float, h: float, new: float, width: float, found: Any, line: int, count: int, room: int,
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
                found[line + k] = sample(at, l, k, i)
            divided(found, line, pieces)
            ready = True
        s = -1.0
        if b != 0.0:
            s, _ = zero_between(found, line, pieces, float(j), float(j + 1), j + a / (a - b))
        theta = s / pieces if s > 0.0 else bisected(sample, at, l, i, pieces, j / pieces, (j + 1) / pieces, a, b, width)
        if count < room:
            found[2 * count], found[2 * count + 1] = t + theta * h if theta < 1.0 else new, float(i)
            count += 1
    return count


@helper
def straight_search(
    sample: Any, at: Any, l: int, i: int, pieces: int, direction: int,
    t: float, h: float, new: float, found: Any, line: int, count: int, room: int,
) -> int:  # fmt: skip
    """The number of zeros in found, after those of component i in a step of h from t to new are added. line: where found has space."""
    passed, dips = places_in(sample, at, l, i, pieces, direction)
    n, width = pieces + 1, 2.2e-16 * (1.0 + abs(new) / h)
    if dips > 0:
        n = with_dips(sample, at, l, i, pieces, found, line)
    elif passed == 0:
        return count
    if n == pieces + 1:
        return straight_zeros(sample, at, l, i, pieces, direction, t, h, new, width, found, line, count, room)
    for j in range(n - 1):
        if crosses(found, line, n, j, direction) and count < room:
            g_a, g_b = found[line + POINTS + j], found[line + POINTS + j + 1]
            theta = bisected(sample, at, l, i, pieces, found[line + j], found[line + j + 1], g_a, g_b, width)
            found[2 * count], found[2 * count + 1] = t + theta * h if theta < 1.0 else new, float(i)
            count += 1
    return count
