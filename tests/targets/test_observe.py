"""Observables that are functions of a model file: what they may return, and one sentence for the rest."""

import sys
from typing import Any

import numpy as np
import pytest
from sympy import Symbol

from odesim.api.integrate import integrate
from odesim.base.errors import ModelError
from odesim.symbolic import System
from tests.support.systems import SOURCE

x = Symbol("x")


def seen(f: Any) -> np.ndarray:
    """The observable f of x' = -x at t = 0 and 1."""
    system = System(name="decay", source=SOURCE, axes={}, equations={x: -x}, params=(), initial={x: 1}, observables={"seen": f})
    return integrate(system, span=(0, 1), backend="numpy").observables["seen"]


@pytest.mark.parametrize(
    ("f", "shape"), [(x, (2,)), (7, (2,)), (lambda t, y, d, p: 7, (2,)), (lambda t, y, d, p: np.zeros((3, 4)), (2, 3, 4))]
)
def test_an_observable_has_a_row_for_each_time(f, shape):
    """Expressions, numbers and functions alike."""
    assert seen(f).shape == shape


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda t, y, d, p: np.zeros(2 if t == 0 else 3), r"has shape \(3,\) at t = 1, and \(2,\) at t = 0"),
        (lambda t, y, d, p: None, "raised at t = 0: TypeError: it returned None"),
        (lambda t, y, d, p: "a", "raised at t = 0: ValueError: could not convert"),
        (lambda t, y, d, p: 1 / (t - 1), "raised at t = 1: ZeroDivisionError"),
        (lambda t, y, d, p: sys.exit(3), "raised at t = 0: SystemExit: 3"),
    ],
)
def test_what_a_function_does_wrong_is_one_sentence(f, words):
    """It names the observable, the model and the time."""
    with pytest.raises(ModelError, match=f"observable 'seen' of decay {words}") as error:
        seen(f)
    assert "\n" not in str(error.value)
