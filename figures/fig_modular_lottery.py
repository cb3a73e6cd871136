"""Frequencies compete in a neuron that learns to add mod 23: the one with the least time of blow-up is learned, unless decay removes it.

Stands beside the figures of he2026mechanism on the lottery in a neuron. a, amplitudes of the eleven frequencies of the neuron that is
done first, in the flow (lines) and in a training from the same weights (dots), with its t*; b, gaps of their phases; c, t* over the
amplitude beta at the start and the gap D, alpha = sqrt(2) beta, in closed form; d, t* under weight decay lam, formula (line) and runs
(dots), with the decay 1/t* from which on the frequency dies.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

import odesim
from odesim.models.modular.claims import time as time_by_run
from odesim.models.modular.phases import balanced, blow_up
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, FAINT, INK, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "what is learned first?"

P, STEPS = 23, 1040
CRITICAL = 0.7334549811 / P**2
DECAYS = np.array([0.1, 0.3, 0.5, 0.6, 0.7, 0.73]) / P**2


def data(fast: bool) -> xr.Dataset:
    """alpha, D (step, k) of the flow and alpha (seen, k) of the training; t* (gap, beta), and over p^2 by decays. fast: the same."""
    found = odesim.compare("modular.phases", task="modular", steps=STEPS, save=STEPS // 4 + 1)
    start = [found.training[name][0, 0] for name in ("alpha", "beta", "D")]
    times = np.array([[blow_up(*(float(a[n, k]) for a in start), P) for k in range(11)] for n in range(8)])
    first = int(times.min(axis=1).argmin())
    betas, gaps = np.geomspace(0.005, 0.05, 60), np.linspace(0, 3.1, 63)
    lam = np.linspace(0, 0.9999, 400) * CRITICAL
    plain = blow_up(0.02, 0.02, 0.3, P)
    formula = np.append(plain, -np.log1p(-lam[1:] * plain) / lam[1:])
    return xr.Dataset(
        {
            "alpha": (("k", "t"), found.theory["alpha"][0, :, first].T),
            "D": (("k", "t"), found.theory["D"][0, :, first].T),
            "trained": (("k", "t"), found.training["alpha"][0, :, first].T),
            "t_star": ("k", times[first]),
            "balanced": (("gap", "beta"), balanced(betas, gaps[:, None], P)),
            "delayed": ("lam", formula / P**2),
            "delayed_run": ("decay", [time_by_run(0.02, 0.02, 0.3, float(rate)) / P**2 for rate in DECAYS]),
        },
        coords={"k": np.arange(1, 12), "t": found.t, "gap": gaps, "beta": betas, "lam": lam, "decay": DECAYS},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes no numbers."""
    with picture("A lottery of frequencies in one neuron", 104.0, width=140.0) as figure:
        (sizes, phases), (plane, delay) = figure.subplots(2, 2)
        winner = int(ds.t_star.values.argmin())
        for panel, name in ((sizes, "alpha"), (phases, "D")):
            for k in np.argsort(ds.k.values != winner + 1, kind="stable")[::-1]:
                color, width = (CATEGORIES[1], 1.3) if k == winner else (CATEGORIES[0], 0.7)
                panel.plot(ds.t, ds[name][k], color=color, lw=width)
            panel.axvline(float(ds.t_star.min()), color=FAINT, lw=0.8, ls=(0, (1, 1.5)))
            panel.set(xlabel="t (steps × learning rate)", xlim=(0, 1100))
        sizes.plot(ds.t[::20], ds.trained[:, ::20].T, ".", color=INK, ms=2, label=["trained", *[None] * 10])
        sizes.legend(loc="upper left")
        sizes.set(yscale="log", ylabel="amplitude α", title=f"frequency {winner + 1} wins", ylim=(1e-3, 1))
        sizes.text(float(ds.t_star.min()) + 6, 1.2e-3, "t*", color=INK)
        phases.set(ylabel="phase gap D", title="phases align", ylim=(-np.pi, np.pi))
        levels = 529 * np.array([0.5, 1, 2, 4, 8, 16, 32])
        plane.contourf(ds.beta, ds.gap, ds.balanced, levels=levels, norm=LogNorm(levels[0], levels[-1]), extend="both", cmap="Blues_r")
        lines = plane.contour(ds.beta, ds.gap, ds.balanced, levels=levels, colors=INK, linewidths=0.4)
        plane.clabel(lines, levels[1:5], fmt=lambda value: f"{value / 529:g}", fontsize=6)
        plane.set(xscale="log", xlabel="amplitude β at the start", ylabel="phase gap D at the start", title="t* / p²")
        delay.plot(ds.lam * P**2, ds.delayed, color=CATEGORIES[0], label="−ln(1 − λt*) / λ")
        delay.plot(ds.decay * P**2, ds.delayed_run, "o", color=INK, ms=2.5, label="runs")
        delay.axvline(CRITICAL * P**2, color=FAINT, lw=0.8, ls=(0, (1, 1.5)))
        delay.set(xlabel="weight decay λ p²", ylabel="t* / p²", title="no t* from λ = 1/t* on", xlim=(0, 0.8), ylim=(0, 10))
        delay.legend(loc="upper left")
        few_ticks(sizes, phases, delay)
        few_log_ticks(plane)
        letter_panels(sizes, phases, plane, delay)
    return figure


def worst(a: Any, b: Any) -> float:
    """The largest relative distance."""
    return float(np.abs(np.asarray(a) / np.asarray(b) - 1).max())


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """The winner by time and by size, the training beside the flow, recorded times of blow-up, and the pole."""
    early = ds.t.values <= 600
    yield Feature("t* / p^2 of the neuron that is done first", float(ds.t_star.min()) / P**2, 2.010, 5e-4, THEORY)
    yield Feature("its winner has the largest alpha", float(ds.alpha[:, -1].values.argmax()), float(ds.t_star.values.argmin()), 0.0, THEORY)
    yield Feature("trained, it is the same", float(ds.trained[:, -1].values.argmax()), float(ds.t_star.values.argmin()), 0.0, THEORY)
    yield Feature("alpha trained over the flow's to step 600, worst", worst(ds.trained[:, early], ds.alpha[:, early]), 0.0, 5e-3, THEORY)
    yield Feature("gaps of the winner at the end", abs(float(ds.D[int(ds.t_star.values.argmin()), -1])), 0.0, 1e-3, THEORY)
    yield Feature("decay from which on it dies, times p^2", 1 / float(ds.delayed[0]), 0.7334549811, 1e-9, THEORY)
    recorded = {0.3: 1.7532609307, 0.6: 2.8400033657, 0.7: 4.4108079036, 0.73: 7.3396564779}
    for lam, want in recorded.items():
        at = float(ds.delayed_run.sel(decay=lam / P**2, method="nearest"))
        yield Feature(f"t* / p^2 by a run at lam p^2 = {lam:g}", at, want, 1e-6, THEORY)
    at = float(np.interp(0.02, ds.beta, ds.balanced.sel(gap=2.0, method="nearest") * ds.beta)) / 0.02 / P**2
    yield Feature("t* / p^2 at beta = .02, D = 2, in the plane", at, 1.5263516056, 1e-3, THEORY)
