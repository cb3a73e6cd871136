"""Modular addition: times of blow-up by formulas that share nothing, starts that are alike, part of the data, other weights."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import odesim
from odesim.models.modular.claims import powers_of
from odesim.models.modular.phases import WHOLE, balanced, blow_up
from odesim.models.modular.powers import logarithmic_mean

FINE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-13, "backend": "numpy"}


@pytest.mark.parametrize("D", [0.0, 0.7, np.pi / 2 - 1e-9, np.pi / 2 + 1e-9, 2.6, -2.6])
def test_two_formulas_give_one_time(D: float) -> None:
    """The hypergeometric one of balanced sizes and the integral for any: rounding of quadrature. t* grows as p / beta."""
    found = blow_up(np.sqrt(2) * 0.03, 0.03, D, 9)
    assert found == pytest.approx(float(balanced(0.03, D, 9)), rel=1e-9)
    assert found * 4 == pytest.approx(blow_up(np.sqrt(2) * 0.015, 0.015, D, 18), rel=1e-12)


@pytest.mark.parametrize(("alpha", "beta", "D"), [(0.3, 0.1, 2.0), (0.1, 0.3, 2.8), (0.2, 0.2, -1.0)])
def test_the_time_of_another_integrator(alpha: float, beta: float, D: float) -> None:
    """scipy's DOP853 on 1 / beta, which reaches 0 at t*: 1e-7."""

    def right(t: float, y: Any) -> Any:
        a, b, gap = y
        return [2 * a * b * np.cos(gap), a * a * np.cos(gap), -(4 * b + a * a / b) * np.sin(gap)]

    def far(t: float, y: Any) -> Any:
        return y[0] - 1e4

    far.terminal = True  # type: ignore[attr-defined]
    end = solve_ivp(right, (0, 1e3), [alpha, beta, D], method="DOP853", rtol=1e-11, atol=1e-14, events=far)
    assert blow_up(alpha, beta, D, 1) == pytest.approx(end.t[-1] + 1 / (np.sqrt(2) * 1e4), rel=1e-7)


def test_the_logarithmic_mean_lies_between_two_means() -> None:
    """sqrt(U V) < (U - V) / ln(U/V) < (U + V) / 2, and equal powers have themselves."""
    U, V = np.random.default_rng(3).uniform(0.01, 1, (2, 50))
    found = logarithmic_mean(U, V)
    assert np.all((np.sqrt(U * V) < found) & (found < (U + V) / 2))
    np.testing.assert_allclose(logarithmic_mean(U, U * (1 + 1e-8)), U, rtol=1e-7)


def test_a_shift_of_the_numbers_moves_no_power() -> None:
    """x -> x + 1 and y -> y + 3 turn phases alone: the same powers along the run, at all saved times."""
    w = np.random.default_rng(2).normal(size=(2, 9)) / np.sqrt(18)
    runs = [
        odesim.integrate("modular.energy", params={"u0": np.roll(w[0], i), "v0": np.roll(w[1], j)}, span=(0, 2), save=5, **FINE)
        for i, j in ((0, 0), (1, 3))
    ]
    for name in "uv":
        one, other = ([powers_of(row) for row in run.y[name]] for run in runs)
        np.testing.assert_allclose(one, other, atol=1e-7)


@pytest.mark.parametrize(("share", "kept"), [(0.2, False), (0.9, True)])
def test_much_of_the_data_keeps_a_wave(share: float, kept: bool) -> None:
    """From a wave with 2 % of noise at M = 11, energy of a random share of the pairs: it stays, or is left for what fits the sample."""
    M, rng = 11, np.random.default_rng(1)
    at = np.arange(M)
    wave = np.cos(2 * np.pi * 2 * at / M + np.array([[0.3], [1.1]]))
    w = wave / np.linalg.norm(wave)
    w = w + 0.02 * rng.normal(size=w.shape) / np.sqrt(2 * M)
    w /= np.linalg.norm(w)
    seen = (rng.random((M, M)) < share).astype(float)
    run = odesim.integrate("modular.energy", params={"u0": w[0], "v0": w[1], "seen": seen}, span=(0, 60), save=2, **FINE)
    assert bool(powers_of(run.final["u"])[1] + powers_of(run.final["v"])[1] > 0.5) is kept


