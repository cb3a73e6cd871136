"""The task binary_chain: its pairs, its steps pair by pair, the loss of the whole chain."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import odesim
from odesim.base.errors import ParamError
from odesim.lab.tasks import load_task
from odesim.lab.training.task import check_settings

TASK = load_task("binary_chain")
SMALL: dict[str, Any] = {"p": 0.3, "q": 0.6, "e": 0.7, "w": -0.4, "b": 0.2, "batch": 7, "eta": 0.3}


def logit(z: Any, x: float) -> float:
    """Of a 1 after x, for z = e, w, b."""
    e, w, b = z
    return float(e**2 * (1 + 2 * w * abs(w)) * x + b - e**2 / 2)


def test_pairs() -> None:
    """Frequencies of the stationary chain, of a token and of the next, within four standard errors of 20,000; new ones in each step."""
    made = TASK.make(check_settings("binary_chain", TASK.settings, {**SMALL, "batch": 20_000}), seeds=(5,))
    x, y = (made.stream(3)[name][0] for name in "xy")
    for share, want in ((x.mean(), 1 / 3), (y.mean(), 1 / 3), (y[x == 0].mean(), 0.3), (1 - y[x == 1].mean(), 0.6)):
        assert abs(share - want) < 4 * 0.5 / 6000**0.5
    assert set(np.unique([x, y])) == {0.0, 1.0} and not np.array_equal(x, made.stream(4)["x"][0])


@pytest.mark.parametrize("w", [-0.4, 0.4])
def test_steps_by_hand(w: float) -> None:
    """Three steps of two seeds, a pair at a time, gradients by central differences of 1e-5: 1e-8 after them."""
    settings = {**SMALL, "w": w}
    made = TASK.make(check_settings("binary_chain", TASK.settings, settings), seeds=(3, 8))
    run = odesim.train("binary_chain", settings=settings, seeds=(3, 8), steps=3)
    for r in range(2):
        z = np.array([0.7, w, 0.2])
        for n in range(3):
            pairs = [*zip(*(made.stream(n)[name][r] for name in "xy"), strict=True)]

            def loss(z: Any, pairs: Any = pairs) -> float:
                return float(np.mean([np.log1p(np.exp(logit(z, x))) - y * logit(z, x) for x, y in pairs]))

            assert run.observables["loss"][r, n] == pytest.approx(loss(z), rel=1e-9)
            z = z - 0.3 * np.array([(loss(z + 1e-5 * one) - loss(z - 1e-5 * one)) / 2e-5 for one in np.eye(3)])
        np.testing.assert_allclose([run.final[name][r] for name in "ewb"], z, atol=1e-8)
        assert run.final["s"][r] == pytest.approx(logit(z, 1) - logit(z, 0), abs=1e-7)


def test_the_loss_of_the_chain() -> None:
    """The sum over four pairs by their probabilities, 1e-12."""
    run = odesim.train("binary_chain", settings=SMALL, steps=1)
    total, z = 0.0, (0.7, -0.4, 0.2)
    for x, often in ((0, 2 / 3), (1, 1 / 3)):
        one = 1 / (1 + np.exp(-logit(z, x)))
        after = 0.3 if x == 0 else 0.4
        total -= often * (after * np.log(one) + (1 - after) * np.log(1 - one))
    assert run.observables["loss_population"][0, 0] == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("w", [-0.4, 0.4])
def test_steps_by_the_best_bias(w: float) -> None:
    """b is where the loss of the whole chain is least, by a search, and the gradient goes through it: differences of 1e-3, 3e-6."""
    settings = {**SMALL, "w": w, "bias": "best"}
    made = TASK.make(check_settings("binary_chain", TASK.settings, settings), seeds=(3,))
    run = odesim.train("binary_chain", settings=settings, seeds=(3,), steps=1)
    pairs = [*zip(*(made.stream(0)[name][0] for name in "xy"), strict=True)]

    def mean(z: Any, of: Any) -> float:
        return float(sum(often * (np.log1p(np.exp(logit(z, x))) - y * logit(z, x)) for x, y, often in of))

    chain = [(0, 0.3, 2 / 3), (1, 0.4, 1 / 3)]

    def loss(ew: Any) -> float:
        b = minimize_scalar(lambda b: mean((*ew, b), chain), bracket=(-1, 1), options={"xtol": 1e-11}).x
        return mean((*ew, b), [(x, y, 1 / len(pairs)) for x, y in pairs])

    ew = np.array([0.7, w])
    assert run.observables["loss"][0, 0] == pytest.approx(loss(ew), rel=1e-6)
    slopes = [(loss(ew + 1e-3 * one) - loss(ew - 1e-3 * one)) / 2e-3 for one in np.eye(2)]
    np.testing.assert_allclose([run.final[name][0] for name in "ew"], ew - 0.3 * np.array(slopes), atol=3e-6)


@pytest.mark.first(2)
@pytest.mark.parametrize(("system", "bias"), [("in_context.markov", "best"), ("in_context.markov_bias", "learned")])
def test_a_certain_step_has_no_theory(system: str, bias: str) -> None:
    """It is trained; beside a System a sentence says which probability is 1."""
    with pytest.raises(ParamError, match=f"{system} does not describe this training of binary_chain: p is 1, not below 1$"):
        odesim.compare(system, task="binary_chain", settings={"bias": bias, "p": 1.0, "q": 0.5}, steps=2)
