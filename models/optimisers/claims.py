"""What is stated of optimisers, and what holds: one rate for all, Adam and its flow, momentum's edge, Muon's singular values."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.symbolic import Source

SIGN, ADAM, STEPS, BALL, MASS, SCHULZ, MUON = (
    f"optimisers.{name}" for name in ("sign", "adam", "adam_steps", "heavy_ball", "momentum", "newton_schulz", "muon")
)
FINE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12}
A = np.array([[3, 0.5, 0], [0.2, 1.5, 0.3], [0, 0.1, 0.6]])
VALUES = np.linalg.svd(A)[1]


def sliding() -> Iterable[Measurement]:
    """H = ((2, 1.5), (1.5, 2)) from (1, .2), sharp to 1e-4: straight to t = 19/35, then along w2 = -3/4 w1, to 0 at t = 1."""
    times = [0.0, 0.3, 19 / 35, 0.9, 1.0]
    given: dict[str, Any] = {"params": {"H": [[2, 1.5], [1.5, 2]], "w0": [1, 0.2], "eps": 1e-4}, "method": "rodas5p"}
    w = odesim.integrate(SIGN, span=(0, 1), save=times, **given, **FINE).y["w"]
    for t, found, want in zip(times[1:], w[1:], ((0.7, -0.1), (16 / 35, -12 / 35), (0.1, -0.075), (0.0, 0.0)), strict=True):
        yield deviation(f"w at t = {t:.4g}", found, want, 1e-3)


def one_rate(t: float) -> Iterable[Measurement]:
    """Signs of singular values of A from 0 at t, in its singular vectors: H = 1, b = s; beside singular values of W by Muon, lr = .002."""
    params: dict[str, Any] = {"H": np.eye(3), "b": VALUES, "w0": 0.0, "eps": 1e-5}
    w = odesim.integrate(SIGN, sizes={"n": 3}, params=params, span=(0, t), save=2, method="rodas5p", **FINE).final["w"]
    yield deviation(f"modes at t = {t:g}", w, np.minimum(t, VALUES), 2e-4)


def muon() -> Iterable[Measurement]:
    """Singular values of Muon's W at t = .5 and .8 over min(t, s_i), lr = .002: within those of its polynomial."""
    run = odesim.integrate(MUON, params={"A": A, "lr": 0.002}, span=(0, 400), save=[0, 250, 400])
    for t, W in zip((0.5, 0.8), run.y["W"][1:], strict=True):
        rates = np.linalg.svd(W)[1] / np.minimum(t, VALUES)
        yield Measurement(f"slowest mode at t = {t:g}, part of its way", rates.min(), 0.6818, 0.005, ">=")
        yield Measurement(f"fastest mode at t = {t:g}, part of its way", rates.max(), 1.1344, 0.005, "<=")


def gradient_rates() -> Iterable[Measurement]:
    """When each mode of two layers has half of its value, from 1e-4: ln(s / a0 - 1) / (2 s)."""
    events = [f"half {k}: a[{k}] - {value / 2}" for k, value in enumerate(VALUES)]
    given: dict[str, Any] = {"params": {"s": VALUES, "L": 2.0}, "initial": {"a": 1e-4}, "sizes": {"r": 3}, "span": (0, 20)}
    run = odesim.integrate("classics.deep_linear_modes", events=events, save=2, **given, **FINE)
    for k, value in enumerate(VALUES):
        want = float(np.log(value / 1e-4 - 1) / (2 * value))
        yield Measurement(f"half of mode {k}", run.events[f"half {k}"][0]["t"], want, 1e-6)


SCHULZ_RECORDED = {0.001: 0.470544, 0.01: 0.698917, 0.1: 0.712120, 0.5: 0.765439, 1.0: 0.696436}


