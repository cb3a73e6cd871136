"""A large system that is a product of matrices, Y' = A Y - Y, beside cuBLAS's product of the same two matrices."""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from card import TimedKernel, free_all, peak_rate, time_kernel
from sympy import S, Sum

import odesim
from odesim.base.device import cupy_here
from odesim.run import problem
from odesim.symbolic import IndexedBase, Param, Source, System, index, over, sizes

STEPS, STAGES, CHECKED = 5, 4, 8  # of rk4; columns
COLUMNS = (
    ("n", "n", "d"), ("ms a right-hand side", "stage", ".3f"), ("cuBLAS, ms", "blas", ".3f"), ("cuBLAS / odesim", "ratio", ".2f"),
    ("of peak", "peak", ".2f"), ("error", "error", ".1e"),
)  # fmt: skip


def product_system() -> System:
    """Y (N, N), A (N, N)."""
    i, j, k = index("i j k")
    (N,) = sizes("N")
    Y, A = (IndexedBase(name, shape=(N, N)) for name in "YA")
    right = over(Sum, A[i, k] * Y[k, j], (k, N)) - Y[i, j]
    about: dict[str, Any] = {"params": (Param(A, 0, S.Reals, "a matrix"),), "initial": {Y[i, j]: 1}}
    return System(name="benchmark.product", source=Source("none", "this benchmark"), axes={i: N, j: N}, equations={Y[i, j]: right}, **about)


def product_rows(most: int, rounds: int) -> Iterator[dict[str, Any]]:
    """One row for each size that there is room for. The error: of some columns at the end, against rk4 in numpy, relative."""
    cp, system = cupy_here(), product_system()
    for n in (64, 256, 1024, 2048, 4096):
        if n > most:
            break
        a = np.random.default_rng(0).normal(size=(n, n)) / n**0.5
        h, right = 0.1, problem.cuda_rhs(problem.parts_of(system, "cuda", "float64", False).compiled)
        timed = time_kernel(right)
        options: dict[str, Any] = {"params": {"A": a}, "initial": {"Y": np.eye(n)}, "span": (0.0, STEPS * h), "method": "rk4", "step": h}
        try:
            found, taken = odesim.integrate(system, backend="cuda", **options), []
            for _ in range(rounds):
                timed.taken()
                odesim.integrate(system, backend="cuda", **options)
                taken.append(timed.taken())
        except Exception as e:  # no room here or on the device: what was measured stays
            print(f"n = {n} left out: {type(e).__name__}: {str(e)[:200]}", file=sys.stderr, flush=True)
            break
        y = np.eye(n)[:, :CHECKED]
        for _ in range(STEPS):  # the equation is linear: a step of rk4 is four terms of its series
            term = y
            for k in range(1, STAGES + 1):
                term = (a @ term - term) * (h / k)
                y = y + term
        one, two, out, multiply = cp.asarray(a), cp.asarray(a), cp.zeros((n, n)), TimedKernel(cp.matmul)
        multiply(one, two, out=out)
        multiply.taken()
        for _ in range(rounds * STEPS * STAGES):
            multiply(one, two, out=out)
        stage, blas = float(np.median(taken)) / (STEPS * STAGES), multiply.taken() / (rounds * STEPS * STAGES)
        error = float(abs(found.y_end["Y"][:, :CHECKED] - y).max() / abs(y).max())
        row = {"n": n, "stage": 1e3 * stage, "blas": 1e3 * blas, "ratio": blas / stage, "error": error}
        most_done = peak_rate()
        yield row | ({"peak": 2 * n**3 / stage / most_done} if most_done else {})
        free_all()
