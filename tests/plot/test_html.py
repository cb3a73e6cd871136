"""Pages of html: what plotly is given is the picture; it fits the window, and a page needs nothing from elsewhere."""

import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

import odesim
from odesim.base.errors import ParamError, StoreError
from odesim.cli import cli
from odesim.plot import Choice, figure_of_solution, save
from odesim.plot.html import PIXELS, to_plotly, words_of
from odesim.plot.labels import without_power
from odesim.plot.layout import span_of
from odesim.store.read import read_solution
from tests.support.chromium import chromium, errors_of
from tests.support.pictures import CASES, T, grow, solution

pytest.importorskip("plotly", reason="pip install 'odesim[html]'")


def page_of(run: Any, choice: Choice = Choice()) -> Any:  # noqa: B008  frozen
    """The Figure of plotly of the picture of a run."""
    return to_plotly(figure_of_solution(run, choice))


def test_a_page_shows_the_run():
    """A line for each component, to the bit; the legend is the picture's: its entry of an event turns all of the marks on and off."""
    run = odesim.integrate("joma.nonlinear", params={"mu": [2.0, 1.0]}, span=(0, 2), save=401)
    figure = page_of(run)
    lines = {trace.name: trace for trace in figure.data if trace.mode == "lines"}
    assert {"entropy", "gap[0]", "gap[1]", "v[0]", "v[1]"} <= set(lines)
    np.testing.assert_array_equal(lines["v[1]"].y, run.y["v"][:, 1])
    np.testing.assert_array_equal(lines["v[1]"].x, run.t)
    (entry,) = (trace for trace in figure.data if trace.showlegend)  # lines have their names at their axes or ends
    assert entry.name.startswith("half way")
    marks = [trace for trace in figure.data if trace.legendgroup == entry.legendgroup and trace is not entry]
    heights = [trace.y[0] for trace in marks if trace.yaxis == lines["v[1]"].yaxis]
    np.testing.assert_allclose(sorted(heights), [0.5, 1.0], atol=1e-3)  # half of mu; saved times are 0.005 apart


@pytest.mark.parametrize("name", CASES)
def test_panels_over_time_are_zoomed_together(name):
    """All of them go with the first, which goes with none."""
    figure = figure_of_solution(CASES[name], Choice(all=True))
    layout = to_plotly(figure).layout
    every = dict(zip(figure.axes, (f"x{k + 1}" if k else "x" for k in range(len(figure.axes))), strict=True))
    timed = [key for axes, key in every.items() if axes.get_xlim() == figure.axes[0].get_xlim()]
    assert [layout[key.replace("x", "xaxis")].matches for key in timed] == [None, *["x"] * (len(timed) - 1)]
    assert {key for axes, key in every.items() if axes.get_xlabel().startswith("$t")} <= {*timed}


def test_the_mouse_reads_names_and_values():
    """Beside it stand the time, the component and the event; in a map also what its colours are."""
    page = page_of(odesim.integrate("joma.nonlinear", sizes={"M": 3}, params={"mu": 1.0}, span=(0, 2), save=41))
    words = {(trace.legendgroup, trace.meta): trace.hovertemplate for trace in page.data if trace.hovertemplate}
    assert words["v[1]", None] == "<i>t</i> = %{x:.6g}<br>v[1] = %{y:.6g}<extra></extra>"
    (mark,) = (text for (_, curve), text in words.items() if curve == "v[1]")
    assert mark.startswith("<i>t</i> = %{x:.6g}<br>v[1] = %{y:.6g}<br>half way")
    cells = {trace.hovertemplate for trace in page_of(CASES["map"]).data if trace.type == "heatmap"}
    assert cells == {
        None,
        "<i>t</i> = %{x:.6g}<br><i>l</i> = %{y:.6g}<br><i>z</i> = %{customdata:.6g}<extra></extra>",
    }  # None: a colour bar
    points = page_of(solution({"x": T[:, None] * np.arange(4)}, dims={"x": ("i",)}, attrs={"views": {"x": "Points"}}))
    in_space = {trace.hovertemplate for trace in points.data if trace.mode == "markers"}
    assert in_space == {f"x[{i}]<extra></extra>" for i in range(4)}


