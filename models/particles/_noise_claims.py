"""What is stated of tokens on the circle with noise: the strength of attention at which order sets in."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import iv

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, Verdict
from odesim.symbolic import Source

TOKENS, MEMBERS, KAPPA = 64, 64, 0.5
TIMES = (20.0, 25.0, 30.0, 35.0, 40.0)
"""Far apart beside the time in which the order forgets, below 4."""


def threshold(beta: float) -> float:
    """K at which the uniform density loses its stability."""
    return float(KAPPA * beta / iv(1, beta))


def order_of_density(beta: float, K: float) -> float:
    """E cos of the density that is exp((K/kappa) times its own potential), over its integral, from one that is nearly a point."""
    angle = np.linspace(0, 2 * np.pi, 256, endpoint=False)
    pull = np.exp(beta * np.cos(angle[:, None] - angle)) / beta
    density = np.exp(4 * np.cos(angle))
    for _ in range(500):
        density /= density.sum()
        density = np.exp(K / KAPPA * (pull @ density))
    return float(np.cos(angle) @ density / density.sum())


def order(beta: float, K: float, start: dict[str, Any]) -> Any:
    """Order (MEMBERS, TIMES) of 64 tokens."""
    run = odesim.ensemble(
        "particles.noisy_circle", params={"beta": beta, "kappa": KAPPA, "K": K}, sizes={"n": TOKENS}, members=MEMBERS, step=0.1,
        span=(0, TIMES[-1]), save=TIMES, observe="r", **start,
    )  # fmt: skip
    return run.r.values


def sets_in() -> Iterable[Measurement]:
    """Below the threshold r is that of 64 free tokens, raised by 1/sqrt(1 - K/K#); above, that of the density."""
    uniform, still = {"vary": {"theta": f"uniform(0,{2 * np.pi})"}}, {"initial": {"theta": 0.0}}
    for share in (0.0, 0.5):
        squares = order(1.0, share * threshold(1.0), uniform) ** 2 * TOKENS
        doubt = 4 * float(squares.std()) / squares.size**0.5
        yield Measurement(f"64 times the mean of r^2, beta = 1, {share:g} K#", float(squares.mean()), 1 / (1 - share), doubt)
    for beta in (1.0, 2.0):
        K = 1.5 * threshold(beta)
        r = order(beta, K, still)
        doubt = 4 * float(r.std()) / r.size**0.5
        yield Measurement(f"mean of r, beta = {beta:g}, 1.5 K#", float(r.mean()), order_of_density(beta, K), doubt)


NOISY = (
    Claim(
        "particles.threshold",
        Source("mun2026phase", "abstract", "d = 2"),
        "64 tokens on the circle, 64 runs, at 0, 0.5 and 1.5 of K#",
        ("particles.noisy_circle",),
        Statement("for beta < 2.447 noisy tokens are spread evenly up to K# = kappa beta / I_1(beta), and ordered above", sets_in,
                  Verdict.HOLDS, "four standard errors of 64 runs, each seen at five times"),
        slow=True,
    ),
)  # fmt: skip
