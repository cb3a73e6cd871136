"""Attention pulls tokens together: a sphere on its way to one cluster, clusters on a circle, and one equation in many dimensions.

Stands beside the pictures of clustering of geshkovski2023mathematical: a to d, 64 tokens on a sphere, beta = 1 (the far half is pale); e
and f, angles of 32 tokens on a circle at two temperatures; g to i, their inner products at three times: soon a few values; j, inner
products of 32 random tokens in 1024 dimensions (mean, and range of all pairs of twenty draws) beside the equation for equal products.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import odesim
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, FAINT, letter_panels, picture

QUESTION = "why low rank?"
FINE = {"rtol": 1e-8, "atol": 1e-10}
SNAPSHOTS, ANGLE_TIMES, TIMES, AT = (0.0, 2.0, 5.0, 15.0), np.linspace(0, 30, 181), np.linspace(0, 10, 51), (2.5, 18.0, 30.0)
COLD, WARM, HIGH, PAIRS = 9.0, 1.0, (1.0, 4.0), np.triu_indices(32, 1)
BINS = np.linspace(-1, 1.0001, 41)
CLOSE = {COLD: (0.1452, 0.3730, 0.3730), WARM: (0.1089, 1.0, 1.0)}  # share of pairs with a product above .99 at AT, by scipy's DOP853


def in_one_turn(theta: np.ndarray) -> np.ndarray:
    """Angles (t, i), each moved by full turns so that it ends next to the first one."""
    return np.asarray(theta - 2 * np.pi * np.round((theta[-1] - theta[-1, 0]) / (2 * np.pi)))


def data(fast: bool) -> xr.Dataset:
    """x (snapshot, token, axis); theta (beta, t, i); mean, low, high (beta_high, time) and gamma. fast: one draw, not 20."""
    sphere = odesim.integrate("particles.sphere", params={"beta": 1}, sizes={"n": 64, "d": 3}, span=(0, 15), save=list(SNAPSHOTS), **FINE)
    start = {"theta": np.sort(np.random.default_rng(4).uniform(-np.pi, np.pi, 32))}
    given = {"initial": start, "sizes": {"n": 32}, "span": (0, ANGLE_TIMES[-1]), "save": ANGLE_TIMES, **FINE}
    circles = [in_one_turn(odesim.integrate("particles.circle", params={"beta": beta}, **given).y["theta"]) for beta in (COLD, WARM)]
    mean, low, high, gamma = [], [], [], []
    for beta in HIGH:
        products = []
        for seed in range(1 if fast else 20):
            x = np.random.default_rng(seed).standard_normal((32, 1024))
            run = odesim.integrate("particles.sphere", params={"beta": beta, "x0": x}, span=(0, 10), save=TIMES, rtol=1e-6, atol=1e-8)
            products.append(run.observables["product"][:, PAIRS[0], PAIRS[1]])
        every = np.concatenate(products, axis=1)
        mean.append(every.mean(axis=1))
        low.append(every.min(axis=1))
        high.append(every.max(axis=1))
        gamma.append(odesim.integrate("particles.gamma", params={"beta": beta, "n": 32}, span=(0, 10), save=TIMES, **FINE).y["gamma"])
    bands = {
        name: (("beta_high", "time"), np.array(values))
        for name, values in zip(("mean", "low", "high", "gamma"), (mean, low, high, gamma), strict=True)
    }
    return xr.Dataset(
        {"x": (("snapshot", "token", "axis"), sphere.y["x"]), "theta": (("beta", "t", "i"), np.array(circles)), **bands},
        coords={"snapshot": list(SNAPSHOTS), "beta": [COLD, WARM], "t": ANGLE_TIMES, "beta_high": list(HIGH), "time": TIMES},
        attrs={**FINE, "draws": 1 if fast else 20},
    )


def products(ds: xr.Dataset, beta: float, t: float) -> np.ndarray:
    """Inner products (pair) of the tokens on the circle at time t."""
    theta = ds.theta.sel(beta=beta).sel(t=t, method="nearest").values
    return np.asarray(np.cos(theta[:, None] - theta)[PAIRS])


def draw_sphere(axes: Axes, x: np.ndarray) -> None:
    """Tokens (n, 3) seen from above; those of the lower half are pale."""
    turn = np.linspace(0, 2 * np.pi, 200)
    axes.plot(np.cos(turn), np.sin(turn), color=FAINT, lw=0.6)
    for half, color in ((x[:, 2] < 0, FAINT), (x[:, 2] >= 0, CATEGORIES[0])):
        axes.scatter(x[half, 0], x[half, 1], color=color, s=6, alpha=0.8)
    axes.set_aspect("equal")
    axes.axis("off")


def draw(ds: xr.Dataset) -> Figure:
    """Ten panels; it computes only inner products of angles."""
    with picture("Attention pulls tokens together", 120.0, width=170.0) as figure:
        panels = figure.subplot_mosaic("abcd;eeff;ghij")
        for name, t in zip("abcd", ds.snapshot.values, strict=True):
            draw_sphere(panels[name], ds.x.sel(snapshot=t).values)
            panels[name].set_title(f"t = {t:g}")
        for j, (name, beta) in enumerate(zip("ef", ds.beta.values, strict=True)):
            panels[name].plot(ds.t, ds.theta.sel(beta=beta), color=CATEGORIES[j], lw=0.5)
            panels[name].set(xlabel="t", ylabel="angle", title=f"β = {beta:g}", xlim=(0, ds.t[-1]))
        for name, t in zip("ghi", AT, strict=True):
            for j, beta in enumerate(ds.beta.values):
                values = products(ds, beta, t)
                weights = np.full(len(values), 1 / len(values))
                panels[name].hist(values, bins=BINS, weights=weights, color=CATEGORIES[j], alpha=0.6, label=f"β = {beta:g}")
            panels[name].set(xlabel="inner product", title=f"t = {t:g}", yscale="log", ylim=(1e-3, 1.5), xlim=(-1.05, 1.05))
        panels["g"].set_ylabel("share of pairs")
        panels["h"].legend(loc="upper center")
        many = panels["j"]
        for j, beta in enumerate(ds.beta_high.values):
            band = ds.sel(beta_high=beta)
            many.fill_between(ds.time, band["low"], band["high"], color=CATEGORIES[2 + j], alpha=0.25, lw=0)
            many.plot(ds.time, band["mean"], color=CATEGORIES[2 + j], label=f"β = {beta:g}")
            many.plot(ds.time, band["gamma"], color=FAINT, lw=0.8, ls=(0, (1, 1.5)), label="equal products" if j else None)
        many.set(xlabel="t", ylabel="inner product", xlim=(0, ds.time[-1]))
        many.legend(loc="lower right")
        letter_panels(*panels.values())
    return figure


def groups(ds: xr.Dataset, beta: float, t: float) -> int:
    """How many clusters: pieces of the graph of pairs with an inner product above .99."""
    close = np.eye(32)
    close[PAIRS] = products(ds, beta, t) > 0.99
    reach = np.linalg.matrix_power(close + close.T, 32) > 0
    return len({tuple(row) for row in reach})


def bins(values: np.ndarray) -> int:
    """How many bins of the histogram are not empty."""
    return int((np.histogram(values, BINS)[0] > 0).sum())


def reach(gamma: np.ndarray, beta: float, draws: int) -> float:
    """How far the mean of random products may be from gamma (time), which started from 0: the largest along the run.

    Products start with a deviation of 1/32. Three standard errors of their mean move a solution by gamma' / gamma'(0) of them, and their
    variance makes exp(beta product) larger, and the flow faster, by a share of beta^2 / (2 1024).
    """
    slope = np.gradient(gamma, TIMES, edge_order=2)
    error = 3 / 32 / (len(PAIRS[0]) * draws) ** 0.5
    return float((slope * (error / slope[0] + beta**2 / 2048 * TIMES)).max())


def expected(ds: xr.Dataset) -> list[Feature]:
    """One cluster at the end, several on a cold circle, tokens that stay on the sphere, and products beside one equation."""
    end = ds.x.values[-1]
    apart = np.abs(ds["mean"] - ds["gamma"])
    return [
        Feature("largest ||x|^2 - 1|", float(np.abs((ds.x.values**2).sum(axis=2) - 1).max()), 0.0, 1e-6),
        Feature("least inner product of 64 tokens at t = 15", float((end @ end.T).min()), 1.0, 1e-3),
        # the wave of four crests grows fastest, those of three and five within 16 % of it; they last to t = 30
        *(
            Feature(f"clusters on the circle at beta = {beta:g}, t = {t:g}", float(groups(ds, beta, t)), want, off)
            for beta, want, off in ((COLD, 4.0, 1.0), (WARM, 1.0, 0.0))
            for t in AT[1:]
        ),
        *(
            # a pair is 1/496
            Feature(f"share of close pairs at beta = {beta:g}, t = {t:g}", float((products(ds, beta, t) > 0.99).mean()), want, 1e-3, SCRIPT)
            for beta, row in CLOSE.items()
            for t, want in zip(AT, row, strict=True)
        ),
        *(
            # before there are clusters, products have all values; k clusters have at most k (k - 1) / 2 of them, and 1
            Feature(f"bins of products, of 40, at beta = {beta:g}, t = {t:g}", float(bins(products(ds, beta, t))), want, off)
            for beta, row in ((COLD, ((40.0, 2.0), (4.0, 3.0), (4.0, 3.0))), (WARM, ((40.0, 2.0), (1.0, 0.0), (1.0, 0.0))))
            for t, (want, off) in zip(AT, row, strict=True)
        ),
        *(
            Feature(
                f"largest distance of the mean product from the equation, beta = {beta:g}",
                float(apart.sel(beta_high=beta).max()),
                0.0,
                reach(ds.gamma.sel(beta_high=beta).values, beta, ds.attrs["draws"]),
            )
            for beta in HIGH
        ),
        Feature("least product in 1024 dimensions at t = 10", float(ds["low"].values[:, -1].min()), 1.0, 0.002),
    ]
