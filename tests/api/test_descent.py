"""Descent with momentum on a System's right-hand side, beside matrices."""

from typing import Any

import numpy as np
import pytest
from sympy import Interval, Sum, oo, symbols

import odesim
from odesim.base.errors import SpecError
from odesim.lab.compare.runs import side_of_descent
from odesim.symbolic import IndexedBase, Param, Source, System, descent, index, over, sizes, time

A = np.array([[-0.5, 0.2, 0.0], [0.1, -1.0, 0.3], [0.0, 0.0, -0.2]])
Y0 = np.array([1.0, -2.0, 0.5])
(i, j), (M,) = index("i j"), sizes("M")
y, a = IndexedBase("y", shape=(M,)), IndexedBase("a", shape=(M, M))
x = symbols("x", real=True)
REAL = Interval(-oo, oo)
LINEAR = System(
    name="test.linear", source=Source("none", "test"), axes={i: M}, equations={y[i]: over(Sum, a[i, j] * y[j], (j, M))},
    params=(Param(a, 0.0, REAL, "a matrix"),), initial={y[i]: 1.0}, sizes={M: 3},
)  # fmt: skip


def scalar(rhs: Any, start: float) -> System:
    return System(name="test.scalar", source=Source("none", "test"), axes={}, equations={x: rhs}, params=(), initial={x: start})


@pytest.mark.first(1)
@pytest.mark.parametrize("beta", [0.0, 0.6, 0.9])
def test_linear_systems_are_powers_of_a_matrix(beta):
    """(y, v) of y' = A y goes by [[I + hA, bI], [hA, bI]] at each iteration; 1e-12 is rounding."""
    h, eye = 0.3, np.eye(3)
    block = np.block([[eye + h * A, beta * eye], [h * A, beta * eye]])
    found = odesim.integrate(descent(LINEAR, step=h, momentum=beta), params={"a": A}, initial={"y": Y0}, save=[0, 1, 2, 7, 40], steps=40)
    for n, row in zip(found.t, found.y["y"], strict=True):
        assert row == pytest.approx((np.linalg.matrix_power(block, int(n)) @ np.concatenate([Y0, 0 * Y0]))[:3], rel=1e-12, abs=1e-14)


def test_time_goes_with_the_updates():
    """y' = t is summed at h n."""
    found = odesim.integrate(descent(scalar(time, 0.0), step=0.5), steps=5, save=6)
    assert found.y["x"] == pytest.approx(0.25 * np.cumsum([0, 0, 1, 2, 3, 4]), rel=1e-14)


def test_it_ends_before_what_is_not_finite():
    """x <- x + x^2 from 2 overflows: a comparison has the iterations before, and a note."""
    wanted = [2.0]
    while wanted[-1] < 1e154:
        wanted.append(wanted[-1] + wanted[-1] ** 2)
    side = side_of_descent(scalar(x * x, 2.0), {}, {}, np.arange(0, 30, 2), 1.0, 0.0)
    np.testing.assert_allclose(side.values("x")[0], wanted[::2], rtol=1e-12)  # rounding, which some ten squarings double
    assert side.t[-1] == 2 * (len(side.t) - 1) and "the update of x is inf" in side.notes[0]


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        (LINEAR, {"step": 0}, "a step above 0"),
        (LINEAR, {"momentum": 1.5}, "momentum in"),
        (LINEAR, {"step": np.nan}, "a step above 0"),
        (descent(LINEAR), {}, "takes a System of differential equations"),
    ],
)
def test_refusals(given, options, said):
    """Steps and momenta that make no descent, and what has none."""
    with pytest.raises(SpecError, match=said):
        descent(given, **options)
