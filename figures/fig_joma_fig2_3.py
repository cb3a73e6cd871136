"""Attention follows the MLP: its logits stay correlated with those that JoMA's theorem makes of V, and one token wins.

Stands beside Figs. 2 and 3 of tian2023joma: the task joma_gaussian at its defaults, softmax attention, cross-entropy, full batch;
here over 10 seeds, with Gaussian X and with random X. NC sees no scale: the size of the theorem's logits is far off in the end.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odesim.base.errors import counted
from odesim.lab.tasks import load_task
from odesim.lab.training.randomness import INITIAL, generators
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, DASHES, DIVERGING, FAINT, SEQUENTIAL, few_ticks, letter_panels, picture

QUESTION = "why sparse attention?"
TASK = "joma_gaussian"
SEEDS, STEPS = range(10), 2000
SHOWN = 4  # components of the first node
CURVES = ("NC", "NC_first", "NC_second", "entropy", "stable_rank_V")
NAMES = {"NC": "theorem", "NC_first": "first term", "NC_second": "second term"}

# from a script that follows the paper's code: means over ten seeds, and in some rows their range
MEANS: tuple[tuple[str, str, int, float, float | None], ...] = (
    ("gaussian", "NC", 500, 0.998, None),
    ("gaussian", "NC", 2000, 0.993, 0.996 - 0.989),
    ("gaussian", "NC_first", 500, 0.872, None),
    ("gaussian", "NC_first", 2000, 0.986, None),
    ("gaussian", "NC_second", 2000, -0.003, None),
    ("random", "NC", 500, 0.990, None),
    ("random", "NC", 2000, 0.946, 0.982 - 0.890),
    ("random", "NC_first", 500, 0.855, None),
    ("random", "NC_first", 2000, 0.937, None),
    ("random", "NC_second", 2000, 0.386, None),
)
# from one run of that script with Gaussian X, so they vary with its seed
V_RUN = ((0.19, 0.50, 1.64), (0.15, 0.32, 0.37), (0.11, 0.18, 0.20), (0.05, 0.07, 0.07))  # V[l, 0] at 500, 1000, 2000
ONE_RUN = (
    ("stable_rank_V", 0, 5.6, 0.05),
    ("stable_rank_V", 2000, 1.03, 0.005),
    ("entropy", 0, 2.75, 0.005),
    ("entropy", 2000, 0.65, 0.005),
)


def train(kind: str, every: int) -> dict[str, np.ndarray]:
    """Training of ten seeds by gradient descent: observables (seed, time, ...), V (seed, time, token, node), X (token, class) of seed 0."""
    task = load_task(TASK)
    values = {setting.name: setting.default for setting in task.settings} | {"data": kind}
    experiment = task.make(values, seeds=SEEDS)
    model, batch, rates = experiment.model, experiment.stream(0), experiment.optimizer.rates
    watched = {o.name: o.function for o in model.observables if o.name in (*CURVES, "V")}
    params, rows = model.initial(generators(SEEDS, INITIAL), "float64"), []
    for i in range(STEPS + 1):
        if i % every == 0:
            rows.append({name: function(params) for name, function in watched.items()})
        gradients = model.loss_and_gradients(params, batch)[1]
        params = {name: a - rates[model.groups[name]] * gradients[name] for name, a in params.items()}
    return {name: np.stack([row[name] for row in rows], axis=1) for name in watched} | {"X": experiment.exact["X"][0].T}


def data(fast: bool) -> xr.Dataset:
    """The curves (x, seed, iteration) of NC, stable rank and entropy, v_0 (seed, iteration, component), X and V.

    fast: every 50 steps, not every 10.
    """
    every = 50 if fast else 10
    kinds = ("gaussian", "random")
    runs = [train(kind, every) for kind in kinds]
    V = runs[0]["V"]
    return xr.Dataset(
        {
            **{name: (("x", "seed", "iteration"), np.stack([run[name] for run in runs])) for name in CURVES},
            "v0": (("seed", "iteration", "component"), V[..., :SHOWN, 0]),
            "X": (("token", "class"), runs[0]["X"]),
            "V_start": (("token", "node"), V[0, 0]),
            "V_end": (("token", "node"), V[0, -1]),
        },
        coords={"x": list(kinds), "seed": list(SEEDS), "iteration": np.arange(0, STEPS + 1, every)},
        attrs={"task": TASK, "steps": STEPS},
    )


def band(axes: Axes, x: Any, curves: Any, *, color: str, label: str, ls: Any = "-") -> None:
    """Draws the mean over seeds of curves (seed, iteration), and their range as a band."""
    axes.fill_between(x, curves.min(axis=0), curves.max(axis=0), color=color, alpha=0.2, lw=0)
    axes.plot(x, curves.mean(axis=0), color=color, label=label, ls=ls)


def image(axes: Axes, values: Any, title: str, name: str, across: str, scale: dict[str, Any]) -> None:
    """Draws values (token, across) as an image with a colour bar of that name."""
    shown = axes.imshow(values, aspect="auto", interpolation="nearest", **scale)
    figure: Any = axes.get_figure(root=True)
    bar = figure.colorbar(shown, ax=axes, pad=0.03, aspect=25)
    bar.outline.set_visible(False)
    bar.set_label(name)
    axes.set_title(title)
    axes.set_xlabel(across)
    axes.set_ylabel("token $l$")
    few_ticks(axes, x=4, y=4, whole=True)


def draw(ds: xr.Dataset) -> Figure:
    """Above: X, and NC for both kinds of X. Below: V at start and end, and v_0(t). It computes only means and ranges over seeds."""
    with picture(f"Attention follows the MLP: mean and range of {counted(ds.sizes['seed'], 'seed')}", 96.0, width=165.0) as figure:
        ((top_left, top, top_right), (low_left, low, low_right)) = figure.subplots(2, 3)
        iterations = ds.iteration.values
        image(top_left, ds.X.values, "X, Gaussian, of seed 0", "$X_{l,k}$", "class $k$", {"cmap": SEQUENTIAL})
        for axes, kind in ((top, "gaussian"), (top_right, "random")):
            for j, (name, label) in enumerate(NAMES.items()):
                band(axes, iterations, ds[name].sel(x=kind).values, color=CATEGORIES[j], label=label, ls=DASHES[j])
            axes.axhline(1, color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
            axes.set_title(f"{'Gaussian' if kind == 'gaussian' else 'random'} X")
            axes.set_ylabel("NC with z")
            axes.set_ylim(-0.75, 1.08)
        top.legend(loc="lower right")
        for axes, name, title in ((low_left, "V_start", "V at the start, seed 0"), (low, "V_end", "V at the end, seed 0")):
            largest = float(np.abs(ds[name]).max())
            image(axes, ds[name].values, title, "$V_{l,k}$", "node $k$", {"cmap": DIVERGING, "vmin": -largest, "vmax": largest})
        for l in range(ds.sizes["component"]):
            band(low_right, iterations, ds.v0.values[:, :, l], color=CATEGORIES[l], label=f"$l$ = {l}", ls=DASHES[l])
        low_right.set_title("one token wins")
        low_right.set_ylabel("$V_{l,0}$")
        low_right.legend(loc="upper left")
        for axes in (top, top_right, low_right):
            axes.set_xlim(0, iterations[-1])
            axes.set_xlabel("iteration")
            few_ticks(axes)
        letter_panels(top_left, top, top_right, low_left, low, low_right)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Checks of NC (means over ten seeds), and of V, stable rank and entropy (one run), within the spread of seeds."""
    for kind, name, iteration, target, wide in MEANS:
        found = ds[name].sel(x=kind, iteration=iteration).values
        # half the script's range where known; else 4 standard errors of the difference of two means, and half the last digit
        tolerance = wide / 2 if wide else 4 * found.std(ddof=1) * np.sqrt(2 / found.size) + 5e-4
        yield Feature(f"{name} at {iteration}, {kind} X: mean", float(found.mean()), target, float(tolerance), SCRIPT)
    one = [
        (f"{name} at {i}: mean, beside one run", ds[name].sel(x="gaussian", iteration=i).values, target, digit)
        for name, i, target, digit in ONE_RUN
    ]
    for l, row in enumerate(V_RUN):
        for i, target in zip((500, 1000, 2000), row, strict=True):
            one.append((f"V[{l}, 0] at {i}: mean, beside one run", ds.v0.sel(iteration=i).values[:, l], target, 0.005))
    for name, found, target, digit in one:
        # 4 standard deviations of the difference between one run and the mean of the others
        yield Feature(name, float(found.mean()), target, float(4 * found.std(ddof=1) * np.sqrt(1 + 1 / found.size) + digit), SCRIPT)
    ahead = ds.v0.sel(iteration=STEPS).values
    losers = float((ahead[:, :1] <= ahead[:, 1:]).sum())
    yield Feature("components of node 0 ahead of the first at the end, all seeds", losers, 0.0, 0.0)
    early = ds.sel(x="gaussian", iteration=slice(200, 1000))
    behind = float((early.NC_first.values >= early.NC.values).sum())
    yield Feature("saved times from 200 to 1000 at which the first term alone does as well", behind, 0.0, 0.0)
