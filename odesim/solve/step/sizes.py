"""The memory that a search for zeros in a step needs."""

FEW = 64
"""So many components are always searched on the functions themselves, which are computed together."""
EXACT = 8
"""So many zeros, and dips, of a step are so of more components; else the polynomials through the samples are searched, which for a function
linear in the state are the interpolant itself."""
POINTS = 96
"""The most samples of a function in one step."""


def most_zeros(events: int, pieces: int) -> int:
    """The number of zeros for which a step has room, all events together."""
    return (events + min(events, FEW)) * pieces + 4 * EXACT


def found_size(room: int) -> int:
    """The length of the array `found` (odesim.solve.step.search)."""
    return 2 * (room + POINTS)
