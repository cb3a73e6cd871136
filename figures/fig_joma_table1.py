"""Latents found by single nodes: the published correlations, those before any training, and runs of ours.

Stands beside Table 1 of tian2023joma: correlation of a latent of layer s with its best node of block s, mean over latents, for 20, 30, 50
classes of sets of 2 or 3, and 10 + 20 or 20 + 30 latents. a, as published; b, two runs of ours for each cell, narrow networks (width 256)
trained to iteration 1000; c, of the published networks before the first update (the start, hierarchy and test labels of the published
seeds): all of s = 0 is there; d, two runs of ours to iteration 10000; e, s = 1 of all cells in the order of the table: what training adds
is the distance of the two lines, and not always positive; crosses are those of b.

The published code has two learning rates: 1e-4 (draw_table_1.py) and 1e-5 (README), both for 10000 iterations. In the cell that we trained
(20 classes, sets of 2, 10 + 20 latents; official starts of seeds 1 and 2, learning rate 1e-4) two iterations stand for them, chosen by
that alone. Iteration 10000, the first rate: s = 1 is .63, s = 0 .93, after jumps of Adam at a loss of 1e-4; both disagree with the table.
Iteration 1000, where the rate times the iterations is that of the README: .76 and .99, within the published deviations.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.base.errors import counted
from odesim.lab.tasks import load_task
from odesim.plot.figures import PUBLISHED, SCRIPT, Feature
from odesim.plot.style import CATEGORIES, DASHES, INK, SEQUENTIAL, SMALL, few_ticks, letter_panels, picture

QUESTION = "what is learned first?"
FOLDER = Path(__file__).parent
COLUMNS = ("s = 0, 10 + 20", "s = 0, 20 + 30", "s = 1, 10 + 20", "s = 1, 20 + 30")
ROWS = [(C, children) for C in (20, 30, 50) for children in (2, 3)]
LATENTS = ((10, 20), (20, 30))
STEPS = list(range(0, 10001, 500))
README, LAST = 1000, 10000  # iterations of ours with the learning rate times iterations of the README, and with those of draw_table_1.py
UNTRAINED = [
    (0.99, 0.94, 0.65, 0.74), (0.94, 0.95, 0.58, 0.63), (0.99, 0.94, 0.58, 0.67),
    (0.98, 0.93, 0.52, 0.57), (0.99, 0.93, 0.54, 0.62), (0.98, 0.93, 0.47, 0.53),
]  # fmt: skip
"""Means over five networks of other starts, by a program of ours."""
THIN = {(50, 2, 0): (0.983, 0.612), (30, 3, 0): (0.9825, 0.600), (50, 2, 1): (0.9045, 0.6455), (30, 3, 1): (0.905, 0.6275)}
"""Classes, members, place of the latents in LATENTS: s = 0 and s = 1 at width 256 after 1000 iterations, two other starts each, by it."""


def published() -> tuple[np.ndarray, np.ndarray]:
    """The published means and deviations (row, column)."""
    table = np.loadtxt(FOLDER / "published" / "joma_table1.csv", delimiter=",", skiprows=1)
    mean, sd = np.empty((6, 4)), np.empty((6, 4))
    for C, children, n0, n1, *values in table:
        i, j = ROWS.index((int(C), int(children))), LATENTS.index((int(n0), int(n1)))
        mean[i, [j, j + 2]], sd[i, [j, j + 2]] = values[::2], values[1::2]
    return mean, sd


def ours(of: int = 1024) -> np.ndarray:
    """Means over seeds (iteration, row, column) of the stored runs of this width, nan where there are none; iterations as in STEPS."""
    table = np.loadtxt(FOLDER / "stored" / "joma_table1_ours.csv", delimiter=",", skiprows=1)
    total, count = np.zeros((2, len(STEPS), 6, 4))
    for C, children, n0, n1, width, step, _, *values in table:
        if width == of and step in STEPS:
            i, j = ROWS.index((int(C), int(children))), LATENTS.index((int(n0), int(n1)))
            total[STEPS.index(step), i, [j, j + 2]] += values
            count[STEPS.index(step), i, [j, j + 2]] += 1
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def untrained(width: int, seeds: range) -> np.ndarray:
    """NCorr (row, column, seed) of the published networks before the first update, but for this width."""
    task = load_task("hierarchy_dag")
    values = {setting.name: setting.default for setting in task.settings} | {"rng": "official", "width": width}
    result = np.empty((6, 4, len(seeds)))
    for i, (C, children) in enumerate(ROWS):
        for j, (n0, n1) in enumerate(LATENTS):
            for k, seed in enumerate(seeds):
                made = task.make({**values, "num_classes": C, "num_children": children, "n0": n0, "n1": n1}, seeds=[seed])
                ncorr = next(o.function for o in made.model.observables if o.name == "NCorr")
                result[i, [j, j + 2], k] = ncorr(made.start("float64"))[0]
    return result


def data(fast: bool) -> xr.Dataset:
    """published, sd, ours, runs (row, column), untrained (row, column, seed), and s = 1 of both by cell. fast: width 64, seeds 1 and 2."""
    mean, sd = published()
    width, seeds = (64, range(1, 3)) if fast else (1024, range(1, 6))
    before = untrained(width, seeds)
    found, narrow = ours(), ours(256)[STEPS.index(README)]
    return xr.Dataset(
        {
            "published": (("row", "column"), mean),
            "sd": (("row", "column"), sd),
            "untrained": (("row", "column", "seed"), before),
            "untrained_mean": (("row", "column"), before.mean(axis=2)),
            "ours": (("step", "row", "column"), found),
            "narrow": (("row", "column"), narrow),
            "published_1": ("cell", mean[:, 2:].ravel()),
            "untrained_1": ("cell", before.mean(axis=2)[:, 2:].ravel()),
            "ours_1": (("step", "cell"), found[:, :, 2:].reshape(len(STEPS), -1)),
            "narrow_1": ("cell", narrow[:, 2:].ravel()),
        },
        coords={
            "step": STEPS,
            "row": [f"{C}, {children}" for C, children in ROWS],
            "column": list(COLUMNS),
            "seed": list(seeds),
            "cell": np.arange(12),
        },
        attrs={"width": width},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three tables as images, NCorr against iterations, and the cells of s = 1 as lines; it computes nothing."""
    with picture(f"Latents and nodes: {counted(ds.sizes['seed'], 'seed')} before training", 115.0, width=160.0) as figure:
        above, below = figure.add_gridspec(2, 1)
        tables = above.subgridspec(1, 3).subplots(sharey=True)
        trained, lines = below.subgridspec(1, 2).subplots()
        titles = (("published", "published"), ("narrow", f"ours, width 256, iteration {README}"), ("untrained_mean", "before training"))
        for axes, (name, title) in zip(tables, titles, strict=True):
            shown = axes.imshow(ds[name], aspect="auto", cmap=SEQUENTIAL, vmin=0.4, vmax=1.0)
            for i in range(ds.sizes["row"]):
                for j in range(ds.sizes["column"]):
                    x = float(ds[name][i, j])
                    axes.text(j, i, f"{x:.2f}", ha="center", va="center", fontsize=SMALL, color="white" if x < 0.75 else INK)
            axes.set_title(title)
            axes.set_xticks(range(4), [str(c).replace(", ", "\n") for c in ds.column.values])
            axes.set_yticks(range(6), [str(r) for r in ds.row.values])
            axes.spines[:].set_visible(False)
        tables[0].set_ylabel("classes, members of a set")
        figure.colorbar(shown, ax=list(tables), label="NCorr", aspect=18, pad=0.02)
        draw_trained(trained, ds)
        for j, (name, label) in enumerate((("published_1", "published"), ("untrained_1", "before training"))):
            lines.plot(ds.cell, ds[name], marker="os"[j], color=CATEGORIES[j], ls=DASHES[j], label=label)
        for marker, step in (("^", README), ("v", LAST)):
            lines.plot(ds.cell, ds.ours_1.sel(step=step), marker, color=INK, ms=3.5, mfc="none", label=f"ours, iteration {step}")
        lines.plot(ds.cell, ds.narrow_1, "x", color=INK, ms=3.5, label=f"width 256, iteration {README}")
        lines.set(xlabel="cell, in the order of the table", ylabel="NCorr, s = 1", ylim=(0.4, 0.95))
        lines.legend(loc="upper right")
        few_ticks(lines)
        letter_panels(*tables, trained, lines)
    return figure


