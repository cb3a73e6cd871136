"""One layer on binary Markov chains: the start decides between the bigram and the unigram.

Stands beside the phase plots of makkuva2024local: attention w and embedding e, the bias at its optimum. a, p = q = .1; b, p = .5, q = .8.
Faint: levels of the energy e^2 - w^2 - sign(w) ln |w|, along which the flow goes; dashed: the bigram, e^2 (1 + 2 w |w|) = s*; red: local
minima on the line e = 0, with the loss of the unigram. Runs start at dots, blue ones end at the bigram, orange ones at the unigram.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import odesim
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, FAINT, INK, few_ticks, letter_panels, picture

QUESTION = "what is learned first?"
CHAINS = ((0.1, 0.1), (0.5, 0.8))
STARTS = [(w, e) for w in (-1.7, -1.3, -0.9, -0.6, -0.3, 0.1, 0.4, 0.9) for e in (0.15, 0.5, 0.9)]
TIMES = np.append(0, np.geomspace(0.05, 2000, 80))
SADDLE, TURN = -(1 + np.log(2)) / 2, -(0.5**0.5)
STUCK = "#c1272d"


def coin(x: float) -> float:
    """Its entropy."""
    return float(-x * np.log(x) - (1 - x) * np.log(1 - x))


def energy(w: np.ndarray, e: np.ndarray) -> np.ndarray:
    """e^2 - w^2 - sign(w) ln |w|."""
    return np.asarray(e**2 - w**2 - np.sign(w) * np.log(np.abs(w)))


def data(fast: bool) -> xr.Dataset:
    """w, e and loss (chain, run, time); unigram, bigram and s (chain,). fast: the same."""
    w0, e0 = np.transpose(STARTS)
    runs = [
        odesim.ensemble(
            "in_context.markov",
            params={"p": p, "q": q},
            initial={"w": w0, "e": e0},
            span=(0, TIMES[-1]),
            save=TIMES,
            observe="loss",
            rtol=1e-8,
            atol=1e-11,
        )
        for p, q in CHAINS
    ]
    shares = [(q / (p + q), p / (p + q)) for p, q in CHAINS]
    return xr.Dataset(
        {name: (("chain", "run", "time"), [run[name].values for run in runs]) for name in ("w", "e", "loss")}
        | {
            "unigram": ("chain", [coin(pi1) for _, pi1 in shares]),
            "bigram": ("chain", [pi0 * coin(p) + pi1 * coin(q) for (p, q), (pi0, pi1) in zip(CHAINS, shares, strict=True)]),
            "s": ("chain", [np.log((1 - p) * (1 - q) / (p * q)) for p, q in CHAINS]),
        },
        coords={"chain": [f"p = {p:g}, q = {q:g}" for p, q in CHAINS], "time": TIMES},
    )


def at_bigram(ds: xr.Dataset) -> np.ndarray:
    """Whether each run ends at the bigram (chain, run)."""
    return np.asarray(np.abs(ds.loss[:, :, -1] - ds.bigram) < 1e-3 * (ds.unigram - ds.bigram))


def draw(ds: xr.Dataset) -> Figure:
    """A panel for each chain; it computes levels and curves."""
    with picture("Small weights find the bigram where p + q < 1", 68.0, width=165.0) as figure:
        panels = figure.subplots(1, 2)
        w, e = np.meshgrid(np.linspace(-2, 1.5, 281), np.linspace(0, 2, 121))  # w = 0 is no point of it
        w = w + 1e-9
        learned = at_bigram(ds)
        for k, axes in enumerate(panels):
            axes.contour(w, e, energy(w, e), levels=np.arange(-3, 4.1, 0.5), colors=FAINT, linewidths=0.5, linestyles="solid")
            axes.contour(w, e, e**2 * (1 + 2 * w * np.abs(w)), levels=[float(ds.s[k])], colors=[INK], linewidths=0.9, linestyles="dashed")
            bad = (-2, TURN) if ds.s[k] > 0 else (TURN, 1.5)
            axes.plot(bad, (0, 0), color=STUCK, lw=3, solid_capstyle="butt", clip_on=False, zorder=3)
            for run in range(ds.sizes["run"]):
                color = CATEGORIES[0] if learned[k, run] else CATEGORIES[1]
                axes.plot(ds.w[k, run], ds.e[k, run], color=color, lw=0.9)
                axes.plot(ds.w[k, run, 0], ds.e[k, run, 0], ".", color=color, ms=3)
            axes.set(xlabel="attention w", ylabel="embedding e", xlim=(-2, 1.5), ylim=(0, 2), title=str(ds.chain.values[k]))
            few_ticks(axes)
        handles = [Line2D([], [], color=CATEGORIES[0], marker=".", ms=3, lw=0.9, label="to the bigram")]
        handles += [Line2D([], [], color=CATEGORIES[1], marker=".", ms=3, lw=0.9, label="to the unigram")]
        handles += [Line2D([], [], color=INK, lw=0.9, ls="--", label="the bigram"), Line2D([], [], color=STUCK, lw=3, label="local minima")]
        figure.legend(handles=[*handles, Line2D([], [], color=FAINT, lw=0.5, label="one energy")], loc="outside lower center", ncols=5)
        letter_panels(*panels)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Which runs end where, by side and energy of their starts; the energy along all of them; losses of the ends."""
    w0, e0 = ds.w[0, :, 0].values, ds.e[0, :, 0].values
    trapped = (w0 < TURN) & (energy(w0, e0) < SADDLE)
    learned = at_bigram(ds)
    yield Feature("p = q = .1: runs that end as their energy says", int((learned[0] == ~trapped).sum()), len(STARTS), 0.0, THEORY)
    yield Feature("p = q = .1: runs that end at the unigram", int((~learned[0]).sum()), int(trapped.sum()), 0.0, THEORY)
    yield Feature(
        "p = .5, q = .8: runs from w > -1/sqrt(2), e < .2 that end at the bigram",
        int(learned[1][(w0 > TURN) & (e0 < 0.2)].sum()),
        0,
        0.0,
        THEORY,
    )
    yield Feature(
        "p = .5, q = .8: runs from w < -1/sqrt(2) that end at the bigram",
        int(learned[1][w0 < TURN].sum()),
        int((w0 < TURN).sum()),
        0.0,
        THEORY,
    )
    for k, chain in enumerate(ds.chain.values):
        change = np.abs(energy(ds.w[k].values, ds.e[k].values) - energy(w0, e0)[:, None]).max()
        yield Feature(f"largest change of the energy, {chain}", float(change), 0.0, 1e-5, THEORY)
        yield Feature(f"least loss, {chain}", float(ds.loss[k].min()), float(ds.bigram[k]), 1e-6, THEORY)
