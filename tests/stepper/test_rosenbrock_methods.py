"""Every Rosenbrock table is what it says: order conditions over all rooted trees, stability, and the numbers in print."""

from math import factorial

import numpy as np
import pytest

from odesim.stepper.rosenbrock_methods import ROSENBROCK, Rosenbrock
from tests.support.methods import STIFF
from tests.support.trees import Tree, density, size, trees

# coefficients are rounded to 1e-16, some are of size 150
ROUNDING = 1e-12
ALL = pytest.mark.parametrize("method", ROSENBROCK.values(), ids=lambda m: m.name)


def usual(method: Rosenbrock) -> tuple[np.ndarray, np.ndarray]:
    """(alpha_ij, beta_ij) of the form with k_i = f(..) + J sum gamma_ij k_j: alpha = A Gamma, beta = alpha + Gamma."""
    return method.A @ method.Gamma, (method.A + np.eye(method.stages)) @ method.Gamma


def elementary(alpha: np.ndarray, beta: np.ndarray, tree: Tree) -> np.ndarray:
    """Phi_j(tree) (s,): a node with one child goes by beta, with more by alpha (Hairer and Wanner II, IV.7, Theorem 7.4)."""
    out = np.ones(len(alpha))
    for child in tree:
        out = out * ((beta if len(tree) == 1 else alpha) @ elementary(alpha, beta, child))
    return out


def residuals(method: Rosenbrock, u_weights: np.ndarray, order: int, theta: float = 1.0) -> list[float]:
    """The residuals of all conditions of exactly this order for y + sum_j u_weights[j] u_j."""
    alpha, beta = usual(method)
    b = u_weights @ method.Gamma
    return [float(b @ elementary(alpha, beta, tree) - theta ** size(tree) / density(tree)) for tree in trees(order)]


def first_order_missed(method: Rosenbrock, u_weights: np.ndarray, theta: float = 1.0) -> int:
    """The lowest order with a residual beyond rounding."""
    return next(n for n in range(1, 8) if np.max(np.abs(residuals(method, u_weights, n, theta))) > ROUNDING)


@ALL
def test_order(method):
    """The new state meets all conditions up to the order and not the next one; the estimate compares with one order less."""
    assert first_order_missed(method, method.weights) == method.order + 1
    embedded = method.weights - np.eye(method.stages)[-1]
    assert first_order_missed(method, embedded) == method.error_order == method.order


@ALL
@pytest.mark.parametrize("theta", [0.1, 0.37, 0.5, 0.81])
def test_dense_order(method, theta):
    """The interpolant meets the conditions with theta^order up to its own order, and is the new state at the end."""
    assert first_order_missed(method, method.dense(theta), theta) == method.dense_order + 1
    assert np.array_equal(method.dense(1.0), method.weights) and not method.dense(0.0).any()


@ALL
def test_stability(method):
    """R(z) = 1 + z b (1 - z beta)^-1 1 stays within the unit circle on the imaginary axis and vanishes at infinity."""
    _, beta = usual(method)
    b, one = method.weights @ method.Gamma, np.ones(method.stages)
    z = 1j * np.logspace(-2, 4, 500)
    R = [1 + y * b @ np.linalg.solve(np.eye(method.stages) - y * beta, one) for y in z]
    assert np.max(np.abs(R)) < 1 + ROUNDING
    assert abs(1 - b @ np.linalg.solve(beta, one)) < ROUNDING


@ALL
def test_stiff_order(method):
    """Of y' = -lambda (y - phi(t)) + phi'(t) the rate lambda does not matter up to some power of t in phi.

    The error of one step of 1 for phi = t^k / k!, at any z = -lambda: 0 for k <= 3 for rodas5p, by its construction (Steinebach 2023,
    BIT 63, 27, after Prothero and Robinson 1974), and for k = 1 alone for rodas4.
    """
    alpha, beta = usual(method)
    b, c, d = method.weights @ method.Gamma, alpha.sum(axis=1), (beta - alpha).sum(axis=1)

    def error(k: int, z: float) -> float:
        slope = c ** (k - 1) / factorial(k - 1) - z * c**k / factorial(k) + d * ((k == 2) - z * (k == 1))
        return float(b @ np.linalg.solve(np.eye(method.stages) - z * beta, slope)) - 1 / factorial(k)

    worst = [max(abs(error(k, z)) for z in -np.logspace(-2, 8, 40)) for k in (1, 2, 3, 4)]
    exact = STIFF[method.name].exact
    assert max(worst[:exact]) < ROUNDING and min(worst[exact:]) > 1e-4


@ALL
def test_stiffly_accurate(method):
    """b is the last row of beta, and so is the embedded b of the row before, so that algebraic components are met exactly."""
    _, beta = usual(method)
    assert method.weights @ method.Gamma == pytest.approx(beta[-1], abs=ROUNDING)
    assert method.A[-1] @ method.Gamma == pytest.approx(beta[-2], abs=ROUNDING)


@ALL
def test_times(method):
    """alpha_i = sum_j alpha_ij and d_i = sum_j gamma_ij, as printed in rodas.f and in rosenbrock_tableaus.jl."""
    known = STIFF[method.name]
    assert method.alpha == pytest.approx(known.alpha, abs=1e-13) and method.d == pytest.approx(known.d, abs=1e-13)
    assert set(method.alpha[method.alpha >= 1 - 1e-9]) == {1.0}
