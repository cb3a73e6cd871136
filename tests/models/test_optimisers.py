"""Optimisers as Systems: beside the steps of the reference training, limits of one another, other starts and curvatures."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.lab.training.optimizers import make_optimizer
from odesim.lab.training.task import Optimizer

H, B = np.array([[2.0, 0.7], [0.7, 1.1]]), np.array([0.4, -0.3])


def trained(spec: Optimizer, w: Any, slope: Any, steps: int) -> Any:
    """w after so many steps of an optimizer of the reference training."""
    params = {"w": np.array(w, float)[None]}
    optimizer = make_optimizer(spec, {"w": "all"}, params)
    for _ in range(steps):
        optimizer.update(params, {"w": slope(params["w"][0])[None]})
    return params["w"][0]


MAPS: dict[str, tuple[str, dict[str, Any], Optimizer]] = {
    "adam": (
        "adam_steps",
        {"lr": 0.05, "b1": 0.8, "b2": 0.95, "eps": 1e-3},
        Optimizer("adam", {"all": 0.05}, betas=(0.8, 0.95), eps=1e-3),
    ),
    "momentum": ("heavy_ball", {"lr": 0.05, "mu": 0.7}, Optimizer("momentum", {"all": 0.05}, momentum=0.7)),
}


@pytest.mark.parametrize("name", MAPS)
def test_maps_are_the_steps_of_trainings(name: str) -> None:
    """Thirty steps on a quadratic loss with coupled weights: rounding."""
    model, params, spec = MAPS[name]
    run = odesim.integrate(f"optimisers.{model}", params={"H": H, "b": B, "w0": [1.0, -0.5], **params}, span=(0, 30), save=2)
    want = trained(spec, [1.0, -0.5], lambda w: H @ w - B, 30)
    np.testing.assert_allclose(run.final["w"], want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("beta", [0.0, 0.9])
def test_muon_is_the_step_of_trainings(beta: float) -> None:
    """Twenty steps on |W - A|^2 / 2, 3 x 4: rounding times the slope of the polynomial."""
    A = np.random.default_rng(1).normal(size=(3, 4))
    run = odesim.integrate("optimisers.muon", params={"A": A, "lr": 0.05, "beta": beta}, span=(0, 20), save=2)
    want = trained(Optimizer("muon", {"all": 0.05}, momentum=beta), np.zeros((3, 4)), lambda W: W - A, 20)
    np.testing.assert_allclose(run.final["W"], want, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", ["muon", "sgd"])
def test_two_layers_by_muon_have_no_plateau(name: str) -> None:
    """|W2 W1 - A|^2 / 2, aligned, from .1: by Muon the root of each mode is .1 + r t, r in [.6818, 1.1344]; by SGD the last still waits.

    At t = .5 no mode has arrived, the root of the last is .75. By SGD they follow s / (1 + (s/a0 - 1) e^(-2 s t)), to the order of lr.
    """
    A, lr, t = np.array([[3, 0.5, 0], [0.2, 1.5, 0.3], [0, 0.1, 0.6]]), 0.002, 0.5 if name == "muon" else 1.5
    U, s, Vt = np.linalg.svd(A)
    params = {"W1": 0.1 * Vt[None], "W2": 0.1 * U[None]}
    optimizer = make_optimizer(Optimizer(name, {"all": lr}, momentum=0.0), dict.fromkeys(params, "all"), params)
    for _ in range(round(t / lr)):
        W1, W2 = params["W1"][0], params["W2"][0]
        E = W2 @ W1 - A
        optimizer.update(params, {"W1": (W2.T @ E)[None], "W2": (E @ W1.T)[None]})
    modes = U.T @ params["W2"][0] @ params["W1"][0] @ Vt.T
    np.testing.assert_allclose(modes, np.diag(np.diag(modes)), atol=1e-10)  # rounding: bases are those of A
    if name == "muon":
        rates = (np.sqrt(np.diag(modes)) - 0.1) / t
        assert rates.min() > 0.6818 - 1e-4 and rates.max() < 1.1344 + 1e-4
    else:
        np.testing.assert_allclose(np.diag(modes), s / (1 + (s / 0.01 - 1) * np.exp(-2 * s * t)), rtol=0.02)
        assert modes[0, 0] > 0.95 * s[0] and modes[2, 2] < 0.1 * s[2]


def test_signs_are_the_steps_of_trainings() -> None:
    """Before any slope is 0 both move every weight at the rate 1; a sharp edge of the sign, 1e-6."""
    run = odesim.integrate("optimisers.sign", params={"H": H, "b": B, "w0": [1.0, -1.5], "eps": 1e-6}, span=(0, 0.3), save=2, rtol=1e-9)
    want = trained(Optimizer("sign", {"all": 0.01}), [1.0, -1.5], lambda w: H @ w - B, 30)
    np.testing.assert_allclose(run.final["w"], want, atol=1e-6)


def test_adam_without_memory_descends_by_signs() -> None:
    """Means over times of .002: w is as far as by signs, to some of these times, while no slope changes its sign."""
    given: dict[str, Any] = {"params": {"H": H, "b": B, "w0": [1.0, -1.5], "eps": 1e-6}, "span": (0, 0.3), "save": 2, "rtol": 1e-8}
    sign = odesim.integrate("optimisers.sign", **given)
    params = {**given["params"], "t1": 2e-3, "t2": 2e-3, "first": 1e-5}
    adam = odesim.integrate("optimisers.adam", **{**given, "params": params}, method="rodas5p")
    np.testing.assert_allclose(adam.final["w"], sign.final["w"], atol=8e-3)


def test_curvature_does_not_count_for_adam() -> None:
    """A loss a hundred times as steep, eps too: the same path, exactly scaled."""
    runs = [
        odesim.integrate("optimisers.adam", params={"H": c * H, "b": c * B, "eps": c * 1e-3}, save=5, rtol=1e-10, atol=1e-13)
        for c in (1.0, 100.0)
    ]
    np.testing.assert_allclose(runs[0].y["w"], runs[1].y["w"], atol=1e-8)


def test_the_soft_edge_of_the_central_flow_does_not_count() -> None:
    """From a start at the edge itself, S = 20, the flow is the same for a soft and a sharp one, and stays on it."""
    y2 = 0.4
    start = {"y1": (10 - 2 * y2**2) / 6, "y2": y2}
    ends = []
    for stiff in (1.0, 100.0):
        run = odesim.integrate("edge.central_flow", params={"stiff": stiff}, initial=start, save=11, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(run.observables["sharpness"], 20, atol=1e-7)
        ends.append([run.final["y1"], run.final["y2"]])
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-7)


def test_rest_states_of_the_polynomial() -> None:
    """Newton-Schulz has two above 0, both unstable, so that no singular value comes to 1; slopes by differences."""
    rest, h = np.array([0.8680258, 1.2637291]), 1e-6

    def step(s: Any) -> Any:
        return odesim.integrate("optimisers.newton_schulz", sizes={"K": 2}, initial={"s": s}, span=(0, 1), save=2).final["s"]

    np.testing.assert_allclose(step(rest), rest, atol=6e-7)  # half a digit, times a slope of 6
    np.testing.assert_allclose((step(rest + h) - step(rest - h)) / (2 * h), (-1.58237, 6.4735), atol=6e-5)
