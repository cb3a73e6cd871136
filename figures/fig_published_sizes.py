"""Published tables on size: perplexity by method and by training, benchmarks of small models, cosines of embeddings.

Stands beside Tables 2 and 3 of zhao2024galore, the tables of liu2024mobilellm and the cosines of biderman2023pythia. a, published
perplexity against the size of a model, by how its weights are trained, on 10 to 19 tokens a weight; b, that of 7B in training, 8-bit
GaLore beside 8-bit Adam, by steps; c, mean score of eight tasks against size, small models that are deep and thin beside others; d, the
lowest ticks of the published axes of mean absolute cosines between embeddings of Pythia, at which random vectors are, drawn (dots) and by
the formula (line): Gamma(d/2) / (sqrt(pi) Gamma((d+1)/2)).
"""

import csv
from collections.abc import Iterator
from math import lgamma
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from odesim.models.galore._side_claims import SIZES
from odesim.plot.figures import PUBLISHED, THEORY, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, MARKERS, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "how does it scale?"
FOLDER = Path(__file__).parent / "published"
MILLIONS = (60.0, 130.0, 350.0, 1000.0)
WEIGHTS = [m.parameters / 1e6 for m in SIZES.values()]
"""Millions of weights of the four sizes."""
SHAPES = {125: (30, 576, 9, 3, 1536), 350: (32, 960, 15, 5, 2560)}
"""Layers, width, heads, heads of keys and values, hidden units of MobileLLM."""


