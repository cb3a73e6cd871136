"""Batches of a text: contexts of classes as counts, and stretches with the token after each place."""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.reference.data.corpus_classes import PairClasses, Windows, token_counts
from odesim.reference.protocols import Batch
from odesim.reference.training.randomness import BATCHES, generators

BLOCK = 64  # iterations drawn at once
MAX_VALIDATION = 1000  # windows of the validation that are looked at


class WindowNumbers:
    """Whole numbers (R, batch) below `end` for each iteration, the same whatever was asked for before."""

    def __init__(self, seeds: Sequence[int], end: int, batch: int) -> None:
        self.seeds, self.end, self.batch = tuple(seeds), end, batch
        self.block = -1
        self.drawn: Array = np.empty(0)

    def __call__(self, iteration: int) -> Array:
        block, at = divmod(iteration, BLOCK)
        if block != self.block:
            drawn = [rng.integers(0, self.end, (BLOCK, self.batch)) for rng in generators(self.seeds, BATCHES, block)]
            self.drawn, self.block = np.stack(drawn, axis=1), block
        found: Array = self.drawn[at]
        return found


class CorpusContexts:
    """A Stream of training windows, uniformly drawn: {"classes": (R, B), "counts": (R, B, W)} of the tokens support[n] (W,)."""

    def __init__(self, found: PairClasses, seeds: Sequence[int], batch: int, dtype: str) -> None:
        self.found, self.seeds, self.dtype = found, tuple(seeds), dtype
        self.draws = WindowNumbers(seeds, len(found.of), batch)
        held = token_counts(found.validation, found.validation_of, *found.P.shape)
        self.support, self.place = _support((found.P > 0) | (held > 0))

    def __call__(self, iteration: int) -> Batch:
        which = self.draws(iteration)
        return self.batch(self.found.windows, self.found.of.take(which), which)

    def validation(self) -> Batch:
        """Windows of the validation, up to MOST of them evenly spread, the same for each seed."""
        count = len(self.found.validation_of)
        which = np.tile(_spread_indices(count), (len(self.seeds), 1))
        return self.batch(self.found.validation, self.found.validation_of.take(which), which)

    def batch(self, windows: Windows, classes: Array, which: Array) -> Batch:
        """The batch of the windows `which` (R, B) of these classes (R, B)."""
        (R, B), W = which.shape, self.support.shape[1]
        place = self.place[classes[..., None], windows.contexts(which)]  # (R, B, T - 1)
        place += W * np.arange(R * B).reshape(R, B, 1)
        counts = np.bincount(place.ravel(), minlength=R * B * W).reshape(R, B, W)
        return {"classes": classes, "counts": counts.astype(self.dtype)}


class DrawnContexts:
    """A Stream like Contexts, of classes drawn from p (K,) and `tokens` tokens each, drawn from P (K, M), one without the others."""

    def __init__(self, found: PairClasses, support: Array, seeds: Sequence[int], batch: int, tokens: int, dtype: str) -> None:
        self.seeds, self.size, self.tokens, self.dtype = tuple(seeds), batch, tokens, dtype
        self.p = found.p
        P = np.take_along_axis(found.P, support, axis=1)
        self.P = P / P.sum(axis=1, keepdims=True)

    def __call__(self, iteration: int) -> Batch:
        classes, counts = zip(*(self.one_seed(rng) for rng in generators(self.seeds, BATCHES, iteration)), strict=True)
        return {"classes": np.stack(classes), "counts": np.stack(counts).astype(self.dtype)}

    def one_seed(self, rng: Generator) -> tuple[Array, Array]:
        """Classes (B,) and counts (B, W) of one seed."""
        classes = rng.choice(len(self.p), self.size, p=self.p)
        return classes, rng.multinomial(self.tokens, self.P[classes])


def population_batch(iteration: int) -> Batch:
    """The batch that stands for infinite contexts."""
    return {}


class Stretches:
    """A Stream of training windows, uniformly drawn: {"tokens": (R, B, T), "targets": (R, B, T)}, the token after each."""

    def __init__(self, windows: Windows, held: Windows, seeds: Sequence[int], batch: int) -> None:
        self.windows, self.held, self.seeds = windows, held, tuple(seeds)
        self.draws = WindowNumbers(seeds, len(windows.at), batch)

    def __call__(self, iteration: int) -> Batch:
        return self.batch(self.windows, self.draws(iteration))

    def validation(self) -> Batch:
        """Windows of the validation, up to MOST / 10 of them evenly spread, the same for each seed."""
        count = len(self.held.at)
        return self.batch(self.held, np.tile(_spread_indices(count, MAX_VALIDATION // 10), (len(self.seeds), 1)))

    def batch(self, windows: Windows, which: Array) -> Batch:
        """The batch of the windows `which` (R, B)."""
        at = windows.at.take(which)[..., None] - np.arange(windows.length - 1, -1, -1)  # (R, B, T)
        return {"tokens": windows.ids.take(at), "targets": windows.ids.take(at + 1)}


def _spread_indices(count: int, most: int = MAX_VALIDATION) -> Array:
    """Up to `most` whole numbers below count, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def _support(occurs: Array) -> tuple[Array, Array]:
    """Tokens (K, W) of each class that occur (K, M) or not, those that do first, and the place (K, M) of each token among them."""
    order = np.argsort(~occurs, axis=1, kind="stable")
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.broadcast_to(np.arange(occurs.shape[1]), occurs.shape), axis=1)
    return np.ascontiguousarray(order[:, : int(occurs.sum(axis=1).max())]), place
