"""Any picture of odesim as a page of html: the artists of a matplotlib Figure as traces of plotly, in the same places.

One can zoom, read values off, and turn on and off what a legend of the picture names, and curves by the names at their ends.
A new kind of picture needs nothing here, as long as it is made of lines, areas, meshes, points, bars and words. Letters have their size in
pixels; panels are as wide as the window allows, and on a phone one below the other.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import Collection, LineCollection, PathCollection, QuadMesh
from matplotlib.colors import to_rgba
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch
from matplotlib.spines import Spine
from matplotlib.table import Table
from matplotlib.text import Annotation, Text
from matplotlib.ticker import AutoLocator, LogLocator, MaxNLocator
from matplotlib.transforms import IdentityTransform

from odesim.base.arrays import Array
from odesim.base.errors import ParamError
from odesim.plot.formulas import words_of
from odesim.plot.header import balanced
from odesim.plot.labels import without_power
from odesim.plot.places import ENTRY_TYPE, LETTERS, NARROWEST, PIXELS, STRETCH, arrangement, blocks_of
from odesim.plot.style import ON_CURVE, power_of, project_style, root_figure

SCRIPT = """
const page = document.getElementById('{plot_id}'), ways = page.layout.meta;
let last = 0;
function arrange() {
  const way = Number(page.clientWidth < NARROWEST);
  if (way !== last) { last = way; Plotly.relayout(page, ways[way]); }
}
window.addEventListener('resize', arrange);
arrange();

