"""Inverses of small matrices: values, derivatives, gradients, members, CUDA's text; singular ones end a run."""

from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy import KroneckerDelta, Sum, exp

import odesim
from odesim.base.errors import SpecError
from odesim.display.formulas import definitions_text, latex
from odesim.runtime.matrices import invert
from odesim.symbolic import IndexedBase, Param, System, gradient_flow, index, inverse, over, sensitivities, sizes, solve
from odesim.targets.compiled import compile_system
from odesim.targets.numpy_text import SPECIAL
from tests.support.products import backward, forward, jacobian, rates
from tests.support.systems import REAL, SOURCE

(i, j, n, k, l), (K, N) = index("i j n k l"), sizes("K N")
x, B, Y = IndexedBase("x", shape=(K,)), IndexedBase("B", shape=(K, K)), IndexedBase("Y", shape=(N, K))
X = inverse(B[i, j] + x[i] * x[j] / 2 + x[j] / (1 + i), (i, K), (j, K), name="X")
Z = inverse(B[i, j] + Y[n, i] * Y[n, j], (n, N), (i, K), (j, K), name="Z")
SOLVED = solve(B[i, j] * exp(x[j]), x[i] ** 2 + 1, (i, K), (j, K))


def spread(given: dict[str, int]) -> Any:
    size = given["K"]
    return 2 * np.eye(size) + 0.3 * np.sin(1 + np.arange(size**2)).reshape(size, size)


SYSTEM = System(
    name="test.inverse", source=SOURCE, axes={i: K, n: N}, params=(Param(B, spread, REAL, "a matrix"),), sizes={K: 3, N: 2},
    equations={
        x[i]: over(Sum, X[i, j] * x[j], (j, K)) + SOLVED[i] - x[i] * X[i, i], Y[n, i]: over(Sum, Z[n, i, j] * x[j], (j, K)) - Y[n, i],
    },
    initial={x[i]: 0.1 + 0.2 * i, Y[n, i]: 0.1 * n - 0.2 * i},
)  # fmt: skip


