"""Jacobians from symbols, dense and structured, and the linear systems that stiff steps solve with them."""

from typing import Any

import numpy as np
import pytest
from sympy import KroneckerDelta, Sum, exp, tanh

from odesim.base.errors import CodegenError
from odesim.ir.linear_systems import Dense, Structured, UnsolvableError
from odesim.ir.sparse_jacobian import SparseChain
from odesim.symbolic import IndexedBase, Param, System, logsumexp, over, softmax, time
from odesim.targets.compiled import compile_system
from odesim.targets.linearization import BoundLinear
from tests.support.products import jacobian
from tests.support.systems import REAL, SOURCE, K, M, j, k, l, m, numbers
from tests.support.systems import SYSTEMS as COMMON

v, V = IndexedBase("v", shape=(M,)), IndexedBase("V", shape=(M, K))
mean = over(Sum, v[k], (k, M)) / M
row = over(Sum, V[m, j] ** 2, (j, K))
OWN: dict[str, Any] = {
    # a sum within a sum; both places of a pair; a component by its number; sums along rows within a sum over them; the trace
    "deviations": (v[m], -v[m] * over(Sum, exp(v[k] - mean), (k, M)) + mean),
    "pairs": (v[m], over(Sum, tanh(v[k] - v[m]), (k, M))),
    "first": (v[m], v[0] ** 2 - v[m]),
    "row_sums": (V[m, k], V[m, k] * row - over(Sum, exp(-row.xreplace({m: l})), (l, M))),
    "logarithm": (v[m], exp(-((logsumexp(v[k], (k, M)) - 1) ** 2)) * v[m]),
    "softmax_of_softmax": (V[m, k], softmax(softmax(V[m, k], (k, K)), (k, K)) - V[m, k]),
    "diagonal": (V[m, k], V[m, k] * over(Sum, KroneckerDelta(j, 0) * V[m, j], (j, K)) - tanh(V[m, k])),
}


def simple(name: str, key: Any, rhs: Any) -> System:
    """The System of one state."""
    axes = {i: n for i, n in ((m, M), (k, K)) if i in key.indices}
    return System(
        name=name,
        source=SOURCE,
        axes=axes,
        equations={key: rhs},
        params=(Param(IndexedBase("a", shape=(M,)), 1.0, REAL, ""),),
        initial={key: 0},
    )


SYSTEMS = {**COMMON, **{name: simple(name, *pair) for name, pair in OWN.items()}}
EACH = pytest.mark.parametrize("name", SYSTEMS)


def bound(system: System, sizes: Any, params: Any) -> BoundLinear:
    """The derivatives of a System with numbers."""
    compiled = compile_system(system, backend="numpy")
    return compiled.linear.bind(sizes, params, compiled.layout(sizes))


def right_side(system: System, sizes: Any, params: Any) -> Any:
    """f(t, y (n,)) -> (n,), on whole arrays."""
    compiled = compile_system(system, backend="numpy")
    layout = compiled.layout(sizes)

    def f(t: float, y: Any) -> Any:
        made = compiled.arrays(sizes, {**params, **layout.split(y), "t": t})
        return layout.join({n: made[f"d_{n}"] for n in layout.names})

    return f


def every_form(linear: BoundLinear, t: float, y: Any) -> dict[str, Any]:
    """J as it comes, dense, sparse, and as blocks along each axis along which it has them."""
    slopes = linear.linear.slopes(linear.sizes, {**linear.params, **linear.layout.split(y), "t": t})
    plans = {"dense": linear.linear.dense_plan, **{str(p.block_extent): p for p in linear.linear.block_plans}}
    sparse = SparseChain(linear.linear.derivatives, linear._extents, linear.layout, linear.params)
    chains: dict[str, Any] = {"sparse": sparse, **{n: linear._chain(p) for n, p in plans.items()}}
    return {"chosen": linear.jacobian(t, y)} | {n: chain(slopes, linear.params) for n, chain in chains.items()}


@pytest.mark.first(6)
@EACH
def test_jacobian_is_the_difference(name):
    """Every form of J against central differences, step 1e-6: 1e-10 from rounding."""
    system, given = SYSTEMS[name], numbers(SYSTEMS[name])
    linear, f = bound(system, given.sizes, given.params), right_side(system, given.sizes, given.params)
    y, h = linear.layout.join(given.states), 1e-6
    differences = np.stack([(f(0.3, y + h * e) - f(0.3, y - h * e)) / (2 * h) for e in np.eye(len(y))], axis=1)
    for form, J in every_form(linear, 0.3, y).items():
        np.testing.assert_allclose(J.dense(), differences, rtol=1e-6, atol=1e-8 * np.abs(differences).max(), err_msg=form)


