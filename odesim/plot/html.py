"""The picture of a Solution as a page of html, by plotly: one can zoom, read values off and choose components in the legend.

It shows the quantities of the still picture. plotly is the extra `odesim[html]`, and is imported when a page is made.
"""

import re
from collections.abc import Set as AbstractSet
from html import escape
from json import dumps
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.arrays import Array
from odesim.inputs.registry import summary
from odesim.plot.between import with_between, with_times
from odesim.plot.choice import Choice
from odesim.plot.files import MARKS, PAGE, Page
from odesim.plot.html_figure import words_of
from odesim.plot.labels import not_shown, symbol
from odesim.plot.panels import MAP, MAX_MARKS, RASTER, Quantity, spread_indices
from odesim.plot.scales import TimeAxis, color_scale, make_time_axis
from odesim.plot.solution import COLORS, GREY, choose_quantities, refuse_scales, with_rasters
from odesim.plot.style import CATEGORIES, DIVERGING, SEQUENTIAL, ordered_colors
from odesim.stepper.occurrences import Events

if TYPE_CHECKING:
    from odesim.run.solution import Solution

COLUMNS, HEIGHT = 2, 320  # panels beside each other; pixels of a row
HEAD, LINE, FOOT, ENTRY = 90, 18, 80, 22  # pixels: the title, a note below it, below a panel, an entry of the legend
LETTERS = 46  # that a phone has room for
BETWEEN = 0.12  # two columns
MARKS_OF_EVENTS = ("circle-open", "square-open", "triangle-up-open", "star-open", "diamond-open", "triangle-down-open")
TICK = "line-ns-open"  # of many
LARGEST = 5000  # occurrences of one event that are marked, evenly spread ones of more
SCRIPT = """
const page = document.getElementById('{plot_id}'), ways = [WIDE, NARROW];
let last = 0;
function arrange() {
  const way = Number(page.clientWidth < 640);
  if (way !== last) { last = way; Plotly.relayout(page, ways[way]); }
}
window.addEventListener('resize', arrange);
arrange();
"""
"""In the page: panels beside each other where it is wide, else one below the other, as on a phone."""


def page_of_solution(solution: "Solution", choice: Choice | None = None, *, plotlyjs: bool | str = True) -> Page:
    """A page of html of a Solution: few components as lines, many as a map of components over time, events as marks.

    One can zoom, read values off and choose lines. Nothing is loaded from elsewhere when it is opened. It needs plotly, the extra
    `odesim[html]`.

    Parameters
    ----------
    solution : Solution
        As of `integrate`.
    choice : Choice
        Quantities, a component, scales.
    plotlyjs : bool or str
        As plotly takes it: its program in the page itself, or the address of the file.

    Returns
    -------
    Page
        A text, which `save` writes.

    Raises
    ------
    ParamError
        For a choice that the run does not have.

    Examples
    --------
    >>> run = odesim.integrate("joma.nonlinear", sizes={"M": 3})
    >>> page = odesim.plot.page_of_solution(run)
    >>> odesim.plot.save(page, "run.html").name
    'run.html'
    """
    figure = make_figure(solution, choice or Choice())
    ways = [dumps(arrangement(figure, columns)) for columns in (COLUMNS, 1)]
    script = SCRIPT.replace("WIDE", ways[0]).replace("NARROW", ways[1])
    text: str = figure.to_html(include_plotlyjs=plotlyjs, full_html=True, div_id="picture", post_script=script)
    head = f'<head>{MARKS[PAGE[0]].decode()}<meta name="viewport" content="width=device-width"><title>{escape(str(solution.model))}</title>'
    return Page(text.replace("<head>", head, 1))


