"""Grokking on a clock: a network memorises 60 % of the sums, and weight decay alone leads it on to those that it has not seen.

Stands beside the figures of he2026mechanism on grokking: the task modular, p = 23, 64 neurons of squares, AdamW at rate .002. a, loss of
the pairs that are trained on (thin) and of the others, without weight decay and with 1; b, the share of the others that is right; c, how
much of a neuron's power its largest frequency has, the mean over neurons: features come while decay removes the rest.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "why plateaus?"

SETTINGS: dict[str, Any] = {"N": 64, "optimizer": "adamw", "eta": 2e-3, "share": 0.6, "init_scale": 0.5}
DECAYS, STEPS, SAVED = (0.0, 1.0), 4000, 101


def data(fast: bool) -> xr.Dataset:
    """Losses, what is right and the part of the largest frequency (decay, step). fast: the same."""
    runs = [
        odesim.train(
            "modular",
            settings={**SETTINGS, "weight_decay": decay},
            steps=STEPS,
            save=SAVED,
            observe=["alpha", "loss_held", "right_held"],
        )
        for decay in DECAYS
    ]
    power = [run.observables["alpha"][0] ** 2 for run in runs]
    return xr.Dataset(
        {
            "loss": (("decay", "step"), [run.observables["loss"][0] for run in runs]),
            "held": (("decay", "step"), [run.observables["loss_held"][0] for run in runs]),
            "right": (("decay", "step"), [run.observables["right_held"][0] for run in runs]),
            "part": (("decay", "step"), [(a.max(axis=2) / a.sum(axis=2)).mean(axis=1) for a in power]),
        },
        coords={"decay": list(DECAYS), "step": runs[0].t},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels in a row."""
    with picture("Memorised, then understood: weight decay decides", 58.0, width=160.0) as figure:
        losses, right, part = figure.subplots(1, 3)
        for decay, color in zip(ds.decay.values, CATEGORIES, strict=False):
            label = f"decay {decay:g}" if decay else "no decay"
            losses.plot(ds.step, ds.loss.sel(decay=decay), color=color, lw=0.6)
            losses.plot(ds.step, ds.held.sel(decay=decay), color=color, label=label)
            right.plot(ds.step, ds.right.sel(decay=decay), color=color, label=label)
            part.plot(ds.step, ds.part.sel(decay=decay), color=color)
        losses.set(yscale="log", xlabel="step", ylabel="loss", title="trained (thin), held out", xlim=(0, STEPS), ylim=(1e-4, 20))
        losses.legend(loc="lower left")
        right.set(xlabel="step", ylabel="right, of the held out", title="decay generalises", xlim=(0, STEPS), ylim=(0, 1.02))
        part.set(xlabel="step", ylabel="largest frequency's part", title="neurons nearer to waves", xlim=(0, STEPS), ylim=(0, 1.02))
        few_ticks(right, part, losses, x=3)
        few_log_ticks(losses)
        letter_panels(losses, right, part)
    return figure


def expected(ds: xr.Dataset) -> list[Feature]:
    """Both memorise; with decay alone the rest is right in the end, long after."""
    known = ds.loss.sel(decay=1.0).values < 0.2
    late = ds.right.sel(decay=1.0).values > 0.95
    ratio = float(ds.step[int(late.argmax())] / ds.step[int(known.argmax())])
    return [
        Feature("loss of trained pairs in the end, no decay", float(ds.loss.sel(decay=0.0)[-1]), 0.0, 0.01, THEORY),
        Feature("loss of trained pairs in the end, decay 1", float(ds.loss.sel(decay=1.0)[-1]), 0.0, 0.05, THEORY),
        Feature("right of the held out in the end, decay 1", float(ds.right.sel(decay=1.0)[-1]), 1.0, 0.05, THEORY),
        Feature("right of the held out in the end, no decay", float(ds.right.sel(decay=0.0)[-1]), 0.55, 0.1, THEORY),
        Feature("loss of the held out in the end, no decay, over ln 23", float(ds.held.sel(decay=0.0)[-1] / np.log(23)), 1.9, 0.3, THEORY),
        Feature("steps until 95 % is right over those until the loss is .2", ratio, 6.0, 3.0, THEORY),
        Feature("waves: part with decay above that without", float(ds.part[1, -1] > ds.part[0, -1] + 0.1), 1.0, 0.0, THEORY),
    ]
