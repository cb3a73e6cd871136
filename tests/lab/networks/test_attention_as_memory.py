"""The transformer's own layer of attention beside an associative memory that stores the keys."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.lab.networks.layers import attention, key_bias, linear

B, T, H, E = 2, 5, 3, 4
D = H * E


@pytest.mark.parametrize("causal", [False, True])
def test_a_head_is_one_update_of_a_memory(causal):
    """Queries are states, the keys that a query sees are patterns, beta = 1 / sqrt(e), values are keys times a matrix: rounding, 1e-13."""
    rng = np.random.default_rng(0)
    x, w_q, w_k, w_v = (rng.standard_normal(shape) for shape in ((1, B * T, D), (1, D, D), (1, D, D), (H, E, E)))
    q, k = linear(x, w_q), linear(x, w_k)
    v = np.concatenate([k[:, :, h * E : (h + 1) * E] @ w_v[h] for h in range(H)], axis=2)
    out, weights = attention(q, k, v, B=B, H=H, bias=key_bias(T, q, causal=causal, log_weight=None))
    for b, h, t in np.ndindex(B, H, T):
        part = slice(h * E, (h + 1) * E)
        seen = k[0, b * T : b * T + (t + 1 if causal else T), part]
        given: dict[str, Any] = {"params": {"X": seen.T, "beta": E**-0.5}, "initial": {"xi": q[0, b * T + t, part]}, "backend": "numpy"}
        run = odesim.integrate("hopfield.update", **given, steps=1, save=[0, 1])
        np.testing.assert_allclose(out[0, b * T + t, part], run.y["xi"][1] @ w_v[h], atol=1e-13)
        np.testing.assert_allclose(weights[0, b, h, t, : len(seen)], run.observables["p"][0], atol=1e-14)
        step = odesim.integrate("hopfield.modern", **given, method="euler", step=1.0, span=(0, 1), save=2)
        np.testing.assert_allclose(step.y["xi"][1], run.y["xi"][1], atol=1e-13)
