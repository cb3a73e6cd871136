"""Models with noise: exact moments of steps, paths in closed form, and where a diffusion runs away that SGD does not."""

from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh_tridiagonal
from scipy.optimize import brentq
from scipy.special import iv

import odesim
from odesim.models.noise.claims import END, ETA, LAM, START, after_diffusion, after_steps
from odesim.models.particles.claims import modes_at, order_of_density, threshold

MOMENTS = {
    8: (3.9542939144, 24.3138912125, 24.7347423691),
    16: (4.1945855508, 29.7797078360, 30.0895349041),
    32: (4.3314621024, 33.4655152859, 33.6579753983),
}
"""steps to t = 1 -> E x of both methods, E x^2 of Euler's and of Milstein's, by another script."""


@pytest.mark.parametrize("n", MOMENTS)
@pytest.mark.parametrize(("method", "more"), [("em", 0.0), ("milstein", 0.8**4 / 2)])
def test_moments_of_a_step_of_geometric_noise(method: str, more: float, n: int) -> None:
    """(1 + mu h)^n and ((1 + mu h)^2 + s^2 h + s^4 h^2/2)^n, the last part Milstein's: four standard errors of 100,000 paths."""
    given: dict[str, Any] = {"members": 100_000, "step": 1 / n, "save": 2, "method": method, "reduce": ("mean", "var")}
    run = odesim.ensemble("noise.geometric", observe="square", **given)
    mean, second = (1 + 1.5 / n) ** n, ((1 + 1.5 / n) ** 2 + 0.64 / n + more / n**2) ** n
    assert mean == pytest.approx(MOMENTS[n][0], abs=6e-11) and second == pytest.approx(MOMENTS[n][2 if more else 1], abs=6e-10)
    for name, want in (("x", mean), ("square", second)):
        doubt = 4 * float(run[f"{name}_var"].values[-1] / 100_000) ** 0.5
        assert abs(float(run[f"{name}_mean"].values[-1]) - want) < doubt


RETURN = {0.5: (1.1557864844, 0.1268887405), 1.0: (0.7570082562, 0.1552014455), 2.0: (0.4796593094, 0.1629284705)}
"""t -> mean and variance of noise.ornstein_uhlenbeck from 2, by another script; the covariance of t = .5 and 1 is .0599379969."""


def test_moments_of_a_return_to_the_mean() -> None:
    """sra1 in steps of .05, whose weak order 2 leaves less than 1e-3: four standard errors of 100,000 paths; Euler's by their recursion."""
    run = odesim.ensemble("noise.ornstein_uhlenbeck", members=100_000, step=0.05, span=(0, 2), save=5, method="sra1")
    x = run.x.values[:, [1, 2, 4]]
    for k, (mean, variance) in enumerate(RETURN.values()):
        assert abs(x[:, k].mean() - mean) < 4 * (variance / 1e5) ** 0.5 + 1e-3
        assert abs(x[:, k].var() - variance) < 4 * variance * (2 / 1e5) ** 0.5 + 1e-3
    assert abs(np.cov(x[:, 0], x[:, 1])[0, 1] - 0.0599379969) < 4 * (2 * 0.127 * 0.155 / 1e5) ** 0.5 + 1e-3
    mean, variance = 2.0, 0.0
    for _ in range(100):
        mean, variance = mean + 0.015 * (0.4 - mean), 0.985**2 * variance + 0.01 * 0.49
    assert (mean, variance) == pytest.approx((0.7529742568, 0.1565583668), abs=6e-11)
    euler = odesim.ensemble("noise.ornstein_uhlenbeck", members=100_000, step=0.01, span=(0, 1), save=2, method="em").x.values[:, -1]
    assert abs(euler.mean() - mean) < 4 * (variance / 1e5) ** 0.5 and abs(euler.var() / variance - 1) < 4 * (2 / 1e5) ** 0.5


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


def test_the_mean_square_in_two_wells_returns_at_the_second_eigenvalue() -> None:
    """Of Fokker-Planck at T = .25, 0, .187170 and 1.501028 by differences on two grids; x^2 is even, so that the first is not in it.

    The density times exp(V/(2 T)) follows a symmetric matrix. 100,000 paths from the top, between t = 1 and 2, where the next even one,
    above 4, is 3 % of it: 8 %, of that and of four standard errors.
    """
    T, levels = 0.25, []
    for n in (1000, 2000):
        x, h = np.linspace(-3.2, 3.2, n, retstep=True)
        slope, curvature = x**3 - x, 3 * x**2 - 1
        well = slope**2 / (4 * T) - curvature / 2
        levels.append(eigh_tridiagonal(2 * T / h**2 + well, np.full(n - 1, -T / h**2), select="i", select_range=(0, 2))[0])
    np.testing.assert_allclose(levels[1] + (levels[1] - levels[0]) / 3, (0, 0.187170, 1.501028), atol=2e-5)
    run = odesim.ensemble("noise.double_well", initial={"x": 0.0}, members=100_000, step=0.02, span=(0, 2), save=3, observe="square")
    away = run.square.values.mean(axis=0) - 0.8327454871
    assert float(np.log(away[1] / away[2])) == pytest.approx(1.501028, rel=0.08)


