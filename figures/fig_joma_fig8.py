"""The learning rate decides whether attention bounces back: five layers on text, entropy of attention and loss on other text.

Stands beside Fig. 8 of tian2023joma (WikiText2, five layers, width 200, Adam with rates 1e-6 to 1e-2; at the lowest rate entropy only
falls, at 5e-5 and 1e-4 it clearly bounces, from 1e-3 on the lowest layer collapses) with a smaller network on another text: width 64,
one head, windows of 35 tokens of Python's help, 1500 steps, one start. a, entropy of attention, mean over layers; all begin near that of
uniform attention, ln(35!)/35. b, layer by layer at the rate 0.01. c, how far a layer comes back up from its lowest entropy. d, the best
loss on text that is not trained on, beside the published one: both are lowest at the largest rate without a collapse, at which attention
bounces. The rates differ, as the networks do.
"""

from math import lgamma
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from odesim.plot.figures import PUBLISHED, THEORY, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, MARKERS, few_ticks, letter_panels, ordered_colors, picture, power_text

QUESTION = "why sparse attention?"
FOLDER = Path(__file__).parent
LAYERS, PLACES, SHOWN = 5, 35, 1e-2
LINE = 0.05
"""Entropy that the width of a drawn line covers, of 3.8 in a panel of some 40 mm: what a figure shows as none."""


def data(fast: bool) -> xr.Dataset:
    """entropy (rate, layer, iteration), its mean over layers, rise (layer, rate), loss (rate) and the published one. fast: the same."""
    table = np.loadtxt(FOLDER / "stored" / "joma_fig8_ours.csv", delimiter=",", skiprows=1)
    rates, steps = np.unique(table[:, 0]), np.unique(table[:, 1])
    whole = table[np.lexsort((table[:, 1], table[:, 0]))].reshape(len(rates), len(steps), -1)
    entropy = whole[:, :, 2 : 2 + LAYERS].transpose(0, 2, 1)
    lowest = np.minimum.accumulate(entropy, axis=2)
    published_rate, published = np.loadtxt(FOLDER / "published" / "joma_fig8.csv", delimiter=",", skiprows=1).T
    return xr.Dataset(
        {
            "entropy": (("rate", "layer", "iteration"), entropy),
            "mean_entropy": (("rate", "iteration"), entropy.mean(axis=1)),
            "rise": (("layer", "rate"), (entropy - lowest).max(axis=2).T),
            "loss": ("rate", whole[:, :, -1].min(axis=1)),
            "published": ("published_rate", published),
        },
        coords={"rate": rates, "layer": np.arange(LAYERS), "iteration": steps.astype(int), "published_rate": published_rate},
        attrs={"uniform": lgamma(PLACES + 1) / PLACES},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes nothing."""
    with picture("Five layers on text: entropy of attention by learning rate", 100.0, width=150.0) as figure:
        mean, layers, rise, loss = figure.subplots(2, 2).flat
        for j, rate in enumerate(ds.rate.values):
            mean.plot(ds.iteration, ds.mean_entropy[j], color=CATEGORIES[j], ls=DASHES[j % 4], label=f"rate {power_text(rate)}")
        for axes in (mean, layers):
            axes.axhline(ds.uniform, color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
            axes.set(xlabel="step", ylabel="entropy of attention", ylim=(0, 3.8), xlim=(0, ds.iteration.values[-1]))
        mean.legend(loc="upper right", ncols=2)
        colors = ordered_colors(ds.sizes["layer"])
        for k, color in enumerate(colors):
            layers.plot(ds.iteration, ds.entropy.sel(rate=SHOWN)[k], color=color, label=f"layer {k}")
            rise.plot(ds.rate, ds.rise[k], color=color, marker=MARKERS[k], label=f"layer {k}")
        layers.set_title(f"rate {power_text(SHOWN)}")
        layers.legend(loc="upper right", ncols=2)
        rise.set(xscale="log", xlabel="learning rate", ylabel="rise above its lowest")
        rise.legend(loc="upper left")
        loss.plot(ds.published_rate, ds.published, color=CATEGORIES[1], marker="s", ls=DASHES[1], label="published, WikiText2")
        loss.plot(ds.rate, ds.loss, color=CATEGORIES[0], marker="o", label="ours, Python's help")
        loss.set(xscale="log", xlabel="learning rate", ylabel="best loss on other text", ylim=(0, 7.5))
        loss.legend(loc="lower left")
        few_ticks(mean, layers)
        letter_panels(mean, layers, rise, loss)
    return figure


def above_noise(entropy: np.ndarray, rise: np.ndarray) -> int:
    """How many layers rise by more than noise does: the largest difference of n normal numbers is below 2 sqrt(2 ln n) deviations.

    entropy (layer, n), of which second differences have sqrt(6) times the deviation of its noise; rise (layer,).
    """
    deviation = np.diff(entropy, 2, axis=1).std(axis=1) / np.sqrt(6)
    return int((rise > 2 * np.sqrt(2 * np.log(entropy.shape[1])) * deviation).sum())


def expected(ds: xr.Dataset) -> list[Feature]:
    """What the paper's figure shows, in ours: no bounce at a small rate, one at a larger, a collapse beyond, the best loss in between."""
    by_rate, end = ds.rise.values, ds.entropy.values[:, :, -1]
    best = int(ds.loss.values.argmin())
    bounces = above_noise(ds.entropy.values[best], by_rate[:, best])
    return [
        Feature("uniform attention over 35 places, ln(35!)/35", float(ds.uniform), 2.632, 5e-4, THEORY),
        Feature("entropy at the start, mean over layers", float(ds.mean_entropy[:, 0].mean()), float(ds.uniform), LINE, THEORY),
        Feature("largest rise of a layer at the smallest rate", float(by_rate[:, 0].max()), 0.0, LINE, PUBLISHED),
        Feature("layers that rise above their noise at the rate of the best loss", float(bounces), 5.0, 0.0, PUBLISHED),
        Feature("entropy of layer 0 at the end, at the largest rate: a collapse", float(end[-1, 0]), 0.0, LINE, PUBLISHED),
        Feature(
            "1 if the best loss is neither at the lowest nor at the highest rate", float(0 < best < len(ds.rate) - 1), 1.0, 0.0, PUBLISHED
        ),
        Feature(
            "published: the rate of the best loss", float(ds.published_rate[int(ds.published.values.argmin())]), 1e-4, 1e-12, PUBLISHED
        ),
        Feature("published: loss there", float(ds.published.min()), 5.169, 1e-9, PUBLISHED),
    ]
