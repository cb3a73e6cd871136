"""What the benchmarks compute beside times: goals, tables, and the answers that errors are measured against. Nothing is timed."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
MODULES = ("tables", "goals", "report", "works")
RUN: dict[str, Any] = {"command": "python x.py", "date": "2026-01-02", "load": [0.1, 0.2], "processor": "A", "versions": {"odesim": "1"}}
TABLE: dict[str, Any] = {
    "title": "Some",
    "columns": [["solver", "solver", ""], ["µs", "us", ".3g"]],
    "rows": [{"solver": "a", "us": 1.23456}],
}


@pytest.fixture
def bench(monkeypatch) -> Any:
    """Imports a module of benchmarks/ that sets nothing, and forgets it afterwards."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for name in MODULES:
        sys.modules.pop(name, None)


def test_table(bench):
    """Titles, formats, and an empty cell for what a row lacks."""
    rows = [*TABLE["rows"], {"solver": "b"}]
    assert bench("tables").markdown({**TABLE, "rows": rows}) == "Some\n\n| solver | µs |\n|---|---|\n| a | 1.23 |\n| b |  |"


@pytest.mark.parametrize(
    ("sense", "value", "verdict"),
    [
        ("at most", 1.0, "beyond"),
        ("at most", 1.9, "met"),
        ("at most", 1.91, "missed"),
        ("at least", 1.0, "met"),
        ("at least", 0.99, "missed"),
        ("at least", None, "missed"),
    ],
)
def test_verdict(bench, sense, value, verdict):
    """A bound itself is met; what is not allowed to count is missed."""
    goals = bench("goals")
    must, beyond = (1.9, 1.0) if sense == "at most" else (1.0, None)
    assert goals.Goal("k", "b", "text", sense, must, beyond).verdict(value) == verdict


def test_goals_are_those_of_a_table(bench):
    """Keys and texts are distinct, and only a goal has a place where time goes."""
    goals = bench("goals")
    keys = [g.key for g in goals.GOALS]
    assert len(set(keys)) == len(keys) == len({g.text for g in goals.GOALS}) and set(goals.WHERE) <= set(keys)


def test_updated(bench):
    """A benchmark's part and its goals are replaced; other parts, other goals and the prose stay; the same numbers again change nothing."""
    report, (first, second) = bench("report"), [g for g in bench("goals").GOALS if g.benchmark == "ensemble"][:2]
    text = f"prose\n<!-- begin goals -->\n{report.HEAD}\n| {second.text} | by hand |\n<!-- end goals -->\n"
    text += "<!-- begin ensemble -->\nold\n<!-- end ensemble -->\nmore\n<!-- begin wide -->\nkept\n<!-- end wide -->\n"
    found = {**RUN, "benchmark": "ensemble", "measured": {first.key: 1.5}, "tables": [TABLE], "pictures": ["a.png"]}
    new = report.update_results(text, {"ensemble": found})
    assert "old" not in new and "![a](a.png)\n<!-- end ensemble -->" in new and "| a | 1.23 |" in new and "2026-01-02, load 0.1" in new
    assert f"| {first.text} | at most 1.9 | 1.45 | 1.5 | met |" in new and f"| {second.text} | by hand |" in new
    assert new.startswith("prose\n") and "more\n<!-- begin wide -->\nkept\n<!-- end wide -->\n" in new
    assert report.update_results(new, {"ensemble": found}) == new


def test_parts_of_a_benchmark(bench):
    """What was run part by part is one: all tables, all numbers, each command."""
    first = {**RUN, "benchmark": "gpu", "measured": {"a": 1}, "tables": [TABLE]}
    second = {**first, "command": "python y.py", "measured": {"b": 2}, "versions": {"jax": "2"}}
    found = bench("report").merge_files([first, second, {**first, "benchmark": "wide"}])
    assert list(found) == ["gpu", "wide"] and found["gpu"]["measured"] == {"a": 1, "b": 2} and len(found["gpu"]["tables"]) == 2
    assert "`python x.py`, `python y.py`, 2026" in bench("report").benchmark_section(found["gpu"]) and first["measured"] == {"a": 1}


