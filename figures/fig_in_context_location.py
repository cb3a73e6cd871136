"""Attention that finds the one token that matters: the plane of its two overlaps, and the risk along the way.

Stands beside the trajectories of marion2025attention on the invariant manifold: d = 400, L = 10, lambda = .1, variance 1/2 of the token.
a, 30 starts around 0 in the plane of kappa = k.k* and nu = v.v*; dashed, the stable direction of the saddle at 0, whose side decides
between (1, 1) and (-1, -1). b, the risk: a start and its image on the other side have the same. c, the overlaps in 80
dimensions from .2: flow (lines), and the mean of four trainings by SGD on drawn inputs (dots).
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, INK, few_ticks, letter_panels, picture

QUESTION = "why plateaus?"
D, LAM, G2, RADIUS, RUNS = 400, 0.1, 0.5, 0.3, 30
TIMES = np.append(0, np.geomspace(0.01, 80, 120))


def saddle() -> tuple[np.ndarray, np.ndarray]:
    """Rates (2,) of the overlaps at 0, the stable one first, and their directions as columns (2, 2)."""
    c1 = LAM * np.sqrt(D / (2 * (1 + 2 * LAM**2 * G2)))
    a, s4 = 4 * G2 * c1 / np.sqrt(np.pi), np.sqrt(1 + 4 * LAM**2 * G2)
    return np.linalg.eigh([[-a * c1 * 2 / (np.sqrt(np.pi) * s4), a], [a, 0]])


def data(fast: bool) -> xr.Dataset:
    """kappa, nu and risk (run, time). fast: the same."""
    angle = 2 * np.pi * (np.arange(RUNS) + 0.5) / RUNS
    start = {"kappa": RADIUS * np.cos(angle), "nu": RADIUS * np.sin(angle)}
    found = odesim.ensemble("in_context.single_location", initial=start, span=(0, 80), save=TIMES, observe="risk", rtol=1e-8, atol=1e-11)
    beside = odesim.compare("in_context.single_location", task="single_location", seeds=range(4), steps=2000, save=9)
    sides = (("flow", beside.theory), ("trained", beside.training))
    return xr.Dataset(
        {name: (("run", "time"), found[name].values) for name in ("kappa", "nu", "risk")}
        | {f"{name}_{word}": ("step", side[name].mean(axis=0)) for word, side in sides for name in ("kappa", "nu")},
        coords={"run": np.arange(RUNS), "time": TIMES, "step": beside.t},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels; it computes the direction of the saddle."""
    with picture("Where to look, and what to read there", 58.0, width=160.0) as figure:
        left, right, trained = figure.subplots(1, 3)
        up, named = ds.nu.values[:, -1] > 0, set[str]()
        for run in range(ds.sizes["run"]):
            color = CATEGORIES[0] if up[run] else CATEGORIES[1]
            left.plot(ds.kappa[run], ds.nu[run], color=color, lw=0.7)
            look: dict[str, Any] = {"lw": 0.7} if up[run] else {"lw": 1.1, "ls": (0, (2, 4))}
            name = "to (1, 1)" if up[run] else "to (−1, −1)"
            right.plot(ds.time, ds.risk[run], color=color, label=None if name in named else name, zorder=2 + (not up[run]), **look)
            named.add(name)
        way = saddle()[1][:, 0] * 0.5
        left.plot([-way[0], way[0]], [-way[1], way[1]], color=INK, ls="--", lw=0.8, label="stable line")
        left.plot(ds.kappa[:, 0], ds.nu[:, 0], ".", color=INK, ms=2, label="starts")
        left.set(xlabel="κ = k · k*", ylabel="ν = v · v*", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), aspect="equal")
        right.set(xscale="log", xlim=(0.05, 80), xlabel="t", ylabel="risk", ylim=(0, None))
        left.legend(loc="upper left")
        right.legend(loc="lower left")
        for name, letter, color in (("kappa", "κ", CATEGORIES[0]), ("nu", "ν", CATEGORIES[1])):
            trained.plot(ds.step, ds[f"{name}_flow"], color=color, label=letter)
            trained.plot(ds.step, ds[f"{name}_trained"], "o", color=color, ms=3)
        trained.plot([], [], "o", color=INK, ms=3, label="trained")
        trained.set(xlabel="t", ylabel="overlap", title="d = 80", ylim=(0, 1))
        trained.legend(loc="upper left")
        few_ticks(left, trained)
        letter_panels(left, right, trained)
    return figure


def expected(ds: xr.Dataset) -> list[Feature]:
    """Rates of the saddle; every run ends in the corner of its side of the stable line; kappa lags behind nu; the risk of the limit."""
    (down, up), ways = saddle()
    side = np.sign(ds.kappa[:, 0].values * ways[0, 1] + ds.nu[:, 0].values * ways[1, 1]) * np.sign(ways[1, 1])
    ends = ds.isel(time=-1)
    wrong = int((np.sign(ends.nu.values) != side).sum())
    trained = [
        # four standard errors of four seeds: batches of 32 at a rate of .002
        Feature(f"{name} at t = 4, {word}", float(ds[f"{name}_{word}"][-1]), want, wide, THEORY)
        for name, want in (("kappa", 0.69537), ("nu", 0.87366))
        for word, wide in (("flow", 6e-6), ("trained", 0.015))
    ]
    return [
        *trained,
        Feature("rate into the saddle", float(down), -3.267941, 1e-6, THEORY),
        Feature("rate out of it", float(up), 0.771515, 1e-6, THEORY),
        # the stable line bends by the third power of the distance, at .3 less than starts are apart
        Feature("runs that end on the other side of the stable line", wrong, 0.0, 0.0, THEORY),
        Feature("runs that end near (1, 1)", int((ends.nu.values > 0.999).sum()), RUNS / 2, 0.0, THEORY),
        Feature("runs that end near (-1, -1)", int((ends.nu.values < -0.999).sum()), RUNS / 2, 0.0, THEORY),
        Feature("kappa times the sign of nu in the end, least", float((ends.kappa * np.sign(ends.nu)).min()), 0.983, 2e-3, THEORY),
        Feature("largest risk in the end", float(ends.risk.max()), 0.11369, 2e-5, THEORY),
    ]
