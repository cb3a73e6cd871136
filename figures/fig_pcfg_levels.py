"""Masked letters of a grammar are learned level by level: the sibling, then the block of four, then the whole sentence.

Stands beside zhao2023parse, on transformers that come near inside and outside probabilities, with a grammar of 512 sentences in which all
is counted. a, loss of all sentences with each letter masked, over ln 4, of two layers; lines: what is left if the block of 1, 2, 4 or 8
letters is known, 1, 1/2, 1/4, 1/8; b, the same of one layer.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.base.errors import counted
from odesim.lab.tasks.pcfg import levels
from odesim.plot.figures import SCRIPT, THEORY, Feature
from odesim.plot.style import CATEGORIES, FAINT, SMALL, letter_panels, picture

QUESTION = "what is learned first?"
SEEDS = 3


def data(fast: bool) -> xr.Dataset:
    """share (layers, seed, step) by Adam whose rate falls to 0, and levels (level,). fast: 1000 steps, not 2000, and one seed, not three.

    After 1000 steps seed 0 is still between two levels, and the last one is through.
    """
    steps, saves, seeds = (1000, 11, [SEEDS - 1]) if fast else (2000, 41, list(range(SEEDS)))
    asked: dict[str, Any] = {"steps": steps, "save": saves, "observe": ["share"], "dtype": "float32", "seeds": seeds}
    runs = [odesim.train("pcfg", settings={"layers": layers, "cosine": steps}, **asked) for layers in (2, 1)]
    return xr.Dataset(
        {"share": (("layers", "seed", "step"), [run.observables["share"] for run in runs]), "levels": ("level", levels(3))},
        coords={"layers": [2, 1], "seed": seeds, "step": np.linspace(0, steps, saves)},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Two panels; it computes nothing."""
    with picture("A grammar is learned level by level", 58.0, width=140.0) as figure:
        for axes, layers, title in zip(figure.subplots(1, 2, sharey=True), (2, 1), ("two layers", "one layer"), strict=True):
            for n, level in enumerate(ds.levels.values):
                axes.axhline(level, color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
                text = ("nothing", "sibling", "block of 4", "all")[n]
                axes.annotate(text, (float(ds.step[-1]), level), (0, -2), textcoords="offset points", ha="right", va="top", fontsize=SMALL)
            for seed in range(ds.sizes["seed"]):
                axes.plot(ds.step, ds.share.sel(layers=layers)[seed], color=CATEGORIES[seed])
            axes.set(xlabel="step", yscale="log", ylim=(0.1, 1.3), title=f"{title}, {counted(ds.sizes['seed'], 'seed')}")
            axes.set_yticks([1, 0.5, 0.25, 0.125], ["1", "1/2", "1/4", "1/8"])
            axes.minorticks_off()
        first, second = figure.axes
        first.set_ylabel("loss over ln 4")
        letter_panels(first, second)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Counted levels, their order in training, the end of both."""
    two, one = ds.share.sel(layers=2), ds.share.sel(layers=1)

    def first_below(rows: xr.DataArray, bound: float) -> np.ndarray:
        """The first step (seed,) with less, of those that are saved; nan where there is none."""
        below = rows.values < bound
        return np.where(below.any(axis=1), ds.step.values[below.argmax(axis=1)], np.nan)

    half, quarter, last = (first_below(two, bound) for bound in (0.5, 0.25, 0.15))
    for n, level in enumerate(ds.levels.values):
        yield Feature(f"counted: left of a letter, block of {2**n}", float(level), 2.0**-n, 1e-12, THEORY)
    yield Feature(
        "seeds of two layers below 1/2, then 1/4, then .15, in this order",
        float(((half < quarter) & (quarter < last)).sum()),
        float(ds.sizes["seed"]),
        0.0,
        SCRIPT,
    )
    yield Feature("two layers at the end, mean", float(two[:, -1].mean()), 0.125, 0.02, THEORY)
    yield Feature("nothing is below all that can be known, least share", float(min(1.0, ds.share.min() / 0.122)), 1.0, 0.0, THEORY)
    yield Feature("one layer at the end less two, is above 0", float(one[:, -1].mean() > two[:, -1].mean()), 1.0, 0.0, SCRIPT)
    yield Feature("one layer at the start", float(one[:, 0].mean()), 1.05, 0.15, SCRIPT)
