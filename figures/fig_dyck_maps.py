"""Transformers that close brackets rightly do not look for the bracket to close: attention maps of runs that differ by their seed alone.

Stands beside the attention maps of wen2023uninterpretable: one layer, brackets of two types, each token a bracket with its depth. Above,
maps of attention between tokens (each token once; openers before closers, by depth) of runs that are accurate (numbers); below left, how
alike two maps are, and a map to itself an eighth of the training before (line: the least); in the middle, along training: accuracy on
closing brackets of longer sequences, attention to the last open bracket where one closes, and how little matched brackets cancel
(imbalance), which is the paper's condition; below right, accuracy at later and later places of sequences as long as the paper's tests,
beside the most that the last D brackets allow: what does not quite cancel adds up. Training eight times as long does not mend it: with the
paper's settings (width=50 batch=100 lr=.01 cosine=10000, 10000 steps) seeds 0, 1 and 2 close .97, .99 and .98 rightly from place 56 to 100,
and .81, .82 and .82 from place 400 to 500, where a predictor that sees the last four brackets has .88, .87 and .88.
"""

from itertools import combinations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.base.errors import counted
from odesim.lab.tasks.dyck import TASK, independent_balance
from odesim.plot.figures import Feature
from odesim.plot.style import CATEGORIES, FAINT, INK, SEQUENTIAL, SMALL, few_ticks, letter_panels, picture

QUESTION = "when does it fail?"
WATCHED = ("accuracy", "last", "balance", "map")
FULL = {"k": 2, "depth": 4, "length": 28, "width": 32, "lr": 0.004, "test_length": 500}
FEW = {"k": 2, "depth": 3, "length": 16, "width": 16, "mlp": 32, "batch": 32, "lr": 0.01, "test_length": 120}
FULL_PLACES, FEW_PLACES = (0, 56, 100, 200, 300, 400, 500), (0, 32, 60, 90, 120)


def data(fast: bool) -> xr.Dataset:
    """accuracy, last, balance (seed, step), map and map_before (seed, query, key), right, window, closings (seed, place).

    place: the end of a range of places, the first of them twice the trained length. fast: three seeds of depth 3, not five of depth 4.
    """
    settings, seeds, steps, places = (FEW, range(3), 400, FEW_PLACES) if fast else (FULL, range(5), 1200, FULL_PLACES)
    run = odesim.train("dyck", settings=settings, seeds=seeds, steps=steps, save=9, dtype="float32", observe=WATCHED)
    seen = run.observables
    exact = TASK.make({s.name: s.default for s in TASK.settings} | settings, seeds=seeds).exact
    counts = {"right": run.final["right_at"], "window": exact["window_at"], "closings": exact["closings_at"]}
    return xr.Dataset(
        {
            "accuracy": (("seed", "step"), seen["accuracy"]),
            "last": (("seed", "step"), seen["last"][..., 0]),
            "balance": (("seed", "step"), seen["balance"]),
            "map": (("seed", "query", "key"), seen["map"][:, -1]),
            "map_before": (("seed", "query", "key"), seen["map"][:, -2]),
            **{name: (("seed", "place"), np.add.reduceat(row, places[:-1], axis=1).astype(float)) for name, row in counts.items()},
        },
        coords={"seed": list(seeds), "step": np.linspace(0, steps, 9).round().astype(int), "place": list(places[1:])},
        attrs={"task": "dyck", **settings},
    )


def correlation(a: xr.DataArray, b: xr.DataArray) -> float:
    """Of the entries of two maps."""
    return float(np.corrcoef(a.values.ravel(), b.values.ravel())[0, 1])


def likeness(ds: xr.Dataset) -> tuple[list[float], list[float]]:
    """Correlations of the maps of all pairs of seeds, and of each map with itself at the step that was saved before."""
    pairs = [correlation(ds["map"][i], ds["map"][j]) for i, j in combinations(range(len(ds.seed)), 2)]
    return pairs, [correlation(now, before) for now, before in zip(ds["map"], ds.map_before, strict=True)]


