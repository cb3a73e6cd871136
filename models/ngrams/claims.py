"""What is stated of how predictions from counts are learned, and what holds of two layers of linear attention."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, deviation
from odesim.models.ngrams.linear import least_loss, moments, two_states
from odesim.symbolic import Source

MODEL, PAPER = "ngrams.linear", "edelman2024evolution"
FINE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12, "backend": "numpy"}
AT_100 = {"w_d": 0.629625, "w_o": 0.369286, "v": (-0.002282, 0.806109, 0.233556, 0.528384, 0.286608)}
TIMES = {0.1: (1.4214, 181.93), 0.01: (4.6445, 179.35), 0.001: (7.8293, 181.90), 1e-4: (11.0132, 185.01)}


def nearest(run: Any) -> np.ndarray:
    """Which strategy the prediction is nearest to at each saved time: 0 uniform, 1 unigram, 2 bigram."""
    seen = run.observables
    return np.argmin([seen["from_uniform"], seen["from_unigram"], 2 * seen["loss"]], axis=0)


def stages() -> Iterable[Measurement]:
    """Two states, from .01: the nearest strategy, v_1 among v, recorded weights at t = 100, and levels of the loss."""
    run = odesim.integrate(MODEL, save=401, **FINE)
    near, v = nearest(run), run.y["v"]
    first = [int(np.argmax(near == strategy)) for strategy in range(3)]
    yield Measurement("first time at which the unigram is nearest", run.t[first[1]], 6.0)
    yield Measurement("first time at which the bigram is nearest", run.t[first[2]], 215.0, 5.0)
    yield Measurement("times at which a strategy is nearest that was passed", (np.diff(near) < 0).sum(), 0.0)
    late = run.t >= run.events["unigram"][0]["t"]
    yield Measurement(
        "v_1 less the largest other v, from the unigram on", (v[late, 1] - np.delete(v[late], 1, axis=1).max(axis=1)).min(), 0.0, 0.0, ">="
    )
    yield deviation("w_d, w_o at t = 100", (run.y["w_d"][100], run.y["w_o"][100]), (AT_100["w_d"], AT_100["w_o"]), 6e-7)
    yield deviation("v at t = 100", v[100], AT_100["v"], 6e-7)
    yield Measurement("loss at t = 100", run.observables["loss"][100], 0.028974, 6e-7)
    means = moments(*two_states(), 5)
    for name, value, want in (
        ("nothing", means["S"] / 2, 0.340863),
        ("unigram", (means["S"] - means["B"]) / 2, 0.034010),
        ("least", least_loss(means), 0.004279),
        ("E |pi|^2, 2(1 - ln 2)", means["B"], 2 * (1 - np.log(2))),
    ):
        yield Measurement(f"level: {name}", value, want, 6e-7)
    yield Measurement("loss at t = 20 over the unigram", float(run.observables["loss"][20]) / 0.034010, 1.0, 0.05)


def times() -> Iterable[Measurement]:
    """From w0 = .1 to 1e-4: both times, the slope of the first against ln(1/w0), and how far apart the second ones are."""
    found = {}
    for w0, row in TIMES.items():
        run = odesim.integrate(MODEL, params={"w0": w0}, span=(0, 200), save=2, **FINE | {"atol": 1e-14})
        found[w0] = [float(run.events[name][0]["t"]) for name in ("unigram", "bigram")]
        for name, time, want in zip(("unigram", "bigram"), found[w0], row, strict=True):
            yield Measurement(f"w0 = {w0:g}: {name}, over its digits", time / want, 1.0, 5e-5)
    means = moments(*two_states(), 5)
    sigma = np.linalg.svd(np.array([means["A"], means["B"] - means["A"]]) / np.sqrt(2))[1][0]
    yield Measurement("sigma", sigma, 0.723204, 6e-7)
    slope = (found[1e-4][0] - found[0.001][0]) / np.log(10)
    # the other mode, at .028, has grown by a percent
    yield Measurement("later of the unigram for each e-fold of w0, times sigma", slope * sigma, 1.0, 2e-3)
    second = [row[1] for row in found.values()]
    yield Measurement("range of the second time over its mean", np.ptp(second) / np.mean(second), 0.035, 0.0, "<=")


DIGITS = "half a unit of the last recorded digit"
CLAIMS = (
    Claim(
        "ngrams.stages",
        Source(PAPER, "Abstract", "phases: uniform, unigrams, bigrams"),
        "ngrams.linear, two states, lags 0 to 4, from .01, to t = 400",
        "predictions are uniform, then unigrams, then bigrams, and v_1 is the largest from the unigram on",
        stages,
        DIGITS,
    ),
    Claim(
        "ngrams.times",
        Source(PAPER, "Abstract", "how long each phase takes"),
        "ngrams.linear, two states, lags 0 to 4, from .1, .01, .001 and .0001",
        "the unigram comes at ln(1/w0)/sigma, the bigram at a time that w0 does not change: a slow slope, no second saddle",
        times,
        DIGITS + "; 3 %",
        depends=("ngrams.stages",),
    ),
)
