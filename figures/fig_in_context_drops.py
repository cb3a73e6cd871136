"""Regression in context is learned in one drop or in one drop a component: losses, and how long the first drop is waited for.

Stands beside the loss curves of zhang2025training, merged and separate keys and queries. a, the mean squared error of five heads from
normal weights of .005, variances of inputs .4, .3, .2, .1, prompts of 31 pairs; lines: the loss with 0 to 4 components learned. b, when
half of the strongest component is learned, against the size of the weights at the start: a power where keys and queries are separate, a
logarithm where they are one matrix.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, FAINT, MARKERS, few_log_ticks, letter_panels, picture

QUESTION = "why plateaus?"
LAM, N, SIZE, END = np.array([0.4, 0.3, 0.2, 0.1]), 31, 5e-3, 4e4
GAMMA = (1 + 1 / N) * LAM + LAM.sum() / N
LEVELS = (1.0, 0.6405797101, 0.3773721630, 0.2098045954, 0.1359950716)
"""tr - sum of lam^2 / Gamma over the components learned, by an independent script."""
STARTS = 10.0 ** -np.arange(1.0, 4.01, 0.5)
# all runs look for the same event, so that one right-hand side of each model is compiled
FINE = {"rtol": 1e-9, "atol": 1e-13, "events": "first: share[0] - 0.5"}


def losses(model: str, times: np.ndarray) -> np.ndarray:
    """The loss (time,) of five heads."""
    rng = np.random.default_rng(1)
    shapes = {"v": (5,), "U": (5, 4, 4)} if model == "merged" else {"v": (5,), "k": (5, 4), "q": (5, 4)}
    start = {name: SIZE * rng.normal(size=shape) for name, shape in shapes.items()}
    run = odesim.integrate(f"in_context.{model}", sizes={"H": 5}, initial=start, span=(0, times[-1]), save=np.append(0, times), **FINE)
    return np.asarray(run.observables["loss"][1:])


def wait(model: str, start: float) -> float:
    """When W_11 Gamma_1 is 1/2: separate from v = |k| = |q| = start, merged from v = start and U = start I / 2."""
    given = {"params": {"a0": start} if model == "separate" else {"s0": start**2}, "save": 2}
    run = odesim.integrate(f"in_context.{model}", span=(0, 8 / start if model == "separate" else 100), **given, **FINE)
    return float(run.events["first"][0]["t"])


def data(fast: bool) -> xr.Dataset:
    """loss (model, time) and wait (model, start). fast: 200 times, not 800."""
    times, models = np.geomspace(1, END, 200 if fast else 800), ["merged", "separate"]
    return xr.Dataset(
        {
            "loss": (("model", "time"), [losses(model, times) for model in models]),
            "wait": (("model", "start"), [[wait(model, start) for start in STARTS] for model in models]),
        },
        coords={"model": models, "time": times, "start": STARTS},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Two panels; it computes nothing."""
    with picture("One drop of the loss, or one a component", 60.0, width=165.0) as figure:
        left, right = figure.subplots(1, 2)
        for level in LEVELS:
            left.axhline(level, color=FAINT, lw=0.6)
        names = {"merged": "key and query merged", "separate": "separate"}
        for color, marker, model in zip(CATEGORIES, MARKERS, ds.model.values, strict=False):
            left.plot(ds.time, ds.loss.sel(model=model), color=color, label=names[model])
            right.plot(ds.start, ds.wait.sel(model=model), color=color, marker=marker, ms=3.5, label=names[model])
        left.set(xscale="log", xlabel="t", ylabel="mean squared error", ylim=(0, 1.3), xlim=(1, float(ds.time[-1])))
        right.set(xscale="log", yscale="log", xlabel="weights at the start", ylabel="t at half of component 1")
        right.invert_xaxis()
        left.legend(loc="upper right")
        right.legend(loc="upper left")
        few_log_ticks(right)
        letter_panels(left, right)
    return figure


def stays(ds: xr.Dataset, model: str) -> list[float]:
    """How far ln t goes on near each of LEVELS but the first and the last."""
    step = float(np.log(ds.time[1] / ds.time[0]))
    return [float((np.abs(ds.loss.sel(model=model) - level) < 2e-3).sum()) * step for level in LEVELS[1:-1]]


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Plateaus of separate weights at the three levels between, none of merged ones; the last level; waits as powers and logarithms."""
    for count, (one, other) in enumerate(zip(stays(ds, "separate"), stays(ds, "merged"), strict=True), 1):
        yield Feature(f"with {count} learned separate weights rest for .2 in ln t and more", float(one > 0.2), 1.0, 0.0, THEORY)
        yield Feature(f"merged weights pass the loss of {count} in less than .1", float(other < 0.1), 1.0, 0.0, THEORY)
    for model in ds.model.values:
        drop = float(ds.loss.sel(model=model)[-1])
        yield Feature(f"loss in the end, {model}", drop, LEVELS[-1], 2e-3, THEORY)
    waits = ds.wait.sel(model="separate").values
    slope = float(np.polyfit(np.log(STARTS[-3:]), np.log(waits[-3:]), 1)[0])
    yield Feature("power of the start, separate weights, from .001 on", slope, -1.0, 2e-3, THEORY)
    merged = ds.wait.sel(model="merged").values
    # near 0 the flow is linear: v' = <2 lam^2, U>, U' = 2 lam^2 v
    rate = 2 * float((LAM**4).sum() ** 0.5)
    grown = float(np.polyfit(np.log(1 / STARTS[-3:]), merged[-3:], 1)[0])
    yield Feature("dt / dln(1 / start), merged", grown, 1 / rate, 1e-3, THEORY)
