"""Descent with momentum on a Problem's right-hand side, beside matrices and a loop of its own."""

from typing import Any

import numpy as np
import pytest

from odesim.errors import SolveError
from odesim.solve.descent import descend
from tests.support.problems import problem

A = np.array([[-0.5, 0.2, 0.0], [0.1, -1.0, 0.3], [0.0, 0.0, -0.2]])
Y0 = np.array([1.0, -2.0, 0.5])


@pytest.mark.parametrize("beta", [0.0, 0.6, 0.9])
def test_linear_systems_are_powers_of_a_matrix(beta):
    """(y, v) of y' = A y goes by [[I + hA, bI], [hA, bI]] at each iteration; 1e-12 is rounding."""
    h, eye = 0.3, np.eye(3)
    block = np.block([[eye + h * A, beta * eye], [h * A, beta * eye]])
    asked = np.array([0, 1, 2, 7, 40])
    reached, y = descend(problem(lambda t, y: A @ y, Y0, 1.0), asked, step=h, momentum=beta)
    assert np.array_equal(reached, asked)
    for i, row in zip(asked, y, strict=True):
        assert row == pytest.approx((np.linalg.matrix_power(block, int(i)) @ np.concatenate([Y0, 0 * Y0]))[:3], rel=1e-12, abs=1e-14)


def test_time_goes_with_the_iterations():
    """y' = t from t0 is summed at t0 + h i; what is kept does not depend on what else is."""
    _, y = descend(problem(lambda t, y: [t], [0.0], 3.0, t0=2.0), np.array([3, 5]), step=0.5)
    assert y[:, 0] == pytest.approx([0.5 * (2 + 2.5 + 3), 0.5 * (2 + 2.5 + 3 + 3.5 + 4)], rel=1e-14)


def test_it_ends_before_what_is_not_finite():
    """y <- y + y^2 from 2 overflows: the iterations before are kept, the others are not there."""
    reached, y = descend(problem(lambda t, y: y * y, [2.0], 1.0), np.arange(30))
    wanted = [2.0]
    while np.isfinite(wanted[-1]):
        wanted.append(wanted[-1] + wanted[-1] ** 2 if wanted[-1] < 1e154 else np.inf)
    assert len(reached) == len(wanted) - 1 and y[:, 0] == pytest.approx(wanted[:-1], rel=1e-12)


def test_errors_of_a_right_side_come_out():
    """What the right-hand side raises is raised."""

    def broken(t: float, y: Any) -> Any:
        raise ZeroDivisionError("no")

    with pytest.raises(ZeroDivisionError, match="no"):
        descend(problem(broken, Y0, 1.0), np.arange(3))


@pytest.mark.parametrize(
    ("asked", "options", "said"),
    [
        ([0.5, 1], {}, "whole numbers"),
        ([-1, 2], {}, "whole numbers"),
        ([2, 1], {}, "increase"),
        ([0, 1], {"step": 0}, "a step above 0"),
        ([0, 1], {"momentum": 1.5}, "momentum in"),
        ([0, 1], {"step": np.nan}, "a step above 0"),
    ],
)
def test_refusals(asked, options, said):
    """Iterations that are none, steps and momenta that make no descent."""
    with pytest.raises(SolveError, match=said):
        descend(problem(lambda t, y: y, Y0, 1.0), np.array(asked), **options)
