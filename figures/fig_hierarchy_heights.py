"""Tokens of a latent tree by the height of their common ancestor: how often together, which is learned first, what depth does.

Stands beside Section 5 and Theorem 5 of tian2023joma. a, P[l|m] against height: exact (lines), sampled from a tree of ten classes
(rings; the root, H = L, follows another law), and 1 - H/L, which is left at first order in 1 - rho. b, weights v_H of one attention
layer over a tree of depth 5: near tokens first. c, its entropy: attention is sparse, then spreads. d, when the nearest and the farthest
height are nine tenths there, against the depth: with more latent layers the weak association is later by a growing factor.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.labels import end_labels, place_labels
from odesim.plot.style import CATEGORIES, DASHES, FAINT, INK, few_ticks, letter_panels, new_figure, ordered_colors, project_style

QUESTION = "what is learned first?"
CLASSES, SMALL, LARGE, KAPPA = 10, 4, 8, 3.0
EPS = (0.1, 0.01)
BEYOND = {0.1: (-0.0418, -0.0519, -0.0364, 0.0, 0.0532, 0.1200, 0.1979), 0.01: (-0.0038, -0.0050, -0.0037, 0.0, 0.0062, 0.0147, 0.0255)}
REACHED = {2: (2.3, 2.3), 3: (4.8, 11.2), 4: (8.85, 28.85), 5: (16.2, 59.3), 6: (30.1, 112.0), 8: (108.6, 380.8)}
"""The times of the nearest and the farthest height, by depth."""
TIMES, CHUNK = np.linspace(0, 200, 401), 50_000
FINE = {"rtol": 1e-10, "atol": 1e-13}


def sampled(chunks: int) -> np.ndarray:
    """P[l|m] (chunk, H), H = 1..L, over all pairs of leaves of that height, in chunks of CHUNK sequences.

    The root has a child for each class, which is 1 for it alone; below, a node has two children, each as it is but for 1 in 20.
    """
    leaf = np.arange(CLASSES * 2 ** (SMALL - 1))
    heights = SMALL - sum((leaf[:, None] >> d == leaf >> d).astype(int) for d in range(SMALL))
    rng, rows = np.random.default_rng(0), []
    for _ in range(chunks):
        classes = rng.choice(CLASSES, CHUNK, p=np.full(CLASSES, 1 / CLASSES))
        nodes = rng.random((CHUNK, CLASSES)) < np.eye(CLASSES)[classes]
        for _depth in range(1, SMALL):
            nodes = np.repeat(nodes, 2, axis=1) ^ (rng.random((CHUNK, 2 * nodes.shape[1])) < (1 - 0.9) / 2)
        leaves = nodes.astype(np.float32)
        both, present = leaves.T @ leaves, leaves.sum(axis=0, dtype=float)
        rows.append([both[heights == H].sum() / np.broadcast_to(present, both.shape)[heights == H].sum() for H in range(1, SMALL + 1)])
    return np.array(rows)


def exactly(L: int, rho: float, rho0: float) -> np.ndarray:
    """P[l|m] (L,) at the heights 1 to L."""
    run = odesim.integrate("hierarchy.occurrence", params={"L": L, "rho": rho, "rho0": rho0}, span=(0, L), save=np.arange(L + 1))
    return np.asarray(run.observables["P"][1:])


def reached(L: int) -> tuple[float, float]:
    """When the nearest and the farthest height have nine tenths of their resting weight."""
    run = odesim.integrate("hierarchy.grouped", sizes={"L": L}, params={"kappa": KAPPA}, span=(0, 500), **FINE)
    times = {event["index"][0]: event["t"] for event in run.events["nine tenths"]}
    return times[0], times[L - 2]


def data(fast: bool) -> xr.Dataset:
    """exact and sampled of the small tree (H), exact of large ones (eps, height), v (t, h) and entropy (t), times (depth, end).

    fast: 2e5 sequences, not 2e6.
    """
    run = odesim.integrate("hierarchy.grouped", params={"kappa": KAPPA}, span=(0, TIMES[-1]), save=TIMES, **FINE)
    samples = sampled(4 if fast else 40)
    return xr.Dataset(
        {
            "exact": ("H", exactly(SMALL, 0.9, 1 - 2 / CLASSES)),
            "sampled": ("H", samples.mean(axis=0)),
            "error": ("H", samples.std(axis=0, ddof=1) / np.sqrt(len(samples))),
            "large": (("eps", "height"), [exactly(LARGE, 1 - eps, 1 - eps)[:-1] for eps in EPS]),
            "first_order": ("height", 1 - np.arange(1, LARGE) / LARGE),
            "v": (("t", "h"), run.y["v"]),
            "entropy": ("t", run.observables["entropy"]),
            "reached": (("depth", "end"), [reached(L) for L in REACHED]),
        },
        coords={
            "H": np.arange(1, SMALL + 1),
            "height": np.arange(1, LARGE),
            "eps": list(EPS),
            "t": TIMES,
            "h": np.arange(1, 5),
            "depth": list(REACHED),
        },
        attrs={"classes": CLASSES, "kappa": KAPPA, "sequences": len(samples) * CHUNK, **FINE},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes nothing."""
    with project_style():
        figure = new_figure(110.0, width=130.0)
        (together, weights), (entropy, deep) = figure.subplots(2, 2)
        together.plot(ds.height, ds.first_order, color=FAINT, lw=0.8, ls=(0, (1, 1.5)), label="1 − H/L, L = 8")
        for j, eps in enumerate(ds.eps.values):
            together.plot(ds.height, ds.large.sel(eps=eps), color=CATEGORIES[j], ls=DASHES[j], label=f"L = 8, ρ = $ρ_0$ = {1 - eps:g}")
        together.plot(ds.H, ds.exact, color=CATEGORIES[2], ls=DASHES[2], label="L = 4, ρ = 0.9, ten classes")
        together.plot(ds.H, ds.sampled, "o", ms=4, mfc="none", color=INK, label="sampled")
        together.set(xlabel="height H of the common ancestor", ylabel="P[l | m]", ylim=(0, 1.28))
        together.legend(loc="upper right", ncol=1)
        for color, column in zip(ordered_colors(ds.sizes["h"]), ds.v.values.T, strict=True):
            weights.plot(ds.t, column, color=color)
        names = end_labels(weights, [f"H = {h}" for h in ds.h.values], list(ds.v.values[-1]))
        weights.set(xlabel="t", ylabel="weight $v_H$", xlim=(0, float(ds.t[-1])), ylim=(0, 2.6))
        entropy.plot(ds.t, ds.entropy, color=CATEGORIES[0])
        entropy.set(xlabel="t", ylabel="entropy of attention", xlim=(0, float(ds.t[-1])))
        for j, label in enumerate(("nearest, H = 1", "farthest, H = L − 1")):
            deep.plot(ds.depth, ds.reached[:, j], "o-" if j == 0 else "s-", color=CATEGORIES[j], label=label)
        deep.set(xlabel="depth L of the tree", ylabel="time to 0.9 of its rest", yscale="log", ylim=(1, 1000))
        deep.legend(loc="upper left")
        for axes in (together, weights, entropy, deep):
            few_ticks(axes, x=7 if axes is together else 4)
        letter_panels(together, weights, entropy, deep)
        figure.suptitle("Near tokens first, far ones later")
        place_labels(figure, [names])
    return figure


