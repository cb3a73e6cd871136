"""Pictures of what odesim.dynamics computes: rest states, branches, Lyapunov exponents, eigenvalues, fits, sensitivities."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from odesim.base.arrays import Array, entry
from odesim.base.errors import counted
from odesim.plot.labels import EndLabels, end_labels, symbol
from odesim.plot.layout import Block, add_panels, cells_in_rows, description, finish
from odesim.plot.scales import TimeAxis, make_time_axis
from odesim.plot.style import CATEGORIES, FAINT, INK, PAGE, WIDTH, few_ticks, literal, ordered_colors, power_text, project_style

if TYPE_CHECKING:
    import xarray

HEIGHT = 42.0  # mm, of a panel
ONE = [(0, 0)]  # the cell of a single panel
MOST = 3  # quantities that are drawn, each in a panel
MODES = 40  # modes that are drawn, evenly chosen among more, with the first and the last
FACTORS = 10  # the largest, each with two bars
ZERO = 1e-14  # a loss that is rounding


def headed(
    axes: Axes | Sequence[Axes],
    data: "xarray.Dataset",
    what: str,
    notes: Sequence[str] = (),
    handles: Sequence[Artist] = (),
    labels: Sequence[EndLabels] = (),
    time_axis: TimeAxis | None = None,
) -> Figure:
    """The figure of these axes with a header: the model, what is drawn of it, and what it is. labels: of lines, which are placed.

    time_axis: of all panels, below which time is named.
    """
    title = ", ".join(filter(None, (literal(data.attrs["model"]), what)))
    panels = [axes] if isinstance(axes, Axes) else axes
    return finish(panels, labels, (title, notes, handles), time_axis=time_axis, about=description(data.attrs))


def time_axis_of(data: "xarray.Dataset", times: Array, discrete: bool = False) -> TimeAxis:
    """The linear axis of times (T,), whose unit is that of the model."""
    return make_time_axis(times, "updates" if discrete else str(data.attrs.get("time_unit", "") or ""), log=False)


# Rest states: their eigenvalues, and where they are, filled if nothing grows there.

COLORS = dict(zip(("stable", "neutral", "saddle", "unstable", "unknown"), (CATEGORIES[k] for k in (0, 2, 1, 3, 4)), strict=True))
INDEX, STATE = "growing directions", "rest state"


def figure_of_rest(data: "xarray.Dataset") -> Figure:
    """A Figure of the rest states of a Dataset of odesim.rest: eigenvalues in the complex plane, and loss against index, or states.

    Without a loss the states are drawn by their first two numbers, or the only one beside its fastest eigenvalue.
    """
    with project_style():
        plane, place = add_panels(Block([HEIGHT], cells_in_rows(2)), width=WIDTH)
        draw_eigenvalues(plane, data)
        notes = draw_places(place, data)
        for axes in (plane, place):
            few_ticks(axes)
            axes.margins(0.12)
        if place.get_xlabel() == INDEX:
            place.set_xlim(-0.5, float(data["index"].max()) + 0.5)
            place.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        if plane.get_ylabel() == STATE:
            plane.set_ylim(data.sizes["rest"] - 0.5, -0.5)
            plane.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        kinds = [kind for kind in COLORS if kind in data["stability"].values]
        dots = [Line2D([], [], ls="", marker="o", color=COLORS[kind], mfc=filled(kind), label=kind, ms=3.5) for kind in kinds]
        return headed(plane, data, counted(data.sizes["rest"], "rest state"), notes, dots)


def filled(stability: str) -> str:
    """The face of a dot: open where something grows."""
    return COLORS[stability] if stability in ("stable", "neutral") else "white"


def draw_eigenvalues(axes: Axes, data: "xarray.Dataset") -> None:
    """The eigenvalues of each state, and the line across which they grow; where all are real, each state has a row."""
    real = not np.any(data["eigenvalue_imag"].values)
    if data.attrs["discrete"] and real:
        axes.vlines([-1.0, 1.0], 0, 1, color=FAINT, lw=0.5, transform=axes.get_xaxis_transform())
    elif data.attrs["discrete"]:
        axes.set_aspect("equal", adjustable="datalim")
        turn = np.linspace(0, 2 * np.pi, 181)
        axes.plot(np.cos(turn), np.sin(turn), color=FAINT, lw=0.5)
    else:
        axes.axvline(0.0, color=FAINT, lw=0.5)
    for k, kind in enumerate(data["stability"].values):
        along, up = (data[f"eigenvalue_{part}"].values[k] for part in ("real", "imag"))
        axes.plot(along, up + k if real else up, "o", color=COLORS[str(kind)], mfc=filled(str(kind)), ms=3.5)
    what = "multiplier" if data.attrs["discrete"] else "eigenvalue"
    axes.set_xlabel(what if real else f"{what}, real part")
    axes.set_ylabel(STATE if real else "imaginary part")


def draw_places(axes: Axes, data: "xarray.Dataset") -> list[str]:
    """The rest states: loss against index, or two numbers of each; returns a note on losses that are rounding."""
    notes = list[str]()
    names = data.attrs["rest_states"].split()
    numbers = np.concatenate([data[name].values.reshape(data.sizes["rest"], -1) for name in names], axis=1)
    if "loss" in data and data["loss"].ndim == 1:
        x, y, labels = data["index"].values, data["loss"].values, (INDEX, "loss")
        tiny = (np.abs(y) < ZERO) & (y != 0)
        notes += [f"a loss below {power_text(ZERO)} is drawn as 0"] * bool(tiny.any())
        y = np.where(tiny, 0.0, y)
    else:
        ways = [entry(name, at) for name in names for at in np.ndindex(data[name].shape[1:])]
        x, y = numbers[:, 0], numbers[:, 1] if len(ways) > 1 else data["eigenvalue_real"].values[:, 0]
        labels = (label_of(ways[0]), label_of(ways[1]) if len(ways) > 1 else "eigenvalue, real part")
    for k, kind in enumerate(data["stability"].values):
        axes.plot(x[k], y[k], "o", color=COLORS[str(kind)], mfc=filled(str(kind)), ms=3.5)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    return notes


# Branches: one number of the rest states against the parameter, dashed where something grows.

MARKS = {"fold": ("o", CATEGORIES[1]), "branch": ("D", CATEGORIES[2]), "hopf": ("s", CATEGORIES[3])}
NAMES = {"fold": "fold", "branch": "branch point", "hopf": "Hopf point"}


def figure_of_branches(data: "xarray.Dataset") -> Figure:
    """A Figure of a Dataset of odesim.branch: the number of the states that varies most, against the parameter."""
    name, states = data.attrs["parameter"], data.attrs["rest_branches"].split()
    ways = [(state, at) for state in states for at in np.ndindex(data[state].shape[1:])]
    state, at = max(ways, key=lambda way: float(np.ptp(data[way[0]].values[(slice(None), *way[1])], axis=0)))
    x, y = data[name].values, data[state].values[(slice(None), *at)]
    with project_style():
        (axes,) = add_panels(Block([48.0], ONE, (1,)), width=WIDTH)
        for k in np.unique(data["branch"].values):
            rows = np.flatnonzero(data["branch"].values == k)
            grows = data["growing"].values[rows] > 0
            # a part goes on to the first point of the next one, so that the line has no gap
            cuts = [0, *(np.flatnonzero(np.diff(grows)) + 1).tolist(), len(rows)]
            for a, b in pairwise(cuts):
                part = rows[a : b + 1]
                axes.plot(x[part], y[part], color=FAINT if grows[a] else INK, ls="--" if grows[a] else "-")
        kinds = data["kind"].values
        for kind, (mark, color) in MARKS.items():
            those = kinds == kind
            axes.plot(data[f"special_{name}"].values[those], data[f"special_{state}"].values[(those, *at)], mark, color=color, ms=3.5)
        few_ticks(axes)
        axes.margins(0.05)
        axes.set_xlabel(label_of(name))
        axes.set_ylabel(label_of(entry(state, at)))
        unstable = data["growing"].values > 0
        legend = [Line2D([], [], color=INK, label="stable")] * (not unstable.all())
        legend += [Line2D([], [], color=FAINT, ls="--", label="not stable")] * bool(unstable.any())
        legend += [Line2D([], [], ls="", marker=m, color=c, ms=3.5, label=NAMES[kind]) for kind, (m, c) in MARKS.items() if kind in kinds]
        return headed(axes, data, "rest states", (), legend)


def figure_of_exponents(data: "xarray.Dataset") -> Figure:
    """A Figure of a Dataset of odesim.lyapunov: the mean of each exponent up to each time, by its rank, with its error at the end."""
    with project_style():
        (axes,) = add_panels(Block([HEIGHT], ONE, (1,)), width=WIDTH)
        axes.axhline(0.0, color=FAINT, lw=0.5)
        time_axis = time_axis_of(data, data["time"].values, data.attrs["lyapunov"] == 2)
        times, values, errors = time_axis.x, data["value"].values, data["error"].values
        for k, color in enumerate(ordered_colors(len(values))):
            axes.plot(times, data["running"].values[:, k], color=color)
            axes.errorbar(times[-1], values[k], errors[k], color=color, capsize=1.5, marker="o", ms=2.0)
        few_ticks(axes)
        late = data["running"].values[len(times) // 10 :]  # the first means are of a few pieces, and far off
        ends = late[np.isfinite(late)] if np.isfinite(late).any() else np.zeros(1)  # -inf: a direction that one update loses
        low, high = float(np.min(ends)), float(np.max(ends))
        axes.set_ylim(low - 0.15 * (high - low + 1e-12), max(high, 0.0) + 0.15 * (high - low + 1e-12))
        axes.set_ylabel("mean exponent")
        ends = ranked(axes, range(len(values)), values.tolist(), float(times[-1]))
        return headed(axes, data, f"Kaplan-Yorke dimension {float(data['dimension']):.4g}", labels=[ends], time_axis=time_axis)


def ranked(axes: Axes, ranks: Iterable[int], ends: Sequence[float], last: float) -> EndLabels:
    """The labels of curves in order of size that end at `last`: the largest, of rank 0, is 1."""
    return end_labels(axes, [str(rank + 1) for rank in ranks], ends, last)


def figure_of_spectrum(data: "xarray.Dataset") -> Figure:
    """A Figure of a Dataset of odesim.spectrum: real parts of eigenvalues, and the largest and least of a Hessian, over time."""
    kinds, discrete = [name for name in ("eigenvalue_real", "sharpness") if name in data], bool(data.attrs["discrete"])
    labels = list[EndLabels]()
    time_axis = time_axis_of(data, data["time"].values, discrete)
    with project_style():
        panels = add_panels(Block([HEIGHT], cells_in_rows(len(kinds), len(kinds)), (1,) * len(kinds)), width=WIDTH)
        for axes, kind in zip(panels, kinds, strict=True):
            axes.axhline(0.0, color=FAINT, lw=0.5)
            if kind == "sharpness":
                axes.plot(time_axis.x, data["lowest"].values, color=CATEGORIES[1])
                for k, row in enumerate(data["sharpness"].values.T):
                    axes.plot(time_axis.x, row, color=CATEGORIES[0], lw=1.0 if k == 0 else 0.5)
                axes.set_ylabel("eigenvalue of the Hessian")
            else:
                values = data[kind].values
                if discrete:
                    values = np.hypot(values, data["eigenvalue_imag"].values)
                chosen = np.unique(np.linspace(0, values.shape[1] - 1, min(MODES, values.shape[1])).astype(int))
                for k, color in zip(chosen, ordered_colors(len(chosen)), strict=True):
                    axes.plot(time_axis.x, values[:, k], color=color)
                labels.append(ranked(axes, chosen, values[-1, chosen].tolist(), float(time_axis.x[-1])))
                axes.set_ylabel("size of a multiplier" if discrete else "eigenvalue, real part")
            few_ticks(axes)
        notes = [f"sharpness (blue) and least eigenvalue (orange) of {data.attrs['loss']}"] * ("sharpness" in data)
        return headed(panels, data, "eigenvalues", [literal(note) for note in notes], labels=labels, time_axis=time_axis)


def figure_of_fit(data: "xarray.Dataset") -> Figure:
    """A Figure of a Dataset of odesim.fit: data as points with the fitted curves, and below what is left over.

    Each quantity has its residuals below it; of several entries of an array each has a colour, and its index where its curve ends.
    """
    labels = [str(label) for label in data["column"].values]
    heads = list(dict.fromkeys(label.partition("[")[0] for label in labels))
    shown, ends = heads[:MOST], list[EndLabels]()
    time_axis = time_axis_of(data, data["curve_time"].values)
    measured = time_axis.positions(data["time"].values)
    with project_style():
        cells = [(row, k) for row in (0, 1) for k in range(len(shown))]
        axes = add_panels(Block([34.0, 15.0], cells, (1,) * len(shown)), width=PAGE if len(shown) == MOST else WIDTH)
        for k, head in enumerate(shown):
            upper, lower = axes[k], axes[len(shown) + k]
            places = [i for i, label in enumerate(labels) if label.partition("[")[0] == head]
            lower.axhline(0.0, color=FAINT, lw=0.5)
            for color, i in zip(ordered_colors(len(places)) if len(places) > 1 else CATEGORIES, places, strict=False):
                upper.plot(time_axis.x, data["curve"].values[:, i], color=color, label=labels[i])
                for panel, points in ((upper, "data"), (lower, "residual")):
                    panel.plot(measured, data[points].values[:, i], "o", color=color, ms=1.8, mew=0, label=f"_{labels[i]}")
            few_ticks(upper)
            few_ticks(lower, y=3)
            if len(places) > 1:
                names = [labels[i].partition("[")[2].rstrip("]").replace("][", ",").replace(" ", "") for i in places]
                ends.append(end_labels(upper, names, data["curve"].values[-1, places].tolist(), float(time_axis.x[-1])))
            lower.set_xlim(upper.get_xlim())
            upper.set_ylabel(symbol(head))
        axes[len(shown)].set_ylabel("residual")
        values = [f"{symbol(str(n))} = {v:.4g}" for n, v in zip(data["free"].values[:MOST], data["value"].values[:MOST], strict=True)]
        notes = [", ".join(values) + ", ..." * (data.sizes["free"] > MOST), *not_drawn(len(heads))]
        return headed(axes, data, "fit", notes, labels=ends, time_axis=time_axis)


def not_drawn(count: int) -> list[str]:
    """A note on the quantities beyond those that are drawn."""
    return [f"not drawn: {counted(count - MOST, 'more quantity', 'more quantities')}"] * (count > MOST)


# Sensitivities: two bars for each number that varies, with errors, the largest first.

BARS = {"sobol": (("total", "first"), "part of the variance"), "morris": (("size", "spread"), "effect over the range")}
"""The two bars of each measure, the first of which sorts, and the name of their axis."""
MEANING = {"total": "with others", "first": "alone", "size": "mean without signs", "spread": "standard deviation"}
"""What each bar is, for the legend."""
ROW, EDGE = 5.5, 6.0  # mm


def figure_of_sensitivity(data: "xarray.Dataset") -> Figure:
    """A Figure of a Dataset of odesim.sensitivity or odesim.screening: of three quantities at most, each with its ten largest factors."""
    names, words = BARS[data.attrs["sensitivity"]]
    whole = np.isfinite(data[names[0]].values).any(axis=1)  # what does not vary has no parts
    varying = np.flatnonzero(whole) if whole.any() else np.arange(len(whole))
    labels = [str(label) for label in data["quantity"].values[varying[:MOST]]]
    shown = min(data.sizes["factor"], FACTORS)
    with project_style():
        panels = add_panels(Block([ROW * shown + EDGE], [(0, k) for k in range(len(labels))], (1,) * len(labels)), width=WIDTH)
        for k, axes, label in zip(varying[:MOST], panels, labels, strict=True):
            largest = np.argsort(-data[names[0]].values[k], kind="stable")[:shown]  # NaN comes last
            for n, name in enumerate(names):
                values = data[name].values[k][largest]
                errors = data[f"{name}_error"].values[k][largest] if f"{name}_error" in data else None
                places = np.arange(shown) + 0.38 * (n - 0.5)
                axes.barh(places, values, 0.36, xerr=errors, color=CATEGORIES[n], error_kw={"lw": 0.6, "capsize": 1.2})
            few_ticks(axes, x=4 if len(labels) < MOST else 2)
            axes.set_yticks(np.arange(shown), [label_of(str(data["factor"].values[i])) for i in largest])
            axes.invert_yaxis()
            axes.axvline(0.0, color="black", lw=0.5)
            if len(labels) > 1:
                axes.set_title(label_of(label))
            axes.set_xlabel(words if len(labels) == 1 else "")
        what = label_of(labels[0]) if len(labels) == 1 else ""
        notes = [words] * (len(labels) > 1) + not_drawn(len(varying))
        still = ", ".join(label_of(str(label)) for label in data["quantity"].values[~whole][:MOST])
        notes += [f"without variance: {still}" + ", ..." * (int((~whole).sum()) > MOST)] * (len(varying) < len(whole))
        notes += [f"the {shown} largest of {counted(data.sizes['factor'], 'number')}"] * (data.sizes["factor"] > shown)
        return headed(
            panels, data, what, notes, [Patch(color=CATEGORIES[n], label=f"{name}: {MEANING[name]}") for n, name in enumerate(names)]
        )


def label_of(text: str) -> str:
    """An entry such as v[0, 1] as a formula; older files have v[0][1]."""
    return symbol(text.replace("][", ","))


ANSWERS: Mapping[str, Callable[["xarray.Dataset"], Figure]] = {
    "lyapunov": figure_of_exponents,
    "spectrum": figure_of_spectrum,
    "fit": figure_of_fit,
    "sensitivity": figure_of_sensitivity,
    "rest_branches": figure_of_branches,
    "rest_states": figure_of_rest,
}
"""{attribute that says what a Dataset is: its picture}."""
