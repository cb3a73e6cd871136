"""Pages of html: what plotly is given is the run, events lie on their curves, a page needs nothing from elsewhere."""

import numpy as np
import pytest
from click.testing import CliRunner

import odesim
from odesim.cli import cli
from odesim.plot import Choice, page_of_solution, save
from odesim.plot.html import make_figure
from odesim.store import read_solution

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


def test_a_matrix_is_a_map():
    """Components down, time to the right; another choice shows one component as a line, on a logarithmic axis."""
    run = odesim.integrate("scan_snap.reduced", span=(0, 5), save=11)
    figure = make_figure(run, Choice(("Z",)))
    (cells,) = (trace for trace in figure.data if trace.type == "heatmap")
    np.testing.assert_array_equal(cells.z, run.y["Z"].reshape(11, -1).T)
    assert cells.y[31] == "Z[1,1]"
    one = make_figure(run, Choice(("u",), log="y"))
    assert one.layout.yaxis.type == "log" and one.data[0].name == "u"


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
    code, said = call("ensemble", "joma.nonlinear", "--grid", "mu=1,2", "--plot", "many.html")
    assert code == 2 and "no picture format 'html'" in said
    monkeypatch.setattr("odesim.plot.files.find_spec", lambda _: None)
    code, said = call(*run, "--plot", "four.html")
    assert (code, said) == (2, "odesim: a page of html needs plotly: pip install 'odesim[html]'\n")
