"""A stream of samples that are drawn from a law: new in every iteration, or always the same."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import Generator

from odesim.lab.training.protocols import Batch
from odesim.lab.training.randomness import BATCHES, DATA, TESTS, generators

Draw = Callable[[Generator, int], Batch]
"""(generator, count) -> arrays (count, ...) by name."""


class Drawn:
    """A Stream of arrays (R, batch, ...) by name: new ones in every iteration, or always the same `samples`. draw: of one seed."""

    def __init__(self, seeds: Sequence[int], draw: Draw, *, batch: int, samples: int) -> None:
        self.seeds, self.draw, self.size = tuple(seeds), draw, batch
        self.fixed = self.drawn(samples, DATA) if samples else None

    def __call__(self, iteration: int) -> Batch:
        return self.drawn(self.size, BATCHES, iteration) if self.fixed is None else self.fixed

    def test(self, count: int) -> Batch:
        """Samples that are not trained on."""
        return self.drawn(count, TESTS)

    def drawn(self, count: int, purpose: int, place: int = 0) -> Batch:
        """A batch of `count` samples for each seed."""
        found = [self.draw(rng, count) for rng in generators(self.seeds, purpose, place)]
        return {name: np.stack([one[name] for one in found]) for name in found[0]}
