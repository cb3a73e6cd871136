"""Attention freezes: B(t) of one sequence class for five learning rates at nu = eta_Y / eta_Z = 1, M = 10000, K = 1, C0 = 1.

Stands beside Fig. 9 (right panel) of tian2023scan, and the slide "attention frozen" of the talk about it: each curve scans
until t0 = 2 (1 + w1) K ln(M) / eta_Y (dots, all at one height), then snaps and all but stops.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import lambertw

import odesim
from odesim.plot.figures import Feature
from odesim.plot.labels import end_labels, place_labels
from odesim.plot.style import FAINT, INK, SMALL, few_ticks, new_figure, ordered_colors, project_style

QUESTION = "why sparse attention?"
MODEL = "scan_snap.theorem4"
ETAS = (0.5, 1.0, 2.0, 4.0, 8.0)
M, K, C0, END = 10_000, 1, 1.0, 50.0
EARLY = 5.0  # until then the curves bend most
RTOL, ATOL = 1e-10, 1e-12

# tian2023scan, Theorem 4 in closed form, B = ln(1 + 4 Gamma / C0) / 4, at the ticks of the slide
TABLE_T = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0)
TABLE_B = {
    0.5: (0.65047, 0.98153, 1.17261, 1.27904, 1.33025, 1.35828, 1.38952, 1.40782),
    1.0: (0.98153, 1.27904, 1.35828, 1.38952, 1.40782, 1.42051, 1.43784, 1.44973),
    2.0: (1.27904, 1.38952, 1.42051, 1.43784, 1.44973, 1.45872, 1.47189, 1.48145),
    4.0: (1.38952, 1.43784, 1.45872, 1.47189, 1.48145, 1.48893, 1.50022, 1.50862),
    8.0: (1.43784, 1.47189, 1.48893, 1.50022, 1.50862, 1.51529, 1.52551, 1.53321),
}
TABLE_T0 = {0.5: 46.668, 1.0: 23.334, 2.0: 11.667, 4.0: 5.834, 8.0: 2.917}
B_T0 = 1.402536


def snap_time(eta: float) -> float:
    """The time t0 at which u = x, where e^x = (M - 1) x, x = (1 + w1) ln M; the decoder has e^u + (M - 1) u = M eta t / K + 1."""
    x = -lambertw(-1 / (M - 1), -1).real
    return float(K * (2 * (M - 1) * x - 1) / (M * eta))


def data(fast: bool) -> xr.Dataset:
    """B (eta, t) on a grid that is finer at first, t0 (eta), and B_t0 (eta), its value there; fast: 101 evenly spaced times, not 501."""
    # multiples of 1/80: 2 t is exact, and no time occurs twice
    grid = np.union1d(np.arange(0, 80 * END + 1, 40 if fast else 8), np.arange(0, 80 * EARLY, 2)) / 80
    curves, frozen = [], []
    for eta in ETAS:
        t0 = snap_time(eta)
        times = np.unique(np.append(grid, t0))
        params = {"K": K, "M": M, "eta_Y": eta, "eta_Z": eta, "C0": C0}
        run = odesim.integrate(MODEL, params=params, span=(0.0, END), save=times, rtol=RTOL, atol=ATOL)
        curves.append(run.y["B"][np.searchsorted(times, grid)])
        frozen.append(run.y["B"][np.searchsorted(times, t0)])
    return xr.Dataset(
        {"B": (("eta", "t"), np.array(curves)), "t0": ("eta", [snap_time(eta) for eta in ETAS]), "B_t0": ("eta", np.array(frozen))},
        coords={"eta": list(ETAS), "t": grid},
        attrs={"model": MODEL, "M": M, "K": K, "C0": C0, "nu": 1.0, "method": run.method, "rtol": RTOL, "atol": ATOL},
    )


def draw(ds: xr.Dataset) -> Figure:
    """One line per learning rate, labelled at its end, with dots at t0. It computes nothing."""
    with project_style():
        figure = new_figure(58.0)
        axes = figure.add_subplot()
        colors = ordered_colors(ds.sizes["eta"])
        level = float(ds.B_t0.mean())
        axes.axhline(level, color=FAINT, lw=0.6, ls=(0, (4, 2)))
        for i, color in enumerate(colors):
            axes.plot(ds.t, ds.B[i], color=color)
            axes.plot(ds.t0[i], ds.B_t0[i], "o", color=color, ms=3.2, mec="white", mew=0.5, zorder=3)
        axes.annotate(
            f"dots: $t_0$, where every curve has $B$ = {level:.4f}", (ds.t0.values[0], level), (0.95, 0.48), textcoords="axes fraction",
            ha="right", fontsize=SMALL, color=INK, arrowprops={"arrowstyle": "-", "lw": 0.5, "color": FAINT, "relpos": (0.97, 1)},
        )  # fmt: skip
        axes.set_xlim(ds.t.values[0], ds.t.values[-1])
        axes.set_ylim(0, 1.6)
        axes.set_xlabel("$t$")
        axes.set_ylabel("$B$  (relative gain ≤ $e^{2B}$)")
        few_ticks(axes, x=5)
        names = [f"{eta:g}" for eta in ds.eta.values]
        names[-1] = f"$\\eta$ = {names[-1]}"
        labels = end_labels(axes, names, list(ds.B.values[:, -1]))
        figure.suptitle(f"Attention is frozen: $\\nu$ = {ds.nu:g}, $M$ = {ds.M}")
        place_labels(figure, [labels])
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Checks of B at eight times, of t0, of a common B at t0, of the order of the curves, and of B as a function of eta * t."""
    for eta in ETAS:
        found = ds.B.sel(eta=eta).sel(t=list(TABLE_T), method="nearest").values
        worst = float(np.max(np.abs(found - TABLE_B[eta])))
        yield Feature(f"B at 8 times, eta = {eta:g}: largest distance from the table", worst, 0.0, 1e-5)  # its last digit
    for eta in ETAS:
        # the paper's t0 drops terms of relative size 1 / M
        t0 = float(ds.t0.sel(eta=eta))
        yield Feature(f"t0, eta = {eta:g}", t0, TABLE_T0[eta], 2 / M * TABLE_T0[eta] + 5e-4)
        yield Feature(f"B(t0), eta = {eta:g}", float(ds.B_t0.sel(eta=eta)), B_T0, 1e-6)
    late = ds.B.sel(t=slice(1e-9, None)).values
    crossings = sum(int(np.sum(upper <= lower)) for lower, upper in pairwise(late))
    yield Feature("saved times at which a larger eta is not above a smaller one", float(crossings), 0.0, 0.0)
    half = ds.t.values[np.isin(2 * ds.t.values, ds.t.values)]
    apart = float(np.max(np.abs(ds.B.sel(eta=ETAS[0], t=2 * half).values - ds.B.sel(eta=ETAS[1], t=half).values)))
    yield Feature("B(t; 0.5) - B(t / 2; 1): B depends on eta * t alone", apart, 0.0, 1e-8)  # 100 * rtol
