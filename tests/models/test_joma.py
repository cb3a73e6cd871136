"""JoMA in numbers: blow-up times, stable ranks, rate ratios, the bounce of the entropy."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf

import odesim
from odesim.inputs.registry import load_model
from odesim.models.joma import nonlinear
from tests.support.truth.joma import entropy

FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13}
BLOW_UP = np.sqrt(np.pi / 2)  # t* where the largest |Delta| is 1


def test_what_linear_conserves():
    """erf(v/sqrt 2)/Delta is one number for all components; erf(v/2)/Delta, as printed in the paper, is not."""
    Delta = np.array([0.2, 0.5, -0.7, 0.9, 1.0])
    v = odesim.integrate("joma.linear", params={"Delta": Delta}, span=(0, 0.9 * BLOW_UP), **FINE).y["v"][-1]
    np.testing.assert_allclose(erf(v / np.sqrt(2)) / Delta, 0.9, rtol=1e-8)
    np.testing.assert_allclose(erf(v / 2) / Delta, [0.639, 0.655, 0.677, 0.718, 0.755], atol=5e-4)


def test_linear_blows_up_at_its_time():
    """A run past t* = sqrt(pi/2)/|Delta| ends there, only the winner gone; v = 6 is the event 2e-9 t* before."""
    Delta = np.array([0.25, -2.0, 0.5])
    run = odesim.integrate("joma.linear", params={"Delta": Delta}, span=(0, 2.0), save=np.linspace(0, 2, 11), rtol=1e-9, atol=1e-12)
    assert run.status in ("blow_up", "step_too_small", "non_finite") and run.message
    assert run.t[-1] == pytest.approx(BLOW_UP / 2, rel=1e-6)
    (event,) = run.events["v reaches 6"]
    assert event["t"] == pytest.approx(BLOW_UP / 2, rel=1e-6) and event["index"] == (1,)


@pytest.mark.slow
def test_winner_of_softmax_grows_linearly():
    """Softmax attention: no blow-up, slope -> |Delta_max|, while the others end at sqrt 2 erfinv(Delta/Delta_max)."""
    run = odesim.integrate("joma.linear_softmax", params={"Delta": [0.5, -2.0, 1.0]}, span=(0, 100), save=3, **FINE)
    v = run.y["v"]
    assert run.status == "ok" and (v[2, 1] - v[1, 1]) / 50 == pytest.approx(-2.0, rel=1e-8)
    np.testing.assert_allclose(erf(v[2, [0, 2]] / np.sqrt(2)), [0.25, 0.5], rtol=1e-8)


STABLE_RANKS = {0.5: (7.193, 6.874), 0.1: (6.363, 3.519), 1e-2: (5.036, 1.132), 1e-3: (4.089, 1.0023)}
LATER = {1e-6: (2.698, 1.0), 1e-9: (2.152, 1.0), 1e-15: (1.696, 1.0)}


@pytest.mark.slow
def test_stable_ranks():
    """M = 40, K = 20, Gaussian Delta of default_rng(0), at t = (1 - x) t*: the gradient is of rank one long before V."""
    times = BLOW_UP * (1 - np.array([1.0, *STABLE_RANKS]))
    run = odesim.integrate("joma.linear_multinode", span=(0, times[-1]), save=times, **FINE)
    Delta = np.random.default_rng(0).standard_normal((40, 20))
    np.testing.assert_allclose(run.attrs["params"]["Delta"], Delta / 6.078959924876714, rtol=1e-14)  # its longest row
    assert (run.observables["stable_rank_V"][0], run.observables["stable_rank_dV"][0]) == pytest.approx((7.324, 7.324), abs=5e-4)
    got = np.stack([run.observables["stable_rank_V"], run.observables["stable_rank_dV"]], axis=1)[1:]
    np.testing.assert_allclose(got, list(STABLE_RANKS.values()), atol=5e-4)


@pytest.mark.parametrize("x", LATER)
def test_stable_ranks_near_the_blow_up(x):
    """Where no integrator goes, by the closed form: x = 1 - t/t* decides through erfinv(1 - x) = erfcinv(x)."""
    from scipy.special import erfcinv

    system = load_model("joma.linear_multinode")
    Delta = np.random.default_rng(0).standard_normal((40, 20))
    Delta /= np.linalg.norm(Delta, axis=1).max()
    length = np.linalg.norm(Delta, axis=1)
    s = np.sqrt(2) * erfcinv((1 - length) + length * x)  # erfinv(length (1 - x)) without the rounding of 1 - x
    V = Delta * (s / length)[:, None]
    dV = Delta * np.exp((s**2 - (s**2).max()) / 2)[:, None]
    got = [system.observables[name](0.0, {"V": V}, {"V": dV}, {}) for name in ("stable_rank_V", "stable_rank_dV")]
    assert got == pytest.approx(LATER[x], abs=1e-3 if x < 1e-12 else 5e-4)


def test_stable_rank_of_nothing():
    zero = {"V": np.zeros((3, 2))}
    ranks = [load_model("joma.linear_multinode").observables[f"stable_rank_{of}"](0.0, zero, zero, {}) for of in ("V", "dV")]
    assert ranks == [0, 0]


@pytest.mark.parametrize(
    ("mu", "ratios"),
    [
        ((2.0, 1.0), {0.1: 1.0047, 1.0: 1.636, 2.0: 3.376, 5.0: 4.156}),
        ((2.5, 1.0), {1.0: 5.05}),
    ],
)
def test_rate_ratio(mu, ratios):
    """ln 1/(1 - v/mu) of two components: their ratio is 1 at first and far from its limit exp((mu_j^2 - mu_k^2)/2) for long."""
    run = odesim.integrate(
        "joma.nonlinear", params={"mu": mu}, initial={"v": 0.0}, span=(0, 5), save=np.array([0.0, *ratios]), rtol=1e-12, atol=1e-16
    )
    L = -np.log1p(-run.y["v"][1:] / mu)
    np.testing.assert_allclose(L[:, 0] / L[:, 1], list(ratios.values()), rtol=5e-4)
    assert max(ratios.values()) < 0.95 * np.exp((mu[0] ** 2 - mu[1] ** 2) / 2)


@pytest.mark.parametrize(("mu", "K"), [(1.0, 0.88082503), (1.5, 2.48163735), (2.0, 6.34353817), (2.5, 17.24309934)])
def test_delay_of_a_component(mu, K):
    """L(t) -> exp(mu^2/2) t - K(mu): the time lost at the start, by the clock of the model's closed form and by quadrature."""
    by_quad = quad(lambda u: np.expm1((mu**2 - u**2) / 2) / (mu - u), 0, mu, epsabs=1e-12)[0]
    L = 30.0
    t = nonlinear.time_to_reach(np.array([-mu * np.expm1(-L)]), np.zeros(1), np.array([mu]))[0]
    assert by_quad == pytest.approx(K, abs=5e-9)
    assert np.exp(mu**2 / 2) * t - L == pytest.approx(K, abs=0.02)  # v = mu (1 - e^-30) has 4 digits of e^-30 left in float64


