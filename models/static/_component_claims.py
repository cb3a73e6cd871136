"""One component of a transformer says nothing of what it does: equal functions of unlike matrices, and any function in a random network.

Scores are x W_Q W_K^T x': with W_Q -> W_Q A and W_K -> W_K A^-T, A any invertible matrix, they are what they were, while norm and spectrum
of each matrix become what one likes. And of N random weights of one input some subset sums to any number in [-1/2, 1/2] to eps
once N is about ln(1/eps): a random network, its weights deleted or left as they are, becomes each function.
"""

from collections.abc import Iterable
from itertools import chain, product

import numpy as np

from odesim.lab.claims import Claim, Measurement, Statement
from odesim.symbolic import Source


def head(x: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray) -> np.ndarray:
    """The outputs (T, m) of causal attention on tokens x (T, m)."""
    scores = (x @ W_Q) @ (x @ W_K).T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True)) * np.tri(len(x))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True) @ x @ W_V)


def turned() -> Iterable[Measurement]:
    """A head of width 8 on 12 tokens: W_Q times 100, with one small singular value, or the unit matrix."""
    rng = np.random.default_rng(0)
    x, W_Q, W_K, W_V = (rng.standard_normal(shape) for shape in ((12, 8), (8, 8), (8, 8), (8, 8)))
    W_Q, W_K = W_Q / 8, W_K / 8
    before = head(x, W_Q, W_K, W_V)
    for name, A in {
        "norm times 100": 100 * np.eye(8),
        "one singular value": np.linalg.inv(W_Q) @ np.diag([1e-3, *np.ones(7)]),
        "the unit matrix": np.linalg.inv(W_Q),
    }.items():
        Q, K = W_Q @ A, W_K @ np.linalg.inv(A).T
        change = np.abs(np.linalg.svd(Q)[1] - np.linalg.svd(W_Q)[1]).max() / np.linalg.svd(W_Q)[1].max()
        yield Measurement(f"{name}: change of a singular value of W_Q, of its largest", float(change), 0.2, 0.0, ">=")
        # rounding, times the condition of A, at most 1e4
        yield Measurement(f"{name}: largest change of outputs", float(np.abs(head(x, Q, K, W_V) - before).max()), 0.0, 1e-10)


def reached(rng: np.random.Generator, N: int, eps: float, draws: int) -> float:
    """The share of draws of N uniform numbers whose subset sums come within eps of each of 101 targets in [-1/2, 1/2]."""
    targets, subsets, good = np.linspace(-0.5, 0.5, 101), np.array(list(product((0, 1), repeat=N))).T, 0
    for _ in range(draws):
        sums = np.sort(rng.uniform(-1, 1, N) @ subsets)
        after = np.clip(np.searchsorted(sums, targets), 1, len(sums) - 1)
        good += bool((np.minimum(np.abs(sums[after] - targets), np.abs(sums[after - 1] - targets)) <= eps).all())
    return good / draws


SHARES = {0.1: {5: 0.350, 7: 0.799, 9: 0.949}, 0.03: {7: 0.210, 9: 0.769, 11: 0.942}, 0.01: {9: 0.216, 11: 0.803, 13: 0.955}}
"""{eps: {N: share of 20,000 draws}}, by an independent script."""
DRAWS = 4000


def pruned() -> Iterable[Measurement]:
    """Shares for three accuracies, beside those of 20,000 draws of another script; two weights more for each third of the accuracy."""
    rng = np.random.default_rng(1)
    for eps, shares in SHARES.items():
        for N, want in shares.items():
            # four deviations of the difference of two shares, and the third digit
            off = 4 * (want * (1 - want) * (1 / DRAWS + 1 / 20_000)) ** 0.5 + 5e-4
            yield Measurement(f"eps = {eps:g}, N = {N}: share that reaches all targets", reached(rng, N, eps, DRAWS), want, off)
    for eps, N in ((0.1, 9), (0.03, 11), (0.01, 13)):
        yield Measurement(f"eps = {eps:g}, N = {N}: nearly all networks become all functions", reached(rng, N, eps, DRAWS), 0.85, 0.0, ">=")


COMPONENTS = Claim(
    "static.one_component",
    Source("wen2023uninterpretable", "one component alone", "one matrix; the weights that pruning leaves"),
    "a head of attention before and after; 4000 draws of up to 13 weights",
    printed=Statement(
        "equal functions have matrices of any norm and spectrum, and one random network is pruned to any function",
        lambda: chain(turned(), pruned()),
        "rounding; four deviations of shares of 4000 and 20,000 draws",
    ),
)
