"""Masked tokens of a real text: values grow first by SGD and not by Adam; embeddings and the first layer come to know topics.

Stands beside the figures of li2023topic on Wikipedia (norms of W_K, W_Q, W_V in training; cosines of embeddings and attention between words
of one topic and of two) with another text, Python's help: 800 tokens, windows of 48, two layers of width 64 with 4 heads, starts of
deviation .02, 2 seeds. a, by how much norms of queries and values have grown by SGD at rate .1; b, by Adam at 1e-3; c, mean cosines of
embeddings; d, attention to words of one topic over that to others at the end, mean over heads, beside 20 random orders of the topics.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from odesim.base.errors import counted
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, few_ticks, letter_panels, picture

QUESTION = "what is learned first?"
FOLDER = Path(__file__).parent / "stored"
OPTIMIZERS = ("SGD", "Adam")
SEEDS, LAYERS, HEADS = 2, 2, 4
PARTS = ("queries", "keys", "values")


def table(name: str, kind: int) -> np.ndarray:
    """Rows of one optimizer in a stored table, by seed, without its number."""
    rows = np.loadtxt(FOLDER / f"topics_text_{name}_ours.csv", delimiter=",", skiprows=1)
    return rows[rows[:, 0] == kind, 1:]


def data(fast: bool) -> xr.Dataset:
    """By optimizer: norm (seed, step, layer, part, head), growth of whole matrices in percent, cosine (seed, late, pair), attention.

    fast: the same.
    """
    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    coords: dict[str, np.ndarray | list[str]] = {"optimizer": list(OPTIMIZERS), "part": list(PARTS), "pair": ["same", "different"]}
    for kind, name in enumerate(OPTIMIZERS):
        norms, cosines = table("norms", kind), table("cosines", kind)
        step, late = f"step_{name}", f"late_{name}"
        coords |= {step: np.unique(norms[:, 1]), late: np.unique(cosines[:, 1])}
        heads = norms[:, 2:].reshape(SEEDS, len(coords[step]), LAYERS, len(PARTS), HEADS)
        whole = np.sqrt((heads**2).sum(axis=-1))
        arrays[f"norm_{name}"] = (("seed", step, "layer", "part", "head"), heads)
        arrays[f"growth_{name}"] = (("seed", step, "layer", "part"), 100 * (whole / whole[:, :1] - 1))
        arrays[f"cosine_{name}"] = (("seed", late, "pair"), cosines[:, 2:].reshape(SEEDS, -1, 2))
    both = np.stack([table("attention", kind)[:, 2:].reshape(SEEDS, -1, LAYERS) for kind in range(2)])
    return xr.Dataset({**arrays, "attention": (("optimizer", "seed", "labels", "layer"), both)}, coords=coords)


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes the range of random orders."""
    with picture("Masked tokens of a text", 105.0, width=130.0) as figure:
        (left, right), (low_left, low_right) = figure.subplots(2, 2)
        for axes, name in ((left, "SGD"), (right, "Adam")):
            grown, step = ds[f"growth_{name}"], ds[f"step_{name}"]
            for n, (layer, part) in enumerate(((0, "values"), (0, "queries"), (1, "values"), (1, "queries"))):
                for seed in range(SEEDS):
                    row = grown.sel(part=part).isel(layer=layer, seed=seed)
                    axes.plot(step, row, color=CATEGORIES[n], ls=DASHES[n], label=f"{part}, layer {layer + 1}" if seed == 0 else None)
            axes.set(xlabel="step", title=f"{name}, {counted(SEEDS, 'seed')}")
            few_ticks(axes)
        left.set_ylabel("growth of the norm in %")
        left.legend(loc="upper left")
        for n, name in enumerate(reversed(OPTIMIZERS)):
            for k, pair in enumerate(("same", "different")):
                for seed in range(SEEDS):
                    row = ds[f"cosine_{name}"].sel(pair=pair).isel(seed=seed)
                    label = f"{name}, {'one topic' if k == 0 else 'two topics'}" if seed == 0 else None
                    low_left.plot(ds[f"late_{name}"], row, color=CATEGORIES[n], ls=DASHES[k], label=label)
        low_left.set(xlabel="step", ylabel="cosine of embeddings", title="words of a topic", ylim=(-0.03, 0.22))
        low_left.legend(loc="upper left")
        few_ticks(low_left)
        places = []
        for x, (name, layer) in enumerate((name, layer) for name in reversed(OPTIMIZERS) for layer in range(LAYERS)):
            places.append(f"{name}\nlayer {layer + 1}")
            for seed in range(SEEDS):
                rows, at = ds.attention.sel(optimizer=name).isel(layer=layer, seed=seed).values, x + 0.16 * (2 * seed - 1)
                low_right.plot(
                    [at, at], [rows[1:].min(), rows[1:].max()], color=FAINT, lw=3, label="random topics" if x + seed == 0 else None
                )
                low_right.plot(at, rows[0], "o", ms=3.5, color=CATEGORIES[0], label="topics of the text" if x + seed == 0 else None)
        low_right.axhline(1, color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
        low_right.set(
            ylabel="attention, one topic over two", title=f"at the end, {counted(SEEDS, 'seed')}", xlim=(-0.6, 3.6), ylim=(0.8, 1.3)
        )
        low_right.set_xticks(range(len(places)), places)
        low_right.legend(loc="upper right")
        letter_panels(left, right, low_left, low_right)
    return figure


def order(ds: xr.Dataset, name: str, layer: int) -> np.ndarray:
    """When each head's values have grown by 5 %, over when its queries or keys have (seed, head); the end where they never do."""
    norms, step = np.asarray(ds[f"norm_{name}"])[:, :, layer], np.asarray(ds[f"step_{name}"])
    there = norms >= 1.05 * norms[:, :1]
    when = np.where(there.any(axis=1), step[there.argmax(axis=1)], step[-1])  # (seed, part, head)
    return np.asarray(when[:, 2] / when[:, :2].min(axis=1))


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Growth by optimizer and layer, order of values and queries, cosines, attention: means of 2 seeds beside those of another program."""
    for name, part, layer, step, want, wide in (
        ("SGD", "values", 0, 1000, 30.0, 4.0),
        ("SGD", "queries", 0, 1000, 8.5, 2.0),
        ("SGD", "values", 0, 3000, 92.0, 8.0),
        ("SGD", "queries", 0, 3000, 27.0, 6.0),
        ("SGD", "values", 1, 3000, 16.0, 4.0),
        ("SGD", "queries", 1, 3000, 0.1, 0.2),
        ("Adam", "values", 0, 100, 17.0, 5.0),
        ("Adam", "queries", 0, 100, 34.0, 8.0),
        ("Adam", "values", 0, 2000, 178.0, 15.0),
        ("Adam", "queries", 0, 2000, 206.0, 25.0),
    ):
        found = float(ds[f"growth_{name}"].sel({"part": part, f"step_{name}": step}).isel(layer=layer).mean())
        yield Feature(f"{name}, layer {layer + 1}: growth of {part} at {step} in %", found, want, wide, SCRIPT)
    first = [order(ds, "SGD", layer).max() for layer in range(LAYERS)]
    yield Feature("SGD: time of 5 % of a head's values over that of its queries or keys, largest", float(max(first)), 0.4, 0.3)
    yield Feature("Adam: the same, largest", float(order(ds, "Adam", 0).max()), 2.0, 1.1)
    for name, pair, want, wide in (
        ("Adam", "same", 0.122, 0.012),
        ("Adam", "different", -0.015, 0.004),
        ("SGD", "same", 0.045, 0.015),
        ("SGD", "different", -0.004, 0.004),
    ):
        found = float(ds[f"cosine_{name}"].sel(pair=pair).isel({f"late_{name}": -1}).mean())
        yield Feature(f"{name}: cosine of embeddings at the end, {pair} topic{'s' * (pair != 'same')}", found, want, wide, SCRIPT)
    attention = ds.attention.mean("seed")
    for name, layer, want, wide in (("Adam", 0, 1.167, 0.06), ("SGD", 0, 1.0, 0.03)):
        found = float(attention.sel(optimizer=name, labels=0).isel(layer=layer))
        yield Feature(f"{name}, layer {layer + 1}: attention, one topic over two", found, want, wide, SCRIPT)
    rows = ds.attention.sel(optimizer="Adam")
    for layer in range(LAYERS):
        above = float((rows.isel(layer=layer, labels=0) > rows.isel(layer=layer, labels=slice(1, None)).max("labels")).mean())
        yield Feature(f"Adam, layer {layer + 1}: seeds whose attention is above all random topics", above, 1.0 - layer, 0.0, SCRIPT)
