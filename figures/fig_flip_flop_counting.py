"""Remembering one bit, and counting in brackets: what depth and the order of tokens are for.

Stands beside the experiments of liu2023flipflop (6 layers, 512 tokens) and of golkar2024counting (4 regions in 512 tokens), in small. a,
wrong bits at reads in training, of one layer and of two, on sequences as trained, .8 ignored: one layer sees bits but not which instruction
they follow; b, two layers on sequences as trained, sparse (.98 ignored) and dense (.1): the rare dense ones err longer; c, wrong counts of
transformers that see the past alone or all, with learned positions or none, and of the best guess from the number of all ones (dotted).
Means over seeds.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.base.errors import counted
from odesim.lab.tasks.counting import draw_rows
from odesim.lab.tasks.flip_flop import SETS
from odesim.plot.figures import SCRIPT, THEORY, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, few_ticks, letter_panels, picture

QUESTION = "when does it fail?"
SEEDS = 2
# at rate 3e-3 the count of the past alone comes and goes, with the last bit of a machine's products
STEPS, RATES = {"flip_flop": 400, "counting": 800}, {"flip_flop": 3e-3, "counting": 1e-3}
EVERY = 50
READERS = {"the past": ("past", "none"), "the past, with positions": ("past", "learned"), "all, with positions": ("all", "learned")}
READERS["all"] = ("all", "none")


def trained(task: str, seeds: int, **settings: str | int) -> odesim.Trajectory:
    """Trainings of this task with these settings, from so many seeds."""
    given: dict[str, Any] = {"settings": settings | {"lr": RATES[task]}, "steps": STEPS[task], "save": STEPS[task] // EVERY + 1}
    return odesim.train(task, seeds=range(seeds), observe=["error"], dtype="float32", **given)


def best_guess() -> float:
    """The error of the most frequent count given the number of all ones, mean over questions, from 200,000 rows."""
    rows = draw_rows(np.random.default_rng(0), 200_000, length=16, regions=2)
    ones, right = (rows["tokens"] == 1).sum(axis=1), 0
    for column in rows["targets"].T:
        table = np.zeros((17, 17))
        np.add.at(table, (ones, column), 1)
        right += table.max(axis=1).sum()
    return float(1 - right / rows["targets"].size)


def data(fast: bool) -> xr.Dataset:
    """error (layers, seed, step, sequences), wrong (reader, seed, step), guess. fast: one seed, not two."""
    seeds = 1 if fast else SEEDS
    flips = [trained("flip_flop", seeds, layers=layers) for layers in (1, 2)]
    counts = [trained("counting", seeds, sees=sees, positions=positions) for sees, positions in READERS.values()]
    return xr.Dataset(
        {
            "error": (("layers", "seed", "step", "sequences"), [run.observables["error"] for run in flips]),
            "wrong": (("reader", "seed", "counting_step"), [run.observables["error"].mean(axis=2) for run in counts]),
            "guess": best_guess(),
        },
        coords={"layers": [1, 2], "seed": np.arange(seeds), "step": flips[0].t, "counting_step": counts[0].t}
        | {"sequences": list(SETS), "reader": list(READERS)},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels, means over seeds."""
    with picture(f"A bit to remember, and ones to count: {counted(ds.sizes['seed'], 'seed')}", 58.0, width=170.0) as figure:
        depth, rare, counts = figure.subplots(1, 3)
        error, wrong = ds.error.mean("seed"), ds.wrong.mean("seed")
        for n, layers in enumerate(ds.layers.values):
            label = counted(int(layers), "layer")
            depth.plot(ds.step, error.sel(layers=layers, sequences=SETS[0]), color=CATEGORIES[n], ls=DASHES[n], label=label)
        for n, name in enumerate(SETS):
            rare.plot(ds.step, error.sel(layers=2, sequences=name), color=CATEGORIES[n + 1], ls=DASHES[n], label=name)
        for n, name in enumerate(ds.reader.values):
            counts.plot(ds.counting_step, wrong.sel(reader=name), color=CATEGORIES[n], ls=DASHES[n], label=str(name))
        counts.axhline(float(ds.guess), color=FAINT, lw=0.8, ls=(0, (1, 1.5)), label="best guess from all ones")
        depth.set(xlabel="step", ylabel="error of bits", ylim=(0, 0.6), title="flip-flop, as trained")
        rare.set(xlabel="step", ylabel="error of bits", ylim=(0, 0.6), title="two layers")
        counts.set(xlabel="step", ylabel="error of counts", ylim=(0, 1.45), title="counting; it sees")
        for axes in (depth, rare, counts):
            axes.legend(loc="upper right")
            few_ticks(axes)
        letter_panels(depth, rare, counts)
    return figure


def expected(ds: xr.Dataset) -> list[Feature]:
    """One layer is not enough, dense sequences lag, and who sees the past alone counts."""
    error, wrong = ds.error, ds.wrong.isel(counting_step=-1)
    one, two = (error.sel(layers=layers, sequences=SETS[0]).isel(step=-1) for layers in (1, 2))
    late = error.sel(layers=2).sel(step=slice(150, None)).mean(("seed", "step"))
    return [
        Feature("flip-flop: one layer errs, as trained", float(one.mean()), 0.18, 0.05, SCRIPT),
        Feature("flip-flop: two layers, as trained, largest", float(two.max()), 0.0, 0.03, SCRIPT),
        Feature("flip-flop: two layers from step 150 on, dense less as trained", float(late[2] - late[0]), 0.05, 0.04, SCRIPT),
        Feature("counting: sees the past alone, error", float(wrong.sel(reader="the past").mean()), 0.02, 0.03, SCRIPT),
        Feature("counting: with positions", float(wrong.sel(reader="the past, with positions").mean()), 0.04, 0.05, SCRIPT),
        Feature("counting: sees all, with positions", float(wrong.sel(reader="all, with positions").mean()), 0.18, 0.09, SCRIPT),
        # 256 rows of two questions, two seeds: a standard error of .016, two and a half; of one seed .023
        Feature(
            "counting: sees all without positions, over the best guess",
            float(wrong.sel(reader="all").mean() / ds.guess),
            1.03,
            0.08,
            THEORY,
        ),
    ]
