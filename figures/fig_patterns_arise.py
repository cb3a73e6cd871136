"""How patterns of attention arise: one token that tells the label is found; where all tell a little, attention stays even.

Stands beside elhage2021mathematical (skip-trigrams) and clark2019bert (heads that attend to all), which have no such pictures of
training: a, attention to the key among n = 4 noise tokens, and to one of sixteen tokens that all tell of the topic (all weights of the
head); b, their losses, the second to the entropy of the topic given the tokens; c, half of the attention is on the key at a time of order
n, K = 10, N = 50, to n K sqrt(pi / (2 c)), c = (1/K + 1/N)(K - 1); d, the output of the second against the tokens for a topic, to the
posterior of Bayes' rule.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import expit

import odesim
from odesim.models.patterns.claims import HALF_TIMES, tokens_of_topics, whole
from odesim.plot.figures import SCRIPT, THEORY, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "why sparse attention?"
TIMES = np.geomspace(1, 1000, 91)
SHOWN = (10.0, 100.0, 1000.0)
T, RHO = 16, 0.2
FINE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-11, "backend": "numpy"}


def data(fast: bool) -> xr.Dataset:
    """alpha and loss (model, t), u (t), output (shown, count), half_time (n,). fast: the same."""
    given: dict[str, Any] = {"span": (0, TIMES[-1]), "save": TIMES}
    key = odesim.integrate("patterns.skip_gram", **given, **FINE)
    mean = odesim.integrate("patterns.aggregate", sizes={"T": T}, params={"rho": RHO}, **given, **FINE)
    head = whole(tokens_of_topics(T, (RHO, RHO)), times=tuple(TIMES))
    odds = np.exp(head.y["Z"])  # of eight tokens of each kind
    times = [
        odesim.integrate("patterns.skip_gram", params={"K": 10, "N": 50, "n": n}, span=(0, 1.5 * want), save=2, **FINE).events["found"]
        for n, want in HALF_TIMES.items()
    ]
    count = np.arange(T + 1)
    margin = np.interp(np.log(SHOWN), np.log(TIMES), mean.y["u"])[:, None] * (2 * count - T) / T
    return xr.Dataset(
        {
            "alpha": (("model", "t"), [key.observables["alpha"], odds.max(axis=1) / (T / 2 * odds.sum(axis=1))]),
            "loss": (("model", "t"), [key.observables["loss"], mean.observables["loss"]]),
            "u": ("t", mean.y["u"]),
            "output": (("shown", "count"), expit(margin)),
            "half_time": ("n", [found[0]["t"] for found in times]),
        },
        coords={"t": TIMES, "model": ["one token tells", "all tell"], "shown": list(SHOWN), "count": count, "n": list(HALF_TIMES)},
        attrs={"T": T, "rho": RHO},
    )


def entropy() -> float:
    """Of the topic given the tokens: the least loss."""
    from scipy.stats import binom

    c = np.arange(T + 1)
    return float(binom.pmf(c, T, (1 + RHO) / 2) @ np.logaddexp(0, -(2 * c - T) * np.log((1 + RHO) / (1 - RHO))))


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes only the limits."""
    with picture("One token tells, or all tell a little", 104.0, width=130.0) as figure:
        (attention, losses), (times, outputs) = figure.subplots(2, 2)
        for j, model in enumerate(ds.model.values):
            look = {"color": CATEGORIES[j], "ls": DASHES[j], "label": str(model)}
            attention.plot(ds.t, ds.alpha.sel(model=model), **look)
            losses.plot(ds.t, ds.loss.sel(model=model), **look)
        losses.axhline(entropy(), color=FAINT, lw=0.8, ls=(0, (1, 1.5)), label="entropy of the topic")
        attention.set(xscale="log", xlabel="t", ylabel="attention to a token", ylim=(-0.02, 1.02))
        losses.set(xscale="log", xlabel="t", ylabel="loss", ylim=(0, 1.15))
        limit = 10 * np.sqrt(np.pi / (2 * (1 / 10 + 1 / 50) * 9))
        times.plot(ds.n, limit * ds.n, color=FAINT, lw=0.8, ls=(0, (1, 1.5)), label="$n K \\sqrt{\\pi/(2c)}$,\n$c = (1/K + 1/N)(K - 1)$")
        times.plot(ds.n, ds.half_time, "o", color=CATEGORIES[0], ms=3, label="half on the key")
        times.set(xscale="log", yscale="log", xlabel="noise tokens n", ylabel="time")
        times.set_xticks(ds.n.values, [str(n) for n in ds.n.values])
        times.minorticks_off()
        for j, t in enumerate(ds.shown.values):
            outputs.plot(ds["count"], ds.output.sel(shown=t), color=CATEGORIES[j], ls=DASHES[j], label=f"t = {t:g}")
        posterior = expit((2 * ds["count"] - T) * np.log((1 + RHO) / (1 - RHO)))
        outputs.plot(ds["count"], posterior, ".", color=FAINT, ms=4, label="Bayes")
        outputs.set(xlabel=f"tokens for a topic, of {T}", ylabel="its probability", ylim=(-0.03, 1.03))
        for axes, place in ((attention, "upper left"), (losses, "lower left"), (times, "upper left"), (outputs, "upper left")):
            axes.legend(loc=place)
            few_ticks(axes)
        few_log_ticks(attention, losses, times)
        letter_panels(attention, losses, times, outputs)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Half times to their digits, attention to 1 and even, the end of the second at Bayes' rule."""
    found, even = ds.alpha.sel(model="one token tells"), ds.alpha.sel(model="all tell")
    u = 16 * np.log(1.5)
    for n, want in HALF_TIMES.items():
        yield Feature(f"half time over its digits, n = {n}", float(ds.half_time.sel(n=n)) / want, 1.0, 4e-6, SCRIPT)
    yield Feature("attention to the key at t = 100", float(found.interp(t=100)), 0.933384, 1e-3, SCRIPT)
    yield Feature("attention to the key at t = 1000", float(found[-1]), 1.0, 0.04, THEORY)
    yield Feature("times at which attention to the key falls", float((found.diff("t") < 0).sum()), 0.0, 0.0)
    yield Feature("largest change of even attention", float(np.abs(even - 1 / T).max()), 0.0, 1e-10, THEORY)
    yield Feature("u of the mean at t = 1000", float(ds.u[-1]), 6.480787, 6e-7, SCRIPT)
    yield Feature("u at t = 1000 over Bayes' rule", float(ds.u[-1]) / u, 1.0, 2e-3, THEORY)
    yield Feature("loss of the mean at t = 1000", float(ds.loss.sel(model="all tell")[-1]), entropy(), 1e-6, THEORY)
    yield Feature("last exponent of the half times", float(np.log2(ds.half_time[-1] / ds.half_time[-2])), 1.0, 0.03, THEORY)
