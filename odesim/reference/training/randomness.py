"""Random generators by seed, purpose and block of iterations, so that any batch can be drawn without those before it."""

from collections.abc import Sequence

from numpy.random import Generator, default_rng

INITIAL, BATCHES, TESTS, DATA = 0, 1, 2, 3  # purposes
RNGS = ("numpy", "official")  # the setting rng: numpy's generators, or those of a paper's code, so that a seed is its run


def generators(seeds: Sequence[int], purpose: int, place: int = 0) -> list[Generator]:
    """A generator for each seed. Different purposes and places (blocks of iterations) have independent streams."""
    return [default_rng([seed, purpose, place]) for seed in seeds]
