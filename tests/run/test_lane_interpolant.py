"""The interpolant in texts of steps: the operations that one run has."""

import ast
from typing import Any

import pytest

from odesim.stepper.control import weight
from odesim.stepper.methods import METHODS
from odesim.stepper.readers import bent, horner
from odesim.stepper.rosenbrock_methods import ROSENBROCK

THETAS = (0.0, 0.1, 1 / 3, 0.8, 1.0)


@pytest.mark.parametrize("method", [*METHODS.values(), *ROSENBROCK.values()], ids=lambda m: m.name)
def test_text_has_the_bits_of_the_function(method: Any) -> None:
    """What a stage counts for by its powers of theta."""
    for j, text in horner(method.P.tolist(), "theta"):
        for theta in THETAS:
            assert repr(eval(ast.unparse(text), {"theta": theta})) == repr(weight(method.P[j].tolist(), method.P.shape[1], theta))


@pytest.mark.parametrize("method", ROSENBROCK.values(), ids=lambda m: m.name)
def test_text_has_the_bits_of_dense(method: Any) -> None:
    """The form in which a stiff run saves its states; by powers it is the same to the rounding of coefficients of up to about 100."""
    for theta in THETAS:
        for j, wanted in enumerate(method.dense(theta).tolist()):
            assert eval(ast.unparse(bent(method, "theta")[j][1]), {"theta": theta}) == wanted
            assert weight(method.P[j].tolist(), method.P.shape[1], theta) == pytest.approx(wanted, abs=1e-13)
