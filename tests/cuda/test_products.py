"""Products of matrices in the CUDA text of one large system: the bits of numba, whatever the tiles."""

from typing import Any

import numpy as np
import pytest
from sympy import S, Sum

import odesim
from odesim.symbolic import IndexedBase, Param, Source, System, index, over, sizes
from tests.cuda.test_wide import Shim, same

i, j, k, q = index("i j k q")
N, M, K, Q = sizes("N M K Q")
Y, Z, B, x = (IndexedBase(name, shape=shape) for name, shape in (("Y", (N, M)), ("Z", (N, K)), ("B", (M, K)), ("x", (Q,))))
SYSTEM = System(
    name="test.products", source=Source("none", "made for the tests"), axes={i: N, j: M, k: K, q: Q},
    equations={
        Y[i, j]: over(Sum, Z[i, k] * B[j, k], (k, K)) - Y[i, j],
        Z[i, k]: over(Sum, Y[i, j] * B[j, k], (j, M)) - Z[i, k],
        x[q]: -x[q] * q / Q,
    },
    params=(Param(B, 1, S.Reals, "a matrix"),), initial={Y[i, j]: 1 + i - j, Z[i, k]: 1 / (i + k + 1), x[q]: 1},
)  # fmt: skip


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 2, 2, 9000), (5, 17, 16, 1), (33, 32, 31, 1), (65, 64, 1, 1), (31, 66, 130, 1)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_wide_products(dtype: str, sizes: tuple[int, ...], cuda: Shim) -> None:
    """Matrices as they are and turned, less than a tile, a tile, a bit more."""
    cuda()
    compare(sizes, dtype)


@pytest.mark.first(1)
@pytest.mark.parametrize("multiprocessors", [2, 4])
def test_shim_products_where_tiles_are_few(multiprocessors: int, shim: Shim) -> None:
    """One tile for three blocks of threads, and for seven: there a thread takes an element."""
    shim(multiprocessors=multiprocessors)
    compare((30, 20, 10, 9000), "float64")


def compare(sizes: tuple[int, ...], dtype: str) -> None:
    """Both backends, sizes N, M, K, Q."""
    options: dict[str, Any] = {"sizes": dict(zip("NMKQ", sizes, strict=True)), "params": {"B": "normal(0,1)"}, "span": (0.0, 0.1)}
    options |= {"dtype": dtype, "method": "rk4", "step": 0.02, "seed": 3, "strict": True}
    same(odesim.integrate(SYSTEM, **options), odesim.integrate(SYSTEM, backend="cuda", **options))


@pytest.mark.gpu
@pytest.mark.parametrize(
    "sizes", [(16, 8, 8, 1), (31, 66, 130, 1), (65, 64, 9, 1), (300, 200, 70, 1), (2600, 790, 61, 1), (1030, 1024, 7, 1)]
)
def test_products_by_matrix_units(sizes: tuple[int, ...], on_device: Shim) -> None:
    """Outside strict mode: one fragment, parts of tiles, tiles of all sizes, too short a sum: numba's numbers to rounding."""
    on_device(False)
    options: dict[str, Any] = {"sizes": dict(zip("NMKQ", sizes, strict=True)), "params": {"B": "normal(0,0.1)"}, "span": (0.0, 0.1)}
    options |= {"method": "rk4", "step": 0.02, "seed": 3}
    there, here = (odesim.integrate(SYSTEM, backend=backend, **options).y_end for backend in ("cuda", "numba"))
    for name, value in here.items():
        np.testing.assert_allclose(there[name], value, rtol=0, atol=1e-12 * abs(value).max(), err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_of_whole_numbers_and_repeated_indices(dtype: str, cuda: Shim) -> None:
    """A matrix of whole numbers, and a diagonal taken out of an array of three axes, have the bits of numba too."""
    cuda()
    J, A = IndexedBase("J", shape=(N, N)), IndexedBase("A", shape=(M, N, M))
    turned = IndexedBase("B", shape=(M, M))
    rhs = over(Sum, J[i, q] * Y[q, j], (q, N)) / 9 + over(Sum, A[k, i, k] * turned[j, k], (k, M)) - Y[i, j]
    params = (Param(J, 1, S.Integers, "whole"), Param(A, 1, S.Reals, "a cube"), Param(turned, 1, S.Reals, "a matrix"))
    made = System("test.whole", SYSTEM.source, {i: N, j: M}, {Y[i, j]: rhs}, params, {Y[i, j]: 1 + i - j})
    options: dict[str, Any] = {"sizes": {"N": 5, "M": 3}, "params": {"A": "normal(0,1)", "B": "normal(0,1)"}, "span": (0.0, 0.1)}
    options |= {"dtype": dtype, "method": "rk4", "step": 0.02, "seed": 3, "strict": True}
    same(odesim.integrate(made, **options), odesim.integrate(made, backend="cuda", **options))


def test_many_products(cuda: Shim) -> None:
    """A product for each of many, products that are added up, a turned vector: the bits of numba."""
    A, C, V, w = (IndexedBase(name, shape=shape) for name, shape in (("A", (Q, N, K)), ("C", (Q, K, M)), ("V", (N, K)), ("w", (K,))))
    many, added = over(Sum, A[q, i, k] * C[q, k, j], (k, K)), over(Sum, A[q, i, k] * C[q, k, j], (k, K), (q, Q))
    turned = over(Sum, V[i, k] * w[k], (k, K)) + over(Sum, C[q, k, j] * over(Sum, V[i, k] * 0.5, (i, N)), (k, K))
    system = System(
        name="test.many_products", source=Source("none", "made for the tests"), axes={q: Q, i: N, j: M, k: K},
        equations={
            A[q, i, k]: over(Sum, many * C[q, k, j], (j, M)) - A[q, i, k],
            V[i, k]: over(Sum, added * C[0, k, j], (j, M)) - V[i, k],
            w[k]: over(Sum, V[i, k] * turned.subs(j, 0).subs(q, 0), (i, N)) - w[k],
        },
        params=(Param(C, 0.1, S.Reals, "matrices"),), initial={A[q, i, k]: 1 + i - k + q, V[i, k]: 1 / (i + k + 1), w[k]: 1},
    )  # fmt: skip
    cuda()
    run: dict[str, Any] = {"sizes": {"N": 5, "M": 4, "K": 3, "Q": 2}, "span": (0.0, 0.5), "save": 3, "strict": True}
    same(odesim.integrate(system, backend="cuda", **run), odesim.integrate(system, **run))
