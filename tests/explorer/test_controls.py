"""What the controls say, without a page: the run is that of odesim.integrate, and so are the command, the program and the notebook."""

import json
import shlex
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sympy import FiniteSet, Interval, Naturals, Range, Reals, oo

import odesim
from odesim.base.errors import OdesimError
from odesim.cli.app import cli
from odesim.explorer.controls import POINTS, Controls, Explored, scale_of

TWO = "hopfield.two_patterns"
CASES: dict[str, tuple[str, Controls, dict[str, Any]]] = {
    "defaults": (TWO, Controls(), {}),
    "numbers": (
        TWO,
        Controls(params={"beta": "1.7", "delta": "2"}, initial={"u": "-0.3"}, span="0:5", method="vern7"),
        {"params": {"beta": 1.7, "delta": 2}, "initial": {"u": -0.3}, "span": (0, 5), "method": "vern7"},
    ),
    "arrays": (
        "joma.nonlinear",
        Controls(params={"mu": "[2.0, 1.0, 0.5]"}, initial={"v": "0.1,0.2,0.3"}),
        {"params": {"mu": [2.0, 1.0, 0.5]}, "initial": {"v": [0.1, 0.2, 0.3]}},
    ),
    "sizes": (
        "joma.nonlinear",
        Controls(params={"mu": "uniform(1,2)"}, sizes={"M": "4"}, seed="3"),
        {"params": {"mu": "uniform(1,2)"}, "sizes": {"M": 4}, "seed": 3},
    ),
    "map": ("hierarchy.occurrence", Controls(params={"rho": "0.7"}), {"params": {"rho": 0.7}}),
    "noise": (
        "noise.two_layer",
        Controls(params={"eta": "0.1"}, step="0.02", seed="5"),
        {"params": {"eta": 0.1}, "step": 0.02, "seed": 5},
    ),
}


def same(run, y) -> bool:
    """Whether a run has the bits of the states y, and the saved times of a run of the explorer."""
    return y.keys() == run.y.keys() and all(np.array_equal(np.asarray(y[name]), run.y[name], equal_nan=True) for name in y)


@pytest.mark.first(3)
@pytest.mark.parametrize("case", CASES)
def test_the_run_and_its_copies_are_that_of_integrate(case, tmp_path):
    """Controls, the command, the program and the notebook give the bits of odesim.integrate with numbers for texts."""
    model, controls, asked = CASES[case]
    explored = Explored(model)
    run = explored.run(controls)
    right = odesim.integrate(model, **asked, save=POINTS)
    assert same(run, right.y) and np.array_equal(run.t, right.t)

    command = explored.command(controls)
    words = shlex.split(command)
    assert words[0] == "odesim"
    done = CliRunner().invoke(cli, [*words[1:], "--out", str(tmp_path / "run.zarr"), "--quiet"])
    assert done.exit_code == 0, done.output
    stored = odesim.open_run(tmp_path / "run.zarr")
    assert same(run, {name: stored[name].values for name in run.y})

    program: dict[str, Any] = {}
    exec(explored.python(controls).replace("run.plot()", ""), program)
    assert same(run, program["run"].y)

    notebook = json.loads(explored.notebook(controls))
    code = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code[0] == explored.python(controls) and notebook["nbformat"] == 4


def test_a_system_without_a_file_is_called_by_its_name_in_a_program():
    """A System of a program has no command, and its program uses the variable that holds it."""
    explored = Explored(odesim.load_model(TWO))
    assert "odesim" not in explored.command(Controls())
    program: dict[str, Any] = {"system": explored.system}
    exec(explored.python(Controls(params={"beta": "1.5"})).replace("run.plot()", ""), program)
    assert same(program["run"], odesim.integrate(TWO, params={"beta": 1.5}, save=POINTS).y)


WRONG = {
    "outside": (Controls(params={"beta": "-1"}), "beta = -1 lies outside (0, inf)"),
    "no number": (Controls(params={"beta": "two"}), "beta: 'two' is not a number"),
    "code": (Controls(params={"beta": "__import__('os').getcwd()"}), "beta: no function '__import__'"),
    "span": (Controls(span="3:1"), "does not go forward"),
    "size": (Controls(sizes={"M": "3"}), "M"),
    "file": (Controls(params={"beta": "@secret.csv"}), "a page reads no file"),
    "seed": (Controls(seed="1.5"), "seed: 1.5 is not a whole number"),
}


@pytest.mark.first(9)
@pytest.mark.parametrize("case", WRONG)
def test_wrong_texts_are_one_sentence(case):
    """What is typed wrong is refused by the grammar and the checks of the command line; nothing is executed, no file is read."""
    controls, words = WRONG[case]
    with pytest.raises(OdesimError) as error:
        Explored(TWO).run(controls)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_files_of_the_command_are_read(tmp_path):
    """A file that the command names is read as `odesim integrate` reads it."""
    file = tmp_path / "mu.csv"
    file.write_text("2,1,0.5\n")
    text = f"@{file}"
    run = Explored("joma.nonlinear").run(Controls(params={"mu": text}, files=frozenset([text])))
    assert same(run, odesim.integrate("joma.nonlinear", params={"mu": [2.0, 1.0, 0.5]}, save=POINTS).y)


DOMAINS = {
    "positive": (Interval.open(0, oo), 0.02),
    "not negative": (Interval(0, oo), 1.0),
    "not negative, 0": (Interval(0, oo), 0.0),
    "share": (Interval(0, 1), 0.3),
    "open share": (Interval.open(0, 1), 0.3),
    "real": (Reals, -3.0),
    "real, 0": (Reals, 0.0),
    "negative": (Interval.open(-oo, 0), -2.0),
    "from -1": (Interval(-1, oo), 4.0),
    "wide": (Interval(0, 100000), 5.0),
    "counts": (Naturals, 3),
    "few": (Range(2, 9), 4),
    "two": (FiniteSet(0, 1), 1),
}


@pytest.mark.first(20)
@pytest.mark.parametrize("case", DOMAINS)
def test_a_slider_stays_in_the_domain(case):
    """Both ends of a slider, what lies between and the default are numbers of the domain, and a place and its text are one number."""
    domain, value = DOMAINS[case]
    integer = isinstance(value, int)
    scale = scale_of(domain, value, integer=integer)
    ends = scale.place(scale.low), scale.place(scale.high)
    places = np.linspace(*ends, 11) if not integer else np.arange(ends[0], ends[1] + 1)
    numbers = [float(scale.text(place)) for place in places]
    assert all(domain.contains(int(x) if integer else x) == True for x in [value, *numbers])  # noqa: E712, of sympy
    assert scale.low <= value <= scale.high and numbers == sorted(numbers) and len(set(numbers)) == len(places)
    back = [scale.place(x) for x in numbers]
    assert back == pytest.approx(list(places), abs=1e-3 * (ends[1] - ends[0]))  # texts have four digits
