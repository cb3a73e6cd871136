"""Batches of the classes of hierarchies: each class once, weighted by how often its label was drawn."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from odesim.base.arrays import Array
from odesim.lab.training.protocols import Batch
from odesim.lab.training.randomness import BATCHES, TESTS, generators

BLOCK = 64  # iterations whose labels are drawn at once
TEST_LABELS = 1280


class LabelCounts(Protocol):
    """How often each class was drawn, of so many labels."""

    def __call__(self, iteration: int) -> Array:
        """Counts (R, C) of the labels of a batch, whatever was asked for before."""

    def test(self) -> Array:
        """Counts (R, C) of TEST_LABELS labels."""


class NumpyLabels:
    """LabelCounts of numpy's generators: uniform labels."""

    def __init__(self, seeds: Sequence[int], classes: int, batch: int) -> None:
        self.seeds, self.classes, self.batch, self.block = tuple(seeds), classes, batch, -1
        self.counts: Array = np.empty(0)

    def __call__(self, iteration: int) -> Array:
        block, row = divmod(iteration, BLOCK)
        if block != self.block:
            self.counts = np.stack([self.draw(rng, self.batch, BLOCK) for rng in generators(self.seeds, BATCHES, block)], axis=1)
            self.block = block
        return self.counts[row]

    def test(self) -> Array:
        return np.stack([self.draw(rng, TEST_LABELS, 1)[0] for rng in generators(self.seeds, TESTS)])

    def draw(self, rng: np.random.Generator, labels: int, times: int) -> Array:
        """Counts (times, C) of classes among `labels` uniform random labels."""
        return rng.multinomial(labels, np.full(self.classes, 1 / self.classes), times)


class EveryClass:
    """A Stream with each class once: tokens (R, C, T), log_weight (R, C, T), and as weight (R, C) its number of labels in the batch."""

    def __init__(self, tokens: Array, log_weight: Array, labels: LabelCounts) -> None:
        targets = np.tile(np.arange(tokens.shape[1]), (len(tokens), 1))
        self.fixed = {"tokens": tokens, "targets": targets, "log_weight": log_weight}
        self.labels = labels

    def __call__(self, iteration: int) -> Batch:
        return self.weighted_batch(self.labels(iteration))

    def test(self) -> Batch:
        """The batch of TEST_LABELS labels for tests."""
        return self.weighted_batch(self.labels.test())

    def weighted_batch(self, counts: Array) -> Batch:
        """The batch in which classes occur counts (R, C) times."""
        return {**self.fixed, "weight": counts.astype(self.fixed["log_weight"].dtype)}
