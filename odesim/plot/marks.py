"""Draws events: as marks on the curve of a state, as carets at the time axis, or as lines across all panels."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import CARETUPBASE
from matplotlib.patheffects import withStroke

from odesim.base.arrays import Array
from odesim.plot.panels import Quantity
from odesim.plot.style import CATEGORIES, DASHES, INK, MARKERS, literal
from odesim.plot.times import TimeAxis
from odesim.solve.occurrences import Events

MAX_LINES, MAX_MARKS = 12, 40  # largest number of lines of one event across panels; of marks
NEAR = 0.03  # of the time axis, about 1 mm: closer lines look like one
FAR = 0.05  # of the time axis: between saved times farther apart the height of a curve is uncertain
COLORS = (INK, CATEGORIES[1], CATEGORIES[2], CATEGORIES[3], CATEGORIES[5])
PALE = 0.3  # share of the colour in a band behind curves
SHORT = 27  # longest caption that leaves space for a second column


def captions(events: Mapping[str, Events]) -> list[str]:
    """Captions of events {name: Events} for the legend: name, number, times."""
    texts = []
    for name, occurrences in events.items():
        times = [f"{t:.3g}" for t in (occurrences.t.min(), occurrences.t.max())]
        count = f" ({len(occurrences)}×)" if len(occurrences) > 1 else ""
        texts.append(literal(f"{name}{count}: t = {' to '.join(dict.fromkeys(times))}"))
    return texts


def caption_columns(texts: Sequence[str]) -> int:
    """Number of columns of the legend, by the length of captions."""
    return 2 if all(len(text) <= SHORT for text in texts) else 1


def draw_events(
    figure: Figure,
    axes: Sequence[Axes],
    shown: Sequence[Quantity],
    states: int,
    events: Mapping[str, Events],
    time_axis: TimeAxis,
    dims: Mapping[str, Sequence[str]],
) -> None:
    """Draws events {name: Events}, none of them empty, with a legend at the bottom.

    axes, shown: the panels over time and their quantities, the first `states` of them states. dims {event: axis names}. An event with
    an index is drawn on that component if exactly one state has such components; else at the time axis of every panel.
    """
    handles = []
    heights = line_heights(
        [(name, float(x)) for name, occurrences in events.items() if is_line(occurrences) for x in time_axis.positions(occurrences.t)],
        time_axis,
    )
    panels = list(zip(axes, shown, strict=True))
    for number, ((name, occurrences), caption) in enumerate(zip(events.items(), captions(events), strict=True)):
        line_style: dict[str, Any] = {"color": COLORS[number % len(COLORS)], "label": caption}
        whole = occurrences.indices is None
        matching = [] if whole else [panel for panel in panels[:states] if has_components(panel[1], occurrences, dims.get(name))]
        positions, has_one_match = time_axis.positions(occurrences.t), len(matching) == 1
        if len(occurrences) > MAX_MARKS:
            line_style |= {"color": 1 - PALE * (1 - np.array(to_rgb(line_style["color"])))}
            draw_band(panels, positions, line_style["color"])
            line_style |= {"lw": 4.0}
        elif is_line(occurrences):
            line_style |= {"lw": 0.6, "ls": DASHES[number % len(DASHES)]}
            for x in positions:
                for ax, quantity in panels:
                    halo = [withStroke(linewidth=1.4, foreground="white", alpha=0.7)] if quantity.kind == "map" else None
                    ax.axvline(x, *heights[name, float(x)], path_effects=halo, **line_style)
        elif has_one_match and (matching[0][1].kind == "map" or (matching[0][1].kind == "lines" and is_near(positions, time_axis))):
            line_style |= {"marker": MARKERS[number % len(MARKERS)], "mfc": "white", "mew": 0.6, "ms": 2.6, "ls": ""}
            draw_marks(*matching[0], occurrences, time_axis, line_style)
        else:
            line_style |= {"marker": CARETUPBASE, "mec": "white", "mew": 0.3, "ms": 4.0, "ls": ""}
            for ax in [matching[0][0]] if has_one_match else axes:
                ax.plot(positions, np.zeros(len(positions)), transform=ax.get_xaxis_transform(), clip_on=False, zorder=3, **line_style)
        handles.append(Line2D([], [], **line_style))
    if handles:
        texts = [str(handle.get_label()) for handle in handles]
        figure.legend(handles=handles, loc="outside lower center", ncols=caption_columns(texts), columnspacing=1.2)


def is_line(events: Events) -> bool:
    """Whether events of one name are drawn as lines across all panels."""
    return events.indices is None and len(events) <= MAX_LINES


def line_heights(lines: Sequence[tuple[str, float]], time_axis: TimeAxis) -> dict[tuple[str, float], tuple[float, float]]:
    """{(event, position on the time axis): (low, high)}: the part of a panel's height that its line covers.

    Lines that are too close share the height, the first one lowest.
    """
    scaled = np.log if time_axis.log else np.asarray
    axis = np.asarray(scaled(time_axis.x))
    order = sorted(dict.fromkeys(lines), key=lambda line: line[1])
    positions = np.asarray(scaled([x for _, x in order]))
    starts = [k for k in range(len(order)) if k == 0 or positions[k] - positions[k - 1] >= NEAR * (axis[-1] - axis[0])]
    heights = {}
    for start, stop in pairwise([*starts, len(order)]):
        for k in range(start, stop):
            heights[order[k]] = ((k - start) / (stop - start), (k - start + 1) / (stop - start))
    return heights


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


def draw_marks(axes: Axes, quantity: Quantity, events: Events, time_axis: TimeAxis, line_style: Mapping[str, Any]) -> None:
    """Draws a mark for each event on the line of its component, or on its row of a map."""
    for event in events:
        x = time_axis.positions([event["t"]])
        if len(x):
            if quantity.kind == "map":
                y = [float(event["index"][0])]
            else:
                i = int(np.ravel_multi_index(tuple(event["index"]), quantity.shape))
                scaled = np.log if time_axis.log else np.asarray
                y = [float(np.interp(scaled(x[0]), scaled(time_axis.x), quantity.flat[time_axis.rows, i]))]
            axes.plot(x, y, zorder=3, **line_style)
