"""Models with noise: exact moments of steps, paths in closed form, and where a diffusion runs away that SGD does not."""

from typing import Any

import numpy as np
import pytest

import odesim


@pytest.mark.parametrize(("method", "more"), [("em", 0.0), ("milstein", 0.8**4 / 2)])
def test_moments_of_a_step_of_geometric_noise(method: str, more: float) -> None:
    """(1 + mu h)^n and ((1 + mu h)^2 + s^2 h + s^4 h^2/2)^n, the last part Milstein's: four standard errors of 100,000 paths, h = 1/8."""
    given: dict[str, Any] = {"members": 100_000, "step": 1 / 8, "save": 2, "method": method, "reduce": ("mean", "var")}
    run = odesim.ensemble("noise.geometric", observe="square", **given)
    mean, second = (1 + 1.5 / 8) ** 8, ((1 + 1.5 / 8) ** 2 + 0.64 / 8 + more / 64) ** 8
    assert mean == pytest.approx(3.9542939144) and second == pytest.approx(24.7347423691 if more else 24.3138912125)
    for name, want in (("x", mean), ("square", second)):
        doubt = 4 * float(run[f"{name}_var"].values[-1] / 100_000) ** 0.5
        assert abs(float(run[f"{name}_mean"].values[-1]) - want) < doubt


def test_a_path_of_geometric_noise_is_an_exponential() -> None:
    """ln x is (mu - s^2/2) t + s B: along one path of steps of 1/4096 by Milstein's method, to the order of the step."""
    fine = odesim.ensemble("noise.geometric", members=200, step=2**-12, save=2, method="milstein", seed=2)
    half = odesim.ensemble("noise.geometric", params={"s": 0.4}, members=200, step=2**-12, save=2, method="milstein", seed=2)
    B = [(np.log(run.x.values[:, -1]) - 1.5 + s**2 / 2) / s for run, s in ((fine, 0.8), (half, 0.4))]
    np.testing.assert_allclose(B[0], B[1], atol=5e-3)  # both see the same Brownian motion
    assert abs(B[0].mean()) < 4 / 200**0.5 and abs(B[0].var() - 1) < 4 * (2 / 200) ** 0.5


def test_fourth_moment_of_the_area() -> None:
    """E y^4 = 7 t^4/4: heavy tails, so that four standard errors of 50,000 paths are wide, and steps of 1/64 add less."""
    y = odesim.ensemble("noise.area", members=50_000, step=1 / 64, save=2, method="heun").y.values[:, -1]
    assert abs((y**4).mean() - 1.75) < 4 * (y**4).std() / 50_000**0.5 + 0.03


def test_a_diffusion_may_run_away_where_sgd_does_not() -> None:
    """Two layers, eta = .1 from (1.6, .4): the noise is cubic in the weights, and some of 20,000 paths explode; none of SGD does."""
    run = odesim.ensemble("noise.two_layer", params={"eta": 0.1}, initial={"a": 1.6, "b": 0.4}, members=20_000, span=(0, 50), save=2)
    lost = int((~np.isfinite(run.a.values[:, -1])).sum())
    rng, (a, b) = np.random.default_rng(3), np.tile([[1.6], [0.4]], 20_000)
    for _ in range(500):
        x = rng.normal(size=20_000)
        g = 0.1 * x * ((a * b - 1) * x - 0.5 * rng.normal(size=20_000))
        a, b = a - g * b, b - g * a
    assert 5 < lost < 200 and np.all(np.abs(a) < 10)


@pytest.mark.slow
def test_wells_are_alike() -> None:
    """From the other well the mean is the negative one, path by path where the noise is turned too: the same distribution here."""
    given: dict[str, Any] = {"members": 20_000, "span": (0, 4), "save": 2, "reduce": ("mean", "var")}
    right, left = (odesim.ensemble("noise.double_well", initial={"x": x}, **given) for x in (1.0, -1.0))
    doubt = 4 * float(right.x_var.values[-1] / 10_000) ** 0.5
    assert abs(float(right.x_mean.values[-1] + left.x_mean.values[-1])) < doubt
