"""What the GaLore paper states of subspaces that are fixed, and of those that are looked up again."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.symbolic import Source

PAPER = "zhao2024galore"
NEVER = 1e9  # a period longer than any run
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12, "backend": "numpy"}


def least(A: np.ndarray, B: np.ndarray, C: np.ndarray, P: np.ndarray) -> float:
    """The least loss over all W of columns in the span of P (m, r), by one linear system."""
    a = (P.T @ A.mean(axis=0)).ravel()
    S = np.mean([np.kron(P.T @ b @ P, c) for b, c in zip(B, C, strict=True)], axis=0)
    return float(-0.5 * a @ np.linalg.solve(S, a))


def losses(period: float, span: float) -> tuple[float, float, float]:
    """(loss at the end, least loss of the directions at the start, least loss)."""
    run = odesim.integrate("galore.projected", params={"period": period}, span=(0, span), save=2, **FINE)
    A, B, C, P = (run.attrs["params"][name] for name in ("A", "B", "C", "P0"))
    return float(run.observables["loss"][-1]), least(A, B, C, P), least(A, B, C, np.eye(A.shape[1]))


def fixed() -> Iterable[Measurement]:
    """Where the loss ends when directions stay, and how much of its fall is missing."""
    end, of_directions, of_all = losses(NEVER, 200.0)
    yield deviation("loss at t = 200 - least loss over the span of P", end, of_directions, 1e-9)
    yield Measurement("loss that stays / fall of the loss", (end - of_all) / -of_all, 0.1, 0.0, ">=")


def refreshed(period: float) -> Iterable[Measurement]:
    """Where the loss ends when directions are looked up."""
    end, _, of_all = losses(period, 200.0)
    yield deviation(f"loss at t = 200 - least loss, period {period:g}", end, of_all, 1e-6)


def rates() -> Iterable[Measurement]:
    """What is left of P^T G beside the bound exp(-kappa t), kappa the mean of the products of smallest eigenvalues."""
    run = odesim.integrate("galore.projected", params={"period": NEVER}, span=(0, 20), save=21, **FINE)
    B, C, P = (run.attrs["params"][name] for name in ("B", "C", "P0"))
    kappa = float(np.mean([np.linalg.eigvalsh(P.T @ b @ P)[0] * np.linalg.eigvalsh(c)[0] for b, c in zip(B, C, strict=True)]))
    left = np.linalg.norm(run.observables["shadow"], axis=(1, 2))
    yield Measurement("largest |P^T G| / (exp(-kappa t) |P^T G_0|)", float((left / left[0] * np.exp(kappa * run.t)).max()), 1.0, 1e-9, "<=")
    yield Measurement("|P^T G| at t = 20 / |P^T G_0|", float(left[-1] / left[0]), 0.01, 0.0, "<=")


REFRESH = (
    Claim(
        "galore.refresh",
        Source(PAPER, "Algorithm 1 and the sum of updates in several subspaces", "wording recalled"),
        "galore.projected at its defaults, r = 2 of 4 directions, to t = 200",
        printed=Statement(
            "updates of rank r train the whole weight: the loss reaches its least value",
            lambda: refreshed(2.0),
            "the relative tolerance of the run is 1e-10, that of the end 1e-6",
            when="directions are looked up again",
            otherwise=lambda: refreshed(NEVER),
        ),
        slow=True,
    ),
    Claim(
        "galore.fixed_directions",
        Source(PAPER, "Theorem 3.8", "wording recalled; in continuous time, P on one side"),
        "galore.projected at its defaults with directions that stay, to t = 200",
        printed=Statement(
            "|P^T G| falls at least as exp(-kappa t), while the loss ends at the least value over the span of P, above the least of all",
            lambda: (*rates(), *fixed()),
            "10 times the relative tolerance 1e-10 of the run; a tenth of the fall and a hundredth of P^T G are ours",
        ),
    ),
)
