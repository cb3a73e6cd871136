"""What CONTRIBUTING asks for a model, a method and a backend is enough: one of each, in a copy of the tree, is found by everything."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODEL = '''"""Thrown away: x relaxes to s at the rate k."""

import numpy as np
from sympy import Interval, oo, symbols

from odesim.symbolic import ClosedForm, Param, Source, System

x, s, k = symbols("x s k", real=True)


def solution(t, y0, params):
    """x at t."""
    return {"x": params["s"] + (y0["x"] - params["s"]) * np.exp(-params["k"] * t)}


SYSTEM = System(
    name="classics.thrown_away",
    source=Source("nobody2026nothing", "eq. 1"),
    axes={},
    equations={x: k * (s - x)},
    params=(Param(s, 2.0, Interval(-oo, oo), "where x comes to rest"), Param(k, 0.5, Interval.open(0, oo), "rate of relaxation")),
    initial={x: 0.0},
    span=(0.0, 3.0),
    time="seconds",
    closed_forms=(ClosedForm("relaxation", "from any x", solution, "explicit"),),
)
'''
METHOD = '''"""The midpoint rule: tests of what is thrown away."""

from odesim.stepper.tableau import make_method

METHOD = make_method(
    "thrown_away",
    order=2,
    last=2,
    c=(0, 1 / 2, 1),
    A=((), (1 / 2,), (0, 1)),
    P=((1.0, -2.0, 1.0), (0.0, 3.0, -2.0), (0.0, -1.0, 1.0)),
    dense_order=2,
    source="Runge 1895",
)
'''
BACKEND = '''"""Right-hand sides whose rows are computed in Python, one after another."""

from sympy import lambdify

from odesim.stepper.callback import CallbackSystem


def right_side(compiled, numbers, stays):
    """The right-hand side of a System of numbers, with numbers."""
    layout, system = compiled.layout(numbers.sizes), compiled.system
    rates = [lambdify([*system.equations, *numbers.params], rate) for rate in system.equations.values()]

    def right(t, y, out):
        out[:] = [rate(*y, *numbers.params.values()) for rate in rates]

    return CallbackSystem(right, layout, compiled.dtype, None, 0)
'''
BIB = "\n@misc{nobody2026nothing,\n  author = {Nobody},\n  title  = {Nothing},\n  year   = {2026}\n}\n"
TRUTH = '    "classics.thrown_away": lambda t, y, p: {"x": p["k"] * (p["s"] - y["x"])},\n'
ROW = """        Backend(
            "thrown_away",
            "odesim.run.thrown_away:right_side",
            compiles="",
            gpu=False,
            uses={RUN: Ability("to be thrown away", EXPLICIT)},
        ),
"""
FILES = {"models/classics/thrown_away.py": MODEL, "odesim/stepper/methods/thrown_away.py": METHOD, "odesim/run/thrown_away.py": BACKEND}
ROWS = {  # file: (before what, what)
    "models/references.bib": ("", BIB),
    "tests/support/truth/__init__.py": ('    "scan_snap.full": full,\n', TRUTH),
    "odesim/base/backends.py": ('        Backend(\n            "numba",\n', ROW),
}
ASKED = ("models/<family>/<name>.py", "odesim/stepper/methods/<name>.py", "odesim/run/<name>.py", *ROWS)
LAWS = {
    "test_laws.py": {"test_default_run", "test_closed_forms", "test_texts", "test_pickles", "test_the_compiled_run_is_that_of_arrays"},
    "test_right_sides.py": {"test_right_side"},
    "test_tableau.py": {"test_identities", "test_order", "test_dense_order", "test_dense_joins"},
    "test_order.py": {"test_fixed_step", "test_dense_output"},
    "test_backend_table.py": {"test_a_row_is_sound", "test_a_backend_computes_what_numpy_does"},
}
FOUND = """
import sys
import numpy as np
from click.testing import CliRunner
import odesim
from odesim.cli import cli
sys.path.insert(0, "docs/_ext")
from markdown import bibliography, methods_table

command = lambda words: CliRunner().invoke(cli, words.split()).stdout
assert "classics.thrown_away\\n  Thrown away: x relaxes to s at the rate k" in command("list classics")
assert "thrown_away" in command("integrate --help") and "to be thrown away" in command("integrate --help")
run = odesim.integrate("classics.thrown_away", method="thrown_away", step=0.01, backend="thrown_away")
assert (run.status, run.method, run.backend) == ("ok", "thrown_away", "thrown_away")
assert abs(run.final["x"] - 2 * (1 - np.exp(-1.5))) < 1e-4  # the error of steps of 0.01, squared
assert "| `thrown_away` | explicit, fixed step only | 2 | tests of what is thrown away |" in methods_table()
assert "Nothing" in "".join(bibliography({"nobody2026nothing"}))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with three files and three rows more."""
    copy: Path = tmp_path_factory.mktemp("contributed") / "tree"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "*.pyc.*", "_build", "generated"))
    for name, text in FILES.items():
        assert not (copy / name).exists()
        (copy / name).write_text(text)
    for name, (before, row) in ROWS.items():
        text = (copy / name).read_text()
        place = text.index(before) if before else len(text)
        (copy / name).write_text(text[:place] + row + text[place:])
    return copy


def python(tree: Path, *words: str) -> str:
    """What a process in the tree prints."""
    environment = os.environ | {"PYTHONPATH": str(tree), "COLUMNS": "200"}
    done = subprocess.run([sys.executable, *words], cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_contributing_names_these_files() -> None:
    """And no other one that a model, a method or a backend needs."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert [name for name in ASKED if f"`{name}`" not in text] == []


def test_what_is_added_is_found(tree: Path) -> None:
    """A list, a help page, a run by all three, and what the documentation takes from the tree."""
    python(tree, "-c", FOUND)


def test_the_laws_run_on_what_is_added(tree: Path) -> None:
    """Each of LAWS has a case of it, and all cases that bear its name pass."""
    files = [str(path.relative_to(tree)) for name in LAWS for path in (tree / "tests").rglob(name) if path.parent.name != "lab"]
    words = ["-n", "0", "-p", "no:cacheprovider", "-v", "-m", "not browser", "-k", "thrown_away", *files]
    lines = [line for line in python(tree, "-m", "pytest", *words).splitlines() if "thrown_away" in line and "::" in line]
    assert all(" PASSED" in line for line in lines)
    for name, laws in LAWS.items():
        assert laws <= {line.partition("::")[2].partition("[")[0] for line in lines if f"/{name}::" in line}, name
