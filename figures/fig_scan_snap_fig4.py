"""Attention scans, then snaps: the loss falls as in the published log, common tokens fade, the most frequent distinct one wins.

Stands beside Fig. 4 of tian2023scan (Syn-Small: two queries with a next token each) and its log, one run with eta_Y = 1: SGD with
momentum 0.9, batches of 128, zero start. That run is replayed with its own random numbers; beside it many seeds of ours, whose mean
attention in infinite contexts is shown.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from odesim.base.errors import counted
from odesim.lab.tasks import load_task
from odesim.lab.training.loop import TrainingOptions, train
from odesim.plot.figures import PUBLISHED, SCRIPT, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, INK, SEQUENTIAL, SMALL, few_ticks, letter_panels, picture

QUESTION = "why sparse attention?"
TASK = "scan_snap"
LOG = Path(__file__).with_name("published") / "scan_snap_fig4_loss.csv"
ETAS = (1.0, 10.0)  # eta_Y; eta_Z = 1
STEPS, COMMON, DISTINCT = 100, 10, 10
ROWS = (0, 2, 4, 6, 8, 10, 48)
LOGGED_SEED = 2
SINGLE = {0.1: 1e-6, 0.0: 5e-3}  # {loss above: relative error}; the log is in float32, which rounds ln(1 + 2e-5) by up to 3e-3 of it
FINAL = (((0.18, 0.013), (1.934, 0.009)), ((0.101, 0.008), (2.081, 0.013)))
"""For each eta_Y: attention to the winner and entropy over distinct tokens after 48 iterations, mean and deviation over 20 seeds."""
BEYOND = 3.7  # standard deviations; one of 49 normal numbers exceeds them in 1 % of cases


def data(fast: bool) -> xr.Dataset:
    """loss (eta_Y, seed, iteration), attention c (eta_Y, row, token) of class 1; fast: 20 seeds, not 40.

    published: the log (logged); replayed: the same run (iteration).
    """
    task, seeds = load_task(TASK), range(20 if fast else 40)
    values = {setting.name: setting.default for setting in task.settings}
    runs = [train(task.make({**values, "eta_Y": eta}, seeds=seeds), TrainingOptions(steps=STEPS)) for eta in ETAS]
    replay = train(task.make({**values, "rng": "official"}, seeds=(LOGGED_SEED,)), TrainingOptions(steps=STEPS))
    logged, published = np.loadtxt(LOG, delimiter=",", skiprows=1).T
    attention = [run.observables["c"][:, ROWS, 0, : COMMON + DISTINCT].mean(axis=0) for run in runs]
    return xr.Dataset(
        {
            "loss": (("eta_Y", "seed", "iteration"), np.stack([run.observables["loss"] for run in runs])),
            "c": (("eta_Y", "row", "token"), np.stack(attention)),
            "published": ("logged", published),
            "replayed": ("iteration", replay.observables["loss"][0]),
        },
        coords={
            "eta_Y": list(ETAS),
            "seed": list(seeds),
            "iteration": runs[0].t,
            "logged": logged.astype(int),
            "row": list(ROWS),
            "token": np.arange(COMMON + DISTINCT),
        },
        attrs={"task": TASK, "steps": STEPS, "common": COMMON},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Above: losses (mean of the logarithm, two standard deviations), the published log as circles, its replay. Below: attention."""
    with picture(f"Scan and snap: two queries, {counted(ds.sizes['seed'], 'seed')}", 92.0) as figure:
        cells = figure.add_gridspec(2, 2, height_ratios=(1.1, 1))
        axes = figure.add_subplot(cells[0, :])
        for eta, loss, color, ls in zip(ds.eta_Y.values, np.log(ds.loss.values), CATEGORIES, DASHES, strict=False):
            middle, spread = loss.mean(axis=0), 2 * loss.std(axis=0)
            axes.fill_between(ds.iteration, np.exp(middle - spread), np.exp(middle + spread), color=color, alpha=0.25, lw=0)
            axes.plot(ds.iteration, np.exp(middle), color=color, ls=ls, lw=1.8, label=f"$\\eta_Y$ = {eta:g}")
        # the replay lies on all of them: thin, above wide circles in a colour of their own and the wide line of the seeds
        published = f"published, $\\eta_Y$ = {ds.eta_Y.values[0]:g}"
        axes.plot(ds.logged, ds.published, "o", mec=CATEGORIES[2], mfc="none", mew=0.7, ms=4.0, label=published)
        axes.plot(ds.iteration, ds.replayed, color=INK, lw=0.6, label="its replay")
        axes.set_yscale("log")
        axes.set_xlim(0, ds.iteration.values[-1])
        axes.set_xlabel("iteration")
        axes.set_ylabel("loss")
        axes.legend(loc="upper right")
        few_ticks(axes, x=5)
        images = []
        for k, eta in enumerate(ds.eta_Y.values):
            below = figure.add_subplot(cells[1, k])
            images.append(below.imshow(ds.c[k], aspect="auto", cmap=SEQUENTIAL, vmin=0, vmax=float(ds.c.max())))
            below.axvline(ds.common - 0.5, color="white", lw=0.8, ls=(0, (3, 2)))
            below.set_title(f"$\\eta_Y$ = {eta:g}")
            below.set_xlabel("common | distinct")
            below.spines[:].set_visible(False)
            few_ticks(below, x=4)
            below.set_yticks(np.arange(ds.sizes["row"]), [str(row) for row in ds.row.values] if k == 0 else [""] * ds.sizes["row"])
            if k == 0:
                below.set_ylabel("iteration")
        bar = figure.colorbar(images[-1], ax=figure.axes[1:], aspect=16, pad=0.02)
        bar.outline.set_visible(False)
        bar.set_label("attention $c$")
        bar.ax.tick_params(labelsize=SMALL, color=FAINT)
        letter_panels(*figure.axes[:3])
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Checks of the replayed log, that it lies within the spread of seeds, and of what the paper's images show."""
    c, ours = ds.c.values, np.log(ds.loss.values[0])
    ours = ours[:, np.searchsorted(ds.iteration.values, ds.logged.values)][:, 1:]
    z = (np.log(ds.published.values[1:]) - ours.mean(axis=0)) / ours.std(axis=0, ddof=1)
    last, common = c[:, -1], ds.common
    apart = np.abs(ds.replayed.sel(iteration=ds.logged.values).values / ds.published.values - 1)
    yield Feature("loss at iteration 0: ln 34", float(ds.loss.values[0, :, 0].mean()), float(np.log(34)), 1e-12)
    yield Feature("published loss at iteration 0, in single precision", float(ds.published[0]), float(np.log(34)), 1e-6)
    yield Feature(
        "ln of the published loss from the seeds' mean, in their standard deviations: largest",
        float(np.abs(z).max()),
        0.0,
        BEYOND,
        PUBLISHED,
    )
    yield Feature("the same, root mean square", float(np.sqrt(np.mean(z**2))), 1.0, 0.5, PUBLISHED)
    for low, tolerance in SINGLE.items():
        yield Feature(
            f"relative error of the replayed loss, largest{f' above a loss of {low:g}' if low else ''}",
            float(apart[ds.published.values > low].max()),
            0.0,
            tolerance,
            PUBLISHED,
        )
    for k, eta in enumerate(ds.eta_Y.values):
        rows = c[k]
        yield Feature(f"eta_Y = {eta:g}: token with most attention at the end", float(last[k].argmax()), float(ds.token[-1]), 0.0)
        yield Feature(
            f"eta_Y = {eta:g}: rows in which common tokens do not fade",
            float(np.sum(np.diff(rows[1:, :common].sum(axis=1)) >= 0)),
            0.0,
            0.0,
        )
    for k, (winner, entropy) in enumerate(FINAL):
        p = last[k, common:] / last[k, common:].sum()
        where = f"eta_Y = {ds.eta_Y.values[k]:g}, iteration {ds.row.values[-1]}"
        yield Feature(f"{where}: attention to the winner", float(last[k, -1]), *winner, SCRIPT)
        yield Feature(f"{where}: entropy over distinct tokens", float(-(p * np.log(p)).sum()), *entropy, SCRIPT)
    sparser = float(last[0, -1] > last[1, -1])
    yield Feature("the slow decoder leaves sparser attention", sparser, 1.0, 0.0)
