"""Hops along earlier occurrences: each layer more doubles how many a transformer can follow, and one layer cannot follow one.

Stands beside the experiments of sanford2024transformers (4 letters, 100 places, width 128, 4 heads, 100,000 steps). a, published errors
against the number of hops, by layers; b, the published largest number of hops with an error below 5 %, beside 2^(L-2); c, ours on 24
places, width 64, 2 heads: errors of one to three hops in training, of one layer and of two; d, in 3000 steps, of one to three
hops by three layers, and of two hops by two layers: what two layers follow badly, three learn. And beside peng2024limitations, which has no
such picture: e, two hops on tables, g(f(x)) of six entries each: one layer guesses by g, two compose; f, the least error of an entry of a
table that is told in few bits, by trying all sets of messages, above the stated bound, for tables of three entries.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.base.errors import counted
from odesim.models.static._limit_claims import bound, least_error, tables
from odesim.plot.figures import PUBLISHED, SCRIPT, THEORY, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, MARKERS, few_ticks, letter_panels, ordered_colors, picture

QUESTION = "how does it scale?"
FILE = Path(__file__).parent / "published" / "hops_depth.csv"
OURS = Path(__file__).parent / "stored" / "hops_depth_ours.csv"
HOPS = (1, 2, 3, 4, 6, 8, 16)
SEEDS = 2
COMPOSED, ENTRIES = 1000, 3  # steps of e; entries of a table of f


def data(fast: bool) -> xr.Dataset:
    """published (depth, hops), reached (depth,), error (layers, seed, step, asked) and long (deep, seed, late, asked) of ours.

    composed (layers, seed, time), its guess; least error and bound (bits,).

    fast: 500 steps, not 1000, and one seed, not two; long ones are stored.
    """
    table, long = (np.loadtxt(file, delimiter=",", skiprows=1) for file in (FILE, OURS))
    late = np.unique(long[:, 2]).astype(int)
    steps, seeds = (500, 1) if fast else (1000, SEEDS)
    asked = {"steps": steps, "save": steps // 100 + 1, "observe": ["error"], "dtype": "float32"}
    runs = [odesim.train("hops", settings={"layers": layers}, seeds=range(seeds), **asked) for layers in (1, 2)]  # type: ignore[arg-type]
    rule = {"steps": COMPOSED, "save": 21, "observe": ["error"], "dtype": "float32"}
    pairs = [odesim.train("composition", settings={"layers": layers}, seeds=range(seeds), **rule) for layers in (1, 2)]  # type: ignore[arg-type]
    bits = np.arange(4)
    return xr.Dataset(
        {
            "composed": (("layers", "seed", "time"), [run.observables["error"] for run in pairs]),
            "guess": 1 - float(np.mean([np.bincount(g).max() for g in tables(6)])) / 6,  # of the most frequent entry of g
            "least": ("bits", [least_error(ENTRIES, int(b)) for b in bits]),
            "bound": ("bits", [bound(ENTRIES, float(b)) for b in bits]),
            "published": (("depth", "hops"), table[:, 1:-1]),
            "reached": ("depth", table[:, -1]),
            "error": (("layers", "seed", "step", "asked"), [run.observables["error"] for run in runs]),
            "long": (("deep", "seed", "late", "asked"), long[np.lexsort(long[:, 2::-1].T), 3:].reshape(2, SEEDS, len(late), 4)[:, :seeds]),
        },
        coords={"depth": table[:, 0].astype(int), "hops": list(HOPS), "layers": [1, 2], "seed": np.arange(seeds)}
        | {"bits": bits, "time": pairs[0].t}
        | {"step": np.arange(0, steps + 1, 100), "asked": np.arange(4), "late": late, "deep": [2, 3]},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Six panels; it computes only a line."""
    with picture("How far layers follow", 155.0, width=130.0) as figure:
        (published, reached), (ours, later), (composed, told) = figure.subplots(3, 2)
        for n, (depth, color) in enumerate(zip(ds.depth.values, ordered_colors(ds.sizes["depth"]), strict=True)):
            published.plot(ds.hops, ds.published[n], color=color, marker=MARKERS[n], ms=3, label=f"{depth} layers")
        published.axhline(0.05, color=FAINT, lw=0.8, ls=(0, (1, 1.5)), label="5 %")
        published.set(xlabel="hops", ylabel="error", yscale="log", ylim=(1e-4, 1.2), xscale="log", title="published errors")
        published.set_xticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
        published.minorticks_off()
        published.legend(loc="lower right")
        reached.plot(ds.depth, ds.reached, "o", color=CATEGORIES[0], ms=3.5, label="published")
        reached.plot(ds.depth, 2.0 ** (ds.depth - 2), color=FAINT, lw=0.7, label="$2^{L - 2}$")
        reached.set(xlabel="layers L", ylabel="hops with an error below 5 %", yscale="log", title="doubling")
        reached.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
        reached.minorticks_off()
        reached.legend(loc="upper left")
        for layers in (1, 2):
            for n, hops in enumerate((1, 2, 3)):
                for seed in range(ds.sizes["seed"]):
                    label = f"{counted(layers, 'layer')}, {counted(hops, 'hop')}" if seed == 0 else None
                    row = ds.error.sel(layers=layers, asked=hops)[seed]
                    ours.plot(ds.step, row, color=CATEGORIES[n], ls=DASHES[layers - 1], label=label)
        ours.set(xlabel="step", ylabel="error", ylim=(0, 1.3), title=f"ours, {counted(ds.sizes['seed'], 'seed')}")
        ours.legend(loc="upper right", ncols=2)
        for n, (deep, hops) in enumerate(((3, 1), (3, 2), (3, 3), (2, 2))):
            for seed in range(ds.sizes["seed"]):
                label = f"{deep} layers, {counted(hops, 'hop')}" if seed == 0 else None
                later.plot(ds.late, ds.long.sel(deep=deep, asked=hops)[seed], color=CATEGORIES[n], ls=DASHES[n], label=label)
        later.set(xlabel="step", ylim=(0, 1.1), title=f"longer, {counted(ds.sizes['seed'], 'seed')}")
        later.legend(loc="upper right")
        for n, layers in enumerate((1, 2)):
            for seed in range(ds.sizes["seed"]):
                label = counted(layers, "layer") if seed == 0 else None
                composed.plot(ds.time, ds.composed.sel(layers=layers)[seed], color=CATEGORIES[n], ls=DASHES[n], label=label)
        composed.axhline(float(ds.guess), color=FAINT, lw=0.8, ls=(0, (1, 1.5)), label="guess by g alone")
        composed.set(xlabel="step", ylabel="error of g(f(x))", ylim=(0, 1.1), title=f"tables, {counted(ds.sizes['seed'], 'seed')}")
        composed.legend(loc="upper right")
        told.plot(ds.bits, ds.least, "o", color=CATEGORIES[0], ms=3.5, label="least there is")
        told.plot(ds.bits, ds.bound, color=FAINT, lw=0.8, label=r"$(1 - b / (n\,\log_2 n)) / 3$")
        told.set(xlabel=f"bits b for a table of {ENTRIES} entries", ylabel="error of an entry", ylim=(0, 0.8), title="why: few bits")
        told.set_xticks(ds.bits.values)
        told.legend(loc="upper right")
        few_ticks(composed, ours, later)
        letter_panels(published, reached, ours, later, composed, told)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Hops by published layers, and what one layer, two and three of ours can do."""
    log_ratio = np.log2(ds.reached.values) - (ds.depth.values - 2)
    end = ds.error.isel(step=-1)
    one, two, last = end.sel(layers=1), end.sel(layers=2), ds.long.sel(late=3000)
    grows = (np.diff(ds.published.values, axis=1) > 0).all() and (np.diff(ds.published.values, axis=0) < 0).all()
    yield Feature(
        "published: hops reached over 2^(L-2), largest deviation in doublings", float(np.abs(log_ratio).max()), 0.5, 0.5, PUBLISHED
    )
    yield Feature("published: 1 if errors grow with hops and fall with layers", float(grows), 1.0, 0.0, PUBLISHED)
    yield Feature("published: error of two hops, 2 layers over 3", float(ds.published[0, 1] / ds.published[1, 1]), 17.1, 0.05, PUBLISHED)
    yield Feature("ours: no hop, largest error", float(end.sel(asked=0).max()), 0.0, 0.02, SCRIPT)
    # one layer still learns slowly what letters come often: .21 to .32 after 500 to 1000 steps
    yield Feature("ours: one hop, one layer", float(one.sel(asked=1).mean()), 0.28, 0.08, SCRIPT)
    yield Feature("ours: one hop, two layers", float(two.sel(asked=1).max()), 0.0, 0.03, SCRIPT)
    yield Feature("ours: two hops, two layers", float(two.sel(asked=2).mean()), 0.38, 0.1, SCRIPT)
    yield Feature("ours: two hops, one layer", float(one.sel(asked=2).mean()), 0.4, 0.06, SCRIPT)
    yield Feature("ours: two hops, two layers at 3000 steps", float(last.sel(deep=2, asked=2).mean()), 0.18, 0.08, SCRIPT)
    yield Feature("ours: two hops, three layers at 3000 steps, largest error", float(last.sel(deep=3, asked=2).max()), 0.0, 0.05, SCRIPT)
    # still falling, at a pace that differs from seed to seed
    yield Feature("ours: three hops, three layers at 3000 steps", float(last.sel(deep=3, asked=3).mean()), 0.12, 0.06, SCRIPT)
    composed = ds.composed.isel(time=-1)
    # two seeds of 512 test sequences: a standard error of .016 of .57, one of .022
    yield Feature("tables: one layer, over the guess by g", float(composed.sel(layers=1).mean() / ds.guess), 1.0, 0.1, THEORY)
    yield Feature("tables: two layers, largest error", float(composed.sel(layers=2).max()), 0.0, 0.03, SCRIPT)
    yield Feature("tables: least error of no bit, a guess among three", float(ds.least[0]), 2 / 3, 1e-12, THEORY)
    yield Feature("tables: least error of three bits, by a covering", float(ds.least[3]), 19 / 81, 1e-12, THEORY)
    yield Feature("tables: bits at which the least error is below the bound", float((ds.least < ds.bound).sum()), 0.0, 0.0, THEORY)