def make_figure(solution: "Solution", choice: Choice) -> Any:
    """The Figure of plotly of a Solution."""
    from plotly.subplots import make_subplots

    solution = with_times(solution)
    drawn, hidden, _ = choose_quantities(solution, choice)
    drawn = with_rasters(drawn, solution, maps=not choice.var)
    refuse_scales(choice, drawn)
    time_axis = make_time_axis(solution.t, str(solution.attrs.get("time_unit") or ""), choice.scale("x"))
    drawn, notes = with_between(drawn, solution, choice, time_axis)
    label = f"t ({solution.attrs['time_unit']})" if solution.attrs.get("time_unit") else "t"
    titles = [escape(q.name) if q.view == RASTER else words_of(q.label) for q in drawn]
    figure: Any = make_subplots(len(drawn), 1, subplot_titles=titles, shared_xaxes="all")
    events = {name: Events.of(occurrences) for name, occurrences in solution.events.items() if len(occurrences)}
    rasters = {q.name for q in drawn if q.view == RASTER}
    for number, quantity in enumerate(drawn):
        place = {"row": 1 + number, "col": 1}
        if quantity.view != RASTER:
            add_quantity(figure, quantity, time_axis, place, log_colors=bool(choice.scale("c")))
        if quantity.kind != "lines":  # plotly's order is that of the first ticks
            order = [quantity.component(int(i)) for i in spread_indices(quantity.count, MAP)]
            axis: Any = {"categoryorder": "array", "categoryarray": order, "range": [len(order) - 0.5, -0.5], "nticks": 8}
            figure.update_yaxes(type="category", title_text=words_of(", ".join(map(symbol, quantity.dims))), **axis, **place)
        elif choice.is_log("y", quantity.view == "Log"):
            figure.update_yaxes(type="log", exponentformat="power", **place)
        here = {quantity.name} if quantity.view == RASTER else events.keys() - rasters
        add_events(figure, quantity, solution.t, events, here, place)
        for value in solution.attrs.get("levels", {}).get(quantity.name, ()) if quantity.kind == "lines" else ():
            figure.add_hline(value, line={"color": GREY, "width": 1, "dash": "dash"}, layer="below", **place)
        if number + COLUMNS >= len(drawn):
            figure.update_xaxes(title_text=escape(label), **place)
    figure.update_xaxes(type="log" if time_axis.log else "linear", showticklabels=True)
    end = f": {solution.status} at t = {float(solution.t[-1]):.6g}" * (solution.status not in ("ok", "event"))
    more = [re.sub("<[^>]*>", "", words_of(note)) for note in not_shown([q.name for q in hidden])]  # notes are escaped
    about = summary(str(solution.model), solution.attrs).replace("`", "")
    words = {"title": f"{solution.model}{end}", "notes": [*[about] * bool(about), *more, *notes]}
    figure.update_layout(template="plotly_white", font_family="DejaVu Sans, sans-serif", meta=words, margin={"l": 60, "r": 20, "b": 20})
    figure.update_layout(title={"x": 0.02, "y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 36}})
    for key, value in arrangement(figure, COLUMNS).items():
        figure.layout[key] = value
    return figure


def arrangement(figure: Any, columns: int) -> dict[str, Any]:
    """What plotly's relayout takes to place the panels, their titles and colour bars in columns, the legend beside or below them."""
    layout, count = figure.layout, len([*figure.select_xaxes()])
    entries = sum(trace.type == "scatter" and trace.showlegend is not False for trace in figure.data)
    letters, beside, below = LETTERS * columns, columns > 1, ENTRY * entries
    rows, columns = -(-count // columns), min(count, columns)
    notes = [line for note in layout.meta["notes"] for line in wrap(note, letters)]
    places: dict[str, Any] = {"title.text": "<br>".join([escape(layout.meta["title"]), *(f"<sub>{escape(note)}</sub>" for note in notes)])}
    head, foot = HEAD + LINE * len(notes), 20 if beside else 20 + below
    places |= {"margin.t": head, "margin.b": foot, "height": head + HEIGHT * rows + foot}
    bars = any("coloraxis" in key for key in layout)
    legend = {"orientation": "v", "x": 1.1 if bars else 1.02, "y": 1.0} if beside else {"orientation": "h", "x": 0.0, "y": 0.0}
    places |= {f"legend.{key}": value for key, value in legend.items()}
    width = (1 - BETWEEN * (columns - 1)) / columns
    for k in range(count):
        row, column = divmod(k, columns)
        left, top = column * (width + BETWEEN), 1 - row / rows
        right, low = left + width, 1 - (row + 1 - FOOT / HEIGHT) / rows
        number = str(k + 1) if k else ""
        places |= {f"xaxis{number}.domain": [left, right], f"yaxis{number}.domain": [low, top]}
        places |= {f"annotations[{k}].x": (left + right) / 2, f"annotations[{k}].y": top}
        if f"coloraxis{number}" in layout:
            bar = {"x": right, "y": (low + top) / 2, "len": top - low}
            places |= {f"coloraxis{number}.colorbar.{key}": value for key, value in bar.items()}
    return places


def add_quantity(figure: Any, quantity: Quantity, time_axis: TimeAxis, place: dict[str, int], *, log_colors: bool) -> None:
    """Adds a line for each of few components, with its jumps, or a map of many."""
    values = quantity.flat[time_axis.rows]
    t = time_axis.t[time_axis.rows]
    if quantity.kind == "lines":
        colors: list[Any] = [CATEGORIES[0]] if quantity.count == 1 else [rgb(color) for color in ordered_colors(quantity.count)]
        for i, color in enumerate(colors):
            x, line, _ = quantity.curve(i, time_axis.t, time_axis.rows)
            line = np.ma.filled(line, np.nan)
            name = quantity.part_name(i)
            style = {"mode": "lines", "line": {"color": color, "width": 1.5}, "hovertemplate": "t = %{x:.6g}<br>%{y:.6g}", "name": name}
            figure.add_scatter(x=x, y=line, legendgroup=quantity.name, **style, **place)
        return
    chosen = spread_indices(quantity.count, MAP)
    shown = np.where(np.isfinite(values), values, np.nan)[:, chosen].T
    shown = np.log10(np.where(shown > 0, shown, np.nan)) if log_colors else shown
    both = not log_colors and color_scale(shown, "", False).cmap == DIVERGING
    labels = [quantity.component(int(i)) for i in chosen]
    name = escape(quantity.name)
    hover = f"{name}[%{{y}}]<br>t = %{{x:.6g}}<br>" + ("log10 " if log_colors else "") + "%{z:.6g}<extra></extra>"
    number = place["row"] if place["row"] > 1 else ""
    figure.add_heatmap(x=t, y=labels, z=shown, hovertemplate=hover, coloraxis=f"coloraxis{number}", **place)
    scale: dict[str, Any] = {"colorscale": DIVERGING if both else SEQUENTIAL, "cmid": 0 if both else None}
    scale["colorbar"] = {"thickness": 8, "title": {"text": "log10" * log_colors}}
    figure.update_layout({f"coloraxis{number}": scale})


def rgb(color: Any) -> str:
    """A colour of matplotlib as plotly writes it."""
    return f"rgb({','.join(str(round(255 * part)) for part in color[:3])})"


def add_events(figure: Any, quantity: Quantity, t: Array, events: dict[str, Events], here: AbstractSet[str], place: dict[str, int]) -> None:
    """Adds marks: of an event of components on these, of another one on the line of a number, else at the foot of the panel.

    here: names of the events that the panel shows. Of one that sets a value the mark stands on the side after it.
    """
    for number, (name, one) in enumerate(events.items()):
        chosen, heights = event_heights(quantity, t, name, one) if name in here else (None, None)
        if heights is not None:
            if quantity.kind != "lines":  # as the map has its rows
                heights = [quantity.component(int(i)) for i in heights]
            color = COLORS[number % len(COLORS)]
            look = (TICK, 9, 1.0) if len(one) > MAX_MARKS else (MARKS_OF_EVENTS[number % len(MARKS_OF_EVENTS)], 8, 1.5)
            marker = {"symbol": look[0], "size": look[1], "color": color, "line": {"color": color, "width": look[2]}}
            group = f"event {name}"  # the legend names it once, and turns it on and off in all panels
            first = not any(trace.legendgroup == group for trace in figure.data)
            figure.add_scatter(
                x=one.t[chosen],
                y=heights,
                mode="markers",
                marker=marker,
                name=f"{escape(name)} ({len(one)}×)",
                legendgroup=group,
                showlegend=first,
                hovertemplate=f"{escape(name)}<br>t = %{{x:.9g}}<extra></extra>",
                **place,
            )


def event_heights(quantity: Quantity, t: Array, name: str, events: Events, *, lines: bool | None = None) -> tuple[Any, Any]:
    """(which occurrences are marked, where they stand in the panel of a quantity): the value on a line, the component in a map.

    t (T,): the times of its values.

    An event stands on the components that it reads or sets. One without an index also stands on the line of a number, else at the foot
    of the panel. None: not in this panel. lines: whether the panel has lines, default as pictures have them.
    """
    lines = quantity.kind == "lines" if lines is None else lines
    every = np.arange(len(events))
    occurrences, components = quantity.marks.get(name, (every, every * 0 if quantity.count == 1 and events.indices is None else None))
    chosen = spread_indices(len(occurrences), LARGEST)
    occurrences = occurrences[chosen]
    if components is None:
        return occurrences, [float(np.nanmin(quantity.flat))] * len(occurrences) if lines and events.indices is None else None
    components = components[chosen]
    if not lines:
        return occurrences, components.tolist()
    curves = {i: quantity.curve(i, t)[:2] for i in np.unique(components).tolist()}
    curves = {i: (x, np.ma.filled(line, np.nan)) for i, (x, line) in curves.items()}
    return occurrences, [float(np.interp(at, *curves[i])) for at, i in zip(events.t[occurrences], components.tolist(), strict=True)]
