"""The task valley: its slope by differences, its steps beside their Map, means over windows."""

import numpy as np
import pytest

import odesim
from odesim.lab.compare.pairs import pairs_of
from odesim.lab.tasks import load_task
from odesim.lab.training.task import TrainingFacts, check_settings

TASK = load_task("valley")


def test_slope_by_differences() -> None:
    """Central differences of 1e-5 of the loss as it is printed: 1e-9."""
    made = TASK.make(check_settings("valley", TASK.settings, {"kap": 0.3, "c1": 1.1, "c2": -0.4}), seeds=(0,))
    z = np.array([0.2, 1.3, -0.7])

    def loss(z: np.ndarray) -> float:
        x, y1, y2 = z
        return float((10 + 6 * y1 + 2 * y2**2) * x**2 / 2 + 0.15 * ((y1 - 1.1) ** 2 + (y2 + 0.4) ** 2))

    value, slopes = made.model.loss_and_gradients({name: np.array([v]) for name, v in zip(("x", "y1", "y2"), z, strict=True)}, {})
    assert value[0] == pytest.approx(loss(z), rel=1e-13)
    for name, one in zip(("x", "y1", "y2"), np.eye(3), strict=True):
        assert slopes[name][0] == pytest.approx((loss(z + 1e-5 * one) - loss(z - 1e-5 * one)) / 2e-5, rel=1e-9)


def test_the_map_is_the_steps() -> None:
    """300 steps at the edge: rounding 1e-11, as the first of them grow."""
    found = odesim.compare("edge.valley", task="valley", settings={"x": 0.2}, steps=300)
    for name, values in found.training.items():
        np.testing.assert_allclose(found.theory[name], values, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("window", [1, 4, 5, 99])
def test_means_over_a_window(window: int) -> None:
    """As a loop has them: as many times to both sides, less of them near the ends."""
    link = next(link for link in pairs_of("valley")["edge.central_flow"].links if link.name == "sigma2")
    x = np.random.default_rng(1).normal(size=(2, 17))
    means = link.make({"x": x}, TrainingFacts("valley", {"window": window}, {}, {}))
    for r, i in np.ndindex(x.shape):
        half = min(window // 2, i, 16 - i)
        assert means[r, i] == pytest.approx(np.mean(x[r, i - half : i + half + 1] ** 2), rel=1e-12)


def test_a_training_that_diverges_is_compared_in_silence() -> None:
    """At a step beyond every edge numbers overflow: the table says so, no warning does (here warnings are errors)."""
    found = odesim.compare("edge.valley", task="valley", settings={"eta": 0.3}, steps=300)
    assert max(np.nanmax(np.abs(values)) for values in found.training.values()) > 1e150 and "rel L2" in str(found)