@pytest.mark.parametrize("kind", ["Matrix", "Attention", "Points", "levels", "ticks"])
def test_a_page_has_what_the_picture_has(kind):
    """Maps and points at telling times, thresholds, ticks of events: each artist of the picture has a trace in its panel."""
    matrix = np.cumsum(np.abs(np.sin(np.arange(40 * 12))).reshape(40, 3, 4), axis=0)
    values = {"Points": T[:, None] * np.arange(4)}.get(kind, matrix / matrix.sum(axis=2, keepdims=True))
    views = {"attrs": {"views": {"x": kind}}} if kind[0].isupper() else {"attrs": {"levels": {"loss": [0.5]}}}
    events = {"spike": [{"t": 0.3 * k, "index": None} for k in range(1, 60)]} if kind == "ticks" else {}
    dims = {"x": ("i",) if kind == "Points" else ("i", "j")}
    run = solution({"x": values}, observables={"loss": np.exp(-T)}, dims=dims, events=events, **views)
    figure = figure_of_solution(run)
    page = to_plotly(figure)
    for number, axes in enumerate(figure.axes):
        traces = [trace for trace in page.data if trace.xaxis == (f"x{number + 1}" if number else "x")]
        lines = [line for line in axes.lines if len(np.atleast_1d(line.get_xdata()))]  # type: ignore[arg-type]
        leaders = [shape for shape in page.layout.shapes if shape.xref == f"x{number + 1} domain".replace("x1 ", "x ")]
        assert axes.get_label() == "<colorbar>" or len(traces) + len(leaders) >= len(lines) + len(axes.collections) > 0
    if kind == "Points":  # circles stay circles, however wide the window
        assert page.layout.yaxis3.scaleanchor == "x3" and sum(trace.mode == "markers" for trace in page.data) == 16


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("name", ["matrices and vectors", "many states", "map of a matrix"])
def test_panels_of_a_page_have_places(name, narrow):
    """None is on another; on a phone each has the whole width, in order of reading, and a colour bar is as far above as in the picture."""
    figure = figure_of_solution(CASES[name], Choice(all=True))
    page = to_plotly(figure)
    way = page.layout.meta[narrow]
    key = [str(k + 1) if k else "" for k in range(len(figure.axes))]
    boxes = [(*way[f"xaxis{k}.domain"], *way[f"yaxis{k}.domain"]) for k in key]
    assert all(a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2] for a, b in combinations(boxes, 2))
    panels = [k for k, axes in enumerate(figure.axes) if axes.get_label() != "<colorbar>"]
    if narrow:
        assert all(boxes[k][0] < 0.25 and boxes[k][1] > 0.7 for k in panels)
        cells = {k: span_of(figure.axes[k]) for k in panels}
        assert sorted(panels, key=lambda k: -boxes[k][2]) == sorted(panels, key=lambda k: (cells[k].rowspan.start, cells[k].colspan.start))
    plot = way["height"] - way["margin.t"] - way["margin.b"]
    for k in set(range(len(boxes))) - set(panels):
        parent = min(panels, key=lambda p: (boxes[k][2] < boxes[p][3], abs(boxes[k][2] - boxes[p][3]) + abs(boxes[k][0] - boxes[p][0])))
        apart = figure.axes[k].get_position().y0 - figure.axes[parent].get_position().y1
        pixels = PIXELS * figure.get_figheight() * apart
        assert plot * (boxes[k][2] - boxes[parent][3]) == pytest.approx(pixels, abs=1.0)  # a pixel


