"""Numbers of a search for zeros in a step: what it needs in memory, and the kinds of components."""

from collections.abc import Sequence

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
