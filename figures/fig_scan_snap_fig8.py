"""The margin of the decoder: the smooth curve h of the theory and the steps h* of gradient descent.

Stands beside Fig. 8 of tian2023scan: M = 50 tokens to t = 80 and M = 1000 to t = 70, one class, for five learning rates each. h* lies
above h, by at most 2 eta_Y / M, and the gap closes.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import few_ticks, letter_panels, ordered_colors, picture

QUESTION = "why sparse attention?"
CASES = {
    50.0: (80, (0.1, 0.2, 0.5, 1.0, 2.0), (0.100758, 0.124164, 0.148029, 0.163772, 0.178621)),
    1000.0: (70, (0.2, 0.5, 1.0, 2.0, 4.0), (0.0085966, 0.0101222, 0.0109857, 0.0117617, 0.0124969)),
}
LAST = 80
FINE = {"rtol": 1e-11, "atol": 1e-14}


def data(fast: bool) -> xr.Dataset:
    """smooth and steps (M, rate, t), with eta_Y (M, rate). fast: the same."""
    times = np.arange(LAST + 1.0)
    smooth, steps = [], []
    for M, (_, rates, _) in CASES.items():
        for eta_Y in rates:
            given = {"params": {"M": M, "eta_Y": eta_Y}, "span": (0, LAST), "save": times}
            smooth.append(odesim.integrate("scan_snap.decoder", **given, **FINE).observables["h"])
            steps.append(odesim.integrate("scan_snap.decoder", **given, method="euler", step=1.0).observables["h"])
    return xr.Dataset(
        {
            "smooth": (("M", "rate", "t"), np.reshape(smooth, (2, 5, -1))),
            "steps": (("M", "rate", "t"), np.reshape(steps, (2, 5, -1))),
            "eta_Y": (("M", "rate"), [rates for _, rates, _ in CASES.values()]),
        },
        coords={"M": list(CASES), "t": times},
        attrs={"K": 1, **FINE},
    )


def draw(ds: xr.Dataset) -> Figure:
    """A panel for each M: h smooth, h* in steps. It computes nothing."""
    with picture("Steps of descent stay above the flow", 62.0, width=130.0) as figure:
        panels = figure.subplots(1, 2)
        for axes, M in zip(panels, ds.M.values, strict=True):
            here = ds.sel(M=M)
            for j, color in enumerate(ordered_colors(5)):
                axes.plot(ds.t, here.smooth[j], color=color, label=f"$η_Y$ = {float(here.eta_Y[j]):g}")
                axes.step(ds.t, here.steps[j], color=color, lw=0.6, where="post")
            axes.set(xlabel="t", ylabel="margin h", title=f"M = {M:g}", xlim=(0, LAST))
            axes.legend(loc="lower right")
            few_ticks(axes)
        letter_panels(*panels)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """h at the end to six digits, and 0 <= h* - h <= 2 eta_Y / M at every step, with a gap that closes."""
    for M, (end, rates, ends) in CASES.items():
        here = ds.sel(M=M, t=slice(0, end))
        for j, (eta_Y, want) in enumerate(zip(rates, ends, strict=True)):
            digit = 10.0 ** -(6 if M == 50 else 7)
            yield Feature(f"h at t = {end}, M = {M:g}, eta_Y = {eta_Y:g}", float(here.smooth[j, -1]), want, 0.51 * digit, SCRIPT)
        gap = (here.steps - here.smooth).values
        bound = 2 * here.eta_Y.values[:, None] / M
        yield Feature(f"M = {M:g}: steps below the flow", float((gap < -1e-12).sum()), 0.0, 0.0)
        yield Feature(f"M = {M:g}: steps above 2 eta_Y / M", float((gap > bound).sum()), 0.0, 0.0)
        yield Feature(f"M = {M:g}, largest rate: gap at the end over the largest", float(gap[-1, -1] / gap[-1].max()), 0.0, 0.3)
