"""The tables in examples/ are what their scripts count."""

import csv
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
TABLE = EXAMPLES / "pydoc"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pydoc_counts", EXAMPLES / "pydoc_counts.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pydoc_rows_are_the_counts(script):
    """P (K, S) is tokens.csv divided by its column sums; rows sum to 1."""
    P = np.loadtxt(TABLE / "P.csv", delimiter=",")
    head, *lines = list(csv.reader((TABLE / "tokens.csv").read_text().splitlines()))
    counts = np.array([[int(c) for c in line[1:]] for line in lines]).T
    assert head == ["token", *(target for _, target in script.CLASSES)]
    assert P.shape == counts.shape == (len(script.CLASSES), script.S)
    # one rounding a quotient
    np.testing.assert_allclose(P, counts / counts.sum(axis=1, keepdims=True), rtol=1e-15)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-14)


def test_pydoc_script_counts_the_committed_table(script, tmp_path):
    """On the text that was counted the script writes the committed files, byte for byte."""
    source = json.loads((TABLE / "source.json").read_text())
    if script.digest() != source["sha256"]:
        pytest.skip(f"the text of pydoc_data.topics here is not that of Python {source['python']}, which was counted")
    script.write(tmp_path)
    for name in ("P.csv", "tokens.csv"):
        assert (tmp_path / name).read_bytes() == (TABLE / name).read_bytes()


def test_a_package_of_models(tmp_path):
    """Copied and installed as its README says, its models are found by name, and its own tests pass."""
    copy, installed = tmp_path / "package", tmp_path / "installed"
    shutil.copytree(EXAMPLES / "package", copy, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), str(EXAMPLES.parent)])}

    def run(*arguments: object) -> str:
        done = subprocess.run([sys.executable, "-m", *map(str, arguments)], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", installed, copy)
    listed = run("odesim", "list", "my")
    assert [line for line in listed.splitlines() if not line.startswith(" ")] == ["my.two_layers", "my.two_layers_deep"], listed
    assert "passed" in run("pytest", "-q", "-p", "no:cacheprovider", "-c", copy / "pyproject.toml", copy / "tests")
