"""Maps on the command line: --steps, stored runs that come again, and what is refused."""

import json

import numpy as np
import pytest

import odesim as library

MODEL = """
from sympy import Interval, oo, symbols
from odesim.symbolic import Map, Param, Source
x, a = symbols("x a", real=True)
SYSTEM = Map(
    name="my.logistic", source=Source("none", "test"), axes={}, updates={x: a * x * (1 - x)},
    params=(Param(a, 3.7, Interval(0, 4), "growth"),), initial={x: 0.25}, steps=12, observables={"gap": 1 - x},
)
"""


@pytest.fixture
def run(odesim, folder):
    """run(words) -> Result of the command line; my.py is a Map in its folder."""
    (folder / "my.py").write_text(MODEL)
    return lambda words: odesim(*words.split())


def test_a_run_comes_again(run):
    """Steps and saved times are stored; the run computed again has every bit."""
    done = json.loads(run("integrate my.py --steps 20 --save 0,5,20 --sensitivity a --strict --out run.zarr --json").stdout)
    assert (done["status"], done["t"], done["method"], done["stats"]["steps"]) == ("ok", 20.0, "map", 20)
    np.testing.assert_array_equal(library.open_run("run.zarr").time, [0, 5, 20])
    again = run("rerun run.zarr --model my.py")
    assert again.stdout == "3 saved times computed again: every bit is the same\n", again.stderr


def test_an_ensemble_goes_on(run):
    """One of two shards, then the rest: the bits of the whole ensemble, which come again."""
    words = "ensemble my.py --vary a=uniform(2.5,4) --members 4097 --steps 50 --save 6 --observe all --quiet"
    assert run(f"{words} --out whole.zarr").exit_code == run(f"{words} --shard 1/2 --out part.zarr").exit_code == 0
    assert run("resume part.zarr --model my.py --quiet").exit_code == 0
    whole, part = (library.open_run(f"{name}.zarr") for name in ("whole", "part"))
    np.testing.assert_array_equal(whole.time, [0, 10, 20, 30, 40, 50])
    for name in whole.data_vars:
        np.testing.assert_array_equal(whole[name], part[name])
    assert run("rerun part.zarr --model my.py").stdout == "4097 members computed again: every bit is the same\n"


def test_steps_of_a_file(run, folder):
    """A file of parameters has them too."""
    (folder / "p.toml").write_text("steps = 4\n[params]\na = 2.0\n")
    done = json.loads(run("integrate my.py --params p.toml --json").stdout)
    x = 0.25
    for _ in range(4):
        x = 2 * x * (1 - x)
    assert done["t"] == 4 and done["final"]["x"] == pytest.approx(x, rel=1e-15)


def test_show(run):
    """The next state, in formulas and in the program."""
    said = run("show my.py --derived").stdout
    assert "x(t + 1) = a*x*(1 - x)" in said and "next_x = a*x*(1 - x)" in said and "0 to 12 (updates)" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("integrate my.py --steps 0", "--steps: must be at least 1, not 0"),
        ("integrate my.py --steps 2.5", "--steps: '2.5' is not a whole number"),
        ("integrate my.py --steps 5 --span 0:5", "steps=5 is the span 0:5: give one of them"),
        ("integrate my.py --save 0,0.5", "save: 0.5 is no time of a Map"),
        ("ensemble my.py --vary a=uniform(2,3) --members 3 --rtol 0.1 --out run.zarr", "rtol is for differential equations"),
        ("ensemble joma.nonlinear --vary mu=uniform(0,1) --members 3 --steps 4 --out run.zarr", "and joma.nonlinear is a System"),
        ("ensemble joma.nonlinear --vary mu=uniform(0,1) --members 3 --method map --out run.zarr", "no method 'map' in joma.nonlinear"),
    ],
)
def test_refusals(words, said, run, folder):
    """One sentence, exit code 2, nothing written."""
    done = run(words)
    assert (done.exit_code, done.stdout) == (2, "") and said in done.stderr and done.stderr.count("\n") == 1
    assert not (folder / "run.zarr").exists()
