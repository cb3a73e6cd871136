"""Right-hand sides of patterns of attention by hand: all contexts one by one, backwards through a whole head."""

from itertools import product

import numpy as np

from tests.support.truth.arrays import Arrays


def slopes(contexts: list[tuple[list[int], int]], Z: np.ndarray, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Minus the gradients by Z (V,) and W (V, K) of the mean cross-entropy of (tokens, label), one token at a time."""
    dZ, dW = np.zeros_like(Z), np.zeros_like(W)
    for tokens, label in contexts:
        odds = [np.exp(Z[x]) for x in tokens]
        alpha = [odd / sum(odds) for odd in odds]
        f = sum(a * W[x] for a, x in zip(alpha, tokens, strict=True))
        lack = -np.exp(f) / np.exp(f).sum()
        lack[label] += 1
        for a, x in zip(alpha, tokens, strict=True):
            dW[x] += a * lack / len(contexts)
            dZ[x] += a * lack @ (W[x] - f) / len(contexts)
    return dZ, dW


def skip_gram(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Keys 0..K-1, noise K..K+N-1, every context."""
    K, N, n = int(q["K"]), int(q["N"]), int(q["n"])
    contexts = [([key, *noise], key) for key in range(K) for noise in product(range(K, K + N), repeat=n)]
    dZ, dW = slopes(contexts, np.repeat([float(y["z"]), 0.0], [K, N]), float(y["u"]) * np.eye(K + N, K))
    return {"z": dZ[0] - dZ[K], "u": dW[0, 0] - dW[0, 1]}


def aggregate(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Every sequence of the two tokens, with its weight."""
    T, u, total = len(q["p"]) - 1, float(y["u"]), 0.0
    W = u * np.eye(2)
    for topic in range(2):
        for tokens in product(range(2), repeat=T):
            right = tokens.count(topic)
            same = sum(other.count(topic) == right for other in product(range(2), repeat=T))
            _, dW = slopes([(list(tokens), topic)], np.zeros(2), W)
            total += q["p"][right] / same / 2 * (dW[0, 0] - dW[0, 1])
    return {"u": np.array(total)}
