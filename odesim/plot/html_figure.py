"""Any picture of odesim as a page of html: the artists of a matplotlib Figure as traces of plotly, in the same places.

One can zoom, read values off and turn lines with a name on and off in the legend. A new kind of picture needs nothing here, as long as
it is made of lines, areas, meshes, points, bars and words.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from html import escape
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
from odesim.plot.labels import without_power
from odesim.plot.style import project_style

PIXELS = 150.0  # of an inch: a picture 80 mm wide has 472 pixels, its letters some 15
LEGEND, BAR = 210, 30  # pixels beside the picture, and above it, where plotly has its buttons
SHADES, CLEAR = 64, "rgba(0,0,0,0)"  # steps of a colour scale; no colour
MARKERS = {"o": "circle", "s": "square", "^": "triangle-up", "v": "triangle-down", "D": "diamond", "x": "x", "+": "cross", "*": "star"}
DASHES = {"-": "solid", "--": "dash", ":": "dot", "-.": "dashdot"}
STEPS = {"steps-pre": "vh", "steps-post": "hv", "steps-mid": "hvh", "steps": "vh"}
SIGNS = {
    "times": "×",
    "cdot": "·",
    "leq": "≤",
    "geq": "≥",
    "infty": "∞",
    "langle": "⟨",
    "rangle": "⟩",
    "partial": "∂",
    "to": "→",
    "pm": "±",
}
PAPER = {"xref": "paper", "yref": "paper"}
MATH = re.compile(r"\\(?:mathrm|mathit|mathbf|text|operatorname)\s*\{([^{}]*)\}|\\([A-Za-z]+)\s?|\\(.)|([_^])(?:\{|(?=\\?\w))|([{}])")


def to_plotly(figure: Figure) -> Any:
    """The Figure of plotly. Raises ParamError for an artist that it has no trace for."""
    from plotly.graph_objects import Figure as PlotlyFigure

    with project_style():
        figure.draw_without_rendering()  # the layout is what is copied
        page: dict[str, Any] = {"data": [], "layout": {"annotations": [], "shapes": []}}
        width, height = (PIXELS * size for size in figure.get_size_inches())
        every = list(with_insets(figure.axes))
        for number, axes in enumerate(every):
            add_axes(page, axes, every[:number], number + 1)
        for text in figure.texts:
            add_text(page, figure, text)
        for text in (figure._suptitle, figure._supxlabel, figure._supylabel):  # type: ignore[attr-defined]  # which have no public name
            if text is not None and text not in figure.texts:
                add_text(page, figure, text)
        for legend in [*figure.legends, *(axes.get_legend() for axes in every)]:
            add_entries(page, legend)
    named = any(trace.get("showlegend") for trace in page["data"])
    page["layout"] |= {
        "width": width + LEGEND * named,
        "height": height + BAR,
        "margin": {"l": 0, "t": BAR, "b": 0, "r": LEGEND * named},
        "template": "plotly_white",
        "font": {"family": "DejaVu Sans, sans-serif", "size": 12},
        "legend": {"x": 1.01, "y": 1.0, "tracegroupgap": 4, "font": {"size": 11}},
        "hovermode": "closest",
    }
    return PlotlyFigure(page)  # at once: it checks and copies all that it has each time something is added


def add_trace(page: Any, kind: str, **words: Any) -> None:
    """Adds a trace of this type of plotly."""
    page["data"].append({"type": kind, **words})


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
    figure: Any = axes.get_figure(root=True)
    box = axes.get_window_extent().transformed(figure.transFigure.inverted())
    name = str(number) if number > 1 else ""
    place = {"xaxis": f"x{name}", "yaxis": f"y{name}"}
    same = [k for k, other in enumerate(before) if np.allclose(other.get_window_extent().extents, axes.get_window_extent().extents)]
    for letter, ends in (("x", (box.x0, box.x1)), ("y", (box.y0, box.y1))):
        axis: Any = getattr(axes, f"{letter}axis")
        shared = getattr(axes, f"get_shared_{letter}_axes")()
        with_it = [k for k, other in enumerate(before) if shared.joined(axes, other)]
        words = {**axis_words(axes, axis), "domain": [float(np.clip(end, 0, 1)) for end in ends], "anchor": f"{'yx'[letter == 'y']}{name}"}
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
            add_text(page, axes, axis.label, without_power(axis) if has_usual_ticks(axes, axis) else None)


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
            add_text(page, axes, cell.get_text())
    elif isinstance(artist, Text):
        add_text(page, axes, artist)
    else:
        raise ParamError(f"a page of html has no {type(artist).__name__}; png, pdf and svg draw it")


def add_line(page: Any, axes: Axes, line: Line2D, place: dict[str, str]) -> None:
    """A line with its markers."""
    x, y = in_data(axes, np.column_stack([np.ma.filled(np.ma.asarray(v, float), np.nan) for v in line.get_data()]), line.get_transform())
    if not len(x):
        return
    if (style := line_style(line))["mode"]:
        add_trace(page, "scatter", x=x, y=y, **style, **named(axes, line), **place)


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
        edge = {"color": rgba(line.get_markeredgecolor()) or CLEAR, "width": line.get_markeredgewidth() * PIXELS / 72}
        style["marker"] = {
            "symbol": marked,
            "size": line.get_markersize() * PIXELS / 72,
            "color": rgba(line.get_markerfacecolor()) or "white",
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
    hover = "%{customdata:.6g}<br>%{x:.6g}, %{y:.6g}<extra></extra>"
    add_trace(page, "heatmap", x=x, y=y, z=np.clip(colors, 0, 1), hovertemplate=hover, **words, **place)


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
    add_trace(page, "scatter", x=x, y=y, mode="markers", marker=marker, **named(axes, points), **place)


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


def add_text(page: Any, of: Axes | Figure, text: Text, shown: str | None = None) -> None:
    """Words in their place on the paper; shown: instead of those of the text."""
    words = words_of(text.get_text() if shown is None else shown)
    if not words.strip() or not text.get_visible():
        return
    root: Any = of if isinstance(of, Figure) else of.get_figure(root=True)
    # a rotated text is placed by its box: plotly turns it around its middle
    box = text.get_window_extent().transformed(root.transFigure.inverted())
    words_there = {
        "text": f"<b>{words}</b>" if text.get_fontweight() in ("bold", 700) else words,
        "x": (box.x0 + box.x1) / 2,
        "y": (box.y0 + box.y1) / 2,
        **PAPER,
        "xanchor": "center",
        "yanchor": "middle",
        "showarrow": False,
        "textangle": -float(text.get_rotation()),
        "align": str(text.get_horizontalalignment()),
        "font": {"size": float(text.get_fontsize()) * PIXELS / 72, "color": rgba(text.get_color(), text.get_alpha()) or CLEAR},
    }
    page["layout"]["annotations"].append(words_there)
    if isinstance(text, Annotation) and text.arrow_patch is not None and text.arrow_patch.get_visible() and isinstance(of, Axes):
        outlines = text.arrow_patch.get_path().to_polygons(closed_only=False)
        ends = [root.transFigure.inverted().transform(outline) for outline in outlines]
        for end in ends:
            for (x0, y0), (x1, y1) in pairwise(end):
                line = {"color": rgba(text.arrow_patch.get_edgecolor()), "width": 1}
                page["layout"]["shapes"].append({"type": "line", "x0": x0, "y0": y0, "x1": x1, "y1": y1, **PAPER, "line": line})


def add_entries(page: Any, legend: Legend | None) -> None:
    """The entries of a legend that are no lines of a panel."""
    known = {trace["name"] for trace in page["data"] if trace.get("showlegend")}
    for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True) if legend else ():
        name = words_of(text.get_text())
        if name in known:
            continue
        style: dict[str, Any] = {"mode": "lines", "line": {"color": "black"}}
        if isinstance(handle, Line2D):
            style = line_style(handle)
        elif isinstance(handle, Patch):
            style["line"] = {"color": rgba(handle.get_facecolor()), "width": 8}
        add_trace(page, "scatter", x=[None], y=[None], name=name, showlegend=True, **style)


def label_of(axes: Axes, artist: Artist) -> dict[str, Any]:
    """The name of a trace, and whether the legend has it: what has a label is turned on and off there."""
    label = str(artist.get_label() or "")
    has_label = bool(label) and not label.startswith("_")
    panel = words_of(without_power(axes.yaxis) or axes.get_title(loc="center") or axes.get_title(loc="left"))
    return {
        "name": words_of(label) if has_label else panel,
        "showlegend": has_label,
        "legendgroup": f"{panel} {label}" if has_label else None,
    }


def named(axes: Axes, artist: Artist) -> dict[str, Any]:
    """label_of(), with the words that stand beside the mouse."""
    return {**label_of(axes, artist), "hovertemplate": "%{x:.6g}, %{y:.6g}"}


def rgba(color: Any, alpha: float | None = None) -> str:
    """A colour of matplotlib as plotly writes it; empty for one that is not seen."""
    if color is None or (isinstance(color, str) and color.lower() == "none"):
        return ""
    red, green, blue, opacity = to_rgba(color, alpha)
    return f"rgba({round(255 * red)},{round(255 * green)},{round(255 * blue)},{opacity:.3g})" if opacity else ""


def words_of(text: str) -> str:
    """A text of matplotlib with its formulas as html: `$v_l$` becomes v with an index."""
    parts = re.split(r"(?<!\\)\$", text)
    formulas = [to_html(part) if k % 2 else escape(part.replace(r"\$", "$"), quote=False) for k, part in enumerate(parts)]
    return "".join(formulas).replace("\n", "<br>")


def to_html(formula: str) -> str:
    """A formula between dollars: letters are italic, indices and powers small, names of signs the signs."""
    formula = formula.replace(r"\mathdefault", "")  # what matplotlib writes around numbers
    out, open_marks, last = [""], list[str](), 0

    def put(piece: str) -> None:
        out.append(piece)
        if open_marks and open_marks[-1].startswith("!"):  # an index of one letter
            out.append(open_marks.pop()[1:])

    for match in MATH.finditer(formula):
        for letter in formula[last : match.start()]:
            put(f"<i>{letter}</i>" if letter.isalpha() else escape(letter, quote=False))
        upright, sign, other, script, brace = match.groups()
        if upright is not None:
            put(escape(upright))
        elif sign:
            put(sign_of(sign))
        elif other:
            put({",": "\u2009", ";": "\u2009", " ": " "}.get(other, escape(other)))
        elif script:
            tag = "sub" if script == "_" else "sup"
            out.append(f"<{tag}>")
            open_marks.append(f"</{tag}>" if match[0].endswith("{") else f"!</{tag}>")
        elif brace == "{":
            open_marks.append("")
        elif open_marks:
            out.append(open_marks.pop())
        last = match.end()
    for letter in formula[last:]:
        put(f"<i>{letter}</i>" if letter.isalpha() else escape(letter, quote=False))
    return "".join([*out, *(mark.removeprefix("!") for mark in reversed(open_marks))])


def sign_of(name: str) -> str:
    """The sign of a name in LaTeX: Greek letters, some others, else the name."""
    size = "CAPITAL" if name[0].isupper() else "SMALL"
    try:
        return unicodedata.lookup(f"GREEK {size} LETTER {name.upper().replace('LAMBDA', 'LAMDA')}")
    except KeyError:
        return SIGNS.get(name, name)
