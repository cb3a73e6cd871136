"""The polynomial through a function's values at the ends of all pieces of a step; the search for a zero begins at its zero.

It is in Newton's form in s, which counts pieces: p(s) = c[0] + c[1] s + c[2] s (s - 1) + ...
For an event that is linear in the state, on an interpolant of no higher degree, p is the function itself but for rounding.
"""

from typing import Any

from odesim.solve.step.roots import helper
from odesim.solve.step.sizes import SETTLED

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
