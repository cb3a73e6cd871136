"""Dips: places between two samples of one sign at which a function may pass zero and come back.

A function that bends away from zero lies between its chord and the continuations of the chords beside it. Where these do not reach zero
it does not, and one that bends towards zero lies beyond its chord. Where both reach zero, their meeting point is where to look; for two
straight arms, as of Max, that is the tip itself. So of samples at equal distances those that hint at a dip fall to less than half, and
rise from less than half again. Samples must show it: of a pulse that is flat everywhere else, as exp(-(y/width)^2) - 1/2 from afar,
they show nothing.
"""

import math

from odesim.solve.step.roots import helper
from odesim.solve.step.sizes import NEAR

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
