"""What the JoMA paper states of data from a latent tree, and what holds."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.claims import Claim, Measurement, Statement, Verdict, deviation
from odesim.symbolic import Source

PAPER = "tian2023joma"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13}


def occurrence(L: int, rho: float) -> np.ndarray:
    """P_H (L - 1,): how often a token occurs with one whose lowest common ancestor is H levels up."""
    run = odesim.integrate("hierarchy.grouped", sizes={"L": L}, params={"rho": rho, "rho0": rho}, span=(0, 1e-3))
    P: np.ndarray = run.observables["P"][0]
    return P


def remainder(slope: float) -> Iterable[Measurement]:
    """P_H - (1 - (H/L)(1 + slope (L - 2 H) eps)) at L = 8, rho = rho0 = 1 - eps, in units of eps^2."""
    H, L = np.arange(1, 8), 8
    for eps in (1e-1, 1e-2, 1e-3):
        off = occurrence(L, 1 - eps) - (1 - H / L * (1 + slope * (L - 2 * H) * eps))
        yield deviation(f"remainder / eps^2, eps = {eps:g}", off / eps**2, 0.0, 20.0)


def near_before_far() -> Iterable[Measurement]:
    """When each height reaches nine tenths of its end."""
    run = odesim.integrate("hierarchy.grouped", span=(0, 200), **FINE)
    reached = {event["index"][0]: event["t"] for event in run.events["nine tenths"]}
    for H, (t, later) in enumerate(zip((16.2, 29.1, 45.3), (29.1, 45.3, 59.3), strict=True)):
        yield Measurement(f"time at H = {H + 1}", reached[H], t, 0.1)
        yield Measurement(f"time at H = {H + 2}", reached[H + 1], later, 0.1)


def bounce() -> Iterable[Measurement]:
    """The entropy of attention over the leaves."""
    run = odesim.integrate("hierarchy.grouped", span=(0, 200), save=2001, **FINE)
    S = run.observables["entropy"]
    yield Measurement("entropy at the start", S[0], np.log(15), 1e-9)
    yield Measurement("least entropy", S.min(), 2.1723, 5e-5)
    yield Measurement("entropy at t = 200", S[-1], 2.2689, 5e-4)


CLAIMS = (
    Claim(
        "hierarchy.occurrence",
        Source(PAPER, "Theorem 5"),
        "P_H of hierarchy.grouped, L = 8, rho = rho0 = 1 - eps",
        ("hierarchy.grouped",),
        printed=Statement(
            "P[l | m] = 1 - H/L + O(eps^2)", lambda: remainder(0.0), Verdict.FAILS, "20: of the size of L^2/4, which multiplies eps^2"
        ),
        corrected=Statement(
            "P[l | m] = 1 - (H/L)(1 + (L - 2 H) eps/2) + O(eps^2)",
            lambda: remainder(0.5),
            Verdict.HOLDS,
            "20: of the size of L^2/4, which multiplies eps^2",
        ),
    ),
    Claim(
        "hierarchy.near_before_far",
        Source(PAPER, "Theorems 4 and 5 together", "the times by an independent script"),
        "hierarchy.grouped, N = 2, L = 5, rho = rho0 = .95, kappa = 3",
        ("hierarchy.grouped",),
        printed=Statement("tokens with a near common ancestor are learned first", near_before_far, Verdict.HOLDS, "read off a grid of 0.1"),
    ),
    Claim(
        "hierarchy.bounce",
        Source(PAPER, "Theorems 4 and 5 together", "the numbers by an independent script"),
        "hierarchy.grouped, N = 2, L = 5, rho = rho0 = .95, kappa = 3",
        ("hierarchy.grouped",),
        printed=Statement("attention becomes sparse, then spreads again", bounce, Verdict.HOLDS, "printed digits of the table"),
    ),
)
