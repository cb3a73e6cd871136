"""What the JoMA paper states of winners, of late times, and of the bounce of attention; what holds."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.integrate import quad
from sympy import Interval, Symbol, exp, oo

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.joma.nonlinear import arrival
from odesim.symbolic import Param, Source, System

PAPER = "tian2023joma"
FINE: dict[str, Any] = {"backend": "numpy", "rtol": 1e-10, "atol": 1e-13}
SCRIPT = "half a unit of the last printed digit"
V, DELTA = Symbol("v", real=True), Symbol("Delta", real=True)


def winner(b: list[float], expected: int) -> Iterable[Measurement]:
    """Which token has the attention at t = 30, Delta = (1, .8, .5)."""
    run = odesim.integrate("joma.linear_bterm", params={"Delta": [1.0, 0.8, 0.5], "b": b}, span=(0, 30), **FINE)
    yield Measurement("the largest component", np.argmax(run.final["v"]), expected)


def mean_decides() -> Iterable[Measurement]:
    """The weights at t = 30, and the growth of the winner."""
    run = odesim.integrate("joma.linear_bterm", params={"Delta": [1.0, 0.8, 0.5], "b": [0.6, 0.3, 0.1]}, span=(0, 30), **FINE)
    yield deviation("v(30)", run.final["v"], (1.86, 20.31, 1.37), 5e-3)


def growth(attention_at_0: float) -> Iterable[Measurement]:
    """How far a run of linear attention from V = 0 moves by t = 3: further than 1, and each token by z(0) sinh(|Delta| t)."""
    run = odesim.integrate("joma.linear_attention", initial={"z": attention_at_0}, span=(0, 3), **FINE)
    yield Measurement("largest |V| at t = 3", np.abs(run.final["V"]).max(), 1.0, 0.0, ">=")
    length = np.linalg.norm(run.attrs["params"]["Delta"], axis=1)
    yield deviation("|V_l| at t = 3", np.linalg.norm(run.final["V"], axis=1), attention_at_0 * np.sinh(3 * length), 1e-7)


def progress(t: float, largest: float = 2.0) -> tuple[float, float]:
    """L = ln 1/(1 - v/mu) at time t of the largest mu and of mu = 1, from v = 0."""
    run = odesim.integrate("joma.nonlinear_log", params={"mu": [largest, 1.0], "v0": 0.0}, span=(0, t), **FINE)
    return float(run.final["L"][0]), float(run.final["L"][1])


def ratio() -> Iterable[Measurement]:
    """The ratio of both beside its limit, to t = 40."""
    for t, L in ((5.0, 4.156), (10.0, 4.328), (40.0, 4.445)):
        first, second = progress(t)
        yield Measurement(f"L_1 / L_2 at t = {t:g}, mu = (2, 1)", first / second, L, 5e-4)
    for t, L in ((1.0, 5.05), (2.0, 11.32), (10.0, 13.48)):
        first, second = progress(t, 2.5)
        yield Measurement(f"L_1 / L_2 at t = {t:g}, mu = (2.5, 1), limit 13.8046", first / second, L, 5.1e-3)


def correction() -> Iterable[Measurement]:
    """Lambda L_2, with L_1 / L_2 = exp(3/2) (1 + Lambda)."""
    for t in (10.0, 20.0, 40.0):
        first, second = progress(t)
        yield Measurement(f"Lambda L_2 at t = {t:g}", (first / second * np.exp(-1.5) - 1) * second, -0.534610, 5e-5 if t < 20 else 1e-6)


def beyond_rounding() -> Iterable[Measurement]:
    """L where v is mu to the last bit."""
    run = odesim.integrate("joma.nonlinear_log", params={"mu": [2.1, 3.2], "v0": 0.02}, span=(0, 8), **FINE)
    yield Measurement("L(8), mu = 2.1", run.final["L"][0], 64.97, 5e-3)
    yield Measurement("L(8), mu = 3.2", run.final["L"][1], 1245.2, 5e-2)


def random_bounces() -> Iterable[Measurement]:
    """By how much the entropy falls below its end for 60 random mu (10,) in [1, 3], from v = .05 to t = 12, and the weights there.

    The depth alone sees no clock: it is the same where all states move faster. The least entropy is held against the closed form.
    """
    rng, depths, apart = np.random.default_rng(0), [], []
    for _ in range(60):
        mu = rng.uniform(1, 3, 10)
        run = odesim.integrate("joma.nonlinear_log", params={"mu": mu, "v0": 0.05}, span=(0, 12), save=1201, backend="numpy", rtol=1e-8)
        weight = np.exp(mu**2 / 2)
        p = weight / weight.sum()
        least = int(run.observables["entropy"].argmin())
        depths.append(float(-np.sum(p * np.log(p)) - run.observables["entropy"][least]))
        apart.append(arrival(run.t[least], {"v": run.observables["v"][least]}, {"v": np.full(10, 0.05)}, {"mu": mu}))
    yield deviation("v - closed form where the entropy is least", apart, 0.0, 1e-6)
    yield Measurement("least depth", min(depths), 1e-3, 0.0, ">=")
    yield Measurement("mean depth, of other draws .392", np.mean(depths), 0.392, 0.11)
    yield Measurement("largest depth", max(depths), 0.74, 0.2)


def rest() -> Iterable[Measurement]:
    """Where components with c = .5, 1, 2, 4 come to rest, and how fast."""
    c, v = np.array([0.5, 1.0, 2.0, 4.0]), np.array([0.451540, 0.753089, 1.096434, 1.432897])
    run = odesim.integrate("joma.self_consistent", params={"c": c}, span=(0, 30), **FINE)
    yield deviation("v at rest", run.final["v"], v, 5e-7)
    near = odesim.integrate("joma.self_consistent", params={"c": c}, initial={"v": v * (1 - 1e-4)}, span=(0, 0.01), **FINE)
    gap = 1 - np.stack([near.y["v"][0], near.y["v"][-1]]) / run.final["v"]
    yield deviation("rate / (1 + v^2) exp(v^2)", np.log(gap[0] / gap[1]) / 0.01 / ((1 + v**2) * np.exp(v**2)), 1.0, 6e-3)


def relu(bounded: bool) -> Iterable[Measurement]:
    """v on one noisy cluster of positive signal, relu: its length and its direction."""
    for t in (10.0, 100.0):
        params: dict[str, Any] = {"xbar": np.eye(1, 10), "a": [1.0], "sigma": 1.0}
        v = odesim.integrate("joma.cluster", params=params, span=(0, t), **FINE).final["v"]
        length = float(np.linalg.norm(v))
        if bounded:
            yield Measurement(f"|v| at t = {t:g}", length, 2.0, 0.0, "<=")
        else:
            yield Measurement(f"|v| / t at t = {t:g}", length / t, 1.0, 0.0, ">=")
            yield Measurement(f"cosine of v and the centre at t = {t:g}", float(v[0]) / length, 1.0, 0.02 / t)


def turning() -> Iterable[Measurement]:
    """The cosine of v and the centre from .336 on, at 11.6 and 116 times |v(0)|, which is the unit of time: for two of them."""
    for length in (1.0, 0.5):
        start = length * np.array([0.336, np.sqrt(1 - 0.336**2), *np.zeros(8)])
        times = length * np.array([0.0, *np.geomspace(0.1, 11.6, 20), 116.0])
        params: dict[str, Any] = {"xbar": np.eye(1, 10), "a": [1.0], "sigma": 1.0}
        v = odesim.integrate("joma.cluster", params=params, initial={"v": start}, span=(0, times[-1]), save=times, **FINE).y["v"]
        cosine = v[:, 0] / np.linalg.norm(v, axis=1)
        yield Measurement(f"cosine at 11.6 |v(0)|, |v(0)| = {length:g}", cosine[-2], 0.993, 5.1e-4)
        yield Measurement(f"cosine at 116 |v(0)|, |v(0)| = {length:g}", cosine[-1], 0.9999, 5.1e-5)
        yield Measurement(f"least step of the cosine, |v(0)| = {length:g}", np.diff(cosine).min(), 0.0, 0.0, ">=")


def with_mean(b: float) -> System:
    """One token under exp attention with its mean b: v' = Delta exp((1 - b) v^2 / 2)."""
    return System(
        name="joma.one_token",
        source=Source(PAPER, "Theorem 2"),
        axes={},
        equations={V: DELTA * exp((V**2 - b * V**2) / 2)},
        params=(Param(DELTA, 1.0, Interval(-oo, oo), "saliency of the token"),),
        initial={V: 0.0},
        span=(0.0, 1.0),
    )


