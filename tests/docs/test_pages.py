"""What the how-to pages show is what happens: their code, commands and messages run, in the order of the page."""

import re
import shlex
import subprocess
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from click.testing import CliRunner

import odesim
from odesim.cli import cli

ROOT = Path(__file__).parents[2]
EQUATION = "$$\nx = y\n$$\n\n"
DOCS = ROOT / "docs"
PAGES = [
    "index.md",
    "reference.md",
    "coming_from.md",
    *sorted(path.relative_to(DOCS).as_posix() for path in DOCS.glob("howto/*.md") if path.stem != "index"),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"# (\S+\.(?:py|toml))\n")  # a block that begins so is that file


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((DOCS / page).read_text())


def run(command: str) -> tuple[int, str, str]:
    """`odesim ...` in this process, in the current folder."""
    name, *words = shlex.split(command)
    assert name == "odesim", command
    done = CliRunner().invoke(cli, words)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.first(4)
@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page, tmp_path, monkeypatch):
    """Every block of a page, in one folder and one namespace; commands end with 0, those of a console with 2 or 3 and the sentence."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    names: dict[str, Any] = {"__name__": "__main__"}
    for language, text in blocks(page):
        if found := NAME.match(text):
            Path(found[1]).write_text(text)
        elif language == "python":
            exec(compile(text, page, "exec"), names)
        elif language == "sh":
            for command in text.splitlines():
                code, _, stderr = run(command)
                assert code == 0, f"{command}\n{stderr}"
        elif language == "console":
            lines = text.splitlines()
            for command, sentence in zip(lines[::2], lines[1::2], strict=True):
                code, *said = run(command.removeprefix("$ "))
                assert (code in (2, 3), *said) == (True, "", f"{sentence}\n")
        else:
            assert language in ("text", "toml"), language


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("howto")])
def test_page_begins_with_a_sentence(page):
    """Before code, tables and headings: a first reader learns what the page is about."""
    found = re.search(r"^# .+\n\n(.+)", (DOCS / page).read_text(), re.MULTILINE)
    assert found and re.match(r"[A-Z]|odesim |`\w", found[1]) and found[1][-1] in ".?:", page


@pytest.mark.parametrize("page", [*PAGES, "tutorial.md", "howto/index.md", "architecture.md", "glossary.md"])
def test_links_and_commands(page):
    """bash reads every command, every relative link is a file."""
    text = (DOCS / page).read_text()
    for command in [line for language, block in blocks(page) if language == "sh" for line in block.splitlines()]:
        done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    targets = re.findall(r"\]\(([^)#]+)\)", text)
    assert [t for t in targets if "://" not in t and not t.startswith("generated/") and not ((DOCS / page).parent / t).exists()] == []


@pytest.mark.parametrize("name", ["floors", "request"])
def test_drawing_is_current(name, tmp_path):
    """The words of a drawing, which an svg has as comments, are those that docs/drawings.py draws: of floors all rooms."""
    run_path(str(DOCS / "drawings.py"))[f"draw_{name}"](tmp_path / "drawn.svg")
    drawn, shown = (re.findall("<!-- (.*?) -->", path.read_text()) for path in (tmp_path / "drawn.svg", DOCS / f"{name}.svg"))
    assert drawn == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("v^2/2 of v[l]", "$v^{2}$/2 of $v_{l}$"),
        ("v^T v, v^(1/(M - 1)), v^l", "$v^{T}$ $v$, $v^{1/(M - 1)}$, $v^{l}$"),
        ("`v^2`, 2^v, e^-v and very", "`v^2`, $2^{v}$, $e^{-v}$ and very"),
    ],
)
def test_symbols_in_prose_are_formulas(text, shown, monkeypatch):
    """With their indices and powers; code and words stay."""
    monkeypatch.syspath_prepend(DOCS / "_ext")
    assert run_path(str(DOCS / "_ext" / "markdown.py"))["prose"](text, odesim.load_model("joma.linear")) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "Beside Fig. 1: a, one;\nb and c, two, a, b; d, three. The\nrest.",
            "Beside Fig. 1:\n\n- **a**: one\n- **b and c**: two, a, b\n- **d**: three\n\nThe rest.",
        ),
        ("Beside b of x. a to c, maps; d, v_H.", "Beside b of x.\n\n- **a to c**: maps\n- **d**: v\\_H"),
        ("One panel: a, it.", "One panel: a, it."),
    ],
)
def test_captions_are_lists_of_panels(text, shown, monkeypatch):
    """Each panel is found, and nothing is lost."""
    monkeypatch.syspath_prepend(DOCS / "_ext")
    assert run_path(str(DOCS / "_ext" / "markdown.py"))["captions"](text) == shown


@pytest.mark.parametrize(("count", "folds"), [(15, 0), (16, 1)])
def test_long_sections_are_folded(count, folds, monkeypatch):
    """A section of more than a screen of formulas is opened by a click; nothing is lost."""
    text = f"a paper\n\n**Equations**\n\n{EQUATION}\n**Where**\n\n{EQUATION * count}\n**Defaults**\n\nM = 3\n"
    monkeypatch.syspath_prepend(DOCS / "_ext")
    shown = run_path(str(DOCS / "_ext" / "markdown.py"))["folded"](text)
    assert shown.count("{dropdown}") == folds and shown.count(EQUATION) == count + 1
    assert "**Equations**" in shown and (f"{{dropdown}} Where: {count} formulas" if folds else "**Where**") in shown


def test_cells_know_their_columns():
    """All but the first of a row, in tables of the site, not in those that a notebook prints."""
    pytest.importorskip("sphinx", reason="pip install 'odesim[docs]'")
    head = '<table class="docutils x"><tr><th class="head"><p>a</p></th>\n<th><p>b <code>c</code></p></th></tr>'
    table = f"{head}\n<tr><td>1</td><td>2</td></tr></table>"
    with_headings = run_path(str(DOCS / "_ext" / "tables.py"))["with_headings"]
    assert with_headings(table) == table.replace("<td>2", '<td data-head="b c">2')
    assert with_headings(other := table.replace("docutils", "dataframe")) == other
