"""The task quadratic: its loss and slope by differences, each optimizer's steps beside its Map, and what it refuses."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.base.errors import ParamError
from odesim.lab.tasks import load_task
from odesim.lab.training.task import check_settings

TASK = load_task("quadratic")
rng = np.random.default_rng(2)
ROOT = rng.normal(size=(3, 3))
H, B, W = ROOT @ ROOT.T, rng.normal(size=(2, 3)), rng.normal(size=(2, 3))


def test_slope_by_differences() -> None:
    """tr(W H W^T)/2 - <b, W>, and central differences of it: quadratic, so that they are right to rounding."""
    made = TASK.make(check_settings("quadratic", TASK.settings, {"H": H, "b": B, "W": W}), seeds=(0, 1))

    def loss(W: Any) -> float:
        return float(np.trace(W @ H @ W.T) / 2 - np.sum(B * W))

    value, slopes = made.model.loss_and_gradients({"W": np.stack([W, 2 * W])}, {})
    np.testing.assert_allclose(value, [loss(W), loss(2 * W)], rtol=1e-13)
    for at in np.ndindex(W.shape):
        move = np.zeros_like(W)
        move[at] = 0.5
        assert slopes["W"][0][at] == pytest.approx(loss(W + move) - loss(W - move), rel=1e-12)


ROW: dict[str, Any] = {"H": H, "b": B[0], "W": W[0]}
EXACT: dict[str, dict[str, Any]] = {
    "optimisers.adam_steps": {**ROW, "optimizer": "adam", "b1": 0.7, "b2": 0.95, "eps": 1e-3},
    "optimisers.heavy_ball": {**ROW, "optimizer": "momentum", "momentum": 0.6},
    "optimisers.muon": {"H": np.eye(3), "b": B, "W": W, "optimizer": "muon", "momentum": 0.6},
}


@pytest.mark.parametrize("system", EXACT)
def test_a_map_is_the_steps(system: str) -> None:
    """40 steps: rounding 1e-12."""
    found = odesim.compare(system, task="quadratic", settings=EXACT[system], steps=40)
    assert "its own steps" in str(found)
    for name, values in found.training.items():
        np.testing.assert_allclose(found.theory[name], values, rtol=1e-12, atol=1e-12)


LIMITS: dict[str, tuple[dict[str, Any], Any]] = {
    "optimisers.adam": ({"optimizer": "adam"}, lambda h: {"b1": np.exp(-10 * h), "b2": np.exp(-h), "eps": 1e-3}),
    "optimisers.momentum": ({"optimizer": "sgd"}, lambda h: {"momentum": 1 - 0.8 * h**0.5}),
}


@pytest.mark.parametrize("system", LIMITS)
def test_a_flow_is_the_limit_of_steps(system: str) -> None:
    """A quarter of the rate: a quarter of the distance of Adam, half of that of momentum, whose step is the root of it; within a fifth."""
    settings, of_rate = LIMITS[system]
    off = []
    for h in (4e-3, 1e-3):
        steps = round(0.8 / (h if system == "optimisers.adam" else h**0.5))
        given = {"H": np.diag([1.0, 6.0]), "W": [1.0, -0.5], "eta": h, **settings, **of_rate(h)}
        found = odesim.compare(system, task="quadratic", settings=given, steps=steps)
        off.append(float(np.abs(found.theory["w"] - found.training["w"]).max()))
    assert off[0] / off[1] == pytest.approx(4 if system == "optimisers.adam" else 2, rel=0.2)


REFUSED: dict[str, dict[str, Any]] = {
    r"b has the shape \(1, 2\), and the others make it \(1, 3\)": {"b": [1.0, 2.0], "W": [1.0, 2.0, 3.0]},
    "H is not symmetric": {"H": [[1.0, 2.0], [0.0, 1.0]]},
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_does_not_fit(sentence: str) -> None:
    """Shapes and symmetry, before a step."""
    with pytest.raises(ParamError, match=sentence.split(", and")[0] if "shape" not in sentence else "has the shape"):
        odesim.train("quadratic", settings=REFUSED[sentence], steps=1)


@pytest.mark.parametrize(
    ("system", "settings", "said"),
    [
        ("optimisers.adam", {}, "the optimizer is sgd, not adam"),
        ("optimisers.sign", {"optimizer": "sign", "momentum": 0.5}, "momentum is not 0"),
        ("optimisers.heavy_ball", {"b": B}, "b and W have 2 rows, not 1"),
        ("optimisers.muon", {"optimizer": "muon", "n": 2}, "H is not 1"),
    ],
)
def test_what_is_not_described(system: str, settings: dict[str, Any], said: str) -> None:
    """Another optimizer, a memory of signs, several rows, a curved loss for Muon: one sentence."""
    with pytest.raises(ParamError, match=f"{system} does not describe this training of quadratic: .*{said}"):
        odesim.compare(system, task="quadratic", settings=settings, steps=2)
