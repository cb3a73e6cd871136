"""What the GaLore paper states of random samples: null spaces of few, single draws beside many of ours, how stiff the flow is.

The law of the draws is not recorded either: normal factors, and B + .1 where B is said to have full rank, are ours.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement
from odesim.models.galore.parametric_gradient import gradient, stable_rank
from odesim.symbolic import Source

PAPER = "zhao2024galore"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-30, "backend": "numpy"}
LATE = (0.0, 10.0, 100.0, 1e3, 1e4)


def matrix(B: np.ndarray, C: np.ndarray) -> np.ndarray:
    """S (mn, mn), the mean of the Kronecker products of B and C, rows stacked."""
    return np.mean([np.kron(b, c) for b, c in zip(B, C, strict=True)], axis=0)


def low_rank() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """B (8, 6, 6), C (8, 10, 10) of rank one each, W (6, 10): eight samples, and ten inputs."""
    rng = np.random.default_rng(0)
    X, f = rng.standard_normal((8, 6, 6)), rng.standard_normal((8, 10))
    return np.eye(6) + X @ X.transpose(0, 2, 1) / 6, f[:, :, None] * f[:, None, :], rng.standard_normal((6, 10))


def gradients(run: Any) -> np.ndarray:
    """G (T, mn) at the saved times, rows stacked."""
    A, B, C = (run.attrs["params"][name] for name in "ABC")
    return np.array([gradient(W, A, B, C).ravel() for W in run.y["W"]])


def modes() -> tuple[Any, np.ndarray, np.ndarray]:
    """(run to t = 20, eigenvalues of S, eigenvectors)."""
    B, C, W = low_rank()
    params = {"A": np.zeros((8, 6, 10)), "B": B, "C": C}
    run = odesim.integrate("galore.parametric_gradient", params=params, initial={"W": W}, span=(0, 20), save=3, **FINE)
    return run, *np.linalg.eigh(matrix(B, C))


def null_space() -> Iterable[Measurement]:
    """The part of G in the eigenspace of the smallest eigenvalue of S, which is 0."""
    run, rates, vectors = modes()
    G, null = gradients(run)[0], vectors[:, rates < 1e-10]
    yield Measurement("dimension of the null space, m (n - N')", null.shape[1], 12.0)
    yield Measurement("rank of G, at most that", np.linalg.matrix_rank(G.reshape(6, 10)), 10.0 - 8.0, 0.0, "<=")
    yield Measurement("|G_par| / |G|", np.linalg.norm(null.T @ G) / np.linalg.norm(G), 1e-3, 1e-6, ">=")


def smallest_positive() -> Iterable[Measurement]:
    """What is left of G beside the mode of the smallest positive eigenvalue, over the bound on it; no rank above N'."""
    run, rates, vectors = modes()
    first, second = np.flatnonzero(rates > 1e-10)[:2]
    G = gradients(run)
    mode = vectors[:, first]
    rest = G - np.outer(G @ mode, mode)
    bound = np.exp(-rates[second] * run.t) * np.linalg.norm(rest[0])
    yield Measurement("largest |G - G_par(t)| / (exp(-lambda_2 t) |R|)", (np.linalg.norm(rest, axis=1) / bound).max(), 1.0, 1e-6, "<=")
    yield Measurement(
        "largest |G_par(t) / (exp(-lambda_1 t) G_par) - 1|",
        np.abs((G @ mode) * np.exp(rates[first] * run.t) / (G[0] @ mode) - 1).max(),
        0.0,
        1e-6,
    )


def late_modes() -> Iterable[Measurement]:
    """The stable rank of G by the modes of S to t = 1e4, where no digit of G itself is left, beside a run at t = 0, 10, 20."""
    run, rates, vectors = modes()
    kept = rates > 1e-10
    own, vectors, part = rates[kept], vectors[:, kept], gradients(run)[0] @ vectors[:, kept]

    def ranks(times: Any) -> np.ndarray:
        """The stable ranks (T,) at these times."""
        left = np.exp(-(own - own[0]) * np.asarray(times)[:, None]) * part  # all over exp(-lambda_1 t)
        return stable_rank((left @ vectors.T).reshape(-1, 6, 10))

    found, end = ranks(LATE), float(stable_rank(vectors[:, 0].reshape(6, 10)))
    for t, x, seen in zip(run.t, ranks(run.t), run.observables["stable_rank_G"], strict=True):
        yield Measurement(f"stable rank of G at t = {t:g}, by modes - along the run", x - seen, 0.0, 1e-6)
    yield Measurement("stable rank of G at the start - that of the slowest mode", float(found[0]) - end, 0.1, 0.0, ">=")
    yield Measurement("stable rank of G at t = 1e4 - that of the slowest mode", float(found[-1]) - end, 0.0, 1e-3)
    yield Measurement("rank of G(0)", np.linalg.matrix_rank(gradients(run)[0].reshape(6, 10)), 6.0)


