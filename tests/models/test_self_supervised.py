"""Modes and matrices of learning without negative pairs: order, the ghost of a rest state, starts below 0, and SGD on sampled views."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.models.self_supervised._parabola import mode_at, rest_points
from odesim.models.self_supervised.claims import P0, S0, aligned

FINE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12, "backend": "numpy"}


@pytest.mark.first(2)
@pytest.mark.parametrize("eta", [0.04, 0.3, 0.2, 0.2274])
def test_the_solution_on_the_parabola_solves_its_equation(eta: float) -> None:
    """Central differences of it, to their error; from below p-, between p- and p+, and above p+."""
    h, c = 1e-4, 1.1
    for p0 in (0.02, 0.3, 0.9):
        for t in (0.5, 7.0, 40.0):
            before, p, after = (mode_at(t + s, p0, eta, 0.1) for s in (-h, 0, h))
            assert (after - before) / (2 * h) == pytest.approx(p**2 * (1 - c * p) - eta * p, abs=1e-8)


def test_passing_the_ghost_takes_the_root_of_the_distance() -> None:
    """Just above eta = 1/(4c) p rests near 1/(2c). Four times nearer, twice as long: pi over the frequency of the square that is passed.

    p' = -c p ((p - 1/(2c))^2 + d/c) there, d = eta - 1/(4c), so that the time is pi / (c p sqrt(d/c)) = 2 pi sqrt(c/d). What comes
    before and after is of order 1, which at d = 1e-8 is a thousandth.
    """
    c = 1.1
    times = []
    for d in (1e-8, 4e-8):
        low, high = 0.0, 1e6
        while high - low > 1e-3:  # when p is half of where it rested
            mid = (low + high) / 2
            low, high = (mid, high) if mode_at(mid, 0.6, 1 / (4 * c) + d, 0.1) > 1 / (4 * c) else (low, mid)
        times.append(low)
        assert low == pytest.approx(2 * np.pi * np.sqrt(c / d), rel=2e-3)
    assert times[0] / times[1] == pytest.approx(2, rel=2e-3)


def test_noise_of_views_lowers_what_is_learned() -> None:
    """p+ and the critical weight decay fall with sigma2; the rest states are those of the equations."""
    highest = []
    for sigma2 in (0.0, 0.1, 0.5, 1.0):
        run = odesim.integrate("self_supervised.modes", params={"sigma2": sigma2}, sizes={"n": 1}, span=(0, 300), save=2, **FINE)
        low, high = rest_points(0.04, sigma2)
        assert run.final["p"][0] == pytest.approx(high.real, abs=1e-7) and low.real + high.real == pytest.approx(1 / (1 + sigma2))
        highest.append(high.real)
    assert highest == sorted(highest, reverse=True)


@pytest.mark.parametrize("p0", [-0.2, -0.6])
def test_a_predictor_of_the_wrong_sign_is_turned(p0: float) -> None:
    """From p < 0 and s = .5 the mode crosses 0 and is learned."""
    run = odesim.integrate("self_supervised.modes", initial={"p": p0, "s": 0.5}, sizes={"n": 1}, span=(0, 400), save=2, **FINE)
    assert run.final["p"][0] == pytest.approx(0.8671565716, abs=1e-7)


def test_modes_have_no_order() -> None:
    """Each mode is alone: the same in another order, and by itself."""
    p, s = np.array([0.3, 0.05, 0.6]), np.array([0.1, 0.2, 0.3])
    given: dict[str, Any] = {"span": (0, 5), "save": 3, **FINE}
    run = odesim.integrate("self_supervised.modes_ema", initial={"p": p, "s": s}, sizes={"n": 3}, **given)
    for k in range(3):
        alone = odesim.integrate("self_supervised.modes_ema", initial={"p": p[k], "s": s[k]}, sizes={"n": 1}, **given)
        for name, rows in alone.y.items():
            np.testing.assert_allclose(run.y[name][:, k], rows[:, 0], atol=1e-8)


def test_sgd_on_sampled_views_follows_the_flow() -> None:
    """SimSiam trained with batches of 64 pairs of views, learning rate .01, to t = 10: modes of 32 runs in the mean.

    Below 8e-3 of p and 1.5e-2 of s, the orders of eta and of the noise of a batch, which both are first order in the learning rate.
    """
    U, start = aligned()
    rng, runs, batch, rate = np.random.default_rng(5), 32, 64, 0.01
    W, W_p = (np.tile(start[name], (runs, 1, 1)) for name in ("W", "W_p"))
    for _ in range(1000):
        x = rng.normal(size=(runs, 5, batch))
        one, two = (x + np.sqrt(0.1) * rng.normal(size=x.shape) for _ in range(2))
        h = W @ one
        r = W @ two - W_p @ h  # the target is a number: no gradient
        up = r @ h.swapaxes(1, 2) / batch
        down = W_p.swapaxes(1, 2) @ r @ one.swapaxes(1, 2) / batch
        W_p, W = W_p + rate * (up - 0.04 * W_p), W + rate * (down - 0.04 * W)
    flow = odesim.integrate("self_supervised.modes", initial={"p": P0, "s": S0}, sizes={"n": 3}, span=(0, 10), save=2, **FINE)
    p, s = (np.diagonal(U.T @ M.mean(axis=0) @ U) for M in (W_p, W @ W.swapaxes(1, 2)))
    np.testing.assert_allclose(p, flow.final["p"], atol=8e-3)
    np.testing.assert_allclose(s, flow.final["s"], atol=1.5e-2)