@pytest.mark.slow
def test_wells_are_alike() -> None:
    """From the other well the mean is the negative one, path by path where the noise is turned too: the same distribution here."""
    given: dict[str, Any] = {"members": 20_000, "span": (0, 4), "save": 2, "reduce": ("mean", "var")}
    right, left = (odesim.ensemble("noise.double_well", initial={"x": x}, **given) for x in (1.0, -1.0))
    doubt = 4 * float(right.x_var.values[-1] / 10_000) ** 0.5
    assert abs(float(right.x_mean.values[-1] + left.x_mean.values[-1])) < doubt


LEAST_SQUARES = {
    (1, "SGD"): (0.0230494, 0.0436198, 1.2289610, 0.2292034),
    (1, "diffusion"): (0.0219573, 0.0446024, 1.2389296, 0.2300980),
    (4, "SGD"): (0.0051475, 0.0225597, 1.2021422, 0.1967487),
    (4, "diffusion"): (0.0050420, 0.0242159, 1.2128494, 0.1990774),
}
"""(B, law) -> E delta^2 of three weights and the risk at t = 2, eta = .05, by two integrators of another script."""


@pytest.mark.parametrize(("B", "law"), LEAST_SQUARES)
def test_moments_of_least_squares(B: int, law: str) -> None:
    """The recursion and the linear flow that claims are held against; batches of B are a B-th of the noise."""
    c = after_steps(ETA / B, 0, ETA) if law == "SGD" else after_diffusion(ETA / B, 0)
    np.testing.assert_allclose([*c, LAM @ c / 2], LEAST_SQUARES[B, law], atol=6e-8)


@pytest.mark.parametrize("B", [1, 4])
def test_steps_of_eta_have_the_moments_of_sgd(B: int) -> None:
    """em in steps of eta has the second moments of SGD, off the diagonal too (recorded at B = 1): four standard errors of 100,000 paths."""
    run = odesim.ensemble(
        "noise.sgd_least_squares", params={"lam": LAM, "eta": ETA, "B": B}, initial={"delta": START}, span=(0, END), step=ETA,
        members=100_000, method="em", save=2,
    )  # fmt: skip
    d = run.delta.values[:, -1]
    pairs = [(d**2, LEAST_SQUARES[B, "SGD"][:3]), (d**2 @ LAM / 2, LEAST_SQUARES[B, "SGD"][3])]
    pairs += [(d[:, 0] * d[:, 1], -0.0023985)] if B == 1 else []
    for values, want in pairs:
        assert np.all(np.abs(values.mean(axis=0) - want) < 4 * values.std(axis=0) / len(d) ** 0.5)


@pytest.mark.parametrize(("steps", "want"), [(False, (0.00719663, 0.00701210, 0.00688846)), (True, (0.00762695, 0.00722553, 0.00696878))])
def test_moments_at_rest(steps: bool, want: tuple[float, ...]) -> None:
    """E delta^2 stays where 2 l c = eta (l (q + s2) + l^2 c), of SGD with eta l^2 c more: recorded, with the risks of both."""
    c = np.array(want)
    gained = ETA * (LAM * (LAM @ c + 0.25) + LAM**2 * c * (2 if steps else 1))
    np.testing.assert_allclose(2 * LAM * c, gained, atol=6e-8)
    assert float(LAM @ c) / 2 == pytest.approx(0.01228503 if steps else 0.01173595, abs=2e-8)
    there = after_steps(ETA, 0, ETA, 2000.0) if steps else after_diffusion(ETA, 0, 2000.0)
    np.testing.assert_allclose(there, c, atol=6e-9)


def test_a_path_from_a_well() -> None:
    """From x = 1 at t = 2, T = .25: E x = .6954, E x^2 = .8497, of the Fokker-Planck equation on a grid; four standard errors, and h^2."""
    x = odesim.ensemble("noise.double_well", span=(0, 2), step=0.02, members=50_000, save=2, seed=9).x.values[:, -1]
    for values, want in ((x, 0.6954), (x**2, 0.8497)):
        assert abs(float(values.mean()) - want) < 4 * float(values.std()) / 50_000**0.5 + 1e-3


