"""What is stated of stochastic gradients as diffusions, and what holds: least squares, where second moments are known exactly."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import expm

import odesim
from odesim.lab.claims import Claim, Measurement, Statement
from odesim.models.noise._path_claims import PATH_CLAIMS
from odesim.symbolic import Source

LAM, START, S2, END = np.array([2.0, 1.0, 0.3]), np.array([1.0, -1.0, 2.0]), 0.25, 2.0
ETA, RUNS = 0.05, 20_000


def kick(eta: float, c: Any) -> Any:
    """What the noise of one label and input adds to c = E delta^2 (3,) in a unit of time."""
    return eta * (LAM * (LAM @ c + S2) + LAM**2 * c)


def after_steps(eta: float, second: float, h: float, end: float = END) -> Any:
    """c (3,) at the end of Euler steps of h: c <- (1 - h m)^2 c + h kick(c). With h = eta and second = 0 that is SGD itself."""
    c = START**2
    for _ in range(round(end / h)):
        c = (1 - h * LAM * (1 + second * eta * LAM / 2)) ** 2 * c + h * kick(eta, c)
    return c


def after_diffusion(eta: float, second: float, end: float = END) -> Any:
    """c (3,) at the end: c' = -2 m c + kick(c), which is linear."""
    rate = np.zeros((4, 4))
    rate[:3, :3] = eta * (np.outer(LAM, LAM) + np.diag(LAM**2)) - 2 * np.diag(LAM * (1 + second * eta * LAM / 2))
    rate[:3, 3] = eta * S2 * LAM
    return (expm(end * rate) @ [*START**2, 1.0])[:3]


def mean_risk(name: str, risks: Any, c: Any) -> Measurement:
    """The mean of risks of independent runs, within four standard errors of that of the moments c."""
    return Measurement(name, float(np.mean(risks)), float(LAM @ c) / 2, 4 * float(np.std(risks)) / len(risks) ** 0.5)


def sgd() -> Any:
    """Risks (RUNS,) of SGD, one sample a step."""
    rng, delta = np.random.default_rng(7), np.tile(START, (RUNS, 1))
    for _ in range(round(END / ETA)):
        x = rng.normal(size=delta.shape) * np.sqrt(LAM)
        delta -= ETA * x * ((x * delta).sum(axis=1) - np.sqrt(S2) * rng.normal(size=RUNS))[:, None]
    return delta**2 @ LAM / 2


def weak_order(second: float, order: int) -> Iterable[Measurement]:
    """SGD and the diffusion by 20,000 runs each, beside their exact second moments; the gap of these as eta is halved."""
    if not second:
        yield mean_risk("risk of SGD, eta = .05", sgd(), after_steps(ETA, 0, ETA))
    given: dict[str, Any] = {"lam": LAM, "s2": S2, "eta": ETA, "second": second}
    for h in (ETA, 0.005):
        run = odesim.ensemble(
            "noise.sgd_least_squares", params=given, initial={"delta": START}, span=(0, END), step=h, members=RUNS, observe="risk"
        )
        yield mean_risk(f"risk of the diffusion in steps of {h:g}", run.risk.values[:, -1], after_steps(ETA, second, h))
    etas = 0.05 / 2.0 ** np.arange(1, 4)
    gaps = [np.abs(after_steps(eta, 0, eta) - after_diffusion(eta, second)).max() for eta in etas]
    for eta, ratio in zip(etas, np.log2(np.array(gaps[:-1]) / gaps[1:]), strict=False):
        yield Measurement(f"order of the gap between eta = {eta:g} and half of it", float(ratio), order, 0.2)


def balanced() -> Iterable[Measurement]:
    """a^2 - b^2 at t = 10 on 200 paths in steps of .0025, beside exp(-eta int (2 r^2 + s2) dt); and its mean, beside that of SGD."""
    eta, s2, end = 0.02, 0.25, 10.0
    given: dict[str, Any] = {"params": {"eta": eta, "s2": s2}, "span": (0, end), "observe": ("balance", "loss")}
    run = odesim.ensemble("noise.two_layer", members=200, step=0.0025, save=4001, **given)
    integral = np.trapezoid(4 * run.loss.values + s2, run.time.values, axis=1)
    off = np.log(run.balance.values[:, -1] / run.balance.values[:, 0]) + eta * integral
    yield Measurement("logarithm of the balance, farthest from the law", float(np.abs(off).max()), 0.0, 0.0025)
    many = odesim.ensemble("noise.two_layer", members=RUNS, **given).balance.values[:, -1]
    rng, (a, b) = np.random.default_rng(8), np.tile([[1.2], [0.5]], RUNS)
    for _ in range(round(end / eta)):
        x = rng.normal(size=RUNS)
        g = eta * x * ((a * b - 1) * x - np.sqrt(s2) * rng.normal(size=RUNS))
        a, b = a - g * b, b - g * a
    sgd, doubt = a**2 - b**2, 4 * float(np.hypot(many.std(), np.std(a**2 - b**2))) / RUNS**0.5
    yield Measurement("mean balance of SGD", float(sgd.mean()), float(many.mean()), doubt + eta / 4)
    yield Measurement("mean balance of SGD, recorded", float(sgd.mean()), 1.12484, 4 * float(sgd.std()) * (2 / RUNS) ** 0.5)
    loss = (a * b - 1) ** 2 / 2
    yield Measurement("mean loss of SGD, recorded", float(loss.mean()), 0.003094, 4 * float(loss.std()) * (2 / RUNS) ** 0.5)
    yield Measurement("mean balance, lost at least", 1.19 - float(many.mean()), 0.05, 0.0, ">=")


WITHIN = "means: four standard errors of 20,000 runs; orders: .2, of learning rates that are not small"


def of_order(name: str, text: str, second: float, order: int) -> Claim:
    """The claim that a diffusion has the law of SGD up to an order."""
    return Claim(
        f"noise.{name}",
        Source("li2017stochastic", "Theorem 1"),
        "least squares with three weights, SGD by samples and the diffusion, 20,000 runs to t = 2",
        printed=Statement(text, partial(weak_order, second, order), WITHIN),
        models=("noise.sgd_least_squares",),
    )


CLAIMS = (
    *PATH_CLAIMS,
    Claim(
        "noise.balance",
        Source("li2017stochastic", "Theorem 1", "two linear layers"),
        "two weights in a row, 200 paths and 20,000 of SGD to t = 10",
        printed=Statement(
            "a^2 - b^2 of two layers, which gradient flow keeps, falls under SGD as exp(-eta int (2 r^2 + s2) dt)",
            balanced,
            "paths: the step; means: four standard errors and eta / 4",
        ),
        models=("noise.two_layer",),
        slow=True,
    ),
    of_order("first_order", "SGD has the law of dX = -grad f dt + (eta Sigma)^(1/2) dW up to order eta", 0.0, 1),
    of_order("second_order", "with the drift -grad (f + eta |grad f|^2 / 4) it has the law of SGD up to order eta^2", 1.0, 2),
)