def by_numpy(y: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The right-hand side by LAPACK."""
    size = len(B)
    x, rows = y[:size], y[size:].reshape(-1, size)
    X = np.linalg.inv(B + np.outer(x, x) / 2 + x / (1 + np.arange(size))[:, None])
    first = X @ x + np.linalg.solve(B * np.exp(x), x**2 + 1) - x * np.diag(X)
    return np.concatenate([first, *(np.linalg.inv(B + np.outer(v, v)) @ x - v for v in rows)])


@pytest.mark.parametrize("size", [1, 3, 20])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_right_side(backend: str, size: int) -> None:
    """That of LAPACK, to 1e-15 times conditions of some 100."""
    rng = np.random.default_rng(size)
    y, B = rng.normal(size=3 * size), 4 * np.eye(size) + rng.normal(size=(size, size))
    np.testing.assert_allclose(rates(SYSTEM, {"K": size, "N": 2}, {"B": B}, y, backend), by_numpy(y, B), rtol=1e-10, atol=1e-11)


@pytest.mark.slow
def test_rows_are_exchanged() -> None:
    """A permutation, whose first pivots are 0, is inverted exactly; members in lanes, where every choice is written out, have its bits."""
    turn = np.roll(np.eye(4), 1, axis=0)
    s = System(
        name="test.turned", source=SOURCE, axes={i: K}, equations={x[i]: over(Sum, inverse(B[i, j], (i, K), (j, K))[i, j] * x[j], (j, K))},
        params=(Param(B, 1.0, REAL, "a matrix"),), initial={x[i]: i + 1.0}, sizes={K: 4},
    )  # fmt: skip
    options: dict[str, Any] = {"params": {"B": turn}, "method": "euler", "step": 1.0, "span": (0, 1), "strict": True}
    want = np.arange(1.0, 5.0) + turn.T @ np.arange(1.0, 5.0)
    np.testing.assert_array_equal(odesim.integrate(s, **options).y["x"][-1], want)
    several = np.array([turn, 3 * turn, spread({"K": 4})])
    members = odesim.ensemble(s, **{**options, "params": {"B": several}})
    for m, matrix in enumerate(several):
        np.testing.assert_array_equal(members["x"][m, -1], odesim.integrate(s, **{**options, "params": {"B": matrix}}).y["x"][-1])


@pytest.mark.slow
def test_derivatives() -> None:
    """The Jacobian and both products are differences of LAPACK's right-hand side, 1e-8 off."""
    rng = np.random.default_rng(0)
    y, u, B = rng.normal(size=9), rng.normal(size=9), 4 * np.eye(3) + rng.normal(size=(3, 3))
    bound = compile_system(SYSTEM).bind({"K": 3, "N": 2}, {"B": B})
    J = np.array([by_numpy(y + 1e-6 * e, B) - by_numpy(y - 1e-6 * e, B) for e in np.eye(9)]).T / 2e-6
    np.testing.assert_allclose(jacobian(bound, 0.0, y).dense(), J, atol=1e-7)
    np.testing.assert_allclose(forward(bound, 0.0, y, u), J @ u, atol=1e-7)
    np.testing.assert_allclose(backward(bound, 0.0, y, u), u @ J, atol=1e-7)


@pytest.mark.slow
def test_sensitivities_and_gradients() -> None:
    """By the matrix: differences of two runs. The flow of x^T (B + x x^T)^-1 x: differences of the loss."""
    options: dict[str, Any] = {"backend": "numpy", "span": (0, 0.1), "rtol": 1e-10, "atol": 1e-12}
    at, step = spread({"K": 3}), np.zeros((3, 3))
    step[1, 2] = 1e-6
    ends = [odesim.integrate(SYSTEM, params={"B": at + sign * step}, **options).y["x"][-1] for sign in (1, -1)]
    run = odesim.integrate(sensitivities(SYSTEM, "B"), params={"B": at}, **options)
    np.testing.assert_allclose(run.y["dx_dB"][-1][:, 1, 2], (ends[0] - ends[1]) / 2e-6, atol=1e-6)
    W = inverse(B[k, l] + x[k] * x[l], (k, K), (l, K), name="W")
    flow = System(
        name="test.flow", source=SOURCE, axes={i: K}, equations=gradient_flow(over(Sum, x[k] * W[k, l] * x[l], (k, K), (l, K)), {x[i]: 1}),
        params=(Param(B, 1.0, REAL, "a matrix"),), initial={x[i]: 0.0},
    )  # fmt: skip
    y = np.array([0.3, -0.8, 0.5])

    def loss(y: np.ndarray) -> float:
        return float(y @ np.linalg.inv(at + np.outer(y, y)) @ y)

    np.testing.assert_allclose(
        rates(flow, {"K": 3}, {"B": at}, y), [-(loss(y + 1e-6 * e) - loss(y - 1e-6 * e)) / 2e-6 for e in np.eye(3)], atol=1e-8
    )


@pytest.mark.first(1)
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_singular_matrix_ends_the_run(backend: str) -> None:
    """A run does not leave its start, where no entry of the inverse is a number."""
    s = System(
        name="test.singular", source=SOURCE, axes={i: K}, equations={x[i]: inverse(B[i, j], (i, K), (j, K))[i, i] + 0 * x[i]},
        params=(Param(B, 1.0, REAL, "a matrix"),), initial={x[i]: 1.0}, sizes={K: 3},
    )  # fmt: skip
    for matrix in (np.ones((3, 3)), np.zeros((3, 3)), np.diag([1.0, 0.0, 2.0])):
        run = odesim.integrate(s, params={"B": matrix}, backend=backend)
        assert (run.status == "non_finite" and not np.isfinite(run.y["x"][-1]).all()) or run.t_end == 0.0


GRAM = np.array([[1.0, 0.3], [0.7, -0.2], [-0.4, 0.9]])
LOST = {  # of rank 2 but for rounding, in several scales
    "a square of fewer rows": GRAM @ GRAM.T,
    "counted": np.arange(1.0, 10.0).reshape(3, 3) / 10,
    "in other units": np.diag([1.0, 1e6, 1e-6]) @ (GRAM @ GRAM.T) @ np.diag([1e3, 1.0, 1e-9]),
    "two rows": np.array([[1, 2, 3], [1, 2, 3 + 2e-15], [0, 1, 1]]),
}
KEPT = {
    "scaled": np.diag([1e-150, 1.0, 1e150]),
    "graded": np.array([[1.0, 1e-9, 0], [1e-9, 2e-18, 0], [0, 0, 1e-30]]),
    "one far entry": np.array([[1, 1e20, 0], [0, 1, 1e20], [0, 0, 1]]),
    "Hilbert": 1 / (1.0 + np.add.outer(np.arange(3), np.arange(3))),
}
ROWS = System(
    name="test.rows", source=SOURCE, axes={i: K}, equations={x[i]: over(Sum, inverse(B[i, j], (i, K), (j, K))[i, j], (j, K)) + 0 * x[i]},
    params=(Param(B, 1.0, REAL, "a matrix"),), initial={x[i]: 0.0}, sizes={K: 3},
)  # fmt: skip


@pytest.mark.first(1)
@pytest.mark.parametrize("how", ["numpy", "numba", "lanes", "float32"])
def test_an_inverse_without_digits_is_none(how: str) -> None:
    """Singular but for rounding: no number. Hard ones that elimination solves: to some 500 roundings of exact inverses."""
    options: dict[str, Any] = {"method": "euler", "step": 1.0, "span": (0, 1)}
    options |= {"backend": "numpy"} if how == "numpy" else {"dtype": "float32"} if how == "float32" else {}
    some = {"Hilbert": KEPT["Hilbert"], "a small ridge": GRAM @ GRAM.T + 1e-8 * np.eye(3)}  # lost in single precision alone
    cases = {**LOST, **(some if how == "float32" else {**KEPT, **some})}
    several = {**options, "strict": True, "params": {"B": np.array(list(cases.values()))}}
    members = odesim.ensemble(ROWS, **several) if how == "lanes" else None
    for n, (name, matrix) in enumerate(cases.items()):
        if members is None:
            run = odesim.integrate(ROWS, params={"B": matrix}, **options)
            status, got = run.status, run.y["x"][-1]
        else:
            status, got = members.attrs["status_names"][int(members.status[n])], members["x"][n, -1].values
        assert status == ("non_finite" if name in LOST or (name, how) == ("a small ridge", "float32") else "ok"), name
        if name in KEPT:
            want = [float(sum(row)) for row in sp.Matrix(3, 3, [sp.Rational(v) for v in matrix.ravel()]).inv().tolist()]
            np.testing.assert_allclose(got, want, rtol=1e-13 if how != "float32" else 1e-4, err_msg=name)


def growing(size: int) -> np.ndarray:
    """Wilkinson's matrix with entries up to 5 % smaller: condition below size, and a last column that doubles from row to row."""
    rng = np.random.default_rng(size)
    a: np.ndarray = np.tril(rng.uniform(0, 0.05, (size, size)) - 1, -1) + np.eye(size)
    a[:, -1] = rng.uniform(0.5, 1, size)
    return a


GROWTH = {"numpy": 48, "numba": 48, "float32": 24}


@pytest.mark.first(1)
@pytest.mark.parametrize("how", GROWTH)
def test_an_inverse_spoiled_by_growth_is_none(how: str) -> None:
    """Of good condition, but elimination has lost a third of the digits or more; the transposed matrix does not grow."""
    size, single = GROWTH[how], how == "float32"
    bad, good = growing(size), growing(size).T
    options: dict[str, Any] = {"method": "euler", "step": 1.0, "span": (0, 1), "sizes": {"K": size}}
    options |= {"dtype": "float32"} if single else {"backend": how}
    assert np.linalg.cond(bad) < 40
    assert odesim.integrate(ROWS, params={"B": bad}, **options).status == "non_finite"
    run = odesim.integrate(ROWS, params={"B": good}, **options)
    assert run.status == "ok"
    np.testing.assert_allclose(run.final["x"], np.linalg.inv(good).sum(1), atol=1e-4 if single else 1e-13)


@pytest.mark.slow
def test_none_of_good_condition_is_refused() -> None:
    """Random matrices, rows and columns in other units, in both precisions: elimination loses nothing there."""
    rng, size = np.random.default_rng(4), 30
    for _ in range(6):
        a = rng.normal(size=(size, size)) + 4 * np.eye(size)
        for matrix in (a, np.linalg.qr(a)[0], np.diag(10.0 ** rng.uniform(-6, 6, size)) @ a, a @ np.diag(10.0 ** rng.uniform(-6, 6, size))):
            for dtype in (np.float64, np.float32):
                given = matrix.astype(dtype).ravel()
                found = np.empty_like(given)
                invert(given.copy(), found, given, 1, size)
                assert np.isfinite(found).all()
                assert np.isfinite(SPECIAL["inverse"](matrix.astype(dtype))).all()


def test_formulas() -> None:
    """The matrix in brackets; of two with one name the second is numbered."""
    assert "Z[n, i, j] = inverse(B[i, j] + Y[n, i]*Y[n, j])" in definitions_text(SYSTEM)
    assert r"{Z}_{n,i,j} &= \left[ {B}_{i,j} + {Y}_{n,i} \, {Y}_{n,j} \right]^{-1}" in latex(SYSTEM)
    two = inverse(B[i, j], (i, K), (j, K))[i, i] + inverse(B[j, i] + KroneckerDelta(i, j), (i, K), (j, K))[i, i]
    s = System("test.two", SOURCE, {i: K}, {x[i]: two}, (Param(B, 1.0, REAL, ""),), {x[i]: 0.0})
    assert [line.split("[")[0] for line in definitions_text(s).splitlines()] == ["inverse", "inverse_2"]


@pytest.mark.parametrize("axes", [(), ((i, K),), ((i, K), (j, N)), ((i, K), j)])
def test_mistakes(axes: Any) -> None:
    with pytest.raises(SpecError, match=r"inverse\(\) takes an expression and the axes of square matrices, such as \(i, K\), \(j, K\)"):
        inverse(B[i, j], *axes)


@pytest.mark.parametrize("kind", ["periodic", "zero", "edge"])
def test_the_right_side_of_solve_has_the_boundary_of_its_index(kind: str) -> None:
    """solve(A[i, j], b[i - 1] + b[i + 2]) reads b beyond the ends of i, whatever stands beyond those of j: the numbers of LAPACK."""
    other = {"periodic": "zero", "zero": "edge", "edge": "periodic"}[kind]
    b, y = IndexedBase("b", shape=(K,)), IndexedBase("y", shape=(K,))
    made = solve(B[i, j], b[i - 1] + 2 * b[i + 2], (i, K), (j, K))
    s = System(
        name="test.solve", source=SOURCE, axes={l: K}, params=(Param(B, spread, REAL, "a matrix"), Param(b, 1.0, REAL, "right side")),
        equations={y[l]: made[l]}, initial={y[l]: 0.0}, sizes={K: 4}, boundary={i: kind, j: other, l: other},
    )  # fmt: skip
    numbers, matrix = np.array([1.0, 2.0, 4.0, 8.0]), spread({"K": 4})
    padded = np.pad(numbers, 2, mode={"periodic": "wrap", "zero": "constant", "edge": "edge"}[kind])  # type: ignore[call-overload]
    run = odesim.integrate(s, method="euler", step=1.0, span=(0, 1), backend="numpy", params={"b": numbers})
    np.testing.assert_allclose(run.y["y"][-1], np.linalg.solve(matrix, padded[1:5] + 2 * padded[4:8]), rtol=1e-12)
    with pytest.raises(SpecError, match="has the index j of a column: write it in i, the index of a row"):
        solve(B[i, j], b[j], (i, K), (j, K))
