"""What the JoMA paper states of attention and MLP that are trained together, and what holds."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.joma._joint_claims import JOINT, SOFTMAX
from odesim.models.joma._late_claims import ENTROPY, LATE
from odesim.models.joma._step_claims import NODES, SIGNALS, STEPPED
from odesim.symbolic import Source

PAPER = "tian2023joma"
FINE: dict[str, Any] = {"backend": "numpy", "rtol": 1e-10, "atol": 1e-13}
T_STAR = np.sqrt(np.pi / 2)  # of a component with Delta = 1 from v = 0
DELTA = np.array([0.2, 0.5, -0.7, 0.9, 1.0])
SOLVER = "100 times the relative tolerance 1e-10 of the run"


def ratios(scale: float) -> Iterable[Measurement]:
    """erf(v / scale) / Delta of all components at .9 t*."""
    from scipy.special import erf

    v = odesim.integrate("joma.linear", params={"Delta": DELTA}, span=(0, 0.9 * T_STAR), **FINE).y["v"][-1]
    ratio = erf(v / scale) / DELTA
    yield Measurement("largest ratio - smallest", np.ptp(ratio), 0.0, 1e-8)


def reaches(factor: float) -> Iterable[Measurement]:
    """How far a run to factor t* comes."""
    run = odesim.integrate("joma.linear", params={"Delta": DELTA}, span=(0, factor * T_STAR))
    yield Measurement(f"last time / t* of a run to {factor:g} t*", run.t[-1] / T_STAR, factor, 1e-12, ">=")


def blow_up() -> Iterable[Measurement]:
    """The time of the blow-up, by the rescaled clock."""
    for Delta in (1.0, 3.0):
        run = odesim.integrate(
            "joma.linear", params={"Delta": Delta * DELTA}, clock="rescaled", span=(0, 2.0), backend="numpy", rtol=1e-9, atol=1e-12
        )
        yield Measurement(f"blow-up, Delta_max = {Delta:g}", run.t_end, T_STAR / Delta, 1e-6)


def losers() -> Iterable[Measurement]:
    """The other components where the winner has reached 6, which is 2e-9 t* before the blow-up."""
    from scipy.special import erfinv

    run = odesim.integrate("joma.linear", params={"Delta": DELTA}, span=(0, 2.0), **FINE)
    (event,) = run.events["v reaches 6"]
    v = run.at(event["t"])["v"]
    yield deviation("v - sqrt 2 erfinv(Delta / Delta_max)", v[:-1], np.sqrt(2) * erfinv(DELTA[:-1]), 1e-7)


def slope() -> Iterable[Measurement]:
    """The slope of the winner under normalised attention, late."""
    run = odesim.integrate("joma.linear_softmax", params={"Delta": [0.5, -2.0, 1.0]}, span=(0, 100), save=3, **FINE)
    v = run.y["v"][:, 1]
    yield Measurement("last time of a run to 80 t*", run.t[-1], 100.0)
    yield Measurement("slope of the winner / |Delta_max|", abs(v[2] - v[1]) / 100, 1.0, 1e-8)


RANKS = {0.5: (7.193, 6.874), 0.1: (6.363, 3.519), 1e-2: (5.036, 1.132), 1e-3: (4.089, 1.0023)}


def ranks() -> Iterable[Measurement]:
    """Stable ranks of V and dV/dt before the blow-up, M = 40, K = 20, Gaussian Delta."""
    times = T_STAR * (1 - np.array([1.0, *RANKS]))
    run = odesim.integrate("joma.linear_multinode", span=(0, times[-1]), save=times, **FINE)
    for k, (x, (of_V, of_dV)) in enumerate(RANKS.items(), 1):
        yield Measurement(f"stable rank of V at 1 - t/t* = {x:g}", run.observables["stable_rank_V"][k], of_V, 5e-4)
        yield Measurement(f"stable rank of dV/dt at 1 - t/t* = {x:g}", run.observables["stable_rank_dV"][k], of_dV, 5e-4)


def growth(t: float) -> tuple[np.ndarray, np.ndarray]:
    """(mu, L = ln 1/(1 - v/mu)) of two components at time t from v = 0."""
    mu = np.array([2.0, 1.0])
    run = odesim.integrate("joma.nonlinear", params={"mu": mu}, initial={"v": 0.0}, span=(0, t), rtol=1e-12, atol=1e-16)
    return mu, -np.log1p(-run.y["v"][-1] / mu)


def rate_ratio() -> Iterable[Measurement]:
    """The ratio of the two growth exponents."""
    for t in (1.0, 5.0):
        mu, L = growth(t)
        yield Measurement(f"L_1 / L_2 at t = {t:g}, mu = (2, 1)", L[0] / L[1], np.exp((mu[0] ** 2 - mu[1] ** 2) / 2), 0.05)


def delays() -> Iterable[Measurement]:
    """L - exp(mu^2/2) t against the delay K(mu)."""
    from scipy.integrate import quad

    mu, L = growth(5.0)
    for m, value in zip(mu, L, strict=True):
        K = quad(lambda v, m=m: np.expm1((m * m - v * v) / 2) / (m - v), 0, m, epsabs=1e-12)[0]
        yield Measurement(f"L - exp(mu^2/2) t at t = 5, mu = {m:g}", value - np.exp(m * m / 2) * 5.0, -K, 0.01)


DEPTHS = {1.0: (3.8e-5, 10.0), 1.5: (3.3e-3, 8.0), 2.0: (2.75e-2, 5.0), 2.5: (6.6e-2, 3.0), 3.0: (6.6e-2, 2.0), 4.0: (1.35e-2, 1.0)}
SHALLOW, LONG = 7e-12, 40.0  # depth of mu = (.5, .25), and the time that shows it


def bounces() -> Iterable[Measurement]:
    """How far the entropy falls below its end, mu = (m, m/2) from v = .01."""
    for m, (depth, until) in DEPTHS.items():
        mu = np.array([m, m / 2])
        run = odesim.integrate("joma.nonlinear", params={"mu": mu}, initial={"v": 0.01}, span=(0, until), save=2001, rtol=1e-9, atol=1e-12)
        p = np.exp(mu**2 / 2) / np.exp(mu**2 / 2).sum()
        end = -float(np.sum(p * np.log(p)))
        yield Measurement(f"depth / table, mu = ({m:g}, {m / 2:g})", (end - float(run.observables["entropy"].min())) / depth, 1.0, 0.02)
    mu = np.array([0.5, 0.25])
    run = odesim.integrate("joma.nonlinear_log", params={"mu": mu, "v0": 0.01}, span=(0, LONG), save=401, **(FINE | {"rtol": 1e-12}))
    S = run.observables["entropy"]
    yield Measurement("depth / table, mu = (.5, .25)", float(S[-1] - S.min()) / SHALLOW, 1.0, 0.08)


def falls(Delta: np.ndarray, start: float | list[float]) -> Iterable[Measurement]:
    """The largest rise of the entropy along a run, and its end by erf(v / sqrt 2) = erf(v(0) / sqrt 2) + sqrt(2/pi) Delta t."""
    from scipy.special import erf, erfinv

    run = odesim.integrate("joma.linear", params={"Delta": Delta}, initial={"v": start}, span=(0, 0.9), save=200, **FINE)
    yield Measurement("largest rise of the entropy", np.diff(run.observables["entropy"]).max(), 0.0, 1e-9, "<=")
    grown = np.exp(erfinv(erf(np.array(start) / np.sqrt(2)) + np.sqrt(2 / np.pi) * Delta * 0.9) ** 2)
    share = grown / grown.sum()
    yield Measurement("entropy at t = .9", run.observables["entropy"][-1], -(share * np.log(share)).sum(), 1e-7)


CLAIMS = (
    *JOINT,
    *LATE,
    *NODES,
    *STEPPED,
    *SIGNALS,
    *SOFTMAX,
    *ENTROPY,
    Claim(
        "joma.conserved_ratio",
        Source(PAPER, "Theorem 2"),
        "joma.linear, Delta = (.2, .5, -.7, .9, 1), to .9 t*",
        "erf(v_l / 2) / Delta_l is the same for all l",
        lambda: ratios(2.0),
        SOLVER,
        fails=True,
        corrected=Statement("erf(v_l / sqrt 2) / Delta_l is the same for all l", lambda: ratios(np.sqrt(2)), SOLVER),
    ),
    Claim(
        "joma.blow_up_time",
        Source(PAPER, "Theorem 2"),
        "joma.linear to 2 t*, and in the rescaled clock",
        "the winner diverges as t -> infinity",
        lambda: reaches(2.0),
        "none: the run ends before",
        fails=True,
        corrected=Statement(
            "the winner, largest in |Delta|, diverges at t* = sqrt(pi/2) / |Delta|",
            blow_up,
            "1000 times the relative tolerance 1e-9 of the run",
        ),
    ),
    Claim(
        "joma.losers",
        Source(PAPER, "Theorem 2"),
        "joma.linear to v = 6",
        "the others end at sqrt 2 erfinv(Delta_l / |Delta_max|)",
        losers,
        "2e-9 of the time is left, dv/dt is below 4",
    ),
    Claim(
        "joma.normalised_winner",
        Source(PAPER, "Theorem 2", "softmax attention"),
        "joma.linear_softmax, Delta = (.5, -2, 1), to t = 100",
        "the winner diverges as t -> infinity, with slope |Delta_max|",
        slope,
        SOLVER,
    ),
    Claim(
        "joma.gradient_rank",
        Source(PAPER, "Theorem 2", "several nodes; the numbers by an independent script"),
        "joma.linear_multinode, M = 40, K = 20, Delta of default_rng(0)",
        "dV/dt becomes of rank one long before V",
        ranks,
        "half a unit of the last digit of the table",
    ),
    Claim(
        "joma.rate_ratio",
        Source(PAPER, "Theorem 4"),
        "joma.nonlinear, mu = (2, 1), v(0) = 0",
        "ln 1/(1 - v_j/mu_j) grow in the ratio exp((mu_j^2 - mu_k^2)/2)",
        rate_ratio,
        "1 % of the ratio 4.48",
        fails=True,
        corrected=Statement(
            "ln 1/(1 - v/mu) = exp(mu^2/2) t - K(mu) + o(1): the ratio is a limit", delays, "o(1) is a few times 1 - v/mu, 7e-4 for mu = 1"
        ),
    ),
    Claim(
        "joma.bounce",
        Source(PAPER, "Theorem 4 and Fig. 4", "the depths by an independent script"),
        "joma.nonlinear, mu = (m, m/2), v(0) = .01, and joma.nonlinear_log for m = .5",
        "the entropy of attention falls below its end and comes back",
        bounces,
        "digits of the table",
    ),
    Claim(
        "joma.linear_sparsifies",
        Source(PAPER, "Theorem 2, a consequence"),
        "joma.linear, Delta > 0, from v = 0 and from a component ahead that is not salient",
        "with linear activation attention only becomes sparser",
        lambda: falls(np.abs(DELTA), 0.0),
        "rounding of sums of five terms; 1000 times the tolerance of the run",
        when="the start has the order of the saliency, as v(0) = 0",
        otherwise=lambda: falls(np.array([0.01, 0.5, 0.7, 0.9, 1.0]), [2.0, 0.0, 0.0, 0.0, 0.0]),
    ),
)
