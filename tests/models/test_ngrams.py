"""N-grams: the means over chains beside closed forms and beside chains that are drawn."""

from typing import Any

import numpy as np
import pytest

from odesim.inputs.registry import load_model
from odesim.models.ngrams.linear import chains, least_loss, moments, two_states
from odesim.symbolic.indices import base_name
from odesim.symbolic.parts import key_indices
from odesim.targets.numpy_text import evaluate


def test_means_over_two_states() -> None:
    """Weights sum to 1, E |pi|^2 = 2 (1 - ln 2); digits of another program; all means beside those over 200,000 drawn chains."""
    P, weights = two_states()
    found = moments(P, weights, 5)
    np.testing.assert_allclose(found["A"], [0.409137, 0.431980, 0.395787, 0.411670, 0.396295], atol=6e-7)
    assert found["S"] == pytest.approx(0.681726, abs=6e-7)
    found = moments(P, weights, 4)
    assert weights.sum() == pytest.approx(1, abs=1e-14)
    assert found["B"] == pytest.approx(2 * (1 - np.log(2)), abs=1e-14)
    drawn = np.random.default_rng(3).standard_exponential((200_000, 2, 2))
    sample = moments(drawn / drawn.sum(axis=2, keepdims=True), np.full(len(drawn), 1 / len(drawn)), 4)
    for name, value in found.items():
        np.testing.assert_allclose(sample[name], value, atol=0.004, err_msg=name)  # five standard errors of a mean of numbers up to 1


def test_the_flow_is_that_of_whole_matrices() -> None:
    """Three chains of three states, token by token: the gradients by W and v, and of W the mean over all namings of the states."""
    k, L, rng = 3, 4, np.random.default_rng(5)
    CHAINS, weights = rng.dirichlet(np.ones(k), size=(3, k)), np.array([0.5, 0.3, 0.2])
    states: dict[str, Any] = {"w_d": 0.7, "w_o": -0.4, "v": rng.normal(size=L)}
    W, v = states["w_o"] + (states["w_d"] - states["w_o"]) * np.eye(k), states["v"]
    dW, dv = np.zeros((k, k)), np.zeros(L)
    for P, weight in zip(CHAINS, weights, strict=True):
        pi = np.linalg.matrix_power(P, 200)[0]
        for s, after in np.ndindex(k, k):
            seen = np.array([[pi[r] * np.linalg.matrix_power(P, lag)[r, after] for r in range(k)] for lag in range(L)])  # from token r
            lack = P[s, after] - v @ seen @ W[s]
            dW[s] += weight * pi[s] * lack * v @ seen
            dv += weight * pi[s] * lack * seen @ W[s]
    want = {"w_d": np.trace(dW) / k, "w_o": (dW.sum() - np.trace(dW)) / (k * (k - 1)), "v": dv}
    system, values = load_model("ngrams.linear"), {"k": k, **moments(CHAINS, weights, L), **states}
    for key, slope in system.equations.items():
        got = evaluate(slope, key_indices(key), system.axes, {"L": L}, {name: np.asarray(a, float) for name, a in values.items()})
        np.testing.assert_allclose(got, want[base_name(key)], rtol=1e-11)


def test_least_loss() -> None:
    """No weights of a prediction a pi sum v P^l + b V pi have less; some at random are within what the quadratic form says."""
    P, weights = chains(3)
    P, weights = P[:300], np.full(300, 1 / 300)
    found, rng = moments(P, weights, 3), np.random.default_rng(0)
    pi = np.linalg.solve((np.eye(3) - P + 1).swapaxes(1, 2), np.ones((300, 3, 1)))[..., 0]
    parts = [pi[:, :, None] * np.linalg.matrix_power(P, lag) for lag in range(3)] + [np.broadcast_to(pi[:, None], P.shape)]
    root = np.sqrt(pi[:, :, None] / 300)
    columns = np.array([(root * part).ravel() for part in parts]).T
    x, *_ = np.linalg.lstsq(columns, (root * P).ravel(), rcond=None)
    assert least_loss(found) == pytest.approx(((columns @ x - (root * P).ravel()) ** 2).sum() / 2, rel=1e-11)
    assert all(((columns @ rng.normal(size=4) - (root * P).ravel()) ** 2).sum() / 2 > least_loss(found) for _ in range(5))
