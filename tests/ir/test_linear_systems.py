"""Linear systems whose solutions have components of very different sizes, against 700 digits."""

from typing import Any

import mpmath
import numpy as np
import pytest

from odesim.base.arrays import Array
from odesim.ir import linear_systems
from odesim.ir.linear_systems import PART, Jacobian, Krylov, Pattern, Products, Sparse, Structured, UnsolvableError

SHAPES = ("band", "sparse", "blocks")
LEAST = 1e-9


def jacobian(shape: str, n: int, rng: np.random.Generator) -> Jacobian:
    """A random Jacobian (n, n) with entries of 1e-3 to 1e3 or 1e-12 to 1e-8; of blocks also with two sums, which many rows do not read."""
    low, high = ((-3, 3), (-12, -8))[rng.integers(2)]
    if shape == "blocks":
        U, G = rng.normal(size=(2, n, 2))
        U[rng.random(n) < 0.7] = 0.0
        blocks = rng.normal(size=(n // 2, 2, 2)) * 10.0 ** rng.uniform(low, high, (n // 2, 2, 2))
        return Structured(blocks, rng.permutation(n // 2 * 2).reshape(-1, 2), U, G)
    if shape == "band":
        width = int(rng.integers(1, 4))
        rows, columns = np.nonzero(np.abs(np.subtract.outer(range(n), range(n))) <= width)
    else:
        rows, columns = rng.integers(0, n, (2, 4 * n))
    entries = rng.normal(size=len(rows)) * 10.0 ** rng.uniform(low, high, len(rows))
    pattern = Pattern(n, n, rows, columns)
    return Sparse(pattern, pattern.fill(entries))


def right_hand_side(n: int, rng: np.random.Generator) -> Array:
    """Components of all sizes from 1e-300 to 1, or 1 in the first place and 0 elsewhere."""
    if rng.random() < 0.5:
        return np.where(np.arange(n) == 0, 1.0, 0.0)
    return 10.0 ** rng.uniform(-300, 0, n) * rng.choice([-1.0, 1.0], n)


def solution(A: Array, b: Array) -> Array:
    """The solution of A x = b, from 700 digits."""
    with mpmath.workdps(700):
        x: Any = mpmath.lu_solve(mpmath.matrix(A.tolist()), mpmath.matrix(b.tolist()))
        return np.array([float(v) for v in x])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("shape", SHAPES)
def test_solution(shape: str, seed: int) -> None:
    """Every component has an error that a relative error of 1e-11 in the terms of each row explains; components count from LEAST up."""
    rng = np.random.default_rng(seed)
    for n in (8, 20, 40):
        J, b = jacobian(shape, n, rng), right_hand_side(n, rng)
        A = (shift := 10.0 ** rng.uniform(0, 3)) * np.eye(n) - J.dense()
        if np.linalg.cond(A) > 1e8:
            continue
        x, want = J.solver(shift, LEAST)(b), solution(A, b)
        terms = np.abs(b) + np.abs(A) @ (np.abs(want) + LEAST)
        # sparse ones are not refined: elimination with pivots is exact for a matrix that differs by rounding of its norm, not of entries
        normwise = 1e-14 * np.linalg.norm(A, np.inf) * np.abs(want).max() if shape == "sparse" else 0.0
        assert np.all(np.abs(x - want) <= np.abs(np.linalg.inv(A)) @ (1e-11 * terms + normwise))


# Linear systems by products alone, against dense numpy, and what ends their search.

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
