"""Panels of the explorer in bokeh: quantities over time, arrays at one time, planes; a changed number replaces their data.

A panel keeps its figure, also at other sizes: only numbers travel to the page, some ten times faster than a new figure. Those that are as
before stay, and lines travel as one array: a page takes longest for many small messages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from bokeh.models import (
    BasicTicker,
    ColorBar,
    ColumnDataSource,
    CustomJSTransform,
    HoverTool,
    Legend,
    LegendItem,
    LinearColorMapper,
)
from bokeh.plotting import figure
from matplotlib.colors import to_hex

from odesim.base.arrays import Array
from odesim.explorer.controls import Scale
from odesim.explorer.views import Named, Portrait, Sweep, borders
from odesim.plot.panels import spread_indices
from odesim.plot.quantities import Quantity
from odesim.plot.scales import make_time_axis
from odesim.plot.solution import mark_heights, marked_in
from odesim.plot.style import CATEGORIES, FAINT, INK, distinct_colors, ordered_colors
from odesim.run.solution import Solution
from odesim.stepper.occurrences import Events

HEIGHT = 240  # pixels of a panel
LINES = 60  # largest number of components that are drawn as lines; evenly spread ones of more
LARGEST = 5000  # occurrences of one event that are marked, evenly spread ones of more
NAMED = 6  # largest number of lines with a legend
MARKERS = ("circle", "square", "triangle", "star", "diamond", "inverted_triangle")
SEQUENTIAL, DIVERGING = "Viridis256", "RdBu11"
TOOLS = "pan,box_zoom,reset,save"
ROWS = """
const [n, T] = xs.shape ?? [0, 0]
return Array.from({length: n}, (_, i) => new Float64Array(xs.buffer, xs.byteOffset + 8 * i * T, T))
"""
"""The rows of an array as lines, in the page: of a list of lines bokeh sends each one as two messages."""


def new_figure(title: str, **more: Any) -> Any:
    """An empty figure in the style of the page."""
    words = {"height": HEIGHT, "sizing_mode": "stretch_width", "tools": TOOLS, "title": title, "toolbar_location": "right", **more}
    panel: Any = figure(**words)
    panel.toolbar.logo, panel.toolbar.autohide = None, True
    panel.outline_line_color = None
    panel.grid.grid_line_color = "#eeeeee"
    for axis in panel.axis:
        axis.axis_line_color = axis.major_tick_line_color = axis.minor_tick_line_color = FAINT
    panel.title.text_font_style, panel.title.text_color = "normal", INK
    return panel


class TimePanel:
    """One quantity over time: lines of its components, or a map of very many, and marks of events."""

    def __init__(self, quantity: Quantity, label: str, *, log: bool) -> None:
        self.log = log
        name = quantity.name + f"[{', '.join(quantity.dims)}]" * bool(quantity.dims)
        self.is_map = quantity.kind == "map" and not log
        self.figure = new_figure(name, x_axis_label=label, y_axis_type="log" if log else "linear")
        self.figure.xaxis.axis_label_standoff = 2
        if self.is_map:
            self.source = ColumnDataSource({"image": [], "x": [], "y": [], "w": [], "h": []})
            self.mapper = LinearColorMapper(palette=SEQUENTIAL)
            self.figure.image("image", x="x", y="y", dw="w", dh="h", color_mapper=self.mapper, source=self.source)
            self.figure.y_range.flipped = True
            self.figure.yaxis.ticker = BasicTicker(min_interval=1)
            self.figure.add_layout(color_bar(self.mapper), "right")
            self.figure.add_tools(HoverTool(tooltips=[("t", "$x"), ("component", "$y{0}"), ("value", "@image")]))
        else:
            self.source = ColumnDataSource({"xs": [], "ys": [], "color": [], "name": []})
            xs, ys = ({"field": name, "transform": CustomJSTransform(v_func=ROWS)} for name in ("xs", "ys"))
            lines = self.figure.multi_line(xs, ys, color="color", line_width=1.6, source=self.source)
            self.figure.add_tools(
                HoverTool(renderers=[lines], tooltips=[("", "@name"), ("t", "$data_x"), ("value", "$data_y")], line_policy="interp")
            )
            self.item = LegendItem(label={"field": "name"}, renderers=[lines])
            self.legend = Legend(
                orientation="horizontal", border_line_color=None, padding=0, margin=0, spacing=4, label_text_font_size="11px", visible=False
            )
            self.figure.add_layout(self.legend, "above")
        self.marks = ColumnDataSource({"t": [], "y": [], "name": [], "marker": [], "angle": []})
        marks = self.figure.scatter("t", "y", marker="marker", angle="angle", size=8, fill_color="white", line_color=INK, source=self.marks)
        self.figure.add_tools(HoverTool(renderers=[marks], tooltips=[("event", "@name"), ("t", "@t{0.000000}")]))
        self.times, self.levels = (ColumnDataSource({"at": [], "words": []}) for _ in range(2))
        look: dict[str, Any] = {"line_color": CATEGORIES[1], "line_dash": "dashed"}
        spans = [self.figure.vspan(x="at", source=self.times, **look)]
        spans += [] if self.is_map else [self.figure.hspan(y="at", source=self.levels, **look)]
        self.figure.add_tools(HoverTool(renderers=spans, tooltips=[("claim", "@words"), ("value", "@at")]))

    def fits(self, quantity: Quantity) -> bool:
        """Whether it can show its quantity at another size: a map stays one, and lines are lines as long as each is drawn."""
        return self.is_map or self.log or quantity.kind != "map" or quantity.count <= LINES

    def show(self, quantity: Quantity, solution: Solution) -> None:
        """Replaces the data by those of this run."""
        if self.is_map:
            t = solution.t
            even = np.searchsorted(t, np.linspace(t[0], t[-1], len(t))).clip(0, len(t) - 1)
            image = masked(quantity.flat[even].T)
            colors(self.mapper, image)
            width = float(t[-1] - t[0]) or 1.0
            replace_data(self.source, {"image": [image], "x": [float(t[0])], "y": [-0.5], "w": [width], "h": [quantity.count]})
        else:
            few = 1 < quantity.count <= NAMED
            self.legend.update(items=[self.item] * few, visible=few)  # a page takes a second for 60 items, also where none is seen
            replace_data(self.source, line_data(quantity, solution.t, log=self.log))
        replace_data(self.marks, self.mark_data(quantity, solution))

    def show_claims(self, name: str, named: Sequence[Named]) -> None:
        """Replaces the numbers that statements of papers name: times, and levels of the quantity with this name."""
        for source, of in ((self.times, "t"), (self.levels, name)):
            chosen = [number for number in named if number.of == of and (of == "t" or not self.log or number.value > 0)]
            replace_data(source, {"at": [number.value for number in chosen], "words": [number.words for number in chosen]})

    def mark_data(self, quantity: Quantity, solution: Solution) -> dict[str, Any]:
        """Where the events of a run stand in the panel of a quantity: as in pictures on its curves, or as ticks at the foot."""
        quantity = quantity if self.is_map else replace(quantity, view=quantity.view or "Lines")
        rows: list[tuple[float, float, str, str, float]] = []
        axis, values = make_time_axis(solution.t, "", False), quantity.flat
        foot = quantity.count - 0.5 if self.is_map else float(np.nanmin(values[values > 0] if self.log else values, initial=np.inf))
        for number, (name, occurrences) in enumerate(solution.events.items()):
            if not len(occurrences):
                continue
            events = Events.of(occurrences)
            chosen, components, few = marked_in(quantity, name, events)
            if components is not None and few and (self.is_map or quantity.count <= LINES):
                look = MARKERS[number % len(MARKERS)]
                places = zip(events.t[chosen].tolist(), components.tolist(), strict=True)
                rows += [(at, y, name, look, 0.0) for at, i in places for y in mark_heights(quantity, i, at, axis) if y > 0 or not self.log]
            elif components is not None or events.indices is None:
                chosen = np.unique(chosen)
                rows += [(at, foot, name, "dash", np.pi / 2) for at in events.t[chosen[spread_indices(len(chosen), LARGEST)]].tolist()]
        return {key: [row[k] for row in rows] for k, key in enumerate(("t", "y", "name", "marker", "angle"))}


def replace_data(source: ColumnDataSource, data: Mapping[str, Any]) -> None:
    """Gives a source other data; what is as before is not sent again."""
    before = source.data
    if before.keys() != data.keys() or any(np.ndim(v) > 1 or not np.array_equal(before[name], v) for name, v in data.items()):
        source.data = dict(data)


def line_data(quantity: Quantity, t: Array, *, log: bool = False) -> dict[str, Any]:
    """The lines of the components of a quantity, with their jumps; of very many evenly spread ones. log: positive values only.

    xs, ys (n, T): a line a row, filled with NaN where others have more jumps.
    """
    chosen = spread_indices(quantity.count, LINES)
    values = np.ma.masked_invalid(quantity.flat[:, chosen])
    xs, ys = np.tile(np.asarray(t, float), (len(chosen), 1)), values.filled(np.nan).T
    if quantity.jumps or quantity.between:
        both = [quantity.curve(i, t)[:2] for i in chosen]
        longest = max(len(x) for x, _ in both)
        xs, ys = (np.full((len(chosen), longest), np.nan) for _ in range(2))
        for k, (x, line) in enumerate(both):
            xs[k, : len(x)], ys[k, : len(x)] = x, np.ma.filled(np.ma.asarray(line, float), np.nan)
    if log:
        ys = np.where(ys > 0, ys, np.nan)
    names = [quantity.part_name(int(i)) for i in chosen]
    return {"xs": xs, "ys": np.ascontiguousarray(ys), "color": list(line_colors(len(chosen))), "name": names}


@lru_cache
def line_colors(n: int) -> tuple[str, ...]:
    """The colours of n lines."""
    return (str(CATEGORIES[0]),) if n == 1 else tuple(to_hex(color) for color in ordered_colors(n))


def masked(values: Array) -> Array:
    """Values as floats, NaN where they are not finite."""
    values = np.asarray(values, float)
    return np.where(np.isfinite(values), values, np.nan)


def color_bar(mapper: LinearColorMapper) -> ColorBar:
    """The colour bar of a map."""
    return ColorBar(color_mapper=mapper, width=8, major_label_text_font_size="10px", padding=2, bar_line_color=None, border_line_color=None)


def colors(mapper: LinearColorMapper, values: Array, *, from_zero: bool = False) -> None:
    """Gives a mapper the range of these values: even about 0 where they have both signs."""
    low, high = (float(np.nanmin(values)), float(np.nanmax(values))) if np.isfinite(values).any() else (0.0, 1.0)
    both = low < 0 < high and not from_zero
    size = max(-low, high)
    low, high = (-size, size) if both else (0.0 if from_zero else low, high)
    mapper.update(palette=palette(DIVERGING if both else SEQUENTIAL), low=low, high=high if high > low else low + 1)


def palette(name: str) -> tuple[str, ...]:
    """The colours of a palette of bokeh, 256 of them; of RdBu11 blue is low, as in pictures."""
    from bokeh import palettes

    return tuple(palettes.interp_palette(getattr(palettes, name), 256))


def arrays_of(quantities: Sequence[Quantity]) -> list[Quantity]:
    """Quantities that are seen as arrays at one time: matrices, attention, points."""
    return [q for q in quantities if q.view in ("Matrix", "Attention", "Points") or (len(q.shape) >= 2 and not q.view)]


class ArrayPanel:
    """One array at one time: a map with its first index down, or points with their way so far."""

    def __init__(self, quantity: Quantity) -> None:
        self.points, self.attention = quantity.strip == "Points", quantity.strip == "Attention"
        name = quantity.name + f"[{', '.join(quantity.dims)}]" * bool(quantity.dims)
        if self.points:
            self.figure = new_figure(name, height=300, match_aspect=True)
            self.way = ColumnDataSource({"xs": [], "ys": [], "color": []})
            self.figure.multi_line("xs", "ys", color="color", line_alpha=0.4, source=self.way)
            self.source = ColumnDataSource({"x": [], "y": [], "color": [], "name": []})
            dots = self.figure.scatter("x", "y", size=9, color="color", line_color="white", source=self.source)
            self.figure.add_tools(HoverTool(renderers=[dots], tooltips=[("", "@name")]))
        else:
            self.figure = new_figure(name, height=300, x_axis_label=", ".join(quantity.dims[1:]), y_axis_label=quantity.dims[0])
            self.figure.y_range.flipped = True
            for axis in self.figure.axis:
                axis.ticker = BasicTicker(min_interval=1)
            self.source = ColumnDataSource({"image": [], "w": [], "h": []})
            self.mapper = LinearColorMapper(palette=SEQUENTIAL)
            self.figure.image("image", x=-0.5, y=-0.5, dw="w", dh="h", color_mapper=self.mapper, source=self.source)
            self.figure.add_layout(color_bar(self.mapper), "right")
            self.figure.add_tools(HoverTool(tooltips=[("row", "$y{0}"), ("column", "$x{0}"), ("value", "@image")]))

    def show(self, quantity: Quantity, row: int) -> None:
        """Replaces the data by the array at a saved time; colours have the range of the whole run."""
        values = masked(quantity.values)
        if self.points:
            x = np.stack([np.cos(values), np.sin(values)], axis=-1) if values.ndim == 2 else values[..., :2]
            points = [to_hex(color) for color in distinct_colors(x.shape[1])]
            self.way.data = {"xs": list(x[: row + 1, :, 0].T), "ys": list(x[: row + 1, :, 1].T), "color": points}
            names = [f"{quantity.name}[{i}]" for i in range(x.shape[1])]
            self.source.data = {"x": x[row, :, 0], "y": x[row, :, 1], "color": points, "name": names}
            return
        flat = values.reshape(len(values), values.shape[1], -1)
        colors(self.mapper, flat, from_zero=self.attention)
        self.source.data = {"image": [np.ascontiguousarray(flat[row])], "w": [flat.shape[2]], "h": [flat.shape[1]]}


# Panels of planes in bokeh: a phase portrait, and a map over two parameters.

TALL = 460  # pixels
LOOKS = {
    "stable": ("circle", INK),
    "saddle": ("diamond", "white"),
    "unstable": ("circle", "white"),
    "neutral": ("square", "#bbbbbb"),
    "unknown": ("square", "white"),
}
"""{stability of a rest state: its marker, and its colour inside}."""


class PortraitPanel:
    """A phase portrait: flow, nullclines, the run, rest states."""

    def __init__(self) -> None:
        self.figure = new_figure("", height=TALL)
        self.flow = ColumnDataSource({"x0": [], "y0": [], "x1": [], "y1": []})
        self.lines = [ColumnDataSource({"xs": [], "ys": []}) for _ in range(2)]
        self.way = ColumnDataSource({"x": [], "y": []})
        self.start = ColumnDataSource({"x": [], "y": []})
        self.rests = ColumnDataSource({"x": [], "y": [], "stability": [], "marker": [], "color": []})
        self.figure.segment("x0", "y0", "x1", "y1", line_color="#b5b5b5", source=self.flow)
        self.figure.scatter("x0", "y0", size=3, color="#b5b5b5", source=self.flow)
        for source, color, word in zip(self.lines, (CATEGORIES[2], CATEGORIES[3]), ("first", "second"), strict=True):
            self.figure.multi_line("xs", "ys", color=color, line_width=1.5, line_dash="dashed", source=source, legend_label=f"{word} rests")
        self.figure.line("x", "y", color=CATEGORIES[0], line_width=2, source=self.way, legend_label="run")
        self.figure.scatter("x", "y", size=7, color=CATEGORIES[0], source=self.start, legend_label="start")
        dots = self.figure.scatter(
            "x",
            "y",
            marker="marker",
            size=11,
            fill_color="color",
            line_color=INK,
            line_width=1.5,
            source=self.rests,
            legend_label="rest state",
        )
        self.figure.add_tools(HoverTool(renderers=[dots], tooltips=[("", "@stability"), ("x", "@x"), ("y", "@y")]))
        legend = self.figure.legend[0]
        legend.update(orientation="horizontal", border_line_color=None, padding=0, margin=0, spacing=8, label_text_font_size="11px")
        self.figure.add_layout(legend, "above")

    def show(self, portrait: Portrait, first: str, second: str) -> None:
        """Replaces the data by those of a portrait of the numbers first and second."""
        p = portrait
        self.figure.xaxis.axis_label, self.figure.yaxis.axis_label = first, second
        for item, name in zip(self.figure.legend[0].items, (first, second), strict=False):
            item.label = {"value": f"{name} at rest"}
        x, y = np.meshgrid(p.x, p.y)
        cell = np.array([p.x[1] - p.x[0], p.y[1] - p.y[0]])
        scaled = p.flow / cell[:, None, None]
        size = np.hypot(*scaled)
        with np.errstate(all="ignore"):
            dx, dy = 0.7 * cell[:, None, None] * scaled / size
        there = np.isfinite(dx) & np.isfinite(dy)
        x, y, dx, dy = (values[there] for values in (x, y, dx, dy))
        self.flow.data = {"x0": x, "y0": y, "x1": x + dx, "y1": y + dy}
        for source, lines in zip(self.lines, p.nullclines, strict=True):
            source.data = {"xs": [line[:, 0] for line in lines], "ys": [line[:, 1] for line in lines]}
        self.way.data = {"x": p.way[:, 0], "y": p.way[:, 1]}
        self.start.data = {"x": p.way[:1, 0], "y": p.way[:1, 1]}

    def show_rests(self, rests: Array, stability: Sequence[str]) -> None:
        """Shows rest states (R, 2), with how stable each is."""
        looks = [LOOKS[word] for word in stability]
        data: dict[str, Any] = {
            "x": rests[:, 0],
            "y": rests[:, 1],
            "stability": list(stability),
            "marker": [marker for marker, _ in looks],
            "color": [color for _, color in looks],
        }
        replace_data(self.rests, data)


class SweepPanel:
    """A map over two numbers, with the place of the sliders."""

    def __init__(self, axes: dict[str, Scale], quantity: str) -> None:
        self.axes, self.quantity = axes, quantity
        (self.first, x), (self.second, y) = axes.items()
        kinds = {"x_axis_type": "log" if x.log else "linear", "y_axis_type": "log" if y.log else "linear"}
        ranges = {"x_range": (x.low, x.high), "y_range": (y.low, y.high)}
        words = {"x_axis_label": self.first, "y_axis_label": self.second}
        self.figure = new_figure("", height=TALL, **kinds, **ranges, **words)
        self.source = ColumnDataSource({"left": [], "right": [], "bottom": [], "top": [], "value": []})
        self.mapper = LinearColorMapper(palette=SEQUENTIAL, nan_color="#dddddd")
        value = {"field": "value", "transform": self.mapper}
        cells = self.figure.quad("left", "right", "bottom", "top", source=self.source, line_color=value, fill_color=value)
        self.figure.add_layout(color_bar(self.mapper), "right")
        self.figure.add_tools(HoverTool(renderers=[cells], tooltips=[(self.first, "$x"), (self.second, "$y"), (quantity, "@value")]))
        self.here = ColumnDataSource({"x": [], "y": []})
        self.figure.scatter("x", "y", marker="cross", size=16, line_color="white", line_width=5, source=self.here)
        self.figure.scatter("x", "y", marker="cross", size=14, line_color=INK, line_width=2, source=self.here)

    def show(self, sweep: Sweep, here: tuple[float, float]) -> None:
        """Replaces the data by those of a sweep; here: the numbers of the sliders."""
        n = len(sweep.x)
        x, y = (borders(scale, n) for scale in self.axes.values())
        left, bottom = np.meshgrid(x[:-1], y[:-1])
        right, top = np.meshgrid(x[1:], y[1:])
        corners = {"left": left, "right": right, "bottom": bottom, "top": top, "value": sweep.values}
        values = np.where(np.isfinite(sweep.values), sweep.values, np.nan)
        colors(self.mapper, values)
        self.source.data = {name: np.ravel(value) for name, value in corners.items()}
        self.here.data = {"x": [here[0]], "y": [here[1]]}
        self.figure.title.text = f"{self.quantity} at the end, {n} x {n} runs"
