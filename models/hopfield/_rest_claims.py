"""What is stated of the rest states of a continuous memory: the derivative of an update, and averages of patterns that are close."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.spatial.distance import pdist
from scipy.special import softmax

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.symbolic import Source

PAPER = "ramsauer2021hopfield"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}


def updated(X: np.ndarray, beta: float, xi: np.ndarray) -> np.ndarray:
    """xi (d,) after one update."""
    params: dict[str, Any] = {"X": X, "beta": beta}
    return np.asarray(odesim.integrate("hopfield.update", params=params, initial={"xi": xi}, steps=1, backend="numpy").final["xi"])


def derivative() -> Iterable[Measurement]:
    """Differences of an update beside beta X (diag p - p p^T) X^T, d = 6, N = 9, its eigenvalues, and the bound of two patterns."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, xi, beta, h = rng.normal(size=(6, 9)), rng.normal(size=6), 0.8, 1e-5
        found = np.array([(updated(X, beta, xi + h * e) - updated(X, beta, xi - h * e)) / (2 * h) for e in np.eye(6)]).T
        p = np.exp(beta * X.T @ xi)
        p /= p.sum()
        J = beta * X @ (np.diag(p) - np.outer(p, p)) @ X.T
        yield deviation(f"differences, seed {seed}", found, J, 1e-8)
        values = np.linalg.eigvalsh((found + found.T) / 2)
        yield Measurement(f"least eigenvalue, seed {seed}", values[0], 0.0, 1e-8, ">=")
        farthest = pdist(X.T).max()
        yield Measurement(f"largest over beta D^2 / 4, seed {seed}", values[-1] / (beta * farthest**2 / 4), 1.0, 0.0, "<=")
        yield Measurement(f"beta D^2 / 4 over 2 beta M^2, seed {seed}", farthest**2 / 8 / (X**2).sum(axis=0).max(), 1.0, 0.0, "<=")
    X = np.random.default_rng(3).normal(size=(6, 2))
    X /= np.linalg.norm(X, axis=0)
    across = (X[:, 0] - X[:, 1]) / pdist(X.T)[0]
    ends = [updated(X, 0.8, X.mean(axis=1) + h * across) @ across for h in (1e-5, -1e-5)]
    middle = (ends[0] - ends[1]) / 2e-5
    yield Measurement(
        "two patterns of length 1, half way: eigenvalue over beta D^2 / 4", float(middle / (0.2 * pdist(X.T)[0] ** 2)), 1.0, 1e-8
    )


def gradient() -> Iterable[Measurement]:
    """Differences of the energy beside xi - X p, and its slope along the flow beside -|xi - X p|^2 / tau, d = 6, N = 9."""
    h, tau = 1e-5, 1.3
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, xi, beta = rng.normal(size=(6, 9)), rng.normal(size=6), 0.8

        def run(start: np.ndarray, X: np.ndarray = X, beta: float = beta) -> Any:
            params: dict[str, Any] = {"X": X, "beta": beta, "tau": tau}
            return odesim.integrate("hopfield.modern", params=params, initial={"xi": start}, span=(0, 2e-3), save=3, **FINE)

        def slope(x: np.ndarray, X: np.ndarray = X, beta: float = beta) -> np.ndarray:
            return x - X @ softmax(beta * X.T @ x)

        ends = np.array([[run(xi + sign * h * e).observables["energy"][0] for sign in (1, -1)] for e in np.eye(6)])
        yield deviation(f"gradient by differences, seed {seed}", (ends[:, 0] - ends[:, 1]) / (2 * h), slope(xi), 1e-9)
        short = run(xi)
        found = float(short.observables["energy"][2] - short.observables["energy"][0]) / 2e-3
        middle = slope(short.y["xi"][1])
        yield Measurement(f"slope along the flow, seed {seed}", found, float(-middle @ middle / tau), 1e-5)


def groups(c: float) -> np.ndarray:
    """X (9, 8): two groups of four patterns, 3 e_0 and -3 e_0, each with a part of length sqrt(c) of its own."""
    return np.vstack([np.repeat([3.0, -3.0], 4), np.sqrt(c) * np.eye(8)])


def of_group(c: float, start: np.ndarray, end: float) -> np.ndarray:
    """p (8,) at the end of the flow at beta = 1."""
    run = odesim.integrate("hopfield.modern", params={"X": groups(c), "beta": 1.0}, initial={"xi": start}, span=(0, end), save=2, **FINE)
    return np.asarray(run.observables["p"][-1])


def metastable() -> Iterable[Measurement]:
    """The average of the first group at c = 3.9 and 4.1; one of its patterns at c = 3.2, 3.5 and 5. The other group has exp(-18) of it."""
    for c in (3.9, 4.1):
        X = groups(c)
        average, apart = X[:, :4].mean(axis=1), (X[:, 0] - X[:, 1]) / np.sqrt(2 * c)
        given: dict[str, Any] = {"params": {"X": X, "beta": 1.0}, "span": (0, 10), "save": 2, **FINE}
        xi = odesim.integrate("hopfield.modern", initial={"xi": average + 1e-4 * apart}, **given).final["xi"]
        yield Measurement(f"c = {c:g}: rate at which the average is left", float(np.log(xi @ apart / 1e-4) / 10), c / 4 - 1, 1e-6)
    for c, kept in ((3.2, False), (3.5, True), (5.0, True)):
        p = of_group(c, groups(c)[:, 0], 400)
        a = 0.25
        if kept:
            a = brentq(lambda a, c=c: a - 1 / (1 + 3 * np.exp(-c * (a - (1 - a) / 3))), 0.6, 1)
        yield Measurement(f"c = {c:g}: share of the pattern it starts from", p[0], a, 1e-6)
        yield Measurement(f"c = {c:g}: share of the other group", p[4:].sum(), 0.0, 1e-6)


REST = (
    Claim(
        "hopfield.gradient",
        Source(PAPER, "eq. 2"),
        "hopfield.modern, its energy by differences of 1e-5 and along .002 of time, d = 6, N = 9, beta = .8, tau = 1.3, three draws",
        printed=Statement(
            "the flow is that down the energy: grad E = xi - X p, tau dE/dt = -|xi - X p|^2",
            gradient,
            "rounding of the energy over 1e-5, the square of 1e-5; ten times the square of .001",
        ),
    ),
    Claim(
        "hopfield.derivative",
        Source(PAPER, "eq. 3", "the derivative of an update; the bound by the diameter D is ours"),
        "hopfield.update by differences of 1e-5, d = 6, N = 9, beta = .8, three draws, and two patterns",
        printed=Statement(
            "J = beta X (diag p - p p^T) X^T has eigenvalues from 0 to beta D^2 / 4 <= 2 beta M^2: the flow has none below -1",
            derivative,
            "the square of the step 1e-5, and rounding over it",
        ),
    ),
    Claim(
        "hopfield.metastable",
        Source(PAPER, "eq. 3", "metastable states; groups of patterns with orthogonal parts"),
        "hopfield.modern with two groups of four patterns, from their average and from one of them, beta = 1",
        printed=Statement(
            "the average of m patterns that are close, and far from the rest, is stable for c < m, one of them from c_s of m on",
            metastable,
            "exp(-18) of the other group times what it pulls; the square of 1e-4",
        ),
        depends=("hopfield.one_pattern",),
    ),
)
