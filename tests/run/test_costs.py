"""Costs of steps in stiff lanes, by which members change their method, beside operations counted by loops."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from sympy import Interval, Sum, oo, tanh

from odesim.ir.sizes import FLOP
from odesim.run.problem import stiff_lanes_step
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.symbolic import IndexedBase, Param, Source, System, index, over, sizes
from odesim.targets.compiled import compile_system

(i, j), (N,) = index("i j"), sizes("N")
x, W = IndexedBase("x", shape=(N,)), IndexedBase("W", shape=(N, N))
DENSE, LOCAL = tanh(over(Sum, W[i, j] * x[j], (j, N))) - x[i], over(Sum, W[j, i] * x[i] ** 2, (j, N))
RIGHT = 1000.0


def cost(rate: Any, n: int, right: float = RIGHT) -> float:
    """The cost of a stiff step in lanes of x[i]' = rate."""
    params = (Param(W, 1.0, Interval(-oo, oo), "weights"),)
    system = System(name="own", source=Source("own", "test"), axes={i: N}, equations={x[i]: rate}, params=params, initial={x[i]: 0.1})
    compiled = compile_system(system, backend="numpy")
    return stiff_lanes_step(right, compiled.linear.bind({"N": n}, {"W": np.ones((n, n))}, compiled.layout({"N": n})))


def operations(n: int, stages: int) -> int:
    """Products and sums of an elimination by rows, and of its two triangles for each stage."""
    eliminated = sum(2 for k, a, b in product(range(n), repeat=3) if k < a and k < b)
    return eliminated + stages * sum(2 for a, b in product(range(n), repeat=2) if a != b)


@pytest.mark.parametrize("n", [8, 20, 40])
def test_a_dense_jacobian_is_eliminated_once_a_step(n: int) -> None:
    """It costs the operations of an elimination more than a local one does, which has none, up to those on the diagonal and below n^2."""
    added = (cost(DENSE, n) - cost(LOCAL, n)) / FLOP
    assert added == pytest.approx(operations(n, ROSENBROCK["rodas5p"].stages), abs=3 * n**2)


def test_a_local_step_is_one_pass() -> None:
    """Without elimination the cost of a step grows no faster than its right-hand side and its components, and with both."""
    base, twice_right, twice = cost(LOCAL, 50), cost(LOCAL, 50, 2 * RIGHT), cost(LOCAL, 100, 2 * RIGHT)
    assert base + ROSENBROCK["rodas5p"].stages * RIGHT < twice_right < twice < 2 * base
