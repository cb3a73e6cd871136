"""Random contexts of a class: tokens drawn from its distribution, stored as counts."""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.lab.training.protocols import Batch
from odesim.lab.training.randomness import BATCHES, generators

BLOCK = 64  # iterations drawn at once
BUCKETS = 2**16


class TokenCounts:
    """Draws tokens from P (W,) and counts them. 16 random bits for each token choose one of 2^16 buckets.

    Each token has floor(P * 2^16) buckets. The remaining buckets mean a second draw, from the rounding errors of the probabilities.
    The distribution is therefore P, up to rounding of P * 2^16 and of a uniform number.
    """

    def __init__(self, P: Array) -> None:
        scaled = P / P.sum() * BUCKETS
        buckets = np.floor(scaled)
        self.tokens = len(P)
        self.bucket = np.repeat(
            np.arange(self.tokens + 1, dtype=np.min_scalar_type(self.tokens)), np.append(buckets, BUCKETS - buckets.sum()).astype(int)
        )
        rest = np.cumsum(scaled - buckets)
        self.rest = rest / rest[-1] if rest[-1] > 0 else rest

    def counts(self, rng: Generator, contexts: int, length: int) -> Array:
        """Counts (contexts, W) of tokens in contexts of `length` tokens each."""
        bits = rng.integers(0, 2**64, size=-(-contexts * length // 4), dtype=np.uint64).view(np.uint16)[: contexts * length]
        # with other integers than intp numpy is ten times slower
        chosen = self.bucket.take(bits.astype(np.intp)).reshape(contexts, length).astype(np.intp)
        chosen += (self.tokens + 1) * np.arange(contexts)[:, None]
        table = np.bincount(chosen.ravel(), minlength=contexts * (self.tokens + 1)).reshape(contexts, self.tokens + 1)
        redrawn = np.repeat(np.arange(contexts), table[:, -1])
        np.add.at(table, (redrawn, np.searchsorted(self.rest, rng.random(len(redrawn)), side="right")), 1)
        return table[:, :-1]


class ScanSnapContexts:
    """A Stream {"classes": (R, batch), "counts": (R, batch, W)}: uniform classes with `length` i.i.d. tokens each from P (K, W)."""

    def __init__(self, seeds: Sequence[int], P: Array, *, batch: int, length: int, dtype: str) -> None:
        self.seeds, self.batch, self.length, self.dtype = tuple(seeds), batch, length, dtype
        self.draws = [TokenCounts(row) for row in P]
        self.small = np.min_scalar_type(length)
        self.block = -1
        self.drawn: tuple[Array, Array] = (np.empty(0), np.empty(0))

    def __call__(self, iteration: int) -> Batch:
        block, row = divmod(iteration, BLOCK)
        if block != self.block:
            draws = [self.one_seed(rng) for rng in generators(self.seeds, BATCHES, block)]
            self.drawn = np.stack([classes for classes, _ in draws], axis=1), np.stack([counts for _, counts in draws], axis=1)
            self.block = block
        classes, counts = self.drawn
        return {"classes": classes[row], "counts": counts[row].astype(self.dtype)}

    def one_seed(self, rng: Generator) -> tuple[Array, Array]:
        """Classes (BLOCK, batch) and counts (BLOCK, batch, W) for one seed."""
        classes = rng.integers(0, len(self.draws), size=(BLOCK, self.batch))
        counts = np.empty((classes.size, self.draws[0].tokens), self.small)
        for n, draws in enumerate(self.draws):
            (of_class,) = np.nonzero(classes.ravel() == n)
            # a few contexts at a time, so that the table stays in the cache
            for part in np.array_split(of_class, -(-of_class.size * self.length // BUCKETS)) if of_class.size else ():
                counts[part] = draws.counts(rng, len(part), self.length)
        return classes, counts.reshape(*classes.shape, -1)
