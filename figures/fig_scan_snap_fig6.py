"""How sparse attention gets: entropy over distinct tokens after 100 iterations, by learning rates and number of queries.

Stands beside Fig. 6 of tian2023scan (Syn-Medium: two next tokens a query, torch's start): its runs replayed with their own random
numbers, which give the published means and deviations to every printed digit. The entropy falls with eta_Z; with six classes or more
it is least at eta_Y = 2 eta_Z, with two it only grows with eta_Y.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from odesim.base.errors import counted
from odesim.lab.tasks import load_task
from odesim.lab.training.loop import TrainingOptions, train
from odesim.plot.figures import PUBLISHED, Feature
from odesim.plot.style import FAINT, few_ticks, letter_panels, ordered_colors, picture

QUESTION = "why sparse attention?"
TASK = "scan_snap"
TABLE = Path(__file__).with_name("published") / "scan_snap_fig6_entropy.csv"
STEPS, SEEDS = 100, range(1, 11)
DIGITS = 3  # decimals of the published numbers
AXES = ("num_last", "eta_Z", "ratio")


def published() -> xr.Dataset:
    """The published mean and standard deviation sd (num_last, eta_Z, ratio) over ten seeds."""
    rows = np.loadtxt(TABLE, delimiter=",", skiprows=1)
    levels = [np.unique(column) for column in rows[:, :3].T]
    shape = [len(level) for level in levels]
    order = np.lexsort(rows[:, 2::-1].T)
    mean, sd = rows[order, 3].reshape(shape), rows[order, 4].reshape(shape)
    coords = {"num_last": levels[0].astype(int), "eta_Z": levels[1], "ratio": levels[2].astype(int)}
    return xr.Dataset({"mean": (AXES, mean), "sd": (AXES, sd)}, coords)


def data(fast: bool) -> xr.Dataset:
    """Our entropy (num_last, eta_Z, ratio, seed), and the published mean and sd; fast: 8 of the 48 cells."""
    table = published().sel(num_last=[1, 3], eta_Z=[0.5, 2.0], ratio=[1, 2]) if fast else published()
    task = load_task(TASK)
    values = {setting.name: setting.default for setting in task.settings} | {"num_next_per_last": 2, "init": "torch", "rng": "official"}
    entropy = np.empty((*table["mean"].shape, len(SEEDS)))
    for place in np.ndindex(table["mean"].shape):
        last, eta, ratio = (table[name].values[i].item() for name, i in zip(AXES, place, strict=True))
        own = {"num_last": last, "eta_Z": eta, "eta_Y": ratio * eta}
        run = train(task.make({**values, **own}, seeds=SEEDS), TrainingOptions(steps=STEPS, save=2))
        entropy[place] = run.final["entropy_distinct"]
    return table.assign(entropy=((*AXES, "seed"), entropy)).assign_coords(seed=list(SEEDS)).assign_attrs(task=TASK, steps=STEPS)


def other_digits(ours: xr.DataArray, printed: xr.DataArray) -> float:
    """How many of our numbers are not the printed ones, when rounded as they are."""
    return float(np.sum(np.abs(np.round(ours, DIGITS) - printed) > 0.5 * 10.0**-DIGITS))


def draw(ds: xr.Dataset) -> Figure:
    """One panel per number of queries, one line per learning rate eta_Z; rings and bars: the published mean and deviation."""
    with picture(f"Attention after 100 iterations, {counted(ds.sizes['seed'], 'seed')}", 58.0) as figure:
        panels = figure.subplots(1, ds.sizes["num_last"], sharey=True, squeeze=False)[0]
        colors = ordered_colors(ds.sizes["eta_Z"])
        for panel, last in zip(panels, ds.num_last.values, strict=True):
            part = ds.sel(num_last=last)
            for k, color in enumerate(colors):
                cell = part.isel(eta_Z=k)
                panel.errorbar(
                    ds.ratio, cell["mean"], cell.sd, fmt="o", ms=4.5, mfc="none", mew=0.7, color=FAINT, elinewidth=1.8, alpha=0.6, zorder=1,
                    label="published" if k == 0 and last == ds.num_last.values[0] else None,
                )  # fmt: skip
                ours = cell.entropy.values
                label = f"$\\eta_Z$ = {ds.eta_Z.values[k]:g}" if last == ds.num_last.values[-1] else None
                panel.errorbar(ds.ratio, ours.mean(axis=-1), ours.std(axis=-1, ddof=1), color=color, elinewidth=0.6, label=label, zorder=2)
            panel.set_xscale("log")
            panel.set_xticks(ds.ratio.values, [f"{r:g}" for r in ds.ratio.values])
            panel.minorticks_off()
            panel.set_title(counted(int(last), "query", "queries"))
            panel.set_xlabel("$\\eta_Y / \\eta_Z$")
        panels[0].set_ylabel("entropy, distinct tokens")
        panels[0].legend(loc="lower right")
        panels[-1].legend(loc="lower right")
        few_ticks(panels[0], y=5)
        letter_panels(*panels)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Checks of every printed digit of the published cells, and of the paper's trends."""
    ours, spread = ds.entropy.mean("seed"), ds.entropy.std("seed", ddof=1)
    for name, what, values in (("mean", "mean", ours), ("sd", "standard deviation", spread)):
        yield Feature(
            f"{ds[name].size} published cells: those whose {what} has another digit", other_digits(values, ds[name]), 0.0, 0.0, PUBLISHED
        )
    for last in ds.num_last.values:
        rows, blur = (table.sel(num_last=last).values for table in (ours, 2 * ds.sd / np.sqrt(ds.sizes["seed"])))
        rising = int(np.sum(np.diff(rows, axis=0) >= blur[1:] + blur[:-1]))
        yield Feature(
            f"{counted(int(last), 'query', 'queries')}: cells in which the entropy rises with eta_Z, clearly", float(rising), 0.0, 0.0
        )
        low = 0 if last == 1 else 1
        below = int(np.sum(rows + blur < rows[:, low : low + 1] - blur[:, low : low + 1]))
        name = f"{counted(int(last), 'query', 'queries')}: cells clearly below the one at eta_Y = {ds.ratio.values[low]} eta_Z"
        yield Feature(name, float(below), 0.0, 0.0)
