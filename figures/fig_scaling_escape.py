"""Why learning waits at the start: the overlap with one direction in many dimensions, for four information exponents.

Stands beside the theorems of benarous2021online. a, overlap against time from d^(-1/2), d = 1e4, in units of the time to 1/2; b, time to
1/2 against d for k = 1 to 4, with the laws ln(d)/4, d^(1/2)/3 and d/8 (dashed); c, phase retrieval, k = 2, by online SGD on the sphere,
d = 20, step .001, from .2: mean of 400 runs with the middle 80 %, and the flow.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.models.scaling.single_index import time_to
from odesim.plot.figures import SCRIPT, THEORY, Feature
from odesim.plot.style import CATEGORIES, INK, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "why plateaus?"
MODEL, EXPONENTS = "scaling.single_index", (1, 2, 3, 4)
RECORDED = {2: (0.8741268904, 3.1792243173), 3: (2.8163235989, 332.8494353813), 4: (12.4370634, 125001.0896)}
"""k -> times for d = 1e2 and 1e6 by another integrator's events."""
FLOW = {0.5: 0.4852, 1.0: 0.8335, 1.5: 0.9715}
"""t -> m of k = 2 from .2."""
RUNS, STEP, DIMENSION = 400, 1e-3, 20


def time_of(k: int, d: float) -> float:
    """The time to 1/2, from the event of a run."""
    end = 1.01 * time_to(0.5, d**-0.5, k)
    run = odesim.integrate(MODEL, params={"k": k, "d": d}, span=(0, end), save=2, rtol=1e-9, atol=1e-12)
    return float(run.events["half way"][0]["t"])


def spherical(times: np.ndarray) -> np.ndarray:
    """|m| (time, run) of online SGD on the correlation loss, y = (w*.x)^2 - 1."""
    rng = np.random.default_rng(6)
    w = np.zeros((RUNS, DIMENSION))
    w[:, 0], w[:, 1] = 0.2, np.sqrt(0.96)
    seen, steps = [np.abs(w[:, 0])], np.round(times / STEP).astype(int)
    for n in range(1, steps[-1] + 1):
        x = rng.normal(size=w.shape)
        push = ((x[:, 0] ** 2 - 1) * (w * x).sum(axis=1))[:, None] * x
        w += STEP * (push - (push * w).sum(axis=1)[:, None] * w)
        w /= np.linalg.norm(w, axis=1)[:, None]
        if n in steps:
            seen.append(np.abs(w[:, 0]))
    return np.array(seen)


def data(fast: bool) -> xr.Dataset:
    """m (k, share of the time), times (k, d), SGD (stat, time) and flow (time,); fast: 5 values of d, not 13."""
    d = np.logspace(2, 6, 5 if fast else 13)
    share, t = np.linspace(0, 1.3, 131), np.linspace(0, 1.5, 31)
    curves = []
    for k in EXPONENTS:
        half = time_to(0.5, 1e-2, k)
        run = odesim.integrate(MODEL, params={"k": k, "d": 1e4}, span=(0, 1.3 * half), save=share * half, rtol=1e-9, atol=1e-12)
        curves.append(run.y["m"])
    sgd = spherical(t)
    flow = odesim.integrate(MODEL, params={"k": 2, "d": 25}, span=(0, 1.5), save=t, rtol=1e-9, atol=1e-12).y["m"]
    return xr.Dataset(
        {
            "m": (("k", "share"), curves),
            "time_to": (("k", "d"), [[time_of(k, x) for x in d] for k in EXPONENTS]),
            "sgd": (("stat", "t"), [sgd.mean(axis=1), *np.quantile(sgd, [0.1, 0.9], axis=1), sgd.std(axis=1) / RUNS**0.5]),
            "flow": ("t", flow),
        },
        coords={"k": list(EXPONENTS), "share": share, "d": d, "t": t, "stat": ["mean", "low", "high", "error"]},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels; it computes only the laws."""
    with picture("Escape from the equator takes the time of the information exponent", 56.0, width=160.0) as figure:
        left, middle, right = figure.subplots(1, 3)
        for n, k in enumerate(ds.k.values):
            left.plot(ds.share, ds.m.sel(k=k), color=CATEGORIES[n], label=f"k = {k}")
            middle.plot(ds.d, ds.time_to.sel(k=k), "os^D"[n], color=CATEGORIES[n], ms=2.8, label=f"k = {k}")
        left.set(xlabel="t / time to 1/2", ylabel="overlap m", title="d = 10⁴", xlim=(0, 1.3), ylim=(0, 1.02))
        left.legend(loc="upper left")
        fine = np.logspace(2, 6, 60)
        for law in (np.log(fine) / 4, fine**0.5 / 3, fine / 8):
            middle.plot(fine, law, color=INK, lw=0.6, ls="--")
        middle.set(xscale="log", yscale="log", xlabel="dimension d", ylabel="time to 1/2", title="laws dashed", ylim=(0.2, 1e6))
        middle.legend(loc="upper left")
        right.fill_between(
            ds.t, ds.sgd.sel(stat="low"), ds.sgd.sel(stat="high"), color=CATEGORIES[1], alpha=0.2, lw=0, label="80 % of runs"
        )
        right.plot(ds.t, ds.sgd.sel(stat="mean"), color=CATEGORIES[1], label="SGD, mean")
        right.plot(ds.t, ds.flow, color=INK, ls="--", lw=0.8, label="flow")
        right.set(xlabel="steps × learning rate", ylabel="overlap m", title="k = 2, d = 20", xlim=(0, 1.5), ylim=(0, 1.02))
        right.legend(loc="lower right")
        few_ticks(left, right)
        few_log_ticks(middle)
        letter_panels(left, middle, right)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Recorded times, growth with d, and SGD below the flow by less than 5 %, the order of step times dimension."""
    for k, wanted in RECORDED.items():
        for d, want in zip((1e2, 1e6), wanted, strict=True):
            found = float(ds.time_to.sel(k=k).sel(d=d, method="nearest"))
            yield Feature(f"time to 1/2 over the one recorded, k = {k}, d = {d:g}", found / want, 1.0, 1e-6, THEORY)
    yield Feature("time to 1/2, k = 1, d = 1e6", float(ds.time_to.sel(k=1)[-1]), float(np.arctanh(0.5) - np.arctanh(1e-3)), 1e-6, THEORY)
    for t, want in FLOW.items():
        yield Feature(f"flow at t = {t:g}", float(ds.flow.sel(t=t, method="nearest")), want, 5e-5, THEORY)
        mean = float(ds.sgd.sel(stat="mean").sel(t=t, method="nearest"))
        yield Feature(f"SGD over the flow at t = {t:g}", mean / want, 0.97, 0.04, SCRIPT)
