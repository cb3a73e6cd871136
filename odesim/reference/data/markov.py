"""Sequences of Markov chains whose rows of transition probabilities are drawn from Dirichlet(1, ..., 1), a chain for each sequence."""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.reference.protocols import Batch
from odesim.reference.training.randomness import BATCHES, DATA, TESTS, generators

FIRSTS = ("stationary", "uniform")


def draw_chains(rng: Generator, count: int, k: int) -> Array:
    """Transition probabilities (count, k, k): every row is uniform on the simplex."""
    P = rng.standard_exponential((count, k, k))
    P /= P.sum(axis=2, keepdims=True)
    return P


def stationary(P: Array) -> Array:
    """The stationary probabilities (n, k) of chains P (n, k, k): pi (1 - P + ones) = ones."""
    n, k, _ = P.shape
    pi: Array = np.linalg.solve((np.eye(k) - P + 1).swapaxes(1, 2), np.ones((n, k, 1)))[..., 0]
    return pi


def draw_sequences(rng: Generator, count: int, k: int, length: int, first: str) -> Array:
    """Sequences (count, length) of states, each of a chain of its own. first: the law of the first state, one of FIRSTS."""
    P = draw_chains(rng, count, k)
    start = stationary(P) if first == "stationary" else np.full((count, k), 1 / k)
    below, start_below = P.cumsum(axis=2)[..., :-1], start.cumsum(axis=1)[:, :-1]  # the last bound is 1
    u = rng.random((length, count))
    states, rows = np.empty((length, count), np.int64), np.arange(count)
    states[0] = (u[0][:, None] >= start_below).sum(axis=1)
    for t in range(1, length):
        states[t] = (u[t][:, None] >= below[rows, states[t - 1]]).sum(axis=1)
    return states.T.copy()


class MarkovSequences:
    """A Stream {"tokens": (R, B, T), "targets": (R, B, T)}, the targets the next tokens: new sequences, or always the same `samples`."""

    def __init__(self, seeds: Sequence[int], k: int, length: int, first: str, *, batch: int, samples: int) -> None:
        self.seeds, self.k, self.length, self.first, self.size = tuple(seeds), k, length, first, batch
        self.fixed = self.drawn(samples, DATA) if samples else None

    def __call__(self, iteration: int) -> Batch:
        return self.drawn(self.size, BATCHES, iteration) if self.fixed is None else self.fixed

    def test(self, count: int) -> Batch:
        """Sequences that are not trained on."""
        return self.drawn(count, TESTS)

    def drawn(self, count: int, purpose: int, place: int = 0) -> Batch:
        """A batch of `count` sequences for each seed."""
        states = np.stack(
            [draw_sequences(rng, count, self.k, self.length + 1, self.first) for rng in generators(self.seeds, purpose, place)]
        )
        return {"tokens": states[..., :-1].copy(), "targets": states[..., 1:].copy()}
