"""What is stated of the eigenmodes of BYOL and SimSiam, and what holds: balance, collapse, its basin, moving average, DirectPred."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from scipy.integrate import cumulative_trapezoid, quad
from sympy import Symbol, sqrt

import odesim
from odesim.lab.claims import Claim, Mark, Measurement, Statement, deviation
from odesim.models.self_supervised._parabola import rest_points
from odesim.symbolic import Source

PAPER, MODES, EMA, DIRECT = "tian2021understanding", *(f"self_supervised.{name}" for name in ("modes", "modes_ema", "direct_pred"))
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}
LOW, HIGH = (float(root.real) for root in rest_points(0.04, 0.1))
"""p- and p+ of eta = .04, sigma2 = .1."""


def run(p: Any, s: Any, t: Any, model: str = MODES, **params: float) -> Any:
    """A run of modes from p and s (n,), kept at 0 and the times t."""
    initial = {"p": np.atleast_1d(p), "s": np.atleast_1d(s)}
    times = [0.0, *np.atleast_1d(t)]
    return odesim.integrate(model, initial=initial, sizes={"n": len(initial["p"])}, params=params, save=times, span=(0, times[-1]), **FINE)


def integral(sign: float) -> Iterable[Measurement]:
    """s - p^2/alpha of three modes beside exp(-2 eta t) sign (p(0)^2/alpha - s(0)), alpha = 1.7."""
    found = run((0.05, 0.3, 0.6), (0.5, 0.3, 0.7), np.arange(1, 31), alpha=1.7)
    c = sign * (found.y["p"][0] ** 2 / 1.7 - found.y["s"][0])
    yield deviation("s - p^2/alpha up to t = 30", found.observables["balance"], np.exp(-0.08 * found.t[:, None]) * c, 1e-8)


ENDS = {0.2: (0.6120087, 0.6120046), 0.227: (0.4886594, 0.4702914), 0.2273: (0.4858984, 0.0), 0.25: (0.0087387, 0.0)}
"""eta -> p at t = 50 and 2000 from (.6, .5), by two other integrators."""


def collapse() -> Iterable[Measurement]:
    """One mode from p = .6, s = .5 at four weight decays, around 1/(4 * 1.1) = .22727."""
    for eta, recorded in ENDS.items():
        p = run(0.6, 0.5, (50, 2000), eta=eta).y["p"][1:, 0]
        for t, found, want in zip((50, 2000), p, recorded, strict=True):
            yield Measurement(f"p at t = {t}, eta = {eta:g}", found, want, 1e-7)


def end(p: float, s: float) -> Measurement:
    """p at t = 600 from (p, s), which is p+ or 0: 0 for a start below p-."""
    return Measurement(f"p in the end from p = {p:g}, s = {s:g}", run(p, s, 600).y["p"][-1, 0], HIGH if p > LOW else 0.0, 1e-6)


def basin(starts: Iterable[tuple[float, float]]) -> Iterable[Measurement]:
    """The ends from these starts (p, s)."""
    return map(end, *zip(*starts, strict=True))


def on_the_parabola() -> Iterable[Measurement]:
    """Balanced starts on both sides of p- = .04193, and the time of two passages."""
    yield from basin((p, p**2) for p in (0.03, 0.041, 0.0425, 0.6))
    for first, last, want in ((0.05, 0.8, 53.2102063), (0.045, 0.5, 72.3547509)):
        events = [f"there: p[0] - {last}"]
        given: dict[str, Any] = {"initial": {"p": first, "s": first**2}, "sizes": {"n": 1}, "span": (0, 100), "save": 2}
        (passed,) = odesim.integrate(MODES, events=events, **given, **FINE).events["there"]
        yield Measurement(f"time from p = {first:g} to {last:g}", passed["t"], want, 1e-6)


def without_decay() -> Iterable[Measurement]:
    """Two modes without weight decay, alpha = 1, and one of alpha = 5."""
    for alpha, p0, s0 in ((1.0, (0.2, -0.3), (0.3, 0.2)), (5.0, (-0.3,), (0.05,))):
        found = run(p0, s0, 400, eta=0.0, alpha=alpha)
        want = np.array(s0) + ((1 / 1.1) ** 2 - np.square(p0)) / alpha
        yield deviation(f"p in the end, alpha = {alpha:g}", found.final["p"], 1 / 1.1, 1e-6)
        yield deviation(f"s in the end, alpha = {alpha:g}", found.final["s"], want, 1e-6)
    yield Measurement("s at t = 400 from (.2, .3)", run(0.2, 0.3, 400, eta=0.0).final["s"][0], 1.0864463, 1e-7)
    given: dict[str, Any] = {"initial": {"p": 0.2, "s": 0.3}, "params": {"eta": 0.0}, "sizes": {"n": 1}, "span": (0, 10), "save": 2}
    (passed,) = odesim.integrate(MODES, events=["there: p[0] - 0.6"], **given, **FINE).events["there"]
    time = quad(lambda p: 1 / ((0.26 + p**2) * (1 - 1.1 * p)), 0.2, 0.6)[0]  # s = .3 + p^2 - .2^2
    yield Measurement("time from p = .2 to .6", passed["t"], time, 1e-8)


def fast_predictor() -> Iterable[Measurement]:
    """A start p < 0 with small s, that a slow predictor loses; and a balanced end, whose p has forgotten alpha."""
    for alpha, want in ((1.0, 0.0), (5.0, 1 / 1.1)):
        s = float(run(-0.3, 0.05, 1000, eta=0.0, alpha=alpha).final["s"][0])
        yield Measurement(f"s in the end without decay, alpha = {alpha:g}", s, want and 0.05 + (want**2 - 0.09) / alpha, 1e-5)
    for alpha, p, s in ((0.2, 0.8672583, 3.7598026), (5.0, 0.8698670, 0.1503921)):
        found = run(0.05, 0.1, (30, 400), alpha=alpha)
        yield Measurement(f"p at t = 30, alpha = {alpha:g}", found.y["p"][1, 0], p, 1e-7)
        yield Measurement(f"s at t = 400, alpha = {alpha:g}", found.y["s"][2, 0], s, 1e-6)


def averaged() -> Iterable[Measurement]:
    """Two modes with a moving average, beside those without: (p, s, tau) at t = 20 and 200."""
    found = run((0.05, 0.35), (0.1, 0.1), (5, 20, 200), EMA, beta=0.4)
    recorded = np.array([[0.8370703, 0.7203716, 0.9751485], [0.8366285, 0.6954045, 0.9754292]])
    yield deviation("p, s, tau at t = 20", np.stack([found.y[name][2] for name in ("p", "s", "tau")], axis=-1), recorded, 1e-7)
    yield deviation("p in the end", found.final["p"], HIGH, 2e-6)
    yield deviation("s in the end", found.final["s"], HIGH**2, 2e-6)
    ahead = run((0.05, 0.35), (0.1, 0.1), 5).final["p"] - found.y["p"][1]
    yield Measurement("p at t = 5, less than without by at least", ahead.min(), 0.1, 0.0, ">=")


def target() -> Iterable[Measurement]:
    """tau on the parabola, from 0, beside its integral over a run kept at 4001 times; and p where tau = 1/2."""
    given: dict[str, Any] = {"initial": {"p": 0.6, "s": 0.36, "tau": 0.0}, "sizes": {"n": 1}, "span": (0, 20), "save": 4001}
    found = odesim.integrate(EMA, events=["half: tau[0] - 0.5"], **given, **FINE)
    p, tau = found.y["p"][:, 0], found.y["tau"][:, 0]
    filtered = 0.4 * np.exp(-0.4 * found.t) / p * cumulative_trapezoid(p * np.exp(0.4 * found.t), found.t, initial=0)
    yield deviation("tau beside the integral", tau, filtered, 1e-5)


def direct() -> Iterable[Measurement]:
    """s of three modes at t = 5 and 20 without eps, in the end with it; and a start below p-."""
    recorded: dict[float, dict[float, tuple[float, ...]]] = {
        0.0: {5.0: (0.7216850, 0.5315230, 0.0183645), 20.0: (0.7519603, 0.7519579, 0.7093765)},
        0.1: {20.0: (0.6214549, 0.6214508, 0.6195680), 200.0: ((HIGH / 1.1) ** 2,) * 3},
    }
    for eps, rows in recorded.items():
        for t, s in rows.items():
            yield deviation(f"s at t = {t:g}, eps = {eps:g}", directly((0.3, 0.1, 0.01), eps, t), s, 1e-7)
    for eps, want in ((0.0, (HIGH**2, 0.0)), (0.1, ((HIGH / 1.1) ** 2,) * 2)):
        yield deviation(f"s in the end from s = .5, .001, eps = {eps:g}", directly((0.5, 0.001), eps, 1000.0), want, 1e-6)


def directly(s: tuple[float, ...], eps: float, t: float) -> Any:
    """s (n,) at t of DirectPred."""
    given: dict[str, Any] = {"params": {"eps": eps}, "sizes": {"n": len(s)}, "span": (0, t), "save": 2}
    return odesim.integrate(DIRECT, initial={"w": np.sqrt(s)}, **given, **FINE).final_observables["s"]


DIGITS, LAST = "100 to 1000 times the relative tolerance", "a unit of the last recorded digit"
ONE = "self_supervised.modes, sigma2 = .1, eta = .04 unless said"
MODE_CLAIMS = (
    Claim(
        "self_supervised.integral",
        Source(PAPER, "eq. 14"),
        "self_supervised.modes, three modes off the parabola, alpha = 1.7",
        "s = p^2/alpha + exp(-2 eta t) c with c = p(0)^2/alpha - s(0)",
        partial(integral, 1.0),
        DIGITS,
        fails=True,
        corrected=Statement("s = p^2/alpha + exp(-2 eta t) c with c = s(0) - p(0)^2/alpha", partial(integral, -1.0), DIGITS),
    ),
    Claim(
        "self_supervised.collapse",
        Source(PAPER, "Section 3.2", "below eq. 16"),
        f"{ONE}; from p = .6, s = .5, eta = .2 to .25",
        "above eta = 1/(4 (1 + sigma2)) collapse is unavoidable, below it p+ is stable",
        collapse,
        LAST,
        marks=(Mark("p", (1 + sqrt(1 - 4 * (1 + Symbol("sigma2")) * Symbol("eta"))) / (2 + 2 * Symbol("sigma2"))),),
    ),
    Claim(
        "self_supervised.basin",
        Source(PAPER, "Section 3.2", "below eq. 16"),
        ONE,
        "modes with p(0) < p- collapse, those with p(0) > p- are learned",
        on_the_parabola,
        "rest states: 1e-6, as times are finite; times: 1e-6",
        when="they start on the parabola s = p^2/alpha; off it the edge is a curve, and s counts too",
        otherwise=partial(basin, ((0.01, 0.3), (0.01, 0.02), (0.02, 0.001))),
        depends=("self_supervised.integral",),
    ),
    Claim(
        "self_supervised.no_decay",
        Source(PAPER, "Section 3.2", "no weight decay"),
        "self_supervised.modes, eta = 0, starts above the parabola",
        "p -> 1/(1 + sigma2) and s -> s(0) + (p(end)^2 - p(0)^2)/alpha from every start s(0) > p(0)^2/alpha",
        without_decay,
        LAST,
    ),
    Claim(
        "self_supervised.fast_predictor",
        Source(PAPER, "Section 3.2", "observations 1 and 2"),
        "self_supervised.modes, alpha = .2, 1 and 5",
        "a faster predictor saves starts that collapse, but learns a smaller s: p+^2/alpha",
        fast_predictor,
        LAST,
        depends=("self_supervised.basin",),
    ),
    Claim(
        "self_supervised.moving_average",
        Source(PAPER, "Section 3.2", "observation 9"),
        "self_supervised.modes_ema, beta = .4, beside self_supervised.modes",
        "a moving average makes learning slower and ends at the same p+ and s",
        averaged,
        LAST,
    ),
    Claim(
        "self_supervised.target",
        Source(PAPER, "eq. 15"),
        "self_supervised.modes_ema, one mode on the parabola, tau(0) = 0",
        "tau(t) = beta exp(-beta t) int p exp(beta t') dt' / p(t)",
        target,
        "of the trapezoidal rule with steps of .005",
    ),
    Claim(
        "self_supervised.direct_pred_modes",
        Source(PAPER, "Section 4", "eq. 18 in the form of the paper's code"),
        "self_supervised.direct_pred, three modes and two",
        "a predictor that is set learns all modes to p+, and small ones, which collapse else, by eps",
        direct,
        LAST,
    ),
)
