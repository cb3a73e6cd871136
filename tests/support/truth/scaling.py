"""Right-hand sides of scaling laws, embeddings, escape and diagonal networks by hand: moments of a step, pairs of words, chain rules."""

from math import log, sinh

import numpy as np

from tests.support.truth.arrays import Arrays


def sgd(t: float, y: Arrays, q: Arrays) -> Arrays:
    """What one step changes, to second order in g, without the part of a mode's own square."""
    D = y["D"]
    lam = [float(k) ** (-2 * float(q["a"])) for k in range(1, len(D) + 1)]
    risk = (q["s2"] + sum(x * c for x, c in zip(lam, D, strict=True))) / 2
    return {"D": np.array([-2 * q["g"] * x * c + 2 * q["g"] ** 2 * x * risk / q["B"] for x, c in zip(lam, D, strict=True)])}


def sgd_steps(t: float, y: Arrays, q: Arrays) -> Arrays:
    """The diagonal of C - g (L C + C L) + g^2 L C L + (g^2/B) (L tr(L C) + L C L + s2 L), with whole matrices."""
    D, g = y["D"], q["g"]
    L, C = np.diag(np.arange(1.0, len(D) + 1) ** (-2 * q["a"])), np.diag(D)
    noise = L * np.trace(L @ C) + L @ C @ L + q["s2"] * L
    return {"D": np.diag(C - g * (L @ C + C @ L) + g**2 * L @ C @ L + g**2 / q["B"] * noise)}


def pulls(W: np.ndarray, C: np.ndarray, q: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """One pair of a word and a context after the other pulls both its vectors."""
    P = q["P"]
    of_words, of_contexts, p = np.zeros_like(W), np.zeros_like(C), P.sum(axis=1)
    for i in range(len(W)):
        for j in range(len(W)):
            M = 2 * (P[i, j] - p[i] * p[j]) / (P[i, j] + p[i] * p[j])
            G = q["flat"] + (1 - q["flat"]) * (P[i, j] + p[i] * p[j]) / 2
            pull = G * (M - W[i] @ C[j])
            of_words[i] += pull * C[j]
            of_contexts[j] += pull * W[i]
    return of_words, of_contexts


def word2vec(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Words are their own contexts."""
    return {"W": sum(pulls(y["W"], y["W"], q))}


def word2vec_untied(t: float, y: Arrays, q: Arrays) -> Arrays:
    return dict(zip("WC", pulls(y["W"], y["C"], q), strict=True))


def single_index(t: float, y: Arrays, q: Arrays) -> Arrays:
    m, k = float(y["m"]), int(q["k"])
    return {"m": np.array(k * m ** (k - 1) - k * m ** (k + 1))}


def multi_index(t: float, y: Arrays, q: Arrays) -> Arrays:
    """The gradient without its part along m."""
    m, k = y["m"], int(q["k"])
    push = k * q["a"] * m ** (k - 1)
    return {"m": (np.eye(len(m)) - np.outer(m, m) / (m @ m)) @ push}


def diagonal(t: float, y: Arrays, q: Arrays) -> Arrays:
    u, v = y["u"], y["v"]
    slope = q["G"] @ (u * u - v * v) / 2 - q["c"]
    return {"u": -slope * u, "v": slope * v}


def mirror(t: float, y: Arrays, q: Arrays) -> Arrays:
    alpha = float(q["alpha"])
    beta = np.array([alpha**2 * sinh(-2 * log(alpha) * s) for s in y["s"]])
    return {"s": q["c"] - q["G"] @ beta}
