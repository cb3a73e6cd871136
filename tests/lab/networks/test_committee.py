"""The committee: its loss as the definition reads, its gradients as differences of it, its e_g as a mean over fields."""

from math import erf, pi, sqrt
from typing import Any

import numpy as np
import pytest

from odesim.lab.tasks.committee import Committee, generalisation_error, says
from tests.support.descent import loss_differences

R, B, N, K, M = 2, 3, 7, 3, 2
rng = np.random.default_rng(11)
TEACHER = np.stack([np.linalg.qr(rng.standard_normal((N, M)))[0].T * np.sqrt(N) for _ in range(R)])


def student() -> tuple[Committee, dict[str, Any], dict[str, Any]]:
    """A student, its parameters and a batch."""
    model = Committee(TEACHER, np.array([1.0, -0.5]), np.ones(K))
    params = {"W": rng.standard_normal((R, K, N)), "v": rng.standard_normal((R, K))}
    return model, params, {"x": rng.standard_normal((R, B, N)), "y": rng.standard_normal((R, B))}


def test_loss_is_the_definition() -> None:
    """The mean over the batch of half the square of what the student says less y, one number at a time; rounding."""
    model, params, batch = student()
    found = model.loss_and_gradients(params, batch)[0]
    for r in range(R):
        W, v = params["W"][r], params["v"][r]
        outputs = [sum(v[k] * erf(sum(W[k] * x) / sqrt(2 * N)) for k in range(K)) for x in batch["x"][r]]
        assert found[r] == pytest.approx(sum((s - y) ** 2 for s, y in zip(outputs, batch["y"][r], strict=True)) / (2 * B), rel=1e-13)


def test_gradients_are_differences() -> None:
    """Central differences of step 1e-5: their error 1e-10 and rounding 1e-11; no kink of relu is within the step."""
    model, params, batch = student()
    gradients = model.loss_and_gradients(params, batch)[1]
    assert set(gradients) == set(params)
    for name, gradient in gradients.items():
        differences = loss_differences(model, params, batch, name)
        np.testing.assert_allclose(gradient, differences, atol=1e-8)
        assert np.abs(gradient).max() > 0.01


@pytest.mark.first(1)
def test_generalisation_error_is_a_mean() -> None:
    """Of what student and teacher say of 4 10^5 drawn inputs: within 4 standard errors, which are 1 % and less."""
    model, params, _ = student()
    x = rng.standard_normal((400_000, N))
    for r, e_g in enumerate(model.error(params)):
        both = (params["W"][r], params["v"][r]), (TEACHER[r], model.A)
        outputs = [says(x @ w.T / sqrt(N)) @ weights for w, weights in both]
        half_squares = (outputs[0] - outputs[1]) ** 2 / 2
        error = half_squares.std() / sqrt(len(x))
        assert error < 0.01 * e_g and e_g == pytest.approx(half_squares.mean(), abs=4 * error)


def test_means_of_two_fields() -> None:
    """E g(a) g(b) of fields of any variances and covariance, by Gauss's rule for one given the other."""
    x, weight = np.polynomial.hermite_e.hermegauss(120)
    for aa, bb, cosine in ((0.3, 2.0, 0.6), (1.5, 0.2, -0.8), (1.0, 4.0, 0.0)):
        a = np.sqrt(aa) * x[:, None]
        b = np.sqrt(bb) * (cosine * x[:, None] + np.sqrt(1 - cosine**2) * x)
        want = weight @ (says(a) * says(b)) @ weight / (2 * np.pi)
        ab = cosine * np.sqrt(aa * bb)
        # half the mean square of g(a) + g(b) less that of g(a) - g(b) is twice the mean of the product
        both, other = (generalisation_error(np.array([[aa, ab], [ab, bb]]), np.array([1.0, sign])) for sign in (1, -1))
        assert (both - other) / 2 == pytest.approx(want, abs=1e-9)


def test_the_teacher_itself_has_no_error() -> None:
    """A student with the teacher's weights: 0 to rounding, also of fields that are 0 or opposite."""
    model = Committee(TEACHER, np.array([1.0, -0.5]), np.ones(M))
    params = {"W": TEACHER.copy(), "v": np.tile(model.A, (R, 1))}
    assert model.error(params) == pytest.approx(0, abs=1e-14)
    assert model.loss_and_gradients(params, {"x": np.zeros((R, B, N)), "y": np.zeros((R, B))})[0] == pytest.approx(0, abs=1e-14)
    overlaps = np.array([[1.0, -1.0, 0], [-1.0, 1.0, 0], [0, 0, 0]])
    assert generalisation_error(overlaps, np.array([1.0, -1.0, 2.0])) == pytest.approx(2 / pi * np.arcsin(0.5) * 2, rel=1e-14)
