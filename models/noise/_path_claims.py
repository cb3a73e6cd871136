"""What is stated of steps of stochastic equations and of a double well, and what holds: orders, areas, rest and escape."""

from collections.abc import Iterable

import numpy as np
from scipy.integrate import quad

import odesim
from odesim.lab.claims import Claim, Measurement, Statement
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
    return Measurement(f"{method}: mean of x after eight steps", float(x.mean()), (1 + 1.5 / 8) ** 8, 4 * float(x.std()) / 20_000**0.5)


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
            yield Measurement(f"{method}: error over its law, steps of {step:g}", float(error / (share * step) ** 0.5), 1.0, 0.08)
        yield Measurement(f"{method}: strong order", found.attrs["strong_order"]["y"], 0.5, 0.05)
    run = odesim.ensemble(AREA, members=400_000, step=0.01, save=2, observe="square", reduce=("mean",))
    # Euler's y^2 has the mean sum h t_k = (1 - h)/2
    yield Measurement("mean of y^2 in steps of .01", float(run.square_mean.values[-1]), 0.99 / 2, 4 * 1.5**0.5 / 400_000**0.5)


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
        yield Measurement(f"{name}, of paths", float(values.mean()), want, 4 * float(values.std()) / 200_000**0.5)


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
    yield Measurement("rate at T = .25 of paths", float(np.log(mean[4] / mean[12]) / 8), FOKKER_PLANCK, 0.008)
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
        printed=Statement("Euler's method has the strong order 1/2, 1 where the noise is additive, and the weak order 1", euler, OF_PATHS),
    ),
    Claim(
        "noise.milstein",
        Source(BOOK, "Theorem 10.3.5"),
        "noise.geometric, 4,000 paths to t = 1",
        printed=Statement(
            "Milstein's correction raises the order from 1/2 to 1",
            milstein,
            "orders: .05, on the same paths",
            when="it is that of paths: means come no faster",
            otherwise=milstein_in_the_mean,
        ),
        depends=("noise.euler",),
    ),
    Claim(
        "noise.area_order",
        Source(BOOK, "Section 10.3", "double Ito integrals"),
        "noise.area, 4,000 paths to t = 1",
        printed=Statement(
            "where channels do not commute, methods that see increments alone have order 1/2: (t h/2)^(1/2) and (t h/4)^(1/2)",
            area,
            "errors: .08, of the root of a mean square of 4,000; means: four standard errors",
        ),
        depends=("noise.euler",),
    ),
    Claim(
        "noise.stationary",
        Source("kramers1940brownian", "large viscosity"),
        "noise.double_well, T = .25, 200,000 paths to t = 20",
        printed=Statement("the density comes to exp(-V/T), so that E x^4 = E x^2 + T", stationary, "four standard errors"),
    ),
    Claim(
        "noise.kramers",
        Source("kramers1940brownian", "large viscosity"),
        "noise.double_well, 200,000 paths at T = .25; mean times of passage by quadrature",
        printed=Statement(
            "the mean from one well falls at the rate (sqrt(2)/pi) exp(-1/(4 T))",
            escape,
            "rate of paths: three standard errors; exact rates: 2 T",
            when="T is far below the barrier, 1/4; at T = .25 the rate is .1872 and not .1656",
            otherwise=warm_escape,
        ),
        depends=("noise.stationary",),
    ),
)
