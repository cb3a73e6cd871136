"""The plot style of the project: 80 mm wide, type of 6 to 8 points, colours that colour-blind readers can distinguish, few ticks."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from math import ceil, floor, log10
from string import ascii_lowercase
from typing import Any

import numpy as np
from matplotlib import colormaps, rc_context, rcdefaults, rcParams
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.rcsetup import cycler
from matplotlib.ticker import Formatter, Locator, MaxNLocator, NullFormatter, ScalarFormatter

from odesim.base.errors import escaped
from odesim.base.memo import ForkLock

WIDTH = 80.0  # mm: one column of a two-column page
SMALL, NOTE, NORMAL, LARGE = 6.0, 6.5, 7.0, 8.0  # type, in points at true size
PAGE = WIDTH * SMALL / 5.0  # mm: of many panels; printed 80 mm wide its smallest letters have 5 points
DPI = 400  # of a png: 1260 dots across
INK, FAINT = "#222222", "#8c8c8c"

# the colours of Okabe and Ito without yellow, which is hard to see on white (jfly.uni-koeln.de/color)
CATEGORIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))  # so that lines stay apart in grey
MARKERS = "os^Dv*"
ON_CURVE = "\n_"  # in the label of a mark, between its own name and that of the curve on which it stands: a page turns both off together
SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"

# matplotlib's settings, and what its formulas are parsed with, are those of a process
DRAWING = ForkLock()
STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture everywhere
    "font.size": NORMAL,
    "mathtext.fontset": "dejavusans",
    "axes.titlesize": NORMAL,
    "axes.labelsize": NORMAL,
    "figure.titlesize": LARGE,
    "figure.labelsize": NORMAL,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.linewidth": 0.5,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "xtick.minor.width": 0.3,
    "ytick.minor.width": 0.3,
    "xtick.major.size": 2.0,
    "ytick.major.size": 2.0,
    "xtick.minor.size": 1.2,
    "ytick.minor.size": 1.2,
    "xtick.major.pad": 1.8,
    "ytick.major.pad": 1.8,
    "axes.prop_cycle": cycler(color=CATEGORIES),
    "axes.labelpad": 2.0,
    "axes.titlepad": 3.0,
    "axes.formatter.limits": (-3, 4),
    "axes.formatter.offset_threshold": 7,  # digits that an offset must save: 0.33714 is read more easily than 4 and "x 1e-5 + 0.3371"
    "axes.formatter.use_mathtext": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.0,
    "lines.markersize": 2.5,
    "patch.linewidth": 0.5,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "legend.handletextpad": 0.5,
    "legend.borderaxespad": 0.2,
    "legend.labelspacing": 0.3,
    "figure.facecolor": "white",
    "figure.dpi": 160,  # of notebooks
    "savefig.facecolor": "white",
    "pdf.fonttype": 42,  # text stays text
    "svg.fonttype": "path",
    "svg.hashsalt": "odesim",  # the same picture, the same bytes
}
MOST = 6  # ticks
DECADES = 2.0  # from which on ticks are powers of ten alone
PLAIN = (1e-3, 1e4)  # between which numbers are written out


class Picture(Figure):
    """A Figure that is saved while no other thread draws."""

    def savefig(self, *args: Any, **words: Any) -> None:
        with DRAWING:
            DRAWING.check("drawing")
            super().savefig(*args, **words)


@contextmanager
def project_style(style: Any = STYLE) -> Iterator[None]:
    """A context in which matplotlib creates and draws figures in odesim's style, one thread after another.

    No setting of a matplotlibrc counts: one in the current folder may be a stranger's, and some name programs to run.

    Parameters
    ----------
    style : dict
        Settings of matplotlib; default `odesim.plot.STYLE`.

    Returns
    -------
    context manager
        For `with`.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> with odesim.plot.project_style():
    ...     figure, axes = plt.subplots()
    >>> axes.spines["top"].get_visible()
    False
    >>> plt.close(figure)
    """
    with DRAWING:
        DRAWING.check("drawing")
        with rc_context():
            rcdefaults()
            rcParams.update(style)
            yield


def new_figure(height: float, *, width: float = WIDTH) -> Figure:
    """An empty Figure of width x height in mm, with an Agg canvas and constrained layout."""
    figure = Picture(figsize=(width / 25.4, height / 25.4), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    engine: Any = figure.get_layout_engine()
    engine.set(w_pad=0.02, h_pad=0.02, wspace=0.05, hspace=0.03)
    return figure


@contextmanager
def picture(title: str, height: float, *, width: float = WIDTH) -> Iterator[Figure]:
    """A context in the project's style with a new Figure of width x height in mm, which gets its title at the end."""
    with project_style():
        figure = new_figure(height, width=width)
        yield figure
        figure.suptitle(title)


def root_figure(artist: Artist) -> Figure:
    """The Figure that an artist is drawn in, that of a subfigure too."""
    figure = artist.get_figure(root=True)
    assert figure is not None, "an artist that was removed"
    return figure


