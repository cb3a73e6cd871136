"""What a trained layer knows of topics: values in blocks, the loss of two stages over attention, attention to the same topic.

Stands beside Figs 2 and 3 and Theorem 2 of li2023topic: a, W_V after the first stage (T = v = 10, tau = 2): blocks, a constant column of
the mask; b and c, the loss over the attention alpha to other words of the topic and beta to the word itself, for values in blocks
(straight lines) and on the diagonal (an optimum with alpha below 1); d, attention to the same topic over that to others, along
topics.reduced.
"""

import numpy as np
import xarray as xr
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterMathtext

import odesim
from odesim.models.topics._population import Population
from odesim.models.topics._stage1_claims import SETTING
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, SEQUENTIAL, SMALL, few_ticks, letter_panels, picture

QUESTION = "what is learned first?"
HERE = Population(10, 10, 2, 0.1)
OPTIMA = {0: (None, 6.5832, 0.9459059), 1: (0.8777, 57.2, 0.8709127)}
ALPHA, BETA = np.linspace(0.2, 6.0, 59), 0.5 + 0.9 * np.arange(111)
LEVELS = np.logspace(-5, -1, 13)


def data(fast: bool) -> xr.Dataset:
    """W_V (row, column), loss (s, beta, alpha), and the mean attention to the topic (t). fast: the same."""
    times = np.linspace(0, 4e5, 401)
    run = odesim.integrate("topics.reduced", params={**SETTING, "eps": 1e-3}, span=(0, 4e5), save=times, rtol=1e-9, atol=1e-12)
    first = odesim.integrate(
        "topics.stage1",
        params={name: x for name, x in SETTING.items() if name != "v"},
        sizes={"d": 101, "N": 45},
        span=(0, 4000),
        save=2,
        rtol=1e-8,
        atol=1e-11,
    )
    alpha, beta = run.observables["alpha"], run.observables["beta"]
    return xr.Dataset(
        {
            "W_V": (("row", "column"), first.final["W_V"][:31, :31]),
            "loss": (("s", "beta", "alpha"), [[[HERE.loss(s, x, y) for x in ALPHA] for y in BETA] for s in (0.0, 1.0)]),
            "mean": ("t", (beta + 9 * alpha) / 10),
        },
        coords={"s": [0, 1], "alpha": ALPHA, "beta": BETA, "t": times},
        attrs={**SETTING},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes only how far the loss is above its least."""
    with picture("Topics in values and in attention", 112.0, width=130.0) as figure:
        (values, blocks), (diagonal, along) = figure.subplots(2, 2)
        shown = values.imshow(ds.W_V, cmap=SEQUENTIAL, interpolation="nearest")
        values.set(xlabel="word seen (0: mask)", ylabel="word out")
        figure.colorbar(shown, ax=values, label="$W_V$ after stage 1")
        for axes, s, title in ((blocks, 0, "values in blocks"), (diagonal, 1, "values on the diagonal")):
            above = np.maximum(ds.loss.sel(s=s) - OPTIMA[s][2], LEVELS[0])
            filled = axes.contourf(ds.alpha, ds.beta, above, levels=LEVELS, norm=LogNorm(), cmap=SEQUENTIAL)
            axes.set(xlabel="α: other words of the topic", ylabel="β: the word itself", title=title)
            figure.colorbar(
                filled, ax=axes, ticks=[1e-5, 1e-4, 1e-3, 1e-2, 1e-1], format=LogFormatterMathtext(), label="loss above the least"
            ).ax.tick_params(labelsize=SMALL)
        place = OPTIMA[1]
        diagonal.plot(place[0], place[1], "x", ms=4, color="white")
        diagonal.annotate("optimum", (place[0], place[1]), (4, 4), textcoords="offset points", fontsize=SMALL, color="white")
        along.plot(ds.t, ds["mean"], color=CATEGORIES[0])
        along.set(xlabel="t", ylabel="attention to the topic, others = 1", ylim=(0, 8))
        few_ticks(blocks, diagonal, along)
        letter_panels(values, blocks, diagonal, along)
    return figure


def expected(ds: xr.Dataset) -> list[Feature]:
    """The block gap, straight level lines, both optima, attention at the end of the second stage."""
    W = ds.W_V.values
    n, mass = HERE.n, HERE.m0**2 + (1 - HERE.m0) ** 2 / HERE.n
    gam = np.linspace(1, 20, 1901)
    features = [
        Feature("W_V: same topic less other topics, over 1/(kappa v)", float((W[1, 2] - W[1, 12]) * HERE.kappa * HERE.v), 1.0, 1e-5),
        Feature("W_V: same topic less other topics", float(W[1, 2] - W[1, 12]), 0.1156, 5e-5, SCRIPT),
        Feature("W_V: the mask's column, off m0/(n |mu|^2)", float(W[1:, 0].mean() * n * mass / HERE.m0), 1.0, 1e-5),
        Feature("W_V: spread of the mask's column", float(np.ptp(W[1:, 0])), 0.0, 1e-8),
        Feature("W_V: largest entry of row 0", float(np.abs(W[0]).max()), 0.0, 1e-12),
    ]
    least = gam[np.argmin([HERE.loss(0.0, g, g) for g in gam])]
    features.append(Feature("blocks: attention at the optimum", float(least), 6.5832, 0.005 + 1e-9, SCRIPT))  # half a step of the grid
    # a step of alpha is .1 and one of beta .9: lines of 9 alpha + beta are diagonals of the grid
    diagonals = [np.fliplr(ds.loss.sel(s=0).values).diagonal(k) for k in range(-80, 58)]
    features.append(Feature("blocks: largest range of the loss along 9 alpha + beta", float(max(map(np.ptp, diagonals))), 0.0, 1e-13))
    of_diagonal = ds.loss.sel(s=1)
    place = of_diagonal.argmin(("beta", "alpha"))
    features += [  # half a step of alpha, and a step of beta: the least lies in a valley across both
        Feature("diagonal: alpha of the least loss", float(of_diagonal.alpha[place["alpha"]]), 0.8777, 0.05, SCRIPT),
        Feature("diagonal: beta of the least loss", float(of_diagonal.beta[place["beta"]]), 57.2, 0.9, SCRIPT),
        Feature("diagonal: least loss", float(of_diagonal.min()), 0.8709127, 1e-6, SCRIPT),
    ]
    of_blocks = float(ds.loss.sel(s=0).min())
    features.append(Feature("blocks: least loss", of_blocks, 0.9459059, 1e-6, SCRIPT))
    features.append(
        Feature(
            "blocks and diagonal: least loss on the grid, diagonal below blocks by",
            float(ds.loss.min(("alpha", "beta")).diff("s")[0]),
            -0.075,
            0.001,
        )
    )
    below = float((ds["mean"].values < 1 - 1e-6).sum())  # at the start it is 1 to 1e-6
    features.append(Feature("saved times at which a topic gets less than others", below, 0.0, 0.0))
    return features
