"""What is stated of mixtures of skills, and what holds."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement
from odesim.symbolic import Source

RECORDED = {0.0: 0.327842, 0.5: 0.288669, 5.0: 0.299402}
"""Sum of the losses at t = 5, by an independent script."""


def total(eta: float, **graph: Any) -> float:
    """The sum of three losses at t = 5."""
    run = odesim.integrate("skills.mixture", params={"eta": eta, **graph}, save=2, rtol=1e-9, atol=1e-12, backend="numpy")
    return float(run.final_observables["loss"])


def better() -> Iterable[Measurement]:
    """A chain of three skills at eta = 0, 1/2 and 5."""
    for eta, want in RECORDED.items():
        yield Measurement(f"sum of losses, eta = {eta:g}", total(eta), want, 6e-7)
        if eta:
            yield Measurement(f"less than with even shares, eta = {eta:g}", total(eta), total(0.0), 0.0, "<=")
    yield Measurement("the faster one is worse", total(5.0), total(0.5), 0.0, ">=")


def better_at_random() -> Iterable[Measurement]:
    """Six random graphs."""
    for seed in range(6):
        A = np.random.default_rng(seed).uniform(0, 1, (3, 3))
        yield Measurement(f"random graph {seed}: the faster one is worse", total(5.0, A=A), total(0.5, A=A), 0.0, ">=")


CLAIMS = (
    Claim(
        "skills.mixture_helps",
        Source("chen2023skillit", "Section 4", "a chain of three skills"),
        "skills.mixture, eta = 0, 1/2 and 5",
        "a mixture that follows what helps lowers the losses more than an even one, at rate 5 less than at rate 1/2",
        better,
        "half a unit of the last recorded digit",
        when="skills teach along a chain; of six random graphs rate 5 is the better one in each",
        otherwise=better_at_random,
    ),
)
