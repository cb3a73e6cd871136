"""The picture of a Solution as a page of html, by plotly: one can zoom, read values off and choose components in the legend.

It shows the quantities of the still picture. plotly is the extra `odesim[html]`, and is imported when a page is made.
"""

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.arrays import Array
from odesim.plot.between import with_between
from odesim.plot.choice import Choice
from odesim.plot.files import MARKS, PAGE, Page
from odesim.plot.panels import MAP, RASTER, Quantity, spread_indices
from odesim.plot.scales import TimeAxis, make_time_axis
from odesim.plot.solution import choose_quantities, refuse_scales, with_rasters
from odesim.plot.style import CATEGORIES, DIVERGING, INK, SEQUENTIAL, ordered_colors
from odesim.stepper.occurrences import Events

if TYPE_CHECKING:
    from odesim.run.solution import Solution

COLUMNS, HEIGHT = 2, 320  # panels beside each other; pixels of a row
MARKS_OF_EVENTS = ("circle-open", "square-open", "triangle-up-open", "star-open", "diamond-open", "triangle-down-open")
LARGEST = 5000  # occurrences of one event that are marked, evenly spread ones of more


def page_of_solution(solution: "Solution", choice: Choice | None = None) -> Page:
    """A page of html of a Solution: few components as lines, many as a map of components over time, events as marks.

    One can zoom, read values off and choose lines. Nothing is loaded from elsewhere when it is opened. It needs plotly, the extra
    `odesim[html]`.

    Parameters
    ----------
    solution : Solution
        As of `integrate`.
    choice : Choice
        Quantities, a component, scales.

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
    text: str = make_figure(solution, choice or Choice()).to_html(include_plotlyjs=True, full_html=True)
    return Page(text.replace("<head>", f"<head>{MARKS[PAGE[0]].decode()}<title>{escape(str(solution.model))}</title>", 1))


def make_figure(solution: "Solution", choice: Choice) -> Any:
    """The Figure of plotly of a Solution."""
    from plotly.subplots import make_subplots

    drawn, hidden, _ = choose_quantities(solution, choice)
    drawn = with_rasters(drawn, solution, maps=False)  # one can zoom
    refuse_scales(choice, drawn)
    time_axis = make_time_axis(solution.t, str(solution.attrs.get("time_unit") or ""), choice.scale("x"))
    drawn, notes = with_between(drawn, solution, choice, time_axis)
    label = f"t ({solution.attrs['time_unit']})" if solution.attrs.get("time_unit") else "t"
    rows = -(-len(drawn) // COLUMNS)
    columns = min(len(drawn), COLUMNS)
    names = [q.name + f"[{', '.join(q.dims)}]" * bool(q.dims) for q in drawn]
    gaps = {"vertical_spacing": 0.25 / rows, "horizontal_spacing": 0.12}
    figure: Any = make_subplots(rows, columns, subplot_titles=names, shared_xaxes="all", **gaps)
    events = {name: Events.of(occurrences) for name, occurrences in solution.events.items() if len(occurrences)}
    rasters = {q.name for q in drawn if q.view == RASTER}
    for number, quantity in enumerate(drawn):
        place = {"row": 1 + number // COLUMNS, "col": 1 + number % COLUMNS}
        if quantity.view != RASTER:
            add_quantity(figure, quantity, time_axis, place, log_colors=bool(choice.scale("c")))
        else:  # plotly's order is that of the first ticks
            order = [quantity.part_name(i) for i in range(quantity.count)]
            axis: Any = {"categoryorder": "array", "categoryarray": order, "range": [quantity.count - 0.5, -0.5], "nticks": 8}
            figure.update_yaxes(type="category", **axis, **place)
        if quantity.kind == "lines" and choice.is_log("y", quantity.view == "Log"):
            figure.update_yaxes(type="log", exponentformat="power", **place)
        here = {quantity.name} if quantity.view == RASTER else events.keys() - rasters
        there = {name: one for name, one in events.items() if name in here}
        add_events(figure, quantity, solution.t, there, place)
        if number + COLUMNS >= len(drawn):
            figure.update_xaxes(title_text=escape(label), **place)
    figure.update_xaxes(type="log" if time_axis.log else "linear", showticklabels=True)
    end = f": {solution.status} at t = {float(solution.t[-1]):.6g}" * (solution.status not in ("ok", "event"))
    more = f"<br><sub>not shown: {escape(', '.join(q.name for q in hidden))}</sub>" * bool(hidden)
    more += "".join(f"<br><sub>{escape(note)}</sub>" for note in notes)
    title = f"{escape(str(solution.model))}{end}{more}"
    figure.update_layout(title=title, height=120 + HEIGHT * rows, template="plotly_white", font_family="DejaVu Sans, sans-serif")
    return figure


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
    both = not log_colors and bool(np.nanmin(shown) < 0 < np.nanmax(shown)) if np.isfinite(shown).any() else False
    scale = {"colorscale": DIVERGING if both else SEQUENTIAL, "zmid": 0 if both else None}
    labels = [quantity.part_name(int(i)) for i in chosen]
    hover = "%{y}<br>t = %{x:.6g}<br>" + ("log10 " if log_colors else "") + "%{z:.6g}<extra></extra>"
    panel = figure.get_subplot(**place)
    low, high = panel.yaxis.domain
    bar = {"x": panel.xaxis.domain[1], "y": (low + high) / 2, "len": high - low, "thickness": 8, "title": {"text": "log10" * log_colors}}
    figure.add_heatmap(x=t, y=labels, z=shown, hovertemplate=hover, colorbar=bar, **scale, **place)
    figure.update_layout(legend_x=1.1)  # beside the bar of the last column
    figure.update_yaxes(autorange="reversed", nticks=8, **place)


def rgb(color: Any) -> str:
    """A colour of matplotlib as plotly writes it."""
    return f"rgb({','.join(str(round(255 * part)) for part in color[:3])})"


def add_events(figure: Any, quantity: Quantity, t: Array, events: dict[str, Events], place: dict[str, int]) -> None:
    """Adds marks: of an event of components on these, of another one on the line of a number, else at the foot of the panel."""
    for number, (name, one) in enumerate(events.items()):
        chosen, heights = event_heights(quantity, t, name, one)
        if heights is not None and quantity.kind != "lines":  # as the map has its rows
            heights = [quantity.part_name(int(i)) for i in heights]
        if heights is not None:
            marker = {"symbol": MARKS_OF_EVENTS[number % len(MARKS_OF_EVENTS)], "color": INK, "size": 7}
            group = f"event {name}"  # the legend names it once, and turns it on and off in all panels
            first = not any(trace.legendgroup == group for trace in figure.data)
            hover = f"{escape(name)}<br>t = %{{x:.9g}}<extra></extra>"
            figure.add_scatter(
                x=one.t[chosen],
                y=heights,
                mode="markers",
                marker=marker,
                name=f"{escape(name)} ({len(one)}×)",
                legendgroup=group,
                showlegend=first,
                hovertemplate=hover,
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