def table(name: str) -> list[list[str]]:
    """The rows of a published table, without its first line."""
    with (FOLDER / f"published_sizes_{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


def parameters(layers: int, width: int, heads: int, of_keys: int, hidden: int, vocabulary: int = 32_000) -> float:
    """Millions of weights of a gated transformer with grouped keys and values, one embedding for reading and writing, no norms."""
    attention = 2 * width**2 * (1 + of_keys / heads)
    return (vocabulary * width + layers * (attention + 3 * width * hidden)) / 1e6


def mean_cosine(d: float) -> float:
    """E|cos| of two random vectors in d dimensions."""
    return float(np.exp(lgamma(d / 2) - lgamma((d + 1) / 2)) / np.sqrt(np.pi))


def data(fast: bool) -> xr.Dataset:
    """The tables, and mean cosines (width,) of random vectors. fast: 20 thousand pairs, not 100."""
    (*perplexity, tokens), (memory, *trained), small, cosines = (table(name) for name in ("perplexity", "7b", "mobilellm", "cosines"))
    widths = [int(row[0]) for row in cosines]
    rng, pairs = np.random.default_rng(0), 20_000 if fast else 100_000
    # by symmetry the cosine with a fixed direction: one coordinate over the length, whose other squares are chi-squared
    first = rng.standard_normal((len(widths), pairs))
    rest = rng.chisquare(np.array(widths)[:, None] - 1, (len(widths), pairs))
    return xr.Dataset(
        {
            "perplexity": (("method", "size"), [[float(cell) if cell else np.nan for cell in row[1:]] for row in perplexity]),
            "tokens": ("size", np.array(tokens[1:], float)),
            "trained": (("steps", "by"), np.array(trained, float)[:, 1:]),
            "gigabytes": ("by", np.array(memory[1:], float)),
            "score": ("model", [float(row[2]) for row in small]),
            "millions": ("model", [float(row[1]) for row in small]),
            "counted": ("shape", [parameters(*shape) for shape in SHAPES.values()]),
            "cosine": ("width", np.abs(first / np.sqrt(first**2 + rest)).mean(axis=1)),
            "tick": ("width", [float(row[1]) for row in cosines]),
        },
        coords={"method": [row[0] for row in perplexity], "size": list(MILLIONS), "steps": np.array(trained, float)[:, 0]}
        | {"by": ["GaLore", "Adam"], "model": [row[0] for row in small], "kind": ("model", [row[3] for row in small])}
        | {"shape": list(SHAPES), "width": widths},
        attrs={"pairs": pairs},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes the formula's line alone."""
    with picture("Published tables on size", 104.0, width=150.0) as figure:
        (methods, trained), (small, cosines) = figure.subplots(2, 2)
        for n, name in enumerate(ds.method.values):
            known = np.isfinite(ds.perplexity[n])
            methods.plot(
                ds["size"][known], ds.perplexity[n][known], color=CATEGORIES[n], marker=MARKERS[n], ms=3, ls=DASHES[n % 4], label=str(name)
            )
        methods.set(xscale="log", yscale="log", xlabel="million weights", ylabel="perplexity", title="published, by method", ylim=(13, 400))
        methods.legend(loc="upper left", ncols=2)
        for n, name in enumerate(ds.by.values):
            trained.plot(
                ds.steps,
                ds.trained[:, n],
                color=CATEGORIES[n],
                marker=MARKERS[n],
                ms=3,
                ls=DASHES[n],
                label=f"8-bit {name}, {ds.gigabytes[n]:g} GB",
            )
        trained.set(xlabel="thousand steps", ylabel="perplexity", title="published, 7B")
        trained.legend(loc="upper right")
        for n, kind in enumerate(dict.fromkeys(ds.kind.values.tolist())):
            of_kind = ds.isel(model=ds.kind.values == kind)
            small.scatter(of_kind.millions, of_kind.score, s=9, color=CATEGORIES[n], marker=MARKERS[n], label=kind)
        small.set(xscale="log", xlabel="million weights", ylabel="mean score in %", title="published, small models", ylim=(40, 62))
        small.legend(loc="upper left")
        d = np.geomspace(400, 3000, 50)
        cosines.plot(d, [mean_cosine(x) for x in d], color=FAINT, lw=0.7)
        cosines.plot(ds.width, ds.cosine, "o", color=CATEGORIES[0], ms=3, label="random vectors")
        cosines.plot(ds.width, ds.tick, "s", color=CATEGORIES[1], ms=3, mfc="none", label="published lowest ticks")
        cosines.set(xlabel="width", ylabel="mean |cosine|", title="embeddings")
        cosines.legend(loc="upper right")
        few_ticks(trained, cosines)
        few_log_ticks(methods, small)
        letter_panels(methods, trained, small, cosines)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Who is below whom, by how much, and sizes and cosines by their formulas."""
    full, galore, low, lora, relora = (ds.perplexity[n].values for n in range(5))
    difference = (ds.trained[:, 0] - ds.trained[:, 1]).values
    score = {(str(m), int(size)): float(s) for m, size, s in zip(ds.model.values, ds.millions.values, ds.score.values, strict=True)}
    yield Feature("published: GaLore over full rank, largest of four sizes", float((galore / full).max()), 1.024, 5e-4, PUBLISHED)
    yield Feature(
        "published: sizes where GaLore is below LoRA, ReLoRA and low rank",
        float((galore < np.minimum(low, np.minimum(lora, relora))).sum()),
        4.0,
        0.0,
        PUBLISHED,
    )
    yield Feature("published: 1B of low rank over 350M", float(low[3] / low[2]), 3.81, 5e-3, PUBLISHED)
    yield Feature("published: half rank below full rank at 1B", float(full[3] - ds.perplexity[5, 3]), 0.59, 5e-3, PUBLISHED)
    yield Feature("published: 7B, GaLore less Adam at 40 thousand steps", float(difference[0]), -0.15, 5e-3, PUBLISHED)
    yield Feature("published: 7B, GaLore less Adam at 150 thousand steps", float(difference[-1]), 0.04, 5e-3, PUBLISHED)
    yield Feature("published: 7B, gigabytes that GaLore saves", float(ds.gigabytes[1] - ds.gigabytes[0]), 8.0, 0.0, PUBLISHED)
    yield Feature("published: tokens a weight at 60M", float(ds.tokens[0] * 1000 / WEIGHTS[0]), 19.0, 1.0, PUBLISHED)
    yield Feature("published: tokens a weight at 1B", float(ds.tokens[3] * 1000 / WEIGHTS[3]), 9.8, 0.1, PUBLISHED)
    yield Feature("published: deep and thin 125M above OPT of its size", score["MobileLLM", 125] - score["OPT", 125], 3.7, 5e-2, PUBLISHED)
    yield Feature("published: deep and thin 350M above Pythia 410M", score["MobileLLM", 350] - score["Pythia", 410], 4.7, 5e-2, PUBLISHED)
    for shape, want in ((125, 124.6), (350, 345.3)):
        yield Feature(f"million weights of {SHAPES[shape][0]} layers, published", float(ds.counted.sel(shape=shape)), want, 0.1, PUBLISHED)
    for width, tick, found in zip(ds.width.values, ds.tick.values, ds.cosine.values, strict=True):
        # the deviation of |cos| is .76 of its mean; four errors
        spread = 4 * 0.76 * mean_cosine(width) / ds.attrs["pairs"] ** 0.5
        yield Feature(f"mean cosine of random vectors, width {width}", float(found), mean_cosine(width), spread, THEORY)
        yield Feature(f"published lowest tick, width {width}, over it", float(tick / mean_cosine(width)), 1.0, 0.06, PUBLISHED)
