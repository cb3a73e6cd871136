"""The explorer without a browser: what its widgets are set to, its panels show, as odesim.integrate has it; and who may talk to it."""

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from html import escape
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import odesim
from odesim.base.errors import OdesimError
from odesim.explorer.controls import POINTS, Controls, Explored
from odesim.lab.claims import all_claims

pytest.importorskip("bokeh", reason="the explorer needs bokeh: pip install 'odesim[explore]'")

from bokeh.document import Document
from bokeh.document.events import ColumnDataChangedEvent

from odesim.explorer.app import Explorer
from odesim.explorer.panels import TimePanel, line_data
from odesim.explorer.server import HOST, Newest, make_server
from odesim.explorer.views import claims_about, claims_text, numbers_named
from odesim.plot.quantities import MAX_MARKS, Quantity
from odesim.plot.solution import quantities
from tests.explorer.test_views import TOGGLE
from tests.support.pictures import T, solution

TWO = "hopfield.two_patterns"


def explorer_of(model: str, **controls: Any) -> Explorer:
    """The explorer of a model, drawn once."""
    explorer = Explorer(Controls(**controls), Explored(model))
    explorer.redraw()
    return explorer


def lines(explorer: Explorer) -> dict[str, Any]:
    """{name: [(t, values) of each line]} of the panels."""
    panels = {key[0]: panel for key, panel in explorer.panels.items()}
    return {name: list(zip(panel.source.data["xs"], panel.source.data["ys"], strict=True)) for name, panel in panels.items()}


def test_a_slider_moves_the_curves():
    """While a slider moves, the curves are those of integrate at the number beside it, drawn in the figures that are there."""
    explorer = explorer_of(TWO)
    figures = [panel.figure for panel in explorer.panels.values()]
    field = explorer.fields["params", "beta"]
    for share in (0.3, 0.55, 0.8):
        field.slider.value = field.slider.start + share * (field.slider.end - field.slider.start)
        run = odesim.integrate(TWO, params={"beta": float(field.text.value)}, save=POINTS)
        assert field.text.value == explorer.controls.params["beta"]
        for name, values in {**run.y, **run.observables}.items():
            ((t, shown),) = lines(explorer)[name]
            assert np.array_equal(t, run.t) and np.array_equal(shown, values)
    assert [panel.figure for panel in explorer.panels.values()] == figures


def test_a_slider_sends_what_changed():
    """Of a move the page gets each curve as two arrays, the texts to copy and one text that is seen; nothing is laid out again."""
    explorer = explorer_of("scan_snap.decoder")
    document = Document()
    document.add_root(explorer.root)
    events: list[Any] = []
    document.on_change(events.append)
    field = explorer.fields["params", "eta_Y"]
    field.slider.value = field.slider.start + 0.6 * (field.slider.end - field.slider.start)
    models = [event.model for event in events if isinstance(event, ColumnDataChangedEvent)]
    curves = [panel.source for panel in explorer.panels.values()]
    assert [model for model in models if model in curves] == curves and models[:3] == explorer.copied
    others = {(event.model, event.attr) for event in events if not isinstance(event, ColumnDataChangedEvent)}
    assert others == {(explorer.status, "text"), (field.text, "value"), (field.slider, "value")}
    assert all(panel.source.data["ys"].ndim == 2 for panel in explorer.panels.values())


