"""The task modular: its pairs, its steps pair by pair, waves of its weights, what is held out, what it refuses."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.lab.tasks import load_task
from odesim.lab.tasks.modular import pairs_of
from odesim.lab.training.randomness import INITIAL, generators
from odesim.lab.training.task import check_settings
from odesim.models.modular.phases import blow_up

TASK = load_task("modular")
SMALL: dict[str, Any] = {"p": 5, "N": 3, "init_scale": 0.5, "eta": 0.3}


def made(**settings: Any) -> Any:
    """The experiment of two seeds with these settings."""
    return TASK.make(check_settings("modular", TASK.settings, {**SMALL, **settings}), seeds=(3, 8))


def test_pairs() -> None:
    """All pairs of 5: each as often as each number is a term, and its sum."""
    batch = pairs_of(5, np.arange(25)[None])
    for x in range(5):
        for y in range(5):
            at = 5 * x + y
            assert batch["terms"][0, at].tolist() == [(x == j) + (y == j) for j in range(5)]
            assert batch["sums"][0, at].argmax() == (x + y) % 5 and batch["sums"][0, at].sum() == 1


@pytest.mark.parametrize("activation", ["square", "relu"])
@pytest.mark.parametrize("share", [1.0, 0.6])
def test_steps_by_hand(activation: str, share: float) -> None:
    """Three steps of two seeds, a pair and a neuron at a time, gradients by central differences of 1e-5: 1e-9."""
    settings = {**SMALL, "activation": activation, "share": share, "weight_decay": 0.01}
    experiment = made(activation=activation, share=share)
    run = odesim.train("modular", settings=settings, seeds=(3, 8), steps=3)
    start, batch = experiment.model.initial(generators((3, 8), INITIAL), "float64"), experiment.stream(0)
    for r in range(2):
        pairs = [np.repeat(np.arange(5), terms.astype(int)) for terms in batch["terms"][r]]

        def loss(w: Any, pairs: Any = pairs) -> float:
            theta, xi = w.reshape(2, 3, 5)
            total = 0.0
            for x, y in pairs:
                f = np.zeros(5)
                for n in range(3):
                    read = theta[n, x] + theta[n, y]
                    f += (read**2 if activation == "square" else max(read, 0.0)) * xi[n]
                total += np.log(np.exp(f).sum()) - f[(x + y) % 5]
            return total / len(pairs)

        w = np.concatenate([start["theta"][r].ravel(), start["xi"][r].ravel()])
        for _ in range(3):
            slope = np.array([(loss(w + 1e-5 * e) - loss(w - 1e-5 * e)) / 2e-5 for e in np.eye(30)])
            w = w - 0.3 * (slope + 0.01 * w)
        np.testing.assert_allclose(np.concatenate([run.final["theta"][r].ravel(), run.final["xi"][r].ravel()]), w, atol=1e-8)


def test_waves_make_the_weights() -> None:
    """Amplitudes and phases give theta, but for its mean, and xi, which has none."""
    experiment = made()
    params = experiment.model.initial(generators((3, 8), INITIAL), "float64")
    seen = {o.name: o.function(params) for o in experiment.model.observables}
    psi = seen["D"] + 2 * seen["phi"]
    angles = 2 * np.pi / 5 * np.arange(1, 3)[:, None] * np.arange(5)
    theta = (seen["alpha"][..., None] * np.cos(angles + seen["phi"][..., None])).sum(axis=2)
    xi = (seen["beta"][..., None] * np.cos(angles + psi[..., None])).sum(axis=2)
    np.testing.assert_allclose(theta, params["theta"] - params["theta"].mean(axis=2, keepdims=True), atol=1e-14)
    np.testing.assert_allclose(xi, params["xi"], atol=1e-14)
    assert np.abs(seen["D"]).max() <= np.pi


def test_smaller_steps_are_nearer_to_the_flow() -> None:
    """Half of the learning rate, half of the distance, where logits are below .002: first order, to a tenth."""
    far = []
    for eta in (4.0, 2.0):
        found = odesim.compare("modular.phases", task="modular", settings={"eta": eta}, steps=int(400 / eta), save=2)
        far.append(np.abs(found.training["alpha"][0, -1] - found.theory["alpha"][0, -1]).max())
    assert far[0] / far[1] == pytest.approx(2, rel=0.1)


def test_the_frequency_with_the_least_time_wins() -> None:
    """Eight neurons, to step 1500: the first of them have one frequency, which the times of the start name."""
    run = odesim.train("modular", steps=1500, save=2, observe=["alpha", "beta", "D"])
    start = [run.observables[name][0, 0] for name in ("alpha", "beta", "D")]
    least = [[blow_up(*(float(a[n, k]) for a in start), 23) for k in range(11)] for n in range(8)]
    alpha = run.observables["alpha"][0, -1]
    done = alpha.max(axis=1) > 0.3
    assert done.sum() >= 3 and np.array_equal(alpha.argmax(axis=1)[done], np.argmin(least, axis=1)[done])


def test_pairs_that_are_left_out() -> None:
    """A training on 60 % of the pairs: the others are the rest, of another sample for each seed, and are judged."""
    experiment = made(share=0.6)
    batch, held = experiment.stream(0), experiment.model.held
    for r in range(2):
        rows = np.concatenate([batch["terms"][r], held["terms"][r]])
        assert len(rows) == 25 and sorted(map(tuple, rows)) == sorted(map(tuple, pairs_of(5, np.arange(25)[None])["terms"][0]))
    assert not np.array_equal(held["sums"][0], held["sums"][1])
    run = odesim.train("modular", settings={"share": 0.9, "optimizer": "adam", "eta": 0.01, "N": 64}, steps=600, save=2)
    assert run.observables["loss_held"][0, 0] == pytest.approx(np.log(23), abs=1e-3)
    assert run.observables["right_held"][0, -1] > 0.95
