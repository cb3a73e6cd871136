"""The task selection: its steps one token at a time, all that is trained, sequences that are given, what it refuses."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.lab.tasks import load_task
from odesim.lab.training.randomness import INITIAL, generators
from odesim.lab.training.task import check_settings
from odesim.models.margin._svm import cosine, differences, separator

TASK = load_task("selection")
SMALL: dict[str, Any] = {"N": 3, "T": 4, "d": 5, "init_scale": 0.5, "eta": 0.8}


@pytest.mark.parametrize("kind", ["prompt", "weights", "key_query"])
def test_steps_by_hand(kind: str) -> None:
    """Three steps of two seeds, a sequence and a token at a time, gradients by central differences of 1e-5: 1e-8 after them."""
    settings = {**SMALL, "trained": kind}
    made = TASK.make(check_settings("selection", TASK.settings, settings), seeds=(3, 8))
    run = odesim.train("selection", settings=settings, seeds=(3, 8), steps=3)
    start, batch = made.model.initial(generators((3, 8), INITIAL), "float64"), made.stream(0)
    for r in range(2):

        def loss(p: dict[str, Any], r: int = r) -> float:
            total = 0.0
            for i in range(3):
                query = p["p"] if kind == "prompt" else (p["W"] if kind == "weights" else p["K"] @ p["Q"].T) @ batch["z"][r, i]
                a = np.exp([batch["X"][r, i, t] @ query for t in range(4)])
                total += np.log(1 + np.exp(-a[0] / a.sum())) / 3
            return total

        p = {name: value[r] for name, value in start.items()}
        for n in range(3):
            assert run.observables["loss"][r, n] == pytest.approx(loss(p), rel=1e-9)
            slopes = {}
            for name, value in p.items():
                slopes[name] = np.empty_like(value)
                for at in np.ndindex(value.shape):
                    move = np.zeros_like(value)
                    move[at] = 1e-5
                    slopes[name][at] = (loss({**p, name: value + move}) - loss({**p, name: value - move})) / 2e-5
            p = {name: value - 0.8 * slopes[name] for name, value in p.items()}
        for name, value in p.items():
            np.testing.assert_allclose(run.final[name][r], value, atol=1e-8, err_msg=name)


def test_what_is_watched() -> None:
    """Attention sums to 1; the norm of p; K Q^T; K and Q start as the identity, and z is there with matrices alone."""
    run = odesim.train("selection", settings={"N": 3, "T": 4, "d": 5}, seeds=(1, 2), steps=20, save=3)
    np.testing.assert_allclose(run.observables["attention"].sum(axis=-1), 1, rtol=1e-12)
    np.testing.assert_allclose(run.observables["norm"], np.linalg.norm(run.observables["p"], axis=-1), rtol=1e-12)
    assert np.abs(np.diff(run.observables["norm"][:, 1:], axis=0)).min() > 1e-3  # each seed has sequences of its own
    run = odesim.train("selection", settings={"N": 3, "T": 4, "d": 5, "trained": "key_query", "size": 0.3}, steps=20, save=3)
    K, Q = (run.observables[name] for name in "KQ")
    np.testing.assert_array_equal(K[0, 0], 0.3 * np.eye(5))
    np.testing.assert_allclose(run.observables["product"], K @ Q.swapaxes(2, 3), atol=1e-14)


def test_separators() -> None:
    """Of three random problems with one matrix p and W are within a cosine of .95 of the separators after 10^4 steps, and nearing."""
    for kind in ("prompt", "weights"):
        settings = {"N": 3, "T": 3, "d": 6, "trained": kind}
        run = odesim.train("selection", settings=settings, seeds=range(3), steps=10_000, save=3)
        made = TASK.make(check_settings("selection", TASK.settings, settings), seeds=range(3))
        for r in range(3):
            X = made.stream(0)["X"][r]
            D = differences(X, made.stream(0)["z"][r]) if kind == "weights" else (X[:, :1] - X[:, 1:]).reshape(-1, 6)
            best = separator(D.reshape(len(D), -1))
            near = [cosine(row, best) for row in run.observables[kind[0].upper() if kind == "weights" else "p"][r, 1:]]
            assert 0.95 < near[0] < near[1]
