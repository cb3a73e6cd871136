"""What is stated of one-pass SGD on power laws, and what holds: exponents of time, the Volterra equation, the limit of small steps."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from scipy.signal import fftconvolve

import odesim
from odesim.lab.claims import Claim, Measurement, deviation
from odesim.symbolic import Source

PAPER = "paquette2024phases"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-15, "backend": "numpy"}
STIFF: dict[str, Any] = {"method": "rodas5p", "rtol": 1e-9, "atol": 1e-15}
LONG = {(1.0, 0.8, 0.1): 1.281714519e-5, (0.8, 0.5, 0.3): 8.113973581e-5, (0.8, 1.2, 0.3): 8.751949159e-7}
"""(a, b, g) -> the risk of 3,000 modes without label noise at t = 1e4, by the eigenvectors of the matrix of the flow."""
SLOPES = {(1.0, 0.8): (1.305, 1.305), (0.8, 0.5): (1.008, 1.017), (0.8, 1.2): (1.465, 1.408)}
"""(a, b) -> exponents from t = 1e2 to 1e3 and from there to 1e4, by another integrator."""
SHORT = (0.1231488154, 0.0106128618)
"""The risk of 300 modes, a = 1, b = .8, g = .1, s2 = .01, at t = 10 and 100, by another integrator."""


def risks(a: float, b: float, g: float) -> Any:
    """R (3,) of 3,000 modes without label noise at t = 1e2, 1e3, 1e4."""
    params = {"a": a, "b": b, "g": g, "s2": 0.0}
    run = odesim.integrate("scaling.sgd", params=params, sizes={"n": 3000}, save=[0, 1e2, 1e3, 1e4], span=(0, 1e4), **STIFF)
    return run.observables["R"][1:]


def slopes(R: Any) -> Any:
    """Exponents of R between two times a decade apart."""
    return -np.diff(np.log10(R))


def of_target(a: float, b: float) -> float:
    """r = (2a + 2b - 1)/(2a)."""
    return (2 * a + 2 * b - 1) / (2 * a)


def target_rules() -> Iterable[Measurement]:
    """Two cases b < a, to t = 1e4: the exponent, and the risk itself."""
    for a, b, g in ((1.0, 0.8, 0.1), (0.8, 0.5, 0.3)):
        R = risks(a, b, g)
        yield deviation(f"exponents, a = {a:g}, b = {b:g}", slopes(R), of_target(a, b), 0.02)
        yield deviation(f"recorded exponents, a = {a:g}, b = {b:g}", slopes(R), SLOPES[a, b], 6e-4)
        yield deviation(f"R at t = 1e4, a = {a:g}, b = {b:g}", R[-1], LONG[a, b, g], 1e-8, relative=True)


def easy_target() -> Iterable[Measurement]:
    """b > a: the exponent of the target is not seen."""
    yield deviation("exponents, a = .8, b = 1.2", slopes(risks(0.8, 1.2, 0.3)), of_target(0.8, 1.2), 0.02)


def noise_rules() -> Iterable[Measurement]:
    """b > a: the exponent comes to that of the kernel from above."""
    R = risks(0.8, 1.2, 0.3)
    found = slopes(R)
    yield Measurement("exponent from t = 1e3 to 1e4", found[1], 2 - 1 / 1.6, 0.04)
    yield Measurement("exponent from t = 1e2 to 1e3, above it", found[0] - found[1], 0.0, 0.0, ">=")
    yield deviation("recorded exponents", found, SLOPES[0.8, 1.2], 6e-4)
    yield deviation("R at t = 1e4", R[-1], LONG[0.8, 1.2, 0.3], 1e-8, relative=True)


def volterra(h: float, end: float, a: float = 1.0, b: float = 0.8, g: float = 0.1, s2: float = 0.01, n: int = 300) -> Any:
    """R (time,) of R = F + K * R by the trapezoidal rule: the steps solved at once, as a convolution with the resolvent's powers."""
    t = np.arange(round(end / h) + 1) * h
    lam = np.arange(1.0, n + 1) ** (-2 * a)
    decay = np.exp(-2 * g * np.outer(t, lam))
    F, K = decay @ (lam * np.arange(1.0, n + 1) ** (-2 * b)) / 2 + s2 / 2, g**2 * decay @ lam**2
    R = F.copy()
    for _ in range(30):  # ||K|| = .08, to the power 30
        inside = fftconvolve(K, R)[: len(t)] - K[0] * R / 2 - K * R[0] / 2
        R = F + h * inside
    return R