def test_words_above_fit_the_window():
    """What the model is stands below the name, unbroken by the lines of the picture; a phone has lines of its own."""
    page = page_of(odesim.integrate("particles.density", save=11), Choice(("a",)))
    wide, narrow = ({key: words for key, words in way.items() if key.endswith(".text")} for way in page.layout.meta)
    assert any("Many tokens on the circle" in words for words in wide.values())
    longest = [max(len(re.sub("<[^>]*>", "", line)) for words in way.values() for line in words.split("<br>")) for way in (wide, narrow)]
    assert longest[1] <= 50 < longest[0]  # letters of 7 pixels in 360


@pytest.mark.first(12)
@pytest.mark.parametrize("name", CASES)
def test_any_picture_is_a_page(name):
    """Each line and each map has a trace with its numbers, and each word is there."""
    figure = figure_of_solution(CASES[name])
    made = to_plotly(figure)
    lines = {(tuple(trace.x), tuple(trace.y)) for trace in made.data if trace.type == "scatter"}
    words = {annotation.text for annotation in made.layout.annotations}
    for axes in figure.axes:
        for line in axes.get_lines():
            x, y = [np.ma.filled(np.ma.asarray(v, float), np.nan).tolist() for v in line.get_data()]
            if line.get_transform() == axes.transData and np.isfinite(y).all() and line.get_linestyle() != "None":
                assert (tuple(x), tuple(y)) in lines
        for mesh in axes.collections:
            if isinstance(mesh, QuadMesh) and axes.get_label() != "<colorbar>":
                values: Any = np.ma.filled(np.ma.asarray(mesh.get_array(), float), np.nan)
                assert any(np.array_equal(t.customdata, values, equal_nan=True) for t in made.data if t.type == "heatmap")
        assert {words_of(axes.get_ylabel()), words_of(without_power(axes.yaxis))} & {"", *words}  # a page writes powers at its ticks


def test_what_figures_are_made_of():
    """Bars, one of height 0, steps, errors, points, images, contours, spans and arrows are where matplotlib has them."""
    x, y = np.arange(4.0), np.array([0.0, 1.0, 3.0, 2.0])
    figure = Figure()
    bars, points, image, logs = figure.subplots(2, 2).flat
    bars.bar(x, y, width=1.0)
    bars.errorbar(x, y, 0.5, capsize=2, fmt="none")
    bars.axhspan(1, 2, color="red")
    points.scatter(x, y, c=y, s=[5, 10, 15, 20])
    points.stairs(y, np.arange(5.0))
    points.annotate("here", (1, 1), (2, 2), arrowprops={"arrowstyle": "-"})
    image.imshow(y.reshape(2, 2), origin="lower")
    image.contour(y.reshape(2, 2))
    logs.loglog(x + 1, y + 1, label="a line")
    logs.axvline(2.0)
    logs.legend()
    made = to_plotly(figure)
    of = {k: [trace for trace in made.data if (trace.xaxis or "x") == k] for k in ("x", "x2", "x3", "x4")}
    heights = [np.nanmax(trace.y) - np.nanmin(trace.y) for trace in of["x"] if trace.fill == "toself"]
    assert sorted(round(height, 6) for height in heights if height > 0) == [1, 1, 2, 3]
    (dots,) = (trace for trace in of["x2"] if trace.mode == "markers")
    np.testing.assert_array_equal((dots.x, dots.y), (x, y))
    (cells,) = (trace for trace in of["x3"] if trace.type == "heatmap")
    np.testing.assert_array_equal(cells.customdata, y.reshape(2, 2))
    assert made.layout.xaxis4.type == "log" and [trace.name for trace in made.data if trace.showlegend] == ["a line"]
    assert any(annotation.text == "here" for annotation in made.layout.annotations) and made.layout.shapes
    figure.add_subplot(projection="3d").plot([0, 1], [0, 1], [0, 1])
    with pytest.raises(ParamError, match="png, pdf and svg draw it"):
        to_plotly(figure)


PALE = """const p = document.getElementById('picture')
    return p._fullData.filter(t => t.opacity < 1).map(t => t.meta ? `${t.meta} mark` : t.name)"""
