"""What is stated of linear networks that learn without negative pairs, as matrices and in their modes, and what holds."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, deviation
from odesim.models.self_supervised._mode_claims import DIRECT, EMA, ENDS, FINE, HIGH, MODE_CLAIMS, MODES, PAPER
from odesim.symbolic import Source

SIMSIAM, BYOL, NO_STOP = (f"self_supervised.{name}" for name in ("simsiam", "byol", "no_stop"))
P0, S0 = np.array([0.05, 0.3, 0.6]), np.array([0.5, 0.3, 0.7])
TABLE = {
    2.0: ((0.69146396, 0.65169885, 0.83798939), (0.90206394, 0.60366159, 0.99195511)),
    10.0: ((0.87750364, 0.87221300, 0.87491965), (0.99355379, 0.85511460, 0.91825624)),
    60.0: ((0.86742153, 0.86726893, 0.86733810), (0.75651442, 0.75388364, 0.75507350)),
}
"""t -> p and s of the modes that start at P0 and S0, by the matrices and by the modes with two other integrators."""


def rotation(seed: int, size: int) -> Any:
    """An orthogonal matrix (size, size)."""
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]


def aligned() -> tuple[Any, dict[str, Any]]:
    """(U (3, 3), start) of matrices with the eigenvectors U and the modes P0 and S0."""
    U, V = rotation(1, 3), rotation(2, 5)[:3]
    W = U @ np.diag(np.sqrt(S0)) @ V
    return U, {"W": W, "Wp": U @ np.diag(P0) @ U.T}


def modes_of_matrices() -> Iterable[Measurement]:
    """Matrices in random bases, in the basis they start in: the diagonals are the modes, and nothing else is there."""
    U, start = aligned()
    given: dict[str, Any] = {"span": (0, 60), "save": [0, *TABLE], **FINE}
    flow = odesim.integrate(SIMSIAM, initial=start, **given)
    modes = odesim.integrate(MODES, initial={"p": P0, "s": S0}, sizes={"n": 3}, **given)
    inside = {name: U.T @ rows @ U for name, rows in (("p", flow.y["Wp"]), ("s", flow.observables["F"]))}
    for name, rows in inside.items():
        diagonal = np.diagonal(rows, axis1=1, axis2=2)
        yield deviation(f"{name} of the matrices and of the modes", diagonal, modes.y[name], 1e-8)
        yield deviation(f"what leaves the basis, {name}", rows - diagonal[:, None] * np.eye(3), 0.0, 1e-9)
        yield deviation(f"{name} at t = 2, 10, 60", diagonal[1:], [row[name == "s"] for row in TABLE.values()], 1e-8)


def balance() -> Iterable[Measurement]:
    """W W^T - Wp^T Wp / alpha of a random start, with a moving average, alpha = 1.7, beside its start times exp(-2 eta t)."""
    rng = np.random.default_rng(6)
    start = {"W": rng.normal(size=(3, 5)) / 2, "Wp": rng.normal(size=(3, 3)) / 2, "Wa": rng.normal(size=(3, 5)) / 2}
    found = odesim.integrate(BYOL, initial=start, params={"alpha": 1.7, "beta": 0.3}, span=(0, 20), save=21, **FINE)
    Wp = found.y["Wp"]
    now = found.observables["F"] - np.swapaxes(Wp, 1, 2) @ Wp / 1.7
    yield deviation("balance up to t = 20", now, np.exp(-0.08 * found.t)[:, None, None] * now[0], 1e-8)
    yield Measurement("balance at the start, largest entry at least", np.abs(now[0]).max(), 0.5, 0.0, ">=")


def alignment() -> Iterable[Measurement]:
    """A random start that is not symmetric: asymmetry of Wp, commutator with F, and the eigenvalues in the end."""
    found = odesim.integrate(SIMSIAM, span=(0, 300), save=[0, 5, 20, 60, 300], **FINE)
    for name in ("asymmetry", "commutator"):
        seen = found.observables[name]
        for k, share in ((2, 0.02), (3, 1e-6)):
            yield Measurement(f"{name} at t = {found.t[k]:g}, part of the first", seen[k] / seen[0], share, 0.0, "<=")
    yield deviation("eigenvalues of Wp in the end", np.linalg.eigvalsh(found.final["Wp"]), HIGH, 1e-6)


def no_stop() -> Iterable[Measurement]:
    """One weight and one predictor without weight decay, at t = 5 and 50; and the rate of decay that H allows, of matrices."""
    given: dict[str, Any] = {"initial": {"W": [[1.0]], "Wp": [[0.5]]}, "sizes": {"n1": 1, "n2": 1}, "params": {"eta": 0.0}}
    found = odesim.integrate(NO_STOP, **given, span=(0, 50), save=[0, 5, 50], **FINE)
    yield deviation("w at t = 5, 50", found.y["W"][1:, 0, 0], (0.340736776, 5.897e-5), 1e-8)
    yield Measurement("p at t = 5", found.y["Wp"][1, 0, 0], 0.857571219, 1e-9)
    found = odesim.integrate(NO_STOP, span=(0, 40), save=41, **FINE)
    least = [
        np.linalg.eigvalsh(0.1 * (P.T @ P + np.eye(3)) + (P - np.eye(3)).T @ (P - np.eye(3)) + 0.04 * np.eye(3))[0] for P in found.y["Wp"]
    ]
    bound = found.observables["size"][0] * np.exp(-2 * min(least) * found.t)
    yield Measurement("|W|^2 over its bound, largest", (found.observables["size"] / bound).max(), 1.0, 1e-9, "<=")
    yield Measurement("least eigenvalue of H", min(least), 0.14, 0.0, ">=")


def beside(model: str, steps: int, seeds: int, **settings: Any) -> Any:
    """The task simsiam to t = steps / 100 beside a System, at five times."""
    return odesim.compare(model, task="simsiam", settings=settings, seeds=range(seeds), steps=steps, save=6)


def trained() -> Iterable[Measurement]:
    """16 trainings from P0 and S0 in the mean, at t = 2 and 10, beside the table; and 16 of two modes with a moving average, at t = 20."""
    found = beside(MODES, 1000, 16, p=P0, s=S0)
    for row, t in ((1, 2.0), (5, 10.0)):
        for name, wide, want in zip("ps", (5e-3, 1e-2), TABLE[t], strict=True):
            yield deviation(f"mean {name} at t = {t:g}, trained", found.training[name][:, row].mean(axis=0), want, wide)
            yield deviation(f"{name} there, flow", found.theory[name][0, row], want, 1e-6)
    found = beside(EMA, 2000, 16, p=[0.05, 0.35], s=[0.1, 0.1], n2=2, beta=0.4)
    at_20 = {"p": (0.8370703, 0.8366285), "s": (0.7203716, 0.6954045), "tau": (0.9751485, 0.9754292)}
    for name, both in at_20.items():
        yield deviation(f"mean {name} at t = 20, a moving average", found.training[name][:, -1].mean(axis=0), both, 1e-2)
        yield deviation(f"{name} there, flow", found.theory[name][0, -1], both, 1e-6)


def trained_collapse() -> Iterable[Measurement]:
    """p of three modes of four trainings from p = .6, s = .5 at t = 50, below and above the critical decay."""
    for decay, wide in ((0.2, 5e-3), (0.25, 4e-3)):
        found = beside(MODES, 5000, 4, p=[0.6] * 3, s=[0.5] * 3, decay=decay)
        yield Measurement(f"mean p at t = 50, decay {decay:g}", found.training["p"][:, -1].mean(), ENDS[decay][0], wide)
        yield deviation("p there, flow", found.theory["p"][0, -1], ENDS[decay][0], 1e-6)


def trained_direct() -> Iterable[Measurement]:
    """Two modes of eight trainings from s = .5, .001 to t = 30, without eps and with it."""
    for eps, wide in ((0.0, 2e-5), (0.1, 0.015)):
        found = beside(DIRECT, 3000, 8, s=[0.5, 0.001], n2=2, predictor="set", eps=eps)
        seen, flow = (np.square(side["w"][:, -1]).mean(axis=0) for side in (found.training, found.theory))
        yield Measurement(f"small mode, mean s at t = 30, eps = {eps:g}", seen[1], flow[1], wide)
        yield Measurement(f"large mode, eps = {eps:g}", seen[0], (HIGH / (1 + eps)) ** 2, 6e-3)
    yield Measurement("small mode, s of the flow with eps", flow[1], 0.5, 0.0, ">=")


SAMPLED = "four standard errors of the seeds, and a part of the learning rate, .01"
CLAIMS = (
    *MODE_CLAIMS,
    Claim(
        "self_supervised.trained",
        Source(PAPER, "eqs. 11 and 12", "by SGD on sampled views"),
        "the task simsiam, rate .01, batches of 64, 16 seeds, beside self_supervised.modes and modes_ema",
        "trained networks follow the modes, in the mean",
        trained,
        SAMPLED,
        models=(MODES, EMA),
        depends=("self_supervised.modes_of_matrices",),
    ),
    Claim(
        "self_supervised.trained_collapse",
        Source(PAPER, "Section 3.2", "below eq. 16, by SGD on sampled views"),
        "the task simsiam, weight decay .2 and .25, four seeds, beside self_supervised.modes",
        "trained networks collapse above eta = 1/(4 (1 + sigma2)), and not below",
        trained_collapse,
        SAMPLED,
        depends=("self_supervised.collapse",),
    ),
    Claim(
        "self_supervised.trained_direct",
        Source(PAPER, "Section 4", "by SGD on sampled views, the predictor set in each step"),
        "the task simsiam with predictor=set, eight seeds, beside self_supervised.direct_pred",
        "a network with a predictor that is set learns a small mode by eps alone",
        trained_direct,
        SAMPLED,
        depends=("self_supervised.direct_pred_modes",),
    ),
    Claim(
        "self_supervised.modes_of_matrices",
        Source(PAPER, "eqs. 11 and 12"),
        "self_supervised.simsiam from common eigenvectors in random bases, beside self_supervised.modes",
        "with common eigenvectors the modes decouple",
        modes_of_matrices,
        "100 times the relative tolerance",
    ),
    Claim(
        "self_supervised.balance",
        Source(PAPER, "Theorem 1"),
        "self_supervised.byol from random matrices, alpha = 1.7, beta = .3",
        "W W^T = Wp^T Wp / alpha + exp(-2 eta t) C, whatever Wa does",
        balance,
        "100 times the relative tolerance",
    ),
    Claim(
        "self_supervised.alignment",
        Source(PAPER, "Section 3", "Assumption 3, Theorem 3, without the symmetry that it assumes"),
        "self_supervised.simsiam from random matrices",
        "Wp becomes symmetric, and its eigenspaces align with those of F",
        alignment,
        "none: bounds",
    ),
    Claim(
        "self_supervised.stop_gradient",
        Source(PAPER, "Theorem 2"),
        "self_supervised.no_stop, scalars and matrices",
        "without the stop-gradient W -> 0, as fast as the least eigenvalue of H",
        no_stop,
        "a unit of the last digit",
    ),
)
