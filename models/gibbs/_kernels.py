"""Redraws of masked tokens as transition matrices: exact, by an independent draw for each token, and with equal states put together.

A law p (q^n,) lists sequences of n tokens 0..q-1 in lexicographic order: the last token changes fastest.
"""

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
from scipy.special import gammaln


def length(states: int, q: int) -> int:
    """The number n of tokens of q^n sequences. Raises ValueError if there is none."""
    n = round(np.log(states) / np.log(q)) if q > 1 else 0
    if q < 2 or q**n != states:
        raise ValueError(f"sequences of tokens 0..q - 1 with q = {q} need a size S that is a power of q: S = {states} is none")
    return n


def sequences(states: int, q: int = 2) -> np.ndarray:
    """All sequences (q^n, n)."""
    return np.indices((q,) * length(states, q)).reshape(-1, states).T


def blocks(n: int, q: int, k: int) -> Iterator[np.ndarray]:
    """For each set of k masked tokens: the sequences (q^(n-k), q^k), a row for those that agree outside. Raises ValueError for a bad k."""
    if not 1 <= k <= max(n, 1):
        raise ValueError(f"k = {k} masked tokens of n = {n}: k goes from 1 to n")
    places = np.arange(q**n).reshape((q,) * n)
    for masked in combinations(range(n), min(k, n)):
        yield np.moveaxis(places, masked, range(n - len(masked), n)).reshape(-1, q ** len(masked))


def mean_kernel(p: np.ndarray, q: int, k: int, redraw: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The mean over the masks of redraw(law within a block), the law of what is drawn there."""
    P, sets = np.zeros((len(p), len(p))), list(blocks(length(len(p), q), q, k))
    for rows in sets:
        drawn = redraw(p[rows] / p[rows].sum(axis=1, keepdims=True))
        P[rows[:, :, None], rows[:, None, :]] += drawn[:, None, :] / len(sets)
    return P


def exact(p: np.ndarray, q: int, k: int) -> np.ndarray:
    """P_k (S, S): k tokens, chosen uniformly, are drawn together from the law p given the others."""
    return mean_kernel(p, q, k, lambda within: within)


def parallel(p: np.ndarray, q: int, k: int) -> np.ndarray:
    """The kernel (S, S) where each of the k tokens is drawn by itself, from its own law given the tokens that are not masked."""

    def independent(within: np.ndarray) -> np.ndarray:
        tokens = length(within.shape[1], q)
        table, drawn = within.reshape(-1, *(q,) * tokens), np.ones((len(within), 1))
        for token in range(1, tokens + 1):
            own = table.sum(axis=tuple(a for a in range(1, tokens + 1) if a != token))
            drawn = (drawn[:, :, None] * own[:, None, :]).reshape(len(within), -1)
        return drawn

    return mean_kernel(p, q, k, independent)


def log_binomial(n: np.ndarray | int, k: np.ndarray | int) -> np.ndarray:
    """ln C(n, k), -inf where k < 0 or k > n."""
    n, k = np.broadcast_arrays(n, k)
    inside = (k >= 0) & (k <= n)
    k = np.where(inside, k, 0)
    return np.where(inside, gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1), -np.inf)


def lumped(log_w: np.ndarray, k: int) -> np.ndarray:
    """P_k (n+1, n+1) between numbers of ones, for tokens 0 and 1 whose sequences with m ones have weight exp(log_w[m]) each."""
    n = len(log_w) - 1
    if not 1 <= k <= max(n, 1):
        raise ValueError(f"k = {k} masked tokens of n = {n}: k goes from 1 to n")
    k = min(k, n)
    m, kept = np.arange(n + 1), np.arange(n - k + 1)  # ones, and ones that are not masked
    outside = np.exp(log_binomial(n - k, kept) + log_binomial(k, m[:, None] - kept) - log_binomial(n, m[:, None]))
    drawn = log_binomial(k, m - kept[:, None]) + log_w
    drawn = np.exp(drawn - drawn.max(axis=1, keepdims=True))
    both = (outside / outside.sum(axis=1, keepdims=True)) @ (drawn / drawn.sum(axis=1, keepdims=True))
    return np.asarray(both / both.sum(axis=1, keepdims=True))


def gap(P: np.ndarray, p: np.ndarray) -> float:
    """1 - (second largest eigenvalue) of a kernel P that is reversible with respect to p."""
    root = np.sqrt(p)
    similar = root[:, None] * P / root
    return float(1 - np.linalg.eigvalsh((similar + similar.T) / 2)[-2])


def stationary(P: np.ndarray) -> np.ndarray:
    """The law (S,) that P keeps: by elimination of one state after another, without subtractions (Grassmann, Taksar and Heyman)."""
    A, n = P.copy(), len(P)
    for last in range(n - 1, 0, -1):
        A[:last, last] /= A[last, :last].sum()
        A[:last, :last] += np.outer(A[:last, last], A[last, :last])
    law = np.ones(n)
    for state in range(1, n):
        law[state] = law[:state] @ A[:state, state]
    return law / law.sum()
