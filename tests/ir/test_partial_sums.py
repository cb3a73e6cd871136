"""Sums up to an index, or from an index on: values, cost, derivatives, gradients of losses, members, formulas."""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from sympy import Sum, exp

import odesim
from odesim.base.errors import SpecError
from odesim.display.formulas import equations_text, latex
from odesim.ir.passes import lower
from odesim.symbolic import IndexedBase, MaxOver, Param, System, at, gradient_flow, index, logsumexp, over, sensitivities, sizes, softmax
from odesim.targets.compiled import compile_system
from tests.support.products import backward, jacobian
from tests.support.systems import REAL, SOURCE, param

(i, j, k), (N, M) = index("i j k"), sizes("N M")
x, q = IndexedBase("x", shape=(N,)), IndexedBase("q", shape=(N,))
A = IndexedBase("A", shape=(N, N))
Numbers = np.ndarray


def attention(x: Numbers, q: Numbers, A: Numbers) -> Numbers:
    weights = np.tril(np.exp(np.outer(q, x)))
    return weights / weights.sum(1, keepdims=True)  # type: ignore[no-any-return]


def beyond(n: int, shift: int) -> Numbers:
    return np.triu(np.ones((n, n)), shift)


# {what: (right-hand side of x[i], the same in numpy, the most indices of a loop)}
FORMS: dict[str, tuple[Any, Callable[[Numbers, Numbers, Numbers], Numbers], int]] = {
    "up to": (Sum(x[j] ** 2, (j, 0, i)), lambda x, q, A: np.cumsum(x**2), 1),
    "before": (q[i] * Sum(x[j] * q[j], (j, 0, i - 1)), lambda x, q, A: q * (beyond(len(x), 1).T @ (x * q)), 1),
    "from": (Sum(exp(x[j]), (j, i, N - 1)), lambda x, q, A: beyond(len(x), 0) @ np.exp(x), 1),
    "after two": (x[i] * Sum(x[j], (j, i + 2, N - 1)), lambda x, q, A: x * (beyond(len(x), 2) @ x), 1),
    "in a sum": (x[i] * over(Sum, x[j] * x[k], (j, k + 1), (k, N)), lambda x, q, A: x * (x @ np.cumsum(x)), 1),
    "nested": (Sum(x[k] * Sum(x[j], (j, 0, k)), (k, 0, i)), lambda x, q, A: np.cumsum(x * np.cumsum(x)), 1),
    "numbers": (x[i] * Sum(q[i], (j, 0, i - 3)) + Sum(1, (j, i, N - 1)),
                lambda x, q, A: x * q * np.maximum(0, np.arange(len(x)) - 2) + len(x) - np.arange(len(x)), 1),
    "matrix": (Sum(A[i, j] * x[j], (j, 0, i)), lambda x, q, A: np.tril(A) @ x, 2),
    "turned": (Sum(A[j, i] * x[j] * x[i], (j, i + 1, N - 1)), lambda x, q, A: x * (np.triu(A.T, 1) @ x), 2),
    "causal": (over(Sum, softmax(q[i] * x[k], (k, i + 1)) * x[k] ** 2, (k, i + 1)), lambda x, q, A: attention(x, q, A) @ x**2, 2),
    "quotient": (over(Sum, exp(q[i] * x[k]) * x[k], (k, i + 1)) / Sum(exp(q[i] * x[j]), (j, 0, i)),
                 lambda x, q, A: attention(x, q, A) @ x, 2),
    "largest": (over(MaxOver, x[j] * q[i], (j, i + 1)), lambda x, q, A: np.array([max(x[: k + 1] * q[k]) for k in range(len(x))]), 2),
    "logsumexp": (logsumexp(q[i] * x[j], (j, i + 1)), lambda x, q, A: np.log(np.tril(np.exp(np.outer(q, x))).sum(1)), 2),
}  # fmt: skip


def system(equation: Any, name: str = "test.partial") -> System:
    return System(
        name=name, source=SOURCE, axes={i: N}, equations={x[i]: equation}, params=(param(q), param(A)), initial={x[i]: 0.1}, sizes={N: 3}
    )


def numbers(n: int) -> tuple[Numbers, Numbers, Numbers]:
    rng = np.random.default_rng(n)
    return rng.normal(size=n), rng.normal(size=n), rng.normal(size=(n, n))


def slopes(f: Callable[[Numbers], Any], y: Numbers) -> Numbers:
    """The derivatives of f by y, in rows, by central differences: 1e-8 off."""
    return np.array([f(y + 1e-6 * e) - f(y - 1e-6 * e) for e in np.eye(len(y))]) / 2e-6