def equation() -> Iterable[Measurement]:
    """Modes beside the Volterra equation, 300 of them; the limit with label noise; and a rate at which there is none."""
    run = odesim.integrate("scaling.sgd", sizes={"n": 300}, save=[0, 10, 100], span=(0, 100), **FINE)
    modes = run.observables["R"]
    yield deviation("R at t = 10, 100 of modes", modes[1:], SHORT, 1e-9)
    yield deviation("R at t = 10, 100 of the equation, relative", volterra(0.05, 100)[[200, 2000]], modes[1:], 2e-5, relative=True)
    lam = np.arange(1.0, 61) ** -2.0
    for g in (0.1, 0.5):
        end = odesim.integrate("scaling.sgd", params={"g": g}, span=(0, 1e6), save=2, **STIFF)
        yield deviation(f"R in the end, g = {g:g}", end.observables["R"][-1], 0.005 / (1 - g / 2 * lam.sum()), 1e-8)
    wild = odesim.integrate("scaling.sgd", params={"g": 2.1 / lam.sum()}, span=(0, 1e3), save=2, **FINE).observables["R"]
    yield Measurement("R in the end over the first, ||K|| = 1.05", wild[-1] / wild[0], 1.0, 0.0, ">=")


def sampled(runs: int = 2000) -> Any:
    """(mean, standard error) (2, 2) of the risk of SGD itself after 10 and 100 steps, 300 inputs."""
    rng = np.random.default_rng(3)
    root = np.arange(1.0, 301) ** -1.0
    delta, out = np.tile(np.arange(1.0, 301) ** -0.8, (runs, 1)), []
    for step in range(1, 101):
        x = rng.normal(size=delta.shape) * root
        delta -= 0.1 * x * ((x * delta).sum(axis=1) - 0.1 * rng.normal(size=runs))[:, None]
        if step in (10, 100):
            risk = (delta**2 @ root**2 + 0.01) / 2
            out.append((risk.mean(), risk.std() / runs**0.5))
    return np.transpose(out)


def gap(g: float, B: float) -> float:
    """R of SGD above that of the limit at g t = 1, 100 inputs."""
    given: dict[str, Any] = {"params": {"g": g, "B": B}, "sizes": {"n": 100}, "save": [0, round(1 / g)]}
    steps = odesim.integrate("scaling.sgd_steps", **given, backend="numpy").observables["R"][-1]
    return float(steps - odesim.integrate("scaling.sgd", span=(0, round(1 / g)), **given, **FINE).observables["R"][-1])


def small_steps() -> Iterable[Measurement]:
    """SGD itself beside its exact moments; and how the gap to the limit falls with g, at g t = 1."""
    given: dict[str, Any] = {"sizes": {"n": 300}, "save": [0, 10, 100], "backend": "numpy"}
    steps = odesim.integrate("scaling.sgd_steps", **given).observables["R"][1:]
    for k, (mean, error) in enumerate(sampled().T):
        yield Measurement(f"R of SGD, 2,000 runs, t = {10 ** (k + 1)}", mean, steps[k], 4 * float(error))
    flow = odesim.integrate("scaling.sgd", span=(0, 100), **{**given, **FINE}).observables["R"][1:]
    yield Measurement("R of the limit below that of SGD, g = .1, t = 10, part", 1 - flow[0] / steps[0], 0.026, 0.001)
    for B, order in ((1, 2), (4, 1)):
        gaps = [gap(g, B) for g in (0.05, 0.025, 0.0125)]
        for k, found in enumerate(np.log2(np.array(gaps[:-1]) / gaps[1:])):
            yield Measurement(f"order of the gap from g = {0.05 / 2**k:g} to half of it, B = {B}", found, order, 0.15)


