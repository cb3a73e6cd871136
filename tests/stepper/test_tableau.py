"""Every tableau is what it says: identities and order conditions over all rooted trees."""

import numpy as np
import pytest
from scipy.integrate._ivp import dop853_coefficients, rk

from odesim.stepper.methods import METHODS
from odesim.stepper.tableau import Method
from tests.support.trees import conditions, size, trees

# coefficients are rounded to 1e-16, some polynomials are of size 1000, and an order condition multiplies up to 8 of them
ROUNDING = 1e-12
# vern9's polynomials reach 10,700
DENSE_ROUNDING = {"vern9": 1e-11}
ALL = pytest.mark.parametrize("method", METHODS.values(), ids=lambda m: m.name)
ADAPTIVE = pytest.mark.parametrize("method", [m for m in METHODS.values() if m.adaptive], ids=lambda m: m.name)


def worst(A: np.ndarray, b: np.ndarray, order: int, theta: float = 1.0) -> float:
    """The largest residual of the conditions up to this order."""
    return max(abs(residual) for _, residual, _ in conditions(A, b, order, theta))


def largest_of(A: np.ndarray, b: np.ndarray, order: int) -> float:
    """The largest residual among the conditions of exactly this order."""
    return max(abs(residual) for tree, residual, _ in conditions(A, b, order) if size(tree) == order)


def weights(method: Method, theta: float) -> np.ndarray:
    """b_j(theta) (stages,)."""
    return method.P @ theta ** np.arange(1, method.P.shape[1] + 1)


def test_number_of_trees() -> None:
    """Rooted trees with 1, 2, ... nodes: 1, 1, 2, 4, 9, 20, 48, 115 (OEIS A000081)."""
    assert [len(trees(n)) for n in range(1, 9)] == [1, 1, 2, 4, 9, 20, 48, 115]


@ALL
def test_identities(method: Method) -> None:
    """A 1 = c, b at the last step stage, nothing above the diagonal."""
    assert method.A.sum(axis=1) == pytest.approx(method.c, abs=ROUNDING)
    assert method.c[0] == 0 and method.c[method.last] == 1
    assert not np.triu(method.A).any()
    assert method.b.sum() == pytest.approx(1, abs=1e-14)


@ALL
def test_order(method: Method) -> None:
    """The new state meets all conditions up to the order, and not the next one."""
    n = method.last + 1
    assert worst(method.A[:n, :n], method.b, method.order) < ROUNDING
    assert largest_of(method.A[:n, :n], method.b, method.order + 1) > 1e-6


@ADAPTIVE
def test_embedded(method: Method) -> None:
    """b - E is a method of its own of lower order: one wrong digit in a weight is invisible at tolerance 1e-8, not here.

    Its order is that of the norm of the estimate, less one: a wrong digit lowers it.
    """
    A = method.A[: method.last + 1, : method.last + 1]
    estimates = [E for E in method.E if E.any()]
    assert all(abs(E.sum()) < 1e-15 for E in estimates)
    orders = [next(n for n in range(method.order + 1) if largest_of(A, method.b - E, n + 1) > ROUNDING) for E in estimates]
    assert all(largest_of(A, method.b - E, order + 1) > 1e-6 for E, order in zip(estimates, orders, strict=True))
    # the norm of the estimate goes as h^error_order; DOP853 mixes two: h^12 / h^4
    assert method.error_order == (orders[0] + 1 if len(orders) == 1 else 2 * (orders[0] + 1) - (orders[1] + 1))


@ALL
@pytest.mark.parametrize("theta", [0.1, 0.37, 0.5, 0.81, 1.0])
def test_dense_order(method: Method, theta: float) -> None:
    """The interpolant meets the conditions with theta^order up to its own order."""
    assert worst(method.A, weights(method, theta), method.dense_order, theta) < DENSE_ROUNDING.get(method.name, ROUNDING)
    if theta < 1:
        n = method.dense_order + 1
        beyond = (abs(r) for tree, r, _ in conditions(method.A, weights(method, theta), n, theta) if size(tree) == n)
        assert max(beyond) > 1e-7


@ALL
def test_dense_joins(method: Method) -> None:
    """The interpolant ends in the new state, and its slopes at both ends are the derivatives there (Euler's is a straight line)."""
    first, last = np.eye(method.stages)[[0, method.last]]
    end = np.zeros(method.stages)
    end[: method.last + 1] = method.b
    rounding = DENSE_ROUNDING.get(method.name, ROUNDING)
    assert weights(method, 1.0) == pytest.approx(end, abs=rounding)
    assert method.P[:, 0] == pytest.approx(first, abs=1e-15)
    if method.name != "euler":
        assert method.P @ np.arange(1, method.P.shape[1] + 1) == pytest.approx(last, abs=10 * rounding)  # slopes have the factors 1 to 9


def test_dop853_is_scipys() -> None:
    """The same method as scipy's, which has it from Hairer's code too: stages, weights, and the interpolant in its other form."""
    m, s = METHODS["dop853"], dop853_coefficients
    assert np.array_equal(m.A, s.A) and np.array_equal(m.E[0], s.E5)
    assert m.c == pytest.approx(s.C, abs=1e-16) and m.E[1] == pytest.approx(s.E3, abs=1e-16)
    k = np.random.default_rng(0).normal(size=(16, 1))
    y0, y1 = np.zeros(1), s.B @ k[:12]
    F = np.array([y1, k[0] - y1, 2 * y1 - k[0] - k[12], *(s.D @ k)])
    theirs = rk.Dop853DenseOutput(0.0, 1.0, y0, F)
    for theta in (0.2, 0.7):
        assert weights(m, theta) @ k == pytest.approx(theirs(theta), abs=1e-11)
