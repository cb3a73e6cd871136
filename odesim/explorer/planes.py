"""Panels of planes in bokeh: a phase portrait, and a map over two parameters."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool, LinearColorMapper

from odesim.base.arrays import Array
from odesim.explorer.controls import Scale
from odesim.explorer.panels import SEQUENTIAL, color_bar, colors, new_figure, replace_data
from odesim.explorer.views import Portrait, Sweep, borders
from odesim.plot.style import CATEGORIES, INK

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
