"""Expressions that are hard to index, to compute or to differentiate: both backends against plain recursion over every index."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from sympy import ITE, Abs, Eq, Expr, KroneckerDelta, Max, Piecewise, Rational, S, Sum, ceiling, exp, floor, sign, symbols

from odesim.base.arrays import Layout
from odesim.ir.adjoint import lower_vjp
from odesim.ir.derive import jvp
from odesim.ir.passes import lower
from odesim.ir.sizes import extents
from odesim.symbolic import IndexedBase, MaxOver, Param, System, index, logsumexp, over, sizes, softmax
from odesim.targets.compiled import compile_system
from odesim.targets.numpy_text import ArrayFunction
from tests.support.brute import right_side
from tests.support.matrix import slow_but
from tests.support.systems import SOURCE, param

m, k, l, q = index("m k l q")
M, K, Q, R = sizes("M K Q R")
v, x, w = IndexedBase("v", shape=(M,)), IndexedBase("x", shape=(M,)), IndexedBase("w", shape=(Q,))
Z, X, C = IndexedBase("Z", shape=(Q, M)), IndexedBase("X", shape=(M, K, M)), IndexedBase("C", shape=(K, M, M))
W, U = IndexedBase("W", shape=(Q, Q)), IndexedBase("U", shape=(Q, K, R))
psi, chi, rho = IndexedBase("psi", shape=(M, K)), IndexedBase("chi", shape=(K, M)), IndexedBase("rho", shape=(R,))  # rows of Q
pick, big = IndexedBase("pick", shape=(M,)), IndexedBase("big", shape=(M,))  # rows of R; whole numbers of nothing
k_1 = symbols("k_1", real=True)
SIZES = {"M": 5, "K": 3, "Q": 4, "R": 2}

HARD: dict[str, Expr] = {
    "gather by a matrix": over(Sum, w[psi[m, k]] * v[m], (k, K)),
    "gather by its transpose": over(Sum, w[chi[k, m]] * v[l], (k, K), (l, M)),
    "gather of a gather": w[rho[pick[m]]] * v[m],
    "row by a gather of a gather": over(Sum, Z[rho[pick[m]], l] * v[l], (l, M)),
    "two gathers": over(Sum, W[psi[m, k], chi[k, m]], (k, K)) * v[m],
    "one gather twice": W[rho[pick[m]], rho[pick[m]]] * v[m],
    "gathers around an index": over(Sum, U[psi[l, k], k, pick[m]] * v[l], (k, K), (l, M)),
    "gather at a number": w[psi[m, 1]] * v[m] + w[psi[2, 1]] + Z[rho[0], m],
    "index twice": over(Sum, X[m, k, m] * v[m], (k, K)),
    "index twice in two sums": over(Sum, X[l, k, l] * v[m] * v[l], (k, K), (l, M)),
    "index twice at the end": over(Sum, C[k, m, m], (k, K)) * v[m],
    "index twice around a number": X[m, 1, m] * C[2, m, 0] * v[m],
    "index of the outer sum in the inner one": over(Sum, Z[psi[m, k], l] * v[l], (k, K), (l, M)),
    "scatter by a matrix": over(Sum, over(Sum, KroneckerDelta(q, psi[l, k]) * v[l] * x[l], (k, K), (l, M)) ** 2, (q, Q)),
    "scatter by a row of a matrix": over(Sum, KroneckerDelta(q, psi[m, k]) * w[q] ** 2 * v[m], (k, K), (q, Q)),
    "scatter by a gather": over(Sum, over(Sum, KroneckerDelta(q, rho[pick[l]]) * exp(v[l]), (l, M)) ** 2 * w[q], (q, Q)),
    "delta of gathers": over(Sum, KroneckerDelta(psi[m, k], chi[k, m]) * v[m], (k, K)),
    "delta of a shifted index": over(Sum, KroneckerDelta(m, l + 1) * v[l], (l, M)),
    "powers of whole numbers": big[m] ** 4 * v[m] + over(Sum, big[l] ** 9, (l, M)) / 10**30 + big[m] * (big[m] + 1) ** 3,
    "the largest of whole numbers": over(MaxOver, big[k] ** 7, (k, M)) * x[m] * v[m],
    "the largest product": over(MaxOver, v[k] * x[k] - v[m] ** 2, (k, M)) * v[m],
    "the largest of rows": over(MaxOver, Z[q, m] * w[q] * v[m], (q, Q)) + over(MaxOver, v[k], (k, M)),
    "the largest over two indices": over(MaxOver, C[k, m, l] * v[l] + v[l], (k, K), (l, M)) * v[m],
    "the largest of sums": over(MaxOver, over(Sum, X[k, q, l] * v[l] ** 2, (l, M)) * v[k], (k, M), (q, K)),
    "the largest of the largest": over(MaxOver, v[k] * over(MaxOver, X[m, q, k] * v[k], (q, K)), (k, M)) + v[m],
    "the largest of what does not vary": over(MaxOver, v[m] ** 2, (k, M)),
    "softmax with weights of 0": over(Sum, softmax(x[k] * v[k], (k, M), weight=pick[k]) * v[k], (k, M)),
    "softmax with a mask": softmax(v[m] * (1000 * m - 1), (m, M), weight=Piecewise((1, m < 2), (0, True))),
    "logsumexp with weights of 0": logsumexp(v[k] * (1 + 2000 * (1 - pick[k])), (k, M), weight=-pick[k] * (-2)) * v[m],
    "logsumexp with a weight that passes 0": logsumexp(v[k], (k, M), weight=Max(v[k], 0)) * v[m],
    "condition on a gather": Piecewise((v[m] ** 2, Eq(pick[m], 1)), (2 * v[m], True)),
    "row of a gathered row by a matrix": over(Sum, Z[psi[m, k], l] * X[m, k, l] * v[l], (k, K), (l, M)),
    "not one of two conditions": Piecewise((v[m] ** 2, ~((v[m] > x[0]) | Eq(pick[m], 1))), (x[m], True)),
    "a choice between conditions": Piecewise((v[m], ITE(v[m] > 0, x[m] > 0, Eq(pick[m], 1))), (v[m] ** 2, True)),
    "absolute value of a product with a whole number": Abs(pick[m] * v[m]) * x[m] + Abs(v[m] * x[m]),
    "absolute value of an exponential": Abs(exp(v[m])),
    "steps": floor(3 * v[m]) * x[m] + ceiling(2 * v[m]) * v[m] + sign(v[m]) * v[m] ** 2 + Max(v[m], x[m]),
    "the larger of an exponential and a partial sum": Max(exp(v[m]), Sum(KroneckerDelta(m, l) * v[l], (l, 0, m))),
    "a summed index of a parameter's name": k_1 * over(Sum, softmax(v[k], (k, M)) * v[k], (k, M)) + Rational(1, 3) * k_1 * m,
}


@cache
def hard(first: int = 0, step: int = 1) -> System:
    """All of them, or some, as one System: h0, h1, ... change at these rates."""
    chosen = list(enumerate(HARD.values()))[first::step]
    equations = {v[m]: -v[m], **{IndexedBase(f"h{n}", shape=(M,))[m]: e for n, e in chosen}}
    rows = {psi: Q, chi: Q, rho: Q, pick: R, big: None}
    return System(
        name="hard", source=SOURCE, axes={m: M}, equations=equations, initial=dict.fromkeys(equations, 0),
        params=(*map(param, (x, w, Z, X, C, W, U, k_1)), *(Param(p, 0, S.Naturals0, "rows", indexes=n) for p, n in rows.items())),
    )  # fmt: skip


@cache
def numbers() -> tuple[dict[str, Any], Layout, np.ndarray]:
    """(parameters, where the states lie, a flat state); every row of Q and R is named, none in order."""
    rng = np.random.default_rng(0)
    params: dict[str, Any] = {p.name: rng.normal(size=extents(p.shape, SIZES)) for p in hard().params if not p.integer}
    params["k_1"] = 0.7
    params |= {"psi": rng.permutation(np.arange(15) % 4).reshape(5, 3), "chi": rng.permutation(np.arange(15) % 4).reshape(3, 5)}
    params |= {"pick": np.array([0, 1, 1, 0, 1]), "rho": np.array([3, 1]), "big": np.array([70_000, 3, 65_537, 99_999, 80_001])}
    where = Layout(hard().states, tuple(extents(s, SIZES) for s in hard().shapes.values()))
    return params, where, rng.normal(size=where.size)


@cache
def truth() -> dict[str, np.ndarray]:
    params, where, y = numbers()
    return right_side(hard(), {**SIZES, **params, **where.split(y), "t": 0.3})


@cache
def rates(dtype: str) -> np.ndarray:
    """The right-hand side on whole arrays of this dtype, as one vector."""
    params, where, y = numbers()
    given = {n: p.astype(dtype) if isinstance(p, np.ndarray) and p.dtype == float else p for n, p in params.items()}
    made = ArrayFunction(lower(hard()))(SIZES, {**given, **where.split(y.astype(dtype)), "t": 0.3})
    return where.join({n: made[f"d_{n}"] for n in where.names}, dtype)


PARTS = 5
"""Systems into which the expressions are divided for numba, which takes some seconds for each."""


@cache
def computed(backend: str, dtype: str, part: int) -> dict[str, np.ndarray]:
    """The rates of one expression in PARTS, compiled as one."""
    params, where, y = numbers()
    if backend == "numpy":
        return where.split(rates(dtype))
    system = hard(part, PARTS)
    own = Layout(system.states, tuple(extents(s, SIZES) for s in system.shapes.values()))
    given, out = own.join({name: where.split(y)[name] for name in own.names}, dtype), np.full(own.size, np.nan, dtype)
    compile_system(system, dtype=dtype).bind(SIZES, params)(0.3, given, out)
    return own.split(out)


TABLE = [(case, backend, dtype) for case in HARD for backend in ("numpy", "numba") for dtype in ("float64", "float32")]
FIRST = [(case, "numpy", "float64") for case in HARD] + [(case, "numba", "float64") for case in [*HARD][::PARTS]]


@pytest.mark.parametrize(("case", "backend", "dtype"), slow_but(TABLE, FIRST, several=True))
def test_the_value_is_that_of_the_expression(case, backend, dtype):
    """Rounding of a few hundred operations on numbers up to 3."""
    place = list(HARD).index(case)
    name = f"h{place}"
    rounding = 1e-13 if dtype == "float64" else 2e-5
    np.testing.assert_allclose(
        computed(backend, dtype, place % PARTS)[name], truth()[name], rtol=rounding, atol=rounding * np.abs(truth()[name]).max()
    )


@cache
def along() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(w, J w, the difference quotient along w) at the state."""
    params, where, y = numbers()
    w, f = np.random.default_rng(1).normal(size=where.size), ArrayFunction(lower(hard()))
    both = {**where.split(y), **{f"w_{n}": a for n, a in where.split(w).items()}}
    made = ArrayFunction(lower(jvp(hard())))(SIZES, {**params, **both, "t": 0.3})
    ends = [f(SIZES, {**params, **where.split(y + e * w), "t": 0.3}) for e in (1e-6, -1e-6)]
    quotient = {n: (ends[0][f"d_{n}"] - ends[1][f"d_{n}"]) / 2e-6 for n in where.names}
    return w, where.join({n: made[f"d_w_{n}"] for n in where.names}), where.join(quotient)


