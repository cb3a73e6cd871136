"""The task next_token: its labels, its steps one label at a time, what it refuses."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.lab.tasks import load_task
from odesim.lab.training.task import check_settings

TASK = load_task("next_token")


def test_labels() -> None:
    """Shares of whole labels of a batch, other ones in each step; frequencies within four standard errors of 64,000."""
    stream = TASK.make(check_settings("next_token", TASK.settings, {"y": [0.1, 0.6, 0.3]}), seeds=(5,)).stream
    often = np.stack([stream(n)["often"][0] for n in range(1000)])
    np.testing.assert_allclose(often * 64, np.round(often * 64), atol=1e-12)
    assert np.all(np.abs(often.mean(axis=0) - [0.1, 0.6, 0.3]) < 4 * 0.5 / 64_000**0.5) and len(np.unique(often, axis=0)) > 100


def test_steps_by_hand() -> None:
    """Three steps of two seeds, a label at a time, gradients by central differences of 1e-5: 1e-8 after them."""
    m, settings = np.array([2.0, 1.0, 0.5, 1.0]), {"K": 4, "m": [2.0, 1.0, 0.5, 1.0], "batch": 6, "eta": 0.3}
    made = TASK.make(check_settings("next_token", TASK.settings, settings), seeds=(3, 8))
    run = odesim.train("next_token", settings=settings, seeds=(3, 8), steps=3)
    for r in range(2):
        w = np.zeros(4)
        for n in range(3):
            labels = np.repeat(np.arange(4), np.round(6 * made.stream(n)["often"][r]).astype(int))

            def loss(w: Any, labels: Any = labels) -> float:
                p = m * np.exp(w) / (m * np.exp(w)).sum()
                return -sum(float(np.log(p[label])) for label in labels) / 6

            assert run.observables["loss"][r, n] == pytest.approx(loss(w), rel=1e-9)
            w = w - 0.3 * np.array([(loss(w + 1e-5 * e) - loss(w - 1e-5 * e)) / 2e-5 for e in np.eye(4)])
        np.testing.assert_allclose(run.final["w"][r], w, atol=1e-8)
        p = m * np.exp(w) / (m * np.exp(w)).sum()
        np.testing.assert_allclose(run.final["probability"][r], p, atol=1e-8)
        assert run.final["loss_population"][r] == pytest.approx(-(np.array([0, 2, 1, 1]) / 4) @ np.log(p), abs=1e-8)
