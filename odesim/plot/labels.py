"""Labels of a picture: quantities as symbols, names at the ends of lines, ticks whose labels have room."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import floor, log10
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, MaxNLocator, ScalarFormatter
from matplotlib.transforms import ScaledTranslation

from odesim.base.arrays import Array
from odesim.plot.style import SMALL, RoundLocator, break_lines, can_draw, compute_layout, literal, power_of, root_figure

LEADER_START, LEADER_END, NAME_START = 0.5, 2.0, 2.3  # mm right of the axes: start and end of a leader, start of the name
LEADER: Any = {"color": "#b4b4b4", "lw": 0.4, "clip_on": False}  # thin and grey, unlike a curve
ALIKE = 0.012  # of the height of a panel, about a line's width: ends that are no farther apart are one
MANY = 4  # intervals between ticks, as few_ticks has them
# least space between two labels of ticks beside each other, and one above the other, in heights of the type, which has some itself
TOUCH = {"x0": 0.7, "y0": 0.0}
SHIFT = 1.0  # heights of the type: how far a label may stand from the ends of its curves
GAP = 1.08  # least distance between the middles of two names, in heights of the type

GREEK = (
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|upsilon|phi|chi|psi|omega|"
    "Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega"
)
LETTER = rf"(?:{GREEK}|[A-Za-z])"
SYMBOL = re.compile(rf"({LETTER})(?:([0-9]+)|_([A-Za-z0-9]+))?_?")  # mu, C0, eta_Y; lambda_ dodges Python's word
WORD = re.compile("[A-Za-z][A-Za-z0-9_]*")
DERIVATIVE = re.compile(rf"d(\w+)_d({LETTER}(?:[0-9]+|_[A-Za-z0-9]+)?_?(?:_start)?)", re.ASCII)
LONG = 60  # letters of a name in a note
LETTERS = 80  # of a name: longer ones are cut


def symbol(name: str, index: Sequence[str] = (), *, most: int = 13) -> str:
    """A quantity's name and indices as a label: `$\\mu_{m}$` for mu[m], `$\\partial v/\\partial \\mu$` for dv_dmu; words stay words.

    The index may stand in the name, as in "mu[m]". A symbol is a letter, or the name of a Greek one, with a subscript or without, as in
    the model's LaTeX. A word has its indices below it too, unless they are words; more than `most` letters are broken into lines.
    A derivative has the axes of what is derived: those of the parameter are left out, dv_dv_start is by the start v(0).
    """
    head, bracket, inside = name.partition("[")
    if bracket and not index:
        return symbol(head, inside.rstrip("]").replace(" ", "").split(","), most=most)
    if pair := DERIVATIVE.fullmatch(name):
        return derivative(pair[1], pair[2], index)
    letters = to_math(name)
    indices = [i if i.isdecimal() else to_math(i) for i in index]
    words = f"[{', '.join(index)}]" if index else ""
    if WORD.fullmatch(name) and not letters and index and all(indices):
        *lines, last = break_lines(name, most).split("\n")
        last = last.replace("_", r"\_")
        return "\n".join([*lines, rf"$\mathrm{{{last}}}_{{{','.join(map(str, indices))}}}$"])
    if not letters:
        return break_lines(name + words, most)
    if not index or not all(indices):
        return f"${letters}$" + literal(words)
    return f"${with_indices(letters, indices)}$"


def axis_names(name: str, dims: Sequence[str]) -> str:
    """The axes of a quantity as the label of an axis: `$l$`, and for those of the parameter of a derivative `entry of $\\mu$`."""
    pair = DERIVATIVE.fullmatch(name)
    below = pair[2] if pair else ""
    entry = f"entry of {symbol(below.removesuffix('_start'))}" + "(0)" * below.endswith("_start")
    names = [entry if below and re.fullmatch(rf"{below}_\w+", dim) else symbol(dim) for dim in dims]
    return ", ".join(dict.fromkeys(names))


def array_symbol(name: str, dims: Sequence[str], shape: Sequence[int]) -> str:
    """The symbol of an array with its axes; beside longer axes one of extent 1 is its index: `$\\alpha_{0,k}$`."""
    single = max(shape, default=1) > 1
    return symbol(name, ["0" if single and extent == 1 else dim for dim, extent in zip(dims, shape, strict=False)])


def component_name(index: Iterable[Any], shape: Sequence[int]) -> str:
    """The index of a component as text: `3`, or `1,0` of a matrix; beside longer axes without that of an axis of extent 1."""
    single = max(shape, default=1) > 1
    return ",".join(str(i) for i, extent in zip(index, shape, strict=True) if extent > 1 or not single)


def not_shown(names: Sequence[str]) -> list[str]:
    """The note, if any, on quantities that have no panel: they are written as the labels of panels are."""
    return [f"not shown: {', '.join(symbol(name, most=LONG) for name in names)}"] * bool(names)


def derivative(above: str, below: str, index: Sequence[str]) -> str:
    """The label of d(above)_d(below): `$\\partial v_{l}/\\partial \\mu$`; an index that is not of axes stands behind it."""
    by = to_math(below.removesuffix("_start"))
    start = "(0)" * below.endswith("_start")
    rest = [i for i in index if not re.fullmatch(rf"{below}_\w+", i)]
    of = to_math(above) or rf"\mathrm{{{above.replace('_', chr(92) + '_')}}}"
    indices = [None if i.isdecimal() else to_math(i) for i in rest]
    if all(indices):
        return rf"$\partial {with_indices(of, indices)}/\partial {by}{start}$"
    return rf"$\partial {of}/\partial {by}{start}$" + literal(f"[{', '.join(index)}]")


def with_indices(letters: str, indices: Sequence[str | None]) -> str:
    """A symbol with further indices below it."""
    if not indices:
        return letters
    head, _, below = (letters, "", "") if letters.startswith(r"\mathrm") else letters.partition("_")
    return f"{head}_{{{','.join([*[below] * bool(below), *map(str, indices)])}}}"


def to_math(name: str) -> str | None:
    """A symbol without dollar signs: `\\eta_{Y}` for eta_Y; None for words."""
    match = SYMBOL.fullmatch(name)
    if not match:
        return None
    letter, digits, words = match.groups()
    below = digits or (to_math(words) or rf"\mathrm{{{words}}}" if words else "")
    return (rf"\{letter}" if len(letter) > 1 else letter) + (f"_{{{below}}}" if below else "")


def spread_positions(wanted: Array, distance: float, *, low: float = 0.0, high: float = 1.0) -> Array:
    """Positions (n,) nearest to wanted (n,) in least squares, in the same order, at least `distance` apart, within [low, high].

    If n positions do not fit into [low, high], they are spread evenly over it.
    """
    from scipy.optimize import isotonic_regression

    n = len(wanted)
    if n > 1 and (n - 1) * distance >= high - low:
        distance = (high - low) / (n - 1)
    order = np.argsort(wanted, kind="stable")
    shift = distance * np.arange(n)
    # in order and at least `distance` apart is, less the shift, not falling: the nearest such numbers are an isotonic regression
    level = isotonic_regression(np.asarray(wanted, float)[order] - shift).x if n else np.empty(0)
    positions = np.empty(n)
    positions[order] = np.clip(level, low, high - shift[-1] if n else high) + shift
    return positions


@dataclass(frozen=True)
class EndLabels:
    """Labels at the right edge of axes, each with thin grey leaders to the ends of its curves.

    ends (n,): the last values of the curves, in data units. The layout reserves their width; gather() makes one label of those that would
    be far from their ends, place() moves them apart. Each Text has the labels of its curves as its own, a line each.
    groups: of each text, the numbers of its curves. last: the last place of the curves on the horizontal axis, in data units, where the
    leaders begin; None: its end.
    """

    axes: Axes
    names: tuple[str, ...]
    texts: tuple[Text, ...]
    ticks: tuple[Line2D, ...]
    ends: tuple[float, ...]
    groups: tuple[tuple[int, ...], ...]
    last: float | None = None

    @property
    def heights(self) -> Array:
        """Where the curves end (n,), in heights of the panel."""
        to_axes = self.axes.transData + self.axes.transAxes.inverted()
        return np.clip([to_axes.transform((self.axes.get_xlim()[1], end))[1] for end in self.ends], 0, 1)

    @property
    def type_height(self) -> float:
        """That of a label, in heights of the panel."""
        return SMALL / 72 * root_figure(self.axes).dpi / self.axes.get_window_extent().height

    def gather(self) -> "EndLabels":
        """With one label for curves whose ends are seen as one, and for neighbours whose labels would be far from their ends."""
        groups = gathered(self.heights, self.type_height)
        for text, group in zip(self.texts, groups, strict=False):
            text.set_text(joined([self.names[k] for k in group]))
            text.set_label("\n".join(str(self.ticks[k].get_label()).removeprefix("_") for k in group))
        for text in self.texts[len(groups) :]:
            text.remove()
        return replace(self, texts=self.texts[: len(groups)], groups=groups)

    def place(self) -> None:
        """Moves the labels apart. The layout of the figure must be final."""
        width, dpi = self.axes.get_window_extent().width, root_figure(self.axes).dpi
        ends = self.heights
        places = label_heights(ends, self.groups, self.type_height)
        reach = [1 + mm / 25.4 * dpi / width for mm in (LEADER_START, LEADER_END)]
        to_axes = self.axes.transData + self.axes.transAxes.inverted()
        early = [to_axes.transform((self.last, self.ends[0]))[0]] if self.last is not None and self.ends else []
        early = [x for x in early if x < 1]
        for text, group, place in zip(self.texts, self.groups, places, strict=True):
            text.set_y(place)
            for k in group:
                self.ticks[k].set_data([*early, *reach], [*[ends[k]] * len(early), ends[k], place])


def end_labels(axes: Axes, names: Sequence[str], ends: Sequence[float], last: float | None = None) -> EndLabels:
    """EndLabels of curves with last values ends (n,) at the place `last`; curves whose last value is not finite get no label.

    The curves are the last lines of the axes that have labels, in order.
    """
    labelled = [str(line.get_label()) for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    curves = [*[""] * len(names), *labelled][len(labelled) :]
    transform = axes.transAxes + ScaledTranslation(NAME_START / 25.4, 0, root_figure(axes).dpi_scale_trans)
    finite = [(name, float(end), curve) for name, end, curve in zip(names, ends, curves, strict=True) if np.isfinite(end)]
    texts, ticks = [], []
    for name, _, curve in finite:
        label = axes.text(1, 0.5, name, transform=transform, fontsize=SMALL, va="center_baseline", ha="left")
        label.set_in_layout(True)
        (tick,) = axes.plot([1.0, 1.0], [0.5, 0.5], transform=axes.transAxes, label=f"_{curve}", **LEADER)
        tick.set_in_layout(False)
        texts.append(label)
        ticks.append(tick)
    groups = tuple((k,) for k in range(len(finite)))
    last_values = tuple(end for _, end, _ in finite)
    return EndLabels(axes, tuple(name for name, *_ in finite), tuple(texts), tuple(ticks), last_values, groups, last)


def label_heights(ends: Array, groups: Sequence[Sequence[int]], height: float) -> Array:
    """Where labels of this height stand, (m,), one for each group of ends (n,), apart and near the middle of their ends."""
    middle = np.array([(ends[list(group)].min() + ends[list(group)].max()) / 2 for group in groups])
    return spread_positions(middle, GAP * height, low=0.3 * height, high=1 - 0.3 * height)


def gathered(ends: Array, height: float) -> tuple[tuple[int, ...], ...]:
    """The numbers of the curves with these ends (n,), from below, in groups of which labels of this height stand near their ends.

    Ends that are seen as one are one group. While a label would be farther than SHIFT from its ends, the two groups whose ends are
    closest are one: so labels never fan out from one spot.
    """
    groups = alike(ends)
    while len(groups) > 1:
        middle = label_heights(ends, groups, 0.0)
        shift = np.abs(label_heights(ends, groups, height) - middle)
        if len(groups) * GAP * height <= 1 and shift.max() <= SHIFT * height:
            break
        k = int(np.argmin([ends[[*one, *other]].max() - ends[[*one, *other]].min() for one, other in pairwise(groups)]))
        groups[k : k + 2] = [[*groups[k], *groups[k + 1]]]
    return tuple(tuple(sorted(group)) for group in groups)


def alike(heights: Sequence[float] | Array) -> list[list[int]]:
    """The numbers of the curves that end at heights (n,) of a panel, in groups that are seen as one, from below."""
    groups: list[list[int]] = []
    for k in np.argsort(heights, kind="stable").tolist():
        if groups and heights[k] - heights[groups[-1][0]] <= ALIKE:
            groups[-1].append(k)
        else:
            groups.append([k])
    return [sorted(group) for group in groups]


def joined(names: Sequence[str]) -> str:
    """Several names as one: `0, 1`, `0 … 7` for indices in a row, else `0, 3, +5`: the first two, of pairs one, and how many more."""
    last = [name.rpartition(",") for name in names]
    numbers = [int(number) if number.isdecimal() else None for *_, number in last]
    row = len({head for head, *_ in last}) == 1 and numbers[0] is not None and numbers == [*range(numbers[0], numbers[0] + len(names))]
    if len(names) > 2 and row:
        return f"{names[0]} … {names[-1]}"
    # a column is as wide as its widest label
    comma, most = ("; ", 1) if "," in names[0] else (", ", 2)
    shown = names if len(names) == 2 else names[:most]
    return comma.join([*shown, *[f"+{len(names) - len(shown)}"] * (len(names) > len(shown))])


def place_labels(figure: Figure, labels: Sequence[EndLabels], *, laid_out: bool = False) -> None:
    """Computes the layout of the figure a last time, then places all labels and leaves out ticks whose labels would touch.

    laid_out: whether the layout is computed already, which takes a tenth of the time of a picture.
    """
    named = [(name_power(axes.xaxis), name_power(axes.yaxis)) for axes in figure.axes]
    laid_out = laid_out and not any(map(any, named))
    if not laid_out and (labels or any(beside for _, beside in named)):
        compute_layout(figure)  # how high panels are says which labels have room; and these, how wide panels are
    for axes, (_, power) in zip(figure.axes, named, strict=True):
        if power and least_length(axes) > axes.get_window_extent().height:
            axes.set_ylabel(f"{without_power(axes.yaxis)}\n{power}")
    labels = [label.gather() for label in labels]
    compute_layout(figure, last=True)
    for axes in figure.axes:
        fit_beside(axes)
    for label in labels:
        label.place()
    fewest: dict[tuple[float, float], int] = {}  # by limits: panels of one time axis have the same ticks
    for axes in figure.axes:
        thin_ticks(axes.yaxis)
        fewest[axes.get_xlim()] = min(thin_ticks(axes.xaxis), fewest.get(axes.get_xlim(), MANY))
    for axes in figure.axes:
        if fewest[axes.get_xlim()] < MANY and isinstance(axes.xaxis.get_major_locator(), MaxNLocator | RoundLocator):
            set_intervals(axes.xaxis, fewest[axes.get_xlim()])


def name_power(axis: Any) -> str:
    """Moves the power of ten of an axis into its label, and returns it, or "".

    Matplotlib writes it over that of a horizontal axis, and above a panel. It stays as it is from then on, whichever ticks are left out.
    """
    formatter = axis.get_major_formatter()
    if not (isinstance(formatter, ScalarFormatter) and axis.get_label_text() and axis.offsetText.get_visible()):
        return ""
    (low, high), places = sorted(axis.get_view_interval()), np.asarray(axis.get_majorticklocs())
    formatter.set_locs(places.tolist())
    power = formatter.get_offset()
    if not power or (formatter.offset and axis.axis_name == "y"):  # a number to add is longer than a panel is high
        return ""
    if formatter.offset:
        formatter.set_useOffset(formatter.offset)
    else:
        largest = np.abs(places[(places >= low) & (places <= high)]).max()
        formatter.set_powerlimits((floor(log10(largest)),) * 2)
    power = power_of(formatter)
    axis.set_label_text(f"{axis.get_label_text()}{power}")
    axis.offsetText.set_visible(False)
    return power


def without_power(axis: Any) -> str:
    """The label of an axis without the power of ten that name_power() wrote."""
    formatter, text = axis.get_major_formatter(), str(axis.get_label_text())
    named = isinstance(formatter, ScalarFormatter) and not axis.offsetText.get_visible()
    return text.removesuffix(power_of(formatter)).rstrip() if named else text


def least_length(axes: Axes) -> float:
    """How long the label beside a panel is in the smallest type, in pixels."""
    label: Any = axes.yaxis.label
    return float(label.get_window_extent().height * min(1.0, SMALL / label.get_fontsize()))


def fit_beside(axes: Axes) -> None:
    """Makes the label beside a panel smaller, down to SMALL, where it is longer than the panel is high."""
    label: Any = axes.yaxis.label
    room, length = axes.get_window_extent().height, label.get_window_extent().height
    if length > room:
        label.set_fontsize(max(SMALL, label.get_fontsize() * room / length))


def thin_ticks(axis: Any) -> int:
    """Gives an axis fewer ticks while their labels touch; their largest number of intervals, or MANY if none touched.

    The layout of the figure must be final. On an axis with room for one number that is the one farthest from 0.
    """
    intervals, side = MANY, ("x0", "x1") if axis.axis_name == "x" else ("y0", "y1")
    while isinstance(axis.get_major_locator(), MaxNLocator | RoundLocator):
        labels = [label for label in axis.get_ticklabels() if label.get_visible() and label.get_text()]
        boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: getattr(box, side[0]))
        if all(getattr(one, side[1]) + TOUCH[side[0]] * one.height < getattr(other, side[0]) for one, other in pairwise(boxes)):
            break
        if intervals == 1:
            low, high = sorted(axis.get_view_interval())
            axis.set_major_locator(FixedLocator([max((x for x in axis.get_majorticklocs() if low <= x <= high), key=abs)]))
            break
        intervals -= 1
        set_intervals(axis, intervals)
    return intervals


def set_intervals(axis: Any, most: int) -> None:
    """Limits the intervals between ticks of an axis."""
    axis.get_major_locator().set_params(nbins=most)


def place_names(names: Sequence[str]) -> list[str]:
    """Names as they are drawn, cut where long; `#7` for the one at place 7 with letters that the font of pictures does not have."""
    return [short(str(name)) if can_draw(str(name)) else f"#{place}" for place, name in enumerate(names)]


def short(name: str) -> str:
    """A name of at most LETTERS letters."""
    return name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"