def test_lines_of_other_jumps_are_rows_of_one_array():
    """A row has the points of its line with a vertical part at each jump, and ends with NaN where others have more."""
    t = np.linspace(0.0, 3.0, 4)
    quantity = Quantity("v", np.stack([t, 2 * t], axis=1), ("k",), (np.array([0.5, 1.5]), np.array([2.5])))
    data = line_data(quantity, t)
    assert data["xs"].shape == data["ys"].shape == (2, 8)
    assert np.array_equal(data["xs"][0], [0, 0.5, 0.5, 1, 1.5, 1.5, 2, 3])
    assert np.array_equal(data["xs"][1], [0, 1, 2, 2.5, 2.5, 3, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(data["ys"][1, [0, 1, 2, 5, 6, 7]], [0, 2, 4, 6, np.nan, np.nan], equal_nan=True)
    logarithmic = line_data(quantity, t, log=True)["ys"]
    assert np.array_equal(logarithmic, np.where(data["ys"] > 0, data["ys"], np.nan), equal_nan=True)


def test_what_is_typed_wrong_is_said_beside_the_last_curves():
    """A wrong text shows the sentence of integrate, escaped, and leaves the curves; the default, or Reset, takes it away."""
    explorer = explorer_of(TWO)
    before = lines(explorer)
    text = explorer.fields["params", "beta"].text
    for wrong in ("-1", "<b>two</b>", "@beta.csv"):
        text.value = wrong
        if wrong == "-1":
            with pytest.raises(OdesimError) as error:
                odesim.integrate(TWO, params={"beta": -1.0})
            assert explorer.sentence.text == escape(str(error.value))
        assert explorer.sentence.visible and "<b>" not in explorer.sentence.text
        assert all(np.array_equal(a, b) for name in before for a, b in zip(before[name][0], lines(explorer)[name][0], strict=True))
    text.value = "2"
    assert not explorer.sentence.visible and explorer.controls.params == {}
    explorer.fields["initial", "u"].text.value = "0.4"
    explorer.reset()
    assert explorer.controls == explorer.begin and explorer.fields["initial", "u"].text.value == "0.05"


def test_sizes_change_what_follows_from_them():
    """Another size shows its curves in the figures that are there, marks on them, and the defaults of the arrays that have it."""
    explorer = explorer_of("joma.nonlinear", sizes={"M": "3"})
    figures = [panel.figure for panel in explorer.panels.values()]
    assert len(lines(explorer)["v"]) == 3
    for size in (11, 2):  # pictures have a map of 11
        explorer.fields["sizes", "M"].text.value = str(size)
        run = odesim.integrate("joma.nonlinear", sizes={"M": size}, save=POINTS)
        saved = [y[np.isin(t, run.t)] for t, y in lines(explorer)["v"]]  # where saved times make corners there are more between them
        assert np.array_equal(saved, run.y["v"].T)
        panel = next(panel for key, panel in explorer.panels.items() if key[0] == "v")
        assert panel.legend.visible == (size == 2)
        heights = [run.at(event["t"])["v"][event["index"]] for occurrences in run.events.values() for event in occurrences]
        assert heights and panel.marks.data["y"] == pytest.approx(heights, rel=1e-3)  # linear between 200 times of a smooth curve
    assert explorer.fields["params", "mu"].text.placeholder == ",".join(f"{x:.4g}" for x in run.attrs["params"]["mu"])
    assert [panel.figure for panel in explorer.panels.values()] == figures


def test_events_are_marked_on_their_curve():
    """Each occurrence of an event of components is a mark on the line of its component, up to what lies between saved times."""
    explorer = explorer_of("joma.nonlinear", sizes={"M": "3"})
    run = odesim.integrate("joma.nonlinear", sizes={"M": 3}, save=POINTS)
    marks = next(panel.marks.data for key, panel in explorer.panels.items() if key[0] == "v")
    expected = [(event["t"], name) for name, occurrences in run.events.items() for event in occurrences]
    assert expected and list(zip(marks["t"], marks["name"], strict=True)) == expected
    heights = [run.at(event["t"])["v"][event["index"]] for occurrences in run.events.values() for event in occurrences]
    assert marks["y"] == pytest.approx(heights, rel=1e-3)  # linear between 200 times of a smooth curve


@pytest.mark.parametrize(("count", "look"), [(MAX_MARKS, "circle"), (MAX_MARKS + 1, "dash")])
def test_many_events_are_ticks_at_the_foot(count, look):
    """As in pictures: up to MAX_MARKS stand on the curve, more of them below it."""
    events = {"spike": [{"t": 0.3 * k, "index": None} for k in range(1, count + 1)]}
    run = solution({"x": np.cos(T)}, events=events)
    (quantity,) = quantities(run.y, run)
    marks = TimePanel(quantity, "t", log=False).mark_data(quantity, run)
    assert marks["t"] == [event["t"] for event in events["spike"]] and set(marks["marker"]) == {look}
    heights = np.interp(marks["t"], T, np.cos(T)) if look == "circle" else np.full(count, np.cos(T).min())
    np.testing.assert_allclose(marks["y"], heights, rtol=0, atol=1e-12)  # rounding


@pytest.mark.parametrize("model", ["joma.linear_attention", pytest.param("joma.joint_softmax", marks=pytest.mark.slow)])
def test_arrays_are_those_of_the_chosen_time(model):
    """The map of a matrix is the state or observable at the saved time, and attention has colours from 0."""
    explorer = explorer_of(model)
    explorer.tabs.active = 1
    explorer.time.value = 77
    run = odesim.integrate(model, save=POINTS)
    assert explorer.time.title == f"t = {run.t[77]:.6g}" and explorer.matrices
    for (name, _, strip), panel in explorer.matrices.items():
        values = {**run.y, **run.observables}[name][77]
        assert np.array_equal(panel.source.data["image"][0], values.reshape(len(values), -1))
        assert strip != "Attention" or panel.mapper.low == 0


def test_the_portrait_is_drawn_as_it_is():
    """Of the toggle switch: lines from each dot along the flow, the run with its start, rest states where and as stable as they are."""
    explorer = Explorer(Controls(), Explored(TOGGLE))
    explorer.redraw()
    explorer.tabs.active = 2
    panel = explorer.flow
    assert panel is not None
    assert (panel.figure.xaxis.axis_label, panel.figure.yaxis.axis_label) == ("x", "y")
    flow = panel.flow.data
    slopes = np.array([3 / (1 + flow["y0"] ** 2) - flow["x0"], 3 / (1 + flow["x0"] ** 2) - flow["y0"]])
    lines = np.array([flow["x1"] - flow["x0"], flow["y1"] - flow["y0"]])
    cell = [np.diff(np.unique(flow[name])).max() for name in ("x0", "y0")]
    assert np.hypot(*(lines.T / cell).T) == pytest.approx(0.7)  # in cells
    assert np.all(np.sum(lines * slopes, axis=0) > 0) and lines[0] * slopes[1] == pytest.approx(lines[1] * slopes[0], abs=1e-9)
    run = odesim.integrate(TOGGLE, save=POINTS)
    assert np.array_equal(panel.way.data["x"], run.y["x"]) and np.array_equal(panel.way.data["y"], run.y["y"])
    assert [panel.start.data[name][0] for name in "xy"] == [0.5, 0.4]
    low, high = (3 - 5**0.5) / 2, (3 + 5**0.5) / 2
    places = {word: sorted((x, y) for x, y, is_ in zip(*(panel.rests.data[n] for n in ("x", "y", "stability")), strict=True) if is_ == word)
              for word in ("stable", "saddle")}  # fmt: skip
    assert np.array(places["stable"]) == pytest.approx(np.array([(low, high), (high, low)]), abs=1e-8) and len(places["saddle"]) == 1


def test_only_the_newest_job_waits(monkeypatch):
    """Of jobs that are asked for while one runs the last is computed, the others never."""
    posted: list[Callable[[], None]] = []
    newest = Newest(posted.append)
    jobs: list[Any] = []

    class Now:
        """A pool that computes when told."""

        def submit(self, compute: Callable[[], Any]) -> Any:
            from concurrent.futures import Future

            future: Future[Any] = Future()
            jobs.append(lambda: future.set_result(compute()))
            return future

    monkeypatch.setattr(newest, "pool", Now())
    shown: list[int] = []
    for k in range(5):
        newest(partial(int, k), shown.append)
    while jobs:
        jobs.pop(0)()
        posted.pop(0)()
    assert shown == [0, 4]


@pytest.mark.parametrize("origin", ["http://127.0.0.1:{port}", "http://evil.example", "http://evil.example:{port}", "http://127.0.0.1:1"])
def test_the_websocket_answers_its_own_page_alone(origin):
    """A page of another address is refused; the server listens on 127.0.0.1 only, and its own page is served."""
    from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
    from tornado.websocket import websocket_connect

    async def ask() -> tuple[bool, str]:
        server, address = make_server(Explored(TWO), Controls())
        server.start()
        port = address.rstrip("/").rpartition(":")[2]
        assert [socket.getsockname()[0] for socket in server._http._sockets.values()] == [HOST]  # type: ignore[attr-defined]
        request = HTTPRequest(f"ws://{HOST}:{port}/ws", headers={"Origin": origin.format(port=port)})
        try:
            connection = await websocket_connect(request, subprotocols=["bokeh", "no-token"])
            connection.close()
            allowed = True
        except HTTPClientError as error:
            assert error.code == 403
            allowed = False
        page = (await AsyncHTTPClient().fetch(address, request_timeout=120)).body.decode()
        server.stop()
        return allowed, page

    allowed, page = asyncio.run(ask())
    assert allowed == origin.startswith("http://127.0.0.1:{")
    assert 'name="viewport"' in page and "http://" not in page.replace(f"http://{HOST}", "").replace("http://www.w3.org", "")


def test_claims_name_their_model():
    """The statements that are shown are those of odesim verify for the model."""
    text = claims_text("joma.joint_softmax", claims_about("joma.joint_softmax"))
    claims = [claim for claim in all_claims() if "joma.joint_softmax" in claim.models]
    assert claims and all(escape(statement.text) in text for claim in claims for statement in claim.statements.values())


NUMBERS: dict[str, Callable[[Any], dict[str, list[float]]]] = {
    # what statements name at the defaults, by hand or as a run shows it
    "self_supervised.modes": lambda run: {"p": [0.8671565716]},
    "scan_snap.decoder": lambda run: {"gamma": [run.observables["gamma"].max()]},
    "scan_snap.theorem4": lambda run: {"t": [brentq(lambda u: u - np.log(9999 * u), 5, 20) * 2, run.events["snap"][0]["t"]]},
    "edge.four_layers": lambda run: {"sharpness": [20 - 2 / 3, 20]},
    "induction.stages": lambda run: {"loss": [np.log(64), np.log(32)]},
    "reversal.row": lambda run: {"p_target": [1], "t": [run.events["knee"][0]["t"]]},
}


@pytest.mark.first(6)
@pytest.mark.parametrize("model", NUMBERS)
def test_numbers_of_claims(model):
    """Levels and times that statements name are the largest gamma, the snap, the knee, ...: 1e-5 of a run of rtol 1e-6 and saved times."""
    run = odesim.integrate(model, save=2001)
    named = numbers_named(claims_about(model), odesim.load_model(model), run)
    for of, values in NUMBERS[model](run).items():
        assert [number.value for number in named if number.of == of] == pytest.approx(values, rel=1e-5)
    assert {number.of for number in named} == NUMBERS[model](run).keys()


def test_numbers_of_claims_are_marked_on_their_curves():
    """p+ moves with eta on the panel of p alone, says whose it is, and is gone where modes collapse: above 1/4.4 it is no number."""
    explorer = explorer_of("self_supervised.modes", sizes={"n": "2"})
    for eta, level in ((0.04, [0.8671565716]), (0.15, [(1 + 0.34**0.5) / 2.2]), (0.3, [])):
        explorer.fields["params", "eta"].text.value = str(eta)
        for key, panel in explorer.panels.items():
            assert panel.levels.data["at"] == pytest.approx(level if key[0] == "p" else []) and not panel.times.data["at"]
            assert panel.levels.data["words"] == ["self_supervised.collapse, printed: holds"] * len(panel.levels.data["at"])


def test_a_place_that_a_notebook_says_back_moves_nothing():
    """A page in a notebook returns the place of a slider that was set from here, rounded to its steps; only another place is a number."""
    explorer = explorer_of(TWO)
    field = explorer.fields["params", "beta"]
    field.text.value = "3.1234567"
    assert explorer.controls.params == {"beta": "3.1234567"}
    place, step = field.slider.value, field.slider.step
    field.slider.value = round(place / step) * step
    assert field.text.value == "3.1234567" and explorer.controls.params == {"beta": "3.1234567"}
    field.slider.value = place + 2 * step
    assert explorer.controls.params == {"beta": field.text.value} and field.text.value == f"{10 ** (place + 2 * step):.4g}"


def test_the_widget_brings_its_library(monkeypatch):
    """odesim.explore gives jupyter_bokeh the page, drawn, and the notebook BokehJS itself, without which the widget is an error."""
    loaded: list[Any] = []
    stand_in: Any = ModuleType("jupyter_bokeh")
    stand_in.BokehModel = lambda root, combine_events: root
    monkeypatch.setitem(sys.modules, "jupyter_bokeh", stand_in)
    monkeypatch.setattr("bokeh.io.output_notebook", lambda resources, **more: loaded.append(resources.mode))
    root = odesim.explore(TWO, params={"beta": 1.5})
    assert loaded == ["inline"] and root.select_one({"name": "params.beta"}).value == "1.5"
    assert "steps" in root.select_one({"name": "status"}).text
