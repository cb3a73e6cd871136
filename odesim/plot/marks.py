"""Events in a picture: a mark on the component that has one, a dashed line across all panels for an event of the whole."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from odesim.plot.clock import Clock
from odesim.plot.panels import Quantity, thinned
from odesim.plot.style import DASHES, INK, MARKERS, plain

SEVERAL = 12  # lines of one name that are drawn


def draw_events(
    figure: Figure,
    axes: Sequence[Axes],
    shown: Sequence[Quantity],
    events: Mapping[str, Any],
    clock: Clock,
    dims: Mapping[str, Sequence[str]],
) -> None:
    """Marks events {name: [{"t", "index"}]}, none of them empty, and says in a legend at the bottom what the marks mean.

    An event with an index lies on that component of the first quantity that has it, as a line or in a map; where dims names
    the axes of the event, they must be those of the quantity.
    """
    handles = []
    for number, (name, found) in enumerate(events.items()):
        index = found[0]["index"]
        homes = [(ax, q) for ax, q in zip(axes, shown, strict=True) if index is not None and has(q, index, dims.get(name))]
        count = f" ({len(found)}×)" if len(found) > 1 else ""
        look: dict[str, Any] = {"color": INK, "label": plain(name + count)}
        if homes:
            look |= {"marker": MARKERS[number % len(MARKERS)], "mfc": "white", "mew": 0.6, "ms": 2.6, "ls": ""}
            draw_marks(*homes[0], found, clock, look)
        else:
            look |= {"lw": 0.6, "ls": DASHES[number % len(DASHES)]}
            times = clock.place([event["t"] for event in found])
            for x in times[thinned(len(times), SEVERAL)] if len(times) else ():
                for ax in axes:
                    ax.axvline(x, **look)
        handles.append(Line2D([], [], **look))
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=2, columnspacing=1.2)


def has(quantity: Quantity, index: Sequence[int], dims: Sequence[str] | None) -> bool:
    """Whether quantity is drawn as lines or a map and has a component of that index, on those axes where they are known."""
    if quantity.kind == "bands" or (dims is not None and tuple(dims) != quantity.dims):
        return False
    return len(index) == len(quantity.shape) and all(i < n for i, n in zip(index, quantity.shape, strict=True))


def draw_marks(axes: Axes, quantity: Quantity, found: Sequence[Any], clock: Clock, look: Mapping[str, Any]) -> None:
    """One mark an event: on the line of its component, or on its row of the map."""
    for event in found:
        x = clock.place([event["t"]])
        if len(x):
            i = int(np.ravel_multi_index(tuple(event["index"]), quantity.shape))
            if quantity.kind == "map":
                y = [(i + 0.5) * quantity.shape[0] / quantity.count - 0.5]
            else:
                scaled = np.log if clock.log else np.asarray
                y = [float(np.interp(scaled(x[0]), scaled(clock.x), quantity.flat[clock.rows, i]))]
            axes.plot(x, y, zorder=3, **look)
