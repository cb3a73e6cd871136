"""Sequences of different tokens with a query that repeats one of them: the answer is the token after it."""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.reference.protocols import Batch
from odesim.reference.training.randomness import BATCHES, DATA, TESTS, generators


def draw_repeats(rng: Generator, count: int, N: int, V: int) -> tuple[Array, Array, Array]:
    """Tokens (count, N + 1), the last the query, answers (count,), and the places (count,) of the answers, 1 to N - 1."""
    tokens = np.argsort(rng.random((count, V)), axis=1)[:, :N]
    places, rows = rng.integers(1, N, size=count), np.arange(count)
    return np.column_stack([tokens, tokens[rows, places - 1]]), tokens[rows, places], places


class Repeats:
    """A Stream {"tokens": (R, B, N + 1), "targets": (R, B), "answer": (R, B)}: new sequences, or always the same `samples`."""

    def __init__(self, seeds: Sequence[int], N: int, V: int, *, batch: int, samples: int) -> None:
        self.seeds, self.N, self.V, self.size = tuple(seeds), N, V, batch
        self.fixed = self.drawn(samples, DATA) if samples else None

    def __call__(self, iteration: int) -> Batch:
        return self.drawn(self.size, BATCHES, iteration) if self.fixed is None else self.fixed

    def test(self, count: int) -> Batch:
        """Sequences that are not trained on."""
        return self.drawn(count, TESTS)

    def drawn(self, count: int, purpose: int, place: int = 0) -> Batch:
        """A batch of `count` sequences for each seed."""
        found = [draw_repeats(rng, count, self.N, self.V) for rng in generators(self.seeds, purpose, place)]
        return dict(zip(("tokens", "targets", "answer"), (np.stack(arrays) for arrays in zip(*found, strict=True)), strict=True))
