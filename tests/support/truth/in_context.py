"""Right-hand sides of models of learning in context, by loops from the derivatives on paper."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import erf, expit

from tests.support.truth.arrays import Arrays


def slope_of_regression(W: Any, q: Arrays) -> Any:
    """Minus dL/dW (D, D), entry by entry."""
    lam, N = q["lam"], float(q["N"])
    slope = np.empty_like(W)
    for a in range(len(lam)):
        second = lam[a] ** 2 * (1 + 1 / N) + lam[a] * sum(lam) / N  # E beta_a^2
        for b in range(len(lam)):
            slope[a, b] = 2 * lam[a] ** 2 * (a == b) - 2 * second * W[a, b] * lam[b]
    return slope


def merged(t: float, y: Arrays, q: Arrays) -> Arrays:
    G = slope_of_regression(sum(v * U for v, U in zip(y["v"], y["U"], strict=True)), q)
    return {"v": np.array([(G * U).sum() for U in y["U"]]), "U": np.array([v * G for v in y["v"]])}


def separate(t: float, y: Arrays, q: Arrays) -> Arrays:
    heads = list(zip(y["v"], y["k"], y["q"], strict=True))
    G = slope_of_regression(sum(v * np.outer(key, query) for v, key, query in heads), q)
    return {
        "v": np.array([key @ G @ query for _, key, query in heads]),
        "k": np.array([v * G @ query for v, _, query in heads]),
        "q": np.array([v * key @ G for v, key, _ in heads]),
    }


def pairings(places: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """All ways to put places in pairs."""
    if not places:
        yield []
    for n in range(1, len(places)):
        for rest in pairings([*places[1:n], *places[n + 1 :]]):
            yield [(places[0], places[n]), *rest]


def wishart_moment(k: int, D: float, N: float) -> float:
    """E tr (X X^T / N)^k / D of X (D, N), normal: by Wick, a power for each set of indices that are equal in a pairing."""
    total = 0.0
    for pairs in pairings(range(2 * k)):
        # factor 2n is X[i_n, j_n], factor 2n + 1 is X[i_(n+1), j_n]
        row, column = list(range(k)), list(range(k))
        for one, other in pairs:
            for label, (x, z) in ((row, [((f + 1) // 2) % k for f in (one, other)]), (column, [f // 2 for f in (one, other)])):
                old, new = label[x], label[z]
                label[:] = [new if c == old else c for c in label]
        total += D ** len(set(row)) * N ** len(set(column))
    return total / D / N**k


def two_layers(t: float, y: Arrays, q: Arrays) -> Arrays:
    """2 E tr S (1 - eta S)(1 - other S)^2 / D of each layer."""
    m = [wishart_moment(k, float(q["D"]), float(q["N"])) for k in range(1, 5)]
    one, two = float(y["eta1"]), float(y["eta2"])

    def rate(eta: float, other: float) -> float:
        c = (1, -eta - 2 * other, 2 * eta * other + other**2, -eta * other**2)
        return 2 * sum(x * z for x, z in zip(c, m, strict=True))

    return {"eta1": np.array(rate(one, two)), "eta2": np.array(rate(two, one))}


def single_location(t: float, y: Arrays, q: Arrays) -> Arrays:
    """By the mean of erf over a normal variable."""
    kappa, nu, lam, g2 = (float(x) for x in (y["kappa"], y["nu"], q["lam"], q["gamma2"]))
    c1 = lam * np.sqrt(float(q["d"]) / 2 / (1 + 2 * lam**2 * g2))
    A = c1 * kappa
    bell = 2 / np.sqrt(np.pi) * np.exp(-(A**2))
    return {
        "kappa": 2 * g2 * c1 * (1 - kappa**2) * bell * (nu - erf(A / np.sqrt(1 + 4 * lam**2 * g2))),
        "nu": 2 * g2 * (1 - nu**2) * erf(A),
    }


def nearest(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Prompt by prompt, from d p_i = p_i (c_i - sum_j p_j c_j) d xi, c the cosines less that of the nearest."""
    rate = 0.0
    for behind, share in zip(q["behind"], q["weight"], strict=True):
        p = np.exp(-float(y["xi"]) * behind)
        p = p / p.sum()
        moves = [p[i] * (p @ behind - behind[i]) for i in range(len(p))]
        rate -= share * (sum(2 * p[i] * moves[i] for i in range(len(p))) - 2 * moves[0])
    return {"xi": np.array(rate)}


def chain(y: Arrays, q: Arrays, b: float | None) -> tuple[float, float, float, float]:
    """s, its slopes by e and w, and what the two logits miss, summed with the weights of 0 and 1. b: None for the best one."""
    e, w, p, back = (float(x) for x in (y["e"], y["w"], q["p"], q["q"]))
    s = e**2 * (1 + 2 * w * abs(w))
    if b is None:
        b = e**2 / 2 + np.log((p - back + np.sqrt((p - back) ** 2 + 4 * p * back * np.exp(s))) / (2 * back * np.exp(s)))
    low = b - e**2 / 2
    miss = (back * (expit(low) - p) / (p + back), p * (expit(low + s) - 1 + back) / (p + back))
    return miss[0], miss[1], 2 * e * (1 + 2 * w * abs(w)), 4 * e**2 * abs(w)


def markov(t: float, y: Arrays, q: Arrays) -> Arrays:
    _, miss, by_e, by_w = chain(y, q, None)
    return {"e": np.array(-miss * by_e), "w": np.array(-miss * by_w)}


def markov_bias(t: float, y: Arrays, q: Arrays) -> Arrays:
    zero, one, by_e, by_w = chain(y, q, float(y["b"]))
    return {"e": np.array(-one * by_e + (zero + one) * y["e"]), "w": np.array(-one * by_w), "b": np.array(-zero - one)}
