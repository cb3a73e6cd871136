"""What is stated of a matrix that learns to associate tokens, and what holds."""

from collections.abc import Iterable

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import lambertw

import odesim
from odesim.lab.claims import Claim, Measurement, deviation
from odesim.symbolic import Source


def columns() -> Iterable[Measurement]:
    """The whole matrix (7, 5), five tokens with p ~ 1/x and labels of their own, beside the margins; and Lambert's W."""
    p = 1 / np.arange(1, 6)
    p, labels = p / p.sum(), np.array([3, 0, 3, 6, 1])

    def slopes(t: float, flat: np.ndarray) -> np.ndarray:
        W = flat.reshape(7, 5)
        e = np.exp(W - W.max(axis=0))
        wanted = np.eye(7)[:, labels]
        return ((wanted - e / e.sum(axis=0)) * p).ravel()

    times = np.linspace(0, 60, 7)
    W = solve_ivp(slopes, (0, 60), np.zeros(35), t_eval=times, rtol=1e-11, atol=1e-13, method="DOP853").y.T.reshape(-1, 7, 5)
    own = W[:, labels, np.arange(5)]
    other = W[:, (labels + 1) % 7, np.arange(5)]
    run = odesim.integrate("memory.softmax_regression", params={"p": p}, span=(0, 60), save=times, rtol=1e-11, atol=1e-13, backend="numpy")
    yield deviation("margins of the matrix", run.y["m"], own - other, 1e-9)
    A = (1 + 7 * np.outer(times, p)) / 6
    yield deviation("Lambert's W", run.y["m"], A - np.array([[lambertw(x).real for x in row] for row in (np.exp(A) / 6).tolist()]), 1e-9)


def collapse() -> Iterable[Measurement]:
    """Margins at equal p t, ten tokens: all on one curve."""
    run = odesim.integrate("memory.softmax_regression", save=6001, rtol=1e-10, atol=1e-12, backend="numpy")
    p = run.attrs["params"]["p"]
    at = [np.interp(3.0, p[x] * run.t, run.y["m"][:, x]) for x in range(10)]
    yield deviation("margins at p t = 3", at, at[0], 1e-4)
    yield Measurement("margin over ln(7 p t) at p t = 100", run.y["m"][-1, 0] / np.log(7 * p[0] * run.t[-1]), 1.0, 0.03)


def power_law() -> Iterable[Measurement]:
    """p ~ x^-2, 1000 tokens: the slope of ln loss against ln t, from t = 1e3 to 1e4, beside -(1 - 1/2)."""
    p = np.arange(1.0, 1001) ** -2
    run = odesim.integrate(
        "memory.softmax_regression", params={"p": p / p.sum()}, span=(0, 1e4), save=[0, 1e3, 1e4], rtol=1e-8, atol=1e-10, backend="numpy"
    )
    yield Measurement("slope", np.log10(run.observables["loss"][2] / run.observables["loss"][1]), -0.5, 0.03)


PAPER = "bietti2023birth"
CLAIMS = (
    Claim(
        "memory.closed_form",
        Source(PAPER, "Section 3", "one associative memory, from zero"),
        "memory.softmax_regression beside the whole matrix, M = 7, five tokens",
        "columns decouple, and exp(m) + (M-1) m = 1 + M p t",
        columns,
        "100 times the tolerance of both runs",
    ),
    Claim(
        "memory.collapse",
        Source(PAPER, "Section 3", "frequent tokens first"),
        "memory.softmax_regression, ten tokens",
        "margins depend on p t alone, late as ln(M p t)",
        collapse,
        "interpolation; ln ln over ln",
        depends=("memory.closed_form",),
    ),
    Claim(
        "memory.power_law",
        Source(PAPER, "Section 3", "tokens of a power law"),
        "memory.softmax_regression, 1000 tokens, p ~ x^-2",
        "for p ~ x^-a the loss falls as t^-(1 - 1/a)",
        power_law,
        "1000 tokens, not infinitely many",
        depends=("memory.closed_form",),
    ),
)
