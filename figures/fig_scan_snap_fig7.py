"""Attention of the lowest layer on text becomes sparse, in one of two heads: entropy in training, of one layer and of three.

Stands beside Fig. 7 of tian2023scan (WikiText2, SGD at rate 5, one and three layers, attention at 0, 500, 1000 and 1500 iterations) with
another text, Python's help: 500 tokens, windows of 35, width 64, 2 heads, gradients clipped at .25, no dropout, 3 seeds. Entropy of each
head of the lowest layer over that of even attention, ln(35!)/35: a, one layer; b, three layers.

After 1500 iterations the sharper head is at .29 to .32 of even attention with one layer, at .23 to .34 with three, where it comes later and
still falls: how soon differs between seeds by more than 200 iterations, so that bounds at 500 are wide.
"""

from math import lgamma
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from odesim.base.errors import counted
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, DASHES, few_ticks, letter_panels, new_figure, project_style

QUESTION = "why sparse attention?"
FILE = Path(__file__).parent / "stored" / "scan_snap_fig7_ours.csv"


def data(fast: bool) -> xr.Dataset:
    """entropy (layers, head, seed, step) over that of even attention, the sharper head at the end first. fast: the same."""
    table = np.loadtxt(FILE, delimiter=",", skiprows=1)
    layers, seeds, steps = (np.unique(table[:, k]).astype(int) for k in range(3))
    whole = table[np.lexsort((table[:, 2], table[:, 1], table[:, 0])), 3:].reshape(len(layers), len(seeds), len(steps), 2)
    order = whole[:, :, -1].argsort(axis=-1)[:, :, None]
    sorted_heads = np.take_along_axis(whole, np.broadcast_to(order, whole.shape), axis=-1) / (lgamma(36) / 35)
    return xr.Dataset(
        {"entropy": (("layers", "head", "seed", "step"), sorted_heads.transpose(0, 3, 1, 2))},
        coords={"layers": layers, "head": ["sharper", "other"], "seed": seeds, "step": steps},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Two panels; it computes nothing."""
    with project_style():
        figure = new_figure(56.0, width=140.0)
        one, three = figure.subplots(1, 2, sharey=True)
        for axes, layers, title in ((one, 1, "one layer"), (three, 3, "lowest of three layers")):
            for n, head in enumerate(ds["head"].values):
                for seed in range(ds.sizes["seed"]):
                    rows = ds.entropy.sel(layers=layers, head=head)[seed]
                    axes.plot(ds.step, rows, color=CATEGORIES[n], ls=DASHES[n], label=f"{head} head" if seed == 0 else None)
            axes.set(xlabel="step", title=f"{title}, {counted(ds.sizes['seed'], 'seed')}", ylim=(0, 1.02), xlim=(0, 1500))
            few_ticks(axes)
        one.set_ylabel("entropy over that of even attention")
        one.legend(loc="center right", bbox_to_anchor=(1.0, 0.45))
        letter_panels(one, three)
        figure.suptitle("Attention to text becomes sparse")
    return figure


def expected(ds: xr.Dataset) -> list[Feature]:
    """One head of two becomes sparse and the other does not: bounds of all seeds, in the middle of their ranges; other texts differ."""
    features = []
    for layers in ds.layers.values:
        rows = ds.entropy.sel(layers=layers)
        sharp, other = rows.sel(head="sharper"), rows.sel(head="other")
        name = f"{layers} layer{'s' * int(layers > 1)}"
        features += [
            Feature(f"{name}: sharper head at 0, least", float(sharp.sel(step=0).min()), 0.95, 0.05, SCRIPT),
            Feature(f"{name}: sharper head at 500, largest", float(sharp.sel(step=500).max()), 0.35 if layers == 1 else 0.65, 0.15, SCRIPT),
            Feature(f"{name}: sharper head at 1500, largest", float(sharp.sel(step=1500).max()), 0.25, 0.15, SCRIPT),
            Feature(f"{name}: other head at 1500, least", float(other.sel(step=1500).min()), 0.8, 0.1, SCRIPT),
        ]
    return features
