"""Matrix products of compiled code: any arrangement in memory, any size, BLAS and our own loops give numpy's product."""

from itertools import product as combinations
from typing import Any

import numba
import numpy as np
import pytest

from odesim.base.device import gemm_address
from odesim.runtime import matrices

SIZES = (
    (1, 1, 1),
    (1, 5, 7),
    (7, 5, 1),
    (3, 4, 5),
    (3, 0, 5),
    (2, 9, 2),
    (33, 17, 40),
    (1, 2500, 3),
    (3, 1100, 2),
    (4, 1, 30),
    (30, 40, 1),
    (1, 40, 4200),
    (9, 130, 21),
    (41, 35, 40),
    (170, 150, 160),
)
"""(rows, depth, columns): below and above both sizes from which BLAS is called, vectors longer than the part that is read in one go, edges
of tiles of each width, and more depth than is copied at a time."""


@numba.njit
def blas(gemm: int, out: Any, a: Any, b: Any, steps: Any, shape: Any, add: int) -> None:
    matrices.blas_product(gemm, out, a, b, steps, shape, add)


@numba.njit
def strict(gemm: int, out: Any, a: Any, b: Any, steps: Any, shape: Any, add: int) -> None:
    matrices.product_strict(out, a, b, steps, shape, add)


def laid_out(a: np.ndarray, order: str) -> tuple[np.ndarray, tuple[int, int]]:
    """The memory of a matrix stored by rows, by columns, or with gaps, and the distances between its rows and between its columns."""
    if order == "rows":
        return a.ravel().copy(), (a.shape[1], 1)
    if order == "columns":
        return a.T.ravel().copy(), (1, a.shape[0])
    wide = np.zeros((a.shape[0], 2 * a.shape[1] + 1), a.dtype)
    wide[:, : 2 * a.shape[1] : 2] = a
    return wide.ravel(), (wide.shape[1], 2)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
def test_every_arrangement(dtype: str) -> None:
    rng = np.random.default_rng(0)
    eps = np.finfo(dtype).eps
    orders = list(combinations(("rows", "columns", "gaps"), repeat=3))
    for (rows, depth, columns), add in [*combinations(SIZES[:-1], (0, 1)), (SIZES[-1], 1)]:
        a, b = rng.normal(size=(rows, depth)).astype(dtype), rng.normal(size=(depth, columns)).astype(dtype)
        before = rng.normal(size=(rows, columns)).astype(dtype)
        want = a.astype(float) @ b.astype(float) + add * before
        bound = (depth + 2) * eps * (np.abs(a) @ np.abs(b) + np.abs(before))  # of a sum in any order, for each element
        for order_a, order_b, order_out in orders[:: 1 if rows < 100 else 5]:
            (left, p), (right, q), (out, o) = laid_out(a, order_a), laid_out(b, order_b), laid_out(before, order_out)
            for function, gemm in ((blas, gemm_address(dtype)), (blas, 0), (strict, 0)):
                found = out.copy()
                function(gemm, found, left, right, (*o, *p, *q), (rows, depth, columns), add)
                got = np.lib.stride_tricks.as_strided(found, (rows, columns), [step * found.itemsize for step in o])
                where = f"{(rows, depth, columns)} {order_a} {order_b} {order_out} {add}"
                assert np.all(np.abs(got - want) <= bound), where
                if order_out == "gaps":  # nothing beside the matrix is touched
                    assert np.count_nonzero(found) <= rows * columns, where


@pytest.mark.slow
def test_strict_sums_run_up() -> None:
    """Each element is summed from k = 0 up, whatever the arrangement and beyond the depth that is copied at a time: the same bits."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(6, 137)), rng.normal(size=(137, 9))
    want = np.zeros((6, 9))
    for k in range(137):
        want += np.outer(a[:, k], b[k])
    for order_a, order_b, order_out in combinations(("rows", "columns", "gaps"), repeat=3):
        (left, p), (right, q), (out, o) = laid_out(a, order_a), laid_out(b, order_b), laid_out(np.zeros((6, 9)), order_out)
        strict(0, out, left, right, (*o, *p, *q), (6, 137, 9), 0)
        got = np.lib.stride_tricks.as_strided(out, (6, 9), [step * 8 for step in o])
        np.testing.assert_array_equal(got, want, err_msg=f"{order_a} {order_b} {order_out}")
