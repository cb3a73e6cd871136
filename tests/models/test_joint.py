"""The JoMA block with other activations: right-hand sides by hand, Theorem 1, names."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.errors import ModelError
from odesim.inputs.bind import bind
from odesim.symbolic.expr import base_name
from odesim.symbolic.parts import key_indices
from tests.models.test_right_sides import BLOCK, value
from tests.support.matrix import crossed
from tests.support.truth.blocks import PHI, joint

LINES = crossed(("linear", "exp", "softmax"), ("softplus", "square"))


@pytest.mark.parametrize(("attention", "phi"), LINES)
def test_right_sides(attention, phi):
    """Rounding only: 1e-13 of the largest component."""
    system = odesim.load_model(f"joma.joint_{attention}:{phi.upper()}")
    numbers, rng = bind(system, **BLOCK), np.random.default_rng(1)
    states: dict[str, Any] = {name: 0.3 + 0.5 * rng.standard_normal(np.shape(v)) for name, v in numbers.initial.items()}
    want = joint(attention, phi)(0.0, states, numbers.params)
    for key, rhs in system.equations.items():
        got, right = value(system, rhs, numbers, states, key_indices(key)), want[base_name(key)]
        np.testing.assert_allclose(got, right, rtol=1e-12, atol=1e-13 * np.abs(right).max())


@pytest.mark.parametrize("phi", PHI)
def test_slopes_by_hand(phi):
    """phi' of the table against central differences of phi, step 1e-5."""
    f, slope = PHI[phi]
    u = np.linspace(-2, 2, 9)
    np.testing.assert_allclose((f(u + 1e-5) - f(u - 1e-5)) / 2e-5, slope(u), atol=1e-9)


def test_theorem_1_needs_no_activation():
    """Along a run with phi = square; 100 times rtol."""
    run = odesim.integrate("joma.joint_exp:SQUARE", initial={"V": 0.3, "Xi": 0.1}, span=(0, 5), rtol=1e-9, atol=1e-12, backend="numpy")
    worst = run.invariants["Theorem 1"]
    assert worst is not None and worst < 1e-7


def test_no_such_activation():
    with pytest.raises(ModelError, match=r"model joma\.joint_exp has no RELU; its Systems are SOFTPLUS, SQUARE, SYSTEM"):
        odesim.load_model("joma.joint_exp:RELU")
