"""The task simsiam: its views, its steps one pair of views at a time, how it starts, what it refuses."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.lab.tasks import load_task
from odesim.lab.tasks.simsiam import draw_views
from odesim.lab.training.randomness import INITIAL, generators
from odesim.lab.training.task import check_settings

TASK = load_task("simsiam")
SMALL: dict[str, Any] = {"n1": 4, "n2": 3, "batch": 5, "decay": 0.07, "sigma2": 0.3, "init_scale": 0.6}
STEP = 0.05


def test_views() -> None:
    """Variances 1 + sigma2, covariance 1 of the two of an input, 0 of its dimensions: within five standard errors of 20,000."""
    views = draw_views(2, 0.3, "float64", np.random.default_rng(1), 20_000)
    seen = np.cov(np.concatenate([views["one"], views["two"]], axis=1).T)
    exact = np.kron([[1.3, 1], [1, 1.3]], np.eye(2))
    assert np.all(np.abs(seen - exact) < 5 * 1.3 * (2 / 20_000) ** 0.5)


def loss(W: Any, W_p: Any, target: Any, batch: Any, alpha: float) -> float:
    """A pair of views at a time; target (n2, n1) stands still."""
    of_views = [0.5 * np.sum((W_p @ W @ x - target @ other) ** 2) for x, other in zip(batch["one"], batch["two"], strict=True)]
    return float(np.mean(of_views) + 0.035 * np.sum(W**2) + 0.035 / alpha * np.sum(W_p**2))


def slope(f: Any, A: Any) -> Any:
    """Central differences of f at a matrix A."""
    result = np.empty_like(A)
    for at in np.ndindex(A.shape):
        move = np.zeros_like(A)
        move[at] = 1e-5
        result[at] = (f(A + move) - f(A - move)) / 2e-5
    return result


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "average": {"beta": 0.4, "alpha": 1.7},
    "no stop": {"stop": False, "alpha": 0.6},
    "set": {"predictor": "set", "eps": 0.2},
}


@pytest.mark.parametrize("option", OPTIONS)
def test_steps_by_hand(option: str) -> None:
    """Three steps of two seeds, gradients by central differences of 1e-5: 1e-8 after them. A predictor is set from eigenvalues of W W^T."""
    given = OPTIONS[option]
    settings = {**SMALL, **given, "eta": STEP}
    made = TASK.make(check_settings("simsiam", TASK.settings, settings), seeds=(3, 8))
    run = odesim.train("simsiam", settings=settings, seeds=(3, 8), steps=3)
    start = made.model.initial(generators((3, 8), INITIAL), "float64")
    alpha, beta = given.get("alpha", 1.0), given.get("beta", 0.0)
    for r in range(2):
        p = {name: value[r] for name, value in start.items()}
        for i in range(3):
            batch = {name: value[r] for name, value in made.stream(i).items()}
            W, fixed = p["W"], p.get("W_a", p["W"])
            if "W_p" not in p:
                s, U = np.linalg.eigh(W @ W.T)
                W_p = U @ np.diag(np.sqrt(s) + 0.2 * np.sqrt(s.max())) @ U.T
            else:
                W_p = p["W_p"]
            new = {"W": W - STEP * slope(lambda A, W_p=W_p, t=fixed, b=batch: loss(A, W_p, A if option == "no stop" else t, b, alpha), W)}
            if "W_p" in p:
                new["W_p"] = W_p - STEP * alpha * slope(lambda A, W=W, t=fixed, b=batch: loss(W, A, t, b, alpha), W_p)
            if "W_a" in p:
                new["W_a"] = fixed + STEP * beta * (W - fixed)
            off = 0 if "W_p" in p else 0.035 * np.sum(W_p**2)
            assert run.observables["loss"][r, i] == pytest.approx(loss(W, W_p, fixed, batch, alpha) - off, rel=1e-9)
            p = new
        for name, value in p.items():
            if name in run.final:
                np.testing.assert_allclose(run.final[name][r], value, atol=1e-8, err_msg=name)
        assert ("W_p" in run.final) is (option != "set")


def test_modes_at_the_start() -> None:
    """p and s that are given are exact; singular values are the roots of s, the largest first."""
    run = odesim.train("simsiam", settings={"p": [0.1, 0.4, -0.2], "s": [0.2, 0.9, 0.4]}, steps=1)
    np.testing.assert_allclose(run.observables["p"][0, 0], [0.1, 0.4, -0.2], atol=1e-15)
    np.testing.assert_allclose(run.observables["s"][0, 0], [0.2, 0.9, 0.4], atol=1e-15)
    assert run.observables["commutator"][0, 0] == run.observables["asymmetry"][0, 0] == 0
    run = odesim.train("simsiam", settings={"s": [0.2, 0.9, 0.4], "predictor": "set"}, steps=1)
    np.testing.assert_allclose(run.observables["w"][0, 0] ** 2, [0.9, 0.4, 0.2], atol=1e-15)


def test_a_target_that_follows() -> None:
    """tau is 1 at the start and below 1 while modes grow; by a loop over modes."""
    run = odesim.train(
        "simsiam", settings={"p": [0.1, 0.4, 0.2], "s": [0.2, 0.9, 0.4], "beta": 0.4}, steps=100, save=2, observe=["W", "W_a"]
    )
    tau, W, W_a = (run.observables[name][0] for name in ("tau", "W", "W_a"))
    assert np.all(tau[0] == 1) and np.all(tau[1] < 1)
    np.testing.assert_allclose(tau[1], [W_a[1, j] @ W[1, j] / (W[1, j] @ W[1, j]) for j in range(3)], rtol=1e-12)


def test_smaller_steps_and_larger_batches_are_nearer() -> None:
    """A quarter of the rate, four times the batch: noise, of order sqrt(eta / batch), falls by four and steps by as much; to a half."""
    far = []
    for eta, batch in ((0.04, 64), (0.01, 256)):
        found = odesim.compare("self_supervised.byol", task="simsiam", settings={"beta": 0.4, "eta": eta, "batch": batch},
                               seeds=range(4), steps=round(4 / eta), save=2, observables=["W", "W_a", "W_p"])  # fmt: skip
        off = [found.training[name][:, -1] - found.theory[name][:, -1] for name in ("W", "W_a", "W_p")]
        far.append(np.sqrt(sum((x**2).sum() for x in off)))
    assert 2.5 < far[0] / far[1] < 6