@pytest.mark.first(9)
@EACH
def test_product(name):
    """J @ x of every form is the product with its dense matrix, to rounding."""
    system, given = SYSTEMS[name], numbers(SYSTEMS[name])
    linear = bound(system, given.sizes, given.params)
    x = np.random.default_rng(1).normal(size=linear.layout.size)
    for J in every_form(linear, 0.3, linear.layout.join(given.states)).values():
        assert J @ x == pytest.approx(J.dense() @ x, abs=1e-12 * np.abs(J.dense()).max())


# along which axes the Jacobian is blocks plus sums: (p, R)
FORMS = {
    "elementwise": {"M": (1, 0)},
    "two_of_one": {"M": (2, 0)},
    "softmax": {"M": (1, 1)},
    "mean_field": {"M": (1, 2)},
    "scaled": {"M": (1, 1)},
    "shuffled": {"M": (1, 1)},
    "rows": {"M": (3, 3), "K": (7, 7)},
    "products": {"M": (3, 9)},
    "gathered": {},
    "numbers": {"L - 1": (1, 3)},
    "deviations": {"M": (1, 2)},
    "logarithm": {"M": (1, 1)},
    "softmax_of_softmax": {"M": (3, 0), "K": (7, 14)},
    "pairs": {},
    "first": {},
    "row_sums": {"M": (3, 1), "K": (7, 7)},
    "diagonal": {"M": (3, 0)},
    "masked": {"M": (2, 3)},
    "largest": {"M": (4, 4), "K": (7, 15)},
    "neighbours": {},
    "causal": {},
}


@pytest.mark.first(4)
@EACH
def test_structure(name):
    """An axis indexes blocks of what stands at one place; a column for each sum over it that the right-hand side sees, and for each state
    without it: two scalars b, c and sum u; K sums for each of K products."""
    given = numbers(SYSTEMS[name])
    linear = bound(SYSTEMS[name], given.sizes, given.params)
    chains = {str(p.block_extent): linear._chain(p) for p in linear.linear.block_plans}
    assert {along: (c.width, c.rank) for along, c in chains.items()} == FORMS[name]


@pytest.mark.first(14)
@EACH
@pytest.mark.parametrize("shift", [30.0, 0.7])
def test_solve(name, shift):
    """(shift - J) x = b of every form is numpy's solution, to the rounding that the condition of the matrix leaves."""
    system, given = SYSTEMS[name], numbers(SYSTEMS[name])
    linear = bound(system, given.sizes, given.params)
    b = np.random.default_rng(2).normal(size=linear.layout.size)
    for form, J in every_form(linear, 0.3, linear.layout.join(given.states)).items():
        A = shift * np.eye(len(b)) - J.dense()
        want = np.linalg.solve(A, b)
        np.testing.assert_allclose(J.solver(shift)(b), want, atol=1e-14 * np.linalg.cond(A) * np.abs(want).max(), err_msg=form)


def low_rank(d: Any, R: int, seed: int = 0) -> Structured:
    """diag(d) + U G^T with random U, G (n, R)."""
    U, G = np.random.default_rng(seed).normal(size=(2, len(d), R))
    return Structured(np.asarray(d, float)[:, None, None], np.arange(len(d))[:, None], U, G)


@pytest.mark.parametrize("gap", [1e-3, 1e-8, 1e-13, 0.0])
@pytest.mark.parametrize("count", [1, 3])
def test_no_digits_are_lost_where_the_blocks_are_singular(gap, count):
    """shift - d next to 0 in some components, where Woodbury's formula alone is off by 1e-16 / gap, and the matrix is regular."""
    d = -np.logspace(0, 5, 30)
    d[:count] = 2.0 - gap
    J = low_rank(d, 4)
    A, b = 2.0 * np.eye(30) - J.dense(), np.ones(30)
    x = J.solver(2.0)(b)
    # the residual of a stable method, row by row
    assert np.all(np.abs(A @ x - b) <= 1e-13 * (np.abs(A) @ np.abs(x) + 1))
    assert x == pytest.approx(np.linalg.solve(A, b), rel=1e-16 * np.linalg.cond(A) * 10, abs=1e-12 * np.abs(x).max())


