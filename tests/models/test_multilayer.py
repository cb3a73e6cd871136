"""Layers with exp attention: other activations, three of them, logits as states, and the law of one layer in all."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.inputs.bind import bind
from odesim.symbolic.indices import base_name
from odesim.symbolic.parts import key_indices
from tests.models.test_right_sides import ODD, value
from tests.support.truth.blocks import multilayer, multilayer_loss

VARIANTS = {"RELU": ("relu", 2), "SOFTPLUS": ("softplus", 2), "THREE": ("relu", 3)}


def case(variant: str) -> tuple[Any, Any, dict[str, Any]]:
    """(System, its numbers, a state where nothing vanishes)."""
    system = odesim.load_model(f"hierarchy.multilayer:{variant}")
    given = ODD["hierarchy.multilayer"]
    numbers = bind(system, sizes=given["sizes"] | ({"K3": 4} if variant == "THREE" else {}), params=given["params"])
    rng = np.random.default_rng(1)
    return system, numbers, {name: 0.3 + 0.5 * rng.standard_normal(np.shape(v)) for name, v in numbers.initial.items()}


@pytest.mark.first(1)
@pytest.mark.parametrize("variant", VARIANTS)
def test_variants(variant):
    """Rounding only: 1e-13 of the largest component."""
    system, numbers, states = case(variant)
    want = multilayer(*VARIANTS[variant])(0.0, states, numbers.params)
    for key, rhs in system.equations.items():
        got, right = value(system, rhs, numbers, states, key_indices(key)), want[base_name(key)]
        assert np.any(right != 0)
        np.testing.assert_allclose(got, right, rtol=1e-12, atol=1e-13 * np.abs(right).max())


@pytest.mark.first(1)
@pytest.mark.parametrize("variant", VARIANTS)
def test_right_sides_by_differences(variant):
    """The hand-written right-hand sides beside the loss, by central differences in the weights as they act, M = V exp(V^2/2).

    dV/dt = -exp(V^2/2) dloss/dM, of the others -dloss. Step 1e-5: 1e-9 of truncation and rounding; no kink is within it.
    """
    phi, depth = VARIANTS[variant]
    _, numbers, states = case(variant)
    acting = {s: np.exp(states[f"V{s}"] ** 2 / 2) for s in range(1, depth + 1)}
    weights = {name: a for name, a in states.items() if name[0] != "V"} | {f"M{s}": states[f"V{s}"] * a for s, a in acting.items()}
    want = multilayer(phi, depth)(0.0, states, numbers.params)
    for name, a in weights.items():
        slope = np.empty_like(a)
        for place in np.ndindex(a.shape):
            ends = []
            for h in (1e-5, -1e-5):
                moved = {**weights, name: a.copy()}
                moved[name][place] += h
                ends.append(multilayer_loss(moved, numbers.params, phi, depth))
            slope[place] = (ends[0] - ends[1]) / 2e-5
        right = want[f"V{name[1]}"] / acting[int(name[1])] if name[0] == "M" else want[name]
        np.testing.assert_allclose(-slope, right, atol=1e-8, err_msg=name)


@pytest.mark.slow
def test_logits_follow_the_weights():
    """With logits as states from half the squared weights: the same weights, and every law. 1e-8: 100 times rtol, over 5 units of time."""
    how: dict[str, Any] = {"span": (0, 5), "rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}
    joint, reduced = (odesim.integrate(name, **how) for name in ("hierarchy.multilayer:JOINT", "hierarchy.multilayer"))
    for name, want in reduced.final.items():
        np.testing.assert_allclose(joint.final[name], want, rtol=0, atol=1e-8)
    assert all(worst is not None and worst < 1e-8 for worst in (*joint.invariants.values(), *reduced.invariants.values()))
