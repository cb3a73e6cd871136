"""Two layers of nodes: the loss as the definition reads, gradients as differences of it, and the System's own right-hand side."""

from typing import Any

import numpy as np
import pytest

from odesim.lab.networks.joma import ACTIVATIONS
from odesim.lab.tasks.hierarchy_layers import NAMES, TwoLayers
from odesim.lab.training.randomness import INITIAL, generators

R, N, K0, K1, K2, C = 2, 4, 5, 3, 2, 3
rng = np.random.default_rng(5)
BATCH: dict[str, Any] = {
    "x": rng.uniform(0, 1, (R, N, K0)),
    "pi": rng.dirichlet(np.ones(N), R),
    "label": rng.integers(C, size=(R, N)),
}
PHI = {"identity": lambda u: u, "relu": lambda u: max(u, 0.0), "softplus": lambda u: np.log1p(np.exp(u)), "square": lambda u: u * u}


def network(phi: str) -> tuple[TwoLayers, dict[str, Any]]:
    """A network and parameters of which none is 0, logits free of weights."""
    model = TwoLayers((K0, K1, K2, C), phi=phi)
    params = model.initial(generators(range(R), INITIAL), "float64")
    return model, {name: a + 0.3 * rng.standard_normal(a.shape) for name, a in params.items()}


@pytest.mark.parametrize("phi", ACTIVATIONS)
def test_loss_is_the_definition(phi: str) -> None:
    """sum_n pi_n (ln sum_c exp(score_c) - score_y), one node at a time; rounding."""
    model, params = network(phi)
    found, g = model.loss_and_gradients(params, BATCH)[0], PHI[phi]
    for r in range(R):
        p, total = {name: a[r] for name, a in params.items()}, 0.0
        for n in range(N):
            x = BATCH["x"][r, n]
            h1 = [g(sum(p["V1"][j] * np.exp(p["Z1"][j]) * x) + p["xi1"][j]) for j in range(K1)]
            h2 = [g(sum(p["V2"][k] * np.exp(p["Z2"][k]) * h1) + p["xi2"][k]) for k in range(K2)]
            score = [sum(p["U"][c] * h2) for c in range(C)]
            total += BATCH["pi"][r, n] * (np.log(np.exp(score).sum()) - score[BATCH["label"][r, n]])
        assert found[r] == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("phi", ACTIVATIONS)
def test_gradients_are_differences(phi: str) -> None:
    """Central differences of step 1e-5 of every parameter: their error 1e-9 and rounding 1e-10; no kink of relu is within the step."""
    model, params = network(phi)
    gradients = model.loss_and_gradients(params, BATCH)[1]
    assert set(gradients) == set(params) == set(NAMES)
    for name, gradient in gradients.items():
        for place in np.ndindex(gradient.shape[1:]):
            here = (slice(None), *place)
            high, low = ({**params, name: params[name].copy()} for _ in range(2))
            high[name][here] += 1e-5
            low[name][here] -= 1e-5
            slope = (model.loss_and_gradients(high, BATCH)[0] - model.loss_and_gradients(low, BATCH)[0]) / 2e-5
            np.testing.assert_allclose(gradient[here], slope, atol=1e-7 * max(1, np.abs(gradient).max()), err_msg=name)
        assert np.abs(gradient).max() > 1e-3, name


def test_logits_start_at_half_the_squares() -> None:
    """Z = V^2 / 2 exactly, xi is 0, weights of order 1 / sqrt(inputs): of 4000 numbers within 4 standard errors."""
    params = TwoLayers((16, 50, 40, 5), scale=0.5, present=4.0).initial(generators((0, 7), INITIAL), "float64")
    for s, inputs in (("1", 4), ("2", 50)):
        np.testing.assert_array_equal(params["Z" + s], params["V" + s] ** 2 / 2)
        assert np.all(params["xi" + s] == 0)
        assert params["V" + s].std() * np.sqrt(inputs) == pytest.approx(0.5, rel=4 / np.sqrt(2 * params["V" + s].size))
