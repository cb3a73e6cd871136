"""Differences between a training and its theory in standard errors over the seeds, and where theory leaves their range."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter

from odesim.plot.style import FAINT, PLAIN, few_ticks, inside, power_text

STILL = 1e-12  # relative difference that is rounding
RESIDUAL = 14.0  # mm: height of the panel
CHANCE = 2.0  # standard errors: a mean of seeds is farther from its expectation in 5 % of cases
WIDE = 20.0  # standard errors from which on the axis is logarithmic beyond CHANCE
ROOM = (1.15, 1.6)  # from the largest residual to the edge, as a factor: of a linear and of a logarithmic axis
POWERS = 10.0 ** np.arange(1, 300)  # ticks of a logarithmic axis beyond CHANCE
SMALL_SHARE = 1e-3  # theory that is closer to the range of seeds counts as in it: both sides are computed with tolerances
SAME, ALIKE = "no line in Δ: no difference beyond rounding", "no line in Δ: the seeds are alike, there is no standard error"


def residuals(training: Any, theory: Any) -> Any:
    """The mean (T, n) over seeds of training (R, T, n) minus theory (1 or R, T, n), in its standard errors.

    Of one seed it is the difference itself. Masked where the seeds differ by no more than rounding.
    """
    difference = training - theory
    if len(difference) < 2:
        return difference[0]
    error = difference.std(axis=0, ddof=1) / np.sqrt(len(difference))
    size = max(float(np.abs(training).max()), float(np.abs(theory).max())) if training.count() else 1.0
    return np.ma.masked_where(np.ma.filled(error, 0.0) <= STILL * size, difference.mean(axis=0)) / error


def without_line(values: Any, training: Any, theory: Any) -> list[str]:
    """Notes on components without residuals (T, n): both sides are the same, or the seeds are alike.

    The sides are training (R, T, n) and theory (1 or R, T, n).
    """
    silent = np.ma.count(values, axis=0) == 0
    if len(training) < 2 or not silent.any():
        return []
    size = max(float(np.abs(training).max()), float(np.abs(theory).max())) if training.count() else 1.0
    same = np.ma.filled(np.abs(training - theory) <= STILL * size, True).all(axis=(0, 1))
    return [SAME] * bool((silent & same).any()) + [ALIKE] * bool((silent & ~same).any())


def draw_residuals(axes: Axes, x: Any, values: Any, colors: Sequence[Any], *, several: bool = True) -> None:
    """Draws residuals (T, n) at x (T,), a line for each component; several: seeds, so that chance has a size."""
    axes.axhline(0, color=FAINT, lw=0.5, zorder=0)
    for color, column in zip(colors, values.T, strict=True):
        axes.plot(x, column, color=color, lw=0.8)
    axes.set_ylabel("Δ")
    if not several:
        few_ticks(axes, y=3)
        return
    axes.axhspan(-CHANCE, CHANCE, color=FAINT, alpha=0.25, lw=0, zorder=0)
    low, high = (float(values.min()), float(values.max())) if values.count() else (0.0, 0.0)
    wide = max(-low, high) > WIDE
    low, high = min(low * ROOM[wide], -1.5 * CHANCE), max(high * ROOM[wide], 1.5 * CHANCE)
    few_ticks(axes, y=4)
    if wide:
        axes.set_yscale("symlog", linthresh=CHANCE, linscale=0.5)
        down, up = ([*inside(POWERS, POWERS[0], end)] for end in (-low, high))
        axes.yaxis.set_major_locator(FixedLocator([*(-tick for tick in down[-1:]), -CHANCE, CHANCE, *up[-1:]]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: tick_text(tick)))
        axes.yaxis.set_minor_locator(FixedLocator([*(-tick for tick in down[:-1]), *up[:-1]]))
    elif max(-low, high) <= 2 * CHANCE:
        axes.set_yticks([-CHANCE, 0, CHANCE])
    axes.set_ylim(low, high)


def tick_text(tick: float) -> str:
    """A tick as a number, or as a power of ten if that is shorter."""
    size = abs(tick)
    return "\u2212" * bool(tick < 0) + (f"{size:g}" if size < PLAIN[1] else power_text(size))


def outside(axes: Axes, training: Any, theory: Any) -> Any:
    """Whether (T,) a component of theory (T, n) lies outside the range of the seeds of training (R, T, n), drawn in these Axes.

    It must do so by more than SMALL_SHARE. On a logarithmic axis that is a share of the values themselves, for nothing below some per
    cent can be seen there; else of all that they span.
    """
    low, high = training.min(axis=0), training.max(axis=0)
    if axes.get_yscale() == "log":
        size = np.ma.abs(theory)
    else:
        size = max(high.max(), theory.max()) - min(low.min(), theory.min()) if theory.count() and training.count() else 0.0
    beyond = np.ma.filled((theory < low - SMALL_SHARE * size) | (theory > high + SMALL_SHARE * size), False)
    return beyond.any(axis=1)
