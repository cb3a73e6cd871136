"""Scan, then snap: how far the dominant token is ahead, chi, for four learning rates of the decoder.

Stands beside Fig. 3 of tian2023scan: eta_Z = 0.5, K = 10 classes, M = 1000 tokens, eta_Y = 0.5, 1, 2, 5, to t = 700, with the
time t0 from which exp(u) outgrows (M - 1) u and attention is all but frozen. The paper does not state the normaliser of the rate; 1/160
gives its vertical axis.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim import Solution
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, DASHES, few_ticks, letter_panels, picture

QUESTION = "why sparse attention?"
K, M, ETA_Z, RATES, END, C0 = 10, 1000.0, 0.5, (0.5, 1.0, 2.0, 5.0), 700.0, 1 / 160
FINE = {"rtol": 1e-9, "atol": 1e-12}


def run(eta_Y: float, times: np.ndarray, C0: float) -> Solution:
    """One run, kept at these times."""
    params = {"K": K, "M": M, "eta_Y": eta_Y, "eta_Z": ETA_Z, "C0": C0}
    return odesim.integrate("scan_snap.theorem4", params=params, span=(0, END), save=times, **FINE)


def data(fast: bool) -> xr.Dataset:
    """chi and gamma (eta_Y, t), chi of normaliser 1 at the end (eta_Y), and t0 (eta_Y). fast: the same."""
    times = np.linspace(0, END, 1401)
    runs = [run(eta_Y, times, C0) for eta_Y in RATES]
    return xr.Dataset(
        {
            "chi": (("eta_Y", "t"), [r.observables["chi_bound"] for r in runs]),
            "gamma": (("eta_Y", "t"), [r.observables["gamma"] for r in runs]),
            "plain": ("eta_Y", [run(eta_Y, np.array([0.0, END]), 1.0).observables["chi_bound"][-1] for eta_Y in RATES]),
            "t0": ("eta_Y", [r.events["snap"][0]["t"] for r in runs]),
        },
        coords={"eta_Y": list(RATES), "t": times},
        attrs={"K": K, "M": M, "eta_Z": ETA_Z, "C0": C0, **FINE},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Left: chi. Right: gamma, the push of the decoder. Vertical lines are t0. It computes nothing."""
    with picture("Slow decoders let attention scan for longer", 60.0, width=130.0) as figure:
        left, right = figure.subplots(1, 2)
        for j, eta_Y in enumerate(ds.eta_Y.values):
            look = {"color": CATEGORIES[j], "ls": DASHES[j], "label": f"$η_Y$ = {eta_Y:g}"}
            left.plot(ds.t, ds.chi.sel(eta_Y=eta_Y), **look)
            right.plot(ds.t, ds.gamma.sel(eta_Y=eta_Y), **look)
            left.axvline(float(ds.t0.sel(eta_Y=eta_Y)), color=CATEGORIES[j], lw=0.5, ls=(0, (1, 2)))
        left.set(xlabel="t", ylabel="lead of the dominant token χ", xlim=(0, END), ylim=(0, 620))
        right.set(xlabel="t", ylabel="push of the decoder γ", xlim=(0, END))
        right.legend(loc="upper right")
        few_ticks(left, right)
        letter_panels(left, right)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """chi at the end for both normalisers, the crossing, and t0."""
    for eta_Y, chi, plain, t0 in zip(RATES, (572, 439, 332, 227), (45.2, 34.7, 26.3, 18.0), (364.68, 182.34, 91.17, 36.47), strict=True):
        here = ds.sel(eta_Y=eta_Y)
        # half a unit of the last digit
        yield Feature(f"chi at t = 700, eta_Y = {eta_Y:g}", float(here.chi[-1]), chi, 0.5, SCRIPT)
        yield Feature(f"chi at t = 700 with normaliser 1, eta_Y = {eta_Y:g}", float(here.plain), plain, 0.05, SCRIPT)
        yield Feature(f"t0 over its digits, eta_Y = {eta_Y:g}", float(here.t0) / t0, 1.0, 2 / M)  # the digits drop terms of 1/M
    yield Feature("eta_Y of the largest chi at t = 100", RATES[int(np.argmax(ds.chi.sel(t=100).values))], 1.0, 0.0, SCRIPT)
    yield Feature("rates out of order at t = 700", float((np.diff(ds.chi.values[:, -1]) >= 0).sum()), 0.0, 0.0)
    order = ds.t0.values * np.array(RATES)
    yield Feature("t0 eta_Y: largest less smallest", float(np.ptp(order)), 0.0, 1e-5)
