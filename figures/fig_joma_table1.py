"""Latents found by single nodes: the published correlations, those before any training, and runs of ours.

Stands beside Table 1 of tian2023joma: correlation of a latent of layer s with its best node of block s, mean over latents, for 20, 30, 50
classes of sets of 2 or 3, and 10 + 20 or 20 + 30 latents. a, as published; b, of the same networks before the first update (the start,
hierarchy and test labels of the published seeds): all of s = 0 is there; c, runs of ours to the end, where `stored/joma_table1_ours.csv`
has any; last, s = 1 of all cells in the order of the table: what training adds is the distance of the two lines, and not always positive.
"""

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from odesim.errors import counted
from odesim.plot.figures import PUBLISHED, SCRIPT, Feature
from odesim.plot.style import CATEGORIES, DASHES, INK, SEQUENTIAL, SMALL, few_ticks, letter_panels, new_figure, project_style
from odesim.reference.tasks import load_task

FOLDER = Path(__file__).parent
COLUMNS = ("s = 0, 10 + 20", "s = 0, 20 + 30", "s = 1, 10 + 20", "s = 1, 20 + 30")
ROWS = [(C, children) for C in (20, 30, 50) for children in (2, 3)]
LATENTS = ((10, 20), (20, 30))
UNTRAINED = [
    (0.99, 0.94, 0.65, 0.74), (0.94, 0.95, 0.58, 0.63), (0.99, 0.94, 0.58, 0.67),
    (0.98, 0.93, 0.52, 0.57), (0.99, 0.93, 0.54, 0.62), (0.98, 0.93, 0.47, 0.53),
]  # fmt: skip
"""Means over five networks of other starts, by a program of ours."""


def published() -> tuple[np.ndarray, np.ndarray]:
    """The published means and deviations (row, column)."""
    table = np.loadtxt(FOLDER / "published" / "joma_table1.csv", delimiter=",", skiprows=1)
    mean, sd = np.empty((6, 4)), np.empty((6, 4))
    for C, children, n0, n1, *values in table:
        i, j = ROWS.index((int(C), int(children))), LATENTS.index((int(n0), int(n1)))
        mean[i, [j, j + 2]], sd[i, [j, j + 2]] = values[::2], values[1::2]
    return mean, sd


