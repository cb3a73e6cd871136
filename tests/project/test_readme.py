"""What the README shows is what happens: its commands, its code, its error messages, its links; and it stays short."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from odesim.cli import cli
from odesim.plot.style import SMALL

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCKS if name == language]


def run(command: str) -> Result:
    """`odesim ...` in this process, in the current folder."""
    name, *words = shlex.split(command)
    assert name == "odesim", command
    return CliRunner().invoke(cli, words)


def commands(page: str) -> list[str]:
    """Every `odesim ...` in the text of a page, and every line of its sh blocks."""
    text = (ROOT / page).read_text()
    shown = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [*re.findall(r"`(odesim [^`]*)`", text), *(line for block in shown for line in block.splitlines())]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "examples/README.md"])
def test_bash_reads_every_command(page):
    """What a page shows as a command is one that bash can read: values with parentheses are quoted."""
    assert commands(page)
    for command in commands(page):
        done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The current folder, with the examples and the README's own model, my_model.py."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (model,) = [text for text in blocks("python") if "SYSTEM" in text]
    (tmp_path / "my_model.py").write_text(model)
    return tmp_path


def test_two_commands_come_first():
    """The first block is set-up with the main job, and the tests; nothing else."""
    setup, tests = BLOCKS[0][1].splitlines()
    assert BLOCKS[0][0] == "sh"
    assert setup == (
        "python3 -m venv .venv && . .venv/bin/activate && pip install -e '.[test]' && odesim integrate joma.nonlinear --plot joma.png"
    )
    assert tests == "pytest"


def test_the_first_picture_is_that_of_the_first_command(folder):
    """As wide and as high to 2 %, for versions of matplotlib differ in words: other panels make another page."""
    run("odesim integrate joma.nonlinear --plot joma.png")
    (high, wide), shown = (plt.imread(path).shape[:2] for path in (folder / "joma.png", ROOT / "docs" / "joma.png"))
    np.testing.assert_allclose((high, wide), shown, rtol=0.02)


def test_pictures_read_on_a_telephone():
    """Letters of 6 pt at true size are 5 pt and more in a column of 358 pixels of 1/96 inch; a cell of a table would be narrower."""
    pictures = [ROOT / path for path in re.findall(r"docs/[\w/]+\.png", README)]
    assert len(pictures) == 7
    for path in pictures:
        with Image.open(path) as picture:
            assert SMALL / 72 * picture.info["dpi"][0] * min(358 / picture.width, 1) / 96 * 72 >= 5, path.name
    assert [line for line in README.splitlines() if line.startswith("|") and ".png" in line] == []


def test_it_is_short():
    """At most 700 words, no paragraph of more than 60."""
    assert len(README.split()) <= 700
    prose = re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL)
    assert [p for p in prose.split("\n\n") if not p.startswith("|") and len(p.split()) > 60] == []


COMMANDS = [line for text in blocks("sh")[1:] for line in text.splitlines()]


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs(command, folder):
    """A command of the README ends with 0 and leaves the files that it names; --json prints one object."""
    done = run(command)
    assert done.exit_code == 0, done.stderr
    words = shlex.split(command)
    for option in {"--out", "--plot"} & set(words):
        assert (folder / words[words.index(option) + 1]).exists()
    if "--json" in words:
        assert json.loads(done.stdout)["status"] in ("ok", "event")


def test_bash_runs_a_command(folder):
    """As a reader would type it, with the odesim of this environment."""
    shell = f'odesim() {{ {shlex.quote(sys.executable)} -m odesim "$@"; }}\nodesim show my_model.py'
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, run("odesim show my_model.py").stdout), done.stderr


def test_own_model_gives_its_solution(folder):
    """The README's model in at most 25 lines: w = s (1 - exp(-t/tau)) at the default end, t = 5."""
    assert len((folder / "my_model.py").read_text().splitlines()) <= 25
    done = run("odesim integrate my_model.py --set s=1,-2,0.5 --set tau=2 --rtol 1e-8 --json")
    assert done.exit_code == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["t"] == 5
    # 10 times the relative tolerance, on values of size 2
    np.testing.assert_allclose(result["final"]["w"], np.array([1, -2, 0.5]) * -np.expm1(-2.5), atol=2e-7)


def test_python_block_runs(folder):
    """The lines for Python run as they stand."""
    (code,) = [text for text in blocks("python") if "SYSTEM" not in text]
    exec(code, {"__name__": "__main__"})


def test_errors_read_as_shown(folder):
    """Each wrong command of the README ends with 2 and prints exactly the line that stands below it."""
    lines = [line for text in blocks("console") for line in text.splitlines()]
    pairs = list(zip(lines[::2], lines[1::2], strict=True))
    assert pairs
    for command, sentence in pairs:
        done = run(command.removeprefix("$ "))
        assert done.exit_code == 2, command
        assert (done.stdout, done.stderr) == ("", f"{sentence}\n")


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "examples/README.md"])
def test_links_lead_somewhere(page):
    """Every relative link or picture of a page is a file of the checkout."""
    targets = re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text())
    missing = [t for t in targets if "://" not in t and not ((ROOT / page).parent / t).exists()]
    assert missing == []
