"""The JoMA block with other activations and losses: right-hand sides by hand, descent beside the reference training, Theorem 1, names."""

from typing import Any

import numpy as np
import pytest
from sympy import Integer

import odesim
from odesim.base.errors import ModelError
from odesim.inputs.bind import bind
from odesim.models.joma._joint import joint as joint_system
from odesim.symbolic import Invariant
from odesim.symbolic.indices import base_name
from odesim.symbolic.parts import key_indices
from tests.models.test_right_sides import BLOCK, value
from tests.support.joma_cases import MQ, PHIS, SIGNALS, batch_of, block_of, start_of
from tests.support.matrix import slow_but
from tests.support.truth.blocks import PHI, joint

VARIANTS = {name.upper(): (name, "ce") for name in ("softplus", "square", "relu")} | {
    "MSE": ("identity", "mse"),
    "FIXED": ("identity", "fixed"),
}


@pytest.mark.first(2)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("attention", ["linear", "exp", "softmax"])
def test_right_sides(attention, variant):
    """Rounding only: 1e-13 of the largest component."""
    system = odesim.load_model(f"joma.joint_{attention}:{variant}")
    numbers, rng = bind(system, **BLOCK), np.random.default_rng(1)
    middle = 0.0 if variant == "RELU" else 0.3
    states: dict[str, Any] = {name: middle + 0.5 * rng.standard_normal(np.shape(v)) for name, v in numbers.initial.items()}
    u = value(system, system.display["u"], numbers, states)
    assert variant != "RELU" or u.min() < 0 < u.max()  # both sides of the kink
    want = joint(attention, *VARIANTS[variant])(0.0, states, numbers.params)
    for key, rhs in system.equations.items():
        got, right = value(system, rhs, numbers, states, key_indices(key)), want[base_name(key)]
        np.testing.assert_allclose(got, right, rtol=1e-12, atol=1e-13 * np.abs(right).max())


SAME = [(attention, phi, signal) for attention in ("linear", "exp", "softmax") for phi in PHIS for signal in SIGNALS]
QUICK = [("linear", "relu", "mse"), ("exp", "relu", "ce"), ("softmax", "relu", "fixed")]


@pytest.mark.first(1)
@pytest.mark.parametrize(("attention", "phi", "signal"), slow_but(SAME, QUICK, several=True))
def test_the_flow_is_the_descent_of_the_reference_block(attention, phi, signal):
    """Right-hand sides are minus the gradients of the hand-written training, for two queries, T = .7; rounding."""
    system = joint_system(attention, phi, Invariant("none", Integer(0), "constant"), signal=signal)
    block, batch = block_of(attention, phi, signal), batch_of(1)
    params = start_of(block)
    A, label = np.asarray(block.top), batch["label"][0]
    batch |= {"target": np.eye(len(A))[label][None], "signal": (A[label] - A.mean(axis=0))[None]}
    gradients = block.loss_and_gradients(params, batch)[1]
    given = {"X": batch["x"][0], "pi": batch["pi"][0], "q": batch["query"][0], "y": label, "A": A, "T": block.temperature}
    numbers = bind(system, params=given, sizes={"Mq": MQ})
    states = {name: a[0] for name, a in params.items()}
    for key, rhs in system.equations.items():
        got, name = value(system, rhs, numbers, states, key_indices(key)), base_name(key)
        assert np.abs(got).max() > 1e-3
        np.testing.assert_allclose(got, -gradients[name][0], rtol=0, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("phi", PHI)
def test_slopes_by_hand(phi):
    """phi' of the table against central differences of phi, step 1e-5."""
    f, slope = PHI[phi]
    u = np.linspace(-2, 2, 8)  # without 0, where relu has a kink
    np.testing.assert_allclose((f(u + 1e-5) - f(u - 1e-5)) / 2e-5, slope(u), atol=1e-9)


def test_theorem_1_needs_no_activation():
    """Along a run with phi = square; 100 times rtol."""
    run = odesim.integrate("joma.joint_exp:SQUARE", initial={"V": 0.3, "Xi": 0.1}, span=(0, 5), rtol=1e-9, atol=1e-12, backend="numpy")
    worst = run.invariants["Theorem 1"]
    assert worst is not None and worst < 1e-7


@pytest.mark.slow
def test_relu_starts_off_its_kink():
    """By default a node of relu is active for all samples; the law of Theorem 1 along the whole run, 100 times rtol."""
    run = odesim.integrate("joma.joint_exp:RELU", span=(0, 5), save=2, rtol=1e-9, atol=1e-12, backend="numpy")
    worst = run.invariants["Theorem 1"]
    assert run.status == "ok" and worst is not None and worst < 1e-7
    assert run.observables["loss"][1] < run.observables["loss"][0] - 0.005


def test_no_such_activation():
    with pytest.raises(ModelError, match=r"model joma\.joint_exp has no TANH; its Systems are FIXED, MSE, RELU, SOFTPLUS, SQUARE, SYSTEM"):
        odesim.load_model("joma.joint_exp:TANH")