@pytest.mark.first(12)
@pytest.mark.parametrize("case", HARD)
def test_the_derivative_is_the_limit_of_differences(case):
    """Central differences with step 1e-6: truncation 1e-12, rounding 1e-10 of the value."""
    _, where, _ = numbers()
    name, (_, product, quotient) = f"h{list(HARD).index(case)}", along()
    got, want = where.split(product)[name], where.split(quotient)[name]
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8 * np.abs(truth()[name]).max())


@pytest.mark.first(11)
@pytest.mark.parametrize("case", HARD)
def test_the_transposed_derivative_is_the_transpose(case):
    """<u, J w> = <J^T u, w> for a u that asks for one expression alone, exact but for rounding."""
    params, where, y = numbers()
    w, product, _ = along()
    name, u = f"h{list(HARD).index(case)}", np.zeros(where.size)
    where.split(u)[name][...] = [0.3, -1.0, 0.7, 2.0, -0.4]
    back = transposed()(SIZES, {**params, **where.split(y), **{f"u_{n}": a for n, a in where.split(u).items()}, "t": 0.3})
    got = where.join({n: back[f"d_u_{n}"] for n in where.names}) @ w
    assert got == pytest.approx(u @ product, rel=1e-11, abs=1e-12 * np.abs(u) @ np.abs(product))


@cache
def transposed() -> ArrayFunction:
    return ArrayFunction(lower_vjp(hard()))


@pytest.mark.first(1)
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_powers_of_large_indices(backend):
    """m^6 at m = 9999 and M^5 m: beyond int64, and exact to rounding."""
    system = System(name="far", source=SOURCE, axes={m: M}, equations={v[m]: m**6 + M**5 * m - 0 * v[m]}, params=(), initial={v[m]: 0})
    rhs, n = compile_system(system), 10_000
    out = np.empty(n)
    if backend == "numpy":
        out[...] = rhs.arrays({"M": n}, {"v": out})["d_v"]
    else:
        rhs.bind({"M": n}, {})(0.0, np.zeros(n), out)
    np.testing.assert_allclose(out, [float(i**6 + n**5 * i) for i in range(n)], rtol=2e-15)