def blows_up(b: float, corrected: bool) -> Iterable[Measurement]:
    """The time of its blow-up over sqrt(pi/2) / Delta, or over that by sqrt(1 - b)."""
    for Delta in (1.0, 3.0)[:: 1 if corrected else 2]:
        formula = float(np.sqrt(np.pi / 2 / (1 - b if corrected else 1))) / Delta
        run = odesim.integrate(with_mean(b), params={"Delta": Delta}, span=(0, 2 * formula), **FINE)
        reached = np.sqrt(1 - b) * abs(float(run.final["v"]))
        yield Measurement(f"sqrt(1 - b) v where the run ends, b = {b:g}, Delta = {Delta:g}", reached, 5.0, 0.0, ">=")
        yield Measurement(f"end of the run / formula, b = {b:g}, Delta = {Delta:g}", run.t_end / formula, 1.0, 1e-6)


LATE = (
    Claim(
        "joma.mean_blow_up",
        Source(PAPER, "Theorem 2", "exp attention, one token with its mean b"),
        "v' = Delta exp((1 - b) v^2 / 2) from v = 0 to its end, Delta = 1 and 3, b = .6 and .1",
        "the winner diverges at t* = sqrt(pi/2) / |Delta|",
        lambda: blows_up(0.0, False),
        "exp(-v^2/2) of the time is left at v = 5, 1e-6 with what it is divided by",
        when="the mean attention b is left out",
        otherwise=lambda: blows_up(0.6, False),
        corrected=Statement(
            "with its mean it does at t* = sqrt(pi / (2 (1 - b))) / |Delta|",
            lambda: (*blows_up(0.6, True), *blows_up(0.1, True)),
            "exp(-v^2/2) of the time is left at v = 5, 1e-6 with what it is divided by",
        ),
        models=("joma.linear_bterm",),
    ),
    Claim(
        "joma.relu",
        Source(PAPER, "Theorem 3", "one cluster of positive signal"),
        "joma.cluster, one cluster, sigma = 1, to t = 116",
        "a nonlinear activation bounds v",
        lambda: relu(True),
        "none: a bound of 2 |xbar|",
        fails=True,
        corrected=Statement(
            "v turns to the centre and grows at least as a t |xbar|: its cosine goes from .336 to .993 and .9999 in ten times the time",
            lambda: (*relu(False), *turning()),
            "of the direction: .02/t is ours; half a unit of the last digit",
        ),
    ),
    Claim(
        "joma.winner",
        Source(PAPER, "Theorem 2", "softmax attention with its mean b; the numbers by an independent script"),
        "joma.linear_bterm, Delta = (1, .8, .5), to t = 30",
        "the winner is the largest in |Delta|",
        lambda: winner([1 / 3] * 3, 0),
        "none: an index",
        when="the mean attention b is uniform",
        otherwise=lambda: winner([0.6, 0.3, 0.1], 0),
        corrected=Statement("with b = (.6, .3, .1) the second token wins", mean_decides, SCRIPT),
    ),
    Claim(
        "joma.zero_start",
        Source(PAPER, "Theorem 1", "linear attention"),
        "joma.linear_attention from V = 0, to t = 3",
        "training starts from zero: V = 0, z = 0",
        lambda: growth(0.0),
        "none: V = z = 0 is a fixed point",
        fails=True,
        corrected=Statement(
            "it starts from z other than 0: then |V_l| = |z_l(0)| sinh(|Delta_l| t)",
            lambda: growth(1.0),
            "none: V is above 1; 100 times the tolerance of the run",
        ),
    ),
    Claim(
        "joma.late_ratio",
        Source(PAPER, "Theorem 4", "late times; the numbers by an independent script"),
        "joma.nonlinear_log, mu = (2, 1) to t = 40 and (2.5, 1) to t = 10, v0 = 0",
        "the ratio of ln 1/(1 - v_j/mu_j) tends to exp((mu_j^2 - mu_k^2)/2) = 4.4817",
        ratio,
        SCRIPT,
    ),
    Claim(
        "joma.late_correction",
        Source(PAPER, "Theorem 4", "the factor 1 + Lambda; the numbers by an independent script"),
        "joma.nonlinear_log, mu = (2, 1), v0 = 0, to t = 40; mu = (2.1, 3.2), v0 = .02, to t = 8",
        "Lambda = O(1/L_k): Lambda L_k tends to K(mu_k) - K(mu_j) exp((mu_k^2 - mu_j^2)/2)",
        lambda: (*correction(), *beyond_rounding()),
        SCRIPT,
    ),
    Claim(
        "joma.bounces",
        Source(PAPER, "Theorem 4 and Fig. 4", "random components; the numbers by an independent script, of 60 draws of its own"),
        "joma.nonlinear_log, 60 random mu in [1, 3], ten components each, from v = .05 to t = 12",
        "the entropy of attention falls below its end and comes back, for random mu too: as deep at any speed of all components",
        random_bounces,
        "four standard errors .019 of each mean of 60, together .11; a standard deviation of .15 for the largest; 100 rtol of v",
        slow=True,
    ),
    Claim(
        "joma.rest",
        Source(PAPER, "Theorem 4", "the force of a squared loss; the numbers by an independent script"),
        "joma.self_consistent, c = (.5, 1, 2, 4)",
        "components come to rest, at sqrt(W(c^2)), with the rate (1 + v^2) exp(v^2)",
        rest,
        "half a unit of the last printed digit; for the rate the next order of a gap of 1e-4, 30 gaps and more",
    ),
)


