"""The parametric gradient of GaLore: whose gradient it is, and what is read off it."""

import numpy as np
import pytest

from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model
from odesim.models.galore.parametric_gradient import numerical_rank, stable_rank
from odesim.symbolic import gradient_flow
from tests.models.test_right_sides import odd_case, value


def test_the_gradient_is_that_of_the_loss():
    """The right-hand side is - dloss/dW where B and C are symmetric, as the constraints ask. Rounding of sums of 24 terms."""
    system, numbers, states = odd_case("galore.parametric_gradient")
    (key,) = system.equations
    (flow,) = gradient_flow(system.observables["loss"], {key: 1}).values()
    want = value(system, flow, numbers, states, key.indices)
    np.testing.assert_allclose(value(system, system.equations[key], numbers, states, key.indices), want, rtol=1e-12, atol=1e-13)


def test_default_matrices_are_positive_semidefinite():
    """B and C: the smallest eigenvalues are above rounding of a largest one of order 1."""
    params = bind(load_model("galore.parametric_gradient")).params
    assert all(np.linalg.eigvalsh(params[name]).min() > -1e-14 for name in "BC")


def test_ranks():
    """diag(4, 2, 0): stable rank 1 + 1/4, two singular values above a thousandth; the scale does not enter, 0 has no rank."""
    for scale in (1.0, 1e-170, 1e170):
        assert stable_rank(scale * np.diag([4.0, 2.0, 0.0])) == pytest.approx(1.25, rel=1e-15)
        assert numerical_rank(scale * np.diag([4.0, 2.0, 0.0])) == 2
    assert stable_rank(np.zeros((2, 3))) == numerical_rank(np.zeros((2, 3))) == 0
