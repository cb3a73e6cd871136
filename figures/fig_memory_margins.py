"""A matrix learns to associate tokens, the frequent ones first: margins against time, their collapse, and the loss of a power law.

Stands beside bietti2023birth's associative memories (each token by itself, closed form), which has no such pictures: a, margins of ten
tokens with p ~ 1/x; b, they are one curve against p t, early p t and late ln(M p t); c, with p ~ x^(-alpha) the loss falls as
t^(-(1 - 1/alpha)).
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.plot.figures import Feature
from odesim.plot.labels import end_labels, place_labels
from odesim.plot.style import CATEGORIES, DASHES, FAINT, few_log_ticks, letter_panels, new_figure, ordered_colors, project_style

QUESTION = "what is learned first?"
SHOWN, END, POWERS, TOKENS = 10, 300.0, (2.0, 3.0, 4.0), 2000
FINE = {"rtol": 1e-10, "atol": 1e-12}


def data(fast: bool) -> xr.Dataset:
    """m (t, token) with p (token) and M; loss (power, late). fast: 500 tokens under the power laws, not 2000."""
    times, late = np.linspace(0, END, 1201), np.logspace(0, 4, 41)
    p = 1 / np.arange(1.0, SHOWN + 1)
    p /= p.sum()
    run = odesim.integrate("memory.softmax_regression", params={"p": p}, span=(0, END), save=times, **FINE)
    losses = []
    for power in POWERS:
        law = np.arange(1.0, (TOKENS // 4 if fast else TOKENS) + 1) ** -power
        given = {"params": {"p": law / law.sum()}, "span": (0, late[-1]), "save": late}
        losses.append(odesim.integrate("memory.softmax_regression", **given, rtol=1e-8, atol=1e-10).observables["loss"])
    return xr.Dataset(
        {"m": (("t", "token"), run.y["m"]), "p": ("token", p), "loss": (("power", "late"), np.array(losses))},
        coords={"t": times, "token": np.arange(1, SHOWN + 1), "power": list(POWERS), "late": late},
        attrs={"M": int(run.attrs["params"]["M"]), **FINE},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Three panels in a row; it computes only p t, the two limits and the slopes of the reference lines."""
    with project_style():
        figure = new_figure(55.0, width=160.0)
        left, middle, right = figure.subplots(1, 3)
        colors = ordered_colors(SHOWN)
        for color, token in zip(colors, ds.token.values, strict=True):
            m, reduced = ds.m.sel(token=token), float(ds.p.sel(token=token)) * ds.t
            left.plot(ds.t, m, color=color)
            middle.plot(reduced[1:], m[1:], color=color)
        labels = end_labels(left, [str(x) for x in ds.token.values], list(ds.m.values[-1]))
        left.set(xlabel="t", ylabel="margin $m_x$", xlim=(0, END))
        reach = np.logspace(-1, 2, 50)
        middle.plot(reach[reach < 2], reach[reach < 2], color=FAINT, lw=0.8, ls=(0, (1, 1.5)), label="p t")
        middle.plot(reach[reach > 2], np.log(ds.M * reach[reach > 2]), color=FAINT, lw=0.8, ls=(0, (4, 1.5)), label="ln(M p t)")
        middle.set(xscale="log", xlim=(0.1, 120), ylim=(0, 7.5), xlabel="p t", ylabel="margin $m_x$")
        middle.legend(loc="upper left")
        for j, power in enumerate(ds.power.values):
            right.plot(ds.late, ds.loss.sel(power=power), color=CATEGORIES[j], ls=DASHES[j], label=f"α = {power:g}")
            late = ds.late[20:]
            line = 1.6 * float(ds.loss.sel(power=power)[-1]) * (late / late[-1]) ** -(1 - 1 / power)
            right.plot(late, line, color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
        right.set(xscale="log", yscale="log", xlabel="t", ylabel="loss")
        right.legend(loc="lower left")
        few_log_ticks(middle, right)
        letter_panels(left, middle, right)
        figure.suptitle("Frequent tokens are learned first")
        place_labels(figure, [labels])
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """The closed form e^m + (M - 1) m = 1 + M p t, the collapse, both limits, and the exponents of the loss."""
    m, grown = ds.m.values, 1 + ds.M * ds.t.values[:, None] * ds.p.values
    yield Feature("closed form: largest relative distance", float(np.abs((np.exp(m) + (ds.M - 1) * m) / grown - 1).max()), 0.0, 1e-8)
    yield Feature("saved times at which a rarer token is ahead", float((np.diff(m[1:], axis=1) >= 0).sum()), 0.0, 0.0)
    at = [np.interp(3.0, ds.p.values[x] * ds.t.values, m[:, x]) for x in range(SHOWN)]
    yield Feature("margins at p t = 3: largest less smallest", float(np.ptp(at)), 0.0, 1e-3)  # of linear interpolation
    yield Feature("early: margin over p t at t = .25, rarest", float(m[1, -1] / (ds.p[-1] * ds.t[1])), 1.0, 0.02)
    late = float(m[-1, 0] / np.log(ds.M * ds.p[0] * ds.t[-1]))
    yield Feature("late: margin over ln(M p t), most frequent", late, 1.0, 0.03)
    for power in ds.power.values:
        slope = np.polyfit(np.log(ds.late.values[25:]), np.log(ds.loss.sel(power=power).values[25:]), 1)[0]
        # a finite number of tokens and the logarithm of ln(M p t) move the exponent by a few hundredths
        yield Feature(f"exponent of the loss, alpha = {power:g}", float(slope), -(1 - 1 / power), 0.06)