def orthogonal(five: bool) -> Iterable[Measurement]:
    """500 singular values of [.01, 1] after five steps, beside 1, or beside [.6818, 1.1344]; five of them beside another program."""
    s = np.linspace(0.01, 1, 500)
    found = odesim.integrate(SCHULZ, sizes={"K": 500}, initial={"s": s}, span=(0, 5), save=2).final["s"]
    if not five:
        yield deviation("singular values of 5 steps", found, 1.0, 0.01)
        return
    yield Measurement("least of 500", found.min(), 0.6818, 1e-4, ">=")
    yield Measurement("largest of 500", found.max(), 1.1344, 1e-4, "<=")
    few = odesim.integrate(SCHULZ, sizes={"K": 5}, initial={"s": list(SCHULZ_RECORDED)}, span=(0, 5), save=2).final["s"]
    yield deviation("after 5 steps", few, list(SCHULZ_RECORDED.values()), 1e-6)
    later = odesim.integrate(SCHULZ, sizes={"K": 500}, initial={"s": found}, span=(0, 200), save=2).final["s"]
    yield Measurement("farthest from 1 after 200 more", np.abs(later - 1).max(), 0.25, 0.0, ">=")
    cubic = odesim.integrate(SCHULZ, sizes={"K": 500}, initial={"s": s}, params={"a": 1.5, "b": -0.5, "c": 0.0}, span=(0, 40), save=2)
    yield deviation("the cubic after 40 steps", cubic.final["s"], 1.0, 1e-12)


TIMES = (0.1, 0.5, 1.0, 2.0)
FLOW = ((0.90037344, 0.90028174), (0.53242455, 0.53198235), (0.20529027, 0.20465842), (0.00254445, 0.00244196))
TEN: dict[str, Any] = {"H": np.diag([1.0, 10.0]), "w0": 1.0, "eps": 1e-3}


def flow() -> Any:
    """w (time, 2) of Adam's flow, H = diag(1, 10), t1 = .1, t2 = 1, with a first step of 1e-7."""
    run = odesim.integrate(ADAM, params={**TEN, "t1": 0.1, "t2": 1.0, "first": 1e-7}, span=(0, 2), save=[0.0, *TIMES], **FINE)
    return run.y["w"][1:]


def adams_flow() -> Iterable[Measurement]:
    """The flow beside two other integrators, and Adam's steps beside it at t = 1 as lr is halved; both directions move at one rate."""
    found = flow()
    yield deviation("w of the flow", found, FLOW, 1e-6)
    yield Measurement("difference of the two directions up to t = 2", np.abs(np.diff(found, axis=1)).max(), 0.0, 1e-3)
    gaps = []
    for lr in (0.004, 0.002, 0.001, 0.0005):
        params = {**TEN, "lr": lr, "b1": float(np.exp(-lr / 0.1)), "b2": float(np.exp(-lr))}
        w = odesim.integrate(STEPS, params=params, span=(0, round(1 / lr)), save=2).final["w"]
        gaps.append(abs(float(w[0]) - FLOW[2][0]))
    yield Measurement("distance of w[0] at t = 1, lr = .004", gaps[0], 4.757e-4, 1e-6)
    for lr, ratio in zip((0.004, 0.002, 0.001), np.array(gaps[:-1]) / gaps[1:], strict=True):
        yield Measurement(f"distance at lr = {lr:g} over that at half of it", ratio, 2.0, 0.05)


def constant_slope() -> Iterable[Measurement]:
    """H = 0, slopes of -3 and .01: what Adam's flow and steps move by in t = 1."""
    given: dict[str, Any] = {"H": np.zeros((2, 2)), "b": [3.0, -0.01], "w0": 0.0, "eps": 1e-9}
    yield deviation("w at t = 1 of the flow", odesim.integrate(ADAM, params=given, span=(0, 1), save=2, **FINE).final["w"], (1, -1), 1e-6)
    found = odesim.integrate(STEPS, params={**given, "lr": 0.01}, span=(0, 100), save=2).final["w"]
    yield deviation("w after 100 steps of .01", found, (1, -1), 1e-6)


def edge() -> Iterable[Measurement]:
    """One direction of curvature h, lr = .01, mu = .9: |w| after 20,000 steps below and above h = 380."""
    for h, grows in ((379.0, False), (381.0, True)):
        w = odesim.integrate(BALL, sizes={"n": 1}, params={"H": [[h]], "lr": 0.01, "mu": 0.9}, span=(0, 20_000), save=2).final["w"]
        yield Measurement(f"|w| in the end, h = {h:g}", min(abs(float(w[0])), 2.0), 1.0, 0.0, ">=" if grows else "<=")