def compute_layout(figure: Figure, *, last: bool = False) -> None:
    """Computes the places of all panels. last: from then on they stay, and words move only within the room they have."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        if last:
            figure.set_layout_engine("none")


def ordered_colors(n: int) -> list[Any]:
    """n colours from dark to light, for components in order. The lightest is still visible on white."""
    return [colormaps[SEQUENTIAL](0.86 * i / max(n - 1, 1)) for i in range(n)]


def distinct_colors(n: int) -> list[Any]:
    """n colours for components without an order: of few from dark to light, of more neighbours differ in hue, which shades would not."""
    return ordered_colors(n) if n < len(CATEGORIES) else [CATEGORIES[i % len(CATEGORIES)] for i in range(n)]


def few_ticks(*every: Axes, x: int = 4, y: int = 5, whole: bool = False) -> None:
    """Limits the intervals between ticks of linear axes of these panels to x and y. whole: y ticks at whole numbers only."""
    for axes in every:
        if axes.get_xscale() == "linear":
            axes.xaxis.set_major_locator(MaxNLocator(x, steps=[1, 2, 2.5, 5, 10]))
        if axes.get_yscale() == "linear":
            axes.yaxis.set_major_locator(MaxNLocator(y, steps=[1, 2, 5, 10] if whole else [1, 2, 2.5, 5, 10], integer=whole))


def few_log_ticks(*every: Axes) -> None:
    """Gives logarithmic axes of these panels few ticks at round numbers, those of RoundLocator."""
    for axis in (axis for axes in every for axis in (axes.xaxis, axes.yaxis)):
        if axis.get_scale() == "log":
            axis.set_major_locator(RoundLocator())
            axis.set_major_formatter(RoundFormatter())
            axis.set_minor_formatter(NullFormatter())


def letter_panels(*axes: Axes) -> None:
    """Writes a bold a, b, c, ... above the left edge of these panels."""
    for letter, ax in zip(ascii_lowercase, axes, strict=False):
        ax.set_title(letter, loc="left", fontweight="bold")


def literal(text: str) -> str:
    """text that matplotlib shows literally: dollar signs start no formula, control characters are escaped."""
    return escaped(text).replace("$", r"\$")


def can_draw(text: str) -> bool:
    """Whether the font of the pictures has every letter of text; what it does not have would be a box."""
    return all(ord(letter) in letters() for letter in escaped(text))


@cache
def letters() -> frozenset[int]:
    """The code points of the font of the pictures."""
    return frozenset(get_font(findfont(STYLE["font.family"])).get_charmap())


def break_lines(text: str, most: int = 13) -> str:
    """text in lines of about `most` letters, broken after spaces and underscores and before brackets."""
    lines = [""]
    for piece in re.findall(r"\[?[^ _\[]*[ _]?", text):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > most:
            lines.append("")
        lines[-1] += piece
    return literal("\n".join(line.rstrip(" ") for line in lines))


class RoundLocator(Locator):
    """At most so many ticks at powers of ten; below two decades at 1, 2 and 5 of each, or 1 and 3.

    Where that is a single tick: round numbers at even distances.
    """

    most = MOST

    # matplotlib's LogLocator and LogFormatterSciNotation were drawn beside it: below two decades they label 2, 3, 4 and 6 of each decade,
    # which touch in a panel of 30 mm, write 7 10^2 for 700, and over 14 decades leave three ticks.

    def set_params(self, nbins: int = MOST - 1) -> None:
        """Limits the number of intervals, as matplotlib's MaxNLocator."""
        self.most = nbins + 1

    def __call__(self) -> Any:
        """The ticks within the limits of the axis."""
        axis: Any = self.axis
        return self.tick_values(*axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """The ticks within the limits, which are positive."""
        low, high = sorted((vmin, vmax))
        if not 0 < low < high < np.inf:
            return np.array([])
        first, last = floor(log10(low)), ceil(log10(high))
        if high >= 10**DECADES * low:
            powers = inside(10.0 ** np.arange(first, last + 1), low, high)
            return self.some(powers)
        for factors in ((1, 2, 5),) if is_plain(low, high) else ((1,), (1, 3), (1, 2, 5)):  # few where labels are long
            ticks = inside(np.array([k * 10.0**n for n in range(first, last + 1) for k in factors]), low, high)
            if len(ticks) > 1:
                return self.some(ticks)
        ticks = inside(MaxNLocator(3, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high), low, high)
        return self.some(ticks if is_plain(low, high) or len(ticks) < 3 else ticks[[0, -1]])

    def some(self, ticks: Any) -> Any:
        """As many of the ticks (n,) as are wanted, the last one with them."""
        every = -(-len(ticks) // self.most)
        return ticks[(len(ticks) - 1) % every :: every] if every > 1 else ticks


class RoundFormatter(Formatter):
    """Ticks as they are written by hand: 0.2, 50, 10^5, 2 10^5."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The tick x as text; `10^5` where the axis shows powers of ten alone."""
        axis: Any = self.axis
        low, high = sorted(axis.get_view_interval())
        return f"{x:g}" if is_plain(low, high) else power_text(x)


def power_text(x: float) -> str:
    """The number x > 0 with a power of ten: 10^5, 2 10^5."""
    power = floor(log10(x) + 1e-9)
    factor = float(f"{x / 10.0**power:.6g}")
    return rf"$\mathdefault{{10^{{{power}}}}}$" if factor == 1 else rf"$\mathdefault{{{factor:g}\times10^{{{power}}}}}$"


def power_of(formatter: Formatter) -> str:
    """How the label of an axis ends if its ticks count a power of ten, ` / 10^{-3}`; else "".

    Ticks are the quantity over that power, as those of times are: beside a label, "x 10^-3" may mean either way. A number to add is as
    matplotlib writes it.
    """
    power = formatter.get_offset()
    if not (isinstance(formatter, ScalarFormatter) and formatter.offset):
        power = power.replace(r"\times", r"/\,")
    return f" {power}".rstrip()


def is_plain(low: float, high: float) -> bool:
    """Whether numbers between these limits are written out."""
    return PLAIN[0] < low and high < PLAIN[1] and high < 10**DECADES * low


def inside(ticks: Any, low: float, high: float) -> Any:
    """The ticks (n,) within the limits, but for rounding."""
    return ticks[(ticks >= low * (1 - 1e-9)) & (ticks <= high * (1 + 1e-9))]