# What the JoMA paper states of the bounce of attention, late and at its limits, and of winners from any start; what holds.

FINER: dict[str, Any] = {"backend": "numpy", "rtol": 1e-11, "atol": 1e-14}
ENDING: dict[str, Any] = {"backend": "numpy", "rtol": 1e-9, "atol": 1e-12}  # of runs that blow up


def shares(v: np.ndarray) -> np.ndarray:
    """softmax(v^2/2) (..., M)."""
    weight = np.exp(v**2 / 2)
    return weight / weight.sum(axis=-1, keepdims=True)


def covariances() -> Iterable[Measurement]:
    """-Cov_p(z, dz/dt) along a run, beside central differences of its entropy."""
    mu, step = np.array([2.5, 1.7, 1.0]), 1e-3
    times = np.sort(np.concatenate([t + step * np.array([-1, 0, 1]) for t in (0.3, 1.0, 2.0, 4.0)]))
    run = odesim.integrate("joma.nonlinear", params={"mu": mu}, initial={"v": 0.05}, span=(0, 5), save=np.r_[0.0, times], **FINER)
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
        run = odesim.integrate("joma.nonlinear_log", params={"mu": mu, "v0": 0.05}, span=(0, 6), save=[0.0, 5.0, 6.0], **FINER)
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
    run = odesim.integrate("joma.nonlinear", params={"mu": mu}, initial={"v": 0.3}, span=(0, 12), save=601, **FINER)
    S = run.observables["entropy"]
    yield Measurement(f"depth of the bounce, mu = {mu}", S[-1] - S.min(), 1e-6, 0.0, ">=")
    clock = quad(lambda u: np.exp(-(u**2) / 2) / (mu[0] - u), 0.3, float(run.y["v"][50, 0]))[0]
    yield Measurement(f"t = 1 by separation of variables of v_1, mu = {mu}", clock, run.t[50], 1e-6)


