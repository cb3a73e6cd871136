"""Gradient descent at the edge of stability is, in the mean, a flow along the edge, and not the gradient flow, which leaves it.

Stands beside the cartoon of cohen2024central: a valley whose steepness is 10 + 6 y1 + 2 y2^2, eta = .1. a, the floor of the valley: steps
of gradient descent (grey), their means over 301 steps, the central flow, the gradient flow, and the edge (dotted); b, the sharpness
along them; c, the mean of 1000 x^2 over 301 steps beside that of the central flow; d, the sharpness across two directions of another
valley, of steps (pale) and of their central flow: the first is at the edge, the second comes there, and both stay.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.models.edge.claims import COUPLING, FREE, SPREADS, descent
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, FAINT, INK, few_ticks, letter_panels, picture

QUESTION = "when does it fail?"

STEPS, HALF, PAIR = 5150, 150, 2000


def means(a: Any) -> Any:
    """Means (step,) over 301 steps around each from step 150 on."""
    return np.convolve(a, np.ones(2 * HALF + 1) / (2 * HALF + 1), "valid")


def data(fast: bool) -> xr.Dataset:
    """y, x^2, sharpness of steps (step,), of their means (mean,), of the flow (t,). fast: the same."""
    steps = odesim.integrate("edge.valley", span=(0, STEPS), save=STEPS + 1)
    times = np.linspace(0, 5000, 501)
    flow = odesim.integrate("edge.central_flow", params={"stiff": 100.0}, span=(0, 5000), save=times, rtol=1e-9, atol=1e-12)
    sharp = descent(FREE, np.array([20, 19.9]), PAIR)[:, 1]
    given: dict[str, Any] = {"params": {"G": COUPLING, "a": FREE, "s": (20, 19.9), "stiff": 100.0}, "rtol": 1e-9, "atol": 1e-12}
    pair = odesim.integrate("edge.directions", **given, span=(0, PAIR), save=PAIR // 5 + 1)
    decay = np.exp(-1e-3 * times)
    y1, y2 = 2 - 0.45 * decay, 1 - 0.7 * decay
    return xr.Dataset(
        {
            "y1": ("step", steps.y["y1"]),
            "y2": ("step", steps.y["y2"]),
            "sharpness": ("step", steps.observables["sharpness"]),
            "mean_y1": ("mean", means(steps.y["y1"])),
            "mean_y2": ("mean", means(steps.y["y2"])),
            "mean_x2": ("mean", 1000 * means(steps.y["x"] ** 2)),
            "flow_y1": ("t", flow.y["y1"]),
            "flow_y2": ("t", flow.y["y2"]),
            "flow_sharpness": ("t", flow.observables["sharpness"]),
            "sigma2": ("t", 1000 * flow.observables["sigma2"]),
            "pair": (("pair_step", "direction"), sharp),
            "pair_flow": (("pair_t", "direction"), pair.observables["sharpness"]),
            "pair_sigma2": (("pair_t", "direction"), pair.observables["sigma2"]),
            "gradient_y1": ("t", y1),
            "gradient_y2": ("t", y2),
            "gradient_sharpness": ("t", 10 + 6 * y1 + 2 * y2**2),
        },
        coords={"t": times, "mean": np.arange(HALF, STEPS - HALF + 1), "pair_t": pair.t},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes only the edge."""
    with picture("At the edge, gradient descent is a flow along it", 110.0, width=140.0) as figure:
        (floor, sharp), (spread, both) = figure.subplots(2, 2)
        y2 = np.linspace(0.2, 1.02, 50)
        floor.plot(ds.y1, ds.y2, color=FAINT, lw=0.3, label="steps")
        floor.plot((10 - 2 * y2**2) / 6, y2, color=INK, lw=0.8, ls=(0, (1, 1.5)), label="edge, 2/η = 20")
        floor.plot(ds.mean_y1, ds.mean_y2, color=CATEGORIES[0], lw=0.9, label="their mean")
        floor.plot(ds.flow_y1, ds.flow_y2, color=CATEGORIES[1], label="central flow")
        floor.plot(ds.gradient_y1, ds.gradient_y2, color=CATEGORIES[2], label="gradient flow")
        floor.set(xlabel="y₁", ylabel="y₂", title="floor of the valley", xlim=(1.42, 2.02), ylim=(0.25, 1.03))
        floor.legend(loc="lower right")
        sharp.plot(np.arange(ds.sizes["step"]), ds.sharpness, color=FAINT, lw=0.3)
        sharp.plot(ds.t, ds.flow_sharpness, color=CATEGORIES[1])
        sharp.plot(ds.t, ds.gradient_sharpness, color=CATEGORIES[2])
        sharp.axhline(20, color=INK, lw=0.8, ls=(0, (1, 1.5)))
        sharp.set(xlabel="step", ylabel="sharpness", title="along the way", xlim=(0, 5000), ylim=(19.2, 24.2))
        spread.plot(ds["mean"], ds.mean_x2, color=CATEGORIES[0], lw=0.9)
        spread.plot(ds.t, ds.sigma2, color=CATEGORIES[1])
        spread.set(xlabel="step", ylabel="1000 × mean of x²", title="across the valley", xlim=(0, 5000), ylim=(0, 3))
        for k in range(2):
            both.plot(np.arange(PAIR), ds.pair[:, k], color=CATEGORIES[k], lw=0.5, alpha=0.4)
            both.plot(ds.pair_t, ds.pair_flow[:, k], color=CATEGORIES[k], label=f"direction {k + 1}")
        both.axhline(20, color=INK, lw=0.8, ls=(0, (1, 1.5)))
        both.set(xlabel="step", ylabel="sharpness", title="two directions", xlim=(0, PAIR))
        both.legend(loc="upper left")
        few_ticks(floor, sharp, spread, both, x=3)
        letter_panels(floor, sharp, spread, both)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """The flow as another program has it, the means beside it, and where the gradient flow is."""
    recorded = {500: (1.5740052, 0.5272423), 1000: (1.5337150, 0.6315498), 2000: (1.4973160, 0.7127776), 5000: (1.4827476, 0.7428037)}
    for t, want in recorded.items():
        for name, value in zip(("y1", "y2"), want, strict=True):
            yield Feature(f"{name} of the flow at {t}", float(ds[f"flow_{name}"].sel(t=t)), value, 2e-7, THEORY)
            yield Feature(f"mean {name} at {t}", float(ds[f"mean_{name}"].sel(mean=t)), value, 0.015, THEORY)
    at = ds["mean"].values >= 500
    yield Feature("mean of x^2 over sigma^2, in the mean", float(ds.mean_x2[at].mean() / ds.sigma2[50:].mean()), 1.0, 0.1, THEORY)
    for k, want in enumerate(SPREADS):
        yield Feature(f"sigma^2 of direction {k + 1} in the end", float(ds.pair_sigma2[-1, k]), want, 6e-9, THEORY)
    yield Feature("both sharpnesses of the flow in the end", float(ds.pair_flow[-1].min()), 20.0, 1e-4, THEORY)
    yield Feature("sharpness of the gradient flow at 5000", float(ds.gradient_sharpness[-1]), 24.0, 0.1, THEORY)
