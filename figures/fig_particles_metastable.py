"""Clusters of tokens that live long: lifetimes of two against beta, how fast waves of tokens grow, and the rhythm without temperature.

Stands beside the metastable clusters of geshkovski2023mathematical, which has no such pictures: a, the time in which two equal clusters
with inner product r merge, with exp(beta (1 - r)) for slopes; b, rates at which a wave of k crests grows among 256 even tokens, with
k^2 I_k(beta) / (beta I_0(beta)); c, 32 tokens on a circle at beta = 0, Kuramoto's oscillators, by both models.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import ive

import odesim
from odesim.plot.figures import Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, MARKERS, few_log_ticks, letter_panels, picture

QUESTION = "why plateaus?"
FINE = {"rtol": 1e-10, "atol": 1e-13}
STARTS, BETAS, MERGED = (0.0, 0.5), (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0), 0.9
GROWTH, WAVES, EVEN, TIMES = (1.0, 4.0, 9.0), np.arange(1, 9), 256, np.linspace(0, 10, 51)


def lifetime(r: float, beta: float) -> float:
    """When two equal clusters from inner product r have the product MERGED."""
    span = (0.0, 40 * np.exp(beta * (1 - r)))
    given = {"params": {"beta": beta, "m1": 1, "m2": 1}, "initial": {"r": r}, "span": span, "save": 2}
    return float(odesim.integrate("particles.two_clusters", **given, events=[f"merged: r - {MERGED}"], **FINE).events["merged"][0]["t"])


def growth(beta: float, k: int) -> float:
    """The rate at which a wave of k crests of 1e-6 grows."""
    even = 2 * np.pi * np.arange(EVEN) / EVEN
    wave = np.sin(k * even)
    given = {"params": {"beta": beta}, "sizes": {"n": EVEN}, "initial": {"theta": even + 1e-6 * wave}, "span": (0, 0.5), "save": 2}
    end = odesim.integrate("particles.circle", **given, **FINE).final["theta"]
    return float(np.log((end - even) @ wave / (1e-6 * wave @ wave)) / 0.5)


def theory(beta: float, k: np.ndarray) -> np.ndarray:
    """k^2 I_k(beta) / (beta I_0(beta))."""
    return np.asarray(k**2 * ive(k, beta) / (beta * ive(0, beta)))


def data(fast: bool) -> xr.Dataset:
    """life (r, beta); rate (beta_wave, k); theta (t, i) and apart (t), the distance of both models at beta = 0. fast: the same."""
    start = np.sort(np.random.default_rng(0).uniform(-2.0, 2.0, 32))
    given = {"span": (0, TIMES[-1]), "save": TIMES, **FINE}
    circle = odesim.integrate("particles.circle", params={"beta": 0}, sizes={"n": 32}, initial={"theta": start}, **given).y["theta"]
    x0 = np.stack([np.cos(start), np.sin(start)], axis=1)
    sphere = odesim.integrate("particles.sphere", params={"beta": 0, "x0": x0}, **given).y["x"]
    apart = np.abs(sphere - np.stack([np.cos(circle), np.sin(circle)], axis=2)).max(axis=(1, 2))
    return xr.Dataset(
        {
            "life": (("r", "beta"), [[lifetime(r, beta) for beta in BETAS] for r in STARTS]),
            "rate": (("beta_wave", "k"), [[growth(beta, int(k)) for k in WAVES] for beta in GROWTH]),
            "theta": (("t", "i"), circle),
            "apart": ("t", apart),
        },
        coords={"r": list(STARTS), "beta": list(BETAS), "beta_wave": list(GROWTH), "k": WAVES, "t": TIMES},
        attrs=FINE,
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels in a row; it computes only the slopes and rates of the theory."""
    with picture("Cold clusters live long", 58.0, width=170.0) as figure:
        lives, waves, angles = figure.subplots(1, 3)
        for j, r in enumerate(ds.r.values):
            life = ds.life.sel(r=r)
            lives.plot(ds.beta, life, color=CATEGORIES[j], marker=MARKERS[j], ms=3, label=f"r = {r:g}")
            slope = float(life[-1]) * np.exp((ds.beta - ds.beta[-1]) * (1 - r))
            lives.plot(ds.beta[4:], slope[4:] * 1.5, color=FAINT, lw=0.8, ls=(0, (1, 1.5)), label=None if j else "exp(β(1 − r))")
        lives.set(yscale="log", xlabel="β", ylabel=f"time to r = {MERGED:g}")
        lives.legend(loc="upper left")
        for j, beta in enumerate(ds.beta_wave.values):
            look = {"color": CATEGORIES[j], "label": f"β = {beta:g}"}
            waves.plot(ds.k, theory(float(beta), ds.k.values), ls=DASHES[j], color=FAINT, lw=0.8, zorder=1, label=None if j else "theory")
            waves.plot(ds.k, ds.rate.sel(beta_wave=beta), ls="none", marker=MARKERS[j], ms=3.5, **look)
        waves.set(xlabel="crests k", ylabel="rate of growth", ylim=(0, 0.95))
        waves.set_xticks(ds.k.values)
        waves.legend(loc="upper left", ncol=2)
        angles.plot(ds.t, ds.theta, color=CATEGORIES[0], lw=0.5)
        angles.set(xlabel="t", ylabel="angle", title="β = 0", xlim=(0, ds.t[-1]))
        few_log_ticks(lives)
        letter_panels(lives, waves, angles)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Lifetimes and rates to their recorded digits, the slope of ln lifetime, the fastest wave, and both models on the circle."""
    digits = {2.0: 2.78178, 4.0: 8.39030, 6.0: 36.65542}
    for beta, want in digits.items():
        yield Feature(f"lifetime from r = 0 at beta = {beta:g}", float(ds.life.sel(r=0.0, beta=beta)), want, 5e-6)
    for r in ds.r.values:
        last = np.log(ds.life.sel(r=r, beta=[10.0, 12.0]).values)
        # the prefactor falls as 1/beta, which takes 1/11 of the slope; the next order is 1/beta^2
        yield Feature(f"slope of ln lifetime, r = {r:g}", float(np.diff(last)[0]) / 2, 1 - float(r) - 1 / 11, 0.04)
    for beta in ds.beta_wave.values:
        off = np.abs(ds.rate.sel(beta_wave=beta).values - theory(float(beta), ds.k.values)).max()
        yield Feature(f"largest distance of a rate from theory, beta = {beta:g}", float(off), 0.0, 1e-6)
    for beta, want in ((1.0, 1.0), (4.0, 3.0), (9.0, 4.0)):
        fastest = int(np.argmax(ds.rate.sel(beta_wave=beta).values))
        yield Feature(f"fastest wave, beta = {beta:g}", float(ds.k[fastest]), want, 0.0)
    yield Feature("largest distance of sphere and circle at beta = 0", float(ds.apart.max()), 0.0, 1e-7)
    before, end = (float(np.ptp(ds.theta.sel(t=t, method="nearest").values)) for t in (8.0, 10.0))
    # sin(x) is x to a share of x^2 / 6
    yield Feature("rate at which the range of angles falls, t = 8 to 10, beta = 0", np.log(before / end) / 2, 1.0, before**2 / 6)
