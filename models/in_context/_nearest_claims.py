"""What is stated of attention that learns the rule of the nearest neighbour, and what holds."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit

import odesim
from odesim.lab.claims import Claim, Measurement, Statement
from odesim.symbolic import Source

MODEL, PAPER = "in_context.nearest", "li2024nearest"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12, "backend": "numpy"}
A, B = np.log(2) - 0.5, np.pi**2 / 12 - np.log(2)
"""Integrals over u > 0 of (1 + e^u)^-2 and of u (1 + e^u)^-2: for large xi two points have the loss 2 A/xi - B/xi^2, but for exp(-xi)."""
CIRCLE = {0: 0.5, 1: 0.234177, 5: 0.072208, 20: 0.023461}
"""Loss of two points on a circle by xi: a rule of Gauss, and twenty million drawn prompts beside it."""


def on_a_circle(many: int = 40) -> dict[str, Any]:
    """behind and weight of two points on a circle: cos x - cos y = -2 sin a sin b, a = (x + y)/2 and b = (x - y)/2 uniform."""
    node, w = np.polynomial.legendre.leggauss(many)
    sine = np.sin(np.pi / 4 * (node + 1))
    gap = 2 * np.outer(sine, sine).ravel()
    return {"behind": np.column_stack([0 * gap, gap]), "weight": np.outer(w, w).ravel() / 4}


def attention(xi: float) -> float:
    """The mean attention to the nearer of two points on a sphere."""
    return quad(lambda u: (1 - u / 2) * expit(xi * u), 0, 2)[0]


def slope(xi: float) -> float:
    """The rate of xi there: that at which the loss 2 expit(-xi u)^2 falls."""
    return quad(lambda u: (1 - u / 2) * 4 * u * expit(-xi * u) ** 2 * expit(xi * u), 0, 2, points=[min(1.0, 4 / (1 + xi))])[0]


def learned() -> Iterable[Measurement]:
    """The loss of two points on a circle; nine tenths on the nearer of two on a sphere; five points, 20,000 prompts: who is answered."""
    for xi, want in CIRCLE.items():
        run = odesim.integrate(
            MODEL, params=on_a_circle(), sizes={"S": 1600, "N": 2}, initial={"xi": xi}, span=(0, 1e-6), save=2, backend="numpy"
        )
        yield Measurement(f"two points on a circle, loss at xi = {xi}", float(run.observables["loss"][0]), want, 6e-7)
    run = odesim.integrate(MODEL, span=(0, 400), save=2, **FINE)
    end = brentq(lambda xi: attention(xi) - 0.9, 1, 20)
    want = quad(lambda xi: 1 / slope(xi), 0, end)[0]
    yield Measurement(
        "two points on a sphere, time to .9 on the nearer, over a quadrature", float(run.events["sharp"][0]["t"]) / want, 1.0, 1e-6
    )
    run = odesim.integrate(MODEL, sizes={"S": 20_000, "N": 5}, span=(0, 1e5), save=[0, 1e3, 1e5], backend="numpy", rtol=1e-6, atol=1e-9)
    logits = -run.y["xi"][:, None, None] * run.attrs["params"]["behind"]
    first = 1 / np.exp(logits - logits[:, :, :1]).sum(axis=2)  # attention to the nearest: above 1/2 its label wins, whatever the others are
    for t, share, most in zip((1e3, 1e5), (first[1:] < 0.5).mean(axis=1), (0.03, 0.002), strict=True):
        yield Measurement(f"five points, share of prompts where others may win, t = {t:g}", float(share), most, 0.0, "<=")


def cube_root() -> Iterable[Measurement]:
    """To t = 1e6: the time between two values of xi, and xi^3 over 6 (ln 2 - 1/2) g t, of two points and of three."""
    run = odesim.integrate(MODEL, sizes={"S": 200, "N": 2}, span=(0, 1e6), save=[0, 1e4, 1e6], **FINE)
    first, last = run.y["xi"][1:]
    passed = quad(lambda x: x**3 / (2 * A * x - 2 * B), first, last)[0]
    yield Measurement("time from 1e4 to 1e6 by the loss at large xi, over it", passed / (1e6 - 1e4), 1.0, 1e-6)
    yield Measurement("two points: xi^3 over 6 (ln 2 - 1/2) t at t = 1e6", float(last**3) / (6 * A * 1e6), 1.0, 2 * B / A / last)
    yield Measurement("two points: loss times xi over 2 ln 2 - 1", float(run.observables["loss"][2] * last) / (2 * A), 1.0, B / A / last)
    run = odesim.integrate(MODEL, sizes={"S": 20_000, "N": 3}, span=(0, 1e5), save=[0, 1e5], backend="numpy", rtol=1e-6, atol=1e-9)
    xi = float(run.final["xi"])
    # 20,000 * g / xi prompts have a gap of that order: four deviations, and the next order
    yield Measurement("three points: xi^3 over 9 (ln 2 - 1/2) t at t = 1e5", xi**3 / (9 * A * 1e5), 1.0, 4 * (xi / 3e4) ** 0.5 + 2 / xi)


NEAREST = (
    Claim(
        "in_context.one_nearest",
        Source(PAPER, "Abstract", "a single softmax layer behaves like a one-nearest neighbour classifier"),
        "in_context.nearest: two points on a circle and on a sphere, five points in 20,000 prompts",
        printed=Statement(
            "one softmax head learns to answer with the label of the nearest point",
            learned,
            "half a unit of the last digit; 10,000 rtol; bounds",
        ),
    ),
    Claim(
        "in_context.nearest_rate",
        Source(PAPER, "Abstract", "how fast, by the density of near ties"),
        "in_context.nearest to t = 1e6, two points, and three in 20,000 prompts",
        printed=Statement(
            "attention sharpens as xi^3 = 6 (ln 2 - 1/2) g t, g = N/2 on a sphere, and the loss falls as t^(-1/3)",
            cube_root,
            "the next order, 1/xi; four standard errors of drawn prompts",
        ),
    ),
)