def best_of_compute(a: float, b: float, g: float) -> Any:
    """(exponent of the least risk, exponent of the N that has it) against compute C = N t, from 1e3 to 1e6: N modes, the rest is noise."""
    N, t = np.rint(2.0 ** np.arange(3, 9.01, 0.5)), np.logspace(1, 5.5, 91)
    far = 10**6
    rest = np.cumsum((np.arange(far, 8.0, -1)) ** (-2 * a - 2 * b))[::-1] + far ** (1 - 2 * a - 2 * b) / (
        2 * a + 2 * b - 1
    )  # from mode 9 on
    C = np.logspace(3, 6, 13)
    risk = []
    for n in N.astype(int):
        given: dict[str, Any] = {"params": {"a": a, "b": b, "g": g, "s2": float(rest[n - 8])}, "sizes": {"n": n}}
        run = odesim.integrate("scaling.sgd", **given, span=(0, t[-1]), save=[0, *t], **{**STIFF, "rtol": 1e-7})
        R = np.exp(np.interp(np.log(C / n), np.log(t), np.log(run.observables["R"][1:])))
        risk.append(np.where((C / n >= t[0]) & (C / n <= t[-1]), R, np.inf))
    best = np.argmin(risk, axis=0)
    return tuple(float(np.polyfit(np.log(C), np.log(y), 1)[0]) for y in (np.min(risk, axis=0), N[best]))


def compute(*cases: tuple[float, float, float]) -> Iterable[Measurement]:
    """Sizes from 8 to 512 modes, steps from 10 to 3e5."""
    for a, b, g in cases:
        fall, growth = best_of_compute(a, b, g)
        yield Measurement(f"exponent of the least risk, a = {a:g}, b = {b:g}", fall, -2 * a * of_target(a, b) / (1 + 2 * a), 0.015)
        yield Measurement(f"exponent of the best N, a = {a:g}, b = {b:g}", growth, 1 / (1 + 2 * a), 0.05)


SLOPE = "exponents: .02, half a decade from where the power law begins; risks: the digits recorded"
SGD_CLAIMS = (
    Claim(
        "scaling.time_exponent",
        Source(PAPER, "abstract", "forcing function"),
        "scaling.sgd, 3,000 modes without label noise, to t = 1e4",
        "the risk falls with time as t^(-(2a + 2b - 1)/(2a))",
        target_rules,
        SLOPE,
        when="b < a: else the noise of SGD falls more slowly, as t^(-(2 - 1/(2a)))",
        otherwise=easy_target,
    ),
    Claim(
        "scaling.noise_exponent",
        Source(PAPER, "abstract", "kernel function"),
        "scaling.sgd, 3,000 modes, a = .8, b = 1.2, to t = 1e4",
        "where b > a the noise of SGD sets the exponent, 2 - 1/(2a)",
        noise_rules,
        "exponent: .04, since the target's part, t^(-1.875), still adds; risk: the digits recorded",
        depends=("scaling.time_exponent",),
    ),
    Claim(
        "scaling.compute",
        Source(PAPER, "abstract", "where model capacity and the target set the risk, without random features"),
        "scaling.sgd, 8 to 512 modes to t = 3e5, the other modes as noise of labels",
        "with compute C = N t the least risk falls as C^(-(2a + 2b - 1)/(2a + 1)), at N ~ C^(1/(2a + 1))",
        partial(compute, (1.0, 0.8, 0.1), (1.0, 0.3, 0.1), (0.8, 0.5, 0.3)),
        "exponents: .015, over three decades of C; of N .05, in steps of 2^(1/2)",
        when="b < a, as the exponent of time",
        otherwise=partial(compute, (0.8, 1.2, 0.3)),
        depends=("scaling.time_exponent",),
    ),
    Claim(
        "scaling.volterra",
        Source(PAPER, "abstract", "Volterra equation"),
        "scaling.sgd, 300 modes to t = 100, 60 to 1e6; the equation in steps of .05",
        "the risk of SGD solves R = F + K * R, and rests at (s2/2)/(1 - ||K||) if ||K|| = (g/2) sum lam < 1",
        equation,
        "modes: the digits recorded; equation: the trapezoidal rule in steps of .05",
    ),
    Claim(
        "scaling.small_steps",
        Source(PAPER, "abstract", "one-pass SGD"),
        "scaling.sgd beside scaling.sgd_steps, and 2,000 runs of SGD with 300 inputs",
        "modes in continuous time have the risk of SGD up to order g, and up to order g^2 for batches of one sample",
        small_steps,
        "runs: four standard errors; orders: .15, of rates that are not small",
        depends=("scaling.volterra",),
    ),
)
