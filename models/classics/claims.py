"""What is stated of deep linear networks, and what holds."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.classics._committee_claims import COMMITTEE
from odesim.symbolic import Source

PAPER = "saxe2014exact"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-14, "backend": "numpy"}
STRENGTHS = np.array([3.0, 1.5, 0.5])


def sigmoids() -> Iterable[Measurement]:
    """Three modes of two layers from a = 1e-3, at t = 2 and 4."""
    run = odesim.integrate("classics.deep_linear_modes", params={"s": STRENGTHS}, span=(0, 4), save=[0, 2, 4], **FINE)
    grown = np.exp(2 * STRENGTHS * run.t[:, None])
    yield deviation("all modes", run.y["a"], STRENGTHS * grown / (grown - 1 + STRENGTHS / 1e-3), 1e-8)
    for row, digits in ((1, (2.9457207, 0.3180898, 0.00729583)), (2, (2.99999966, 1.48631082, 0.04931208))):
        for s, a, want in zip(STRENGTHS, run.y["a"][row], digits, strict=True):
            yield Measurement(f"s = {s:g} at t = {run.t[row]:g}", float(a), want, 6e-8 if row == 1 and s > 1 else 6e-9)


def half_times() -> Iterable[Measurement]:
    """When each of three modes of two layers from a = 1e-3 has half of its strength."""
    events = [f"half{k}: a[{k}] - {s / 2}" for k, s in enumerate(STRENGTHS)]
    run = odesim.integrate("classics.deep_linear_modes", params={"s": STRENGTHS}, span=(0, 10), save=2, events=events, **FINE)
    for k, s in enumerate(STRENGTHS):
        yield Measurement(f"s = {s:g}", run.events[f"half{k}"][0]["t"], float(np.log(s / 1e-3 - 1) / (2 * s)), 1e-7)


def three_layers() -> Iterable[Measurement]:
    """The weakest mode of three layers, and the flow of the layers in other bases beside the modes."""
    run = odesim.integrate("classics.deep_linear_modes", params={"s": STRENGTHS, "L": 3}, span=(0, 20), save=[0, 10, 20], **FINE)
    yield Measurement("s = 0.5 at t = 10", float(run.y["a"][1, 2]), 0.00785878, 6e-9)
    yield Measurement("s = 0.5 at t = 20", float(run.y["a"][2, 2]), 0.45506421, 6e-9)
    left, _, right = np.linalg.svd(np.random.default_rng(0).normal(size=(3, 3)))
    first, second = (np.linalg.qr(np.random.default_rng(k).normal(size=(3, 3)))[0] for k in (1, 2))
    start = {"W1": 0.1 * first @ right, "W2": 0.1 * second @ first.T, "W3": 0.1 * left @ second.T}
    given: dict[str, Any] = {"params": {"Sigma": left @ np.diag(STRENGTHS) @ right}, "initial": start, "span": (0, 20)}
    flow = odesim.integrate("classics.deep_linear", save=[0, 10, 20], **given, **FINE)
    found = np.einsum("ji,tjk,lk->til", left, flow.observables["product"], right)
    yield deviation("modes of the layers", np.diagonal(found, axis1=1, axis2=2), run.y["a"], 1e-7)


def balance() -> Iterable[Measurement]:
    """W2^T W2 - W1 W1^T along a flow from random layers."""
    start = {name: np.random.default_rng(k).normal(size=(3, 3)) / 2 for k, name in enumerate(("W1", "W2", "W3"))}
    run = odesim.integrate("classics.deep_linear", initial=start, save=9, **FINE)
    W1, W2 = run.y["W1"], run.y["W2"]
    now = np.swapaxes(W2, 1, 2) @ W2 - W1 @ np.swapaxes(W1, 1, 2)
    yield deviation("change of the balance", now, now[0], 1e-8)


CLAIMS = (
    Claim(
        "classics.sigmoids",
        Source(PAPER, "Section 1.3", "two layers"),
        "classics.deep_linear_modes, s = 3, 1.5, .5 from 1e-3",
        printed=Statement(
            "a(t) = s exp(2 s t) / (exp(2 s t) - 1 + s / a(0))", sigmoids, "half a unit of the last recorded digit and a bit"
        ),
    ),
    Claim(
        "classics.half_times",
        Source(PAPER, "Section 1.3", "two layers"),
        "classics.deep_linear_modes, s = 3, 1.5, .5 from 1e-3",
        printed=Statement("a mode has half of its strength at ln(s / a(0) - 1) / (2 s)", half_times, "1000 times the relative tolerance"),
        depends=("classics.sigmoids",),
    ),
    Claim(
        "classics.three_layers",
        Source(PAPER, "Section 2", "L layers"),
        "classics.deep_linear from balanced layers in random bases, and classics.deep_linear_modes with L = 3",
        printed=Statement("each mode obeys da/dt = L a^(2 - 2/L) (s - a)", three_layers, "1000 times the tolerance of both runs"),
    ),
    Claim(
        "classics.balance",
        Source(PAPER, "Section 2", "conserved quantities"),
        "classics.deep_linear from random layers",
        printed=Statement("W2^T W2 - W1 W1^T does not change", balance, "100 times the relative tolerance 1e-10"),
    ),
    *COMMITTEE,
)
