"""Streams of batches from a text: contexts of classes as token counts, and stretches of tokens with their next tokens."""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.lab.tasks.corpus import PairClasses, Windows, token_counts
from odesim.lab.training.protocols import Batch
from odesim.lab.training.randomness import BATCHES, generators

BLOCK = 64  # iterations drawn at once
MAX_VALIDATION = 1000  # largest number of validation windows in a batch


class WindowNumbers:
    """Random whole numbers (R, batch) below `end` for each iteration, independent of earlier calls."""

    def __init__(self, seeds: Sequence[int], end: int, batch: int) -> None:
        self.seeds, self.end, self.batch = tuple(seeds), end, batch
        self.block = -1
        self.drawn: Array = np.empty(0)

    def __call__(self, iteration: int) -> Array:
        block, row = divmod(iteration, BLOCK)
        if block != self.block:
            drawn = [rng.integers(0, self.end, (BLOCK, self.batch)) for rng in generators(self.seeds, BATCHES, block)]
            self.drawn, self.block = np.stack(drawn, axis=1), block
        numbers: Array = self.drawn[row]
        return numbers


class CorpusContexts:
    """A Stream of random training windows: {"classes": (R, B), "counts": (R, B, W)}, counts of the tokens support[n] (W,)."""

    def __init__(self, pairs: PairClasses, seeds: Sequence[int], batch: int, dtype: str) -> None:
        self.pairs, self.seeds, self.dtype = pairs, tuple(seeds), dtype
        self.draws = WindowNumbers(seeds, len(pairs.classes), batch)
        validation_counts = token_counts(pairs.validation, pairs.validation_classes, *pairs.P.shape)
        self.support, self.place = _support((pairs.P > 0) | (validation_counts > 0))

    def __call__(self, iteration: int) -> Batch:
        which = self.draws(iteration)
        return self.batch(self.pairs.windows, self.pairs.classes.take(which), which)

    def validation(self) -> Batch:
        """A batch of up to MAX_VALIDATION validation windows, spread evenly, the same for each seed."""
        count = len(self.pairs.validation_classes)
        which = np.tile(_spread_indices(count), (len(self.seeds), 1))
        return self.batch(self.pairs.validation, self.pairs.validation_classes.take(which), which)

    def batch(self, windows: Windows, classes: Array, which: Array) -> Batch:
        """The batch of windows number `which` (R, B) with these classes (R, B)."""
        (R, B), W = which.shape, self.support.shape[1]
        index = self.place[classes[..., None], windows.contexts(which)]  # (R, B, T - 1)
        index += W * np.arange(R * B).reshape(R, B, 1)
        counts = np.bincount(index.ravel(), minlength=R * B * W).reshape(R, B, W)
        return {"classes": classes, "counts": counts.astype(self.dtype)}


class DrawnContexts:
    """A Stream like CorpusContexts, with classes drawn from p (K,) and `tokens` independent tokens each, drawn from P (K, M)."""

    def __init__(self, pairs: PairClasses, support: Array, seeds: Sequence[int], batch: int, tokens: int, dtype: str) -> None:
        self.seeds, self.size, self.tokens, self.dtype = tuple(seeds), batch, tokens, dtype
        self.p = pairs.p
        P = np.take_along_axis(pairs.P, support, axis=1)
        self.P = P / P.sum(axis=1, keepdims=True)

    def __call__(self, iteration: int) -> Batch:
        classes, counts = zip(*(self.one_seed(rng) for rng in generators(self.seeds, BATCHES, iteration)), strict=True)
        return {"classes": np.stack(classes), "counts": np.stack(counts).astype(self.dtype)}

    def one_seed(self, rng: Generator) -> tuple[Array, Array]:
        """Classes (B,) and counts (B, W) for one seed."""
        classes = rng.choice(len(self.p), self.size, p=self.p)
        return classes, rng.multinomial(self.tokens, self.P[classes])


def population_batch(iteration: int) -> Batch:
    """The empty batch: infinite contexts, so that the gradient is that of the population."""
    return {}


class Stretches:
    """A Stream of random training windows: {"tokens": (R, B, T), "targets": (R, B, T)}, the next token of each."""

    def __init__(self, windows: Windows, validation_windows: Windows, seeds: Sequence[int], batch: int) -> None:
        self.windows, self.validation_windows, self.seeds = windows, validation_windows, tuple(seeds)
        self.draws = WindowNumbers(seeds, len(windows.positions), batch)

    def __call__(self, iteration: int) -> Batch:
        return self.batch(self.windows, self.draws(iteration))

    def validation(self) -> Batch:
        """A batch of up to MAX_VALIDATION / 10 validation windows, spread evenly, the same for each seed."""
        count = len(self.validation_windows.positions)
        return self.batch(self.validation_windows, np.tile(_spread_indices(count, MAX_VALIDATION // 10), (len(self.seeds), 1)))

    def batch(self, windows: Windows, which: Array) -> Batch:
        """The batch of windows number `which` (R, B)."""
        positions = windows.positions.take(which)[..., None] - np.arange(windows.length - 1, -1, -1)  # (R, B, T)
        return {"tokens": windows.ids.take(positions), "targets": windows.ids.take(positions + 1)}


def _spread_indices(count: int, most: int = MAX_VALIDATION) -> Array:
    """Up to `most` whole numbers below count, spread evenly."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def _support(occurs: Array) -> tuple[Array, Array]:
    """(tokens (K, W), positions (K, M)): tokens of each class, those that occur (K, M) first, and the position of each token there."""
    order = np.argsort(~occurs, axis=1, kind="stable")
    positions = np.empty_like(order)
    np.put_along_axis(positions, order, np.broadcast_to(np.arange(occurs.shape[1]), occurs.shape), axis=1)
    return np.ascontiguousarray(order[:, : int(occurs.sum(axis=1).max())]), positions
