"""Predictions of the next state of a Markov chain from the states so far by three strategies, and a model's distance from each.

uniform: 1 / k. unigram: (n_j + 1) / (n + k), from how often each state j came. bigram: (n_ij + 1) / (n_i + k), from how often j came
after the present state i. For rows from Dirichlet(1, ..., 1) and a uniform first state bigram is the exact posterior.
"""

import numpy as np

from odesim.base.arrays import Array, array_namespace

STRATEGIES = ("uniform", "unigram", "bigram")


def strategies(tokens: Array, k: int) -> Array:
    """Probabilities (3, ..., T, k) of the state after each of tokens (..., T), in the order of STRATEGIES."""
    seen = (tokens[..., None] == np.arange(k)).astype(float)  # (..., T, k)
    came = seen.cumsum(axis=-2)
    unigram = (came + 1) / (came.sum(axis=-1, keepdims=True) + k)
    after = np.zeros((*seen.shape, k))
    after[..., 1:, :, :] = seen[..., :-1, :, None] * seen[..., 1:, None, :]
    pairs = after.cumsum(axis=-3)  # (..., T, k, k)
    of_present = (seen[..., None] * pairs).sum(axis=-2)  # (..., T, k)
    bigram = (of_present + 1) / (of_present.sum(axis=-1, keepdims=True) + k)
    return np.stack([np.full(seen.shape, 1 / k), unigram, bigram])


def losses(predicted: Array, targets: Array) -> Array:
    """Mean -ln p[target] (..., R) over samples and positions, for predicted (..., R, B, T, k) and targets (R, B, T)."""
    p = (predicted * (targets[..., None] == np.arange(predicted.shape[-1]))).sum(axis=-1)  # (..., R, B, T)
    found: Array = -np.log(p).mean(axis=(-2, -1))
    return found


def divergences(predicted: Array, logits: Array) -> Array:
    """Kullback-Leibler divergences (R, S) of the model from predictions (S, R, B, T, k), means over samples and positions.

    logits (R, B, T, k): of the model.
    """
    xp = array_namespace(logits)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - xp.log(xp.exp(shifted).sum(axis=-1, keepdims=True))  # (R, B, T, k)
    right = xp.asarray(predicted, dtype=logits.dtype)
    each = (right * (xp.log(right) - log_p)).sum(axis=-1)  # (S, R, B, T)
    means: Array = each.mean(axis=(-2, -1)).swapaxes(0, 1)
    return means
