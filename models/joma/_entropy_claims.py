"""What the JoMA paper states of the bounce of attention, late and at its limits, and of winners from any start; what holds."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.integrate import quad

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.symbolic import Source

PAPER = "tian2023joma"
FINE: dict[str, Any] = {"backend": "numpy", "rtol": 1e-11, "atol": 1e-14}
ENDING: dict[str, Any] = {"backend": "numpy", "rtol": 1e-9, "atol": 1e-12}  # of runs that blow up


def shares(v: np.ndarray) -> np.ndarray:
    """softmax(v^2/2) (..., M)."""
    weight = np.exp(v**2 / 2)
    return weight / weight.sum(axis=-1, keepdims=True)


def covariances() -> Iterable[Measurement]:
    """-Cov_p(z, dz/dt) along a run, beside central differences of its entropy."""
    mu, step = np.array([2.5, 1.7, 1.0]), 1e-3
    times = np.sort(np.concatenate([t + step * np.array([-1, 0, 1]) for t in (0.3, 1.0, 2.0, 4.0)]))
    run = odesim.integrate("joma.nonlinear", params={"mu": mu}, initial={"v": 0.05}, span=(0, 5), save=np.r_[0.0, times], **FINE)
    S, v = run.observables["entropy"][1:].reshape(-1, 3), run.y["v"][2::3]
    p, z, slope = shares(v), v**2 / 2, v * (mu - v) * np.exp(v**2 / 2)
    covariance = (p * z * slope).sum(axis=1) - (p * z).sum(axis=1) * (p * slope).sum(axis=1)
    yield deviation("dS/dt + Cov_p(z, dz/dt) at t = .3, 1, 2, 4", (S[:, 2] - S[:, 0]) / (2 * step) + covariance, 0.0, 1e-5)
    yield Measurement("largest dS/dt", -covariance.min(), 0.01, 0.0, ">=")


def late() -> Iterable[Measurement]:
    """The entropy less its end, over p_j mu_j (mu_j - v_j) (ln p_j + S_end), j the slowest component.

    And what a unit of time leaves of it.
    """
    for mu in ([2.0, 1.0], [2.2, 1.8, 1.1], [1.9, 1.2]):
        run = odesim.integrate("joma.nonlinear_log", params={"mu": mu, "v0": 0.05}, span=(0, 6), save=[0.0, 5.0, 6.0], **FINE)
        p, j = shares(np.array(mu)), int(np.argmin(np.abs(mu)))
        end = -float(np.sum(p * np.log(p)))
        gap = mu[j] * np.exp(-run.y["L"][1:, j])
        formula = p[j] * mu[j] * gap * (np.log(p[j]) + end)
        left = np.divide(*(run.observables["entropy"][[2, 1]] - end))
        yield Measurement(f"what is left at t = 6 of S - S_end at 5, mu = {mu}", left / np.exp(-np.exp(mu[j] ** 2 / 2)), 1.0, 0.02)
        for t, S, want in zip((5, 6), run.observables["entropy"][1:], formula, strict=True):
            yield Measurement(f"S - S_end over its formula at t = {t}, mu = {mu}", (S - end) / want, 1.0, 0.02)
            yield Measurement(f"S - S_end at t = {t}, mu = {mu}", S - end, 0.0, 0.0, "<=")


def dips(mu: list[float]) -> Iterable[Measurement]:
    """How far the entropy falls below its value at t = 12, and a time by separation of variables."""
    run = odesim.integrate("joma.nonlinear", params={"mu": mu}, initial={"v": 0.3}, span=(0, 12), save=601, **FINE)
    S = run.observables["entropy"]
    yield Measurement(f"depth of the bounce, mu = {mu}", S[-1] - S.min(), 1e-6, 0.0, ">=")
    clock = quad(lambda u: np.exp(-(u**2) / 2) / (mu[0] - u), 0.3, float(run.y["v"][50, 0]))[0]
    yield Measurement(f"t = 1 by separation of variables of v_1, mu = {mu}", clock, run.t[50], 1e-6)


DELTA, START = np.array([1.0, -0.8, 0.5]), np.array([0.1, -0.9, 0.4])


def ends() -> np.ndarray:
    """sqrt(pi/2) (1 - sign(Delta) erf(v0 / sqrt 2)) / |Delta|, when each component would blow up by itself."""
    from scipy.special import erf

    return np.sqrt(np.pi / 2) * (1 - np.sign(DELTA) * erf(START / np.sqrt(2))) / np.abs(DELTA)


def winner(start: np.ndarray) -> Iterable[Measurement]:
    """The component that blows up."""
    run = odesim.integrate("joma.linear", params={"Delta": DELTA}, initial={"v": start}, span=(0, 2), **ENDING)
    yield Measurement("the largest component", np.abs(run.final["v"]).argmax(), 0.0)


def first_to_end() -> Iterable[Measurement]:
    """The component that blows up, when, and where the others are."""
    from scipy.special import erf, erfinv

    run = odesim.integrate("joma.linear", params={"Delta": DELTA}, initial={"v": START}, span=(0, 2), **ENDING)
    (event, *_) = run.events["v reaches 6"]
    t = float(ends().min())
    yield Measurement("the largest component", np.abs(run.final["v"]).argmax(), ends().argmin())
    yield Measurement("when it reaches 6, over its t*", event["t"] / t, 1.0, 1e-6)
    others = np.sqrt(2) * erfinv(erf(START / np.sqrt(2)) + np.sqrt(2 / np.pi) * DELTA * t)
    kept = np.arange(3) != ends().argmin()
    yield deviation("v of the others there", run.at(event["t"])["v"][kept], others[kept], 1e-6)


def expanding(mu: float) -> Iterable[Measurement]:
    """Where two nearby components draw apart: d/dv of (mu - v) exp(v^2/2) on a grid of v, by Euler's steps of 1e-3."""
    v = np.linspace(0.01, mu, 2001)
    how: dict[str, Any] = {"method": "euler", "step": 1e-3, "span": (0, 1e-3), "backend": "numpy"}
    run = odesim.integrate("joma.nonlinear", params={"mu": np.full(2001, mu)}, initial={"v": v}, **how)
    apart = np.diff(run.final["v"] - v) > 0
    middle = (v[1:] + v[:-1]) / 2
    root = np.sqrt(mu**2 - 4) if mu > 2 else 0.0
    between = (middle > (mu - root) / 2) & (middle < (mu + root) / 2)
    yield Measurement(f"grid points where the sign is another than stated, mu = {mu:g}", (apart != between).sum(), 0.0, 2.0)
    yield Measurement(f"grid points where components draw apart, mu = {mu:g}", apart.sum(), between.sum(), 2.0)


