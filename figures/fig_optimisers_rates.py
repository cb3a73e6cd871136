"""What optimisers make of slow directions: Muon lets all modes, and all neurons that learn to add, grow at one rate.

Stands beside the singular values of jordan2024muon and what tian2025provable says of Muon. a, five steps of Muon's polynomial, and ten, on
a singular value s: between .68 and 1.13, not 1; b, singular values of W in |W - A|^2/2 by Muon (lines), by the polar factor, min(t, s_i)
(dotted), and two layers by gradient flow from .1 (grey); c, loss of the task modular, 24 neurons, by four optimisers; d, how much of a
neuron's power the largest frequency has in the end, neurons sorted: by SGD the slow ones stop half way, as the loss is gone.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.base.errors import counted
from odesim.models.optimisers.claims import VALUES, A
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, FAINT, INK, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "what is learned first?"

TITLES = {"sgd": "SGD", "sign": "signs", "adam": "Adam", "muon": "Muon"}
TRAINED = {"sgd": (5.0, 1500), "sign": (2e-3, 600), "adam": (5e-3, 600), "muon": (1e-2, 600)}
"""optimizer -> learning rate, updates."""
SAVED = 121


def trained(name: str) -> tuple[Any, Any, Any]:
    """Steps and loss (SAVED,), and the share (24,) of the largest frequency in each neuron's power, sorted."""
    eta, steps = TRAINED[name]
    run = odesim.train("modular", settings={"N": 24, "optimizer": name, "eta": eta}, steps=steps, save=SAVED, observe=["alpha"])
    power = run.observables["alpha"][0, -1] ** 2
    return run.t, run.observables["loss"][0], np.sort(power.max(axis=1) / power.sum(axis=1))


def data(fast: bool) -> xr.Dataset:
    """s after 5 and 10 steps (s), singular values (mode, t), losses (optimizer, save), shares (optimizer, neuron). fast: the same."""
    s = np.geomspace(1e-3, 1, 241)
    given: dict[str, Any] = {"sizes": {"K": len(s)}, "initial": {"s": s}, "span": (0, 10), "save": [0, 5, 10]}
    polynomial = odesim.integrate("optimisers.newton_schulz", **given).y["s"]
    muon = odesim.integrate("optimisers.muon", params={"A": A, "lr": 0.002}, span=(0, 2500), save=np.arange(0, 2501, 25))
    flow = odesim.integrate(
        "classics.deep_linear_modes", sizes={"r": 3}, params={"s": VALUES, "L": 2.0}, initial={"a": 0.01}, span=(0, 5), save=101
    )
    runs = [trained(name) for name in TRAINED]
    return xr.Dataset(
        {
            "after": (("steps", "s"), polynomial[1:]),
            "muon": (("mode", "t"), np.array([np.linalg.svd(W)[1] for W in muon.y["W"]]).T),
            "polar": (("mode", "t"), np.minimum(0.002 * muon.t, VALUES[:, None])),
            "two_layers": (("mode", "t"), flow.y["a"].T),
            "step": (("optimizer", "save"), [steps for steps, _, _ in runs]),
            "loss": (("optimizer", "save"), [loss for _, loss, _ in runs]),
            "share": (("optimizer", "neuron"), [share for _, _, share in runs]),
        },
        coords={"s": s, "steps": [5, 10], "t": 0.002 * muon.t, "optimizer": list(TRAINED), "neuron": np.arange(1, 25)},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels."""
    with picture("Optimisers, and directions that are slow", 104.0, width=140.0) as figure:
        (polynomial, modes), (losses, shares) = figure.subplots(2, 2)
        for steps, color, width in zip(ds.steps.values, CATEGORIES, (1.0, 0.5), strict=False):
            polynomial.plot(ds.s, ds.after.sel(steps=steps), color=color, lw=width, label=counted(int(steps), "step"))
        for level in (0.68185, 1.13436):
            polynomial.axhline(level, color=FAINT, lw=0.8, ls=(0, (1, 1.5)))
        polynomial.set(
            xscale="log", xlabel="singular value s", ylabel="after the steps", title="Muon's polynomial", xlim=(1e-3, 1), ylim=(0, 1.3)
        )
        polynomial.legend(loc="lower right")
        for k, color in enumerate(CATEGORIES[:3]):
            modes.plot(ds.t, ds.two_layers[k], color=FAINT, lw=0.8, label=None if k else "two layers, gradient flow")
            modes.plot(ds.t, ds.polar[k], color=INK, lw=0.8, ls=(0, (1, 1.5)), label=None if k else "polar factor")
            modes.plot(ds.t, ds.muon[k], color=color, label=None if k else "Muon")
        modes.set(xlabel="t (steps × learning rate)", ylabel="singular value of W", title="one rate for all", xlim=(0, 5), ylim=(0, 4.7))
        modes.legend(loc="upper left")
        for name, color in zip(ds.optimizer.values, CATEGORIES, strict=False):
            losses.plot(ds.step.sel(optimizer=name), ds.loss.sel(optimizer=name), color=color, label=TITLES[str(name)])
            shares.plot(ds.neuron, ds.share.sel(optimizer=name), color=color)
        losses.set(xlabel="step", ylabel="loss", title="learning to add mod 23", yscale="log", xlim=(0, 800), ylim=(1e-5, 9))
        losses.legend(loc="upper right")
        shares.set(
            xlabel="neurons, sorted",
            ylabel="largest frequency's part",
            title="one frequency a neuron, or several",
            ylim=(0, 1.02),
            xlim=(1, 24),
        )
        few_ticks(modes, shares)
        few_log_ticks(polynomial, losses)
        letter_panels(polynomial, modes, losses, shares)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """The polynomial's range, recorded values, rates of modes, and how far neurons come."""
    five = ds.after.sel(steps=5)[ds.s.values >= 0.01]
    at = int(np.searchsorted(ds.t.values, 0.8))
    rates = ds.muon[:, at] / ds.polar[:, at]
    yield Feature("least value after five steps from .01 on", float(five.min()), 0.6818, 1e-3, THEORY)
    yield Feature("largest value after five steps from .01 on", float(five.max()), 1.1344, 1e-3, THEORY)
    yield Feature("s = 1 after five steps", float(ds.after.sel(steps=5)[-1]), 0.696436, 1e-6, THEORY)
    yield Feature("s = .001 after five steps", float(ds.after.sel(steps=5)[0]), 0.470544, 1e-6, THEORY)
    yield Feature("modes of Muon over the polar factor's at t = .8, mean", float(rates.mean()), 0.9, 0.2, THEORY)
    yield Feature("singular values of Muon's W in the end, worst", float(np.abs(ds.muon[:, -1] - VALUES).max()), 0.0, 0.01, THEORY)
    yield Feature("largest loss in the end", float(ds.loss[:, -1].max()), 0.0, 0.01, THEORY)
    yield Feature("least share of the largest frequency, Muon", float(ds.share.sel(optimizer="muon").min()), 1.0, 0.25, THEORY)
    yield Feature("least share of the largest frequency, SGD", float(ds.share.sel(optimizer="sgd").min()), 0.25, 0.1, THEORY)