def expected(ds: xr.Dataset) -> list[Feature]:
    """The sampled shares, the remainder of 1 - H/L, order and entropy of learning, the times by depth."""
    features = [
        # four standard errors of the mean over chunks, whose own estimate is loose with few of them
        Feature(f"P[l|m] sampled less exact, H = {H}", float(ds.sampled.sel(H=H) - ds.exact.sel(H=H)), 0.0, float(6 * ds.error.sel(H=H)))
        for H in ds.H.values
    ]
    for eps, row in BEYOND.items():
        off = (ds.large.sel(eps=eps) - ds.first_order).values
        features += [
            Feature(f"P - (1 - H/L), eps = {eps:g}, H = {H}", float(x), want, 5.1e-5, SCRIPT)
            for H, (x, want) in enumerate(zip(off, row, strict=True), 1)
        ]
    halves = [float(ds.t[np.argmax(ds.v.values[:, h] >= ds.v.values[-1, h] / 2)]) for h in range(4)]
    features.append(Feature("heights that are half way before a nearer one", float((np.diff(halves) < 0).sum()), 0.0, 0.0))
    S = ds.entropy.values
    features += [
        Feature("entropy at the start: ln 15", float(S[0]), float(np.log(15)), 1e-9),
        Feature("least entropy", float(S.min()), 2.1723, 5.1e-5, SCRIPT),
        Feature("its time", float(ds.t[S.argmin()]), 24.3, 0.5, SCRIPT),  # saved times are .5 apart
        Feature("entropy at t = 200", float(S[-1]), 2.2689, 5e-4, SCRIPT),  # S_inf, not quite reached
    ]
    for L, ends in REACHED.items():
        for k, (name, want) in enumerate(zip(("near", "far"), ends, strict=True)):
            tolerance = 0.05 if L == 4 else 0.1  # they were read off a grid
            features.append(Feature(f"time to .9 of the {name} end, L = {L}", float(ds.reached.sel(depth=L)[k]), want, tolerance, SCRIPT))
    factor = ds.reached[:, 1] / ds.reached[:, 0]
    features.append(Feature("far over near, L = 2", float(factor[0]), 1.0, 1e-12))
    features.append(Feature("far over near, L = 8", float(factor[-1]), 3.5, 0.05, SCRIPT))
    return features
