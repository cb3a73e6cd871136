"""What the GaLore paper states of few samples: the null space of S, and what the gradient tends to."""

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
    yield Measurement("rank of G, at most that", float(np.linalg.matrix_rank(G.reshape(6, 10))), 10.0 - 8.0, 0.0, "<=")
    yield Measurement("|G_par| / |G|", float(np.linalg.norm(null.T @ G) / np.linalg.norm(G)), 1e-3, 1e-6, ">=")


def smallest_positive() -> Iterable[Measurement]:
    """What is left of G beside the mode of the smallest positive eigenvalue, over the bound on it; no rank above N'."""
    run, rates, vectors = modes()
    first, second = np.flatnonzero(rates > 1e-10)[:2]
    G = gradients(run)
    mode = vectors[:, first]
    rest = G - np.outer(G @ mode, mode)
    bound = np.exp(-rates[second] * run.t) * np.linalg.norm(rest[0])
    yield Measurement(
        "largest |G - G_par(t)| / (exp(-lambda_2 t) |R|)", float((np.linalg.norm(rest, axis=1) / bound).max()), 1.0, 1e-6, "<="
    )
    yield Measurement(
        "largest |G_par(t) / (exp(-lambda_1 t) G_par) - 1|",
        float(np.abs((G @ mode) * np.exp(rates[first] * run.t) / (G[0] @ mode) - 1).max()),
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
        yield Measurement(f"stable rank of G at t = {t:g}, by modes - along the run", float(x - seen), 0.0, 1e-6)
    yield Measurement("stable rank of G at the start - that of the slowest mode", float(found[0]) - end, 0.1, 0.0, ">=")
    yield Measurement("stable rank of G at t = 1e4 - that of the slowest mode", float(found[-1]) - end, 0.0, 1e-3)
    yield Measurement("rank of G(0)", float(np.linalg.matrix_rank(gradients(run)[0].reshape(6, 10))), 6.0)


FEW = (
    Claim(
        "galore.null_space",
        Source(PAPER, "corollary of Lemma 3.3", "wording recalled"),
        "galore.parametric_gradient, m = 6, n = 10, N = 8, each C of rank one",
        printed=Statement(
            "with N' < n inputs the rank of G is bounded by that of its part in the null space of S, n - N'",
            null_space,
            "none: that part is 0, and bounds nothing",
            fails=True,
        ),
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
        printed=Statement(
            "the stable rank of G tends to that of the slowest mode, while its rank stays that of the start",
            late_modes,
            "1e4 times the relative tolerance 1e-10 of the run; the modes above the slowest are below 1e-3 by t = 1e4",
        ),
        depends=("galore.exponential",),
    ),
)
