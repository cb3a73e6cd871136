"""The notebooks run, and `odesim notebook` writes them as Jupyter does."""

import ast
import json
import re
import runpy
from pathlib import Path

import jupytext
import matplotlib.pyplot as plt
import numpy as np
import pytest
from click.testing import CliRunner

from odesim.cli import cli
from odesim.cli.about import notebook_of, scripts
from tests.support.matrix import slow_but
from tests.support.notation import ASCII, NUMBER

ROOT = Path(__file__).parents[2]
NAMES = scripts()
FAST = ("joma",)  # a few seconds; the documentation executes all of them


@pytest.mark.parametrize("name", slow_but(NAMES, FAST))
def test_notebook_runs(name, tmp_path, monkeypatch, capsys):
    """As a script, in an empty folder, from end to end; what it claims it asserts."""
    monkeypatch.chdir(tmp_path)
    source = NAMES[name].read_text()
    assert "\nplt.show()\n" in source  # its thumbnail is of the first of these
    assert "\nassert " in source or "\nnp.testing.assert_allclose" in source
    monkeypatch.setattr(plt, "show", lambda: None)  # there is no screen
    with plt.rc_context({"backend": "agg"}), np.errstate(all="warn"):
        runpy.run_path(str(NAMES[name]))
        assert plt.get_fignums()
        plt.close("all")
    assert not re.findall(r"\d\.\d{10,}", capsys.readouterr().out)  # digits that nobody reads


@pytest.mark.parametrize("name", NAMES)
def test_cells_are_those_of_jupytext(name):
    """The kind and the text of every cell, by another reader of percent scripts."""
    source = NAMES[name].read_text()
    theirs = jupytext.reads(source, "py:percent")["cells"]
    ours = notebook_of(source)["cells"]
    assert [(cell["cell_type"], cell["source"]) for cell in ours] == [(cell["cell_type"], cell["source"]) for cell in theirs]
    assert [cell["id"] for cell in ours] == list(dict.fromkeys(cell["id"] for cell in ours))


def run(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(cli, ["notebook", *words])
    return done.exit_code, done.stdout, done.stderr


def test_command_writes_a_notebook(tmp_path, monkeypatch):
    """A list without a name; with one a file that nbformat reads, never over another file."""
    monkeypatch.chdir(tmp_path)
    code, listed, _ = run()
    assert code == 0
    assert [line for line in listed.splitlines() if not line.startswith(" ")] == list(NAMES)
    assert run("joma")[0] == 0
    written = json.loads(Path("joma.ipynb").read_text())
    assert (written["nbformat"], written["cells"][0]["cell_type"]) == (4, "markdown")
    assert run("joma") == (2, "", "odesim: joma.ipynb exists already; give another name with --out\n")
    for name in ("joma", "03_joma", "03_joma.py", "notebooks/03_joma.py"):
        Path("other.ipynb").unlink(missing_ok=True)
        assert run(name, "--out", "other.ipynb")[0] == 0
        assert Path("other.ipynb").read_text() == Path("joma.ipynb").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("jomma",), "did you mean 'joma'?"),
        (("joma", "--out", "joma.py"), "a notebook is an .ipynb file"),
        (("joma", "--out", "away/joma.ipynb"), "no folder"),
        (("--out", "joma.ipynb"), "name the notebook"),
    ],
)
def test_refused(words, sentence, tmp_path, monkeypatch):
    """One sentence, exit code 2, nothing written."""
    monkeypatch.chdir(tmp_path)
    code, stdout, stderr = run(*words)
    assert (code, stdout) == (2, "")
    assert sentence in stderr and stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


DRAWN = {"label", "xlabel", "ylabel", "title"}  # arguments whose text a picture shows


@pytest.mark.parametrize("path", [*NAMES.values(), *sorted((ROOT / "figures").glob("fig_*.py"))], ids=lambda path: path.stem)
def test_no_ascii_mathematics_is_drawn(path):
    """Names of axes and curves have the signs of mathematics: kappa is κ, a minus is one, powers stand high."""
    words = [
        keyword.value for node in ast.walk(ast.parse(path.read_text())) for keyword in getattr(node, "keywords", ()) if keyword.arg in DRAWN
    ]
    texts = [part.value for word in words for part in ast.walk(word) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    plain = [re.sub(r"\$[^$]*\$?", "", text) for text in texts if not re.fullmatch(r",?(\.\d)?[efg%]", text)]  # how numbers are written
    assert [text for text in plain if ASCII.search(text) or NUMBER.search(text)] == []
