"""Where gradient descent ends at the edge of stability: just below 2/eta, whatever the start; only there a bias is learnt.

Stands beside the theorems of ahn2023threshold and zhu2023edge, and Fig. 2 of damian2023self. a, cycles of x^2 and the sharpness, which
grow, on level lines of H, ea = .001; b, y^2 against step on sqrt(1 + (x y)^2), eta = .1, from three starts; c, gap to 2/eta in the end
over eta: two losses of a product, eta/(2c), and four layers, eta/2 (lines); d, the bias in the end against the learning rate over
8 pi/d^2.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, FAINT, INK, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "when does it fail?"
EA, STEPS = 1e-3, 900
STARTS = (4.4, 5.0, 6.0)
RATES = (0.2, 0.1, 0.05, 0.02, 0.01)
FOUR = {0.2: (3, 0.3), 0.1: (4, 0.2), 0.05: (5, 0.19), 0.02: (7.2, 0.135), 0.01: (10.1, 0.0985)}
SHARES = np.round(np.concatenate([np.linspace(0.3, 0.9, 7), np.linspace(0.92, 1.2, 15), np.linspace(1.3, 3.0, 18)]), 6)


def gap(rate: float, shape: int | None) -> float:
    """2/eta less the sharpness in the end, of a product from y^2 = 2/eta + 2, or of four layers."""
    if shape is None:
        given = {"initial": dict(zip("xy", FOUR[rate], strict=True)), "params": {"eta": rate}}
        return float(odesim.integrate("edge.four_layers", span=(0, int(100 / rate**2)), save=2, **given).final_observables["gap"])
    given = {"initial": {"x": 0.1, "y": float(np.sqrt(2 / rate + 2))}, "params": {"eta": rate, "shape": float(shape)}}
    return float(odesim.integrate("edge.product", span=(0, int(60 / rate**2)), save=2, **given).final_observables["gap"])


def data(fast: bool) -> xr.Dataset:
    """u and y (step,), y^2 (start, early), gaps (loss, eta), bias (share,). fast: the same."""
    cycle = odesim.integrate("edge.self_stabilisation", initial={"x": 0.02, "y": 0.0}, params={"ea": EA}, span=(0, STEPS), save=STEPS + 1)
    early = [
        odesim.integrate("edge.product", initial={"x": 0.1, "y": y0}, span=(0, 400), save=401).observables["sharpness"] for y0 in STARTS
    ]
    biases = [
        float(odesim.integrate("edge.threshold_neuron", params={"eta": f * 8 * np.pi / 400}, span=(0, 30_000), save=2).final["b"])
        for f in SHARES
    ]
    return xr.Dataset(
        {
            "u": ("step", cycle.observables["u"]),
            "y": ("step", cycle.y["y"]),
            "H": ("step", cycle.observables["H"]),
            "sharpness": (("start", "early"), early),
            "gap": (("loss", "eta"), [[gap(rate, shape) for rate in RATES] for shape in (0, 1, None)]),
            "bias": ("share", biases),
        },
        coords={"start": list(STARTS), "eta": list(RATES), "share": SHARES, "loss": ["c = 1/2", "c = 1/3", "four layers"]},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes only level lines and slopes."""
    with picture("Gradient descent at the edge of stability", 104.0, width=140.0) as figure:
        (cycles, ends), (gaps, bias) = figure.subplots(2, 2)
        u, y = np.meshgrid(np.logspace(-3.5, 1.2, 120), np.linspace(-0.12, 0.12, 101))
        cycles.contour(u, y, y**2 + EA * (u - np.log(u) - 1), levels=EA * np.array([1.0, 2.0, 4.0, 6.0]), colors=FAINT, linewidths=0.5)
        cycles.plot(ds.u, ds.y, color=CATEGORIES[0], lw=0.8)
        cycles.plot([1], [0], "o", color=INK, ms=3)
        cycles.set(
            xscale="log", xlabel="u = b x² / (2 ηα)", ylabel="η × sharpness − 2", title="cycles grow", xlim=(3e-4, 15), ylim=(-0.12, 0.12)
        )
        for k, y0 in enumerate(ds.start.values):
            ends.plot(np.arange(ds.sizes["early"]), ds.sharpness.sel(start=y0), color=CATEGORIES[k], label=f"y(0) = {y0:g}")
        ends.axhline(20, color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
        ends.set(xlabel="step", ylabel="y²", title="2/η = 20", ylim=(18, 28), xlim=(0, 400))
        ends.legend(loc="upper right")
        for k, (name, slope) in enumerate((("c = 1/2", 1.0), ("c = 1/3", 1.5), ("four layers", 0.5))):
            gaps.plot(ds.eta, ds.gap.sel(loss=name), "o^s"[k], color=CATEGORIES[k], ms=3, label=name)
            gaps.plot(ds.eta, slope * ds.eta, color=FAINT, lw=0.7)
        gaps.set(xscale="log", yscale="log", xlabel="learning rate η", ylabel="2/η − sharpness", title="gap in the end")
        gaps.legend(loc="upper left")
        bias.plot(ds.share, ds.bias, color=CATEGORIES[0])
        bias.axvline(1, color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
        bias.set(xlabel="η d² / (8π)", ylabel="bias in the end", title="a threshold neuron", xlim=(0.3, 3))
        few_ticks(cycles, ends, gaps, bias)
        few_log_ticks(cycles, gaps)
        letter_panels(cycles, ends, gaps, bias)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Recorded ends, the slope of the gap, the kink of the bias, growth of H."""
    yield Feature("H in the end less H at the start is positive", float(ds.H[-1] > ds.H[0]), 1.0, 0.0, THEORY)
    yield Feature("y^2 after 400 steps from y = 6", float(ds.sharpness.sel(start=6.0)[-1]), 19.8994950, 0.01, THEORY)
    yield Feature("y^2 after 400 steps from y = 5", float(ds.sharpness.sel(start=5.0)[-1]), 19.8994950, 0.01, THEORY)
    yield Feature("y^2 after 400 steps from y = 4.4", float(ds.sharpness.sel(start=4.4)[-1]), 19.2280662, 1e-3, THEORY)
    for name, slope in (("c = 1/2", 1.0), ("c = 1/3", 1.5), ("four layers", 0.5)):
        yield Feature(f"gap over eta at .01, {name}", float(ds.gap.sel(loss=name, eta=0.01)) / 0.01, slope, 1e-3, THEORY)
    for share, want, tolerance in ((0.9, -6.963e-4, 6e-7), (1.5, -0.262943, 6e-7), (3.0, -0.970128, 6e-7)):
        yield Feature(f"bias at {share:g} of the threshold", float(ds.bias.sel(share=share)), want, tolerance, THEORY)
