"""Networks fit labels that mean nothing, a little later than true ones, and then know nothing.

Stands beside Table 1 and Fig. 1 of zhang2017understanding (CIFAR-10, networks of up to 1.6 million weights). a, published accuracy on new
images, with and without crops and weight decay, and of random labels, of which 99.3 % or more were fitted; b, 5514 weights of ours on 256
points of 32 dimensions in 10 classes, 10 seeds: accuracy on new points against the first step of Adam with all labels right.
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from odesim.models.static._limit_claims import KINDS, training
from odesim.plot.figures import PUBLISHED, THEORY, Feature
from odesim.plot.style import CATEGORIES, FAINT, MARKERS, few_ticks, letter_panels, picture

QUESTION = "what is learned first?"
FILE = Path(__file__).parent / "published" / "static_random_labels.csv"
SEEDS = 10


def data(fast: bool) -> xr.Dataset:
    """published (network, setting), step and accuracy in % (labels, seed). fast: the same."""
    with FILE.open(encoding="utf-8", newline="") as file:
        first, *rows = csv.reader(file)
    found = np.array([[training(kind, seed) for seed in range(SEEDS)] for kind in KINDS])
    return xr.Dataset(
        {
            "published": (("network", "setting"), [[float(cell) if cell else np.nan for cell in row[1:]] for row in rows]),
            "step": (("labels", "seed"), found[:, :, 0]),
            "accuracy": (("labels", "seed"), 100 * found[:, :, 1]),
        },
        coords={"network": [row[0] for row in rows], "setting": first[1:], "labels": list(KINDS), "seed": np.arange(SEEDS)},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Two panels; it computes nothing."""
    with picture("Labels that mean nothing", 62.0, width=150.0) as figure:
        published, ours = figure.subplots(1, 2)
        for n, name in enumerate(ds.setting.values):
            label = str(name).replace("_", " ")
            row = np.arange(ds.sizes["network"]) + 0.17 * (n - 2)  # one below the other: on one line they hide each other
            published.scatter(ds.published[:, n], row, s=9, color=CATEGORIES[n], marker=MARKERS[n], label=label)
        published.axvline(10, color=FAINT, lw=0.8, ls=(0, (1, 1.5)), label="guessing")
        published.set_yticks(range(ds.sizes["network"]), [re.sub(r"(\d)x(\d)", r"\1 × \2", str(name)) for name in ds.network.values])
        published.set(xlabel="accuracy on new images in %", title="published", xlim=(0, 100), ylim=(4.6, -2.6))
        published.legend(loc="upper right", ncols=2)
        for n, name in enumerate(ds.labels.values):
            ours.plot(ds.step[n], ds.accuracy[n], MARKERS[n], color=CATEGORIES[n], ms=3, label=str(name))
        ours.axhline(10, color=FAINT, lw=0.8, ls=(0, (1, 1.5)), label="guessing")
        ours.set(xlabel="first step with all labels right", ylabel="accuracy on new points in %", title="ours, 10 seeds", ylim=(0, 85))
        ours.legend(loc="upper right", ncols=2)
        few_ticks(ours)
        letter_panels(published, ours)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Chance for random labels, and that regularisation is not what decides."""
    accuracy, step = ds.accuracy.mean("seed"), ds.step.mean("seed")
    table = ds.published.sel
    for name in ds.network.values:
        yield Feature(f"published: random labels, {name}", float(table(network=name, setting="random_labels")), 10.0, 0.7, PUBLISHED)
    inception = table(network="Inception")
    yield Feature("published: what crops and decay give Inception", float(inception[0] - inception[3]), 3.3, 5e-3, PUBLISHED)
    yield Feature("ours: all labels right within 100 steps, of 40 trainings", float((ds.step < 100).sum()), 40.0, 0.0, THEORY)
    yield Feature("ours: accuracy in % after random labels, of a coin's", float(accuracy.sel(labels="random")), 10.0, 2.0, THEORY)
    yield Feature(
        "ours: steps for random labels over those for true ones",
        float(step.sel(labels="random") / step.sel(labels="true")),
        1.4,
        0.2,
        PUBLISHED,
    )
    yield Feature(
        "ours: true above half random by", float(accuracy.sel(labels="true") - accuracy.sel(labels="half random")), 25.0, 8.0, THEORY
    )