def draw(ds: xr.Dataset) -> Figure:
    """A row of maps, then correlations, the training, and places; it computes correlations and shares alone."""
    with picture(f"Accurate by attention that differs, {counted(ds.sizes['seed'], 'seed')}", 90.0, width=160.0) as figure:
        rows = figure.add_gridspec(2, 1, height_ratios=(1, 1.25))
        above, below = rows[0].subgridspec(1, len(ds.seed)), rows[1].subgridspec(1, 3)
        maps = [figure.add_subplot(above[0, n]) for n in range(len(ds.seed))]
        for axes, one, accuracy in zip(maps, ds["map"], (ds.right / ds.closings)[:, 0], strict=True):
            axes.imshow(one, cmap=SEQUENTIAL, interpolation="nearest", vmin=0)
            axes.set(xticks=[], yticks=[])
            axes.set_title(f"seed {int(one.seed)}: {float(accuracy):.3f}", fontsize=SMALL)
        maps[0].set(xlabel="key", ylabel="query")
        pairs, training, places = (figure.add_subplot(below[0, n]) for n in range(3))
        of_pairs, of_itself = likeness(ds)
        pairs.axhline(min(of_itself), color=FAINT, lw=0.8, label="one seed, early and late (least)")
        pairs.plot(np.arange(1, len(of_pairs) + 1), np.sort(of_pairs), "o", ms=3, color=INK, label="two seeds")
        pairs.set(xlim=(0, len(of_pairs) + 1), ylim=(0, 1.4), yticks=[0, 0.5, 1], xticks=[], xlabel="pairs of seeds, in order")
        pairs.set_ylabel("correlation of maps")
        pairs.legend(fontsize=SMALL, loc="upper left")
        for name, label, color in zip(
            ("accuracy", "last", "balance"),
            ("accuracy", "attention to the last open one", "imbalance of pairs"),
            CATEGORIES,
            strict=False,
        ):
            training.plot(ds.step, ds[name].T, color=color, lw=0.8)
            # what does not cancel falls through the middle of the panel
            height = 1.25 if name == "balance" else float(ds[name].isel(step=-1).max()) + 0.04
            training.text(float(ds.step[-1]), height, label, color=color, fontsize=SMALL, ha="right", va="bottom")
        training.set(xlabel="step", ylabel="share, or imbalance", ylim=(0, None))
        for n, row in enumerate(ds.right / ds.closings):
            places.plot(ds.place, row, color=INK, lw=0.8, marker="o", ms=2, label="trained" if n == 0 else None)
        places.plot(ds.place, (ds.window / ds.closings).mean("seed"), color=FAINT, lw=0.8, label="last D brackets")
        places.set(xlabel="place in the sequence", ylabel="accuracy", ylim=(0.7, 1.02), xlim=(0, None))
        places.legend(fontsize=SMALL)
        few_ticks(training, places)
        letter_panels(*maps, pairs, training, places)
    return figure


def expected(ds: xr.Dataset) -> list[Feature]:
    """Accurate, by maps that differ, without most attention on the bracket that closes, while matched brackets cancel.

    Each number is beside what another model or chance would give: a predictor with a memory as large as the stack, D brackets, but of the
    last ones; a map along its own training; a head that looks brackets up, whose choice outweighs all the others; brackets that add in
    directions of their own. Chance is exceeded by four standard errors.
    """
    end, first, last = ds.isel(step=-1), ds.isel(place=0), ds.isel(place=-1)
    short, allowed, long = first.right / first.closings, first.window / first.closings, last.right / last.closings
    surely = allowed + 4 * np.sqrt(allowed * (1 - allowed) / first.closings)
    apart = 4 * np.sqrt(short * (1 - short) / first.closings + long * (1 - long) / last.closings)
    of_pairs, of_itself = likeness(ds)
    mean, deviation = independent_balance(ds.attrs["width"], ds.attrs["k"] * ds.attrs["depth"])
    cancel = mean - 4 * deviation
    return [
        Feature(
            "seeds not surely more accurate than the last D brackets allow, to twice the trained length",
            float((short < surely).sum()),
            0.0,
            0.0,
        ),
        Feature("least accuracy of a seed, to twice the trained length", float(short.min()), 1.0, 0.05),
        # well below 1; maps of three depths have fewer tokens in which to differ
        Feature("largest correlation of two seeds' maps", max(of_pairs), 0.0, 0.75 if ds.attrs["depth"] > 3 else 0.85),
        Feature("seeds not surely less accurate at the last places", float((short - long < apart).sum()), 0.0, 0.0),
        Feature("seeds as accurate before training", float((ds.accuracy.isel(step=0) >= surely).sum()), 0.0, 0.0),
        Feature("pairs of maps as much alike as a map is to itself before", float(sum(x >= min(of_itself) for x in of_pairs)), 0.0, 0.0),
        Feature("seeds with most of their attention on the last open bracket", float((end["last"] > 0.5).sum()), 0.0, 0.0),
        Feature("seeds whose brackets do not surely cancel more than independent ones", float((end.balance > cancel).sum()), 0.0, 0.0),
        Feature("seeds whose brackets did before training", float((ds.balance.isel(step=0) <= cancel).sum()), 0.0, 0.0),
    ]
