"""A predictor comes to the eigenvectors of what it predicts; set by hand it needs no learning; without stop-gradient all dies out.

Stands beside Theorems 2 and 3 and Section 4 of tian2021understanding, sigma2 = .1, eta = .04. a, random matrices that are not symmetric:
asymmetry of W_p, and its commutator with F = W W^T; b, DirectPred from s = .3, .1, .01 and .001: with eps = .1 (lines) all modes are
learned, with eps = 0 (dashed) the last one, which starts below p-, dies; c, |W|^2 with the stop-gradient and without it, and the bound
that the least eigenvalue of H gives (dotted).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.models.self_supervised._parabola import modes_at, rest_points
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, FAINT, INK, few_log_ticks, few_ticks, letter_panels, ordered_colors, picture

QUESTION = "why low rank?"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-14, "backend": "numpy"}
S0 = (0.3, 0.1, 0.01, 0.001)
HIGH = rest_points(0.04, 0.1)[1].real


def data(fast: bool) -> xr.Dataset:
    """Asymmetry, commutator (time,), s (eps, time, mode), |W|^2 (loss, time), bound (time,). fast: the same."""
    times = np.linspace(0, 60, 241)
    matrices = odesim.integrate("self_supervised.simsiam", span=(0, 60), save=times, **FINE)
    gradient = odesim.integrate("self_supervised.no_stop", span=(0, 60), save=times, **FINE)
    least = [
        np.linalg.eigvalsh(0.1 * (P.T @ P + np.eye(3)) + (P - np.eye(3)).T @ (P - np.eye(3)) + 0.04 * np.eye(3))[0]
        for P in gradient.y["W_p"]
    ]
    set_by_hand = [
        odesim.integrate(
            "self_supervised.direct_pred", params={"eps": eps}, initial={"w": np.sqrt(S0)}, sizes={"n": 4}, span=(0, 60), save=times, **FINE
        ).observables["s"]
        for eps in (0.1, 0.0)
    ]
    size = [np.trace(matrices.observables["F"], axis1=1, axis2=2), gradient.observables["size"]]
    return xr.Dataset(
        {
            "asymmetry": ("time", matrices.observables["asymmetry"]),
            "commutator": ("time", matrices.observables["commutator"]),
            "eigenvalues": ("mode3", np.linalg.eigvalsh(matrices.final["W_p"])),
            "s": (("eps", "time", "mode"), set_by_hand),
            "size": (("loss", "time"), size),
            "bound": ("time", size[1][0] * np.exp(-2 * min(least) * times)),
        },
        coords={"time": times, "eps": [0.1, 0.0], "mode": list(S0), "loss": ["stop-gradient", "none"]},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels in a row; it computes nothing."""
    with picture("Predictor and stop-gradient keep the representation", 56.0, width=160.0) as figure:
        left, middle, right = figure.subplots(1, 3)
        left.plot(ds.time, ds.asymmetry, color=CATEGORIES[0], label=r"$|W_p - W_p^\top|$")
        left.plot(ds.time, ds.commutator, color=CATEGORIES[1], label="$|F W_p - W_p F|$")
        left.set(yscale="log", xlabel="t", ylabel="norm", title="random matrices", xlim=(0, 60), ylim=(1e-15, 2))
        left.legend(loc="upper right")
        for s0, color in zip(ds.mode.values, ordered_colors(len(ds.mode)), strict=True):
            middle.plot(ds.time, ds.s.sel(eps=0.1, mode=s0), color=color, label=f"{s0:g}")
            middle.plot(ds.time, ds.s.sel(eps=0.0, mode=s0), color=color, ls="--", lw=0.8)
        middle.plot([], [], color=INK, ls="--", lw=0.8, label="ε = 0")
        middle.set(yscale="log", xlabel="t", ylabel="s", title="DirectPred, ε = 0.1", xlim=(0, 60))
        middle.legend(title="s(0)", loc="lower right", title_fontsize=6, bbox_to_anchor=(1.0, 0.12))
        right.plot(ds.time, ds["size"].sel(loss="stop-gradient"), color=CATEGORIES[0], label="with stop-gradient")
        right.plot(ds.time, ds["size"].sel(loss="none"), color=CATEGORIES[1], label="without")
        right.plot(ds.time, ds.bound, color=FAINT, ls=(0, (1, 1.5)), label="bound")
        right.set(yscale="log", xlabel="t", ylabel="|W|²", title="gradient of the target", xlim=(0, 60))
        right.legend(loc="lower left")
        few_ticks(left, middle, right)
        few_log_ticks(left, middle, right)
        letter_panels(left, middle, right)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Aligned and learned in the end; modes of DirectPred where they rest or by the solution; decay below the bound."""
    for name in ("asymmetry", "commutator"):
        yield Feature(f"{name} at t = 60", float(ds[name][-1]), 0.0, 1e-10, THEORY)
    yield Feature("|W|^2 in the end, with stop-gradient", float(ds["size"][0, -1]), 3 * HIGH**2, 0.05, THEORY)
    want = modes_at(60.0, np.sqrt(S0), {"eta": 0.04, "sigma2": 0.1}) ** 2
    for s0, s in zip(S0, want, strict=True):
        found = float(ds.s.sel(eps=0.0, mode=s0)[-1])
        yield Feature(f"s at t = 60 from {s0:g}, eps = 0", found, float(s), 1e-7, THEORY)
        found = float(ds.s.sel(eps=0.1, mode=s0)[-1])
        yield Feature(f"s at t = 60 from {s0:g}, eps = .1", found, (HIGH / 1.1) ** 2, 1e-3, THEORY)
    yield Feature("|W|^2 over its bound, largest", float((ds["size"][1] / ds.bound).max()), 1.0, 1e-9, THEORY)
