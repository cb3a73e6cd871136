"""The scale of colours of a map: limits, colours, and notes on values that it does not show."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LogNorm, Normalize, PowerNorm
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from odesim.base.arrays import Array
from odesim.base.errors import counted
from odesim.plot.scales import ALL_BELOW, NOTE, left_out, spans
from odesim.plot.style import DIVERGING, SEQUENTIAL, few_log_ticks

PALE = "#d4d4d4"  # of values that logarithmic colours do not have
SHARE = 0.1  # of the values: so many may be far off and have the colour at the end of the scale
ALIKE = 1e-6  # of the largest value: numbers whose range is smaller have one colour
ROOT = 0.1  # of the largest value: colours go by the square root where the mean is below
FAR = 10.0  # far off, in ranges of the middle half; and how much wider the scale would be with them


@dataclass(frozen=True)
class ColorScale:
    """A norm, the name of its colours, at which ends values lie beyond it (`neither`, `min`, `max`, `both`), and notes."""

    norm: Normalize
    cmap: str
    extend: Any = "neither"
    notes: tuple[str, ...] = ()


def color_scale(values: Array, label: str, log: bool | None = None, *, robust: bool = False) -> ColorScale:
    """The ColorScale of values: diverging around 0 for both signs, logarithmic over three decades.

    log: whether it is logarithmic, None: by the values. robust: leave out few values far from all others, which have the colour at an end.
    """
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if (log or (log is None and spans(finite))) and high > 0:
        low = float(finite[finite > 0].min())
        notes = [left_out(label, finite)] * bool((finite <= 0).any())
        return ColorScale(LogNorm(low, high if high > low else 2 * low), SEQUENTIAL, notes=tuple(notes))
    notes = [f"{label}: no value > 0, so that its colours are linear"] * bool(log)
    extend = "neither"
    if robust and len(finite):
        first, last = limits(finite)
        beyond = int(((finite < first) | (finite > last)).sum())
        if beyond:
            extend = "both" if low < first and high > last else "min" if low < first else "max"
            reach = {"both": f"{low:.3g} to {high:.3g}", "min": f"down to {low:.3g}", "max": f"up to {high:.3g}"}[extend]
            notes.append(f"{label}: {beyond} of {counted(len(finite), 'value')} beyond the colours ({reach})")
        low, high = first, last
    size = max(abs(low), abs(high))
    if low < -0.1 * size and high > 0.1 * size:
        return ColorScale(Normalize(-size, size), DIVERGING, extend, tuple(notes))
    half = 0.5 * size or 0.5
    if high - low <= ALIKE * size:
        notes += [f"{label}: one colour, its values differ by {high - low:.1g} at most"] * (high - low > 1e-13 * size)
        return ColorScale(Normalize(low - half, high + half), SEQUENTIAL, extend, tuple(notes))
    return ColorScale(Normalize(low, high), SEQUENTIAL, extend, tuple(notes))


def by_root(scale: ColorScale, values: Array) -> ColorScale:
    """The scale with colours by the square root, if it is linear and most values (n,) are small; else the scale as it is.

    They are small if none is negative and their mean is below a tenth of the largest.
    So the many small probabilities are seen beside the one that a run starts with.
    """
    finite = values[np.isfinite(values)]
    linear = type(scale.norm) is Normalize and scale.cmap == SEQUENTIAL
    if not linear or not len(finite) or finite.min() < 0 or not 0 < finite.mean() < ROOT * finite.max():
        return scale
    return replace(scale, norm=PowerNorm(0.5, 0, float(finite.max())))


def root_ticks(high: float) -> list[float]:
    """Ticks of colours by the square root up to high: 0, a tenth, a half and the whole of its first digit."""
    whole = float(f"{high:.0e}")
    whole = whole if whole <= high else whole - 10.0 ** np.floor(np.log10(high))
    return [0.0, whole / 10, whole / 2, whole]


def above(scale: ColorScale, floor: float) -> ColorScale:
    """The scale, where it is logarithmic, from floor on: what lies below has no colour. With a note only if all lies below."""
    low, high = scale.norm.vmin, scale.norm.vmax
    if not isinstance(scale.norm, LogNorm) or low is None or high is None or not low < floor:
        return scale
    if high <= floor:
        return replace(scale, notes=(*scale.notes, ALL_BELOW))
    return replace(scale, norm=LogNorm(floor, high), notes=(*scale.notes, NOTE))


def with_pale(values: Any, scale: ColorScale) -> tuple[Any, Colormap]:
    """(values with what is not finite masked, colours); what lies below a logarithmic scale is pale."""
    shown, colors = np.ma.masked_invalid(values), colormaps[scale.cmap]
    if not isinstance(scale.norm, LogNorm) or scale.norm.vmin is None:
        return shown, colors
    return np.ma.where(shown < scale.norm.vmin, scale.norm.vmin / 2, shown), colors.with_extremes(under=PALE)  # LogNorm drops values <= 0


def limits(finite: Array) -> tuple[float, float]:
    """The smallest and the largest of values (n,), without few that are far off and would make all others one colour."""
    low, high = np.quantile(finite, (0.25, 0.75))
    reach = FAR * (high - low)
    inside = finite[(finite >= low - reach) & (finite <= high + reach)]
    few = len(finite) - len(inside) <= max(SHARE * len(finite), 1)
    kept = inside if few and np.ptp(finite) > FAR * np.ptp(inside) > 0 else finite
    return float(kept.min()), float(kept.max())


def add_bar(axes: Axes, mesh: Any, label: str, scale: ColorScale, ticks: Any = None) -> None:
    """A colour bar above the axes with its label, pointed where values lie beyond it. ticks: default few round ones."""
    figure: Any = axes.get_figure(root=True)
    if ticks is None and isinstance(scale.norm, PowerNorm):
        ticks = root_ticks(float(scale.norm.vmax or 1.0))
    elif ticks is None and not isinstance(scale.norm, LogNorm):
        ticks = MaxNLocator(3, steps=[1, 2, 2.5, 5, 10])
    bar = figure.colorbar(mesh, ax=axes, location="top", pad=0.03, aspect=22, fraction=0.06, ticks=ticks, extend=scale.extend)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=1.5, pad=0.8, which="both")
    few_log_ticks(bar.ax)
    bar.ax.minorticks_off()
    if isinstance(bar.formatter, ScalarFormatter):
        bar.formatter.set_useOffset(False)
    bar.set_label(label, labelpad=2.5)