def test_report_of_the_results(tmp_path):
    """The committed results have a part for every benchmark of a goal; a folder without files changes nothing and says so."""
    text = (FOLDER / "RESULTS.md").read_text(encoding="utf-8")
    results, folder = tmp_path / "RESULTS.md", tmp_path / "session"
    results.write_text(text, encoding="utf-8")
    folder.mkdir()
    command = [sys.executable, str(FOLDER / "report.py"), str(folder), "--results", str(results)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "no JSON file" in done.stderr and results.read_text(encoding="utf-8") == text
    names = [line.split()[1] for line in (FOLDER / "session.sh").read_text().splitlines() if line.startswith("    measure ")]
    names += ["train_transformer", "gpu", "registers"]
    for name in names:
        found = {**RUN, "benchmark": name, "measured": {}, "tables": [TABLE]}
        (folder / f"{name}.json").write_text(json.dumps(found), encoding="utf-8")
    (folder / "work_precision_W1.png").write_bytes(b"picture")
    subprocess.run(command, check=True, capture_output=True)
    assert (tmp_path / "work_precision_W1.png").read_bytes() == b"picture"
    assert results.read_text(encoding="utf-8").count("| a | 1.23 |") == len(set(names))


def test_solve_by_separation(bench):
    """The closed form of W4j against scipy's DOP853 where it is not stiff, 1e-11; at the end of W4j v is mu."""
    works = bench("works")
    work = works.make_work("W1s", 3)
    np.testing.assert_allclose(works.solve_by_separation(work), works.exact(work), atol=2e-9)  # DOP853 between its steps: 1e-9 at 1e-13
    ends = works.replace(work, times=work.times[-1:])
    np.testing.assert_allclose(works.solve_by_separation(ends), works.exact(ends), atol=5e-11)
    stiff = works.make_work("W4j", 5)
    fast = stiff.params > 3
    assert fast.any() and works.solve_by_separation(stiff)[:, -1][fast] == pytest.approx(stiff.params[fast], rel=1e-15)


@pytest.mark.parametrize("system", ["joma", "robertson"])
def test_jacobian(bench, system):
    """The Jacobian that the implicit peers get, against central differences of the right-hand side, rounding 1e-7 of its size."""
    works, rng = bench("works"), np.random.default_rng(1)
    D = {"joma": 4, "robertson": 3}[system]
    y, p, h = rng.uniform(0.1, 1, D), rng.uniform(1, 2, D), 1e-6
    f, J = works.right_side(system, np.exp, np.array), works.jacobian(system)(0.0, y, p)
    differences = np.stack([(f(0.0, y + h * e, p) - f(0.0, y - h * e, p)) / (2 * h) for e in np.eye(D)], axis=1)
    np.testing.assert_allclose(J, differences, atol=1e-7 * np.abs(J).max())


def test_error(bench):
    """Relative above the floor, absolute without one; NaN is infinitely wrong, not skipped."""
    works = bench("works")
    stiff, plain = works.make_work("W4r", 2), works.make_work("W2", 2)
    exact, values = np.array([2.0, 1e-9]), np.array([2.0002, 2e-9])
    assert stiff.error(values, exact) == pytest.approx(0.1) and plain.error(values, exact) == pytest.approx(2e-4)
    assert plain.error(np.array([np.nan, 1.0]), np.ones(2)) == np.inf


FLOWS = """
import numpy as np


class Driven:
    damping = 0.5

    def rhs(self, X, t):
        x, v, phase = X
        force = np.heaviside(x, 0.5) * np.abs(v) ** 2.0 - max(0, x)
        return v, -np.sin(x) - self.damping * v + force + np.cos(phase), 1.3


class Array:
    k = np.array([[1.0, 2.0], [0.5, -1.0]])

    def rhs(self, X, t):
        rate = np.zeros_like(X)
        rate[:] = np.tanh(self.k @ X) - X
        return rate
"""


def test_flows_of_a_collection(tmp_path):
    """Right-hand sides in numpy become Systems, and end where SciPy's DOP853 does."""
    package = tmp_path / "dysts"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "flows.py").write_text(FLOWS)
    fact = {"delay": False, "period": 2.0, "lyapunov_spectrum_estimated": []}
    facts = {
        "Driven": {**fact, "initial_conditions": [0.3, 1.0, 0.0], "std": [1.0, 1.0, 1.0]},
        "Array": {**fact, "initial_conditions": [0.3, -1.0], "std": [0.0, 2.0]},
        "Late": {**fact, "delay": True},
    }
    (package / "data" / "chaotic_attractors.json").write_text(json.dumps(facts))
    places = os.pathsep.join([str(tmp_path), str(FOLDER.parent)])
    command = [sys.executable, FOLDER / "dysts_flows.py", "--json", tmp_path / "a.json"]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": places})
    found = json.loads((tmp_path / "a.json").read_text())
    score = found["tables"][0]["rows"][0]
    assert (score["method"], score["flows"], score["passed"]) == ("auto", 2, 2)
    assert all(row["error"] < 1e-7 for row in found["flows"])
