"""Names of quantities as symbols, and labels at the ends of lines, moved apart so that they do not overlap."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from odesim.base.arrays import Array
from odesim.plot.style import SMALL, break_lines, literal

LEADER_START, LEADER_END, NAME_START = 0.5, 2.0, 2.3  # mm right of the axes: start and end of a leader, start of the name
LEADER: Any = {"color": "#b4b4b4", "lw": 0.4, "clip_on": False}  # thin and grey, unlike a curve
ALIKE = 1e-9  # difference of ends, of the largest, up to which curves are one
MANY = 4  # intervals between ticks, as few_ticks has them
TOUCH = 0.4  # least space between two labels of ticks, in heights of the type
GAP = 1.08  # least distance between the middles of two names, in heights of the type

GREEK = (
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|upsilon|phi|chi|psi|omega|"
    "Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega"
)
LETTER = rf"(?:{GREEK}|[A-Za-z])"
SYMBOL = re.compile(rf"({LETTER})(?:([0-9]+)|_([A-Za-z0-9]+))?_?")  # mu, C0, eta_Y; lambda_ dodges Python's word
WORD = re.compile("[A-Za-z][A-Za-z0-9_]*")
DERIVATIVE = re.compile(r"d(.+)_d(.+)")


def symbol(name: str, index: Sequence[str] = (), *, most: int = 13) -> str:
    """A quantity's name and indices as a label: `$\\mu_{m}$` for mu[m], `$\\partial v/\\partial \\mu$` for dv_dmu; words stay words.

    The index may stand in the name, as in "mu[m]". A symbol is a letter, or the name of a Greek one, with a subscript or without, as in
    the model's LaTeX. A word has its indices below it too, unless they are words; more than `most` letters are broken into lines.
    """
    head, bracket, inside = name.partition("[")
    if bracket and not index:
        return symbol(head, inside.rstrip("]").split(","), most=most)
    pair = DERIVATIVE.fullmatch(name)
    letters = [to_math(part) for part in (pair.groups() if pair else (name,))]
    indices = [i if i.isdecimal() else to_math(i) for i in index]
    words = f"[{', '.join(index)}]" if index else ""
    if WORD.fullmatch(name) and not all(letters) and index and all(indices):
        *lines, last = break_lines(name, most).split("\n")
        last = last.replace("_", r"\_")
        return "\n".join([*lines, rf"$\mathrm{{{last}}}_{{{','.join(map(str, indices))}}}$"])
    if not all(letters):
        return break_lines(name + words, most)
    words = literal(words)
    if pair:
        return rf"$\partial {letters[0]}/\partial {letters[1]}$" + words
    if not index or not all(indices):
        return f"${letters[0]}$" + words
    head, _, below = str(letters[0]).partition("_")
    return f"${head}_{{{','.join([*[below] * bool(below), *map(str, indices)])}}}$"


def to_math(name: str) -> str | None:
    """A symbol without dollar signs: `\\eta_{Y}` for eta_Y; None for words."""
    found = SYMBOL.fullmatch(name)
    if not found:
        return None
    letter, digits, words = found.groups()
    below = digits or (to_math(words) or rf"\mathrm{{{words}}}" if words else "")
    return (rf"\{letter}" if len(letter) > 1 else letter) + (f"_{{{below}}}" if below else "")


def spread_positions(wanted: Array, distance: float, *, low: float = 0.0, high: float = 1.0) -> Array:
    """Positions (n,) nearest to wanted (n,) in least squares, in the same order, at least `distance` apart, within [low, high].

    If n positions do not fit into [low, high], they are spread evenly over it.
    """
    n = len(wanted)
    if n > 1 and (n - 1) * distance >= high - low:
        distance = (high - low) / (n - 1)
    order = np.argsort(wanted, kind="stable")
    shift = distance * np.arange(n)
    # pool adjacent violators: neighbours that come too close become one block at their mean
    blocks: list[tuple[float, int]] = []
    for value in np.asarray(wanted, float)[order] - shift:
        mean, count = float(value), 1
        while blocks and blocks[-1][0] >= mean:
            other, more = blocks.pop()
            mean, count = (mean * count + other * more) / (count + more), count + more
        blocks.append((mean, count))
    level = np.concatenate([np.full(count, mean) for mean, count in blocks]) if blocks else np.empty(0)
    positions = np.empty(n)
    positions[order] = np.clip(level, low, high - shift[-1] if n else high) + shift
    return positions


@dataclass(frozen=True)
class EndLabels:
    """Labels at the right edge of axes, each with a thin grey leader to the end of its curve.

    ends (n,): the last values of the curves, in data units. The layout reserves their width; place() moves them apart.
    last: the last place of the curves on the horizontal axis, in data units, where the leaders begin; None: its end.
    """

    axes: Axes
    texts: tuple[Text, ...]
    ticks: tuple[Line2D, ...]
    ends: tuple[float, ...]
    last: float | None = None

    def place(self) -> None:
        """Moves the labels apart. The layout of the figure must be final."""
        box = self.axes.get_window_extent()
        figure: Any = self.axes.get_figure(root=True)
        type_height = SMALL / 72 * figure.dpi
        to_axes = self.axes.transData + self.axes.transAxes.inverted()
        wanted = np.array([to_axes.transform((self.axes.get_xlim()[1], end))[1] for end in self.ends])
        half = 0.5 * type_height / box.height
        heights = spread_positions(np.clip(wanted, 0, 1), GAP * type_height / box.height, low=half * 0.6, high=1 - half * 0.6)
        reach = [1 + mm / 25.4 * figure.dpi / box.width for mm in (LEADER_START, LEADER_END)]
        early = [to_axes.transform((self.last, self.ends[0]))[0]] if self.last is not None and self.ends else []
        early = [x for x in early if x < 1]
        for text, tick, start, place in zip(self.texts, self.ticks, np.clip(wanted, 0, 1), heights, strict=True):
            text.set_y(place)
            tick.set_data([*early, *reach], [*[start] * len(early), start, place])


def end_labels(axes: Axes, names: Sequence[str], ends: Sequence[float], last: float | None = None) -> EndLabels:
    """EndLabels of curves with last values ends (n,) at the place `last`; curves whose last value is not finite get no label."""
    figure: Any = axes.get_figure(root=True)
    transform = axes.transAxes + ScaledTranslation(NAME_START / 25.4, 0, figure.dpi_scale_trans)
    texts, ticks, finite_ends = [], [], []
    for name, end in zip(names, ends, strict=True):
        if not np.isfinite(end):
            continue
        label = axes.text(1, 0.5, name, transform=transform, fontsize=SMALL, va="center_baseline", ha="left")
        label.set_in_layout(True)
        (tick,) = axes.plot([1.0, 1.0], [0.5, 0.5], transform=axes.transAxes, **LEADER)
        tick.set_in_layout(False)
        texts.append(label)
        ticks.append(tick)
        finite_ends.append(float(end))
    return EndLabels(axes, tuple(texts), tuple(ticks), tuple(finite_ends), last)


def component_labels(axes: Axes, names: Sequence[str], ends: Sequence[float]) -> EndLabels:
    """EndLabels of components, with one label for all that end alike."""
    groups = alike(names, ends)
    return end_labels(axes, [name for name, _ in groups], [end for _, end in groups])


def alike(names: Sequence[str], ends: Sequence[float]) -> list[tuple[str, float]]:
    """(name, end) of the curves with finite ends (n,); those whose ends are the same but for rounding have one name together."""
    finite = [k for k in range(len(names)) if np.isfinite(ends[k])]
    size = max((abs(ends[k]) for k in finite), default=0.0)
    groups: list[list[int]] = []
    for k in sorted(finite, key=lambda k: ends[k]):
        if groups and ends[k] - ends[groups[-1][-1]] <= ALIKE * size:
            groups[-1].append(k)
        else:
            groups.append([k])
    return [(joined([names[k] for k in sorted(group)]), float(ends[group[0]])) for group in groups]


def joined(names: Sequence[str]) -> str:
    """Several names as one: `0, 1`, or `0 … 7` for the first and the last of more."""
    return ", ".join(names) if len(names) < 3 else f"{names[0]} … {names[-1]}"


def place_labels(figure: Figure, labels: Sequence[EndLabels]) -> None:
    """Computes the layout of the figure a last time, then places all labels and leaves out ticks whose labels would touch."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")  # labels move only within their reserved space
    for label in labels:
        label.place()
    fewest: dict[tuple[float, float], int] = {}  # by limits: panels of one time axis have the same ticks
    for axes in figure.axes:
        fewest[axes.get_xlim()] = min(thin_ticks(axes), fewest.get(axes.get_xlim(), MANY))
    for axes in figure.axes:
        if fewest[axes.get_xlim()] < MANY and isinstance(axes.xaxis.get_major_locator(), MaxNLocator):
            set_intervals(axes, fewest[axes.get_xlim()])


def thin_ticks(axes: Axes) -> int:
    """Gives a linear horizontal axis fewer ticks while their labels touch; their largest number of intervals, or MANY if none touched.

    The layout of the figure must be final.
    """
    intervals = MANY
    while intervals > 1 and isinstance(axes.xaxis.get_major_locator(), MaxNLocator):
        boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_visible() and label.get_text()]
        if all(left.x1 + TOUCH * left.height < right.x0 for left, right in pairwise(boxes)):
            break
        intervals -= 1
        set_intervals(axes, intervals)
    return intervals


def set_intervals(axes: Axes, most: int) -> None:
    """Limits the intervals between ticks of the horizontal axis."""
    axes.xaxis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
