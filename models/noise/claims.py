"""What is stated of stochastic gradients as diffusions, and of steps of stochastic equations: moments, orders, rest and escape."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.linalg import expm

import odesim
from odesim.lab.claims import Claim, Measurement
from odesim.symbolic import Source

BOOK = "kloeden1992numerical"
GEOMETRIC, AREA, WELL = (f"noise.{name}" for name in ("geometric", "area", "double_well"))


def orders(model: str, method: str, step: float) -> tuple[float, float]:
    """(strong, weak) order of the first state at t = 1, by halving the step four times on 4,000 paths."""
    found = odesim.convergence(model, method=method, step=step, levels=4, members=4000, span=(0, 1)).attrs
    return found["strong_order"]["x"], found["weak_order"]["x"]


def mean_of_steps(method: str) -> Measurement:
    """E x of 20,000 paths of noise.geometric in eight steps: (1 + mu/8)^8, whichever the method."""
    x = odesim.ensemble(GEOMETRIC, members=20_000, step=1 / 8, save=2, method=method).x.values[:, -1]
    return Measurement(f"{method}: mean of x after eight steps", x.mean(), (1 + 1.5 / 8) ** 8, 4 * float(x.std()) / 20_000**0.5)


def euler() -> Iterable[Measurement]:
    """Multiplicative noise in steps from 1/64 on, additive noise from 1/16 on."""
    yield mean_of_steps("em")
    for name, model, step, strong in (("multiplicative", GEOMETRIC, 2**-6, 0.5), ("additive", WELL, 2**-4, 1.0)):
        found = orders(model, "em", step)
        yield Measurement(f"strong order, {name} noise", found[0], strong, 0.1)
        yield Measurement(f"weak order, {name} noise", found[1], 1.0, 0.15)


def milstein() -> Iterable[Measurement]:
    """Paths of multiplicative noise."""
    yield mean_of_steps("milstein")
    yield Measurement("order gained, paths", orders(GEOMETRIC, "milstein", 2**-6)[0] - orders(GEOMETRIC, "em", 2**-6)[0], 0.5, 0.05)


def milstein_in_the_mean() -> Iterable[Measurement]:
    """Means of the same paths."""
    yield Measurement("order gained, means", orders(GEOMETRIC, "milstein", 2**-6)[1] - orders(GEOMETRIC, "em", 2**-6)[1], 0.5, 0.05)


def area() -> Iterable[Measurement]:
    """Differences of a step and half of it, of 4,000 paths to t = 1; the mean of y^2 of 400,000 in steps of .01.

    The squared error of Euler's method is t h/2, of the trapezoidal rule t h/4; a step and its half differ by half of that.
    """
    for method, share in (("em", 1 / 4), ("heun", 1 / 8)):
        found = odesim.convergence(AREA, method=method, step=1 / 8, levels=4, members=4000, span=(0, 1))
        for step, error in zip(found.step.values, found.y_strong.values, strict=True):
            yield Measurement(f"{method}: error over its law, steps of {step:g}", error / (share * step) ** 0.5, 1.0, 0.08)
        yield Measurement(f"{method}: strong order", found.attrs["strong_order"]["y"], 0.5, 0.05)
    run = odesim.ensemble(AREA, members=400_000, step=0.01, save=2, observe="square", reduce=("mean",))
    # Euler's y^2 has the mean sum h t_k = (1 - h)/2
    yield Measurement("mean of y^2 in steps of .01", run.square_mean.values[-1], 0.99 / 2, 4 * 1.5**0.5 / 400_000**0.5)


def well(T: float, power: int) -> float:
    """E x^power of the density exp(-V/T), by quadrature."""
    weight, part = (quad(lambda x, k=k: x**k * np.exp(-(x**4 / 4 - x**2 / 2 + 0.25) / T), 0, 4, limit=200)[0] for k in (0, power))
    return float(part / weight)


def stationary() -> Iterable[Measurement]:
    """200,000 paths to t = 20 in steps of .04: E x^2, and E x^4 - E x^2."""
    x = odesim.ensemble(WELL, members=200_000, span=(0, 20), step=0.04, save=2).x.values[:, -1]
    yield Measurement("E x^2 by quadrature", well(0.25, 2), 0.8327454871, 1e-9)
    yield Measurement("E x^4 by quadrature", well(0.25, 4), 1.0827454871, 1e-9)
    for name, values, want in (("E x^2", x**2, 0.8327454871), ("E x^4 - E x^2, which is T", x**4 - x**2, 0.25)):
        yield Measurement(f"{name}, of paths", values.mean(), want, 4 * float(values.std()) / 200_000**0.5)


FOKKER_PLANCK = 0.187170
"""The least eigenvalue at T = .25, by finite differences and Richardson's extrapolation."""


