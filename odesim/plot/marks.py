"""Events in a picture: on the curve of the state they belong to, as carets at the time axis, or as lines across all panels."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import CARETUPBASE
from matplotlib.patheffects import withStroke

from odesim.arrays import Array
from odesim.plot.clock import Clock
from odesim.plot.panels import Quantity
from odesim.plot.style import CATEGORIES, DASHES, INK, MARKERS, plain

SEVERAL, MANY = 12, 40  # at most so many lines across the panels, so many marks of one event
FAR = 0.05  # of the time axis: between saved times farther apart the height of a curve is a guess
COLORS = (INK, CATEGORIES[1], CATEGORIES[2], CATEGORIES[3], CATEGORIES[5])
PALE = 0.3  # of its colour is left in a band behind curves
SHORT = 27  # letters of a caption beside which another one fits


def captions(events: Mapping[str, Any]) -> list[str]:
    """What the legend says of events {name: [{"t", "index"}]}: the name, how many, when."""
    found = []
    for name, every in events.items():
        times = [f"{t:.3g}" for t in (min(e["t"] for e in every), max(e["t"] for e in every))]
        count = f" ({len(every)}×)" if len(every) > 1 else ""
        found.append(plain(f"{name}{count}: t = {' to '.join(dict.fromkeys(times))}"))
    return found


def columns(texts: Sequence[str]) -> int:
    """How many of the captions stand beside each other."""
    return 2 if all(len(text) <= SHORT for text in texts) else 1


def draw_events(
    figure: Figure,
    axes: Sequence[Axes],
    shown: Sequence[Quantity],
    states: int,
    events: Mapping[str, Any],
    clock: Clock,
    dims: Mapping[str, Sequence[str]],
) -> None:
    """Marks events {name: [{"t", "index"}]}, none of them empty, and says in a legend at the bottom what the marks mean.

    axes, shown: the panels over time, the first so many of them states. An event with an index lies on that component of the
    one state with such components, as a line or in a map; with none or several such states, at the time axis of every panel.
    """
    handles = []
    panels = list(zip(axes, shown, strict=True))
    for number, ((name, found), caption) in enumerate(zip(events.items(), captions(events), strict=True)):
        look: dict[str, Any] = {"color": COLORS[number % len(COLORS)], "label": caption}
        whole = all(event["index"] is None for event in found)
        homes = [] if whole else [panel for panel in panels[:states] if has(panel[1], found, dims.get(name))]
        at, home = clock.place([event["t"] for event in found]), len(homes) == 1
        if len(found) > MANY:
            look |= {"color": 1 - PALE * (1 - np.array(to_rgb(look["color"])))}
            draw_band(panels, at, look["color"])
            look |= {"lw": 4.0}
        elif whole and len(found) <= SEVERAL:
            look |= {"lw": 0.6, "ls": DASHES[number % len(DASHES)]}
            for x in at:
                for ax, quantity in panels:
                    halo = [withStroke(linewidth=1.4, foreground="white", alpha=0.7)] if quantity.kind == "map" else None
                    ax.axvline(x, path_effects=halo, **look)
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
        figure.legend(handles=handles, loc="outside lower center", ncols=columns(texts), columnspacing=1.2)


def has(quantity: Quantity, found: Sequence[Any], dims: Sequence[str] | None) -> bool:
    """Whether the quantity has a component for each of these events, on their axes where those are known."""
    if dims is not None and tuple(dims) != quantity.dims:
        return False
    indices = [event["index"] for event in found]
    return all(
        index is not None and len(index) == len(quantity.shape) and all(i < n for i, n in zip(index, quantity.shape, strict=True))
        for index in indices
    )


def is_near(at: Array, clock: Clock) -> bool:
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


def draw_marks(axes: Axes, quantity: Quantity, found: Sequence[Any], clock: Clock, look: Mapping[str, Any]) -> None:
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
