"""The task in_context: its prompts, its steps one prompt and head at a time, what the loss is in the mean, what it refuses."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.lab.tasks import load_task
from odesim.lab.tasks.in_context import draw_prompts
from odesim.lab.training.randomness import INITIAL, generators
from odesim.lab.training.task import check_settings

TASK = load_task("in_context")
SMALL: dict[str, Any] = {"D": 3, "N": 4, "H": 2, "batch": 5, "init_scale": 0.7}


def test_prompts() -> None:
    """Labels are of a task of each prompt; variances of inputs within four standard errors."""
    lam = np.array([2.0, 0.5])
    batch = draw_prompts(lam, 3, "float64", np.random.default_rng(1), 4000)
    w = np.linalg.solve(batch["x"][:, :2], batch["y"][:, :2, None])[..., 0]
    np.testing.assert_allclose((batch["x"][:, 2] * w).sum(axis=1), batch["y"][:, 2], atol=1e-7)  # a few are nearly singular
    np.testing.assert_allclose((batch["query"] * w).sum(axis=1), batch["target"], atol=1e-7)
    for inputs, count in ((batch["query"], 4000), (batch["x"].reshape(-1, 2), 12_000)):
        assert np.all(np.abs((inputs**2).mean(axis=0) / lam - 1) < 4 * (2 / count) ** 0.5)


@pytest.mark.parametrize("weights", ["separate", "merged"])
def test_steps_by_hand(weights: str) -> None:
    """Three steps of two seeds, a prompt, a head and a pair at a time, gradients by central differences of 1e-5: 1e-9."""
    settings = {**SMALL, "weights": weights}
    made = TASK.make(check_settings("in_context", TASK.settings, settings), seeds=(3, 8))
    run = odesim.train("in_context", settings=settings, seeds=(3, 8), steps=3)
    start = made.model.initial(generators((3, 8), INITIAL), "float64")
    for r in range(2):
        p = {name: value[r] for name, value in start.items()}
        for i in range(3):
            batch = {name: value[r] for name, value in made.stream(i).items()}

            def loss(p: dict[str, Any], batch: dict[str, Any] = batch) -> float:
                total = 0.0
                for x, y, query, target in zip(*(batch[name] for name in ("x", "y", "query", "target")), strict=True):
                    says = 0.0
                    for h in range(2):
                        for n in range(4):
                            score = x[n] @ p["U"][h] @ query if weights == "merged" else (p["k"][h] @ x[n]) * (p["q"][h] @ query)
                            says += p["v"][h] * y[n] * score / 4
                    total += (says - target) ** 2 / 5
                return total

            slopes = {}
            for name, value in p.items():
                slopes[name] = np.empty_like(value)
                for at in np.ndindex(value.shape):
                    moved = [
                        {
                            **p,
                            name: value
                            + sign * 1e-5 * (np.arange(value.size).reshape(value.shape) == np.ravel_multi_index(at, value.shape)),
                        }
                        for sign in (1, -1)
                    ]
                    slopes[name][at] = (loss(moved[0]) - loss(moved[1])) / 2e-5
            p = {name: value - 0.05 * slopes[name] for name, value in p.items()}
        for name, value in p.items():
            np.testing.assert_allclose(run.final[name][r], value, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("weights", ["separate", "merged"])
def test_the_mean_of_losses_and_gradients(weights: str) -> None:
    """Of 50,000 prompts: within four standard errors of the loss in the mean, whose gradient is that of the System."""
    settings = {**SMALL, "weights": weights, "batch": 50_000}
    made = TASK.make(check_settings("in_context", TASK.settings, settings), seeds=(4,))
    params, network = made.model.initial(generators((4,), INITIAL), "float64"), made.model
    losses = [network.loss_and_gradients(params, {n: a[:, part::20] for n, a in made.stream(0).items()}) for part in range(20)]
    exact = {o.name: o.function for o in network.observables}["loss_population"](params)[0]
    values = np.array([loss[0] for loss, _ in losses])
    assert abs(values.mean() - exact) < 4 * values.std(ddof=1) / 20**0.5
    run = odesim.integrate(
        f"in_context.{weights}", params={"lam": made.exact["lam"], "N": 4}, initial={n: a[0] for n, a in params.items()}, span=(0, 1e-6),
        save=2, backend="numpy",
    )  # fmt: skip
    for name in params:
        slopes = np.array([gradient[name][0] for _, gradient in losses])
        flow = (run.y[name][-1] - run.y[name][0]) / 1e-6
        assert np.all(np.abs(slopes.mean(axis=0) + flow) < 5 * slopes.std(axis=0, ddof=1) / 20**0.5 + 1e-5)