def same_orbit() -> Iterable[Measurement]:
    """erf(v / sqrt 2) / Delta of all components under normalised attention, to t = 40."""
    from scipy.special import erf

    Delta = np.array([0.2, 0.5, -0.7, 0.9, 1.0])
    run = odesim.integrate("joma.linear_softmax", params={"Delta": Delta}, span=(0, 40), save=[0.0, 1.0, 5.0, 40.0], **FINE)
    ratio = erf(run.y["v"][1:] / np.sqrt(2)) / Delta
    for t, row in zip(run.t[1:], ratio, strict=True):
        yield Measurement(f"largest ratio - smallest at t = {t:g}", np.ptp(row), 0.0, 1e-8)
    yield Measurement("growth of the ratio", ratio[2, 0] - ratio[0, 0], 0.1, 0.0, ">=")


def rates_at_rest() -> Iterable[Measurement]:
    """How fast 1e-6 of a gap closes, over exp(mu^2/2) and over softmax(mu^2/T)."""
    mu, T = np.array([1.0, 1.7, 2.2]), 3.0
    weight = np.exp(mu**2 / T)
    cases: tuple[tuple[str, dict[str, Any], np.ndarray], ...] = (
        ("joma.nonlinear", {"mu": mu}, np.exp(mu**2 / 2)),
        ("joma.nonlinear_softmax", {"mu": mu, "T": T}, weight / weight.sum()),
    )
    for name, params, rate in cases:
        t = 1 / rate.max()
        run = odesim.integrate(name, params=params, initial={"v": mu * (1 - 1e-6)}, span=(0, t), **FINE)
        found = -np.log(1 - (run.final["v"] - mu * (1 - 1e-6)) / (mu * 1e-6)) / t
        yield deviation(f"rate at rest / formula, {name}", found / rate, 1.0, 1e-4)