def test_a_trajectory_of_another_program() -> None:
    """p = 23, alpha = beta = .02, D = .3 at t = .5, 1 and 1.3 p^2, near the blow-up at 1.363, and the two constants."""
    initial = {name: np.full((1, 1), x) for name, x in (("alpha", 0.02), ("beta", 0.02), ("phi", 0.0), ("psi", 0.3))}
    times = 23**2 * np.array([0, 0.5, 1.0, 1.3])
    given: dict[str, Any] = {"params": {"p": 23}, "sizes": {"N": 1, "K": 1}, "rtol": 1e-11, "atol": 1e-16, "backend": "numpy"}
    run = odesim.integrate("modular.phases", initial=initial, span=(0, times[-1]), save=times, **given)
    seen = np.stack([run.y["alpha"], run.y["beta"], run.observables["D"]])[:, 1:, 0, 0].T
    want = [(0.0338165163, 0.0277808997, 0.0744860), (0.0838152461, 0.0609302695, 0.00552332), (0.484702105, 0.343027791, 2.9335808e-5)]
    np.testing.assert_allclose(seen[:, :2], np.array(want)[:, :2], rtol=3e-9)
    np.testing.assert_allclose(seen[:, 2], np.array(want)[:, 2], rtol=2e-6)
    assert float(run.observables["C1"][-1, 0, 0]) == pytest.approx(-4e-4, abs=1e-10)
    assert float(run.observables["C2"][0, 0, 0]) == pytest.approx(2.36416165e-6, abs=6e-15)
    assert pytest.approx(1.2143253239, abs=6e-11) == WHOLE


def test_neurons_of_a_training_are_won_by_the_least_time() -> None:
    """Eight neurons by gradient descent, while logits are small: each is led by the frequency of its least t*, all at recorded times.

    The slowest, due at step 1674, turns to another one when the others have their features.
    """
    run = odesim.train("modular", steps=600, save=2)
    alpha, beta, D = (run.observables[name][0, 0] for name in ("alpha", "beta", "D"))
    times = np.array([[blow_up(*one, 23) for one in zip(*row, strict=True)] for row in zip(alpha, beta, D, strict=True)]) / 23**2
    assert np.array_equal(run.observables["alpha"][0, -1].argmax(axis=1), times.argmin(axis=1))
    assert run.observables["alpha"][0, -1].max() == pytest.approx(0.0343, abs=6e-5)
    first = times.min(axis=1)
    assert first.min() == pytest.approx(2.010, abs=6e-4) and first.max() == pytest.approx(3.164, abs=6e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "kept"), [(0.45, 0), (0.6, 6)])
def test_how_much_of_the_data_keeps_a_wave(share: float, kept: int) -> None:
    """M = 23, from a wave with 2 % of noise, six samples of the pairs: none keeps it at 45 %, all do at 60 %."""
    M, at = 23, np.arange(23)
    wave = np.cos(2 * np.pi * 3 * at / M + np.array([[0.3], [1.1]]))
    wave /= np.linalg.norm(wave)
    found = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        w = wave + 0.02 * rng.normal(size=wave.shape) / np.sqrt(2 * M)
        w /= np.linalg.norm(w)
        seen = (rng.random((M, M)) < share).astype(float)
        run = odesim.integrate("modular.energy", params={"u0": w[0], "v0": w[1], "seen": seen}, span=(0, 60), save=2, **FINE)
        found += bool(powers_of(run.final["u"])[2] + powers_of(run.final["v"])[2] > 0.5)
    assert found == kept
