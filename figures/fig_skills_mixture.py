"""Which skills to train on: a mixture that goes to what still helps does better than an even one, less so if it bets at once.

Stands beside Algorithm 1 and Section 4 of chen2023skillit, in continuous time: three skills in a chain, each of which teaches the next. a,
shares of the skills in training at eta = 1/2; b, the losses of the skills; c, the sum of the losses at t = 5 against eta.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, SMALL, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "what is learned first?"
RATES = np.geomspace(0.01, 100, 41)


def total(eta: float) -> float:
    """The sum of the losses at t = 5."""
    return float(odesim.integrate("skills.mixture", params={"eta": eta}, save=2, rtol=1e-9, atol=1e-12).final_observables["loss"])


def data(fast: bool) -> xr.Dataset:
    """share and L (skill, time) at eta = 1/2; total (eta,), and even, that of eta = 0. fast: the same."""
    run = odesim.integrate("skills.mixture", save=101, rtol=1e-9, atol=1e-12)
    return xr.Dataset(
        {
            "share": (("skill", "time"), run.observables["share"].T),
            "L": (("skill", "time"), run.y["L"].T),
            "total": ("eta", [total(eta) for eta in RATES]),
            "even": total(0.0),
            "half": total(0.5),
            "five": total(5.0),
        },
        coords={"skill": [1, 2, 3], "time": run.t, "eta": RATES},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels; it computes nothing."""
    with picture("A mixture of skills", 52.0, width=160.0) as figure:
        share, losses, total_loss = figure.subplots(1, 3)
        for n, skill in enumerate(ds.skill.values):
            for axes, rows in ((share, ds.share), (losses, ds.L)):
                axes.plot(ds.time, rows[n], color=CATEGORIES[n], ls=DASHES[n], label=f"skill {skill}")
        share.set(xlabel="time", ylabel="share of the data", title="η = 1/2", ylim=(0, 0.6))
        losses.set(xlabel="time", ylabel="loss of a skill", title="η = 1/2", ylim=(0, 1.02))
        losses.legend(loc="upper right")
        total_loss.plot(ds.eta, ds.total, color=CATEGORIES[0])
        total_loss.axhline(float(ds.even), color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
        total_loss.text(RATES[-1], float(ds.even), "even shares", fontsize=SMALL, ha="right", va="top")
        total_loss.set(xscale="log", xlabel="rate of the mixture η", ylabel="sum of losses at t = 5")
        few_ticks(share, losses, total_loss)
        few_log_ticks(total_loss)
        letter_panels(share, losses, total_loss)
    return figure


def expected(ds: xr.Dataset) -> list[Feature]:
    """Recorded sums, the best rate inside, who comes first."""
    best = int(ds.total.values.argmin())
    return [
        Feature("sum of losses at t = 5, even shares", float(ds.even), 0.327842, 6e-7, THEORY),
        Feature("sum of losses at t = 5, eta = 1/2", float(ds.half), 0.288669, 6e-7, THEORY),
        Feature("sum of losses at t = 5, eta = 5", float(ds.five), 0.299402, 6e-7, THEORY),
        Feature("1 if the best rate is neither the lowest nor the highest", float(0 < best < len(RATES) - 1), 1.0, 0.0, THEORY),
        Feature("shares at every time, deviation of their sum from 1", float(np.abs(ds.share.sum("skill") - 1).max()), 0.0, 1e-12, THEORY),
        Feature("1 if the skill that teaches none falls behind", float(ds.share[2, -1] < ds.share[1, -1]), 1.0, 0.0, THEORY),
    ]