def limit() -> Iterable[Measurement]:
    """Heavy balls of friction 1 beside the flow at t = 2, three learning rates: the distance falls as the root of lr."""
    gaps = []
    for lr in (1e-4, 2.5e-5, 6.25e-6):
        mu, end = 1 - np.sqrt(lr), round(2 / np.sqrt(lr))
        given: dict[str, Any] = {"H": np.diag([1.0, 10.0]), "w0": 1.0}
        steps = odesim.integrate(BALL, params={**given, "lr": lr, "mu": mu}, span=(0, end), save=2).final["w"]
        smooth = odesim.integrate(MASS, params={**given, "gamma": 1.0}, span=(0, end * np.sqrt(lr)), save=2, **FINE).final["w"]
        gaps.append(float(np.abs(steps - smooth).max()))
    for ratio in np.array(gaps[:-1]) / gaps[1:]:
        yield Measurement("distance over that at a quarter of lr", ratio, 2.0, 0.1)


DIGIT = "a unit of the last recorded digit, and 100 times the tolerance of a run"
CLAIMS = (
    Claim(
        "optimisers.sliding",
        Source("bernstein2018signsgd", "Algorithm 1", "two weights whose slopes are coupled"),
        "optimisers.sign, H = ((2, 1.5), (1.5, 2)), eps = 1e-4",
        "signs move straight until a slope is 0, and slide along it from there",
        sliding,
        "ten times eps",
    ),
    Claim(
        "optimisers.one_rate",
        Source("jordan2024muon", "what the polar factor would do: derived"),
        "optimisers.sign in singular vectors of a matrix, H = 1, b = s",
        "all modes are learned at one rate: singular values are min(t, s_i)",
        partial(one_rate, 0.8),
        "ten times eps",
    ),
    Claim(
        "optimisers.muon_rates",
        Source("jordan2024muon", "muon.py", "the steps it takes"),
        "optimisers.muon, 3 x 3, lr = .002",
        "modes rise at rates of .68 to 1.13 of the polar factor's",
        muon,
        "two steps of lr",
        depends=("optimisers.one_rate", "optimisers.orthogonal"),
    ),
    Claim(
        "optimisers.two_layers",
        Source("saxe2014exact", "what gradient descent does in the place of it"),
        "classics.deep_linear_modes, two layers from 1e-4",
        "gradient descent learns modes one by one, after times as 1/s_i",
        gradient_rates,
        "1000 times the tolerance of a run",
    ),
    Claim(
        "optimisers.orthogonal",
        Source("jordan2024muon", "muon.py", "five steps"),
        "optimisers.newton_schulz, 500 values of [.01, 1]",
        "five steps orthogonalise: singular values are 1",
        partial(orthogonal, False),
        "1 %",
        fails=True,
        corrected=Statement(
            "five steps bring them to [.68, 1.13], where they roam for ever; the cubic converges",
            partial(orthogonal, True),
            "half of the last digit",
        ),
    ),
    Claim(
        "optimisers.adams_flow",
        Source("kingma2015adam", "Algorithm 1", "its limit of small steps: derived"),
        "optimisers.adam and optimisers.adam_steps, H = diag(1, 10)",
        "Adam follows a flow to first order in lr, in which curvatures of 1 and 10 are descended at one rate",
        adams_flow,
        DIGIT,
    ),
    Claim(
        "optimisers.constant_slope",
        Source("kingma2015adam", "Section 2.1", "the effective step"),
        "optimisers.adam and optimisers.adam_steps, H = 0",
        "at a slope that stays a step is lr, whatever the slope",
        constant_slope,
        "eps over the slope, 1e-7",
    ),
    Claim(
        "optimisers.momentum_edge",
        Source("polyak1964methods", "the method of a heavy ball"),
        "optimisers.heavy_ball, lr = .01, mu = .9",
        "descent is stable while lr h < 2 + 2 mu",
        edge,
        "none: it has died out or grown",
    ),
    Claim(
        "optimisers.heavy_flow",
        Source("polyak1964methods", "the method of a heavy ball", "its limit of small steps"),
        "optimisers.heavy_ball beside optimisers.momentum, friction 1",
        "momentum is a mass with friction (1 - mu) / sqrt(lr), to order sqrt(lr)",
        limit,
        "the next order",
    ),
)
