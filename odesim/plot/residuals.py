"""What is between a training and its theory: differences in standard errors over the seeds, and where theory leaves their range."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from odesim.comparison.metrics import STILL
from odesim.plot.style import FAINT

RESIDUAL = 11.0  # mm: height of the panel
CHANCE = 2.0  # standard errors: a mean of seeds is farther from its expectation in 5 % of cases
WIDE = 20.0  # standard errors from which on the axis is logarithmic beyond CHANCE
SMALL_SHARE = 1e-3  # theory that is closer to the range of seeds counts as in it: both sides are computed with tolerances


def residuals(training: Any, theory: Any) -> Any:
    """(T, n): the mean over seeds of training (R, T, n) minus theory (1 or R, T, n), in its standard errors; of one seed as it is.

    Masked where the seeds differ by no more than rounding.
    """
    difference = training - theory
    if len(difference) < 2:
        return difference[0]
    error = difference.std(axis=0, ddof=1) / np.sqrt(len(difference))
    size = max(float(np.abs(training).max()), float(np.abs(theory).max())) if training.count() else 1.0
    return np.ma.masked_where(np.ma.filled(error, 0.0) <= STILL * size, difference.mean(axis=0)) / error


def draw_residuals(axes: Axes, x: Any, values: Any, colors: Sequence[Any], *, several: bool = True) -> None:
    """Draws residuals (T, n) at x (T,), a line for each component; several: seeds, so that chance has a size."""
    axes.axhline(0, color=FAINT, lw=0.5, zorder=0)
    for color, column in zip(colors, values.T, strict=True):
        axes.plot(x, column, color=color, lw=0.6)
    axes.set_ylabel("Δ")
    if not several:
        return
    axes.axhspan(-CHANCE, CHANCE, color=FAINT, alpha=0.25, lw=0, zorder=0)
    largest = float(np.abs(values).max()) if values.count() else 0.0
    if largest > WIDE:
        axes.set_yscale("symlog", linthresh=CHANCE)
        power = 10.0 ** np.floor(np.log10(largest))
        axes.set_yticks([-power, 0, power])
        axes.minorticks_off()
    axes.set_ylim(-1.2 * max(largest, 1.5 * CHANCE), 1.2 * max(largest, 1.5 * CHANCE))


def outside(axes: Axes, training: Any, theory: Any) -> Any:
    """(T,): where a component of theory (T, n) lies outside the range of the seeds of training (R, T, n), drawn in these Axes.

    By more than SMALL_SHARE: of the values themselves on a logarithmic axis, where nothing below some per cent can be seen, else of
    all that they span.
    """
    low, high = training.min(axis=0), training.max(axis=0)
    if axes.get_yscale() == "log":
        size = np.ma.abs(theory)
    else:
        size = max(high.max(), theory.max()) - min(low.min(), theory.min()) if theory.count() and training.count() else 0.0
    beyond = np.ma.filled((theory < low - SMALL_SHARE * size) | (theory > high + SMALL_SHARE * size), False)
    return beyond.any(axis=1)