NAME = "return [...document.querySelectorAll('.annotation')].findIndex(a => a.textContent === arguments[0])"
MIDDLE = """const p = document.getElementById('picture'), box = p.getBoundingClientRect()
    const t = p._fullData.find(t => t.name === arguments[0]), row = t.x.length >> 2
    const [x, y] = [p._fullLayout[t.xaxis.replace('x', 'xaxis')], p._fullLayout[t.yaxis.replace('y', 'yaxis')]]
    return [box.left + x._offset + x.d2p(t.x[row]), box.top + y._offset + y.d2p(t.y[row])].map(Math.round)"""
"""A point of a curve, a quarter on, in pixels of the window."""


@pytest.mark.browser
def test_curves_are_picked_by_name_by_hand_and_by_finger(tmp_path):
    """A click on a name or a curve makes it pale or brings it back; two leave it alone in its panel, two more bring all back."""
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.actions.action_builder import ActionBuilder
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    run = solution(
        {"v": grow(3)},
        observables={"gap": 1 + np.exp(-T / 4)[:, None] * np.arange(1, 4)},  # of one end, hence with one name
        dims={"v": ("m",), "gap": ("m",)},
        events={"half way": [{"t": 3.0 + k, "index": (k,)} for k in range(3)]},
        attrs={"watched": {"half way": {"v": "component"}}},
    )
    picture = save(figure_of_solution(run), tmp_path / "picked.html")
    with chromium(tmp_path) as browser:
        browser.set_window_size(1280, 1400)
        browser.get(picture.as_uri())
        WebDriverWait(browser, 120).until(lambda b: b.execute_script("return document.querySelectorAll('.annotation-text').length"))

        def click(name: str, times: int = 1) -> list[str]:
            word = browser.find_elements(By.CSS_SELECTOR, ".annotation")[browser.execute_script(NAME, name)]
            (ActionChains(browser).click if times == 1 else ActionChains(browser).double_click)(word).perform()
            return sorted(browser.execute_script(PALE))

        assert click("1") == ["v[1]", "v[1] mark"]  # half way
        assert click("1") == []
        assert click("1", 2) == ["v[0]", "v[0] mark", "v[2]", "v[2] mark"]
        assert click("0") == ["v[2]", "v[2] mark"]
        assert click("1", 2) == ["v[0]", "v[0] mark", "v[2]", "v[2] mark"]
        assert click("1", 2) == []
        assert click("0 … 2") == ["gap[0]", "gap[1]", "gap[2]"]
        hand = ActionBuilder(browser)
        hand.pointer_action.move_to_location(*browser.execute_script(MIDDLE, "gap[0]")).click()
        hand.perform()
        WebDriverWait(browser, 120).until(lambda b: sorted(b.execute_script(PALE)) == ["gap[1]", "gap[2]"])
        box = browser.find_elements(By.CSS_SELECTOR, ".annotation-text")[browser.execute_script(NAME, "2")].rect
        finger = {"x": int(box["x"] + box["width"] / 2), "y": int(box["y"] + box["height"] / 2), "gestureSourceType": "touch"}
        browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
        browser.execute_cdp_cmd("Input.synthesizeTapGesture", finger)
        WebDriverWait(browser, 120).until(lambda b: sorted(b.execute_script(PALE)) == ["gap[1]", "gap[2]", "v[2]", "v[2] mark"])
        assert errors_of(browser) == []


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 390, 1280])
def test_a_page_fits_the_window(width, tmp_path):
    """Nothing is cut or scrolled to the side: curves, strips, events, a colour bar, words and the legend."""
    from selenium.webdriver.support.ui import WebDriverWait

    names = ["matrices and vectors", "many states", "map"]
    events = {f"event {k} with a rather long name": [{"t": k + 0.2, "index": None}] for k in range(9)}
    runs = [odesim.integrate("particles.sphere", save=20, backend="numpy"), *(CASES[name] for name in names)]
    runs.append(solution({"x": np.exp(-T)}, events=events))
    with chromium(tmp_path) as browser:
        window = {"width": width, "height": 2000, "deviceScaleFactor": 1, "mobile": width < 640}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", window)
        for k, run in enumerate(runs):
            browser.get(save(figure_of_solution(run), tmp_path / f"{k}.html").as_uri())
            WebDriverWait(browser, 120).until(lambda b: b.execute_script("return document.querySelectorAll('.annotation-text').length"))
            assert errors_of(browser) == []
            assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth && innerWidth") == width
            assert browser.execute_script("return document.documentElement.scrollHeight <= innerHeight")  # of 2000 pixels
            beyond = """return [...document.querySelectorAll('.annotation-text, .legendtext, .xtick text, .ytick text, .bglayer rect')]
                .filter(e => { const box = e.getBoundingClientRect(); return box.left < -1 || box.right > innerWidth + 1 })
                .map(e => e.textContent)"""
            assert browser.execute_script(beyond) == []
            words = """const boxes = [...document.querySelectorAll(arguments[0])].map(e => e.getBoundingClientRect())
                return [Math.min(...boxes.map(box => box.top)), Math.max(...boxes.map(box => box.bottom))]"""
            if browser.execute_script("return document.querySelectorAll('.legendtext').length"):  # between the title and the panels
                (_, title), (top, end) = (browser.execute_script(words, of) for of in ("[data-index='0'] text", ".legendtext"))
                assert title <= top and end <= browser.execute_script(words, ".nsewdrag")[0]


