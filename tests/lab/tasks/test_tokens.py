"""The task tokens: its blocks token by token, moments of directions, the flow of small blocks, what it refuses."""

from typing import Any

import numpy as np
import pytest
from scipy.special import eval_chebyt, eval_legendre

import odesim
from odesim.base.errors import ParamError
from odesim.lab.tasks import load_task
from odesim.lab.training.task import check_settings

TASK = load_task("tokens")
KINDS: dict[str, dict[str, Any]] = {
    "softmax": {"attention": "softmax", "kappa": 0.3},
    "unnormalised": {"attention": "unnormalised", "K": 1.7, "kappa": 0.3},
    "no noise": {"attention": "unnormalised", "K": 0.6},
}


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_by_hand(kind: str) -> None:
    """Three blocks of two seeds, a token at a time, with the noise of the stream: rounding 1e-12."""
    settings = {"n": 4, "d": 3, "beta": 1.3, "h": 0.1, "modes": 3, **KINDS[kind]}
    made = TASK.make(check_settings("tokens", TASK.settings, settings), seeds=(3, 8))
    run = odesim.train("tokens", settings=settings, seeds=(3, 8), steps=3, observe=("x",))
    for r in range(2):
        x = run.observables["x"][r, 0]
        assert np.linalg.norm(x, axis=1) == pytest.approx(1, rel=1e-14)
        for block in range(3):
            moved = np.empty_like(x)
            for i in range(4):
                weight = np.array([np.exp(1.3 * x[i] @ other) for other in x])
                weight = weight / weight.sum() if kind == "softmax" else settings["K"] * weight / 4
                moved[i] = x[i] + 0.1 * weight @ x
                if settings.get("kappa"):
                    moved[i] += made.stream(block)["noise"][r, i]
                moved[i] /= np.linalg.norm(moved[i])
            x = moved
            np.testing.assert_allclose(run.observables["x"][r, block + 1], x, rtol=1e-12, atol=1e-14)


def test_noise_of_a_block() -> None:
    """Variance 2 kappa h, within four standard errors; another for another block."""
    made = TASK.make(check_settings("tokens", TASK.settings, {"n": 50_000, "kappa": 0.3, "h": 0.2}), seeds=(1,))
    noise = made.stream(0)["noise"]
    assert abs(noise.var() / 0.12 - 1) < 4 * (2 / 1e5) ** 0.5 and not np.array_equal(noise, made.stream(1)["noise"])


@pytest.mark.parametrize(("d", "polynomial"), [(2, eval_chebyt), (3, eval_legendre)])
def test_moments(d: int, polynomial: Any) -> None:
    """Means of Chebyshev's and Legendre's polynomials of the cosine to the mean: 1e-12; r is the length of the mean."""
    run = odesim.train("tokens", settings={"n": 7, "d": d, "modes": 6}, seeds=(2, 5), steps=2, observe=("x", "a", "r"))
    for r, t in np.ndindex(2, 3):
        x = run.observables["x"][r, t]
        mean = x.mean(axis=0)
        length = np.linalg.norm(mean)
        assert run.observables["r"][r, t] == pytest.approx(length, rel=1e-12)
        want = [polynomial(k, x @ mean / length).mean() for k in range(6)]
        np.testing.assert_allclose(run.observables["a"][r, t], want, rtol=1e-12, atol=1e-13)


def test_small_blocks_are_the_flow() -> None:
    """Half of the depth of a block, half of the distance from particles.sphere at t = 2: within a fifth."""
    off = []
    for h in (0.02, 0.01):
        found = odesim.compare("particles.sphere", task="tokens", settings={"d": 3, "n": 6, "h": h}, steps=round(2 / h), observables=["x"])
        off.append(float(np.abs(found.theory["x"] - found.training["x"]).max()))
    assert off[0] / off[1] == pytest.approx(2, rel=0.2)


def test_strength_of_softmax() -> None:
    """K is none of softmax."""
    with pytest.raises(ParamError, match="K is 2, and softmax has the strength 1"):
        odesim.train("tokens", settings={"K": 2.0}, steps=1)


def test_a_step_is_a_block() -> None:
    """The rate of x is the depth of a block, however it is set: the same run; another optimizer would leave the sphere."""
    runs = [odesim.train("tokens", steps=3, observe=("x",), **by) for by in ({"rates": {"x": 0.5}}, {"settings": {"h": 0.5}})]  # type: ignore[arg-type]
    np.testing.assert_array_equal(runs[0].observables["x"], runs[1].observables["x"])
    with pytest.raises(ParamError, match="no optimizer 'adam' in tokens; choose from sgd"):
        odesim.train("tokens", optimizer="adam", steps=1)
