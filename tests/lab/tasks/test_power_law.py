"""The task power_law: its samples, its steps by hand, the exact moments of SGD over seeds, and the flow in the mean."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.base.errors import ParamError
from odesim.lab.tasks import load_task
from odesim.lab.training.task import check_settings

TASK = load_task("power_law")


def test_samples() -> None:
    """Variances j^(-2a), labels of the target j^(-b) with noise of variance s2: within four standard errors of 4,000 samples."""
    values = check_settings("power_law", TASK.settings, {"n": 3, "a": 0.7, "b": 0.4, "s2": 0.3, "batch": 4000})
    batch = TASK.make(values, seeds=(5,)).stream(0)
    x, y = batch["x"][0], batch["y"][0]
    j = np.arange(1.0, 4)
    assert np.all(np.abs((x**2).mean(axis=0) * j**1.4 - 1) < 4 * (2 / 4000) ** 0.5)
    noise = y - x @ j**-0.4
    assert abs((noise**2).mean() / 0.3 - 1) < 4 * (2 / 4000) ** 0.5
    assert np.all(np.abs(x.T @ noise / 4000) < 4 * (0.3 / 4000) ** 0.5)


def test_steps_by_hand() -> None:
    """Three steps of two seeds, a sample at a time; D, R and the loss."""
    settings: dict[str, Any] = {"n": 4, "batch": 3, "eta": 0.2}
    made = TASK.make(check_settings("power_law", TASK.settings, settings), seeds=(3, 8))
    run = odesim.train("power_law", settings=settings, seeds=(3, 8), steps=3)
    j = np.arange(1.0, 5)
    for r in range(2):
        w = np.zeros(4)
        for n in range(3):
            batch = made.stream(n)
            step, loss = np.zeros(4), 0.0
            for x, y in zip(batch["x"][r], batch["y"][r], strict=True):
                step += 0.2 / 3 * (y - w @ x) * x
                loss += (y - w @ x) ** 2 / 6
            assert run.observables["loss"][r, n] == pytest.approx(loss, rel=1e-12)
            w += step
        D = (w - j**-0.8) ** 2
        np.testing.assert_allclose(run.final["D"][r], D, rtol=1e-12)
        assert run.final["R"][r] == pytest.approx((D @ j**-2.0 + 0.01) / 2, rel=1e-12)


@pytest.mark.parametrize("batch", [1, 4])
def test_moments_over_seeds(batch: int) -> None:
    """D in the mean over 600 seeds is that of scaling.sgd_steps: four standard errors."""
    run = odesim.train("power_law", settings={"n": 3, "batch": batch, "s2": 0.2}, seeds=range(600), steps=30, save=2)
    exact = odesim.integrate("scaling.sgd_steps", params={"B": batch, "s2": 0.2}, sizes={"n": 3}, steps=30, save=2, backend="numpy")
    D = run.final["D"]
    assert np.all(np.abs(D.mean(axis=0) - exact.final["D"]) < 4 * D.std(axis=0) / 600**0.5)


def test_the_flow_describes_it_in_the_mean() -> None:
    """Sixteen samples a step, a rate of .02: 40 seeds in the mean within a twentieth of the risk, as the flow has it."""
    found = odesim.compare(
        "scaling.sgd", task="power_law", settings={"n": 30, "batch": 16, "eta": 0.02}, seeds=range(40), steps=200, save=5
    )
    np.testing.assert_allclose(found.training["R"].mean(axis=0), found.theory["R"][0], rtol=0.05)


def test_momentum_is_not_described() -> None:
    """The theory is of plain SGD."""
    values = check_settings("power_law", TASK.settings, {"momentum": 0.5})
    assert not TASK.make(values, seeds=(0,)).theory


def test_variances_and_coefficients_of_your_own() -> None:
    """They replace the power laws; no law of powers describes them, a diffusion does; other lengths are refused."""
    given = {"lam": [2.0, 0.5], "target": [1.0, -1.0], "s2": 0.3, "batch": 4000}
    made = TASK.make(check_settings("power_law", TASK.settings, given), seeds=(5,))
    batch = made.stream(0)
    x, y = batch["x"][0], batch["y"][0]
    assert np.all(np.abs((x**2).mean(axis=0) / [2, 0.5] - 1) < 4 * (2 / 4000) ** 0.5)
    assert abs(((y - x @ [1, -1]) ** 2).mean() / 0.3 - 1) < 4 * (2 / 4000) ** 0.5
    assert [*made.theory] == ["noise.sgd_least_squares"] and np.array_equal(made.theory["noise.sgd_least_squares"]["lam"], [2, 0.5])
    with pytest.raises(ParamError, match=r"target has the shape \(5,\) with 5 inputs, not \(3,\)"):
        odesim.train("power_law", settings={"lam": [1.0] * 5, "target": [1.0] * 3}, steps=1)
