"""Parities: the flow of three factors beside gradient descent on samples, and where its weights go from starts that differ."""

from itertools import product

import numpy as np

import odesim


def test_descent_on_the_cube_follows_the_flow() -> None:
    """1000 steps of descent on all inputs of six bits from random weights: first order in the step, 4/1000, and a few units of growth."""
    rng = np.random.default_rng(2)
    W = 0.3 * rng.standard_normal((3, 6))
    run = odesim.integrate(
        "parity.product", sizes={"N": 6}, initial=dict(zip("uvw", W, strict=True)), span=(0, 4), backend="numpy", rtol=1e-9
    )
    x = np.array(list(product((-1.0, 1.0), repeat=6)))
    chi = x[:, :3].prod(axis=1)
    for _ in range(1000):
        f = x @ W.T
        W = W + 0.004 * np.array([(chi * np.delete(f, j, axis=1).prod(axis=1)) @ x / len(x) for j in range(3)])
    assert np.abs(W - np.array([run.final[name] for name in "uvw"])).max() < 0.02 * np.abs(W).max()


def test_factors_become_alike() -> None:
    """From normal weights no factor takes a bit of its own: of rows of a norm the even ones have the larger permanent, by 2/sqrt(3)."""
    start = dict(zip("uvw", 0.1 * np.random.default_rng(0).standard_normal((3, 5)), strict=True))
    events = [f"at {k}: correlation - {10.0**k}" for k in (0, 3, 9)]
    run = odesim.integrate("parity.product", initial=start, span=(0, 1e4), events=events, backend="numpy")
    uneven = []
    for k in (0, 3, 9):
        W = np.array(list(run.at(run.events[f"at {k}"][0]["t"]).values()))
        shares = W**2 / (W**2).sum(axis=1, keepdims=True)
        uneven.append(np.abs(shares[:, :3] - 1 / 3).max())
    assert uneven[0] > uneven[1] > 3 * uneven[2] and uneven[2] < 0.1
    assert np.abs(np.sign(W[:, :3]).sum(axis=0)).tolist() in ([1, 1, 1], [3, 3, 3])  # equal signs, up to one for each factor