ORDERS = {
    (1.0, 1.1): (0.4896680, 0.1645122),
    (1.0, 1.5): (0.8148583, 0.5144039),
    (3.0, 1.02): (0.6519097, 0.4118052),
    (3.0, 1.1): (0.7942571, None),
    (3.0, 1.5): (0.9444161, None),
}
"""(beta, K/K#) -> a_1 and a_2 of the stationary density of tokens on the circle, by another script."""


@pytest.mark.parametrize(("beta", "share"), ORDERS)
def test_order_of_tokens_with_noise(beta: float, share: float) -> None:
    """40 modes at t = 400 from an ordered start, and the density that is exp of its own potential."""
    first, second = ORDERS[beta, share]
    a = modes_at(beta, share, 0.8, 400.0)
    assert a[1] == pytest.approx(first, abs=6e-8) and (second is None or a[2] == pytest.approx(second, abs=6e-8))
    assert order_of_density(beta, share * threshold(beta)) == pytest.approx(first, abs=6e-8)


def test_thresholds_of_tokens_with_noise() -> None:
    """K# at kappa = 1/2, and the temperature above which order sets in by a jump, where I_2 is half of I_1."""
    assert threshold(1.0) == pytest.approx(0.8847066188, abs=6e-11) and threshold(3.0) == pytest.approx(0.3794231042, abs=6e-11)
    jumps = brentq(lambda beta: iv(2, beta) / iv(1, beta) - 1 / 2, 0.5, 5, xtol=1e-13)
    assert jumps == pytest.approx(2.4469183113, abs=6e-11)
    for beta, lasts in ((jumps - 0.3, False), (jumps + 0.3, True)):  # order below K#
        assert bool(modes_at(beta, 0.999, 0.8, 2000.0)[1] > 0.2) is lasts


SPHERE = {1.1: (0.50113875, 0.1933961), 1.5: (0.80628595, 0.5503667)}
"""K/K# -> a_1 and a_2 of the stationary density of tokens on the sphere, beta = 1, kappa = 1/2, by another script."""
SPHERE_THRESHOLD = 1.3591409142


@pytest.mark.parametrize("share", SPHERE)
def test_order_of_tokens_on_a_sphere(share: float) -> None:
    """16 modes at t = 400, recorded at t = 20 too; and the density that is exp of its own potential, by quadrature."""
    given: dict[str, Any] = {"params": {"kappa": 0.5, "K": share * SPHERE_THRESHOLD}, "rtol": 1e-10, "atol": 1e-14}
    run = odesim.integrate("particles.sphere_density", **given, span=(0, 400), save=[0, 20, 400])
    assert run.y["a"][-1, 1:3] == pytest.approx(SPHERE[share], abs=6e-8)
    if share == 1.1:
        assert run.y["a"][1, 1] == pytest.approx(0.5010303, abs=6e-8)
    u, weight = np.polynomial.legendre.leggauss(60)
    around = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    # <x, y> of two points by their cosines to the axis and the angle about it
    product = u[:, None, None] * u[:, None] + (np.sqrt(1 - u**2)[:, None, None] * np.sqrt(1 - u**2)[:, None]) * np.cos(around)
    kernel = np.exp(product).mean(axis=2)
    density = np.exp(2 * u)
    for _ in range(400):
        density /= density @ weight
        density = np.exp(2 * share * SPHERE_THRESHOLD * kernel @ (weight * density))
    assert float((u * density) @ weight / (density @ weight)) == pytest.approx(SPHERE[share][0], abs=2e-8)


def test_a_sphere_of_two_dimensions_is_the_circle() -> None:
    """Modes of particles.density at t = 3: 1e-10."""
    given: dict[str, Any] = {"sizes": {"N": 24}, "span": (0, 3), "save": 2, "rtol": 1e-11, "atol": 1e-14}
    params = {"beta": 2.0, "kappa": 0.5, "K": 1.2}
    on_circle = odesim.integrate("particles.density", params=params, **given).final["a"]
    on_sphere = odesim.integrate("particles.sphere_density", params={**params, "d": 2.0}, **given).final["a"]
    np.testing.assert_allclose(on_sphere, on_circle, atol=1e-10)


@pytest.mark.first(2)
@pytest.mark.parametrize(("params", "span"), [({"kappa": 0.01}, 20.0), ({"d": 10.0, "kappa": 0.3}, 0.1)])
def test_a_density_that_is_not_resolved(params: dict[str, float], span: float) -> None:
    """Little noise, or a start of many dimensions: 16 modes are not enough, the density is negative somewhere, and the run says so."""
    run = odesim.integrate("particles.sphere_density", params=params, span=(0, span), save=21)
    broken = run.invariants["the modes resolve the density"]
    assert broken is not None and broken > 0.01 and broken >= -run.observables["density"].min()
    assert "'the modes resolve the density' is violated" in run.message
