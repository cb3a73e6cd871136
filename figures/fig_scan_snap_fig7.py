"""Attention of the lowest layer on text becomes sparse, in one of two heads: entropy in training, of one layer and of three.

Stands beside Fig. 7 of tian2023scan (WikiText2, SGD at rate 5, one and three layers, attention at 0, 500, 1000 and 1500 iterations) with
another text, Python's help: 500 tokens, windows of 35, width 64, 2 heads, layer norms after attention and MLP, gradients clipped at .25, no
dropout, 3 seeds. Entropy of each head of the lowest layer over that of even attention, ln(35!)/35: a, one layer; b, three layers.

Norms before attention would make rows of embeddings and positions, N(0, 2), into N(0, 1), and logits half as large: attention then begins
at .98 of even attention, not .93, and after 1500 iterations is at .3, not .1.
"""

from collections.abc import Iterator
from math import lgamma
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from odesim.base.errors import counted
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, DASHES, few_ticks, letter_panels, picture

QUESTION = "why sparse attention?"
SHARPER = {
    1: {500: (0.22, 0.32), 1000: (0.14, 0.21), 1500: (0.12, 0.16)},
    3: {500: (0.31, 0.45), 1000: (0.13, 0.20), 1500: (0.08, 0.13)},
}
"""{layers: {step: range of three seeds}} of the entropy of the sharper head, by another program."""
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
    with picture("Attention to text becomes sparse", 56.0, width=140.0) as figure:
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
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """One head of two becomes sparse and the other does not: means over seeds in the ranges of three seeds of another program."""
    for layers in ds.layers.values:
        rows = ds.entropy.sel(layers=layers)
        sharp, other = rows.sel(head="sharper"), rows.sel(head="other")
        name = f"{layers} layer{'s' * int(layers > 1)}"
        # normal logits of variance 4/9 lower the entropy of t keys by 2/9 (1 - 1/t): in the mean .074 of 2.63
        yield Feature(f"{name}: sharper head at 0", float(sharp.sel(step=0).mean()), 0.925, 0.01, SCRIPT)
        yield from (
            Feature(f"{name}: sharper head at {step}", float(sharp.sel(step=step).mean()), (low + high) / 2, (high - low) / 2, SCRIPT)
            for step, (low, high) in SHARPER[int(layers)].items()
        )
        yield Feature(f"{name}: sharper head at 1500, largest of the seeds", float(sharp.sel(step=1500).max()), 0.1, 0.1, SCRIPT)
        yield Feature(f"{name}: other head at 500", float(other.sel(step=500).mean()), 0.765, 0.055, SCRIPT)
        # of three layers it goes on to fall in one seed of three, to .61
        yield Feature(f"{name}: other head at 1500", float(other.sel(step=1500).mean()), 0.78, 0.07, SCRIPT)