FEW = (
    Claim(
        "galore.null_space",
        Source(PAPER, "corollary of Lemma 3.3", "wording recalled"),
        "galore.parametric_gradient, m = 6, n = 10, N = 8, each C of rank one",
        "with N' < n inputs the rank of G is bounded by that of its part in the null space of S, n - N'",
        null_space,
        "none: that part is 0, and bounds nothing",
        fails=True,
        corrected=Statement(
            "G tends to the mode of the smallest positive eigenvalue of S",
            smallest_positive,
            "1e4 times the relative tolerance 1e-10 of the run, for a decay over many orders",
        ),
    ),
    Claim(
        "galore.late_modes",
        Source(PAPER, "corollary of Lemma 3.3", "wording recalled"),
        "galore.parametric_gradient, m = 6, n = 10, N = 8, each C of rank one, to t = 1e4 by the modes of S",
        "the stable rank of G tends to that of the slowest mode, while its rank stays that of the start",
        late_modes,
        "1e4 times the relative tolerance 1e-10 of the run; the modes above the slowest are below 1e-3 by t = 1e4",
        depends=("galore.exponential",),
    ),
)


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
        "recorded numbers of single draws are such as other draws have",
        shares,
        "none: .5 % to both sides for each of ten numbers, 5 % for all",
        models=("galore.parametric_gradient",),
    ),
)


SIX, MEDIAN_SIX = 6, 20.0
ONE = {0.5: 2.4e4, 0.95: 1.7e7}
"""Quantiles of another program for one sample. How many draws it had is not recorded: OF is taken for it."""
OF, EXACT = 200, {0.5: 3.41e4, 0.95: 2.21e7}
"""EXACT: the same quantiles by the singular values of two million pairs of normal matrices."""


def spread(count: int, draws: int) -> np.ndarray:
    """lambda_max / lambda_1 (draws,), sorted, of S for so many random B (4, 4) and C (5, 5), squares of normal matrices."""
    rng, found = np.random.default_rng(0), np.empty(draws)
    for k in range(draws):
        B, C = wishart(rng, count, 4), wishart(rng, count, 5)
        # of one sample the eigenvalues are products: those of a Kronecker product of condition 1e8 have few digits
        products = np.outer(np.linalg.eigvalsh(B[0]), np.linalg.eigvalsh(C[0])) if count == 1 else np.linalg.eigvalsh(matrix(B, C))
        found[k] = products.max() / products.min()
    return np.sort(found)


def quantile(values: np.ndarray, share: float, name: str, want: float, digit: float) -> Measurement:
    """The quantile of sorted draws beside a number, to a digit and four standard errors of a rank."""
    rank, error = share * len(values), 4 * np.sqrt(share * (1 - share) * len(values))
    low, middle, high = (float(values[round(x)]) for x in (rank - error, rank, rank + error))
    return Measurement(name, middle, want, digit + max(high - middle, middle - low))


def stiff() -> Iterable[Measurement]:
    """Quantiles for six samples and for one; how many draws of one are below those of another program."""
    six, one = spread(SIX, 1500), spread(1, 5000)
    yield quantile(six, 0.5, "median of lambda_max / lambda_1, N = 6", MEDIAN_SIX, 0.51)
    for share, value in EXACT.items():
        yield quantile(one, share, f"quantile {share:g} of lambda_max / lambda_1, N = 1", value, 0.0051 * value)
    for share, value in ONE.items():
        wide = 4 * np.sqrt(share * (1 - share) * (1 / OF + 1 / len(one)))
        yield Measurement(f"share of draws below {value:g}, N = 1", (one < value).mean(), share, wide)


STIFF = (
    Claim(
        "galore.stiffness",
        Source(PAPER, "Theorem 3.2 and Lemma 3.3", "their rates; quantiles by independent programs"),
        "eigenvalues of S for random B (4, 4) and C (5, 5), squares of normal matrices: 1500 draws of six samples, 5000 of one",
        "lambda_max / lambda_1 has the median 20 for six samples; 3.4e4 for one, with 2.2e7 at 95 %",
        stiff,
        "four standard errors of a rank, of ours and of 200 draws of the other program; half a digit",
        models=("galore.parametric_gradient",),
    ),
)
