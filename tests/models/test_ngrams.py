"""N-grams: the means over chains beside closed forms and beside chains that are drawn."""

import numpy as np
import pytest

from odesim.models.ngrams._chains import chains, least_loss, moments, two_states


def test_means_over_two_states() -> None:
    """Weights sum to 1, E |pi|^2 = 2 (1 - ln 2); all means beside those over 200,000 chains that are drawn."""
    P, weights = two_states()
    found = moments(P, weights, 4)
    assert weights.sum() == pytest.approx(1, abs=1e-14)
    assert found["B"] == pytest.approx(2 * (1 - np.log(2)), abs=1e-14)
    drawn = np.random.default_rng(3).standard_exponential((200_000, 2, 2))
    sample = moments(drawn / drawn.sum(axis=2, keepdims=True), np.full(len(drawn), 1 / len(drawn)), 4)
    for name, value in found.items():
        np.testing.assert_allclose(sample[name], value, atol=0.004, err_msg=name)  # five standard errors of a mean of numbers up to 1


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
