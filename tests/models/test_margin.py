"""Hard-margin separators by two solvers each, and gradient descent itself beside the flow in the time ln(1 + t)."""

from typing import Any

import numpy as np
import pytest
from scipy import optimize

import odesim
from odesim.models.margin._svm import differences, nuclear_norm, nuclear_separator, separator

minimize: Any = optimize.minimize
FINE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12, "backend": "numpy"}
INSTANCES = {(11, 3, 4): (2.1475579405, 2.78114), (5, 2, 3): (0.8970665, 1.1967036)}
"""(seed, sequences, dimensions) -> the least Frobenius norm and the least nuclear norm at margin 1."""


@pytest.mark.first(1)
@pytest.mark.parametrize(("instance", "norms"), INSTANCES.items(), ids=str)
def test_separators(instance: tuple[int, int, int], norms: tuple[float, float]) -> None:
    """All margins are 1 at least; the Frobenius norm is that of SLSQP, and a dual solution bounds the nuclear norm from below.

    Dual: sum alpha over the largest singular value of sum alpha D, for any alpha >= 0; maximised, to 1e-4.
    """
    seed, n, d = instance
    rng = np.random.default_rng(seed)
    D = differences(rng.normal(size=(n, 3, d)), rng.normal(size=(n, d)))
    rows = D.reshape(len(D), -1)
    W = separator(rows)
    assert (rows @ W).min() > 1 - 1e-12 and np.linalg.norm(W) == pytest.approx(norms[0], abs=1e-7)
    start = np.linalg.lstsq(rows, np.full(len(D), 2.0), rcond=None)[0]
    given: dict[str, Any] = {"constraints": {"type": "ineq", "fun": lambda x: rows @ x - 1, "jac": lambda x: rows}, "tol": 1e-14}
    other = minimize(lambda x: float(x @ x), start, jac=lambda x: 2 * x, method="SLSQP", **given)
    np.testing.assert_allclose(W, other.x, atol=1e-7)
    best = nuclear_separator(D)
    assert np.einsum("kab,ab->k", D, best).min() > 1 - 1e-7 and nuclear_norm(best) == pytest.approx(norms[1], abs=6e-6)

    def bound(beta: Any) -> float:
        alpha = beta**2
        return float(alpha.sum() / np.linalg.norm(np.einsum("k,kab->ab", alpha, D), 2))

    given = {"method": "Nelder-Mead", "options": {"maxiter": 5000, "xatol": 1e-9, "fatol": 1e-12}}
    starts = np.random.default_rng(1).uniform(0.2, 1, size=(4, len(D)))
    found = max(bound(minimize(lambda b: -bound(b), start, **given).x) for start in starts)
    assert nuclear_norm(best) * (1 - 1e-3) < found < nuclear_norm(best) * (1 + 1e-7)


def test_gradient_descent_follows_the_flow() -> None:
    """A query p trained with learning rate 1: the distance made in the first steps, .02, stays, while both norms grow as ln t."""
    X = np.random.default_rng(3).normal(size=(4, 5, 20))
    run = odesim.integrate("margin.prompt", params={"X": X}, span=(0, np.log1p(1000)), save=np.log1p([0, 100, 1000]), **FINE)
    p, norms = np.zeros(20), []
    for step in range(1, 1001):
        logits = X @ p
        a = np.exp(logits - logits.max(axis=1, keepdims=True))
        a /= a.sum(axis=1, keepdims=True)
        slope = 1 / (1 + np.exp(a[:, 0]))
        p += np.einsum("i,it,itm->m", slope, a[:, :1] * (np.eye(5)[0] - a), X) / 4
        if step in (100, 1000):
            norms.append(np.linalg.norm(p))
            flow = run.y["p"][len(norms)]
            assert np.linalg.norm(p - flow) == pytest.approx(0.021, abs=0.002)
    assert norms == pytest.approx([2.41956, 3.36649], abs=6e-6)


def test_batches_find_the_hard_part() -> None:
    """Next words drawn in batches of 64, learning rate .05, 20000 steps, t = 1000: hard part to .01, soft part to its noise, .05."""
    y, rng, w = np.array([0, 2 / 3, 1 / 3]), np.random.default_rng(1), np.zeros(3)
    for often in rng.multinomial(64, y, size=20_000) / 64:
        w += 0.05 * (often - np.exp(w) / np.exp(w).sum())
    given: dict[str, Any] = {"params": {"y": y}, "span": (0, np.log1p(1000)), "save": 2}
    flow = odesim.integrate("margin.next_token", **given, **FINE).final["w"]
    assert w[0] == pytest.approx(flow[0], abs=0.01) and w[1] - w[2] == pytest.approx(flow[1] - flow[2], abs=0.05)