const pale = new Set(), texts = page.layout.annotations, curves = texts.map(text => text.name ? text.name.split('\\n') : []);
const every = new Set(curves.flat());
function turn(those, off) {
  those.forEach(curve => off ? pale.add(curve) : pale.delete(curve));
  const opacity = those => those.length && those.every(curve => pale.has(curve)) ? 0.12 : 1, words = {};
  curves.forEach((those, k) => words[`annotations[${k}].opacity`] = opacity(those));
  page.layout.shapes.forEach((leader, k) => words[`shapes[${k}].opacity`] = opacity([leader.name]));
  Plotly.update(page, {opacity: page.data.map(trace => opacity([trace.meta ?? trace.legendgroup]))}, words);
}
function pick(index, twice) {
  const those = curves[index], others = curves.filter((_, k) => k !== index && texts[k].xref === texts[index].xref).flat();
  if (!twice) return turn(those, !those.every(curve => pale.has(curve)));
  turn(others, !others.every(curve => pale.has(curve)));
  turn(those, false);
}
page.on('plotly_clickannotation', ({index, event}) => pick(index, event.detail > 1));
let tapped = 0;
page.addEventListener('touchend', event => {  // of a finger plotly makes no click
  const index = event.target.closest('.annotation')?.dataset.index;
  if (!curves[index]?.length) return;
  event.preventDefault();
  pick(Number(index), event.timeStamp - tapped < 400);
  tapped = event.timeStamp;
});
page.on('plotly_click', ({points: [{data}], event}) => {
  const curve = data.meta ?? data.legendgroup;
  if (every.has(curve) && !/touch/.test(event.type)) turn([curve], !pale.has(curve));
});
""".replace("NARROWEST", str(NARROWEST))
"""In the page: panels as in the picture where the window is wide, else one below the other, as on a phone. Curves are pale and back at a
click on their name or on themselves, with their marks, alone in their panel and back at two; they stay seen a little, for their panel keeps
its scale. A finger on a curve reads its value, as a mouse does by standing there."""
SWITCH = "click: off or on; double click: alone"
UNIT = re.compile(r"\s*\([^()]*\)$")  # at the end of the label of an axis
UNNAMED = re.compile(r"(_child\d+|_nolegend_|_container\d+)?")
SHADES, CLEAR = 64, "rgba(0,0,0,0)"  # steps of a colour scale; no colour
MARKERS = {"o": "circle", "s": "square", "^": "triangle-up", "v": "triangle-down", "D": "diamond", "x": "x", "+": "cross", "*": "star"}
DASHES = {"-": "solid", "--": "dash", ":": "dot", "-.": "dashdot"}
STEPS = {"steps-pre": "vh", "steps-post": "hv", "steps-mid": "hvh", "steps": "vh"}
PAPER = {"xref": "paper", "yref": "paper"}


def to_plotly(figure: Figure) -> Any:
    """The Figure of plotly, whose layout.meta has what relayout takes for a wide window and for a narrow one.

    Raises ParamError for an artist that it has no trace for.
    """
    from plotly.graph_objects import Figure as PlotlyFigure

    with project_style():
        figure.draw_without_rendering()  # the layout is what is copied
        page: dict[str, Any] = {"data": [], "layout": {"annotations": [], "shapes": []}}
        every = list(with_insets(figure.axes))
        heads: list[Any] = [figure._suptitle, *figure.texts, figure._supxlabel, figure._supylabel]  # type: ignore[attr-defined]  # no public name
        heads = [text for text in dict.fromkeys(heads) if text is not None and text.get_text().strip() and text.get_visible()]
        for text in heads:
            head = {"text": "", **PAPER, "x": 0.5, "y": 1.0, "xanchor": "center", "yanchor": "top", "showarrow": False}
            page["layout"]["annotations"].append(head | {"font": {"size": float(text.get_fontsize()) * PIXELS / 72, "color": "#222"}})
        for number, axes in enumerate(every):
            add_axes(page, axes, every[:number], number + 1)
        for legend in [*figure.legends, *(axes.get_legend() for axes in every)]:
            add_entries(page, legend)
        blocks, width = blocks_of(every), float(PIXELS * figure.get_figwidth())
    names = [trace["name"] for trace in page["data"] if trace["showlegend"]]
    ways = [arrangement(page, heads, blocks, names, width, narrow=narrow) for narrow in (False, True)]
    page["layout"] |= {
        "margin": {"l": 0, "r": 0},
        "template": "plotly_white",
        "font": {"family": "DejaVu Sans, sans-serif", "size": 12},
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "tracegroupgap": 4, "font": {"size": ENTRY_TYPE}},
        "showlegend": bool(names),
        "hovermode": "closest",
        "meta": ways,
    }
    plotly = PlotlyFigure(page)  # at once: it checks and copies all that it has each time something is added
    for key, value in ways[0].items():
        plotly.layout[key] = value
    return plotly


def widest(figure: Figure) -> int:
    """Pixels of a page beyond which panels would only be flat."""
    return round(STRETCH * PIXELS * figure.get_figwidth())


def add_trace(page: Any, kind: str, **words: Any) -> None:
    """Adds a trace of this type of plotly, which the legend does not have unless the words say so."""
    page["data"].append({"type": kind, "showlegend": False, **words})


def with_insets(axes: Iterable[Any]) -> Iterator[Axes]:
    """The Axes that are seen, each before those inside it."""
    for one in axes:
        if one.get_visible():
            yield one
            yield from with_insets(one.child_axes)


def add_axes(page: Any, axes: Axes, before: list[Axes], number: int) -> None:
    """Adds the two axes of an Axes, number from 1, and all that it draws."""
    if axes.name != "rectilinear":
        raise ParamError(f"a page of html has no {axes.name} panel; png, pdf and svg draw it")
    name = str(number) if number > 1 else ""
    place = {"xaxis": f"x{name}", "yaxis": f"y{name}"}
    same = [k for k, other in enumerate(before) if np.allclose(other.get_window_extent().extents, axes.get_window_extent().extents)]
    for letter in "xy":
        axis: Any = getattr(axes, f"{letter}axis")
        shared = getattr(axes, f"get_shared_{letter}_axes")()
        with_it = [k for k, other in enumerate(before) if shared.joined(axes, other)]
        words = {**axis_words(axes, axis), "anchor": f"{'yx'[letter == 'y']}{name}"}
        if axes.get_aspect() != "auto":  # a circle stays one
            words |= {"constrain": "domain"} | ({"scaleanchor": f"x{name}"} if letter == "y" else {})
        if with_it:
            words["matches"] = f"{letter}{with_it[0] + 1 if with_it[0] else ''}"
        if same:
            words["overlaying"] = f"{letter}{same[0] + 1 if same[0] else ''}"
        page["layout"][f"{letter}axis{name}"] = words
    for artist in sorted(axes.get_children(), key=lambda a: a.get_zorder()):
        if artist.get_visible() and artist is not axes.patch:
            add_artist(page, axes, artist, place)
    if axes.axison:
        for axis in (axes.xaxis, axes.yaxis):  # numbers at ticks of plotly's own are whole
            add_text(page, axes, axis.label, place, without_power(axis) if has_usual_ticks(axes, axis) else None)


def axis_words(axes: Axes, axis: Any) -> dict[str, Any]:
    """How an axis looks: its limits, ticks where they have words of their own, labels, line."""
    letter = axis.axis_name
    low, high = axis.get_view_interval()
    log = axis.get_scale() == "log"
    sides = {"x": ("bottom", "top"), "y": ("left", "right")}[letter]
    side = sides[axis.get_ticks_position() == sides[1]]
    shown = axes.axison and any(tick.label1.get_visible() or tick.label2.get_visible() for tick in axis.get_major_ticks())
    size = PIXELS / 72 * float(axis.get_major_ticks(1)[0].label1.get_fontsize()) if axes.axison else 12
    words: dict[str, Any] = {
        "type": "log" if log else "linear",
        "range": [float(v) for v in (np.log10([low, high]) if log else moved(axis, [low, high]))],
        "showgrid": False,
        "zeroline": False,
        "visible": bool(axes.axison),
        "showline": bool(axes.spines[side].get_visible()) if side in axes.spines else False,
        "linecolor": "#888",
        "color": "#222",
        "side": side,
        "showticklabels": shown,
        "ticks": "outside" if axes.axison and axis.get_majorticklines() and len(axis.get_majorticklocs()) else "",
        "ticklen": 3,
        "tickfont": {"size": size},
        "exponentformat": "power",
        "tickangle": 0,
    }
    places = axis.get_majorticklocs()
    inside = (places >= min(low, high)) & (places <= max(low, high))
    if not has_usual_ticks(axes, axis):
        texts = axis.get_major_formatter().format_ticks(list(places))
        words |= {"tickmode": "array", "tickvals": moved(axis, places[inside]).tolist()}
        words |= {"ticktext": [words_of(text) for text, seen in zip(texts, inside, strict=True) if seen]}
    else:
        words |= {"nticks": 1 + int(inside.sum())}
    return words


def has_usual_ticks(axes: Axes, axis: Any) -> bool:
    """Whether plotly chooses the ticks of an axis."""
    usual = isinstance(axis.get_major_locator(), MaxNLocator | AutoLocator | LogLocator) and axis.get_scale() in ("linear", "log")
    return usual and axes.get_label() != "<colorbar>"


def moved(axis: Axis, values: Any) -> Array:
    """Values on an axis as plotly places them: those of a scale that it does not have are transformed."""
    values = np.asarray(values, float)
    return values if axis.get_scale() in ("linear", "log") else np.asarray(axis.get_transform().transform(values), float)


def in_data(axes: Axes, points: Any, transform: Any) -> tuple[Array, Array]:
    """(x, y) of points (n, 2) of any transform, in the data of the Axes."""
    points = np.ma.filled(np.ma.asarray(points, float), np.nan).reshape(-1, 2)
    if transform != axes.transData:
        points = axes.transData.inverted().transform(transform.transform(points))
    return moved(axes.xaxis, points[:, 0]), moved(axes.yaxis, points[:, 1])


def add_artist(page: Any, axes: Axes, artist: Artist, place: dict[str, str]) -> None:
    """Adds what an artist draws. Raises ParamError for one of another kind."""
    if isinstance(artist, Line2D):
        add_line(page, axes, artist, place)
    elif isinstance(artist, QuadMesh):
        add_mesh(page, axes, artist, np.asarray(artist.get_coordinates(), float), artist.get_array(), place)
    elif isinstance(artist, AxesImage):
        add_image(page, axes, artist, place)
    elif isinstance(artist, PathCollection):
        add_points(page, axes, artist, place)
    elif isinstance(artist, Collection):
        add_paths(page, axes, artist, place)
    elif isinstance(artist, FancyArrowPatch | Axis | Spine | Legend | Axes):
        return  # arrows come with their words; the legend is plotly's; insets are Axes of their own
    elif isinstance(artist, Patch):
        if (color := rgba(artist.get_facecolor())) or artist.get_linewidth():
            # not by the inverse of its own transform: a bar of height 0 has none
            outlines = artist.get_transform().transform_path(artist.get_path()).to_polygons(closed_only=False)
            edge = rgba(artist.get_edgecolor()) if artist.get_linewidth() else ""
            add_area(page, axes, outlines, IdentityTransform(), (color, edge), label_of(axes, artist), place)
    elif isinstance(artist, Table):
        for cell in artist.get_celld().values():
            add_text(page, axes, cell.get_text(), place)
    elif isinstance(artist, Text):
        add_text(page, axes, artist, place)
    else:
        raise ParamError(f"a page of html has no {type(artist).__name__}; png, pdf and svg draw it")


def add_line(page: Any, axes: Axes, line: Line2D, place: dict[str, str]) -> None:
    """A line with its markers; leaders to names beside a panel, which plotly would cut at its edge, are no traces."""
    if line.get_transform() == axes.transAxes and not line.get_clip_on():
        return add_segments(page, axes, line.get_xydata(), line, place)
    x, y = in_data(axes, np.column_stack([np.ma.filled(np.ma.asarray(v, float), np.nan) for v in line.get_data()]), line.get_transform())
    if not len(x):
        return
    if (style := line_style(line))["mode"]:
        add_trace(page, "scatter", x=x, y=y, **style, **named(axes, line, marks="lines" not in style["mode"]), **place)


def line_style(line: Line2D) -> dict[str, Any]:
    """How a line looks, and its markers."""
    drawn, marked = line.get_linestyle() not in ("None", "", " "), MARKERS.get(str(line.get_marker()))
    if line.get_marker() not in ("None", "", " ", None) and marked is None:
        marked = "line-ns-open"  # ticks of events
    style: dict[str, Any] = {
        "line": {"color": rgba(line.get_color(), line.get_alpha()) or CLEAR, "width": line.get_linewidth() * PIXELS / 72}
    }
    style["line"] |= {"dash": DASHES.get(str(line.get_linestyle()), "dash"), "shape": STEPS.get(line.get_drawstyle(), "linear")}
    if marked:
        edge = {"color": rgba(line.get_markeredgecolor(), line.get_alpha()) or CLEAR, "width": line.get_markeredgewidth() * PIXELS / 72}
        style["marker"] = {
            "symbol": marked,
            "size": line.get_markersize() * PIXELS / 72,
            "color": rgba(line.get_markerfacecolor(), line.get_alpha()) or "white",
        }
        style["marker"] |= {"line": edge}
    mode = "+".join(["lines"] * drawn + ["markers"] * bool(marked))
    return {**style, "mode": mode}


def add_mesh(page: Any, axes: Axes, mesh: Any, corners: Array, values: Any, place: dict[str, str]) -> None:
    """A map with cells between corners (m + 1, n + 1, 2), whose colours are those of its norm, whatever that is."""
    values = np.ma.masked_invalid(np.ma.asarray(values, float).reshape(corners.shape[0] - 1, corners.shape[1] - 1))
    if corners[0, 0, 0] == corners[0, -1, 0]:  # a colour bar that lies: its rows go to the right
        corners, values = corners.swapaxes(0, 1), values.T
    colors: Any = np.ma.filled(np.ma.asarray(mesh.norm(values), float), np.nan)
    x, y = moved(axes.xaxis, corners[0, :, 0]), moved(axes.yaxis, corners[:, 0, 1])
    scale = [[k / (SHADES - 1), rgba(mesh.cmap(k / (SHADES - 1))) or CLEAR] for k in range(SHADES)]
    words = {"zmin": 0.0, "zmax": 1.0, "colorscale": scale, "showscale": False, "customdata": np.ma.filled(values, np.nan)}
    hover = beside_mouse(x=title_of(axes.xaxis), y=title_of(axes.yaxis), customdata=title_of_colors(mesh))
    words |= {"hoverinfo": "skip"} if axes.get_label() == "<colorbar>" else {"hovertemplate": hover}
    add_trace(page, "heatmap", x=x, y=y, z=np.clip(colors, 0, 1), **words, **place)


def add_image(page: Any, axes: Axes, image: AxesImage, place: dict[str, str]) -> None:
    """A map of an image. Raises ParamError for one of ready colours."""
    values: Any = image.get_array()
    if values.ndim != 2:
        raise ParamError("a page of html has no image of ready colours; png, pdf and svg draw it")
    left, right, bottom, top = image.get_extent()
    x, y = np.linspace(left, right, values.shape[1] + 1), np.linspace(bottom, top, values.shape[0] + 1)
    y = y[::-1] if image.origin == "upper" else y
    add_mesh(page, axes, image, np.stack(np.meshgrid(x, y), axis=-1), values, place)


def add_points(page: Any, axes: Axes, points: PathCollection, place: dict[str, str]) -> None:
    """Points with their colours and sizes."""
    x, y = in_data(axes, points.get_offsets(), points.get_offset_transform())
    faces: Any = points.get_facecolor()
    faces = faces if len(faces) else points.get_edgecolor()
    colors: list[str] = [rgba(color) or CLEAR for color in faces]
    sizes = np.sqrt(np.asarray(points.get_sizes(), float)) * PIXELS / 72
    marker: dict[str, Any] = {"color": colors if len(colors) == len(x) else colors[0] if colors else "black"}
    marker |= {"size": sizes if len(sizes) == len(x) else float(sizes[0]) if len(sizes) else 5.0}
    add_trace(page, "scatter", x=x, y=y, mode="markers", marker=marker, **named(axes, points, marks=True), **place)


def add_paths(page: Any, axes: Axes, collection: Collection, place: dict[str, str]) -> None:
    """Areas of a band or of filled contours, lines of a bundle: those of one colour are one trace."""
    filled = not isinstance(collection, LineCollection) and not (isinstance(collection, ContourSet) and not collection.filled)
    colors: Any = collection.get_facecolor() if filled else collection.get_edgecolor()
    groups: dict[str, list[Any]] = {}
    for k, path in enumerate(collection.get_paths()):
        color = rgba(colors[k % len(colors)]) if len(colors) else ""
        groups.setdefault(color, []).extend(path.to_polygons(closed_only=False))
    for color, outlines in groups.items():
        both = (color, "") if filled else ("", color)
        add_area(page, axes, outlines, collection.get_transform(), both, label_of(axes, collection), place)


def add_area(
    page: Any, axes: Axes, outlines: list[Any], transform: Any, colors: tuple[str, str], name: dict[str, Any], place: dict[str, str]
) -> None:
    """Outlines [(n, 2)] as one trace. colors: of the area and of its edge, empty for none."""
    parts = [part for outline in outlines for part in (outline, [[np.nan, np.nan]])]
    if not parts or not any(colors):
        return
    x, y = in_data(axes, np.concatenate(parts[:-1]), transform)
    style: dict[str, Any] = {"mode": "lines", "line": {"width": 1.0 if colors[1] else 0.0, "color": colors[1] or colors[0]}}
    style |= {"fill": "toself", "fillcolor": colors[0]} if colors[0] else {}
    add_trace(page, "scatter", x=x, y=y, hoverinfo="skip", **style, **name, **place)


def add_text(page: Any, axes: Axes, text: Text, place: dict[str, str], shown: str | None = None) -> None:
    """Words in their place inside the panel, or as far from its edge; shown: instead of those of the text."""
    words = words_of(text.get_text() if shown is None else shown)
    if not words.strip() or not text.get_visible():
        return
    # a rotated text is placed by its box: plotly turns it around its middle
    box, panel = text.get_window_extent(), axes.get_window_extent()
    middle = (np.array([box.x0 + box.x1, box.y0 + box.y1]) / 2 - panel.min) / panel.size
    edge = np.clip(middle, 0, 1)
    shift = (middle - edge) * panel.size / root_figure(axes).dpi * PIXELS
    words_there = {
        "text": f"<b>{words}</b>" if text.get_fontweight() in ("bold", 700) else words,
        **dict(zip(("x", "y", "xshift", "yshift"), map(float, [*edge, *shift]), strict=True)),
        **domains(place),
        "xanchor": "center",
        "yanchor": "middle",
        "showarrow": False,
        "textangle": -float(text.get_rotation()),
        "align": str(text.get_horizontalalignment()),
        "font": {"size": float(text.get_fontsize()) * PIXELS / 72, "color": rgba(text.get_color(), text.get_alpha()) or CLEAR},
    }
    if curves := str(text.get_label()).strip():  # of a name at the ends of curves
        words_there |= {"name": curves, "hovertext": f"{words_of(curves)}<br>{SWITCH}"}
    page["layout"]["annotations"].append(words_there)
    if isinstance(text, Annotation) and text.arrow_patch is not None and text.arrow_patch.get_visible():
        for outline in text.arrow_patch.get_path().to_polygons(closed_only=False):
            add_segments(page, axes, axes.transAxes.inverted().transform(outline), text.arrow_patch, place)


def add_segments(page: Any, axes: Axes, points: Any, artist: Line2D | Patch, place: dict[str, str]) -> None:
    """Segments between points (n, 2) in fractions of the panel; right of it they are as long as in the picture."""
    color = rgba(artist.get_color() if isinstance(artist, Line2D) else artist.get_edgecolor(), artist.get_alpha())
    style = {**domains(place), "type": "line", "line": {"color": color or CLEAR, "width": artist.get_linewidth() * PIXELS / 72}}
    style["name"] = label_of(axes, artist)["legendgroup"]
    pixels = axes.get_window_extent().width / root_figure(axes).dpi * PIXELS
    for (x0, y0), (x1, y1) in pairwise(np.asarray(points, float).tolist()):
        ends = {"x0": x0, "x1": x1, "y0": y0, "y1": y1}
        if min(x0, x1) >= 1:
            ends |= {"xsizemode": "pixel", "xanchor": 1, "x0": (x0 - 1) * pixels, "x1": (x1 - 1) * pixels}
        page["layout"]["shapes"].append({**style, **ends})


def domains(place: dict[str, str]) -> dict[str, str]:
    """What a layout calls the two sides of a panel."""
    return {"xref": f"{place['xaxis']} domain", "yref": f"{place['yaxis']} domain"}


def add_entries(page: Any, legend: Legend | None) -> None:
    """The entries of a legend, each once; each turns on and off what has its words as a label."""
    for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True) if legend else ():
        label = str(handle.get_label() if handle else "") or text.get_text()  # the text may be broken into lines
        if any(trace["showlegend"] and trace["legendgroup"] == label for trace in page["data"]):
            continue
        style: dict[str, Any] = {"mode": "lines", "line": {"color": "black"}}
        if isinstance(handle, Line2D):
            style = line_style(handle)
        elif isinstance(handle, Patch):
            style["line"] = {"color": rgba(handle.get_facecolor()), "width": 8}
        add_trace(page, "scatter", x=[None], y=[None], name=entry(label), showlegend=True, legendgroup=label, **style)


def label_of(axes: Axes, artist: Artist) -> dict[str, Any]:
    """The name of a trace, and its group, which an entry of a legend turns on and off together.

    An artist whose label begins with _ belongs to the group of the label without it; one without a label has the name of its panel. The
    meta of a mark on a curve is this curve, with which it goes.
    """
    label = str(artist.get_label() or "")
    group, _, curve = ("" if UNNAMED.fullmatch(label) else label.lstrip("_")).partition(ON_CURVE)
    return {"name": entry(group) or panel_of(axes), "legendgroup": group or None, **({"meta": curve} if curve else {})}


def panel_of(axes: Axes) -> str:
    """The name of what is drawn upwards in a panel."""
    return title_of(axes.yaxis) or words_of(axes.get_title(loc="center") or axes.get_title(loc="left"))


def entry(label: str) -> str:
    """A label in the lines of a legend, which a phone has room for."""
    return words_of(balanced(label, LETTERS))


def named(axes: Axes, artist: Artist, *, marks: bool = False) -> dict[str, Any]:
    """label_of(), with the words that stand beside the mouse; marks: have a name of their own beside that of what they stand on."""
    names = label_of(axes, artist)
    if not len(axes.get_yticks()):  # of points in space, the places on the page say nothing
        return {**names, "hovertemplate": beside_mouse(names["name"])}
    of = names["name"] if not marks else words_of(names["meta"]) if "meta" in names else panel_of(axes)
    return {**names, "hovertemplate": beside_mouse(*{names["name"]} - {of}, x=title_of(axes.xaxis), y=of)}


def beside_mouse(*more: str, **names: str) -> str:
    """What stands beside the mouse: `t = 0.5`, a line for each coordinate with a name, below the numbers of the others, and more lines.

    names {coordinate of a trace: in html}.
    """
    bare = ", ".join(f"%{{{what}:.6g}}" for what, name in names.items() if not name)
    lines = [f"{name} = %{{{what}:.6g}}" for what, name in names.items() if name]
    return "<br>".join([*[bare] * bool(bare), *lines, *more]) + "<extra></extra>"


def title_of(axis: Any) -> str:
    """What an axis is, in html, without its unit: by its own label, or that of one which is zoomed with it."""
    shared = getattr(axis.axes, f"get_shared_{axis.axis_name}_axes")().get_siblings(axis.axes)
    axes = [axis, *(getattr(other, f"{axis.axis_name}axis") for other in shared)]
    return next((words_of(UNIT.sub("", without_power(one)).replace("\n", " ")) for one in axes if one.get_label_text()), "")


def title_of_colors(mesh: Any) -> str:
    """What the colours of a map are, in html, by its colour bar; empty without one."""
    bar = mesh.colorbar
    label = UNIT.sub("", bar.ax.get_xlabel() or bar.ax.get_ylabel()) if bar else ""
    return words_of(label.removesuffix(power_of(bar.formatter)).strip() if label else "")


def rgba(color: Any, alpha: float | None = None) -> str:
    """A colour of matplotlib as plotly writes it; empty for one that is not seen."""
    if color is None or (isinstance(color, str) and color.lower() == "none"):
        return ""
    red, green, blue, opacity = to_rgba(color, alpha)
    return f"rgba({round(255 * red)},{round(255 * green)},{round(255 * blue)},{opacity:.3g})" if opacity else ""
