"""Why gradients have low rank: stable ranks of weights and gradients, a bound that fails and its correction, and what memory it saves.

Stands beside zhao2024galore: a, stable ranks of V and of dV/dt of JoMA's linear MLP (M = 40, K = 20) towards the blow-up at t*: that of
the gradient falls exponentially, that of V as 1/ln; b, a parametric gradient whose stable rank lies above the bound of Lemma 3.3 at
every step, and the corrected bound; c, memory of weights and optimizer for the four models of the paper's table, 2 bytes a number.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.models.galore._side_claims import BYTES, RANK, SIZES, TABLE
from odesim.models.galore.claims import ETA, FAST, SLOW, two_modes
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "why low rank?"
LEFT = np.logspace(-0.01, -6, 121)  # 1 - t/t*
RANKS = {0: 1.6049, 1: 1.5534, 5: 1.4185, 10: 1.3357, 30: 1.2574, 60: 1.2502}
BOUND = {0: 1.3000, 1: 1.2895, 5: 1.2654, 10: 1.2547, 30: 1.2500, 60: 1.2500}
MENDED = {0: 2.1567, 1: 2.0086, 5: 1.6493, 10: 1.4472, 30: 1.2665, 60: 1.2505}
NEAR = {1e-3: (3.0891, 2.3276e-3), 1e-6: (1.6980, 4.8387e-9)}


def data(fast: bool) -> xr.Dataset:
    """Stable ranks less 1 (left), stable rank of G and both bounds (step), GB (model) with Adam and with GaLore. fast: the same."""
    times = np.sqrt(np.pi / 2) * (1 - LEFT)
    save = np.r_[0, times]
    run = odesim.integrate("joma.linear_multinode", span=(0, save[-1]), save=save, rtol=1e-11, atol=1e-14)
    steps = np.arange(61)
    seen = two_modes(method="euler", step=ETA, span=(0, 6), save=61).observables["stable_rank_G"]
    q, low = (1 - 2 * ETA) / (1 - ETA), np.linalg.norm(SLOW, 2)
    rest = q**steps * np.linalg.norm(FAST)
    rank = (np.linalg.norm(SLOW) / low) ** 2
    return xr.Dataset(
        {
            "of_V": ("left", run.observables["stable_rank_V"][1:] - 1),
            "of_gradient": ("left", run.observables["stable_rank_dV"][1:] - 1),
            "seen": ("step", seen),
            "bound": ("step", rank + (rest / low) ** 2),
            "mended": ("step", (np.linalg.norm(SLOW) ** 2 + rest**2) / (low - rest) ** 2),
            "adam": ("model", [BYTES * m.adam() / 1e9 for m in SIZES.values()]),
            "galore": ("model", [BYTES * m.galore(RANK[name]) / 1e9 for name, m in SIZES.items()]),
        },
        coords={"left": LEFT, "step": steps, "model": list(SIZES)},
        attrs={"eta": ETA},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels in a row; it computes nothing."""
    with picture("Gradients lose rank, weights do not", 55.0, width=160.0) as figure:
        ranks, bounds, bars = figure.subplots(1, 3)
        for j, (name, label) in enumerate((("of_V", "V"), ("of_gradient", "dV/dt"))):
            ranks.plot(ds.left, ds[name], color=CATEGORIES[j], ls=DASHES[j], label=label)
        ranks.set(xscale="log", yscale="log", xlim=(1, 1e-6), ylim=(3e-10, 30), xlabel="$1 - t / t^*$", ylabel="stable rank − 1")
        ranks.legend(loc="lower left")
        for j, (name, label) in enumerate((("seen", "gradient $G_t$"), ("bound", "Lemma 3.3"), ("mended", "corrected"))):
            bounds.plot(ds.step, ds[name], color=CATEGORIES[j], ls=DASHES[j], label=label)
        bounds.set(xlabel="step", ylabel="stable rank", ylim=(1.2, 2.2))
        bounds.legend(loc="upper right")
        place = np.arange(ds.sizes["model"])
        bars.bar(place - 0.2, ds.adam, 0.36, color=CATEGORIES[0], label="Adam")
        bars.bar(place + 0.2, ds.galore, 0.36, color=CATEGORIES[1], hatch="///", edgecolor="white", label="GaLore")
        bars.plot(place, [0] * len(place), color=FAINT, lw=0.5)
        bars.set(ylabel="memory (GB)")
        bars.set_xticks(place, [str(m) for m in ds.model.values])
        bars.legend(loc="upper left")
        few_log_ticks(ranks)
        few_ticks(bounds)
        letter_panels(ranks, bounds, bars)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Ranks near the blow-up, the table of bounds, memory by the formulas."""
    for left, (of_V, of_gradient) in NEAR.items():
        here = ds.sel(left=left, method="nearest")
        yield Feature(f"stable rank of V less 1 at {left:g} over its digits", float(here.of_V) / of_V, 1.0, 0.02, SCRIPT)
        yield Feature(
            f"that of dV/dt, in powers of ten of its digits, at {left:g}",
            float(np.log10(here.of_gradient / of_gradient)),
            0.0,
            0.05,
            SCRIPT,
        )
    for name, table in (("seen", RANKS), ("bound", BOUND), ("mended", MENDED)):
        for t, want in table.items():
            yield Feature(f"{name} at step {t}", float(ds[name][t]), want, 5.1e-5, SCRIPT)
    yield Feature("steps at which the lemma's bound holds", float((ds.seen <= ds.bound + 1e-9).sum()), 0.0, 0.0)
    yield Feature("steps at which the corrected bound fails", float((ds.seen > ds.mended + 1e-9).sum()), 0.0, 0.0)
    for name in SIZES:
        here = ds.sel(model=name)
        for kind, want in zip(("adam", "galore"), TABLE[name][1:], strict=True):
            yield Feature(f"GB of {name}, {kind}", float(here[kind]), want, 5.1e-4, SCRIPT)