def draw_trained(axes: Axes, ds: xr.Dataset) -> None:
    """NCorr of both blocks of the first cell against iterations, beside the published mean and deviation."""
    for j, column in enumerate((0, 2)):
        mean, sd = float(ds.published[0, column]), float(ds.sd[0, column])
        axes.axhspan(mean - sd, mean + sd, color=CATEGORIES[j], alpha=0.2, lw=0, label="published" if j else None)
        axes.plot(ds.step / 1000, ds.ours[:, 0, column], marker="os"[j], ms=2.5, color=CATEGORIES[j], ls=DASHES[j], label=f"s = {j}")
    axes.set(xlabel="thousands of iterations", ylabel="NCorr", ylim=(0.45, 1.02), xlim=(0, 10), title="trained by us: 20, 2, 10 + 20")
    axes.legend(loc="lower left", ncols=3)
    few_ticks(axes)


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Untrained values beside those of other starts, what training adds in the published table, and runs of ours."""
    before, thin = ds.untrained_mean.values, ds.width < 1024
    for i, row in enumerate(UNTRAINED):
        for j, want in enumerate(row):
            sd = max(float(ds.untrained[i, j].std(ddof=1)), 0.02)
            # four standard errors of the difference of two means, and half a digit; thin networks have fewer random features
            wide = 0.12 if thin else 4 * sd * np.sqrt(2 / ds.sizes["seed"]) + 0.005
            yield Feature(f"before training, {ds.row.values[i]}, {ds.column.values[j]}", float(before[i, j]), want, float(wide), SCRIPT)
    added = ds.published.values - before
    yield Feature(
        "published less before training, s = 0, mean of the cells", float(added[:, :2].mean()), 0.015, 0.04 if thin else 0.01, PUBLISHED
    )
    yield Feature(
        "published less before training, s = 1, mean of the cells", float(added[:, 2:].mean()), 0.09, 0.1 if thin else 0.03, PUBLISHED
    )
    # 50 classes, sets of 2, 20 + 30 latents: training takes away
    yield Feature("the same at 50, 2, 20 + 30", float(added[4, 3]), -0.07, 0.1 if thin else 0.03, PUBLISHED)
    for i, j in np.argwhere(np.isfinite(ds.ours.values[0, :, :2])):
        for column in (j, j + 2):
            cell = f"{ds.row.values[i]}, {ds.column.values[column]}"
            mean, sd = float(ds.published[i, column]), float(ds.sd[i, column])  # its deviation over seeds
            early, late = (float(ds.ours.sel(step=step)[i, column]) for step in (README, LAST))
            yield Feature(f"trained by us to {README}, rate times iterations of the README, {cell}", early, mean, sd, PUBLISHED)
            off = float(abs(late - mean) > sd)
            yield Feature(f"trained by us to {LAST}, rate of draw_table_1.py: 1 if it disagrees, {cell}", off, 1.0, 0.0, PUBLISHED)
    alike = float(np.corrcoef(ds.narrow.values[:, 2:].ravel(), ds.published.values[:, 2:].ravel())[0, 1])
    # twelve pairs of unrelated numbers have less than .58 with probability 97.5 %
    yield Feature(f"s = 1 of all cells, width 256 to {README}: correlation with the published ones", alike, 1.0, 0.42, PUBLISHED)
    for (count, children, j), want in THIN.items():
        i = ROWS.index((count, children))
        for column, value in zip((j, j + 2), want, strict=True):
            # two means of two seeds, whose deviation is some .03, which in the published table is .01 to .05
            cell = f"{ds.row.values[i]}, {ds.column.values[column]}"
            yield Feature(f"trained by us to {README}, width 256, {cell}", float(ds.narrow[i, column]), value, 0.06, SCRIPT)