def test_clock_against_quadrature():
    """time_to_reach for targets of either sign and size, to 1e-12."""
    mu, v0 = np.array([2.5, 1.0, -1.5, 6.0, 0.02]), np.full(5, 0.05)
    v = mu - (mu - v0) * np.array([1e-4, 0.5, 0.1, 1e-3, 0.3])
    want = [quad(lambda u, m=m: np.exp(-u * u / 2) / (m - u), 0.05, x, epsabs=1e-13, epsrel=1e-13)[0] for m, x in zip(mu, v, strict=True)]
    np.testing.assert_allclose(nonlinear.time_to_reach(v, v0, mu), want, rtol=1e-11)


BOUNCE = {1.0: (3.8e-5, 10.0), 1.5: (3.3e-3, 8.0), 2.0: (2.75e-2, 5.0), 2.5: (6.6e-2, 3.0), 3.0: (6.6e-2, 2.0)}


@pytest.mark.parametrize("largest", BOUNCE)
def test_bounce_of_the_entropy(largest):
    """mu = (m, m/2) from v = .01: the entropy falls below its end by a depth that almost vanishes with m."""
    depth, until = BOUNCE[largest]
    mu = np.array([largest, largest / 2])
    run = odesim.integrate("joma.nonlinear", params={"mu": mu}, initial={"v": 0.01}, span=(0, until), save=2001, rtol=1e-9, atol=1e-12)
    S = run.observables["entropy"]
    weight = np.exp(mu**2 / 2)
    end = entropy(weight / weight.sum())
    assert end - S.min() == pytest.approx(depth, rel=0.02)  # two printed digits
    assert 0 < S.argmin() < 2000 and S[0] > end
    if largest == 2:
        assert run.t[S.argmin()] == pytest.approx(1.526, abs=0.004)


