"""Dyck sequences of bounded depth: brackets of k types that close in the order in which they opened, last first.

Token 0 starts a sequence. An opening bracket of type t that leads to depth d = 1, ..., D is token 1 + (d - 1) k + t. A closing one that
leads from depth d to d - 1 is token 1 + D k + (d - 1) k + t. At depth 0 a bracket opens, at depth D it closes, between with
probability 1/2. Targets are the next brackets: t for an opening one, k + t for a closing one.
"""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.lab.training.protocols import Batch
from odesim.lab.training.randomness import BATCHES, TESTS, generators


def vocabulary(k: int, D: int) -> int:
    """The number of tokens."""
    return 1 + 2 * k * D


def draw_brackets(rng: Generator, count: int, k: int, D: int, length: int) -> tuple[Array, Array]:
    """Types and depths (count, length): of brackets that open, the depth that they lead to; of closing ones minus the depth they leave."""
    rows = np.arange(count)
    stack, depth = np.zeros((count, D + 1), np.int64), np.zeros(count, np.int64)
    types, depths = np.empty((length, count), np.int64), np.empty((length, count), np.int64)
    opens, fresh = rng.random((length, count)) < 0.5, rng.integers(k, size=(length, count))
    for t in range(length):
        up = np.where(depth == 0, True, np.where(depth == D, False, opens[t]))
        types[t] = np.where(up, fresh[t], stack[rows, depth])
        depths[t] = np.where(up, depth + 1, -depth)
        depth = depth + np.where(up, 1, -1)
        stack[rows[up], depth[up]] = fresh[t][up]
    return types.T.copy(), depths.T.copy()


def last_unmatched(depths: Array) -> Array:
    """The place (..., length) of the last bracket that is open after each of depths (..., length); -1 where none is."""
    where = np.full((*depths.shape[:-1], int(np.abs(depths).max()) + 1), -1)
    found, rows = np.empty_like(depths), np.ogrid[tuple(slice(n) for n in depths.shape[:-1])]
    for t in range(depths.shape[-1]):
        d = depths[..., t]
        here = np.where(d > 0, d, -d - 1)  # the depth that it leads to
        where[(*rows, here)] = np.where(d > 0, t, where[(*rows, here)])
        found[..., t] = np.where(here > 0, where[(*rows, here)], -1)
    return found


class DyckSequences:
    """A Stream {"tokens": (R, B, T), "targets": (R, B, T)}: new sequences in every iteration; T brackets, the last only as a target."""

    def __init__(self, seeds: Sequence[int], k: int, D: int, length: int, batch: int) -> None:
        self.seeds, self.k, self.D, self.length, self.batch = tuple(seeds), k, D, length, batch

    def __call__(self, iteration: int) -> Batch:
        return self.drawn(self.batch, self.length, BATCHES, iteration)

    def test(self, count: int, length: int) -> Batch:
        """Sequences that are not trained on."""
        return self.drawn(count, length, TESTS)

    def drawn(self, count: int, length: int, purpose: int, place: int = 0) -> Batch:
        """A batch of `count` sequences for each seed."""
        found = [draw_brackets(rng, count, self.k, self.D, length) for rng in generators(self.seeds, purpose, place)]
        types, depths = (np.stack(arrays) for arrays in zip(*found, strict=True))
        closing = depths < 0
        tokens = 1 + closing * self.D * self.k + (np.abs(depths) - 1) * self.k + types
        start = np.zeros((*tokens.shape[:-1], 1), tokens.dtype)
        return {"tokens": np.concatenate([start, tokens[..., :-1]], axis=-1), "targets": types + closing * self.k}
