"""What BYOL's modes learn, and when they collapse: where they start, and how strong weight decay is.

Stands beside Fig. 3 and Fig. 4 of tian2021understanding, sigma2 = .1, no moving average. a, p of modes that start balanced near the edge
p- of the basin, eta = .04; b, the plane of p and s: flow, parabola s = p^2 (dashed) and the edge of the basin (orange), which off the
parabola is a curve; c, p in the end against weight decay: the branch of rest states with its fold at 1/(4 (1 + sigma2)), unstable part
dashed, ends of runs (dots), and networks trained by SGD on sampled views to t = 100, the mean of twelve modes (crosses).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.models.self_supervised._parabola import modes_at, rest_points
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, FAINT, INK, few_ticks, letter_panels, ordered_colors, picture

QUESTION = "when does it fail?"
MODEL, ETA, SIGMA2 = "self_supervised.modes", 0.04, 0.1
FINE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12}
STARTS = (0.036, 0.041, 0.043, 0.06, 0.15, 0.6)
LOW, HIGH = (root.real for root in rest_points(ETA, SIGMA2))
FOLD = 1 / (4 + 4 * SIGMA2)
DECAYS = (0.05, 0.1, 0.15, 0.2, 0.26)


def trained(decay: float) -> float:
    """The mean p at t = 100 of the three modes of four networks, from p = .6, s = .36."""
    settings = {"p": [0.6] * 3, "s": [0.36] * 3, "decay": decay}
    return float(odesim.train("simsiam", settings=settings, seeds=range(4), steps=10_000, save=2).final["p"].mean())


def slopes(p: Any, s: Any) -> tuple[Any, Any]:
    """p' and s' at eta = .04."""
    lack = 1 - (1 + SIGMA2) * p
    return s * lack - ETA * p, 2 * p * s * lack - 2 * ETA * s


def edge() -> np.ndarray:
    """(p, s) (2, point) of the orbits into the saddle (p-, p-^2), backwards along its stable direction."""
    h = 1e-6
    J = np.transpose([(np.array(slopes(LOW + a, LOW**2 + b)) - slopes(LOW - a, LOW**2 - b)) / (2 * h) for a, b in ((h, 0), (0, h))])
    values, vectors = np.linalg.eig(J)
    way = vectors[:, np.argmin(values)]
    branches = []
    for side in (-1, 1):
        z, path = np.array([LOW, LOW**2]) + side * 1e-5 * way, []
        for _ in range(20_000):  # Heun in steps of arc length, so that it leaves the saddle
            k = np.array(slopes(*z))
            k = -k / np.linalg.norm(k)
            m = np.array(slopes(*(z + 1e-3 * k)))
            z = z + 5e-4 * (k - m / np.linalg.norm(m))
            if not (-1.0 < z[0] < 1.3 and -0.05 < z[1] < 1.2):
                break
            path.append(z)
        branches.append(np.array(path))
    return np.concatenate([branches[0][::-1], branches[1]]).T


def data(fast: bool) -> xr.Dataset:
    """p (time, start); edge; branch, stable (upper) and not (lower); ends of runs (eta). fast: 9 runs, not 33."""
    times = np.linspace(0, 150, 301)
    start = {"p": STARTS, "s": np.square(STARTS)}
    run = odesim.integrate(MODEL, initial=start, sizes={"n": len(STARTS)}, span=(0, 150), save=times, **FINE)
    found = odesim.branch(MODEL, "eta", (0.01, 0.3), sizes={"n": 1})
    stable = found["growing"].values == 0
    etas = np.linspace(0.02, 0.28, 9 if fast else 33)
    ends = odesim.ensemble(
        MODEL, zipped={"eta": etas}, initial={"p": 0.6, "s": 0.36}, sizes={"n": 1}, span=(0, 2000), save=2, method="rodas5p", rtol=1e-8,
        atol=1e-12,
    )  # fmt: skip
    p, s = edge()
    return xr.Dataset(
        {
            "p": (("time", "start"), run.y["p"]),
            "edge_p": ("edge", p),
            "edge_s": ("edge", s),
            "stable_p": ("upper", found["p"].values[stable, 0]),
            "stable_eta": ("upper", found["eta"].values[stable]),
            "unstable_p": ("lower", found["p"].values[~stable, 0]),
            "unstable_eta": ("lower", found["eta"].values[~stable]),
            "fold": ("special", found["special_eta"].values),
            "end": ("eta", ends["p"].values[:, -1, 0]),
            "trained": ("decay", [trained(decay) for decay in DECAYS]),
        },
        coords={"decay": list(DECAYS), "time": times, "start": list(STARTS), "eta": etas},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels in a row; it computes only the arrows."""
    with picture("Weight decay and the start decide whether a mode collapses", 58.0, width=160.0) as figure:
        left, middle, right = figure.subplots(1, 3)
        for p0, color in zip(ds.start.values, ordered_colors(len(ds.start)), strict=True):
            left.plot(ds.time, ds.p.sel(start=p0), color=color, label=f"{p0:g}")
        for level, name in ((HIGH, "p₊"), (LOW, "p₋")):
            left.axhline(level, color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
            left.text(151, level, name, va="center", color=INK)
        left.set(xlabel="t", ylabel="p", title=f"η = {ETA:g}", xlim=(0, 150), ylim=(0, 0.95))
        left.legend(title="p(0)", loc="center right", title_fontsize=6)
        p, s = np.meshgrid(np.linspace(-0.6, 1.2, 19), np.linspace(0.02, 1.1, 13))
        u, v = slopes(p, s)
        size = np.hypot(u, v)
        middle.quiver(p, s, u / size, v / size, color=FAINT, width=0.004, scale=28, headwidth=4)
        along = np.linspace(-0.6, 1.05, 100)
        middle.plot(along, along**2, color=INK, ls="--", lw=0.8)
        middle.plot(ds.edge_p, ds.edge_s, color=CATEGORIES[1])
        middle.plot([HIGH, 0], [HIGH**2, 0], "o", color=CATEGORIES[0], ms=3.5)
        middle.plot([LOW], [LOW**2], "o", color=CATEGORIES[1], mfc="white", ms=3.5)
        middle.set(xlabel="p", ylabel="s", title="collapsed and learned", xlim=(-0.6, 1.2), ylim=(-0.03, 1.1))
        right.plot(ds.stable_eta, ds.stable_p, color=CATEGORIES[0], label="stable")
        right.plot(ds.unstable_eta, ds.unstable_p, color=CATEGORIES[0], ls="--", lw=0.8, label="unstable")
        right.plot(ds.eta, ds.end, "o", color=INK, ms=2.5, label="runs from p = 0.6")
        right.plot(ds.decay, ds.trained, "x", color=CATEGORIES[1], ms=4, label="trained")
        right.axvline(FOLD, color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
        right.set(xlabel="weight decay η", ylabel="p in the end", title="fold at 1/(4 (1 + σ²))", xlim=(0, 0.29), ylim=(-0.03, 1.05))
        right.legend(loc="center left", bbox_to_anchor=(0.02, 0.47))
        few_ticks(left, middle, right)
        letter_panels(left, middle, right)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """The fold, ends of runs, the solution on the parabola, and a point of the edge by runs on both sides of it."""
    yield Feature("weight decay at the fold", float(ds.fold[0]), FOLD, 1e-9, THEORY)
    for t in (20.0, 60.0, 150.0):
        want = modes_at(t, STARTS, {"eta": ETA, "sigma2": SIGMA2})
        yield Feature(f"p at t = {t:g}, worst", float(np.abs(ds.p.sel(time=t) - want).max()), 0.0, 1e-6, THEORY)
    for eta in ds.eta.values[[0, len(ds.eta) // 2, -1]]:
        want = max(0.0, rest_points(eta, SIGMA2)[1].real) if eta < FOLD else 0.0
        yield Feature(f"p in the end, eta = {eta:.4g}", float(ds.end.sel(eta=eta)), want, 1e-6, THEORY)
    for decay in DECAYS:
        want = rest_points(decay, SIGMA2)[1].real if decay < FOLD else 0.0
        # four standard errors of twelve modes, .0037 each, and a part of the rate, .01
        yield Feature(f"p of trained networks, eta = {decay:g}", float(ds.trained.sel(decay=decay)), want, 6e-3, THEORY)
    for p, learned in ((0.01, True), (0.02, False)):  # s = .02 and .001: above and below the edge, though p < p-
        s = 0.02 if learned else 0.001
        at = float(np.interp(-p, -ds.edge_p.values[ds.edge_p.values < 0.045], ds.edge_s.values[ds.edge_p.values < 0.045]))
        yield Feature(f"(p, s) = ({p:g}, {s:g}) above the edge", float(s > at), float(learned), 0.0, THEORY)
