"""In-context Markov chains are learned from simple to complex: uniform, unigram, bigram predictions, one after the other.

Stands beside Figs 1 and 2 of edelman2024evolution (two layers of attention, Adam): a, the loss of test sequences of two states, with
those of the three strategies on the same sequences; b, the divergence from each strategy: the nearest is uniform, then unigram, then
bigram; c, the attention to the token before in both layers: the first turns to it when bigrams are learned.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.lab.tasks import load_task
from odesim.plot.figures import Feature
from odesim.plot.style import CATEGORIES, INK, SMALL, few_ticks, letter_panels, picture

QUESTION = "what is learned first?"
STRATEGIES = ("uniform", "unigram", "bigram")


def data(fast: bool) -> xr.Dataset:
    """loss (step), KL (step, strategy), previous (step, layer), by_distance (when, layer, distance) at start and end, lines (strategy).

    fast: 550 steps, not 700.
    """
    settings, steps = {"k": 2, "lr": 0.02}, 550 if fast else 700
    saved = steps // 10 + 1
    watched = ("loss_test", "KL", "previous", "by_distance")
    run = odesim.train("markov", settings=settings, steps=steps, save=saved, dtype="float32", observe=watched)
    task = load_task("markov")
    exact = task.make({s.name: s.default for s in task.settings} | settings, seeds=(0,)).exact["strategy_losses"]
    return xr.Dataset(
        {
            "loss": ("step", run.observables["loss_test"][0]),
            "KL": (("step", "strategy"), run.observables["KL"][0]),
            "previous": (("step", "layer"), run.observables["previous"][0, :, :, 0]),
            "by_distance": (("when", "layer", "distance"), run.observables["by_distance"][0, [0, -1], :, 0]),
            "lines": ("strategy", exact[0]),
        },
        coords={"step": np.arange(0, steps + 1, 10), "strategy": list(STRATEGIES), "layer": [1, 2]},
        attrs={"task": "markov", **settings},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels in a row, no computing."""
    with picture("From simple to complex", 55.0, width=160.0) as figure:
        loss, divergence, previous = figure.subplots(1, 3)
        loss.plot(ds.step, ds.loss, color=CATEGORIES[0])
        for name, line in zip(STRATEGIES, ds.lines, strict=True):
            loss.axhline(float(line), color=INK, lw=0.6, ls="--")
            loss.annotate(name, (float(ds.step[-1]), float(line)), (0, 2), textcoords="offset points", ha="right", fontsize=SMALL)
        for n, name in enumerate(STRATEGIES):
            divergence.plot(ds.step, ds.KL[:, n], color=CATEGORIES[n], label=name)
        for n in range(2):
            previous.plot(ds.step, ds.previous[:, n], color=CATEGORIES[n], label=f"layer {n + 1}")
        loss.set(xlabel="step", ylabel="loss of test sequences")
        divergence.set(xlabel="step", ylabel="divergence from a strategy", yscale="log")
        previous.set(xlabel="step", ylabel="attention to the token before")
        few_ticks(loss, previous)
        for axes in (divergence, previous):
            axes.legend(fontsize=SMALL)
        letter_panels(loss, divergence, previous)
    return figure


def expected(ds: xr.Dataset) -> list[Feature]:
    """The order of the strategies, the plateaus, and the layer that turns to the token before.

    Attention to the token before is compared with that to tokens at other distances, each less what even attention gives: with their mean,
    in deviations of theirs.
    """
    nearest = ds.KL.values.argmin(axis=1)
    at = [np.flatnonzero(nearest == n) for n in range(3)]
    first = [float(places[0]) if len(places) else np.nan for places in at]
    end, lines = float(ds.loss[-1]), ds.lines.values
    others = ds.by_distance.isel(distance=[0, *range(2, ds.sizes["distance"])])
    stands_out = ((ds.by_distance.isel(distance=1) - others.mean("distance")) / others.std("distance")).values
    return [
        Feature("strategies in their order: uniform, unigram, bigram", float(first[0] < first[1] < first[2]), 1.0, 0.0),
        Feature("the nearest strategy at the end", float(nearest[-1]), 2.0, 0.0),
        Feature("loss at the start, of ln 2", float(ds.loss[0] / np.log(2)), 1.0, 0.02),
        Feature("loss where unigram was first the nearest, of its own", float(ds.loss[int(first[1])] / lines[1]), 1.0, 0.05),
        Feature("loss at the end, of that of bigram", end / float(lines[2]), 1.0, 0.05),
        Feature("the loss at the end is nearer to bigram than to unigram", float(abs(end - lines[2]) < abs(end - lines[1])), 1.0, 0.0),
        Feature("layer 1 gives the token before as much as others, within four deviations", float(stands_out[1, 0] <= 4), 0.0, 0.0),
        Feature("a layer that did not at the start", float((stands_out[0] > 4).sum()), 0.0, 0.0),
        Feature("layer 2 gives it more than layer 1", float(ds.by_distance[1, 1, 1] > ds.by_distance[1, 0, 1]), 0.0, 0.0),
    ]
