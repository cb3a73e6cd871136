"""Attention selects tokens as a hard-margin separator does: direction, norm and attention over ten decades of time.

Stands beside the theorems of tarzanagh2023maxmargin, li2024mechanics and sheen2024implicit, gradient flows in the time ln(1 + t). a,
a trained query: |p| (line), with the slope of the separator's norm (dotted), and 1 - cosine with the separator; b, next tokens: logits of
two labels, 2/3 and 1/3, which stay ln 2 apart, and of a word that is no label. Dots: trained, a by gradient descent of rate 1, b by SGD on
labels in batches of 64. c, norms at margin 1 of W and of K Q^T, over their least
values (Frobenius for W, nuclear for both).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.models.margin._svm import cosine, differences, nuclear_norm, nuclear_separator, separator
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, FAINT, INK, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "why sparse attention?"
FINE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12, "backend": "numpy"}
TIMES = np.logspace(0, 12, 49)
EARLY = np.logspace(0, 4, 33)
LATE = np.logspace(2, 12, 41)
STEPS = np.array([10, 100, 1000, 10_000])


def run(model: str, times: np.ndarray, **given: Any) -> Any:
    """A run kept at these times of the flow, and at 0."""
    return odesim.integrate(f"margin.{model}", span=(0, np.log1p(times[-1])), save=np.log1p([0.0, *times]), **given, **FINE)


def data(fast: bool) -> xr.Dataset:
    """norm and cosine (time,), w (early, word), ratio (flow, late). fast: the same."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4, 5, 20))
    best = separator((X[:, :1] - X[:, 1:]).reshape(-1, 20))
    prompt = run("prompt", TIMES, params={"X": X})
    words = run("next_token", EARLY, params={"y": [0, 2 / 3, 1 / 3]})
    descent = odesim.train("selection", settings={"X": X}, steps=10_000, save=1001)
    sgd = odesim.train("next_token", steps=20_000, save=2001)  # at a rate of .05
    rng = np.random.default_rng(11)
    sequences = {"X": rng.normal(size=(3, 3, 4)), "z": rng.normal(size=(3, 4))}
    D = differences(**sequences)
    least, least_nuclear = separator(D.reshape(len(D), -1)), nuclear_separator(D)
    W = run("weights", LATE, params=sequences).y["W"][1:]
    one, small = (run("key_query", LATE, params={**sequences, "size": size}).observables["product"][1:] for size in (1.0, 0.01))
    margins = [np.einsum("kab,tab->tk", D, A).min(axis=1) for A in (W, W, one, small)]
    norms = [np.linalg.norm(W, axis=(1, 2)) / np.linalg.norm(least)]
    norms += [np.array([nuclear_norm(a) for a in A]) / nuclear_norm(least_nuclear) for A in (W, one, small)]
    ratio = [n / m for m, n in zip(margins, norms, strict=True)]  # from t = 100 on all tokens are separated
    return xr.Dataset(
        {
            "norm": ("time", prompt.observables["norm"][1:]),
            "cosine": ("time", [cosine(p, best) for p in prompt.y["p"][1:]]),
            "miss": ("time", [100 * (1 - cosine(p, best)) for p in prompt.y["p"][1:]]),
            "w": (("early", "word"), words.y["w"][1:]),
            "norm_trained": ("step", descent.observables["norm"][0, np.searchsorted(descent.t, STEPS)]),
            "w_trained": (("early_step", "word"), sgd.observables["w"][0, np.searchsorted(sgd.t, 20 * STEPS[:3])]),
            "ratio": (("flow", "late"), ratio),
        },
        coords={
            "time": TIMES,
            "early": EARLY,
            "late": LATE,
            "step": STEPS,
            "early_step": STEPS[:3],
            "word": [0, 1, 2],
            "flow": ["W, Frobenius", "W", "K Qᵀ from 1", "K Qᵀ from 0.01"],
        },
        attrs={"slope": float(np.linalg.norm(best))},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels in a row; it computes only the dotted line."""
    with picture("Attention becomes a separator of largest margin, as slowly as ln t", 56.0, width=160.0) as figure:
        left, middle, right = figure.subplots(1, 3)
        left.plot(ds.time, ds.norm, color=CATEGORIES[0], label="|p|")
        line = float(ds.norm[-1]) + ds.slope * np.log(ds.time.values / ds.time.values[-1])
        left.plot(ds.time, line, color=FAINT, ls=(0, (1, 1.5)), label="slope of the separator")
        left.plot(ds.time, ds.miss, color=CATEGORIES[1], label="100 (1 − cosine)")
        left.plot(ds.step, ds.norm_trained, "o", color=INK, ms=2.5, label="trained")
        left.set(xscale="log", xlabel="t", title="a query", ylim=(0, 13))
        left.legend(loc="upper left", bbox_to_anchor=(0.08, 1.03))
        for k, name in ((1, "label, 2/3"), (2, "label, 1/3"), (0, "no label")):
            middle.plot(ds.early, ds.w.sel(word=k), color=CATEGORIES[k], label=name)
            middle.plot(ds.early_step, ds.w_trained.sel(word=k), "o", color=INK, ms=2.5)
        middle.set(xscale="log", xlabel="t", ylabel="logit w", title="next tokens")
        middle.legend(loc="lower left")
        for k, name in enumerate(ds.flow.values):
            right.plot(ds.late, ds.ratio.sel(flow=name), color=CATEGORIES[k], ls="--" if k == 0 else "-", label=name)
        right.axhline(1, color=FAINT, lw=0.6)
        right.set(xscale="log", xlabel="t", ylabel="norm at margin 1 / least", title="matrices", ylim=(0.98, 1.4), xlim=(1e2, 1e12))
        right.legend(loc="upper right")
        few_ticks(left, middle, right)
        few_log_ticks(left, middle, right)
        letter_panels(left, middle, right)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Recorded numbers of two other integrators and of two solvers of the quadratic programmes."""
    yield Feature("norm of the separator", ds.slope, 0.4168523729, 1e-9, THEORY)
    yield Feature("|p| at t = 1e4", float(ds.norm.sel(time=1e4, method="nearest")), 4.3115586, 1e-6, THEORY)
    yield Feature("|p| at t = 1e12", float(ds.norm[-1]), 11.9569981, 1e-5, THEORY)
    yield Feature("cosine at t = 1e6", float(ds.cosine.sel(time=1e6, method="nearest")), 0.9928320, 1e-6, THEORY)
    yield Feature("cosine at t = 1e12", float(ds.cosine[-1]), 0.9969548, 1e-6, THEORY)
    yield Feature("gap of the labels at t = 1e3", float(np.diff(ds.w.sel(early=1e3, method="nearest"))[1]), -0.69364997, 1e-6, THEORY)
    yield Feature("logit of no label at t = 1e3", float(ds.w.sel(early=1e3, word=0, method="nearest")), -4.37192317, 1e-6, THEORY)
    for t, want in ((100, 2.41956), (1000, 3.36649), (10_000, 4.31318)):
        yield Feature(f"|p| at t = {t}, trained", float(ds.norm_trained.sel(step=t)), want, 1e-5, THEORY)
    hard, first, second = ds.w_trained.sel(early_step=1000).values
    # four deviations of one seed: .0003 of the hard part, .026 of the soft part
    yield Feature("logit of no label at t = 1e3, trained", float(hard), -4.37192317, 1.2e-3, THEORY)
    yield Feature("gap of the labels at t = 1e3, trained", float(second - first), -0.69364997, 0.11, THEORY)
    for flow, want in (("W, Frobenius", 2.17393 / 2.14756), ("K Qᵀ from 1", 2.9214 / 2.78114), ("K Qᵀ from 0.01", 3.0413 / 2.78114)):
        yield Feature(f"norm at margin 1 over the least, {flow}", float(ds.ratio.sel(flow=flow)[-1]), want, 5e-5, THEORY)
