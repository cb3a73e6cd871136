"""Events in a picture: on the curve of the state they belong to, as carets at the time axis, or as lines across all panels."""

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

MAX_LINES, MAX_MARKS = 12, 40  # at most so many lines across the panels, so many marks of one event
NEAR = 0.03  # of the time axis, about 1 mm: lines that stand closer look like one
FAR = 0.05  # of the time axis: between saved times farther apart the height of a curve is a guess
COLORS = (INK, CATEGORIES[1], CATEGORIES[2], CATEGORIES[3], CATEGORIES[5])
PALE = 0.3  # of its colour is left in a band behind curves
SHORT = 27  # letters of a caption beside which another one fits


def captions(events: Mapping[str, Events]) -> list[str]:
    """What the legend says of events {name: Events}: the name, how many, when."""
    found = []
    for name, every in events.items():
        times = [f"{t:.3g}" for t in (every.t.min(), every.t.max())]
        count = f" ({len(every)}×)" if len(every) > 1 else ""
        found.append(literal(f"{name}{count}: t = {' to '.join(dict.fromkeys(times))}"))
    return found


def caption_columns(texts: Sequence[str]) -> int:
    """How many of the captions stand beside each other."""
    return 2 if all(len(text) <= SHORT for text in texts) else 1


def draw_events(
    figure: Figure,
    axes: Sequence[Axes],
    shown: Sequence[Quantity],
    states: int,
    events: Mapping[str, Events],
    clock: TimeAxis,
    dims: Mapping[str, Sequence[str]],
) -> None:
    """Marks events {name: Events}, none of them empty, and says in a legend at the bottom what the marks mean.

    axes, shown: the panels over time, the first so many of them states. An event with an index lies on that component of the
    one state with such components, as a line or in a map; with none or several such states, at the time axis of every panel.
    """
    handles = []
    heights = line_heights([(name, float(x)) for name, found in events.items() if is_line(found) for x in clock.place(found.t)], clock)
    panels = list(zip(axes, shown, strict=True))
    for number, ((name, found), caption) in enumerate(zip(events.items(), captions(events), strict=True)):
        look: dict[str, Any] = {"color": COLORS[number % len(COLORS)], "label": caption}
        whole = found.indices is None
        homes = [] if whole else [panel for panel in panels[:states] if has_components(panel[1], found, dims.get(name))]
        at, home = clock.place(found.t), len(homes) == 1
        if len(found) > MAX_MARKS:
            look |= {"color": 1 - PALE * (1 - np.array(to_rgb(look["color"])))}
            draw_band(panels, at, look["color"])
            look |= {"lw": 4.0}
        elif is_line(found):
            look |= {"lw": 0.6, "ls": DASHES[number % len(DASHES)]}
            for x in at:
                for ax, quantity in panels:
                    halo = [withStroke(linewidth=1.4, foreground="white", alpha=0.7)] if quantity.kind == "map" else None
                    ax.axvline(x, *heights[name, float(x)], path_effects=halo, **look)
        elif home and (homes[0][1].kind == "map" or (homes[0][1].kind == "lines" and is_near(at, clock))):
            look |= {"marker": MARKERS[number % len(MARKERS)], "mfc": "white", "mew": 0.6, "ms": 2.6, "ls": ""}
            draw_marks(*homes[0], found, clock, look)
        else:
            look |= {"marker": CARETUPBASE, "mec": "white", "mew": 0.3, "ms": 4.0, "ls": ""}
            for ax in [homes[0][0]] if home else axes:
                ax.plot(at, np.zeros(len(at)), transform=ax.get_xaxis_transform(), clip_on=False, zorder=3, **look)
        handles.append(Line2D([], [], **look))
    if handles:
        texts = [str(handle.get_label()) for handle in handles]
        figure.legend(handles=handles, loc="outside lower center", ncols=caption_columns(texts), columnspacing=1.2)


def is_line(found: Events) -> bool:
    """Whether events are drawn as lines across the panels."""
    return found.indices is None and len(found) <= MAX_LINES


def line_heights(lines: Sequence[tuple[str, float]], clock: TimeAxis) -> dict[tuple[str, float], tuple[float, float]]:
    """{(event, place on the time axis): the part of a panel's height that its line takes}.

    Lines too near to be told apart stand above each other, the first one lowest.
    """
    scaled = np.log if clock.log else np.asarray
    axis = np.asarray(scaled(clock.x))
    order = sorted(dict.fromkeys(lines), key=lambda line: line[1])
    at = np.asarray(scaled([x for _, x in order]))
    starts = [k for k in range(len(order)) if k == 0 or at[k] - at[k - 1] >= NEAR * (axis[-1] - axis[0])]
    found = {}
    for start, stop in pairwise([*starts, len(order)]):
        for k in range(start, stop):
            found[order[k]] = ((k - start) / (stop - start), (k - start + 1) / (stop - start))
    return found


def has_components(quantity: Quantity, found: Events, dims: Sequence[str] | None) -> bool:
    """Whether the quantity has a component for each of these events, on their axes where those are known."""
    if dims is not None and tuple(dims) != quantity.dims:
        return False
    index = found.indices
    return index is not None and index.shape[1] == len(quantity.shape) and bool(np.all(index < quantity.shape))


def is_near(at: Array, clock: TimeAxis) -> bool:
    """Whether the places at (n,) on the time axis all lie on a saved time or between two close ones."""
    scaled = np.log if clock.log else np.asarray
    x: Array = scaled(clock.x)
    after = np.searchsorted(clock.x, at)
    high, low = x[np.minimum(after, len(x) - 1)], x[np.maximum(after - 1, 0)]
    return bool(np.all((high - low <= FAR * (x[-1] - x[0])) | np.isin(at, clock.x)))


def draw_band(panels: Sequence[tuple[Axes, Quantity]], at: Array, color: Any) -> None:
    """A band behind the curves of every panel, from the first to the last of the places at (n,); a bar under a map."""
    if not len(at):
        return
    ends = [at.min(), at.max()]
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


def draw_marks(axes: Axes, quantity: Quantity, found: Events, clock: TimeAxis, look: Mapping[str, Any]) -> None:
    """One mark an event: on the line of its component, or on its row of the map."""
    for event in found:
        x = clock.place([event["t"]])
        if len(x):
            if quantity.kind == "map":
                y = [float(event["index"][0])]
            else:
                i = int(np.ravel_multi_index(tuple(event["index"]), quantity.shape))
                scaled = np.log if clock.log else np.asarray
                y = [float(np.interp(scaled(x[0]), scaled(clock.x), quantity.flat[clock.rows, i]))]
            axes.plot(x, y, zorder=3, **look)
