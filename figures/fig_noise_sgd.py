"""Stochastic gradients of least squares come to rest at a level of noise: SGD, its diffusion, and their exact second moments.

Stands beside Theorem 1 of li2017stochastic: three weights, variances of inputs 2, 1, .3, labels with noise of variance .25. a, the risk of
one sample a step, eta = .05: exact mean of SGD, exact mean of the diffusion, and mean and middle 90 % of members of the diffusion; b, the
variance of each weight in the end, over eta: of the diffusion exactly (lines), of its members (dots), of SGD exactly (dashed).
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.linalg import expm, solve

import odesim
from odesim.base.errors import counted
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, INK, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "when does it fail?"
LAM, START, S2, ETA = np.array([2.0, 1.0, 0.3]), np.array([1.0, -1.0, 2.0]), 0.25, 0.05
ETAS = 0.0125 * 2.0 ** np.arange(5)
FINE = 0.0125 * 2.0 ** (np.arange(33) / 8)
TIMES = np.linspace(0, 30, 121)
RECORDED = {"diffusion": (0.00719663, 0.00701210, 0.00688846), "SGD": (0.00762695, 0.00722553, 0.00696878)}
"""Variances of the weights in the end, eta = .05, by an independent script."""


def rates(eta: float, steps: bool) -> tuple[np.ndarray, np.ndarray]:
    """(A (3, 3), b (3,)) of c' = A c + b, c = E delta^2; of SGD, the difference of a step over eta."""
    A = eta * (np.outer(LAM, LAM) + np.diag(LAM**2)) - 2 * np.diag(LAM) + steps * eta * np.diag(LAM**2)
    return A, eta * S2 * LAM


def moments(eta: float, steps: bool) -> np.ndarray:
    """c (time, 3) at TIMES: of the diffusion, or of SGD after as many whole steps."""
    A, b = rates(eta, steps)
    rest = solve(A, -b)
    if steps:
        return np.array([rest + np.linalg.matrix_power(np.eye(3) + eta * A, round(t / eta)) @ (START**2 - rest) for t in TIMES])
    return np.array([rest + expm(t * A) @ (START**2 - rest) for t in TIMES])


def members(eta: float, count: int) -> xr.Dataset:
    """Mean, variance and quantiles over members of the diffusion, in steps of .01."""
    return odesim.ensemble(
        "noise.sgd_least_squares", params={"lam": LAM, "s2": S2, "eta": eta}, initial={"delta": START}, span=(0, TIMES[-1]), save=TIMES,
        step=0.01, members=count, observe="risk", reduce=("mean", "var", "quantiles"),
    )  # fmt: skip


def data(fast: bool) -> xr.Dataset:
    """Risks (time,), and variances in the end over eta, exact (weight, eta), of members (weight, run). fast: 4,000 members, not 40,000."""
    count = 4_000 if fast else 40_000
    runs = {eta: members(eta, count) for eta in ETAS}
    run = runs[ETA]
    stationary = [[solve(A, -b) for A, b in (rates(eta, steps) for eta in FINE)] for steps in (False, True)]
    return xr.Dataset(
        {
            "risk": (("law", "time"), [moments(ETA, steps) @ LAM / 2 for steps in (False, True)]),
            "mean": ("time", run.risk_mean.values),
            "error": ("time", np.sqrt(run.risk_var.values / count)),
            "band": (("edge", "time"), run.risk_quantiles.sel(quantile=[0.05, 0.95]).values),
            "level": (("law", "weight", "eta"), np.swapaxes(stationary, 1, 2) / FINE),
            "seen": (("weight", "run"), np.transpose([r.delta_var.values[-1] for r in runs.values()]) / ETAS),
        },
        coords={"law": ["diffusion", "SGD"], "time": TIMES, "eta": FINE, "run": ETAS, "edge": [0.05, 0.95], "weight": [0, 1, 2]},
        attrs={"members": count, "s2": S2, "lam": LAM},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Two panels; it computes nothing."""
    with picture("Stochastic gradients rest at a level of noise", 58.0, width=160.0) as figure:
        left, right = figure.subplots(1, 2)
        left.fill_between(ds.time, *ds.band.values, color=CATEGORIES[0], alpha=0.2, lw=0, label="90 % of members")
        left.plot(ds.time, ds["mean"], color=CATEGORIES[0], label=f"mean of {counted(ds.members, 'member')}")
        left.plot(ds.time, ds.risk.sel(law="diffusion"), color=INK, lw=0.8, ls=":", label="diffusion, exact")
        left.plot(ds.time, ds.risk.sel(law="SGD"), color=CATEGORIES[1], lw=0.8, ls="--", label="SGD, exact")
        left.set(yscale="log", xlabel="t = η × steps", ylabel="risk", xlim=(0, 15), title="η = 0.05")
        left.legend(loc="upper right")
        for k, color in enumerate(CATEGORIES[: ds.sizes["weight"]]):
            right.plot(ds.eta, ds.level.sel(law="diffusion", weight=k), color=color, label=f"λ = {ds.lam[k]:g}")
            right.plot(ds.eta, ds.level.sel(law="SGD", weight=k), color=color, ls="--", lw=0.8)
            right.plot(ds.run, ds.seen.sel(weight=k), "o", color=color, ms=3)
        right.set(xscale="log", xlabel="learning rate η", ylabel="variance in the end / η", title="each weight at rest")
        right.plot([], [], color=INK, label="diffusion")
        right.plot([], [], "o", color=INK, ms=3, label="its members")
        right.plot([], [], color=INK, ls="--", lw=0.8, label="SGD")
        right.legend(loc="upper left")
        few_ticks(left)
        few_log_ticks(left)
        right.set_xticks(ETAS, [f"{eta:g}" for eta in ETAS])
        right.minorticks_off()
        letter_panels(left, right)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """The recorded variances; members have the exact moments within four standard errors."""
    for law, row in RECORDED.items():
        for k, want in enumerate(row):
            yield Feature(
                f"variance of weight {k} in the end, {law}", ETA * float(ds.level.sel(law=law, weight=k, eta=ETA)), want, 5e-9, THEORY
            )
    for t in (1.0, 2.0, 5.0, 30.0):
        here = ds.sel(time=t)
        yield Feature(f"mean risk of members, t = {t:g}", float(here["mean"]), float(here.risk.sel(law="diffusion")),
                                4 * float(here.error) + 0.01 * float(here["mean"]), THEORY)  # fmt: skip
    for k in range(ds.sizes["weight"]):
        want = ds.level.sel(law="diffusion", weight=k, eta=ds.run.values).values
        far = np.abs(ds.seen.sel(weight=k).values / want - 1).max()
        bound = 5 * (2 / ds.members) ** 0.5 + 0.01 * LAM[k]  # of nearly Gaussian weights; the step adds .01 lam / 2
        yield Feature(f"variance of weight {k} of members, worst relative error", float(far), 0.0, bound, THEORY)
