"""Linear systems whose solutions have components of very different sizes, against 700 digits."""

from typing import Any

import mpmath
import numpy as np
import pytest

from odesim.base.arrays import Array
from odesim.ir.linear_systems import Jacobian, Pattern, Sparse, Structured

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