def test_linear_never_bounces():
    """30 random Delta > 0: the entropy only falls."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        Delta = rng.uniform(0.1, 1.0, 5)
        run = odesim.integrate("joma.linear", params={"Delta": Delta}, span=(0, 0.99 * BLOW_UP / Delta.max()), save=50)
        worst = run.invariants["entropy falls"]
        assert worst is not None and worst < 1e-9


def test_fixed_point():
    """v = mu rests, and is reached from above and below."""
    mu = [1.5, -1.0, 0.3]
    run = odesim.integrate("joma.nonlinear", params={"mu": mu}, initial={"v": [2.0, 0.5, 0.3]}, span=(0, 30), **FINE)
    np.testing.assert_allclose(run.y["v"][-1], mu, atol=1e-9)
    assert run.y["v"][-1, 2] == 0.3


FIGURE_4 = (1.2654, 1.3961, 1.9223, 2.3669, 2.4703, 2.4888, 2.8969, 2.9022, 3.3047, 3.6893)


def test_figure_4_as_the_paper_steps_it():
    """Euler steps of .02, T = 3: entropy 2.302585, .941570 at its lowest (iteration 669), 1.549312 at the last."""
    run = odesim.integrate(
        "joma.nonlinear_softmax", params={"T": 3}, span=(0, 99.98), save=5000, method="euler", step=0.02, backend="numpy"
    )
    S, v, mu = run.observables["entropy"], run.y["v"], run.attrs["params"]["mu"]
    np.testing.assert_allclose(mu, FIGURE_4, atol=5e-5)
    assert len(S) == 5000 and S.argmin() == 669
    np.testing.assert_allclose(S[[0, 669, 4999]], [2.302585, 0.941570, 1.549312], atol=1e-6)
    np.testing.assert_allclose(S[[1000, 2000]], [1.0576, 1.3060], atol=5e-5)
    np.testing.assert_allclose(v[-1], [0.954, 1.067, 1.594, 2.180, 2.335, 2.362, 2.894, 2.899, 3.305, 3.689], atol=1e-3)
    assert [int(np.argmax(v[:, k] > 0.9 * mu[k])) for k in (9, 4)] == [475, 4025]
    weight = np.exp(mu**2 / 3)
    assert entropy(weight / weight.sum()) == pytest.approx(1.621577, abs=1e-6)  # the entropy at rest, which is not reached


def test_figure_4_exactly():
    """The flow itself: .940723 at t = 13.40; Euler is never more than 2.1e-3 off in the entropy."""
    times = np.arange(5000) * 0.02
    run = odesim.integrate("joma.nonlinear_softmax", params={"T": 3}, save=times, **FINE)
    S = run.observables["entropy"]
    assert S.min() == pytest.approx(0.940723, abs=1e-6) and run.t[S.argmin()] == pytest.approx(13.40, abs=0.011)
    stepped = odesim.integrate(
        "joma.nonlinear_softmax", params={"T": 3}, span=(0, 99.98), save=5000, method="euler", step=0.02, backend="numpy"
    )
    assert np.abs(stepped.observables["entropy"] - S).max() == pytest.approx(2.1e-3, abs=5e-5)


@pytest.mark.slow
def test_figure_4_in_single_precision():
    """The same Euler steps in float32: the entropy is off by 1.2e-5 at most, in an independent program; rounding, so to a factor of 3."""
    how: dict[str, Any] = {"params": {"T": 3}, "span": (0, 99.98), "save": 5000, "method": "euler", "step": 0.02, "backend": "numpy"}
    single, double = (
        odesim.integrate("joma.nonlinear_softmax", dtype=dtype, **how).observables["entropy"] for dtype in ("float32", "float64")
    )
    assert 4e-6 < np.abs(single - double).max() < 3.6e-5
