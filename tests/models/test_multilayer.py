"""Two layers with exp attention: another activation, logits as states, and the law of one layer in both."""

from typing import Any

import numpy as np

import odesim
from odesim.inputs.bind import bind
from odesim.symbolic.expr import base_name
from odesim.symbolic.parts import key_indices
from tests.models.test_right_sides import ODD, value
from tests.support.truth.blocks import multilayer


def test_softplus():
    """Rounding only: 1e-13 of the largest component."""
    system = odesim.load_model("hierarchy.multilayer:SOFTPLUS")
    numbers, rng = bind(system, **ODD["hierarchy.multilayer"]), np.random.default_rng(1)
    states: dict[str, Any] = {name: 0.3 + 0.5 * rng.standard_normal(np.shape(v)) for name, v in numbers.initial.items()}
    want = multilayer("softplus")(0.0, states, numbers.params)
    for key, rhs in system.equations.items():
        got, right = value(system, rhs, numbers, states, key_indices(key)), want[base_name(key)]
        np.testing.assert_allclose(got, right, rtol=1e-12, atol=1e-13 * np.abs(right).max())


def test_logits_follow_the_weights():
    """With logits as states from half the squared weights: the same weights, and every law. 1e-8: 100 times rtol, over 5 units of time."""
    how: dict[str, Any] = {"span": (0, 5), "rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}
    joint, reduced = (odesim.integrate(name, **how) for name in ("hierarchy.multilayer:JOINT", "hierarchy.multilayer"))
    for name, want in reduced.final.items():
        np.testing.assert_allclose(joint.final[name], want, rtol=0, atol=1e-8)
    assert all(worst is not None and worst < 1e-8 for worst in (*joint.invariants.values(), *reduced.invariants.values()))
