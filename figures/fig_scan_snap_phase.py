"""When attention snaps, against the ratio of learning rates and the number of tokens: a million runs of the reduced flow.

Stands beside Theorem 4 of tian2023scan and the two regimes of its proof. A member snaps where the most frequent distinct token of
Syn-Small has doubled its weight exp(z); eta_Y = 1. a, the time of each member, white where t = 2000 is not enough; dashed is where the
margin of the decoder then is ln M: to its left attention snaps while the decoder learns, to its right it would have to wait
exponentially long, and is frozen; b, the same for three vocabularies, with the closed form: the snap has a Gamma of its own.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

import odesim
from odesim.base.errors import counted
from odesim.plot.figures import Feature
from odesim.plot.panels import thousands
from odesim.plot.style import INK, few_log_ticks, letter_panels, ordered_colors, picture

QUESTION = "why sparse attention?"
K, END, LEVEL = 2, 2000.0, float(np.log(2))
SNAP = f"snapped: max(z) - {LEVEL!r}; terminal; direction up"
LINES = (0.0, 0.35, 1.0)  # of the vocabularies, from the smallest to the largest


def gamma_at_snap(M: float) -> float:
    """Gamma at the snap, from one run of eta_Z = 1 to small tolerances: the same for all rates with this M."""
    run = odesim.integrate("scan_snap.reduced_symmetric", params={"M": M}, span=(0, 100), save=2, events=[SNAP], rtol=1e-11, atol=1e-13)
    return float(K / 2 * ((M - 1) / M * run.final["u"]) ** 2)


def data(fast: bool) -> xr.Dataset:
    """time (M, nu) of the snap, infinite for none by t = 2000, Gamma (M, nu) then, closed (line, nu). fast: 40 points an axis, not 1000."""
    n = 40 if fast else 1000
    M, nu = np.geomspace(34, 1e6, n), np.geomspace(0.3, 30, n)
    runs = odesim.ensemble(
        "scan_snap.reduced_symmetric",
        grid={"M": M, "eta_Z": 1 / nu},
        span=(0, END),
        rtol=1e-5,
        atol=1e-8,
        events=[SNAP],
        max_events=0,
        threads=2,
    )
    snapped = (runs["status"].values == runs.attrs["status_names"].index("event")).reshape(n, n)
    u = runs["u_end"].values.reshape(n, n)
    lines = [round(f * (n - 1)) for f in LINES]
    needed = np.array([gamma_at_snap(M[i]) for i in lines])[:, None]
    size = M[lines][:, None]
    margin = size / (size - 1) * np.sqrt(2 * nu * needed / K)
    exact = K / size * (np.expm1(margin) + (size - 1) * margin)
    time = np.where(snapped, runs["t_end"].values.reshape(n, n), np.inf)
    return xr.Dataset(
        {
            "time": (("M", "nu"), time),
            "Gamma": (("M", "nu"), np.where(snapped, K / (2 * nu) * ((M - 1) / M)[:, None] ** 2 * u**2, np.nan)),
            "slices": (("line", "nu"), time[lines]),
            "closed": (("line", "nu"), np.where(exact < END, exact, np.inf)),
            "needed": ("line", needed[:, 0]),
            "border": ("M", K * (np.log(M) * (M - 1) / M) ** 2 / (2 * needed[-1, 0])),
        },
        coords={"M": M, "nu": nu, "line": M[lines]},
        attrs={"K": K, "end": END, "members": n * n},
    )


def draw(ds: xr.Dataset) -> Figure:
    """A map and three slices; it computes nothing."""
    with picture(f"Snapped or frozen: {counted(ds.members, 'run')}", 62.0, width=140.0) as figure:
        phase, slices = figure.subplots(1, 2)
        mesh = phase.pcolormesh(
            ds.nu, ds.M, ds.time.where(np.isfinite(ds.time)), norm=LogNorm(3, END), cmap="viridis", shading="nearest", rasterized=True
        )
        phase.plot(ds.border, ds.M, color="white", lw=0.9, ls=(0, (4, 2)), label="margin = ln M")
        phase.text(17, 60, "frozen", ha="center")
        phase.legend(loc="upper left", labelcolor="white")
        phase.set(xscale="log", yscale="log", xlabel="$η_Y / η_Z$", ylabel="tokens M", xlim=(0.3, 30), ylim=(34, 1e6))
        figure.colorbar(mesh, ax=phase, label="time of the snap, $η_Y t$")
        for color, M in zip(ordered_colors(ds.sizes["line"]), ds.line.values, strict=True):
            slices.plot(ds.nu, ds.slices.sel(line=M), color=color, label=f"M = {thousands(round(M))}")
        every = max(1, ds.sizes["nu"] // 40)
        dots = slices.plot(ds.nu[::every], ds.closed.T[::every], ".", ms=2.5, color=INK)
        dots[0].set_label("closed form")
        slices.set(xscale="log", yscale="log", xlabel="$η_Y / η_Z$", ylabel="time of the snap, $η_Y t$", xlim=(0.3, 30), ylim=(2, 3e3))
        slices.legend(loc="lower right")
        few_log_ticks(phase, slices)
        letter_panels(phase, slices)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Times by the closed form, one Gamma for each M, who is frozen."""
    for M in ds.line.values:
        here, exact = ds.slices.sel(line=M).values, ds.closed.sel(line=M).values
        both = np.isfinite(here) & np.isfinite(exact)
        off = np.abs(here[both] / exact[both] - 1).max()
        # an error of 1e-4 in u, of runs at rtol 1e-5, is one of 1e-4 in ln t once exp(u) rules
        yield Feature(f"time over closed form less 1, largest, M = {M:.4g}", float(off), 0.0, 2e-3)
        disagree = float((np.isfinite(here) != np.isfinite(exact)).sum())
        yield Feature(f"members on one side only of the end, M = {M:.4g}", disagree, 0.0, 1.0)
    finite = ds.Gamma.where(np.isfinite(ds.Gamma))
    spread = (finite.max("nu") / finite.min("nu") - 1).values
    yield Feature("Gamma at the snap: largest spread over members with one M", float(np.nanmax(spread)), 0.0, 1e-3)
    few, many = ds.needed.values[0], ds.needed.values[-1]
    yield Feature("Gamma at the snap, M = 1e6 over M = 34", float(many / few), 1.0, 0.15)
    time = ds.time.values
    yield Feature("neighbours with a larger eta_Y / eta_Z that snap earlier", float((time[:, 1:] < time[:, :-1]).sum()), 0.0, 0.0)
    yield Feature("neighbours with more tokens that snap later", float((time[1:] > 1.002 * time[:-1]).sum()), 0.0, 0.0)
