"""Draws events as marks: on their curve, on their row of a map, else on the time axis; very many as a band."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.transforms import ScaledTranslation

from odesim.base.arrays import Array
from odesim.plot.panels import Quantity
from odesim.plot.scales import TimeAxis, time_text
from odesim.plot.style import CATEGORIES, INK, MARKERS, literal
from odesim.stepper.occurrences import BELOW, Events

MAX_MARKS = 40  # largest number of marks of one event
FAR = 0.05  # of the time axis: between saved times farther apart the height of a curve is uncertain
SIZE, STEP = 3.0, 3.6  # points: a mark, and from one on the axis to the next above it
COLORS = (INK, CATEGORIES[1], CATEGORIES[2], CATEGORIES[3], CATEGORIES[5])
FAINT = 0.35  # opacity of a mark of an event that states below atol decide
PALE = 0.3  # share of the colour in a band behind curves
NARROW = 80.0  # points: the width of a panel in one of two columns


def captions(events: Mapping[str, Events]) -> list[str]:
    """Captions of events {name: Events} for the legend: name, number, times."""
    texts = []
    for name, occurrences in events.items():
        times = [time_text(t) for t in (occurrences.t.min(), occurrences.t.max())]
        noise = 0 if occurrences.below is None else int(occurrences.below.sum())
        below = f", {noise} below atol" if noise else ""
        count = f" ({len(occurrences)}×{below})" if len(occurrences) > 1 or noise else ""
        texts.append(literal(f"{name}{count}: t = {' to '.join(dict.fromkeys(times))}"))
    return texts


def draw_events(
    axes: Sequence[Axes],
    shown: Sequence[Quantity],
    states: int,
    events: Mapping[str, Events],
    time_axis: TimeAxis,
    dims: Mapping[str, Sequence[str]],
) -> list[Line2D]:
    """Draws events {name: Events}, none of them empty; returns their handles for a legend.

    axes, shown: the panels over time and their quantities, the first `states` of them states. dims {event: axis names}. An event with
    an index is drawn on that component if exactly one state has such components; else on the time axis of every panel. One without
    is drawn on the curve of every number, and on the time axis of other panels.
    """
    handles, panels = [], list(zip(axes, shown, strict=True))
    on_axis: dict[Axes, list[tuple[float, dict[str, Any]]]] = {ax: [] for ax in axes}
    for number, ((name, occurrences), caption) in enumerate(zip(events.items(), captions(events), strict=True)):
        color = COLORS[number % len(COLORS)]
        style: dict[str, Any] = {"color": color, "marker": MARKERS[number % len(MARKERS)], "mfc": "white", "mew": 0.7, "ms": SIZE, "ls": ""}
        positions = time_axis.positions(occurrences.t)
        if len(occurrences) > MAX_MARKS:
            style = {"color": 1 - PALE * (1 - np.array(to_rgb(color))), "lw": 4.0}
            draw_band(panels, positions, style["color"])
        else:
            whole = occurrences.indices is None
            matching = [panel for panel in panels[:states] if not whole and has_components(panel[1], occurrences, dims.get(name))]
            for ax, quantity in matching if len(matching) == 1 else panels:
                on_curve = quantity.kind == "lines" and ((quantity.count == 1 and whole) or len(matching) == 1)
                if (on_curve and is_near(positions, time_axis)) or (len(matching) == 1 and quantity.kind == "map"):
                    draw_marks(ax, quantity, occurrences, time_axis, style)
                else:
                    faint = set() if occurrences.below is None else set(time_axis.positions(occurrences.t[occurrences.below]).tolist())
                    on_axis[ax] += [(x, {**style, "alpha": FAINT} if x in faint else style) for x in positions.tolist()]
        handles.append(Line2D([], [], label=caption, **style))
    for ax, marks in on_axis.items():
        draw_on_axis(ax, marks, time_axis)
    return handles


def draw_on_axis(axes: Axes, marks: Sequence[tuple[float, Mapping[str, Any]]], time_axis: TimeAxis) -> None:
    """Draws marks (position, style) on the line of the time axis; of two that would touch, one stands on the other."""
    figure: Any = axes.get_figure(root=True)
    scaled = np.log10 if time_axis.log else np.asarray
    width = float(np.ptp(scaled(time_axis.x[[0, -1]]))) or 1.0
    last: dict[int, tuple[float, str]] = {}  # of each level: where its last mark stands, and which event it is of
    for x, style in sorted(marks, key=lambda mark: mark[0]):
        place, level = float(scaled(x)) / width * NARROW, 0
        while level in last and place - last[level][0] < STEP and last[level][1] != style["marker"]:
            level += 1
        last[level] = place, style["marker"]
        lift = ScaledTranslation(0, STEP * level / 72, figure.dpi_scale_trans)
        axes.plot([x], [0.0], transform=axes.get_xaxis_transform() + lift, clip_on=False, zorder=3, **style)


def has_components(quantity: Quantity, events: Events, dims: Sequence[str] | None) -> bool:
    """Whether the quantity has a component for each of these events, and the axes `dims` if they are known."""
    if dims is not None and tuple(dims) != quantity.dims:
        return False
    index = events.indices
    return index is not None and index.shape[1] == len(quantity.shape) and bool(np.all(index < quantity.shape))


def is_near(positions: Array, time_axis: TimeAxis) -> bool:
    """Whether all positions (n,) on the time axis are saved times or lie between two close ones."""
    scaled = np.log if time_axis.log else np.asarray
    x: Array = scaled(time_axis.x)
    after = np.searchsorted(time_axis.x, positions)
    high, low = x[np.minimum(after, len(x) - 1)], x[np.maximum(after - 1, 0)]
    return bool(np.all((high - low <= FAR * (x[-1] - x[0])) | np.isin(positions, time_axis.x)))


def draw_band(panels: Sequence[tuple[Axes, Quantity]], positions: Array, color: Any) -> None:
    """Draws a band behind the curves of every panel from the first to the last of positions (n,); a bar under a map."""
    if not len(positions):
        return
    ends = [positions.min(), positions.max()]
    for ax, quantity in panels:
        if quantity.kind == "map":
            rim = [withStroke(linewidth=2.6, foreground=INK)]
            ax.plot(
                ends,
                [0, 0],
                color=color,
                lw=2.0,
                transform=ax.get_xaxis_transform(),
                clip_on=False,
                path_effects=rim,
                solid_capstyle="butt",
            )
        else:
            ax.axvspan(*ends, color=color, lw=0, zorder=0)


def draw_marks(axes: Axes, quantity: Quantity, events: Events, time_axis: TimeAxis, style: Mapping[str, Any]) -> None:
    """Draws a mark for each event on the line of its component or its row of a map; at a jump, before it."""
    scaled = np.log if time_axis.log else np.asarray
    for event in events:
        x = time_axis.positions([event["t"]])
        if len(x):
            if quantity.kind == "map":
                y = float(event["index"][0])
            else:
                i = int(np.ravel_multi_index(tuple(event["index"] or ()), quantity.shape)) if quantity.count > 1 else 0
                values = quantity.flat[time_axis.rows, i]
                if quantity.jumps and event["t"] in quantity.jumps[i]:
                    y = float(values[max(np.searchsorted(time_axis.x, x[0]) - 1, 0)])
                else:
                    y = float(np.interp(scaled(x[0]), scaled(time_axis.x), values))
            axes.plot(x, [y], zorder=3, **style, alpha=FAINT if BELOW in event else None)