def test_a_solution_with_a_large_residual_is_none():
    """Blocks of two that are singular to 1e-6 ... 1e-18 in a regular matrix: an answer solves a matrix within 1e-11 of this one.

    Else there is none. Of Woodbury's formula alone half of them would be worse, some by all digits."""
    rng, answered = np.random.default_rng(0), 0
    for _ in range(200):
        gap, blocks = 10.0 ** rng.uniform(-18, -6), rng.normal(size=(4, 2, 2))
        for i in range(rng.integers(1, 4)):
            blocks[i] = 2 * np.eye(2) - np.outer(*rng.normal(size=(2, 2))) - gap * rng.normal(size=(2, 2))
        places, (U, G), b = np.arange(8).reshape(4, 2), rng.normal(size=(2, 8, 3)), rng.normal(size=8)
        J = Structured(blocks, places, U, G)
        A = 2 * np.eye(8, dtype=np.longdouble) - J.dense()
        try:
            x = J.solver(2.0)(b)
        except UnsolvableError:
            continue
        answered += 1
        assert np.abs(A @ x - b).max() <= 1e-11 * (np.abs(A).max() * np.abs(x).max() + np.abs(b).max())
    assert answered >= 80


def test_a_singular_matrix_is_said():
    """A matrix without a solution is UnsolvableError in every form, and one with NaN gives no number."""
    one = np.ones((2, 1))
    whole = Structured(np.full((2, 1, 1), -1.0), np.arange(2)[:, None], one, one)  # an eigenvalue 1 along (1, 1), without rounding
    blocks = Structured(
        np.tile(np.array([[0.0, 1.0], [1.0, 0.0]]), (3, 1, 1)), np.arange(6).reshape(3, 2), np.zeros((6, 0)), np.zeros((6, 0))
    )
    for J in (whole, Dense(whole.dense()), blocks):
        with pytest.raises(UnsolvableError):
            J.solver(1.0)(np.arange(J.dense().shape[0], dtype=float))
    with np.errstate(invalid="ignore"), pytest.raises(UnsolvableError):
        low_rank([np.nan, 1, 2], 1).solver(1.0)(np.ones(3))


def test_time_slope():
    """df/dt against a central difference; None where t does not stand in the right-hand side."""
    given = numbers(SYSTEMS["numbers"])
    linear, f = bound(SYSTEMS["numbers"], given.sizes, given.params), right_side(SYSTEMS["numbers"], given.sizes, given.params)
    y = linear.layout.join(given.states)
    assert linear.time_slope(0.3, y) == pytest.approx((f(0.3 + 1e-5, y) - f(0.3 - 1e-5, y)) / 2e-5, abs=1e-9)
    decay = System(name="decay", source=SOURCE, axes={m: M}, equations={v[m]: -v[m] * exp(-time)}, params=(), initial={v[m]: 1})
    assert bound(decay, {"M": 2}, {}).time_slope(1.0, np.array([1.0, 2.0])) == pytest.approx(np.exp(-1) * np.array([1, 2]))
    assert bound(SYSTEMS["softmax"], {"M": 2}, {}).time_slope(0.0, np.zeros(2)) is None


def test_too_large_for_a_dense_matrix():
    """A Jacobian without structure beyond 5000 states is refused in one sentence; one with structure has no such bound."""
    given = {"M": 5001, "K": 3, "Q": 2}
    with pytest.raises(CodegenError, match=r"pairs: the Jacobian of 5001 states is neither sparse nor small blocks.* explicit method"):
        bound(SYSTEMS["pairs"], given, {}).prepare()
    bound(SYSTEMS["gathered"], given, {"psi": np.array([0, 1, 0])}).prepare()
    linear = bound(SYSTEMS["softmax"], {"M": 100_000}, {"mu": np.linspace(0, 1, 100_000), "T": 2.0})
    J = linear.jacobian(0.0, np.linspace(0, 1, 100_000))
    assert isinstance(J, Structured) and J.blocks.shape == (100_000, 1, 1) and J.U.shape == (100_000, 1)


def test_bound_system_has_it():
    """The compiled right-hand side hands out the same Jacobian."""
    given = numbers(SYSTEMS["softmax"])
    linear = bound(SYSTEMS["softmax"], given.sizes, given.params)
    y = linear.layout.join(given.states)
    ours = jacobian(compile_system(SYSTEMS["softmax"]).bind(given.sizes, given.params), 0.3, y)
    assert np.array_equal(ours.dense(), linear.jacobian(0.3, y).dense())
