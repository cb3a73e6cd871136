"""The size of the first step: what is refused in a sentence, and stored runs that know it when they are computed again."""

from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import odesim
from odesim.base.errors import SolveError
from odesim.cli import cli

REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "zero": ("joma.nonlinear", {"first_step": 0.0}, "must be a finite number above 0"),
    "negative": ("joma.nonlinear", {"first_step": -1.0}, "must be a finite number above 0"),
    "infinite": ("joma.nonlinear", {"first_step": np.inf}, "must be a finite number above 0"),
    "longer than the span": ("joma.nonlinear", {"first_step": 3.0, "span": (0.0, 2.0)}, "longer than the span 0:2"),
    "longer than the longest": ("joma.nonlinear", {"first_step": 0.2, "max_step": 0.1}, "longer than max_step = 0.1"),
    "fixed steps": ("joma.nonlinear", {"first_step": 0.1, "step": 0.1}, "the first of adaptive steps"),
    "rescaled clock": ("joma.nonlinear", {"first_step": 0.1, "clock": "rescaled"}, "ordinary clock"),
    "a Map": ("hopfield.update", {"first_step": 0.1}, "first_step is for differential equations"),
    "a text": ("joma.nonlinear", {"first_step": "short"}, "first_step must be a number"),
}


def known(model: str) -> list[str]:
    return [p.name for p in odesim.load_model(model).params]


@pytest.mark.parametrize("how", [odesim.integrate, odesim.ensemble], ids=["a run", "an ensemble"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_first_step_that_makes_no_sense(name: str, how: Any) -> None:
    """Each is refused before anything is computed, in one sentence that names it."""
    model, given, sentence = REFUSED[name]
    several = {"vary": {name: "uniform(1,2)" for name in ("mu", "beta") if name in known(model)}, "members": 2}
    with pytest.raises(SolveError, match=sentence):
        how(model, **given, **(several if how is odesim.ensemble else {}))


def test_the_command_line_refuses_the_same() -> None:
    """Exit code 2."""
    for words in (["0"], ["-1"], ["nan"], ["1e9"], ["0.1", "--step", "0.1"]):
        assert CliRunner().invoke(cli, ["integrate", "joma.nonlinear", "--first-step", *words]).exit_code == 2


@pytest.mark.parametrize("what", ["a run", "an ensemble"])
def test_a_stored_run_knows_its_first_step(what: str, tmp_path: Any) -> None:
    """It is stored, and what is computed again has the same bits: another first step would have others."""
    out = str(tmp_path / "run.zarr")
    more = ["--vary", "mu=uniform(1,2)", "--members", "3", "--size", "M=2", "--save", "3"] if what == "an ensemble" else []
    command = what.split()[-1].replace("run", "integrate")
    words = [command, "joma.nonlinear", *more, "--method", "tsit5", "--first-step", "0.01", "--out", out, "--quiet"]
    assert CliRunner().invoke(cli, words).exit_code == 0
    assert odesim.open_run(out).attrs["first_step"] == 0.01
    assert CliRunner().invoke(cli, ["rerun", out]).exit_code == 0