@pytest.mark.first(7)
@pytest.mark.parametrize("what", FORMS)
def test_values_cost_and_derivatives(what: str) -> None:
    """Those of numpy; sums whose summand lacks the index take one pass. So does the product with a transposed Jacobian."""
    equation, f, loops = FORMS[what]
    s = system(equation)
    assert max(len(statement.loops) for statement in lower(s).statements()) == loops
    compiled = compile_system(s, backend="numpy")
    for n in (1, 2, 5):
        (y, q, A), u, out = numbers(n), np.random.default_rng(9).normal(size=n), np.empty(n)
        bound = compiled.bind({"N": n}, {"q": q, "A": A})
        whole = compiled.arrays({"N": n}, {"x": y, "q": q, "A": A, "t": 0.0})["d_x"]
        np.testing.assert_allclose(whole, f(y, q, A), rtol=1e-12, atol=1e-13)
        if what in ("before", "after two", "causal"):  # loops by numba
            bound(0.0, y, out)
            np.testing.assert_allclose(out, whole, rtol=1e-12, atol=1e-13)
        J = slopes(lambda y, q=q, A=A: f(y, q, A), y).T  # type: ignore[misc]
        np.testing.assert_allclose(jacobian(bound, 0.0, y).dense(), J, atol=1e-7)
        np.testing.assert_allclose(backward(bound, 0.0, y, u), u @ J, atol=1e-7)


@pytest.mark.first(4)
@pytest.mark.parametrize("what", [what for what, (_, _, loops) in FORMS.items() if loops == 1 or what == "causal"])
def test_gradient_of_a_loss(what: str) -> None:
    """sum_i q[i] f[i] falls along its gradient, in one pass where the loss takes one."""
    equation, f, loops = FORMS[what]
    loss = over(Sum, at(equation, {i: k}) * q[k], (k, N))
    flow = system(gradient_flow(loss, {x[i]: 1})[x[i]])
    assert max(len(statement.loops) for statement in lower(flow).statements()) == loops
    for n in (1, 2, 5):
        (y, q_, A), out = numbers(n), np.empty(n)
        out[:] = compile_system(flow, backend="numpy").arrays({"N": n}, {"x": y, "q": q_, "A": A, "t": 0.0})["d_x"]
        np.testing.assert_allclose(out, -slopes(lambda y, q=q_, A=A: f(y, q, A) @ q, y), atol=1e-7)  # type: ignore[misc,arg-type]


def test_sensitivities() -> None:
    """By an array that is summed up to the index: the derivative of a run by each entry is the difference of two runs."""
    s = system(q[i] * Sum(x[j] * q[j], (j, 0, i - 1)) - x[i])
    options: dict[str, Any] = {"backend": "numpy", "rtol": 1e-10, "atol": 1e-12, "initial": {"x": [0.3, -0.5, 0.8]}}
    q0 = np.array([0.4, 0.9, -0.7])
    run = odesim.integrate(sensitivities(s, "q"), params={"q": q0}, **options)
    ends = slopes(lambda q: odesim.integrate(s, params={"q": q}, **options).y["x"][-1], q0).T
    np.testing.assert_allclose(run.y["dx_dq"][-1], ends, atol=1e-7)  # 1e-10 of a run over 2e-6 leaves 1e-4 of its error


@pytest.mark.slow
def test_members_have_the_bits_of_runs() -> None:
    """An ensemble in lanes, strict: each member is its run."""
    s = system(FORMS["causal"][0] + FORMS["before"][0] - FORMS["from"][0], "test.members")
    options: dict[str, Any] = {"strict": True, "method": "euler", "step": 0.1, "save": 3}
    starts = np.array([[0.3, -0.5, 0.8], [0.1, 0.2, 0.4]])
    members = odesim.ensemble(s, initial={"x": starts}, **options)
    for n, start in enumerate(starts):
        np.testing.assert_array_equal(members["x"][n], odesim.integrate(s, initial={"x": start}, **options).y["x"])


@pytest.mark.slow
def test_large_exponents_after_the_index_do_not_count() -> None:
    """A causal softmax where a later logit is larger by 2000: it is exact, and so is its Jacobian."""
    s = system(over(Sum, softmax(1000 * x[k], (k, i + 1)) * q[k], (k, i + 1)))
    params, out, y = {"q": np.array([1.0, 2.0, 4.0]), "A": np.zeros((3, 3))}, np.empty(3), np.array([0.0, 2.0, 4.0])
    compiled = compile_system(s)
    bound = compiled.bind({"N": 3}, params)
    bound(0.0, y, out)
    np.testing.assert_array_equal(out, [1, 2, 4])
    np.testing.assert_array_equal(compiled.arrays({"N": 3}, {**params, "x": y, "t": 0.0})["d_x"], [1, 2, 4])
    assert not jacobian(bound, 0.0, y).dense().any()