def kramers(T: float) -> float:
    """Twice Kramers' rate."""
    return float(2**0.5 / np.pi * np.exp(-1 / (4 * T)))


def passage(T: float) -> float:
    """Twice the inverse of the mean time from -1 to 1, by quadrature: the least eigenvalue, but for exponentially small terms."""
    z = np.linspace(-3, 1, 400_001)
    V, h = z**4 / 4 - z**2 / 2, z[1] - z[0]
    behind = np.cumsum(np.exp(-(V + 0.25) / T)) * h
    return float(2 * T / np.sum(np.exp(V[z >= -1] / T) * behind[z >= -1] * h) * np.exp(-0.25 / T))


def escape() -> Iterable[Measurement]:
    """200,000 paths from one well at T = .25, t = 4 to 12, beside the exact rate; exact rates for small T beside Kramers'."""
    run = odesim.ensemble(WELL, members=200_000, span=(0, 12), save=13, step=0.04, reduce=("mean",), seed=1)
    mean = run.x_mean.values
    yield Measurement("rate at T = .25 of paths", np.log(mean[4] / mean[12]) / 8, FOKKER_PLANCK, 0.008)
    for T in (0.02, 0.01, 0.005):
        yield Measurement(f"exact over Kramers' rate, T = {T:g}", passage(T) / kramers(T), 1.0, 2 * T)


def warm_escape() -> Iterable[Measurement]:
    """T = .25, the height of the barrier."""
    yield Measurement("exact over Kramers' rate, T = .25", FOKKER_PLANCK / kramers(0.25), 1.0, 0.02)


OF_PATHS = "orders: .1, of errors of 4,000 paths and of steps that are not small"
PATH_CLAIMS = (
    Claim(
        "noise.euler",
        Source(BOOK, "Theorem 10.2.2", "with the weak order"),
        "noise.geometric and noise.double_well, 4,000 paths to t = 1",
        "Euler's method has the strong order 1/2, 1 where the noise is additive, and the weak order 1",
        euler,
        OF_PATHS,
    ),
    Claim(
        "noise.milstein",
        Source(BOOK, "Theorem 10.3.5"),
        "noise.geometric, 4,000 paths to t = 1",
        "Milstein's correction raises the order from 1/2 to 1",
        milstein,
        "orders: .05, on the same paths",
        when="it is that of paths: means come no faster",
        otherwise=milstein_in_the_mean,
        depends=("noise.euler",),
    ),
    Claim(
        "noise.area_order",
        Source(BOOK, "Section 10.3", "double Ito integrals"),
        "noise.area, 4,000 paths to t = 1",
        "where channels do not commute, methods that see increments alone have order 1/2: (t h/2)^(1/2) and (t h/4)^(1/2)",
        area,
        "errors: .08, of the root of a mean square of 4,000; means: four standard errors",
        depends=("noise.euler",),
    ),
    Claim(
        "noise.stationary",
        Source("kramers1940brownian", "large viscosity"),
        "noise.double_well, T = .25, 200,000 paths to t = 20",
        "the density comes to exp(-V/T), so that E x^4 = E x^2 + T",
        stationary,
        "four standard errors",
    ),
    Claim(
        "noise.kramers",
        Source("kramers1940brownian", "large viscosity"),
        "noise.double_well, 200,000 paths at T = .25; mean times of passage by quadrature",
        "the mean from one well falls at the rate (sqrt(2)/pi) exp(-1/(4 T))",
        escape,
        "rate of paths: three standard errors; exact rates: 2 T",
        when="T is far below the barrier, 1/4; at T = .25 the rate is .1872 and not .1656",
        otherwise=warm_escape,
        depends=("noise.stationary",),
    ),
)


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
    return Measurement(name, np.mean(risks), float(LAM @ c) / 2, 4 * float(np.std(risks)) / len(risks) ** 0.5)


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
        yield Measurement(f"order of the gap between eta = {eta:g} and half of it", ratio, order, 0.2)


