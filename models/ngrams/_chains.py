"""Markov chains whose rows are uniform on the simplex, and the means over them that the loss of n-grams is made of."""

from typing import Any

import numpy as np

NODES, DRAWS = 40, 20_000


def two_states() -> tuple[np.ndarray, np.ndarray]:
    """P (Q, 2, 2) and weights (Q,) of chains of two states, chances p and q to leave a state uniform on [0, 1].

    In s = p + q and x = q / s, where the law at rest (x, 1 - x) is smooth: rule of Gauss in s up to 1 / max(x, 1 - x), and in x on either
    half. In p and q the means have a kink at p = q = 0, and 80 nodes each give 1e-7; these 40 give rounding.
    """
    node, weight = np.polynomial.legendre.leggauss(NODES)
    node, weight = (node + 1) / 2, weight / 2
    x, w = np.concatenate([node / 2, (1 + node) / 2]), np.tile(weight / 2, 2)
    most = 1 / np.maximum(x, 1 - x)
    s, mass = most[:, None] * node, (w * most)[:, None] * weight * most[:, None] * node  # dp dq = s ds dx
    q = s * x[:, None]
    p = s - q
    P = np.stack([np.stack([1 - p, p], axis=-1), np.stack([q, 1 - q], axis=-1)], axis=-2)
    return P.reshape(-1, 2, 2), mass.ravel()


def chains(k: int) -> tuple[np.ndarray, np.ndarray]:
    """P (Q, k, k) and weights (Q,): exact means for two states; for more, 20,000 chains, always the same. Raises ValueError for k < 2."""
    if k < 2:
        raise ValueError(f"k = {k}: a chain has two states or more")
    if k == 2:
        return two_states()
    P = np.random.default_rng(0).standard_exponential((DRAWS, k, k))
    return P / P.sum(axis=2, keepdims=True), np.full(DRAWS, 1 / DRAWS)


def moments(P: np.ndarray, weights: np.ndarray, L: int) -> dict[str, Any]:
    """A (L,), B, C (L, L), D (L,), S: means over chains P (Q, k, k) with pi at rest, lags 0..L - 1."""
    k = P.shape[1]
    pi = np.linalg.solve((np.eye(k) - P + 1).swapaxes(1, 2), np.ones((len(P), k, 1)))[..., 0]
    powers = [np.tile(np.eye(k), (len(P), 1, 1))]
    for _ in range(L - 1):
        powers.append(powers[-1] @ P)
    steps = np.array(powers)
    return {
        "A": np.einsum("n,ns,nsr,lnsr->l", weights, pi**2, P, steps),
        "B": float(weights @ (pi**2).sum(axis=1)),
        "C": np.einsum("n,ns,lnsr,mnsr->lm", weights, pi**3, steps, steps),
        "D": np.einsum("n,ns,nr,lnsr->l", weights, pi**2, pi, steps),
        "S": float(np.einsum("n,ns,nsr->", weights, pi, P**2)),
    }


def least_loss(given: dict[str, Any]) -> float:
    """The least loss over all weights: a quadratic form in a v (L,) and b V."""
    A, B, C, D, S = (given[name] for name in "ABCDS")
    H, g = np.block([[C, D[:, None]], [D[None], np.array([[B]])]]), np.append(A, B)
    return float(S - g @ np.linalg.lstsq(H, g, rcond=None)[0]) / 2
