"""Scales of a picture: of time, of values, of colours; what of values they leave out, and what is below the tolerances of the run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor, log10
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm, Normalize, PowerNorm
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, counted
from odesim.plot.header import letter_count
from odesim.plot.style import DIVERGING, SEQUENTIAL, few_log_ticks, literal, power_of, power_text, root_figure

GREY, BELOW = "#ececec", 0.01  # the colour; where the axis ends, of the tolerance
NOTE = "grey: below the tolerances, digits may be errors"
CUT = "axes end two decades below"
ALL_BELOW = "all below the tolerances of the run: digits may be errors"
PALE = "#d4d4d4"  # of values that logarithmic colours do not have
SHARE = 0.1  # of the values: so many may be far off and have the colour at the end of the scale
ALIKE = 1e-6  # of the largest value: numbers whose range is smaller have one colour
ROOT = 0.1  # of the largest value: colours go by the square root where the mean is below
LETTERS = 20  # of all ticks of a colour bar, more would touch
FAR = 10.0  # times as far from the median as all nearer values


def is_logarithmic(points: Array) -> bool:
    """Whether points (n,) in order are positive and grow by one factor, of 1e-6, and not by one step."""
    if len(points) < 3 or points[0] <= 0 or points[-1] < 3 * points[0]:
        return False
    ratios = points[1:] / points[:-1]
    return bool(np.ptp(ratios) <= 1e-6 * ratios[0])


def spans(values: Sequence[float] | Array, decades: float = 3.0) -> bool:
    """Whether the finite values are all positive and span more than so many decades."""
    finite = np.asarray(values, float)
    finite = finite[np.isfinite(finite)]
    return bool(len(finite) and finite.min() > 0 and finite.max() > 10**decades * finite.min())


@dataclass(frozen=True)
class TimeAxis:
    """A time axis for saved times t (T,): positions x = (t - start) / unit (T',), the rows of results to draw, the label.

    notes: on times that are left out of an axis whose scale was chosen.
    """

    t: Array
    x: Array
    rows: Array
    start: float
    unit: float
    log: bool
    label: str
    notes: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether all positions are whole numbers, as those of updates."""
        return bool((self.x == np.round(self.x)).all())

    def positions(self, t: Any) -> Array:
        """Positions on the axis of times t (n,); on a logarithmic axis only of those after start."""
        x = (np.asarray(t, float) - self.start) / self.unit
        return x[x > 0] if self.log else x


def make_time_axis(t: Array, phrase: str = "", log: bool | None = None) -> TimeAxis:
    """The TimeAxis of saved times t (T,). phrase: their unit; log: whether it is logarithmic.

    By default it is if the times are geometric, from 0 or from the first one. Powers of 1000 go into the label. Raises ParamError if
    it is to be logarithmic and no time is positive.
    """
    t = np.asarray(t, float)
    suffix = f" ({literal(phrase)})" if phrase else ""
    starts = [start for start in (0.0, float(t[0])) if log is not False and is_geometric(t[t > start] - start)]
    if log or starts:
        start = starts[0] if starts else 0.0
        rows = np.flatnonzero(t > start)
        if not len(rows):
            raise ParamError(f"log x: no saved time is > 0, the last is {t[-1]:g}; leave x out of log")
        count = len(t) - len(rows)
        times = f"$t$ = {t[0]:g}" if count == 1 else f"{count} of {counted(len(t), 'time')}"
        notes = (f"{times}, not shown (log)",) if log and count else ()
        since = f" − {start:g}" if start else ""
        return TimeAxis(t, t[rows] - start, rows, start, 1.0, True, f"$t${since}{suffix}", notes)
    largest = float(np.max(np.abs(t)))
    power = 3 * floor(log10(largest) / 3) if largest > 0 and not 1e-2 <= largest < 1e4 else 0
    unit = 10.0**power
    return TimeAxis(t, t / unit, np.arange(len(t)), 0.0, unit, False, f"$t / 10^{{{power}}}${suffix}" if power else f"$t${suffix}")


def is_geometric(x: Array) -> bool:
    """Whether x (n,) > 0 grows by a constant factor over two decades or more; the last step may be shorter."""
    if len(x) < 4 or np.any(np.diff(x) <= 0):
        return False
    ratios = np.diff(np.log(x))
    # users often round times to a digit or two: 1, 3, 10, 30
    return bool(x[-1] / x[0] > 99 and np.all(np.abs(ratios[:-1] / np.median(ratios) - 1) < 0.2) and ratios[-1] < 1.2 * ratios[0])


def cell_edges(x: Array, log: bool) -> Array:
    """Borders (n + 1,) of cells around x (n,); the outer borders are the first and the last x. log: geometric middles."""
    if len(x) == 1:
        return np.array([x[0], x[0] + (abs(x[0]) or 1.0)])
    middle = np.sqrt(x[1:] * x[:-1]) if log else (x[1:] + x[:-1]) / 2
    return np.concatenate([x[:1], middle, x[-1:]])


def time_text(t: float) -> str:
    """A time as text of three digits, or of all its digits before the point: 0.0312, 2500, a power of ten in a formula."""
    text = f"{t:.0f}" if 1e3 <= abs(t) < 1e6 else f"{t:.3g}"
    return "−" * bool(t < 0) + power_text(float(f"{abs(t):.2g}")) if "e" in text else text


def check_axis(scale: str, name: str, points: Array) -> None:
    """Raises ParamError if the numbers (n,) along a logarithmic axis, in order, are not all positive. scale: `x` or `y`."""
    if len(points) and points[0] <= 0:
        raise ParamError(
            f"log {scale}: {name} goes down to {points[0]:g}, and a logarithmic axis needs values > 0; leave {scale} out of log"
        )


def make_log(axes: Axes, label: str) -> list[str]:
    """Makes the value axis logarithmic; lines leave out values <= 0. Returns notes. label: of the quantity.

    Where no value is positive the axis stays linear.
    """
    lines = [line for line in axes.get_lines() if line.get_transform() is axes.transData]
    values: list[Array] = [np.ma.filled(np.ma.masked_invalid(np.ma.asarray(line.get_ydata(), float)), np.nan) for line in lines]
    finite = np.concatenate([v[np.isfinite(v)] for v in values]) if values else np.empty(0)
    bands = [np.asarray(p.vertices)[:, 1] for c in axes.collections if isinstance(c, PolyCollection) for p in c.get_paths()]
    if not (finite > 0).any() and not any((edge > 0).any() for edge in bands):
        return [f"{label}: no value > 0, so that its axis is linear"]
    for line, value in zip(lines, values, strict=True):
        line.set_ydata(np.where(value > 0, value, np.nan))
    axes.set_yscale("log")
    axes.autoscale(axis="y")
    notes = [left_out(label, finite)] * bool((finite <= 0).any())
    return notes + [f"{label}: the band reaches values ≤ 0, beyond the axis"] * any((edge <= 0).any() for edge in bands)


def left_out(label: str, finite: Array) -> str:
    """How many of finite values (n,) are <= 0, as a note."""
    return f"{label}: {int((finite <= 0).sum())} of {counted(len(finite), 'value')} ≤ 0, not shown (log)"


def set_limits(axes: Axes, low: float, high: float) -> None:
    """Sets the limits of the value axis; lines end at them."""
    for line in axes.get_lines():
        line.set_clip_on(line.get_transform() is axes.transData or line.get_clip_on())  # leaders of labels are beside the panel
    axes.set_ylim(low, high)
    few_log_ticks(axes)


def cut_below(axes: Axes, floor: float, *, whole: bool) -> list[str]:
    """Lets a logarithmic value axis end at a hundredth of floor if it goes further down, unless whole; returns a note."""
    low, high = axes.get_ylim()
    if whole or axes.get_yscale() != "log" or not low < BELOW * floor < high:
        return []
    set_limits(axes, BELOW * floor, high)
    return [CUT]


def shade_below(axes: Axes, floor: float, *, whole: bool) -> list[str]:
    """Shades the part of a logarithmic value axis below floor, down to a hundredth of it or whole; returns notes."""
    low, high = axes.get_ylim()
    if axes.get_yscale() != "log" or low >= floor:
        return []
    cut = cut_below(axes, floor, whole=whole)
    low = axes.get_ylim()[0]  # before the shade, below which an axis would make room
    axes.axhspan(low, min(floor, high), color=GREY, lw=0, zorder=0)
    axes.set_ylim(low, high)
    few_log_ticks(axes)
    return [NOTE, *cut]


@dataclass(frozen=True)
class ColorScale:
    """A norm, the name of its colours, at which ends values lie beyond it (`neither`, `min`, `max`, `both`), and notes."""

    norm: Normalize
    cmap: str
    extend: Any = "neither"
    notes: tuple[str, ...] = ()

    def shown(self, values: Any) -> tuple[Any, dict[str, Any]]:
        """(values with what is not finite masked, words for matplotlib); what lies below a logarithmic scale is pale."""
        shown, colors = np.ma.masked_invalid(values), colormaps[self.cmap]
        if isinstance(self.norm, LogNorm) and self.norm.vmin is not None:
            shown = np.ma.where(shown < self.norm.vmin, self.norm.vmin / 2, shown)  # LogNorm drops values <= 0
            colors = colors.with_extremes(under=PALE)
        return shown, {"norm": self.norm, "cmap": colors}


def color_scale(values: Array, label: str, log: bool | None = None, *, floor: float = 0.0, robust: bool = False) -> ColorScale:
    """The ColorScale of values: diverging around 0 for both signs, logarithmic over three decades.

    log: whether it is logarithmic, None: by the values. floor: where logarithmic colours begin, unless all values lie below. robust: leave
    out few values far from all others, which have the colour at an end.
    """
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if (log or (log is None and spans(finite))) and high > 0:
        low = float(finite[finite > 0].min())
        high = high if high > low else 2 * low
        notes = [left_out(label, finite)] * bool((finite <= 0).any())
        if low < floor:
            notes.append(NOTE if high > floor else ALL_BELOW)
            low = floor if high > floor else low
        return ColorScale(LogNorm(low, high), SEQUENTIAL, notes=tuple(notes))
    notes = [f"{label}: no value > 0, so that its colours are linear"] * bool(log)
    extend = "neither"
    if robust and len(finite):
        low, high, extend, more = without_far(finite, label, "colours")
        notes += more
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


# without it one member that ran away makes a map of one colour
def limits(finite: Array, far: float = FAR) -> tuple[float, float]:
    """The smallest and the largest of values (n,), without few that are far off and would make all others one colour.

    far: how many times farther from the median than all that are nearer, of which some differ from it: where most values have settled at
    one number, the others are what there is to see.
    """
    middle = float(np.median(finite))
    distances = np.abs(finite - middle)
    order, few = np.sort(distances), max(int(SHARE * len(finite)), 1)
    below, above = order[-1 - few : -1], order[-few:]
    gaps = np.flatnonzero((below > ALIKE * abs(middle)) & (above > far * below))
    inside = finite[distances <= (below[gaps[0]] if len(gaps) else order[-1])]
    shown = inside if np.ptp(finite) > far * np.ptp(inside) else finite
    return float(shown.min()), float(shown.max())


def without_far(finite: Array, label: str, scale: str, far: float = FAR) -> tuple[float, float, Any, list[str]]:
    """(low, high, ends beyond which values lie: `neither`, `min`, `max`, `both`, a note on these) of a scale of values (n,) by limits.

    scale: in words, `colours` or `axis`.
    """
    low, high = limits(finite, far)
    least, most = float(finite.min()), float(finite.max())
    beyond = int(((finite < low) | (finite > high)).sum())
    if not beyond:
        return low, high, "neither", []
    extend = "both" if least < low and most > high else "min" if least < low else "max"
    reach = {"both": f"{least:.3g} to {most:.3g}", "min": f"down to {least:.3g}", "max": f"up to {most:.3g}"}[extend]
    return low, high, extend, [f"{label}: {beyond} of {counted(len(finite), 'value')} beyond the {scale} ({reach})"]


def add_bar(axes: Axes, mesh: Any, label: str, scale: ColorScale, ticks: Any = None) -> None:
    """A colour bar above the axes with its label, pointed where values lie beyond it. ticks: default few round ones."""
    if ticks is None and isinstance(scale.norm, PowerNorm):
        ticks = root_ticks(float(scale.norm.vmax or 1.0))
    elif ticks is None and not isinstance(scale.norm, LogNorm):
        ticks = MaxNLocator(3, steps=[1, 2, 2.5, 5, 10])
    bar: Any = root_figure(axes).colorbar(
        mesh, ax=axes, location="top", pad=0.03, aspect=22, fraction=0.06, ticks=ticks, extend=scale.extend
    )
    places, slack = np.asarray(bar.get_ticks()), 1e-3 * (bar.vmax - bar.vmin)
    places = places[(places >= bar.vmin - slack) & (places <= bar.vmax + slack)]
    if not isinstance(scale.norm, LogNorm) and letter_count("".join(bar.formatter.format_ticks(places))) > LETTERS:
        bar.set_ticks(places[[0, -1]])
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=1.5, pad=0.8, which="both")
    few_log_ticks(bar.ax)
    bar.ax.minorticks_off()
    if isinstance(bar.formatter, ScalarFormatter):
        bar.formatter.set_useOffset(False)
        bar.formatter.set_locs(bar.get_ticks())
        label += power_of(bar.formatter)  # matplotlib would write the power of ten over the label
        bar.ax.xaxis.get_offset_text().set_visible(False)
    label += " (root scale)" * isinstance(scale.norm, PowerNorm)  # that of logarithms is seen by its numbers
    bar.set_label(label, labelpad=2.5)
