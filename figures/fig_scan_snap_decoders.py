"""Plain gradients and decorrelated ones: the theory's attention is that of the second, faster by a factor that grows with M.

Stands beside Theorem 1 and Lemma 3 of tian2023scan, which drop the correlation of classes: Syn-Small, eta_Y = 1. a, the logit of common
tokens at eta_Z = 0.1: the flow of the theory, both full flows, and trainings in infinite contexts with either gradient of the decoder;
b, its ratio, theory over plain, at t = K ln M against M; with weakly correlated classes (one common token) it grows just so; c, the
winner's logit at t = 300 under the decorrelated gradient, less the theory, against eta_Z: first order in eta_Z / eta_Y.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, INK, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "why sparse attention?"
SIZES, RATES, END = (36.0, 1e3, 1e4), (0.3, 0.1, 0.03, 0.01, 0.003), 300.0
RATIO = {"Syn-Small": (9.80, 39.2, 95.4), "one common token": (3.16, 52.8, 442.0)}
ERROR = {0.3: -0.25, 0.03: -0.029, 0.003: -0.0029}
RISING = np.linspace(0.1, 1, 10)
DATA: dict[str, Any] = {
    "Syn-Small": {"p": RISING / 15.5, "pc": [1 / 15.5], "mc": [10.0]},
    "one common token": {"p": RISING / 6.1, "pc": [0.6 / 6.1], "mc": [1.0]},
}
FINE = {"rtol": 1e-10, "atol": 1e-14}
FLOWS = {"theory": "scan_snap.reduced", "decorrelated": "scan_snap.full_decorrelated", "plain": "scan_snap.full"}
TRAINED = {"decorrelated": "decorrelated", "plain": "vanilla"}
LATE, WINNER, SLOW = 200, 19, 0.1


def ratio(data: str, M: float) -> float:
    """The logit of common tokens at t = K ln M in the theory over that with plain gradients, eta_Z = .01."""
    params = {**DATA[data], "M": M, "eta_Z": 0.01}
    small, plain = (
        odesim.integrate(f"scan_snap.{name}", params=params, span=(0, 2 * np.log(M)), save=2, **FINE)
        for name in ("reduced_symmetric", "symmetric")
    )
    return float(small.observables["zc"][-1, 0] / plain.y["zc"][-1, 0])


def winner(model: str, eta_Z: float) -> float:
    """The logit of the most frequent distinct token at t = 300."""
    return float(odesim.integrate(FLOWS[model], params={"eta_Z": eta_Z}, span=(0, END), save=2, **FINE).final["Z"][0, WINNER])


def data(fast: bool) -> xr.Dataset:
    """zc (flow, t) and of trainings (training, iteration), ratio (data, M), error (rate). fast: three rates, not five."""
    times = np.linspace(0, LATE, 201)
    flows = [odesim.integrate(name, params={"eta_Z": SLOW}, span=(0, LATE), save=times, **FINE) for name in FLOWS.values()]
    table = {"P": flows[0].observables["c"][0], "momentum": 0.0, "eta_Z": SLOW, "M": 34}
    runs = [odesim.train("scan_snap", settings={**table, "decoder": kind}, steps=LATE, observe=["Z"]) for kind in TRAINED.values()]
    rates = RATES[::2] if fast else RATES
    return xr.Dataset(
        {
            "zc": (("flow", "t"), [run.y["Z"][:, 0, 0] for run in flows]),
            "trained": (("training", "iteration"), [run.observables["Z"][0, :, 0, 0] for run in runs]),
            "ratio": (("data", "M"), [[ratio(name, M) for M in SIZES] for name in DATA]),
            "error": ("rate", [1 - winner("decorrelated", rate) / winner("theory", rate) for rate in rates]),
        },
        coords={
            "flow": list(FLOWS),
            "training": list(TRAINED),
            "t": times,
            "iteration": runs[0].t,
            "data": list(DATA),
            "M": list(SIZES),
            "rate": list(rates),
        },
        attrs={"eta_Z": SLOW, **FINE},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels in a row; it computes only a line of slope 1."""
    with picture("Which decoder the theory is about", 55.0, width=165.0) as figure:
        logit, factor, error = figure.subplots(1, 3)
        for j, name in enumerate(ds.flow.values):
            logit.plot(ds.t, ds.zc.sel(flow=name), color=CATEGORIES[j], ls=DASHES[j], label=str(name))
        for j, name in enumerate(ds.training.values):
            logit.plot(
                ds.iteration[::10],
                ds.trained.sel(training=name)[::10],
                "os"[j],
                ms=2.5,
                mfc="none",
                mew=0.5,
                color=INK,
                label=f"{name}, trained",
            )
        logit.set(xlabel="t (SGD steps)", ylabel="z of a common token", xlim=(0, float(ds.t[-1])))
        logit.legend(loc="upper right")
        for j, name in enumerate(ds.data.values):
            factor.plot(ds.M, ds.ratio.sel(data=name), "os"[j] + "-", color=CATEGORIES[j], label=str(name))
        factor.set(xscale="log", yscale="log", xlabel="tokens M", ylabel="theory over plain, at K ln M", ylim=(1, 2e3))
        factor.legend(loc="upper left")
        error.plot(ds.rate, ds.error, "o-", color=CATEGORIES[0])
        error.plot(ds.rate, ds.rate, color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
        error.set(xscale="log", yscale="log", xlabel="$η_Z / η_Y$", ylabel="relative error of the winner's z")
        few_ticks(logit)
        few_log_ticks(factor, error)
        letter_panels(logit, factor, error)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Trainings on their flows, the table of ratios, errors of first order."""
    for name in ds.training.values:
        flow = ds.zc.sel(flow=name).values
        # steps of one: the distance is of first order in eta_Y = 1, and largest at the knee
        off = np.abs(ds.trained.sel(training=name).values - flow).max() / np.abs(flow).max()
        yield Feature(f"training less flow, {name}, over the largest", float(off), 0.0, 0.05)
    plain, theory = ds.zc.sel(flow="plain").values, ds.zc.sel(flow="theory").values
    yield Feature("saved times at which plain is ahead of theory", float((plain[1:] < theory[1:]).sum()), 0.0, 0.0)
    for name, row in RATIO.items():
        for M, want in zip(ds.M.values, row, strict=True):
            digits = 0.006 if want < 10 else 0.06 if want < 100 else 0.6
            yield Feature(f"ratio, {name}, M = {M:g}", float(ds.ratio.sel(data=name, M=M)), want, digits, SCRIPT)
    for rate, want in ERROR.items():
        here = float(ds.error.sel(rate=rate))
        yield Feature(f"error of the winner at {rate:g}, over its digits", here / -want, 1.0, 0.03, SCRIPT)
    slope = float(np.log(ds.error.values[0] / ds.error.values[-1]) / np.log(ds.rate.values[0] / ds.rate.values[-1]))
    yield Feature("order of the error in eta_Z", slope, 1.0, 0.05)