def balanced() -> Iterable[Measurement]:
    """a^2 - b^2 at t = 10 on 200 paths in steps of .0025, beside exp(-eta int (2 r^2 + s2) dt); and its mean, beside that of SGD."""
    eta, s2, end = 0.02, 0.25, 10.0
    given: dict[str, Any] = {"params": {"eta": eta, "s2": s2}, "span": (0, end), "observe": ("balance", "loss")}
    run = odesim.ensemble("noise.two_layer", members=200, step=0.0025, save=4001, **given)
    integral = np.trapezoid(4 * run.loss.values + s2, run.time.values, axis=1)
    off = np.log(run.balance.values[:, -1] / run.balance.values[:, 0]) + eta * integral
    yield Measurement("logarithm of the balance, farthest from the law", np.abs(off).max(), 0.0, 0.0025)
    many = odesim.ensemble("noise.two_layer", members=RUNS, **given).balance.values[:, -1]
    rng, (a, b) = np.random.default_rng(8), np.tile([[1.2], [0.5]], RUNS)
    for _ in range(round(end / eta)):
        x = rng.normal(size=RUNS)
        g = eta * x * ((a * b - 1) * x - np.sqrt(s2) * rng.normal(size=RUNS))
        a, b = a - g * b, b - g * a
    sgd, doubt = a**2 - b**2, 4 * float(np.hypot(many.std(), np.std(a**2 - b**2))) / RUNS**0.5
    yield Measurement("mean balance of SGD", sgd.mean(), many.mean(), doubt + eta / 4)
    yield Measurement("mean balance of SGD, recorded", sgd.mean(), 1.12484, 4 * float(sgd.std()) * (2 / RUNS) ** 0.5)
    loss = (a * b - 1) ** 2 / 2
    yield Measurement("mean loss of SGD, recorded", loss.mean(), 0.003094, 4 * float(loss.std()) * (2 / RUNS) ** 0.5)
    yield Measurement("mean balance, lost at least", 1.19 - float(many.mean()), 0.05, 0.0, ">=")


WITHIN = "means: four standard errors of 20,000 runs; orders: .2, of learning rates that are not small"


def of_order(name: str, text: str, second: float, order: int) -> Claim:
    """The claim that a diffusion has the law of SGD up to an order."""
    return Claim(
        f"noise.{name}",
        Source("li2017stochastic", "Theorem 1"),
        "least squares with three weights, SGD by samples and the diffusion, 20,000 runs to t = 2",
        text,
        partial(weak_order, second, order),
        WITHIN,
        models=("noise.sgd_least_squares",),
    )


CLAIMS = (
    *PATH_CLAIMS,
    Claim(
        "noise.balance",
        Source("li2017stochastic", "Theorem 1", "two linear layers"),
        "two weights in a row, 200 paths and 20,000 of SGD to t = 10",
        "a^2 - b^2 of two layers, which gradient flow keeps, falls under SGD as exp(-eta int (2 r^2 + s2) dt)",
        balanced,
        "paths: the step; means: four standard errors and eta / 4",
        models=("noise.two_layer",),
        slow=True,
    ),
    of_order("first_order", "SGD has the law of dX = -grad f dt + (eta Sigma)^(1/2) dW up to order eta", 0.0, 1),
    of_order("second_order", "with the drift -grad (f + eta |grad f|^2 / 4) it has the law of SGD up to order eta^2", 1.0, 2),
)
