"""Sequences of Markov chains whose rows of transition probabilities are drawn from Dirichlet(1, ..., 1), a chain for each sequence."""

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.lab.training.protocols import Batch

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


def draw_predictions(rng: Generator, count: int, *, k: int, length: int, first: str) -> Batch:
    """Sequences as tokens (count, length), and as targets (count, length) the states after them."""
    states = draw_sequences(rng, count, k, length + 1, first)
    return {"tokens": states[:, :-1], "targets": states[:, 1:]}
