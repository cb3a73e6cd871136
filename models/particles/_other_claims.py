"""What is stated of attention without normalisation: on the sphere, and of tokens that grow."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull
from scipy.special import iv

import odesim
from odesim.lab.claims import Claim, Measurement, Statement
from odesim.symbolic import Source

PAPER = "geshkovski2023mathematical"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}


def on_circle(theta: np.ndarray) -> np.ndarray:
    """Tokens (n, 2) at these angles."""
    return np.stack([np.cos(theta), np.sin(theta)], axis=1)


def equations() -> Iterable[Measurement]:
    """Slopes of inner products at the start beside the equations for equal products, two clusters, and a wave on the circle."""
    short: dict[str, Any] = {"span": (0, 1e-4), "save": [0, 1e-4], **FINE}
    for gamma, beta in ((0.0, 1.0), (0.3, 4.0), (-0.15, 2.0)):
        values, vectors = np.linalg.eigh((1 - gamma) * np.eye(6) + gamma)
        run = odesim.integrate("particles.unnormalised", params={"beta": beta, "x0": vectors * np.sqrt(values)}, **short)
        slope = float(np.diff(run.observables["product"][:, 0, 1])[0] / 1e-4)
        want = 2 / 6 * np.exp(beta * gamma) * (1 - gamma) * (5 * gamma + 1)
        yield Measurement(f"equal products {gamma:g}, beta = {beta:g}: slope over formula", slope / want, 1.0, 0.01)
    x = np.repeat([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0]], [7, 3], axis=0)
    run = odesim.integrate("particles.unnormalised", params={"beta": 3, "x0": x}, **short)
    slope = float(np.diff(run.observables["product"][:, 0, 9])[0] / 1e-4)
    yield Measurement("two clusters: slope over formula", slope / ((1 - 0.36) * np.exp(3 * 0.6)), 1.0, 0.01)
    even = 2 * np.pi * np.arange(256) / 256
    for k in (1, 3):
        start = even + 1e-6 * np.sin(k * even)
        run = odesim.integrate("particles.unnormalised", params={"beta": 4, "x0": on_circle(start)}, span=(0, 0.1), save=[0, 0.1], **FINE)
        wave = np.sin(k * even)
        end = np.unwrap(np.arctan2(run.final["x"][:, 1], run.final["x"][:, 0]))
        rate = float(np.log((end - even) @ wave / ((start - even) @ wave)) / 0.1)
        yield Measurement(f"wave of {k} crests, beta = 4: rate over formula", rate / float(k**2 * iv(k, 4) / 4), 1.0, 1e-3)


def last_rate() -> Iterable[Measurement]:
    """How fast the last differences fall, beta = 1: exp(beta) for each tangent component, twice that for inner products."""
    run = odesim.integrate("particles.unnormalised", params={"beta": 1}, span=(0, 6), save=[0, 5, 6], **FINE)
    least = 1 - run.observables["product"].min(axis=(1, 2))
    yield Measurement("rate of 1 - product over 2e", float(np.log(least[1] / least[2]) / (2 * np.e)), 1.0, least[1])


AREAS = {0: 75.1658, 1: 70.4633, 2: 68.6374, 3: 67.8957, 5: 67.4567}  # by another integrator


def hull() -> Iterable[Measurement]:
    """The area of the convex hull of twenty tokens in the plane, V = I, at 26 times to t = 5."""
    run = odesim.integrate("particles.rescaled", span=(0, 5), save=26, **FINE)
    areas = np.array([ConvexHull(z).volume for z in run.y["z"]])
    yield Measurement("largest growth of the area", float(np.diff(areas).max()), 0.0, 1e-8, "<=")
    for t, want in AREAS.items():
        yield Measurement(f"area at t = {t}", float(areas[5 * t]), want, 6e-5)


OTHERS = (
    Claim(
        "particles.unnormalised_equations",
        Source(PAPER, "eq. USA", "equal products, two clusters, the circle"),
        "particles.unnormalised from equal products, two clusters, even tokens on a circle",
        printed=Statement(
            "products: 2/n exp(beta g)(1-g)((n-1)g+1); clusters: (1-r^2) exp(beta r); mode k: k^2 I_k(beta)/beta",
            equations,
            "the next order of a step of 1e-4 times rates to 50, of a wave of 1e-6 over .1",
        ),
    ),
    Claim(
        "particles.last_rate",
        Source(PAPER, "eq. USA", "near one cluster"),
        "particles.unnormalised, beta = 1, to t = 6",
        printed=Statement("the last differences fall as exp(-exp(beta) t)", last_rate, "the next order, 1 - product itself, 2e-6 at t = 5"),
    ),
    Claim(
        "particles.hull",
        Source("geshkovski2023emergence", "Section 3", "V = I"),
        "particles.rescaled, twenty tokens in the plane, to t = 5",
        printed=Statement(
            "the convex hull of the rescaled tokens never grows",
            hull,
            "100 times the tolerance of the run; half a unit of the last recorded digit",
        ),
    ),
)