def test_formulas_show_the_limits() -> None:
    """On one line and in LaTeX."""
    text = {what: equations_text(system(FORMS[what][0])).partition(" = ")[2] for what in FORMS}
    assert (text["up to"], text["before"]) == ("sum_j<=i(x[j]^2)", "q[i]*sum_j<i(q[j]*x[j])")
    assert (text["from"], text["after two"]) == ("sum_j>=i(exp(x[j]))", "x[i]*sum_j>=i+2(x[j])")
    assert text["logsumexp"] == "logsumexp_j<=i(q[i]*x[j])"
    assert r"\sum_{j=0}^{i - 1}" in latex(system(FORMS["before"][0])) and r"\max_{j \le i}" in latex(system(FORMS["largest"][0]))


WRONG: dict[str, tuple[Any, str]] = {
    "beyond the end": (
        Sum(x[j], (j, 0, i + 1)),
        r"the bound of j must run from 0 to a size - 1, from 0 to an index .*, not from 0 to i \+ 1",
    ),
    "before the start": (Sum(x[j], (j, i - 1, N - 1)), "not from i - 1 to N - 1"),
    "a window": (Sum(x[j], (j, i - 2, i)), "not from i - 2 to i"),
    "twice": (Sum(x[j], (j, 0, 2 * i)), r"not from 0 to 2\*i"),
    "no index here": (Sum(x[j], (j, 0, k)), "index k, a bound of j, is neither free nor summed"),
    "another axis": (over(Sum, Sum(x[j], (j, 0, k)), (k, M)), "index j runs over M, but that axis of x has extent N"),
    "nothing to compare": (over(MaxOver, x[j], (j, i)), "a maximum over j<i has no entries at one end of the axis"),
    "maximum of two": (over(MaxOver, x[j] * q[k], (j, i + 1), (k, N)), "write one maximum inside the other"),
}


@pytest.mark.parametrize("what", WRONG)
def test_other_limits_are_refused(what: str) -> None:
    equation, message = WRONG[what]
    more = (Param(IndexedBase("sized", shape=(M,)), 1.0, REAL, "so that M is a size"),)
    with pytest.raises(SpecError, match=message):
        System(
            name="test.wrong", source=SOURCE, axes={i: N}, equations={x[i]: equation}, params=(param(q), *more), initial={x[i]: 0.1}
        )  # fmt: skip


LETTERS = index("i j k p")
(m,) = index("m")
FULL = IndexedBase("X", shape=(N, N))
SUMMANDS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Numbers], Numbers]]] = {
    "plain": (lambda k, b: FULL[k, b], lambda X: X),
    "shifted": (lambda k, b: FULL[k + 1, b], lambda X: np.roll(X, -1, 0)),
    "a function": (lambda k, b: exp(FULL[b, k]), lambda X: np.exp(X.T)),
    "partial sums": (lambda k, b: over(Sum, FULL[k, m], (m, b + 1)), lambda X: np.cumsum(X, 1)),
}


@pytest.mark.parametrize("what", SUMMANDS)
@pytest.mark.parametrize("side", ["up to", "from"])
def test_two_partial_sums_with_swapped_indices(what: str, side: str) -> None:
    """P[a, b] - 2*P[b, a], and sums over a row and a column of P, whatever the letters are: those of numpy."""
    summand, by_hand = SUMMANDS[what]
    X, y = np.random.default_rng(1).normal(size=(3, 3)), np.array([0.3, -0.7, 1.1])
    summed = np.cumsum(by_hand(X), 0) if side == "up to" else np.cumsum(by_hand(X)[::-1], 0)[::-1]
    for a, b, k in permutations(LETTERS, 3):

        def P(a: Any, b: Any, k: Any = k) -> Any:
            return over(Sum, summand(k, b), (k, a + 1)) if side == "up to" else Sum(summand(k, b), (k, a, N - 1))

        Z = IndexedBase("Z", shape=(N, N))
        rows = over(Sum, x[b] * P(a, b), (b, N)) + over(Sum, x[b] * P(b, a), (b, N))
        s = System(
            name="test.swapped", source=SOURCE, axes={a: N, b: N}, equations={Z[a, b]: P(a, b) - 2 * P(b, a), x[a]: rows},
            params=(param(FULL),), initial={Z[a, b]: 0.0, x[a]: 0.0}, sizes={N: 3}, boundary=dict.fromkeys(LETTERS, "periodic"),
        )  # fmt: skip
        run = odesim.integrate(s, method="euler", step=1.0, span=(0, 1), save=2, backend="numpy", params={"X": X}, initial={"x": y})
        np.testing.assert_allclose(run.y["Z"][-1], summed - 2 * summed.T, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(run.y["x"][-1] - y, summed @ y + summed.T @ y, rtol=1e-12, atol=1e-13)
