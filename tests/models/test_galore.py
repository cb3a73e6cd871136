"""The parametric gradient of GaLore: whose gradient it is, and what is read off it."""

import mpmath
import numpy as np
import pytest

import odesim
from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model
from odesim.models.galore.parametric_gradient import gradient, numerical_rank, stable_rank
from odesim.symbolic import gradient_flow
from tests.models.test_right_sides import odd_case, value
from tests.support.truth.learning import adam_map


def test_the_gradient_is_that_of_the_loss():
    """The right-hand side is - dloss/dW where B and C are symmetric, as the constraints ask. Rounding of sums of 24 terms."""
    system, numbers, states = odd_case("galore.parametric_gradient")
    (key,) = system.equations
    (flow,) = gradient_flow(system.observables["loss"], {key: 1}).values()
    want = value(system, flow, numbers, states, key.indices)
    np.testing.assert_allclose(value(system, system.equations[key], numbers, states, key.indices), want, rtol=1e-12, atol=1e-13)


def test_default_matrices_are_positive_semidefinite():
    """B and C: the smallest eigenvalues are above rounding of a largest one of order 1."""
    params = bind(load_model("galore.parametric_gradient")).params
    assert all(np.linalg.eigvalsh(params[name]).min() > -1e-14 for name in "BC")


def test_algorithm_1_step_by_step():
    """Twelve steps of galore.adam_map, period 5, beside a loop that looks up directions by itself; 1e-10: rounding that Adam divides by."""
    run = odesim.integrate("galore.adam_map", params={"period": 5}, steps=12, save=13, backend="numpy")
    state = {name: rows[0] for name, rows in run.y.items()}
    for t in range(12):
        state = adam_map(float(t), state, run.attrs["params"])
        for name, want in state.items():
            np.testing.assert_allclose(run.y[name][t + 1], want, rtol=1e-10, atol=1e-10, err_msg=name)
    assert np.abs(run.y["P"][6] - run.y["P"][5]).max() > 0.01 and np.array_equal(run.y["P"][5], run.y["P"][1])


@pytest.mark.parametrize("apart", [1e4, 1e6])
def test_directions_of_a_gradient_of_far_singular_values(apart):
    """P of the first step is that of 60 digits, as far as rounding of its argument, of singular values apart^2, leaves it."""
    rng = np.random.default_rng(1)
    U, V = (np.linalg.qr(rng.standard_normal((size, 2)))[0] for size in (4, 5))
    G, sizes = (U * [1, 1 / apart]) @ V.T, {"m": 4, "n": 5, "N": 1, "r": 2}
    given = {"A": G[None], "B": np.zeros((1, 4, 4)), "C": np.zeros((1, 5, 5)), "period": 5}
    run = odesim.integrate("galore.adam_map", sizes=sizes, params=given, steps=1, save=2, backend="numpy")

    def polar(Y):
        left, _, right = mpmath.svd_r(Y)
        return left * right

    with mpmath.workdps(60):
        exact = mpmath.matrix(G.tolist())
        P = polar(exact * (exact.T * polar(exact * mpmath.matrix(run.attrs["params"]["Omega"].tolist()))))
    np.testing.assert_allclose(run.final["P"], np.array(P.tolist(), float), atol=10 * np.finfo(float).eps * apart**2)


def test_rank_m_without_refresh_is_adam_in_other_coordinates():
    """P orthogonal, r = m: W in the coordinates of P is what Adam makes of P^T G, by a plain loop."""
    rng = np.random.default_rng(0)
    P = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    sizes, given = {"n": 5, "r": 3}, {"period": 0, "eta": 0.1}
    run = odesim.integrate("galore.adam_map", sizes=sizes, params=given, initial={"P": P}, steps=8, save=2, backend="numpy")
    q = run.attrs["params"]
    W, M, V = np.zeros((3, 5)), 0.0, 0.0
    for t in range(1, 9):
        h = P.T @ gradient(W, q["A"], q["B"], q["C"])
        M, V = 0.9 * M + 0.1 * h, 0.999 * V + 0.001 * h**2
        W = W + 0.1 * P @ (M / (1 - 0.9**t) / (np.sqrt(V / (1 - 0.999**t)) + 1e-8))
    np.testing.assert_allclose(run.final["W"], W, atol=1e-12)


def test_ranks():
    """diag(4, 2, 0): stable rank 1 + 1/4, two singular values above a thousandth; the scale does not enter, 0 has no rank."""
    for scale in (1.0, 1e-170, 1e170):
        assert stable_rank(scale * np.diag([4.0, 2.0, 0.0])) == pytest.approx(1.25, rel=1e-15)
        assert numerical_rank(scale * np.diag([4.0, 2.0, 0.0])) == 2
    assert stable_rank(np.zeros((2, 3))) == numerical_rank(np.zeros((2, 3))) == 0
