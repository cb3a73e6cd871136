"""Linear systems by products alone, against dense numpy, and what ends their search."""

import numpy as np
import pytest

from odesim.base.arrays import Array
from odesim.ir import linear_systems
from odesim.ir.linear_systems import PART, Krylov, Products, UnsolvableError

N = 60
RANDOM = np.random.default_rng(5).standard_normal((N, N))
ROTATION = np.roll(np.eye(N), 1, axis=0)
# eigenvalues around a disk; far apart on the diagonal alone; a matrix that turns each unit vector into the next
JACOBIANS: dict[str, Array] = {
    "disk": RANDOM,
    "decay": -RANDOM @ RANDOM.T,
    "diagonal": RANDOM - np.diag(np.geomspace(1, 1e6, N)),
    "growth": RANDOM + np.diag(np.geomspace(1, 1e6, N)),
    "rotation": 2.0 * (np.eye(N) - ROTATION),
}


def products(J: Array, counted: list[int] | None = None) -> Products:
    """A matrix as Products; each is counted."""

    def times(x: Array) -> Array:
        if counted is not None:
            counted[0] += 1
        return np.asarray(J @ x)

    return Products(times, np.diag(J).copy())


@pytest.mark.parametrize("name", JACOBIANS)
def test_residual(name):
    """What is left of each right side is at most PART in the units of components, which may be of any sizes."""
    rng, shift, J = np.random.default_rng(6), 2.0, JACOBIANS[name]
    units = np.geomspace(1e-9, 1e-3, N)
    J = J * units[:, None] / units
    solve = Krylov(products(J), shift, units)
    for b in 1e4 * units * rng.standard_normal((3, N)):
        left = (b - shift * solve(b) + J @ solve(b)) / (shift * units)
        assert np.sqrt(np.mean(left**2)) <= 1.01 * PART  # and rounding of N steps


def test_a_residual_that_does_not_fall():
    """No product with a residual has a part along it, up to the last direction, in which the solution lies: GCR would break down."""
    b = np.eye(N)[0]
    x = Krylov(products(JACOBIANS["rotation"]), 2.0, np.full(N, 1e-6))(b)
    np.testing.assert_allclose(x, np.linalg.solve(2.0 * ROTATION, b), atol=1e-9)


def test_right_sides_share_their_directions():
    """A right side in the span of earlier ones takes no product, and one near it few."""
    rng, count, J = np.random.default_rng(7), [0], JACOBIANS["decay"]
    solve = Krylov(products(J, count), 30.0, np.full(N, 1e-6))
    first, second = rng.standard_normal((2, N))
    solve(first)
    alone = count[0]
    solve(0.5 * first)
    assert count[0] == alone > 10
    solve(first + 1e-4 * second)  # from 1e-4 down to PART, not from 1
    assert count[0] < 1.7 * alone


def test_decay_on_the_diagonal_takes_few_products():
    """Rates from 1 to 1e6 that stand on the diagonal take as many products as the rest, some 20; without the diagonal all N."""
    counts = []
    for diagonal in (True, False):
        count = [0]
        J = products(JACOBIANS["diagonal"], count)
        J = J if diagonal else Products(J.times, np.zeros(N))
        Krylov(J, 100.0, np.full(N, 1e-6))(np.ones(N))
        counts.append(count[0])
    assert counts[0] < 20 < 35 < counts[1]


def test_unsolvable(monkeypatch):
    """Numbers that are none, a matrix that is singular, and one that needs more directions than there may be."""
    ones = np.ones(N)
    with np.errstate(invalid="ignore"):
        for J, b in ((np.full((N, N), np.nan), ones), (RANDOM, np.nan * ones), (2.0 * np.eye(N), ones)):
            with pytest.raises(UnsolvableError):
                Krylov(products(J), 2.0, ones)(b)
    monkeypatch.setattr(linear_systems, "MOST_DIRECTIONS", 3)
    with pytest.raises(UnsolvableError):
        Krylov(products(RANDOM), 2.0, 1e-6 * ones)(ones)
