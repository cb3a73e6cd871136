"""Why the loss falls in steps: from a small start a diagonal network goes from saddle to saddle, at times that the data alone set.

Stands beside the staircases of pesme2023saddle. a and b, coefficients against t/ln(1/alpha) for three sizes of the start, inputs that are
correlated, and the jumps as alpha -> 0 (dotted); in b correlations reorder what is learned: the second coefficient, which has a larger
correlation with the output than the third, waits longest. c, the loss of a; d, error of the times of a against 1/ln(1/alpha): a line.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import odesim
from odesim.models.scaling._saddles import saddles
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, INK, few_ticks, letter_panels, picture, power_text

QUESTION = "why plateaus?"
PROBLEMS = (
    (np.array([[1, 0.6, 0.3], [0.6, 1, 0.2], [0.3, 0.2, 1]]), np.array([0.91, 0.3, 0.72])),
    (np.array([[1, 0.9, 0], [0.9, 1, 0.3], [0, 0.3, 1]]), np.array([0.905, 0.72, -0.465])),
)
RECORDED = ((1.098901, 1.565996, 6.314433), (1.104972, 2.150538, 8.888889))
"""Times of the jumps by an independent script."""
SIMULATED = {1e-5: (1.085, 1.465, 6.18), 1e-20: (1.100, 1.545, 6.285), 1e-60: (1.100, 1.560, 6.305)}
"""alpha -> times at which the loss of the first problem is half way, by an independent script in steps of .005."""
ALPHAS = tuple(SIMULATED)
FINE: dict[str, Any] = {"method": "rodas5p", "rtol": 1e-8, "atol": 1e-11}


def run(problem: int, alpha: float, times: np.ndarray) -> Any:
    """A run of the flow in its own clock."""
    G, c = PROBLEMS[problem]
    return odesim.integrate("scaling.mirror", params={"G": G, "c": c, "alpha": alpha}, span=(0, times[-1]), save=times, **FINE)


def levels(problem: int) -> list[float]:
    """The loss at the start and after each jump."""
    G, c = PROBLEMS[problem]
    return [0.0, *(float(beta @ G @ beta / 2 - c @ beta) for _, beta in saddles(G, c))]


def middles(problem: int, alpha: float) -> np.ndarray:
    """Times (jump,) at which the loss is half way between two levels."""
    times = np.linspace(0, 12, 12_001)
    loss, steps = run(problem, alpha, times).observables["loss"], levels(problem)
    return np.array([times[np.argmax(loss < (a + b) / 2)] for a, b in pairwise(steps)])


def data(fast: bool) -> xr.Dataset:
    """beta (problem, alpha, time, i), loss (alpha, time), jumps and saddles (problem, number).

    early (number, start): by how much the loss is half way before a jump.

    fast: 4 sizes of the start, not 9.
    """
    times = np.linspace(0, 11, 551)
    every = 10.0 ** -np.round(np.geomspace(5, 60, 4 if fast else 9))
    runs = [[run(p, alpha, times) for alpha in ALPHAS] for p in range(2)]
    return xr.Dataset(
        {
            "beta": (("problem", "alpha", "time", "i"), [[r.observables["beta"] for r in row] for row in runs]),
            "loss": (("alpha", "time"), [r.observables["loss"] for r in runs[0]]),
            "jump": (("problem", "number"), [[tau for tau, _ in saddles(*problem)] for problem in PROBLEMS]),
            "saddle": (("problem", "number", "i"), [[beta for _, beta in saddles(*problem)] for problem in PROBLEMS]),
            "level": ("step", levels(0)),
            "early": (
                ("number", "start"),
                np.transpose([[tau for tau, _ in saddles(*PROBLEMS[0])] - middles(0, alpha) for alpha in every]),
            ),
        },
        coords={"alpha": list(ALPHAS), "time": times, "start": every},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes nothing."""
    with picture("From saddle to saddle", 104.0, width=150.0) as figure:
        (first, second), (loss, error) = figure.subplots(2, 2)
        for p, (axes, end, title) in enumerate(((first, 8, "correlated inputs"), (second, 11, "correlations reorder"))):
            for k in range(len(ds.alpha)):
                for i in range(3):
                    axes.plot(ds.time, ds.beta[p, k, :, i], color=CATEGORIES[i], ls=DASHES[k], lw=0.9)
            for tau in ds.jump[p].values:
                axes.axvline(tau, color=INK, lw=0.5, ls=(0, (1, 1.5)))
            axes.set(xlabel="t / ln(1/α)", ylabel="β", title=title, xlim=(0, end))
        first.legend([Line2D([], [], color=CATEGORIES[i]) for i in range(3)], ["β₁", "β₂", "β₃"], loc="center right")
        for k, alpha in enumerate(ds.alpha.values):
            loss.plot(ds.time, ds.loss[k], color=CATEGORIES[0], ls=DASHES[k], lw=0.9, label=f"α = {power_text(alpha)}")
        for level in ds.level.values:
            loss.axhline(level, color=FAINT, lw=0.4, ls=(0, (1, 1.5)), zorder=0)
        loss.set(xlabel="t / ln(1/α)", ylabel="loss", title="steps of a", xlim=(0, 8))
        loss.legend(loc="center right")
        late = 1 / np.log(1 / ds.start.values)
        for k in range(3):
            error.plot(late, ds.early[k], "os^"[k], color=CATEGORIES[k], ms=3, label=f"jump {k + 1}")
        error.axhline(0, color=FAINT, lw=0.6)
        error.set(xlabel="1 / ln(1/α)", ylabel="too early by", title="error of the times of a", xlim=(0, 0.095))
        error.legend(loc="upper left")
        few_ticks(first, second, loss, error)
        letter_panels(first, second, loss, error)
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Recorded jumps, simulated times, the order of the error, the saddles between jumps."""
    for p, row in enumerate(RECORDED):
        for k, want in enumerate(row):
            yield Feature(f"jump {k + 1} of {'ab'[p]}", float(ds.jump[p, k]), want, 1e-6, THEORY)
    for alpha, row in SIMULATED.items():
        found = ds.jump[0] - ds.early.sel(start=alpha, method="nearest")
        for k, want in enumerate(row):
            yield Feature(f"loss half way, jump {k + 1}, alpha = {alpha:g}", float(found[k]), want, 0.006, THEORY)
    last = ds.early[2] * np.log(1 / ds.start)
    yield Feature("error of the last jump times ln(1/alpha), largest over smallest", float(last.max() / last.min()), 1.0, 0.25, THEORY)
    between = ds.beta[0, 2].sel(time=4.0, method="nearest").values
    yield Feature("beta between the last two jumps, alpha = 1e-60", float(np.abs(between - ds.saddle.values[0, 1]).max()), 0, 1e-3, THEORY)
