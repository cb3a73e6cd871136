"""The reader of a step: what it folds and unrolls, what statements read and write, what it refuses."""

import ast
from pathlib import Path

import numpy as np
import pytest

import odesim
from odesim.stepper.methods import METHODS
from odesim.stepper.one_system import driver_of
from odesim.stepper.readers import Switches, explicit_reader, horner, step_text
from odesim.stepper.statements import (
    Comb,
    If,
    Let,
    Reader,
    Right,
    Stages,
    Sum,
    Take,
    Text,
    exposed,
    flow,
    written,
)  # fmt: skip

SMALL = """
ROWS = {"y": "state", "z": "state", "k": "stage", "p": "param"}
COMMON = ("t0",)
DOES = ("look",)
WATCHES = ()
LOGICAL = ()


def size(what):
    return sum_of(what * what)


def step():
    for s in stages(1, LAST):
        k[s] = right(t + C[s] * h, y + h * dot(A[s], k), z)
    if WIDE:
        error = sqrt(size(h * dot(E, k)))
        fits = error <= 1.0
    else:
        fits = True
    look(z)
    take(y, z, fits)
    t = t + h if fits else t
"""
KNOWN = {"LAST": 2, "A": [[], [0.5], [0.0, 1.0]], "C": [0.0, 0.5, 1.0], "E": [1.0, 0.0, -1.0]}


def test_a_known_method_is_unrolled():
    """Loops over stages are gone, weights of 0 left out, tables are numbers; a switch that is not known stays."""
    first, second, choice, *_ = Reader(Text(SMALL), KNOWN).read("step")
    assert isinstance(first, Right) and isinstance(second, Right) and isinstance(choice, If)
    assert (first.row, second.row, ast.unparse(first.time), first.keep) == (("k", 1), ("k", 2), "t + 0.5 * h", "z")
    assert isinstance(second.state, Comb) and [(j, ast.unparse(w)) for j, w in second.state.terms] == [(1, "1.0")]
    assert second.state.base == "y" and second.state.factor is not None and ast.unparse(second.state.factor) == "h"
    total, let, _ = choice.yes
    assert isinstance(total, Sum) and total.form == "size" and isinstance(let, Let) and ast.unparse(let.value) == f"sqrt({total.name})"


def test_an_unknown_method_stays_a_loop():
    """So one driver serves all methods: weights are the text's own expression."""
    loop, *_ = Reader(Text(SMALL), {}).read("step")
    assert isinstance(loop, Stages) and ast.unparse(loop.last) == "LAST"
    (stage,) = loop.body
    assert isinstance(stage, Right) and isinstance(stage.state, Comb) and stage.row == ("k", "s")
    assert not stage.state.terms and stage.state.weights is not None and ast.unparse(stage.state.weights) == "A[s]"


def test_what_is_read_and_written():
    """A step reads what it did not write, and surely writes what both branches write."""
    statements = Reader(Text(SMALL), KNOWN).read("step")
    assert exposed(statements) == {"t", "h", "y", "p", "WIDE", ("k", 0)}
    choice = statements[2]
    assert isinstance(choice, If) and flow([choice])[1] == {"fits"} and "error" in written([choice])
    assert written(statements) >= {"y", "z", "t", "fits", ("k", 1), ("k", 2)} and isinstance(statements[-2], Take)


def test_truths_are_inferred():
    """Comparisons are, and so are their choices; numbers are not."""
    reader = Reader(Text(SMALL), {**KNOWN, "WIDE": True})
    reader.read("step")
    assert reader.logical == {"fits"}


def test_an_unknown_statement_is_refused():
    """In a sentence with its text."""
    with pytest.raises(ValueError, match=r"no statement of a step: y \+= 1"):
        Reader(Text(SMALL.replace("look(z)", "y += 1")), KNOWN).read("step")


@pytest.mark.parametrize("method", ["tsit5", "dop853"])
def test_weights_of_the_interpolant(method):
    """By Horner's scheme they are the polynomial, and leave out stages without one."""
    P, theta = METHODS[method].P, 0.37
    weights = {j: eval(ast.unparse(w), {"theta": theta}) for j, w in horner(P.tolist(), "theta")}
    exact = (P * theta ** np.arange(1, P.shape[1] + 1)).sum(axis=1)
    np.testing.assert_allclose([weights.get(j, 0.0) for j in range(len(P))], exact, rtol=1e-12, atol=1e-14)
    assert set(weights) == set(np.flatnonzero(P.any(axis=1)))


def test_the_text_is_not_run():
    """The file of the step is text: each of its functions is a phase or one expression, and imports nothing."""
    for file in ("step", "explicit", "implicit"):
        source = (Path(odesim.__file__).parent / "stepper" / f"{file}.py").read_text()
        assert not [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    reader = explicit_reader(METHODS["tsit5"], Switches(saves=True, events=True, laws=True))
    for name, function in step_text("explicit").functions.items():
        assert isinstance(function.body[-1], ast.Return) or reader.read(name)


def test_what_outlives_a_step_has_a_place():
    """The driver of one system keeps every number that a later step reads: a run in slices is a run in one go."""
    driver = driver_of("explicit", False)
    assert {"t", "h", "past", "retry", "steps", "rejected", "due", "saved", "code"} <= set(driver.numbers)
    assert len(set(driver.numbers)) == len(driver.numbers) and set(driver.sums) == {"squares", "strays"}