def ours() -> tuple[np.ndarray, np.ndarray]:
    """Means (row, column) of the stored runs to step 10000 at width 1024, nan where there are none, and how many each mean is of."""
    table = (FOLDER / "stored" / "joma_table1_ours.csv").read_text(encoding="utf-8").splitlines()[1:]
    total, count = np.zeros((6, 4)), np.zeros((6, 4))
    for C, children, n0, n1, width, steps, _, *values in (map(float, line.split(",")) for line in table):
        if (width, steps) == (1024, 10000):
            i, j = ROWS.index((int(C), int(children))), LATENTS.index((int(n0), int(n1)))
            total[i, [j, j + 2]] += values
            count[i, [j, j + 2]] += 1
    return np.where(count > 0, total / np.maximum(count, 1), np.nan), count


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
    found, count = ours()
    return xr.Dataset(
        {
            "published": (("row", "column"), mean),
            "sd": (("row", "column"), sd),
            "untrained": (("row", "column", "seed"), before),
            "untrained_mean": (("row", "column"), before.mean(axis=2)),
            "ours": (("row", "column"), found),
            "runs": (("row", "column"), count),
            "published_1": ("cell", mean[:, 2:].ravel()),
            "untrained_1": ("cell", before.mean(axis=2)[:, 2:].ravel()),
            "ours_1": ("cell", found[:, 2:].ravel()),
        },
        coords={"row": [f"{C}, {children}" for C, children in ROWS], "column": list(COLUMNS), "seed": list(seeds), "cell": np.arange(12)},
        attrs={"width": width},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three tables as images, and the cells of s = 1 as lines; it computes nothing."""
    with project_style():
        figure = new_figure(115.0, width=150.0)
        cells, any_of_ours = figure.add_gridspec(2, 2), bool(ds.runs.any())
        left, middle = figure.add_subplot(cells[0, 0]), figure.add_subplot(cells[0, 1])
        tables = [(left, "published", "published"), (middle, "untrained_mean", "before training")]
        if any_of_ours:
            tables.append((figure.add_subplot(cells[1, 0]), "ours", "trained by us"))
        lines = figure.add_subplot(cells[1, 1] if any_of_ours else cells[1, :])
        for axes, name, title in tables:
            shown = axes.imshow(ds[name], aspect="auto", cmap=SEQUENTIAL, vmin=0.4, vmax=1.0)
            for i in range(ds.sizes["row"]):
                for j in range(ds.sizes["column"]):
                    x = float(ds[name][i, j])
                    if np.isfinite(x):
                        axes.text(j, i, f"{x:.2f}", ha="center", va="center", fontsize=SMALL, color="white" if x < 0.75 else INK)
            axes.set_title(title)
            axes.set_xticks(range(4), [str(c).replace(", ", "\n") for c in ds.column.values])
            axes.set_yticks(range(6), [str(r) for r in ds.row.values])
            axes.set_ylabel("classes, members of a set")
            axes.spines[:].set_visible(False)
        figure.colorbar(shown, ax=[left, middle], label="NCorr", aspect=18, pad=0.02)
        for j, (name, label) in enumerate((("published_1", "published"), ("untrained_1", "before training"))):
            lines.plot(ds.cell, ds[name], marker="os"[j], color=CATEGORIES[j], ls=DASHES[j], label=label)
        if any_of_ours:
            lines.plot(ds.cell, ds.ours_1, "D", color=INK, ms=3.5, mfc="none", label="trained by us")
        lines.set(xlabel="cell, in the order of the table", ylabel="NCorr, s = 1", ylim=(0.4, 0.95))
        lines.legend(loc="upper right")
        few_ticks(lines)
        letter_panels(*[axes for axes, *_ in tables], lines)
        figure.suptitle(f"Latents and nodes: {counted(ds.sizes['seed'], 'seed')} before training")
    return figure


def expected(ds: xr.Dataset) -> list[Feature]:
    """Untrained values beside those of other starts, what training adds in the published table, and runs of ours."""
    features, before, thin = [], ds.untrained_mean.values, ds.width < 1024
    for i, row in enumerate(UNTRAINED):
        for j, want in enumerate(row):
            sd = max(float(ds.untrained[i, j].std(ddof=1)), 0.02)
            # four standard errors of the difference of two means, and half a digit; thin networks have fewer random features
            wide = 0.12 if thin else 4 * sd * np.sqrt(2 / ds.sizes["seed"]) + 0.005
            features.append(
                Feature(f"before training, {ds.row.values[i]}, {ds.column.values[j]}", float(before[i, j]), want, float(wide), SCRIPT)
            )
    added = ds.published.values - before
    features += [
        Feature(
            "published less before training, s = 0, mean of the cells", float(added[:, :2].mean()), 0.015, 0.04 if thin else 0.01, PUBLISHED
        ),
        Feature(
            "published less before training, s = 1, mean of the cells", float(added[:, 2:].mean()), 0.09, 0.1 if thin else 0.03, PUBLISHED
        ),
        # 50 classes, sets of 2, 20 + 30 latents: training takes away
        Feature("the same at 50, 2, 20 + 30", float(added[4, 3]), -0.07, 0.1 if thin else 0.03, PUBLISHED),
    ]
    for i, j in np.argwhere(np.isfinite(ds.ours.values)):
        name = f"trained by us, {ds.row.values[i]}, {ds.column.values[j]}: less published"
        features.append(Feature(name, float(ds.ours[i, j] - ds.published[i, j]), 0.0, 0.05 if j < 2 else 0.10, PUBLISHED))
    return features
