"""Transformers that close brackets rightly do not look for the bracket to close: attention maps of runs that differ by their seed alone.

Stands beside the attention maps of wen2023uninterpretable: one layer, brackets of two types, each token a bracket with its depth. Above,
maps of attention between tokens (each token once; openers before closers, by depth) of runs that are accurate; below left, how
alike two maps are; below right, along training: accuracy on closing brackets of longer sequences, attention to the last open bracket
where one closes, and how little matched brackets cancel, which is the paper's condition.
"""

from itertools import combinations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.errors import counted
from odesim.plot.figures import Feature
from odesim.plot.style import CATEGORIES, INK, SEQUENTIAL, SMALL, few_ticks, letter_panels, new_figure, project_style
from odesim.reference.tasks.dyck import TASK

WATCHED = ("accuracy", "last", "balance", "map")
SMALL_TASK = {"depth": 3, "length": 16, "width": 16, "mlp": 32, "batch": 32, "test_length": 40, "lr": 0.01}


def data(fast: bool) -> xr.Dataset:
    """accuracy, last, balance (seed, step), map (seed, query, key), window, closings (seed). fast: three seeds of depth 3, not five."""
    settings, seeds, steps = (SMALL_TASK, range(3), 400) if fast else ({"lr": 0.004}, range(5), 1200)
    run = odesim.train("dyck", settings=settings, seeds=seeds, steps=steps, save=9, dtype="float32", observe=WATCHED)
    seen = run.observables
    exact = TASK.make({s.name: s.default for s in TASK.settings} | settings, seeds=seeds).exact
    return xr.Dataset(
        {
            "accuracy": (("seed", "step"), seen["accuracy"]),
            "last": (("seed", "step"), seen["last"][..., 0]),
            "balance": (("seed", "step"), seen["balance"]),
            "map": (("seed", "query", "key"), seen["map"][:, -1]),
            "window": ("seed", exact["accuracy_window"]),
            "closings": ("seed", exact["closings"]),
        },
        coords={"seed": list(seeds), "step": np.linspace(0, steps, 9).round().astype(int)},
        attrs={"task": "dyck", **settings},
    )


def likeness(ds: xr.Dataset) -> list[float]:
    """Correlations of the maps of all pairs of seeds."""
    return [
        float(np.corrcoef(ds["map"][i].values.ravel(), ds["map"][j].values.ravel())[0, 1]) for i, j in combinations(range(len(ds.seed)), 2)
    ]


def draw(ds: xr.Dataset) -> Figure:
    """A row of maps, then correlations and the training; it computes correlations alone."""
    with project_style():
        figure = new_figure(90.0, width=160.0)
        rows = figure.add_gridspec(2, 1, height_ratios=(1, 1.25))
        above, below = rows[0].subgridspec(1, len(ds.seed)), rows[1].subgridspec(1, 2)
        maps = [figure.add_subplot(above[0, n]) for n in range(len(ds.seed))]
        for axes, one, accuracy in zip(maps, ds["map"], ds.accuracy[:, -1], strict=True):
            axes.imshow(one, cmap=SEQUENTIAL, interpolation="nearest", vmin=0)
            axes.set(xticks=[], yticks=[])
            axes.set_title(f"seed {int(one.seed)}: {float(accuracy):.3f}", fontsize=SMALL)
        maps[0].set(xlabel="key", ylabel="query")
        pairs, training = (figure.add_subplot(below[0, n]) for n in range(2))
        found = np.sort(likeness(ds))
        pairs.plot(np.arange(1, len(found) + 1), found, "o", ms=3, color=INK)
        pairs.set(xlim=(0, len(found) + 1), ylim=(0, 1), xlabel="pair of seeds, in order", ylabel="correlation of maps")
        for name, label, color in zip(
            ("accuracy", "last", "balance"),
            ("accuracy", "attention to the last open one", "brackets do not cancel"),
            CATEGORIES,
            strict=False,
        ):
            for n, row in enumerate(ds[name]):
                training.plot(ds.step, row, color=color, lw=0.8, label=label if n == 0 else None)
        training.set(xlabel="step", ylabel="all on one scale", ylim=(0, 1.7))
        training.legend(fontsize=SMALL)
        for axes in (pairs, training):
            few_ticks(axes)
        letter_panels(*maps, pairs, training)
        figure.suptitle(f"Accurate by attention that differs, {counted(ds.sizes['seed'], 'seed')}")
    return figure


def expected(ds: xr.Dataset) -> list[Feature]:
    """Accurate, by maps that differ, without much attention to the bracket that closes, while matched brackets cancel more and more."""
    end = ds.isel(step=-1)
    ratio = end.balance / ds.balance.isel(step=0)
    surely = ds.window + 4 * np.sqrt(ds.window * (1 - ds.window) / ds.closings)  # by four standard errors
    return [
        Feature("seeds not surely more accurate than the last D brackets allow", float((end.accuracy < surely).sum()), 0.0, 0.0),
        Feature("seeds that were so before training", float((ds.accuracy.isel(step=0) >= surely).sum()), 0.0, 0.0),
        Feature("pairs of maps with a correlation above .9", float(sum(x > 0.9 for x in likeness(ds))), 0.0, 0.0),
        Feature("half of the pairs have a correlation above .8", float(np.median(likeness(ds)) > 0.8), 0.0, 0.0),
        Feature("seeds with a third of their attention on the last open bracket", float((end["last"] > 1 / 3).sum()), 0.0, 0.0),
        Feature("seeds whose brackets cancel no better than at the start, by half", float((ratio > 0.5).sum()), 0.0, 0.0),
    ]