DELTAS, START = np.array([1.0, -0.8, 0.5]), np.array([0.1, -0.9, 0.4])


def ends() -> np.ndarray:
    """sqrt(pi/2) (1 - sign(Delta) erf(v0 / sqrt 2)) / |Delta|, when each component would blow up by itself."""
    from scipy.special import erf

    return np.sqrt(np.pi / 2) * (1 - np.sign(DELTAS) * erf(START / np.sqrt(2))) / np.abs(DELTAS)


def winner_from(start: np.ndarray) -> Iterable[Measurement]:
    """The component that blows up."""
    run = odesim.integrate("joma.linear", params={"Delta": DELTAS}, initial={"v": start}, span=(0, 2), **ENDING)
    yield Measurement("the largest component", np.abs(run.final["v"]).argmax(), 0.0)


def first_to_end() -> Iterable[Measurement]:
    """The component that blows up, when, and where the others are."""
    from scipy.special import erf, erfinv

    run = odesim.integrate("joma.linear", params={"Delta": DELTAS}, initial={"v": START}, span=(0, 2), **ENDING)
    (event, *_) = run.events["v reaches 6"]
    t = float(ends().min())
    yield Measurement("the largest component", np.abs(run.final["v"]).argmax(), ends().argmin())
    yield Measurement("when it reaches 6, over its t*", event["t"] / t, 1.0, 1e-6)
    others = np.sqrt(2) * erfinv(erf(START / np.sqrt(2)) + np.sqrt(2 / np.pi) * DELTAS * t)
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
    run = odesim.integrate("joma.linear_softmax", params={"Delta": Delta}, span=(0, 40), save=[0.0, 1.0, 5.0, 40.0], **FINER)
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
        run = odesim.integrate(name, params=params, initial={"v": mu * (1 - 1e-6)}, span=(0, t), **FINER)
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
        lambda: winner_from(np.zeros(3)),
        "none: an index",
        when="all start from 0",
        otherwise=lambda: winner_from(START),
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
