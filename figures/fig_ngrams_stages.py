"""From nothing to unigrams to bigrams by two layers of linear attention; and a row of attention that finds a parent.

Stands beside Figs 1 and 2 of edelman2024evolution and beside nichani2024causal, whose pictures are of trained transformers (markov_stages
is one): a, squared distance of the prediction to uniform, unigram and bigram: each is nearest for a while; b, weights v of the lags, lag 1
largest from the unigram on; c, the loss from w0 = .1 to .0001, with the levels of nothing, the unigram and the least: the first drop waits
ln(1/w0)/sigma, the second does not; d, attention of a row to the parent among n equal rivals, closed form (dots), half at about n/D.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.models.causal.parent_row import equal_rivals
from odesim.models.ngrams.claims import TIMES, nearest
from odesim.plot.figures import SCRIPT, THEORY, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, INK, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "what is learned first?"
T, LONG, RIVALS = np.append(0.0, np.geomspace(0.5, 400, 240)), np.linspace(0, 250, 251), (5, 20, 80)
STRATEGIES = ("uniform", "unigram", "bigram")
FINE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-14, "backend": "numpy"}


def data(fast: bool) -> xr.Dataset:
    """off (strategy, t), v (t, lag), near (t,), loss and times by w0, levels, attention and its closed form by n. fast: the same."""
    run = odesim.integrate("ngrams.linear", save=T, **FINE)
    starts = [odesim.integrate("ngrams.linear", params={"w0": w0}, span=(0, 250), save=LONG, **FINE) for w0 in TIMES]
    G = [0.231 * np.eye(n + 1)[0] for n in RIVALS]
    rows = [odesim.integrate("causal.parent_row", sizes={"J": len(g)}, params={"G": g}, span=(0, 400), save=81, **FINE) for g in G]
    forms = [[equal_rivals(t, {"A": np.zeros(len(g))}, {"G": g})["A"] for t in row.t[1::8]] for g, row in zip(G, rows, strict=True)]
    seen, given = run.observables, run.attrs["params"]
    return xr.Dataset(
        {
            "off": (("strategy", "t"), [seen["from_uniform"], seen["from_unigram"], 2 * seen["loss"]]),
            "near": ("t", nearest(run)),
            "v": (("t", "lag"), run.y["v"]),
            "loss": (("w0", "late"), [start.observables["loss"] for start in starts]),
            "time": (("w0", "stage"), [[start.events[name][0]["t"] for name in ("unigram", "bigram")] for start in starts]),
            "levels": ("level", [float(x) for x in (given["S"] / 2, (given["S"] - given["B"]) / 2, given["best"])]),
            "attention": (("n", "row_t"), [row.observables["attention"][:, 0] for row in rows]),
            "found": ("n", [row.events["found"][0]["t"] for row in rows]),
            "closed": (("n", "dot"), [[1 / np.exp(A - A[0]).sum() for A in form] for form in forms]),
        },
        coords={"t": T, "strategy": list(STRATEGIES), "lag": np.arange(5), "w0": list(TIMES), "late": LONG, "stage": ["unigram", "bigram"]}
        | {"level": ["nothing", "unigram", "least"], "n": list(RIVALS), "row_t": rows[0].t, "dot": rows[0].t[1::8]},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels, no computing."""
    with picture("From simple to complex, and to the parent", 104.0, width=130.0) as figure:
        (off, lags), (losses, rows) = figure.subplots(2, 2)
        for j, name in enumerate(ds.strategy.values):
            off.plot(ds.t[1:], ds.off.sel(strategy=name)[1:], color=CATEGORIES[j], ls=DASHES[j], label=str(name))
        off.set(xscale="log", yscale="log", xlabel="t", ylabel="squared distance to", ylim=(1.5e-3, 1.2))
        for j in ds.lag.values:
            lags.plot(ds.t[1:], ds.v.sel(lag=j)[1:], color=CATEGORIES[j], ls=DASHES[j % len(DASHES)], label=f"lag {j}")
        lags.set(xscale="log", xlabel="t", ylabel="v", ylim=(-0.7, 2.2))
        for j, w0 in enumerate(ds.w0.values):
            losses.plot(ds.late, ds.loss.sel(w0=w0), color=CATEGORIES[j], ls=DASHES[j % len(DASHES)], label=f"$w_0$ = {w0:g}")
        for name in ds.level.values:
            losses.axhline(float(ds.levels.sel(level=name)), color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
            losses.text(245, float(ds.levels.sel(level=name)) * 1.05, str(name), ha="right", va="bottom", fontsize="x-small")
        losses.set(yscale="log", xlabel="t", ylabel="loss", ylim=(3.5e-3, 0.6), xlim=(-3, 250))
        for j, n in enumerate(ds.n.values):
            rows.plot(ds.row_t, ds.attention.sel(n=n), color=CATEGORIES[j], ls=DASHES[j], label=f"n = {n}")
            rows.plot(ds.dot, ds.closed.sel(n=n), ".", color=INK, ms=3, label="closed form" if n == ds.n[-1] else None)
        rows.set(xlabel="t", ylabel="attention to the parent", ylim=(-0.02, 1.02))
        for axes, place, corner in (
            (off, "lower left", (0, 0)),
            (lags, "upper left", (0, 1)),
            (losses, "upper right", (1, 0.84)),
            (rows, "center", (0.6, 0.45)),
        ):
            axes.legend(loc=place, bbox_to_anchor=corner)
        few_ticks(lags, rows)
        few_log_ticks(off, lags, losses)
        letter_panels(off, lags, losses, rows)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """The order of the strategies, levels, recorded times, and the closed form of a row."""
    near, v = ds.near.values, ds.v.values
    late = ds.t.values >= float(ds.time.sel(w0=0.01, stage="unigram"))
    yield Feature("changes of the nearest strategy", float((np.diff(near) != 0).sum()), 2.0, 0.0, THEORY)
    yield Feature("the nearest strategy at the end", float(near[-1]), 2.0, 0.0, THEORY)
    yield Feature(
        "times from the unigram on at which lag 1 is not the largest", float((v[late].argmax(axis=1) != 1).sum()), 0.0, 0.0, THEORY
    )
    yield Feature("loss of nothing", float(ds.levels[0]), 0.340863, 6e-7, SCRIPT)
    yield Feature("loss of the unigram", float(ds.levels[1]), 0.034010, 6e-7, SCRIPT)
    yield Feature("least loss", float(ds.levels[2]), 0.004279, 6e-7, SCRIPT)
    yield Feature(
        "largest distance of a row from its closed form",
        float(np.abs(ds.attention.sel(row_t=ds.dot.values).values - ds.closed.values).max()),
        0.0,
        1e-6,
        THEORY,
    )
    yield Feature("time of 20 rivals", float(ds.found.sel(n=20)), 106.953059, 1e-5, SCRIPT)
    yield Feature("time of 80 rivals over that of 20", float(ds.found.sel(n=80) / ds.found.sel(n=20)), 3.5, 0.3, THEORY)
    for w0, row in TIMES.items():
        for name, want in zip(("unigram", "bigram"), row, strict=True):
            yield Feature(f"{name} from {w0:g}, over its digits", float(ds.time.sel(w0=w0, stage=name)) / want, 1.0, 5e-5, SCRIPT)
