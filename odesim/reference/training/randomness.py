"""Random numbers by seed, purpose and place: any batch can be drawn again without what came before it."""

from collections.abc import Sequence

from numpy.random import Generator, default_rng

INITIAL, BATCHES, TESTS, DATA = 0, 1, 2, 3  # purposes


def generators(seeds: Sequence[int], purpose: int, place: int = 0) -> list[Generator]:
    """One generator a seed; purpose and place (a block of iterations) make independent streams."""
    return [default_rng([seed, purpose, place]) for seed in seeds]
