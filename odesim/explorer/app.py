"""The explorer in bokeh: controls beside panels, which are drawn again whenever a number changes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from time import perf_counter
from typing import Any, Protocol, TypeAlias

from bokeh.layouts import column
from bokeh.models import ColumnDataSource, CustomJS, Row, TabPanel, Tabs
from bokeh.models.widgets import Button, CheckboxButtonGroup, Div, PreText, Select, Slider, TextInput, Toggle

from odesim.base.arrays import Array
from odesim.base.errors import OdesimError, counted
from odesim.display.line_breaks import LETTERS, break_formula, letters
from odesim.display.page import formula_latex, page_of
from odesim.explorer.controls import Controls, Explored
from odesim.explorer.numbers import defaults_of, fields
from odesim.explorer.panels import ArrayPanel, PortraitPanel, SweepPanel, TimePanel, arrays_of
from odesim.explorer.views import LEVELS, Plane, Portrait, Sweep, claims_about, claims_text, component_names, numbers_named, sweep_of
from odesim.inputs.bind import Numbers
from odesim.inputs.registry import summary
from odesim.lab.claims import Claim
from odesim.plot.between import with_between
from odesim.plot.choice import Choice
from odesim.plot.quantities import Quantity
from odesim.plot.scales import make_time_axis
from odesim.plot.solution import choose_quantities, quantities
from odesim.run.integrate import METHOD_NAMES
from odesim.run.solution import Solution
from odesim.stepper.laws import CLAUSE
from odesim.symbolic.system import System

COPY = """
const [text] = source.data.text
navigator.clipboard?.writeText(text).catch(() => {})
shown.text = text
shown.visible = true
"""
DOWNLOAD = """
const link = document.createElement("a")
link.href = URL.createObjectURL(new Blob(source.data.text, {type: "application/x-ipynb+json"}))
link.download = name
link.click()
URL.revokeObjectURL(link.href)
"""
# the page is a row that breaks: beside each other on a desk, below each other on a phone
ROW = ":host { display: flex; flex-wrap: wrap; gap: 16px; padding: 8px 12px; box-sizing: border-box; }"
BREAKS = ".bk-btn-group { flex-wrap: wrap; }"
SIDE = {"flex": "1 1 300px", "max-width": "420px", "min-width": "280px"}
# on a phone the controls scroll by themselves, so that the curves stay in sight while one slides
PHONE = "@media (max-width: 700px) { :host { max-height: 44vh; overflow-y: auto; border-bottom: 1px solid #dddddd; } }"
LAST = "@media (max-width: 700px) { :host { order: 9; } }"
MAIN = {"flex": "3 1 340px", "min-width": "0"}
MOST_NAMES = 100  # numbers of the state that a portrait offers
LONG = 0.2  # s: of a run that takes longer one sees that it is computed
SENTENCE = {"color": "#9b1c1c", "font": "14px system-ui, sans-serif"}

Compute: TypeAlias = Callable[[], Any]
Show: TypeAlias = Callable[[Any], None]


class Schedule(Protocol):
    """A way to compute a job and to show its result.

    more: the job adds to what is shown, as a finer map does; it gives way to another one.
    """

    def __call__(self, compute: Compute, show: Show, *, more: bool = False) -> None: ...


def at_once(compute: Compute, show: Show, *, more: bool = False) -> None:
    """Computes and shows in the same thread."""
    show(compute())


@dataclass(frozen=True)
class Result:
    """A run with its numbers and quantities, or the sentence that says why there is none.

    seconds: that it took.
    portrait: in the plane of these numbers of the state, where that is looked at; without: why there is none. rests: finds its rest states.
    """

    controls: Controls
    sentence: str = ""
    seconds: float = 0.0
    numbers: Numbers | None = None
    solution: Solution | None = None
    page: tuple[Quantity, ...] = ()
    every: tuple[Quantity, ...] = ()
    texts: tuple[str, str, str] = ("", "", "")
    portrait: Portrait | None = None
    plane: tuple[str, str] = ("", "")
    without: str = ""
    rests: Callable[[], Iterator[tuple[Array, tuple[str, ...]]]] | None = None


class Explorer:
    """The explorer of a model: `root` is a layout of bokeh, `controls` what its widgets say.

    begin: the Controls at the start, and what Reset returns to. schedule(compute, show): how a run is computed and shown. Raises an
    OdesimError where these controls are wrong.
    """

    def __init__(self, begin: Controls, explored: Explored, schedule: Schedule = at_once) -> None:
        self.explored = explored
        self.begin = self.controls = begin
        self.schedule = schedule
        numbers = self.explored.numbers(begin)
        self.result = Result(begin, numbers=numbers)
        self.fields = {(field.kind, field.name): field for field in fields(self.explored.system, numbers, self.set_number)}
        self.options = {name: TextInput(title=words, name=name) for name, words in self.option_words(numbers).items()}
        self.method = Select(title="method", options=list(METHOD_NAMES), value=begin.method, name="method")
        self.sentence = Div(text="", styles=SENTENCE, disable_math=True, name="sentence")
        self.status = Div(text="computing ...", disable_math=True, styles={"color": "#555555"}, name="status")
        self.shown = CheckboxButtonGroup(labels=[], active=[], name="shown", sizing_mode="stretch_width", stylesheets=[BREAKS])
        self.names: tuple[str, ...] = ()  # chosen quantities; none: as pictures have them
        self.log = Toggle(label="log values", width=90, name="log")
        self.time = Slider(title="saved time", start=0, end=1, value=1, step=1, name="time", sizing_mode="stretch_width", show_value=False)
        self.curves, self.arrays = (column(Div(text=""), sizing_mode="stretch_width") for _ in range(2))
        self.panels: dict[Any, TimePanel] = {}
        self.matrices: dict[Any, ArrayPanel] = {}
        self.silent = False
        self.plane = tuple(Select(title=title, options=[], width=130, name=name) for title, name in (("across", "first"), ("up", "second")))
        self.flow: PortraitPanel | None = None
        self.flow_place, self.no_flow = column(Div(text=""), sizing_mode="stretch_width"), Div(text="", disable_math=True, styles=SENTENCE)
        ranges = {field.name: field.scale for field in self.fields.values() if field.scale and field.kind != "sizes"}
        self.ranges = ranges
        names = list(ranges)
        self.map_axes = tuple(
            Select(title=title, options=names, value=names[min(k, len(names) - 1)] if names else "", width=130, name=f"map.{title}")
            for k, title in enumerate(("across", "up"))
        )
        self.map_value = Select(title="value at the end", options=[], width=170, name="map.value")
        self.map_place, self.map_words = (
            column(Div(text=""), sizing_mode="stretch_width"),
            Div(text="", disable_math=True, name="map.words"),
        )
        self.sweep: SweepPanel | None = None
        self.rested: Result | None = None  # whose rest states were looked for
        # sources, and no widgets: a text that changes in a widget has the page laid out again, which takes 10 to 30 ms
        self.copied = [ColumnDataSource({"text": [""]}) for _ in range(3)]
        self.about: tuple[Claim, ...] = ()
        self.claims = Div(text="", disable_math=True, sizing_mode="stretch_width", name="claims")
        self.root = self.layout()
        self.show_controls()
        for name, widget in (("method", self.method), *self.options.items()):
            widget.on_change("value", partial(self.option_typed, name))
        self.shown.on_change("active", lambda attr, old, new: self.choose(new))
        self.log.on_change("active", lambda attr, old, new: self.draw())
        for widget in (*self.plane, *self.map_axes, self.map_value):
            widget.on_change("value", lambda attr, old, new: self.look())
        self.time.on_change("value", lambda attr, old, new: self.draw_arrays())

    def option_words(self, numbers: Numbers) -> dict[str, str]:
        """{option of a run: its title}."""
        system = self.explored.system
        noise = {"step": "step, fixed", "seed": "seed of the noise"} if system.noise else {}
        return {"span": f"span, {numbers.t0:.6g}:{numbers.t1:.6g}", **noise}

    def layout(self) -> Any:
        """The page: controls at the side, the run beside them."""
        system = self.explored.system
        about = summary(system.name, self.explored.origin).replace("`", "")
        title = Div(text=f"<h2 style='margin:0'>{escape(system.name)}</h2>{escape(about)}", disable_math=True, sizing_mode="stretch_width")
        groups = []
        for kind, words in (("params", "Parameters"), ("sizes", "Sizes"), ("initial", "Start")):
            roots = [field.root for field in self.fields.values() if field.kind == kind]
            groups += [Div(text=f"<b>{words}</b>"), *roots] if roots else []
        reset = Button(label="Reset", name="reset", width=80)
        reset.on_click(self.reset)
        run = [Div(text="<b>Run</b>"), *self.options.values(), self.method]
        side = column(title, reset, *groups, *run, sizing_mode="stretch_width", styles=SIDE, stylesheets=[PHONE])
        choice = Row(self.shown, self.log, sizing_mode="stretch_width", styles={"align-items": "end"})
        choose = Row(*self.map_axes, self.map_value, stylesheets=[":host { flex-wrap: wrap; }"])
        self.tabs = Tabs(
            tabs=[
                TabPanel(title="Curves", child=column(choice, self.curves, sizing_mode="stretch_width")),
                TabPanel(title="Arrays", child=column(self.time, self.arrays, sizing_mode="stretch_width")),
                TabPanel(
                    title="Phase portrait", child=column(Row(*self.plane), self.no_flow, self.flow_place, sizing_mode="stretch_width")
                ),
                TabPanel(title="Map", child=column(choose, self.map_words, self.map_place, sizing_mode="stretch_width")),
            ],
            sizing_mode="stretch_width",
            name="tabs",
        )
        self.tabs.on_change("active", lambda attr, old, new: self.look())
        parts = [equations(system), self.sentence, self.status, self.tabs, self.copy_row(), self.claims]
        main = column(*parts, sizing_mode="stretch_width", styles=MAIN)
        return Row(side, main, sizing_mode="stretch_width", stylesheets=[ROW])

    def copy_row(self) -> Any:
        """Buttons that copy the run as a command and as Python, and save it as a notebook."""
        self.copy_shown = PreText(text="", visible=False, name="copied", styles={"white-space": "pre-wrap", "background": "#f6f6f6"})
        command, python, notebook = (
            Button(label=f"Copy as {what}", width=150, name=f"copy.{what}") for what in ("command", "Python", "notebook")
        )
        notebook.label = "Save as notebook"
        for button, source in ((command, self.copied[0]), (python, self.copied[1])):
            button.js_on_click(CustomJS(args={"source": source, "shown": self.copy_shown}, code=COPY))
        name = f"{self.explored.system.name}.ipynb"
        notebook.js_on_click(CustomJS(args={"source": self.copied[2], "name": name}, code=DOWNLOAD))
        return column(
            Row(command, python, notebook, stylesheets=[":host { flex-wrap: wrap; }"]), self.copy_shown, sizing_mode="stretch_width"
        )

    def set_number(self, kind: str, name: str, text: str) -> None:
        """A number was changed; an empty text is the default."""
        values = {key: value for key, value in getattr(self.controls, kind).items() if key != name}
        change: Any = {kind: {**values, **({name: text} if text else {})}}
        self.controls = replace(self.controls, **change)
        self.redraw()

    def option_typed(self, name: str, attr: str, old: str, new: str) -> None:
        """An option of the run was changed in the page."""
        if not self.silent:
            change: Any = {name: new}
            self.controls = replace(self.controls, **change)
            self.redraw()

    def reset(self) -> None:
        """Returns to the controls of the start."""
        self.controls = self.begin
        self.show_controls()
        self.redraw()

    def choose(self, places: Sequence[int]) -> None:
        """Other quantities were chosen; of none the page has those of a picture."""
        if not self.silent:
            self.names = tuple(self.shown.labels[place] for place in sorted(places))
            self.draw()

    def show_controls(self) -> None:
        """Shows what the controls say in their widgets."""
        numbers = self.result.numbers
        assert numbers is not None
        defaults = defaults_of(numbers)
        for (kind, name), field in self.fields.items():
            field.show(getattr(self.controls, kind).get(name, ""), defaults[kind, name])
        self.silent = True
        for name, widget in self.options.items():
            widget.value = getattr(self.controls, name)
        self.method.value = self.controls.method
        names = component_names(list(numbers.initial), [value.shape for value in numbers.initial.values()])[:MOST_NAMES]
        for k, widget in enumerate(self.plane):
            widget.update(options=names, value=widget.value if widget.value in names else names[min(k, len(names) - 1)])
        values = [*numbers.initial, *self.explored.system.observables]
        self.map_value.update(options=values, value=self.map_value.value or values[-1])
        self.silent = False

    def redraw(self) -> None:
        """Has the run of the controls computed and shown."""
        controls = self.controls
        if self.result.seconds > LONG:
            self.status.text = "computing ..."
        plane = self.plane_shown()
        self.schedule(lambda: self.compute(controls, plane), self.show)

    def look(self) -> None:
        """Another tab, or another plane, is looked at: what it needs is computed."""
        if not self.silent:
            if self.tabs.active == 2:
                self.redraw()
            else:
                self.draw()

    def plane_shown(self) -> tuple[str, str]:
        """The two numbers of the state whose portrait is looked at; empty where none is."""
        first, second = (widget.value for widget in self.plane)
        return (first, second) if self.tabs.active == 2 and len(self.plane[0].options) > 1 else ("", "")

    def compute(self, controls: Controls, plane: tuple[str, str] = ("", "")) -> Result:
        """The Result of these controls; nothing of the page is touched. plane: of the portrait."""
        begun = perf_counter()
        try:
            plain = replace(controls, params={}, initial={})
            solution = self.explored.run(controls)
            page, *_ = choose_quantities(solution, Choice())
            every = [*quantities(solution.y, solution), *quantities(solution.observables, solution)]
            every, _ = with_between(every, solution, Choice(), make_time_axis(solution.t))
            drawn = {q.name: q for q in every}
            page = [drawn[q.name] for q in page]
            texts = tuple(getattr(self.explored, name)(controls) for name in ("command", "python", "notebook"))
            numbers = self.explored.numbers(plain)
        except OdesimError as error:
            return Result(controls, str(error))
        result = Result(controls, "", perf_counter() - begun, numbers, solution, tuple(page), tuple(every), texts, plane=plane)
        if not all(plane):
            return result
        try:
            where = Plane(self.explored, controls, solution, *plane)
            return replace(result, portrait=where.portrait(), rests=where.rests)
        except OdesimError as error:
            return replace(result, without=str(error))

    def show(self, result: Result) -> None:
        """Shows a Result: of one without a run only its sentence, beside the curves of the last run."""
        self.sentence.update(text=escape(result.sentence), visible=bool(result.sentence))
        if result.solution is None:
            self.status.text = "the curves are those of the last run" * (self.result.solution is not None)
            return
        self.result = result
        if result.controls == self.controls:
            self.show_controls()
        solution = result.solution
        for source, text in zip(self.copied, result.texts, strict=True):
            source.data = {"text": [text]}
        names = [quantity.name for quantity in result.every]
        chosen = [name for name in names if name in self.names] or [quantity.name for quantity in result.page]
        self.silent = True
        self.shown.update(labels=names, active=[names.index(name) for name in chosen])
        self.silent = False
        rows = len(solution.t) - 1
        at_end = self.time.value == self.time.end
        self.time.update(end=max(rows, 1), value=rows if at_end else min(self.time.value, rows))
        self.draw()
        words = f"{solution.method}, {counted(int(solution.stats['steps']), 'step')}, {solution.stats['seconds'] * 1e3:.3g} ms"
        end = f"{solution.status}: {solution.message}" if solution.status != "ok" or CLAUSE in solution.message else ""
        self.status.text = escape("; ".join(filter(None, (words, end))))  # after the curves: the page is laid out again for it
        if not self.claims.text:  # after the first curves: reading the claims of all families takes seconds
            self.schedule(lambda: claims_about(str(solution.model)), self.show_claims)

    def show_claims(self, about: tuple[Claim, ...]) -> None:
        """Shows the statements of papers, and marks on the curves the numbers that they name."""
        self.about, self.claims.text = about, claims_text(self.explored.system.name, about)
        self.draw()

    def draw(self) -> None:
        """Shows the last run in the open tab."""
        if self.result.solution is None:
            return
        if self.tabs.active == 1:
            self.draw_arrays()
            return
        if self.tabs.active == 2:
            self.draw_portrait()
            return
        if self.tabs.active == 3:
            self.refine(0)
            return
        chosen = [q for q in self.result.every if q.name in self.names] or self.result.page
        label = f"t ({unit})" if (unit := self.result.solution.attrs["time_unit"]) else "t"
        shown = {(q.name, bool(self.log.active or q.view == "Log")): q for q in chosen}
        kept = {key: panel for key, panel in self.panels.items() if key in shown and panel.fits(shown[key])}
        other = [*kept] != [*shown]
        if other:
            self.panels = {key: kept.get(key) or TimePanel(q, label, log=key[-1]) for key, q in shown.items()}
        named = numbers_named(self.about, self.explored.system, self.result.solution)
        for key, quantity in shown.items():
            self.panels[key].show(quantity, self.result.solution)
            self.panels[key].show_claims(quantity.name, named)
        if other:  # with data in them: a browser cannot set the ranges of an empty figure
            self.curves.children = in_rows([panel.figure for panel in self.panels.values()])

    def draw_arrays(self) -> None:
        """Shows the arrays of the last run at the chosen time."""
        solution = self.result.solution
        if solution is None or self.tabs.active != 1:
            return
        arrays = {(q.name, q.dims, q.strip): q for q in arrays_of(self.result.every)}
        at = min(int(self.time.value), len(solution.t) - 1)
        self.time.title = f"t = {solution.t[at]:.6g}"
        other = arrays.keys() != self.matrices.keys() or not arrays
        if other:
            self.matrices = {key: self.matrices.get(key) or ArrayPanel(q) for key, q in arrays.items()}
        for key, quantity in arrays.items():
            self.matrices[key].show(quantity, at)
        if other:
            none = [Div(text="This model has no matrix, attention or points.")]
            self.arrays.children = in_rows([panel.figure for panel in self.matrices.values()]) or none

    def draw_portrait(self) -> None:
        """Shows the portrait of the last run, or why there is none."""
        portrait, one = self.result.portrait, len(self.plane[0].options) < 2
        alone = "a phase portrait is one of two numbers of the state, and this model has one" if one else ""
        self.no_flow.text = escape(alone or self.result.without)
        self.flow_place.visible = portrait is not None
        if portrait is not None:
            first, second = self.result.plane
            self.flow = self.flow or PortraitPanel()
            self.flow.show(portrait, first, second)
            slice_ = "" if portrait.whole else "; the other numbers are those at the end of the run"
            self.flow.figure.title.text = f"flow, from each dot on{slice_}"
            self.flow_place.children = [self.flow.figure]
            if self.result.rests and self.result is not self.rested:
                self.rested = self.result
                self.search(self.result, self.result.rests())

    def search(self, result: Result, rests: Iterator[tuple[Array, tuple[str, ...]]]) -> None:
        """Shows the rest states of a Result as they are found, from one start after another, while it is the last one."""

        def show(so_far: tuple[Array, tuple[str, ...]] | None) -> None:
            if so_far and result is self.result and self.flow is not None:
                self.flow.show_rests(*so_far)
                self.search(result, rests)

        self.schedule(lambda: next(rests, None), show, more=True)

    def refine(self, level: int) -> None:
        """Has the map computed by LEVELS[level] members along each side, and then by more, while nothing else is asked for."""
        controls, quantity = self.result.controls, self.map_value.value
        names = [widget.value for widget in self.map_axes]
        if len(set(names)) < 2 or not all(names):
            self.map_words.text = "choose two numbers with sliders"
            return
        axes = {name: self.ranges[name] for name in names}
        if self.sweep is None or (self.sweep.axes, self.sweep.quantity) != (axes, quantity):
            self.sweep = SweepPanel(axes, quantity)
        panel = self.sweep
        self.map_words.text = f"computing {LEVELS[level]} x {LEVELS[level]} runs ..."

        def compute() -> Sweep | str:
            try:
                return sweep_of(self.explored, controls, axes, quantity, LEVELS[level])
            except OdesimError as error:
                return str(error)

        def show(sweep: Sweep | str) -> None:
            if isinstance(sweep, str):
                self.map_words.text = escape(sweep)
                return
            at = {field.name: float(field.text.value) for field in self.fields.values() if field.name in axes}
            panel.show(sweep, (at[names[0]], at[names[1]]))
            self.map_place.children = [panel.figure]
            self.map_words.text = ""
            if level + 1 < len(LEVELS) and self.tabs.active == 3 and panel is self.sweep and controls == self.result.controls:
                self.refine(level + 1)

        self.schedule(compute, show, more=True)


def in_rows(figures: Sequence[Any]) -> list[Any]:
    """Figures in rows that break where the page is narrow."""
    for one in figures:
        one.styles = {"flex": "1 1 320px", "min-width": "0"}
    return [Row(*figures, sizing_mode="stretch_width", stylesheets=[":host { display: flex; flex-wrap: wrap; }"])] if figures else []


def equations(system: System) -> Div:
    """The equations and the names in them, as formulas."""
    page = page_of(system)
    lines = []
    for formula in (row.formula for title in ("Equations", "Where") for row in page.sections.get(title, [])):
        if formula is None:
            continue
        # of a Div bokeh reads the formulas before the HTML: an escaped sign would be seen
        first, *others = break_formula(formula_latex(page.formulas, formula).replace("<", r"\lt "), letters, LETTERS)
        lines += [f"<p>$${first}$$</p>", *(f"<p>$$\\qquad {line}$$</p>" for line in others)]
    style = {"overflow": "auto", "max-height": "180px", "padding": "4px 0 8px", "border-bottom": "1px solid #dddddd"}
    return Div(
        text="".join(lines),
        sizing_mode="stretch_width",
        styles=style,
        stylesheets=[LAST, "p { margin: 0; padding: 3px 0; } svg { overflow: visible; }"],
        name="equations",
    )
