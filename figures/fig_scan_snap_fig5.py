"""Adam makes attention sparser: attention of class 1 over 100 iterations for three learning rates.

Stands beside Fig. 5 of tian2023scan: Syn-Small (two queries with a next token each), Adam in place of SGD, eta_Y = eta_Z = 0.1, 0.5, 1;
mean attention in infinite contexts over ten starts of the random contexts. As there: the more sparse, the larger the rate; the token
with most attention is not the most frequent one at small rates, since Adam moves all logits at one speed, and common tokens vanish.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from odesim.lab.tasks import load_task
from odesim.lab.training.loop import TrainingOptions, train
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import FAINT, SEQUENTIAL, SMALL, few_log_ticks, few_ticks, letter_panels, ordered_colors, picture

QUESTION = "why sparse attention?"
TASK, RATES, STEPS, COMMON = "scan_snap", (0.1, 0.5, 1.0), 100, 10
ROWS = (0, 2, 4, 6, 8, 10, 20, 50, 100)
TABLE = {0.1: ((2, 3), 0.08, 0.30), 0.5: ((5, 6), 0.15, 0.007), 1.0: ((8, 9), 0.165, 3e-5)}
"""The distinct token with most attention, its attention, and that of all common ones."""


def data(fast: bool) -> xr.Dataset:
    """c (rate, start, row, token) of class 1 and its mean, the mean attention to common tokens (rate, iteration). fast: the same."""
    task = load_task(TASK)
    values = {setting.name: setting.default for setting in task.settings} | {"optimizer": "adam"}
    c, common = [], []
    for rate in RATES:
        run = train(task.make({**values, "eta_Y": rate, "eta_Z": rate}, seeds=range(10)), TrainingOptions(steps=STEPS))
        c.append(run.observables["c"][:, ROWS, 0, : COMMON + 10])
        common.append(run.observables["c"][:, :, 0, :COMMON].sum(axis=2).mean(axis=0))
    coords = {"rate": list(RATES), "start": np.arange(10), "row": list(ROWS), "token": np.arange(COMMON + 10)}
    coords["iteration"] = run.t
    dims = ("rate", "start", "row", "token")
    return xr.Dataset(
        {
            "c": (dims, np.stack(c)),
            "mean": (("rate", "row", "token"), np.mean(c, axis=1)),
            "common": (("rate", "iteration"), np.stack(common)),
        },
        coords,
        {"steps": STEPS},
    )


def draw(ds: xr.Dataset) -> Figure:
    """An image of the mean for each rate, and attention to common tokens; it computes nothing."""
    with picture("Adam: sparser with the learning rate", 50.0, width=175.0) as figure:
        *row, fading = figure.subplots(1, ds.sizes["rate"] + 1)
        for k, (axes, rate) in enumerate(zip(row, ds.rate.values, strict=True)):
            shown = axes.imshow(ds["mean"].sel(rate=rate), aspect="auto", cmap=SEQUENTIAL, vmin=0, vmax=float(ds["mean"].max()))
            axes.axvline(COMMON - 0.5, color="white", lw=0.8, ls=(0, (3, 2)))
            axes.set(xlabel="common | distinct", title=f"$η_Y = η_Z$ = {rate:g}")
            axes.spines[:].set_visible(False)
            few_ticks(axes, x=4)
            axes.set_yticks(np.arange(ds.sizes["row"]), [str(r) for r in ds.row.values] if k == 0 else [""] * ds.sizes["row"])
        row[0].set_ylabel("iteration")
        bar = figure.colorbar(shown, ax=list(row), aspect=16, pad=0.02)
        bar.outline.set_visible(False)
        bar.set_label("attention $c$")
        bar.ax.tick_params(labelsize=SMALL, color=FAINT)
        for color, rate in zip(ordered_colors(ds.sizes["rate"]), ds.rate.values, strict=True):
            fading.plot(ds.iteration, ds.common.sel(rate=rate), color=color, label=f"η = {rate:g}")
        fading.set(xlabel="iteration", ylabel="attention to common tokens", yscale="log", ylim=(1e-5, 1))
        fading.legend(loc="center right", bbox_to_anchor=(1.0, 0.36))
        few_ticks(fading)
        few_log_ticks(fading)
        letter_panels(*row, fading)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """The brightest token, its attention and that of common tokens at the end, beside a program of ours with ten starts of its own."""
    for rate, (brightest, most, common) in TABLE.items():
        end = ds.c.sel(rate=rate).isel(row=-1).values  # (start, token)
        winners = end[:, COMMON:].argmax(axis=1)
        mean = float(np.mean(winners))
        yield Feature(f"rate {rate:g}: brightest distinct token, mean", mean, float(np.mean(brightest)), 1.0, SCRIPT)
        spread = float(end[:, COMMON:].max(axis=1).std(ddof=1))
        # four standard errors of the difference of two means of ten, and half a digit
        wide = 4 * spread * np.sqrt(2 / 10) + 0.005
        yield Feature(f"rate {rate:g}: attention to the brightest", float(end[:, COMMON:].max(axis=1).mean()), most, wide, SCRIPT)
        mass = float(end[:, :COMMON].sum(axis=1).mean())
        yield Feature(f"rate {rate:g}: ln of attention to common tokens, less recorded", float(np.log(mass / common)), 0.0, 0.5, SCRIPT)
    entropy = [-float((p * np.log(np.maximum(p, 1e-300))).sum()) for p in ds["mean"].isel(row=-1).values]
    yield Feature("rates at which attention is not sparser than at the one before", float((np.diff(entropy) >= 0).sum()), 0.0, 0.0)