WORDS = {
    "a < b": "a &lt; b",
    r"$v_l$ (s)": "<i>v</i><sub><i>l</i></sub> (s)",
    r"$\mathrm{gap}_{l,k}$": "gap<sub><i>l</i>,<i>k</i></sub>",
    r"$\mathdefault{10^{-3}}$": "10<sup>-3</sup>",
    r"$\sigma_1$, $\Delta$": "σ<sub>1</sub>, Δ",
    r"$\bar{x}_{i}$, $\hat{\xi}$": "<i>x\u0304</i><sub><i>i</i></sub>, <i>ξ\u0302</i>",
    r"$∑_{d \in S}$": "∑<sub><i>d</i> ∈ <i>S</i></sub>",
    "$c^*$": "<i>c</i><sup>*</sup>",
    r"cost \$5": "cost $5",
    "two\nlines": "two<br>lines",
}


@pytest.mark.parametrize("text", WORDS)
def test_formulas_are_words(text):
    """As a browser draws them."""
    assert words_of(text) == WORDS[text]


def test_the_command(tmp_path, monkeypatch):
    """`integrate --plot` and `plot --out` write one file that loads nothing; what has no page says so; without plotly a sentence does."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli, [*words])
        return done.exit_code, done.stderr

    run = ("integrate", "joma.nonlinear", "--size", "M=2", "--save", "9", "--quiet")
    assert call(*run, "--plot", "one.html", "--out", "one.zarr") == (0, "")
    page = (tmp_path / "one.html").read_text()
    assert "<script src=" not in page and 'name="generator" content="odesim"' in page and "half way" in page
    assert call("plot", "one.zarr", "--out", "two.html") == (0, "")
    assert save(read_solution("one.zarr").plot(), "three.html").stat().st_size > len(page) / 2
    assert call("ensemble", "joma.nonlinear", "--size", "M=2", "--grid", "mu=1,2", "--plot", "many.html", "--quiet") == (0, "")
    assert "<script src=" not in (tmp_path / "many.html").read_text()
    monkeypatch.setattr("odesim.plot.files.find_spec", lambda _: None)
    with pytest.raises(StoreError, match=r"pip install 'odesim\[html\]'"):
        save(Figure(), "four.html")
    code, said = call(*run, "--plot", "four.html")
    assert (code, said) == (2, "odesim: a page of html needs plotly: pip install 'odesim[html]'\n")
