"""Several hidden nodes: rows of V grow apart, entropy falls, and gradients lose rank long before the weights.

Stands beside the slides of tian2023joma on K > 1 (Theorem 2, row by row) and those that lead to zhao2024galore: M = 40 tokens, K = 20
nodes, Gaussian saliency, with the normaliser of softmax attention, so that nothing blows up. a, lengths of the eight most salient rows of
V: one grows in proportion to time, the others stop; b, the entropy of attention; c, stable ranks of V and of dV/dt; the rank itself
stays 20. The same against 1 - t/t* without normaliser is a panel of galore_ranks.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import erf

import odesim
from odesim.models.joma.linear_multinode import SYSTEM, Delta, M, V, gaussian, k, l, z
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, DASHES, few_log_ticks, few_ticks, letter_panels, ordered_colors, picture
from odesim.symbolic import softmax

QUESTION = "why low rank?"
LARGEST = 6.0789599  # the longest row of the saliency, by which the model divides it
RANKS = {1.0: 7.318, 5.0: 7.135, 10.0: 5.198, 20.0: 1.012, 40.0: 1.001}
START, END, SHOWN = 7.324, 40.0, 8
FINE = {"rtol": 1e-10, "atol": 1e-13}
NORMALISED = replace(
    SYSTEM,
    name="linear_multinode_softmax",
    equations={V[l, k]: Delta[l, k] * softmax(z, (l, M))},
    invariants=SYSTEM.invariants[1:],
    events=(),
    closed_forms=(),
    growth=None,
)


def data(fast: bool) -> xr.Dataset:
    """Lengths of rows (t, row), the most salient first, entropy and stable ranks (t), saliency (row). fast: the same."""
    times = np.unique(np.r_[np.linspace(0, END, 321), [*RANKS]])
    run = odesim.integrate(NORMALISED, span=(0, END * LARGEST), save=times * LARGEST, **FINE)
    saliency = np.linalg.norm(gaussian({"M": 40, "K": 20}, {}), axis=1)
    order = np.argsort(-saliency)
    V_end = run.y["V"][-1]
    return xr.Dataset(
        {
            "length": (("t", "row"), np.linalg.norm(run.y["V"], axis=2)[:, order]),
            "saliency": ("row", saliency[order]),
            "entropy": ("t", run.observables["entropy"]),
            "of_V": ("t", run.observables["stable_rank_V"]),
            "of_gradient": ("t", run.observables["stable_rank_dV"]),
            "rank": ((), float(np.linalg.matrix_rank(V_end))),
        },
        coords={"t": times, "row": np.arange(40)},
        attrs={"M": 40, "K": 20, **FINE},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels in a row; it computes nothing."""
    with picture("Rows grow apart, and gradients lose rank first", 52.0, width=160.0) as figure:
        rows, entropy, ranks = figure.subplots(1, 3)
        for color, j in zip(ordered_colors(SHOWN), range(SHOWN), strict=True):
            rows.plot(ds.t, ds.length[:, j], color=color)
        rows.set(xlabel="t", ylabel="length of a row of V", yscale="log", ylim=(0.1, 300), xlim=(0, END))
        entropy.plot(ds.t, ds.entropy, color=CATEGORIES[0])
        entropy.set(xlabel="t", ylabel="entropy of attention", xlim=(0, END), ylim=(0, 4))
        for j, (name, label) in enumerate((("of_V", "V"), ("of_gradient", "dV/dt"))):
            ranks.plot(ds.t, ds[name], color=CATEGORIES[j], ls=DASHES[j], label=label)
        ranks.set(xlabel="t", ylabel="stable rank", xlim=(0, END), ylim=(0, 8))
        ranks.legend(loc="upper right")
        few_ticks(rows, entropy, ranks)
        few_log_ticks(rows)
        letter_panels(rows, entropy, ranks)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Stable ranks at five times, the law of rows, the slope of the winner."""
    yield Feature("stable rank at the start", float(ds.of_V[0]), START, 5.1e-4, SCRIPT)
    yield from (Feature(f"stable rank of V at t = {t:g}", float(ds.of_V.sel(t=t)), want, 5.1e-4, SCRIPT) for t, want in RANKS.items())
    yield Feature("rank of V at the end", float(ds["rank"]), 20.0, 0.0)
    first = {name: float(ds.t[int(np.argmax(ds[name].values < 2))]) for name in ("of_V", "of_gradient")}
    yield Feature("the gradient is below a stable rank of 2 before V", float(first["of_gradient"] < first["of_V"]), 1.0, 0.0)
    ratio = (erf(ds.length / np.sqrt(2)) / ds.saliency).sel(t=[1.0, 5.0, 10.0]).values
    yield Feature("erf(length / sqrt 2) / saliency: largest deviation", float(np.abs(ratio / ratio[:, :1] - 1).max()), 0.0, 1e-8)
    slope = float((ds.length[-1, 0] - ds.length[-9, 0]) / (ds.t[-1] - ds.t[-9]))
    yield Feature("slope of the winner", slope, LARGEST, 1e-6)
    yield Feature("saved times at which the entropy rises", float((np.diff(ds.entropy) > 1e-9).sum()), 0.0, 0.0)
