"""The latent tree in numbers: Theorem 5 exactly, and the grouped attention it drives."""

from typing import Any

import numpy as np
import pytest

import odesim
from tests.support.truth.joma import entropy

FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}


def P_of(L: int, **params: float) -> np.ndarray:
    """P_H (L-1,) as the model has it."""
    return odesim.integrate("hierarchy.grouped", sizes={"L": L}, params=params, span=(0, 1e-3), backend="numpy").observables["P"][0]


def test_leaves_by_simulation():
    """P_H by sampling the tree itself, 4e5 sequences of a tree with N = 2, L = 4, rho = .9, rho0 = .8: 3 standard errors."""
    rho, n = 0.9, 400_000
    rng = np.random.default_rng(0)
    spins = np.where(rng.random((n, 1)) < 0.1, 1, -1)  # a child of the root: P[y = 1] = (1 - rho0)/2
    for _ in range(3):
        spins = np.repeat(spins, 2, axis=1)
        spins = np.where(rng.random(spins.shape) < (1 + rho) / 2, spins, -spins)
    seen = spins[spins[:, 0] == 1]
    measured = [(seen[:, 2 ** (H - 1) : 2**H] == 1).mean() for H in (1, 2, 3)]
    np.testing.assert_allclose(P_of(4, rho=rho, rho0=0.8), measured, atol=3 * 0.5 / np.sqrt(len(seen)))
    np.testing.assert_allclose(P_of(4, rho=rho, rho0=0.8), [0.77207, 0.58745, 0.43791], atol=5e-6)


@pytest.mark.parametrize(
    ("eps", "off"),
    [(0.1, (-0.0418, -0.0519, -0.0364, 0, 0.0532, 0.1200, 0.1979)), (0.01, (-0.0038, -0.0050, -0.0037, 0, 0.0062, 0.0147, 0.0255))],
)
def test_approximation_of_theorem_5(eps, off):
    """P_H against 1 - H/L at L = 8: off by O(eps), and exact at H = L/2."""
    np.testing.assert_allclose(P_of(8, rho=1 - eps, rho0=1 - eps) - (1 - np.arange(1, 8) / 8), off, atol=5e-5)


def test_grouped_values():
    """N = 2, L = 5, rho = rho0 = .95, kappa = 3: near tokens first; the entropy falls, then rises to its end."""
    run = odesim.integrate("hierarchy.grouped", span=(0, 200), save=np.linspace(0, 200, 2001), **FINE)
    P, v, S = run.observables["P"][0], run.y["v"], run.observables["entropy"]
    np.testing.assert_allclose(P, [0.7845, 0.5900, 0.4145, 0.2561], atol=5e-5)
    np.testing.assert_allclose(v[200], [2.297, 1.394, 0.878, 0.520], atol=6e-4)
    np.testing.assert_allclose(v[500], [2.354, 1.749, 1.143, 0.668], atol=6e-4)
    reached = {e["index"][0]: e["t"] for e in run.events["nine tenths"]}
    np.testing.assert_allclose([reached[h] for h in range(4)], [16.2, 29.1, 45.3, 59.3], atol=0.1)  # read off a grid of 0.1
    assert (S[0], S.min(), run.t[S.argmin()]) == pytest.approx((np.log(15), 2.1723, 24.3), abs=6e-2 / 2000 + 5e-5)
    n = 2 ** np.arange(4)
    leaf = np.repeat(np.exp((3 * P) ** 2 / 2), n)
    assert entropy(leaf / leaf.sum()) == pytest.approx(2.2689, abs=5e-5)
    assert S[-1] == pytest.approx(2.2689, abs=5e-4)
    np.testing.assert_allclose(run.observables["mass"].sum(axis=1), 1, rtol=1e-14)


def test_groups_stand_for_their_leaves():
    """The 15 leaves one by one, in joma.nonlinear_softmax: the same run. 1e-8 is integration."""
    grouped = odesim.integrate("hierarchy.grouped", span=(0, 50), save=6, **FINE)
    n = 2 ** np.arange(4)
    leaves = odesim.integrate(
        "joma.nonlinear_softmax", params={"mu": np.repeat(3 * grouped.observables["P"][0], n), "T": 2}, span=(0, 50), save=6, **FINE
    )
    np.testing.assert_allclose(leaves.y["v"], np.repeat(grouped.y["v"], n, axis=1), atol=1e-8)
    np.testing.assert_allclose(leaves.observables["entropy"], grouped.observables["entropy"], atol=1e-8)


@pytest.mark.parametrize(
    ("L", "ends", "times"),
    [
        (2, (0.50, 0.50), (2.3, 2.3)),
        (3, (0.66, 0.35), (4.8, 11.2)),
        (4, (0.74, 0.29), (8.85, 28.85)),
        (6, (0.82, 0.24), (30.1, 112.0)),
        (8, (0.86, 0.24), (108.6, 380.8)),
    ],
)
def test_deep_and_shallow(L, ends, times):
    """More latent layers raise P of the nearest tokens, lower that of the farthest, and delay these 3.5-fold."""
    run = odesim.integrate("hierarchy.grouped", sizes={"L": L}, span=(0, 450), rtol=1e-8, atol=1e-11, backend="numpy")
    np.testing.assert_allclose(run.observables["P"][0][[0, -1]], ends, atol=6e-3)
    reached = {e["index"][0]: e["t"] for e in run.events["nine tenths"]}
    np.testing.assert_allclose([reached[0], reached[L - 2]], times, atol=0.1)


@pytest.mark.slow
def test_correlation_of_a_layer_by_sampling():
    """r1 of hierarchy.gated: what weights v exp(v^2/2) and the query itself make of 27 leaves, beside its parent; 4 standard errors."""
    rng, n, rho = np.random.default_rng(3), 400_000, 0.8
    levels = [np.where(rng.random((n, 1)) < 0.5, 1.0, -1.0)]  # a child of the root, of mean 0
    for _ in range(3):
        below = np.repeat(levels[-1], 3, axis=1)
        levels.append(np.where(rng.random(below.shape) < (1 + rho) / 2, below, -below))
    leaves, parent, v = levels[3], levels[2][:, 0], np.array([0.9, 0.6, 0.4])
    near, middle, far = v * np.exp(v**2 / 2)
    found = leaves[:, 0] + near * leaves[:, 1:3].sum(axis=1) + middle * leaves[:, 3:9].sum(axis=1) + far * leaves[:, 9:].sum(axis=1)
    sampled = np.corrcoef(found, parent)[0, 1]
    params = {"N": 3.0, "rho": rho, "rho0": 0.0}
    run = odesim.integrate("hierarchy.gated", params=params, initial={"v1": v}, span=(0, 1e-9), backend="numpy")
    assert run.observables["r1"][0] == pytest.approx(sampled, abs=4 * (1 - sampled**2) / np.sqrt(n))
