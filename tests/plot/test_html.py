"""Pages of html: what plotly is given is the run, or the picture; events lie on their curves, a page needs nothing from elsewhere."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

import odesim
from odesim.base.errors import ParamError
from odesim.cli import cli
from odesim.plot import Choice, figure_of_solution, page_of_solution, save
from odesim.plot.html import arrangement, make_figure
from odesim.plot.html_figure import to_plotly, words_of
from odesim.plot.style import SEQUENTIAL
from odesim.store import read_solution
from tests.support.pictures import CASES, T, solution

pytest.importorskip("plotly", reason="pip install 'odesim[html]'")


def test_a_page_shows_the_run():
    """A line for each component, to the bit; the event of a component lies on its line, as far as saved times allow."""
    run = odesim.integrate("joma.nonlinear", params={"mu": [2.0, 1.0]}, span=(0, 2), save=401)
    figure = make_figure(run, Choice())
    lines = {trace.name: trace for trace in figure.data if trace.mode == "lines"}
    assert set(lines) == {"entropy", "gap[0]", "gap[1]", "v[0]", "v[1]"}
    np.testing.assert_array_equal(lines["v[1]"].y, run.y["v"][:, 1])
    np.testing.assert_array_equal(lines["v[1]"].x, run.t)
    (marks,) = (trace for trace in figure.data if trace.mode == "markers")
    np.testing.assert_allclose(sorted(marks.y), [0.5, 1.0], atol=1e-3)  # half of mu; saved times are 0.005 apart
    assert [trace.name for trace in figure.data if trace.mode == "markers" and trace.showlegend] == ["half way (2×)"]


@pytest.mark.parametrize("many", [False, True])
def test_marks_at_jumps(many):
    """A mark at a jump has a value of its curve, on either side; of many marks a raster has all."""
    t, at = np.linspace(0, 10, 41), np.linspace(0.6, 9.6, 20 if many else 2)
    v = np.stack([(t[:, None] > at).sum(axis=1), 0 * t], axis=1).astype(float)
    jumps = {"jumps": {"hit": {"v": "component"}}}
    events = {"hit": [{"t": float(one), "index": (0,)} for one in at]}
    figure = make_figure(solution({"v": v}, t, dims={"v": ("m",)}, events=events, attrs=jumps), Choice())
    (marks,) = (trace for trace in figure.data if trace.mode == "markers")
    if many:  # rows are in the order of the components, and those without an event have theirs; the title has the name, once
        assert figure.layout.yaxis.categoryarray == ("0", "1") and figure.layout.yaxis.range == (1.5, -0.5)
        assert [words.text for words in figure.layout.annotations] == ["hit", "<i>v</i><sub><i>m</i></sub>"]
    assert len(marks.y) == len(at) and (list(marks.y) == ["0"] * 20 if many else set(marks.y) <= {0.0, 1.0, 2.0})


def test_events_are_told_apart():
    """Each event has a symbol and colour of its own, the same in all panels; a threshold is a thin line in the panel of its state."""
    names = [f"e{k}" for k in range(12)]
    events = {name: [{"t": 1.0 + k, "index": None}] for k, name in enumerate(names)}
    figure = make_figure(solution({"x": T, "y": -T}, events=events, attrs={"levels": {"y": [-3.0, 0.0]}}), Choice())
    looks = {name: {(m.marker.symbol, m.marker.color) for m in figure.data if m.legendgroup == f"event {name}"} for name in names}
    assert all(len(look) == 1 for look in looks.values()) and len(set.union(*looks.values())) == 12
    assert [(shape.yref, shape.y0, shape.y1) for shape in figure.layout.shapes] == [("y2", -3.0, -3.0), ("y2", 0.0, 0.0)]


@pytest.mark.parametrize("columns", [1, 2])
def test_panels_of_a_page_have_places(columns):
    """None is on another, each has its title above and its colour bar beside it, and a phone has one column as wide as the page."""
    figure = make_figure(CASES["matrices and vectors"], Choice(all=True))
    places = arrangement(figure, columns)
    numbers = ["", *map(str, range(2, len(figure.layout.annotations) + 1))]
    boxes = [(*places[f"xaxis{k}.domain"], *places[f"yaxis{k}.domain"]) for k in numbers]
    assert all(a[1] < b[0] or b[1] < a[0] or a[3] < b[2] or b[3] < a[2] for a, b in combinations(boxes, 2))
    for k, (number, (left, right, low, top)) in enumerate(zip(numbers, boxes, strict=True)):
        assert (places[f"annotations[{k}].x"], places[f"annotations[{k}].y"]) == ((left + right) / 2, top)
        assert places.get(f"coloraxis{number}.colorbar.len", top - low) == top - low
        assert columns > 1 or (left, right) == (0.0, 1.0)


def test_a_matrix_is_a_map():
    """Components down, time to the right; another choice shows one component as a line, on a logarithmic axis."""
    run = odesim.integrate("scan_snap.reduced", span=(0, 5), save=11)
    figure = make_figure(run, Choice(("Z",)))
    (cells,) = (trace for trace in figure.data if trace.type == "heatmap")
    np.testing.assert_array_equal(cells.z, run.y["Z"].reshape(11, -1).T)
    assert cells.y[31] == "1,1" and figure.layout.coloraxis.colorbar.len == pytest.approx(np.ptp(figure.layout.yaxis.domain))
    assert "<title>scan_snap.reduced</title>" in page_of_solution(run, Choice(("Z",)))
    one = make_figure(run, Choice(("u",), log="y"))
    assert one.layout.yaxis.type == "log" and one.data[0].name == "u"


def test_words_and_colours_are_those_of_the_picture():
    """What the model is stands below the name; rounding below 0 is no second sign, whose colours would take half of the range."""
    run = odesim.integrate("particles.density", save=11)
    assert 0 > run.y["a"].min() > -0.1 * run.y["a"].max()
    figure, shown = make_figure(run, Choice(("a",))), figure_of_solution(run, Choice(("a",)))
    assert "Many tokens on the circle" in figure.layout.title.text and figure.layout.coloraxis.cmid is None
    assert shown.axes[0].collections[0].get_cmap().name == SEQUENTIAL


@pytest.mark.first(12)
@pytest.mark.parametrize("name", CASES)
def test_any_picture_is_a_page(name):
    """Each line and each map has a trace with its numbers, each word is there, and places on the paper are those of the picture."""
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
        assert {words_of(axes.get_ylabel())} - {""} <= words
        box = axes.get_position()
        assert any(np.allclose(made.layout[key].domain, (box.x0, box.x1), atol=0.01) for key in made.layout if key.startswith("xaxis"))


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


WORDS = {
    "a < b": "a &lt; b",
    r"$v_l$ (s)": "<i>v</i><sub><i>l</i></sub> (s)",
    r"$\mathrm{gap}_{l,k}$": "gap<sub><i>l</i>,<i>k</i></sub>",
    r"$\mathdefault{10^{-3}}$": "10<sup>-3</sup>",
    r"$\sigma_1$, $\Delta$": "σ<sub>1</sub>, Δ",
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
    assert save(page_of_solution(read_solution("one.zarr")), "three.html").stat().st_size > len(page) / 2
    assert call("ensemble", "joma.nonlinear", "--size", "M=2", "--grid", "mu=1,2", "--plot", "many.html", "--quiet") == (0, "")
    assert "<script src=" not in (tmp_path / "many.html").read_text()
    monkeypatch.setattr("odesim.plot.files.find_spec", lambda _: None)
    code, said = call(*run, "--plot", "four.html")
    assert (code, said) == (2, "odesim: a page of html needs plotly: pip install 'odesim[html]'\n")
