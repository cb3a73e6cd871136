"""One unit on the sphere climbs its energy to one frequency: which one, how its powers compete, and how much of the data that needs.

Stands beside tian2025provable, whose features are the maxima of this energy; the game of powers is derived. a, powers U + V of three
frequencies, M = 7, of a start that the largest one does not win; b, energy of twenty random starts at M = 7, with M/4 and what a
memorised pair has; c, of random starts at M = 23 the largest logarithmic mean of U_k and V_k, and the largest product, over that of the
frequency that wins; d, the share of starts at which a wave with 2 % of noise stays one, over the share of the pairs in the data.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.models.modular.claims import powers_of
from odesim.models.modular.powers import logarithmic_mean
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, FAINT, INK, few_ticks, letter_panels, picture

QUESTION = "what is learned first?"

FINE: dict[str, Any] = {"rtol": 1e-8, "atol": 1e-12}
SHARES = (0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7)


def unit(rng: np.random.Generator, M: int) -> Any:
    """u, v (2, M): normal numbers, of length 1 together."""
    w = rng.normal(size=(2, M))
    return w / np.sqrt((w**2).sum())


def climb(w: Any, span: float, save: Any, **params: Any) -> Any:
    """A run of modular.energy from w (2, M)."""
    return odesim.integrate("modular.energy", params={"u0": w[0], "v0": w[1], **params}, span=(0, span), save=save, **FINE)


def race(rng: np.random.Generator) -> tuple[float, float]:
    """Largest logarithmic mean and product of powers at the start, over those of the winner, M = 23."""
    u, v = unit(rng, 23)
    U, V = powers_of(u), powers_of(v)
    start = {"U": U, "V": V, "rest": float(u.sum() ** 2 + v.sum() ** 2) / 23}
    run = odesim.integrate("modular.powers", initial=start, sizes={"K": 11}, span=(0, 20), save=2, **FINE)
    winner, means = int(np.argmax(run.final["U"])), logarithmic_mean(U, V)
    return float(means.max() / means[winner]), float((U * V).max() / (U * V)[winner])


def kept(rng: np.random.Generator, M: int, share: float) -> float:
    """Whether a wave with 2 % of noise holds more than half of the powers after a climb on a random share of the pairs."""
    k, phases = rng.integers(1, (M + 1) // 2), rng.uniform(0, 2 * np.pi, (2, 1))
    wave = np.cos(2 * np.pi * k * np.arange(M) / M + phases)
    w = wave / np.linalg.norm(wave) + 0.02 * unit(rng, M)
    seen = (rng.random((M, M)) < share).astype(float)
    run = climb(w / np.linalg.norm(w), 3000 / M, 2, seen=seen)
    return float(powers_of(run.final["u"])[k - 1] + powers_of(run.final["v"])[k - 1] > 0.5)


def data(fast: bool) -> xr.Dataset:
    """Powers (k, t), energies (start, t), ratios (race,), kept (M, share); fast: 60 races and 12 waves a share, not 400 and 40."""
    times = np.linspace(0, 2, 81)
    starts = [unit(np.random.default_rng(seed), 7) for seed in range(20)]
    runs = [climb(w, 2, times) for w in starts]
    each = [np.array([powers_of(u) + powers_of(v) for u, v in zip(run.y["u"], run.y["v"], strict=True)]) for run in runs]
    powers = next(rows for rows in each if rows[0].argmax() != rows[-1].argmax())
    rng = np.random.default_rng(11)
    races = np.array([race(rng) for _ in range(60 if fast else 400)])
    rng = np.random.default_rng(5)
    stays = [[np.mean([kept(rng, M, share) for _ in range(12 if fast else 40)]) for share in SHARES] for M in (11, 23)]
    return xr.Dataset(
        {
            "power": (("k", "t"), powers.T),
            "energy": (("start", "t"), np.array([run.observables["energy"] for run in runs])),
            "mean": ("race", races[:, 0]),
            "product": ("race", np.sort(races[:, 1])),
            "kept": (("M", "share"), stays),
        },
        coords={"t": times, "k": [1, 2, 3], "M": [11, 23], "share": list(SHARES)},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels."""
    with picture("The energy of one unit that learns to add", 104.0, width=140.0) as figure:
        (powers, energies), (races, shares) = figure.subplots(2, 2)
        for k, color in zip(ds.k.values, CATEGORIES, strict=False):
            powers.plot(ds.t, ds.power.sel(k=k), color=color, label=f"k = {k}")
        powers.set(xlabel="time of the ascent", ylabel="power U + V", title="one frequency takes all", xlim=(0, 1.2), ylim=(0, 1.03))
        powers.legend(loc="center right")
        for energy in ds.energy:
            energies.plot(ds.t, energy, color=CATEGORIES[0], lw=0.6)
        for level, name in ((7 / 4, "M/4"), (3 / 7, "memorised")):
            energies.axhline(level, color=FAINT, lw=0.8, ls=(0, (1, 1.5)))
            energies.text(1.98, level + 0.03, name, ha="right", color=INK)
        energies.set(xlabel="time of the ascent", ylabel="energy", title="twenty starts, M = 7", xlim=(0, 2), ylim=(0, 1.95))
        at = np.arange(ds.sizes["race"]) / (ds.sizes["race"] - 1)
        races.plot(at, ds["product"], color=CATEGORIES[1], label="product")
        races.plot(at, ds["mean"], color=CATEGORIES[0], label="logarithmic mean")
        races.set(
            xlabel="share of the starts, in order",
            ylabel="largest at the start / winner's",
            title="who wins, M = 23",
            ylim=(0.97, 1.4),
            xlim=(0, 1),
        )
        races.legend(loc="upper left")
        for M, color, mark in zip(ds.M.values, CATEGORIES, "os", strict=False):
            shares.plot(ds.share, ds.kept.sel(M=M), f"-{mark}", color=color, ms=3, label=f"M = {M}")
        shares.set(
            xlabel="share of the pairs in the data", ylabel="share of waves that stay", title="too few pairs: memorised", ylim=(-0.04, 1.04)
        )
        shares.legend(loc="upper left")
        few_ticks(powers, energies, races, shares)
        letter_panels(powers, energies, races, shares)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Recorded energies, ends, who wins, and where waves are kept."""
    for t, want in ((0.1, 0.888165662), (0.3, 1.635301081), (1.0, 1.749993084)):
        yield Feature(f"energy at t = {t:g}", float(ds.energy[0].sel(t=t, method="nearest")), want, 1e-6, THEORY)
    yield Feature("least energy in the end", float(ds.energy[:, -1].min()), 7 / 4, 1e-2, THEORY)
    yield Feature("powers of the winner in the end", float(ds.power[:, -1].max()), 1.0, 1e-3, THEORY)
    yield Feature("starts won by the largest logarithmic mean", float((ds["mean"] < 1 + 1e-9).mean()), 1.0, 0.0, THEORY)
    yield Feature("starts won by the largest product", float((ds["product"] < 1 + 1e-9).mean()), 0.9375, 0.1, THEORY)
    yield Feature("waves kept at a share of .3, M = 23", float(ds.kept.sel(M=23, share=0.3)), 0.0, 0.1, THEORY)
    yield Feature("waves kept at a share of .7, M = 23", float(ds.kept.sel(M=23, share=0.7)), 1.0, 0.1, THEORY)