ENTROPY = (
    Claim(
        "joma.same_orbit",
        Source(PAPER, "Theorem 2", "softmax attention"),
        "joma.linear_softmax, Delta = (.2, .5, -.7, .9, 1), to t = 40",
        "normalised attention follows the orbit of exp attention in another time: erf(v_l / sqrt 2) / Delta_l is the same for all l",
        same_orbit,
        "1000 times the relative tolerance 1e-11 of the run",
    ),
    Claim(
        "joma.rates_at_rest",
        Source(PAPER, "Theorem 4", "the flow near its end; ours"),
        "joma.nonlinear and joma.nonlinear_softmax (T = 3) from a millionth below rest",
        "components come to rest at the rates exp(mu^2/2), under softmax attention at softmax(mu^2/T)",
        rates_at_rest,
        "of a gap of 1e-6 the next order, some 30 gaps; rounding 1e-10 of it",
    ),
    Claim(
        "joma.covariance",
        Source(PAPER, "Theorem 4 and Fig. 4", "the reason of the bounce; ours"),
        "joma.nonlinear, mu = (2.5, 1.7, 1), from v = .05",
        "the entropy of attention falls as z and dz/dt covary: dS/dt = -Cov_p(z, dz/dt)",
        covariances,
        "central differences of step 1e-3 of a rate of order 10",
    ),
    Claim(
        "joma.from_below",
        Source(PAPER, "Theorem 4 and Fig. 4", "late times; ours"),
        "joma.nonlinear_log, three sets of mu, from v = .05 to t = 6",
        "the entropy ends from below: S - S_end = p_j mu_j (mu_j - v_j)(ln p_j + S_end), at the rate exp(mu_j^2/2), j the slowest",
        late,
        "the next order in mu_j - v_j, and the next component",
    ),
    Claim(
        "joma.no_bounce",
        Source(PAPER, "Theorem 4 and Fig. 4", "its condition; ours"),
        "joma.nonlinear from v = .3, mu = (2, 1) and (2, 0)",
        "with a nonlinear activation attention becomes sparse, then spreads again",
        lambda: dips([2.0, 1.0]),
        "none: above 1e-6; a time to 1e-6, by quadrature",
        when="the slowest component has mu other than 0",
        otherwise=lambda: dips([2.0, 0.0]),
    ),
    Claim(
        "joma.head_start",
        Source(PAPER, "Theorem 2", "starts other than 0"),
        "joma.linear, Delta = (1, -.8, .5), from 0 and from (.1, -.9, .4)",
        "the winner is the largest in |Delta|",
        lambda: winner(np.zeros(3)),
        "none: an index",
        when="all start from 0",
        otherwise=lambda: winner(START),
        corrected=Statement(
            "it is the one of the least t* = sqrt(pi/2)(1 - sign(Delta) erf(v(0)/sqrt 2)) / |Delta|",
            first_to_end,
            "2e-9 of the time is left at v = 6; 1000 times rtol",
        ),
    ),
    Claim(
        "joma.drawing_apart",
        Source(PAPER, "Theorem 4", "its flow away from rest; ours"),
        "slopes of joma.nonlinear on a grid of v, mu = 1.5, 2.5, 3.5",
        "components of one mu draw apart where mu > 2 and v is between (mu - sqrt(mu^2 - 4))/2 and (mu + sqrt(mu^2 - 4))/2",
        lambda: (m for mu in (1.5, 2.5, 3.5) for m in expanding(mu)),
        "a step of the grid at each end",
    ),
)
