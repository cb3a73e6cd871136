"""The task single_location: its tokens, its start, its steps a token at a time, the mean of its loss."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import erf

import odesim
from odesim.lab.tasks import load_task
from odesim.lab.tasks.single_location import draw_tokens
from odesim.lab.training.randomness import INITIAL, generators
from odesim.lab.training.task import check_settings
from odesim.models.in_context.claims import risk

TASK = load_task("single_location")
SMALL: dict[str, Any] = {"d": 6, "L": 3, "lam": 0.6, "batch": 4, "eta": 0.2, "kappa": 0.3, "nu": -0.4}


def test_tokens() -> None:
    """Means, variances and labels within five standard errors of 20,000."""
    batch = draw_tokens(8, 3, 0.5, 0.1, "float64", np.random.default_rng(2), 20_000)
    X, y = batch["X"], batch["y"]
    mean, variance = np.zeros((3, 8)), np.ones((3, 8))
    mean[0, 0], variance[0] = 2.0, 0.5
    assert np.all(np.abs(X.mean(axis=0) - mean) < 5 / 20_000**0.5)
    assert np.all(np.abs(X.var(axis=0) / variance - 1) < 5 * (2 / 20_000) ** 0.5)
    assert (y - X[:, 0, 1]).std() == pytest.approx(0.1, rel=5 / 40_000**0.5)


def test_the_start() -> None:
    """Overlaps are exact, those across 0, and the rest is another direction of each seed."""
    run = odesim.train("single_location", settings=SMALL, seeds=(3, 8), steps=1)
    np.testing.assert_allclose(run.observables["kappa"][:, 0], 0.3, rtol=1e-14)
    np.testing.assert_allclose(run.observables["nu"][:, 0], -0.4, rtol=1e-14)
    np.testing.assert_allclose(run.observables["across"][:, 0], 0, atol=1e-15)
    start = TASK.make(check_settings("single_location", TASK.settings, SMALL), seeds=(3, 8)).model.initial(
        generators((3, 8), INITIAL), "float64"
    )
    assert all(np.abs(w[0] - w[1]).max() > 0.1 for w in start.values())


def test_steps_by_hand() -> None:
    """Three steps of two seeds, a token at a time, gradients by central differences of 1e-5: 1e-8 after them."""
    made = TASK.make(check_settings("single_location", TASK.settings, SMALL), seeds=(3, 8))
    run = odesim.train("single_location", settings=SMALL, seeds=(3, 8), steps=3)
    start = made.model.initial(generators((3, 8), INITIAL), "float64")
    for r in range(2):
        z = np.concatenate([start["k"][r], start["v"][r]])
        for n in range(3):
            X, y = (made.stream(n)[name][r] for name in "Xy")

            def loss(z: Any, X: Any = X, y: Any = y) -> float:
                k, v = (w / np.sqrt(w @ w) for w in z.reshape(2, 6))
                says = np.zeros(4)
                for i, l in product(range(4), range(3)):
                    says[i] += erf(0.6 * X[i, l] @ k) * (X[i, l] @ v)
                return float(np.mean((says - y) ** 2))

            assert run.observables["loss"][r, n] == pytest.approx(loss(z), rel=1e-9)
            z = z - 0.2 * np.array([(loss(z + 1e-5 * one) - loss(z - 1e-5 * one)) / 2e-5 for one in np.eye(12)])
        k, v = z.reshape(2, 6)
        assert run.final["length"][r] == pytest.approx(np.linalg.norm(k), abs=1e-8) and np.linalg.norm(k) > 1
        k, v = k / np.linalg.norm(k), v / np.linalg.norm(v)
        np.testing.assert_allclose([run.final["kappa"][r], run.final["nu"][r]], [k[0], v[1]], atol=1e-8)
        np.testing.assert_allclose(run.final["across"][r], [k @ v, v[0], k[1]], atol=1e-8)


def test_the_mean_of_the_loss() -> None:
    """Of 8000 inputs, 80 dimensions, at any five overlaps: that of an integral over three normal variables, to four standard errors."""
    made = TASK.make(check_settings("single_location", TASK.settings, {"batch": 400, "noise": 0.0}), seeds=(4,))
    rng = np.random.default_rng(7)
    k, v = (w / np.linalg.norm(w) for w in rng.standard_normal((2, 80)) + 4 * np.array([[1, 1.5], [-1, 2]]) @ np.eye(2, 80))
    params = {"k": 1.3 * k[None], "v": 0.6 * v[None]}
    losses = np.array([made.model.loss_and_gradients(params, made.stream(n))[0][0] for n in range(20)])
    exact = risk(k[0], v[1], k @ v, v[0], k[1])
    assert abs(losses.mean() - exact) < 4 * losses.std(ddof=1) / 20**0.5
