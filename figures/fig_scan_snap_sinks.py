"""Sinks, heavy hitters and sparse entries of attention to text, beside even attention: at this size there is no sink.

Stands beside xiao2024efficient (attention to the first tokens) and zhang2023h2o (keys with most attention; entries below .01 of their row's
largest, over .95 of them), both on far larger models. Python's help: 500 tokens, windows of 35, three layers of width 64 with 2 heads,
norms after attention and MLP, 3 seeds, SGD at rate 5 with clipped gradients, Adam at 1e-3; one line a head, those of the two upper layers
pale. a, attention to the first token; b, to the fifth of the tokens with most of it; dotted, what even causal attention has; c, the share
of small entries of those seen.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from odesim.models.static.claims import even, most
from odesim.plot.figures import SCRIPT, THEORY, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, few_ticks, letter_panels, picture

QUESTION = "when does it fail?"
FILE = Path(__file__).parent / "stored" / "scan_snap_sinks_ours.csv"
OPTIMIZERS, MEASURES, LENGTH = ("SGD", "Adam"), ("first", "heavy", "sparse"), 35
SEEDS, LAYERS, HEADS = 3, 3, 2


def data(fast: bool) -> xr.Dataset:
    """first, heavy, sparse (optimizer, seed, layer, head, step), stored. fast: the same."""
    table = np.loadtxt(FILE, delimiter=",", skiprows=1)
    steps = np.unique(table[:, 2]).astype(int)
    whole = table[np.lexsort(table[:, 4::-1].T), 5:].reshape(len(OPTIMIZERS), SEEDS, len(steps), LAYERS, HEADS, len(MEASURES))
    dims = ("optimizer", "seed", "layer", "head", "step")
    arrays = {name: (dims, np.moveaxis(whole[..., n], 2, -1)) for n, name in enumerate(MEASURES)}
    return xr.Dataset(arrays, coords={"optimizer": list(OPTIMIZERS), "step": steps})


def draw(ds: xr.Dataset) -> Figure:
    """Three panels, the two upper layers pale; it computes even attention."""
    with picture("No sink at this size", 56.0, width=170.0) as figure:
        panels = figure.subplots(1, 3)
        titles = ("attention to the first token", "attention to the fifth with most", "share of small entries")
        for axes, name, title in zip(panels, MEASURES, titles, strict=True):
            for n, kind in enumerate(OPTIMIZERS):
                for layer in reversed(range(LAYERS)):
                    look = {"lw": 1.1, "label": f"{kind}, lowest layer"} if layer == 0 else {"lw": 0.5, "alpha": 0.45}
                    for row in ds[name].sel(optimizer=kind)[:, layer].values.reshape(-1, ds.sizes["step"]):
                        axes.plot(ds.step, row, color=CATEGORIES[n], ls=DASHES[n], **look)
                        look.pop("label", None)
            axes.set(xlabel="step", ylabel=title, xlim=(0, 1500))
            few_ticks(axes)
        for axes, level in zip(panels, (float(even(LENGTH)[0]), most(even(LENGTH))), strict=False):
            axes.axhline(level, color=FAINT, lw=1.4, ls=(0, (1, 1)), zorder=5, label="even attention")
        panels[1].plot([], [], color=FAINT, lw=0.5, label="upper layers")
        panels[0].set_ylim(0, 0.16)
        panels[1].set_ylim(0, 1)
        panels[2].set_ylim(0, 1)
        panels[1].legend(loc="upper right")
        letter_panels(*panels)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Even attention, and ranges over heads and seeds at the end beside those of another program with other seeds."""
    end, start = ds.sel(step=1500), ds.sel(step=0)
    null, fifth = float(even(LENGTH)[0]), most(even(LENGTH))
    yield Feature("even attention, first token", null, 0.118479, 6e-7, THEORY)
    yield Feature("even attention, fifth with most", fifth, 0.510785, 6e-7, THEORY)
    yield Feature("start: first token over even attention, mean", float(start["first"].mean()) / null, 1.0, 0.05, THEORY)
    yield Feature("start: fifth with most, mean", float(start["heavy"].mean()), fifth, 0.02, THEORY)
    for kind, low, high in (("SGD", 0.5, 0.9), ("Adam", 0.54, 0.77)):
        ratio = end["first"].sel(optimizer=kind) / null
        yield Feature(f"{kind}: first token over even attention, least head", float(ratio.min()), low, 0.06, SCRIPT)
        # the largest of 18, where heads differ by .1
        yield Feature(f"{kind}: first token over even attention, largest head", float(ratio.max()), high, 0.1, SCRIPT)
    yield Feature("fifth with most, least head", float(end["heavy"].min()), 0.25, 0.07, SCRIPT)
    yield Feature("fifth with most, largest head", float(end["heavy"].max()), 0.65, 0.07, SCRIPT)
    yield Feature(
        "SGD, lowest layer: small entries, sharper head",
        float(end["sparse"].sel(optimizer="SGD")[:, 0].max("head").mean()),
        0.87,
        0.02,
        SCRIPT,
    )
    yield Feature("small entries, largest head", float(end["sparse"].max()), 0.89, 0.03, SCRIPT)
    yield Feature(
        "SGD, upper layers: small entries, largest head", float(end["sparse"].sel(optimizer="SGD")[:, 1:].max()), 0.36, 0.29, SCRIPT
    )
