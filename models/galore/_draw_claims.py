"""Numbers of single draws whose seeds were not recorded, beside many draws of ours: ranks at late times, a rate, what a projection leaves.

The law of the draws is not recorded either: normal factors, and B + .1 where B is said to have full rank, are ours.
"""

from collections.abc import Iterable

import numpy as np

from odesim.lab.claims import Claim, Measurement, Statement
from odesim.models.galore._few_claims import LATE, matrix
from odesim.models.galore.parametric_gradient import gradient, stable_rank
from odesim.symbolic import Source

PAPER = "zhao2024galore"
DRAWS = 200
RANKS = (2.604, 2.013, 1.055, 1.022, 1.129)
"""The stable rank of G at the times of LATE: m = 6, n = 10, N = 8, each C of rank one, W(0) = 0."""
KAPPA, FACTOR, RATIO, REST = 0.1943, 0.8659, 0.555, 9.23
"""kappa of Theorem 3.8, 1 - kappa / lambda_max, the largest |R_t| / |R_(t-1)| and |G| once R is gone: m = 8, n = 9, r = 3, N = 5."""
LEFT = 0.306
"""The mean squared error that two directions leave which stay, of a target of 16 x 24, rank four and entries of variance 1."""


def wishart(rng: np.random.Generator, count: int, size: int) -> np.ndarray:
    """X X^T / size (count, size, size) of normal matrices X."""
    X = rng.standard_normal((count, size, size))
    return X @ X.transpose(0, 2, 1) / size


def ranks(rng: np.random.Generator) -> np.ndarray:
    """The stable ranks of G at LATE, by the modes of S."""
    B, f, a = wishart(rng, 8, 6) + 0.1 * np.eye(6), rng.standard_normal((8, 10)), rng.standard_normal((8, 6))
    rates, vectors = np.linalg.eigh(matrix(B, f[:, :, None] * f[:, None, :]))
    kept = rates > 1e-10
    part = (a.T @ f / 8).ravel() @ vectors[:, kept]
    left = np.exp(-(rates[kept] - rates[kept][0]) * np.array(LATE)[:, None]) * part
    return stable_rank((left @ vectors[:, kept].T).reshape(-1, 6, 10))


def contraction(rng: np.random.Generator) -> tuple[float, float, float, float]:
    """(kappa, 1 - kappa / lambda_max, largest |R_t| / |R_(t-1)| in 30 steps of 1 / lambda_max, |G| at R = 0), A and W(0) normal."""
    P, Q = (np.linalg.qr(rng.standard_normal((size, 3)))[0] for size in (8, 9))
    A, B, C, W = rng.standard_normal((5, 8, 9)), wishart(rng, 5, 8), wishart(rng, 5, 9), rng.standard_normal((8, 9))
    b, c = P.T @ B @ P, Q.T @ C @ Q
    S, R = matrix(b, c), (P.T @ gradient(W, A, B, C) @ Q).ravel()
    kappa = float(np.mean(np.linalg.eigvalsh(b)[:, 0] * np.linalg.eigvalsh(c)[:, 0]))
    rates, vectors = np.linalg.eigh(S)
    left = np.linalg.norm((1 - rates / rates[-1]) ** np.arange(31)[:, None] * (vectors.T @ R), axis=1)
    end = W + P @ np.linalg.solve(S, R).reshape(3, 3) @ Q.T
    return kappa, 1 - kappa / float(rates[-1]), float((left[1:] / left[:-1]).max()), float(np.linalg.norm(gradient(end, A, B, C)))


def left_over(rng: np.random.Generator) -> float:
    """The mean of the squares of T (16, 24), product of 16 x 4 and 4 x 24 over 2, without its two largest singular values."""
    values = np.linalg.svd(rng.standard_normal((16, 4)) @ rng.standard_normal((4, 24)) / 2, compute_uv=False)
    return float((values[2:] ** 2).sum() / (16 * 24))


def shares() -> Iterable[Measurement]:
    """How probable a number as far from the middle as each recorded one is, by our draws, to either side."""
    rng = np.random.default_rng(0)
    found = np.array([(*ranks(rng), *contraction(rng), left_over(rng)) for _ in range(DRAWS)])
    names = [f"stable rank of G at t = {t:g}" for t in LATE] + ["kappa", "1 - kappa / lambda_max"]
    names += ["largest ratio of |R| in two steps", "|G| once R is gone", "error of r = 2 that stays"]
    for name, want, column in zip(names, (*RANKS, KAPPA, FACTOR, RATIO, REST, LEFT), found.T, strict=True):
        below = float((column < want).mean())
        yield Measurement(f"share of draws as far from the middle as {want:g}: {name}", 2 * min(below, 1 - below), 0.005, 0.0, ">=")


DRAWN = (
    Claim(
        "galore.draws",
        Source(PAPER, "Lemma 3.3, Theorem 3.8 and Algorithm 1", "ten numbers of single draws by an independent program, seeds not kept"),
        "200 draws of each problem: normal factors, B and C their squares, or C of rank one; these laws are ours",
        printed=Statement(
            "recorded numbers of single draws are such as other draws have",
            shares,
            "none: .5 % to both sides for each of ten numbers, 5 % for all",
        ),
        models=("galore.parametric_gradient",),
    ),
)
