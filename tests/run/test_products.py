"""Stiff runs whose Jacobian is large and dense: products with it take the place of its matrix."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from sympy import Interval, Sum, cos, oo, symbols

import odesim
from odesim.base.arrays import Array
from odesim.inputs.bind import bind
from odesim.ir import linear_systems
from odesim.ir import sizes as counts
from odesim.run.problem import parts_of, products_of
from odesim.symbolic import IndexedBase, Param, System, index, over, sizes, time
from odesim.targets import linearization
from odesim.targets import products as large
from odesim.targets.products import BoundProducts
from tests.support.systems import SOURCE, SYSTEMS, numbers

(i, j), (N,) = index("i j"), sizes("N")
TIMES = np.array([0.0, 2e-4, 1e-3, 3e-3, 0.1, 1.0])


def flock() -> System:
    """Particles on a line that attract each other by a force which is not linear, with a common wind."""
    x, a = (IndexedBase(name, shape=(N,)) for name in "xa")
    k, apart = symbols("k", positive=True), x[i] - x[j]
    return System(
        name="flock",
        source=SOURCE,
        axes={i: N, j: N},
        equations={x[i]: cos(time) - k / N * over(Sum, apart + apart**3, (j, N))},
        params=(Param(a, 0.5, Interval(-oo, oo), "starts"), Param(k, 1.0, Interval.open(0, oo), "strength")),
        initial={x[i]: a[i]},
        span=(0.0, 1.0),
    )


def fly(n: int, strength: float = 1000.0, times: Array = TIMES, **options: Any) -> tuple[Any, float]:
    """The run of two groups of n / 2 at .7 and -.7, and its largest error.

    Around the mean, sin t, a group is at z: z' = -k (z + 4 z^3), so that u = 1 / z^2 has u' = 2 k (u + 4).
    """
    start = np.where(np.arange(n) % 2, 0.7, -0.7)
    run = odesim.integrate(flock(), sizes={"N": n}, params={"a": start, "k": strength}, span=(0, times[-1]), save=times, **options)
    u = (0.7**-2 + 4) * np.exp(np.minimum(2 * strength * times, 600.0)) - 4
    exact = np.sin(times)[:, None] + np.sign(start) / np.sqrt(u)[:, None]
    return run, float(np.abs(run.y["x"] - exact).max())


def take_products(monkeypatch: Any) -> list[int]:
    """Takes products for every dense Jacobian, however small; returns [number of right sides for which they are taken]."""
    monkeypatch.setattr(linearization, "LARGE", 0)
    monkeypatch.setattr(counts, "product_step_cost", lambda *_: 0.0)
    return counted_solves(monkeypatch)


def counted_solves(monkeypatch: Any) -> list[int]:
    """[number of right sides for which products were taken, from now on]."""
    solved, solve = [0], linear_systems.Krylov.__call__

    def count(self: Any, b: Array) -> Array:
        solved[0] += 1
        return solve(self, b)

    monkeypatch.setattr(linear_systems.Krylov, "__call__", count)
    return solved


@pytest.mark.parametrize("name", ["softmax", "two_of_one", "gathered"])
def test_products_are_those_of_the_matrix(name):
    """J x and df/dt as of the matrix, but for rounding; the diagonal is what stands outside of sums."""
    system = SYSTEMS[name]
    x, compiled = numbers(system), parts_of(system, "numba", "float64", False).compiled
    bound = compiled.linear.bind(x.sizes, x.params, compiled.layout(x.sizes))
    linear = BoundProducts(bound, compiled.products.bind(x.sizes, x.params, bound.layout))
    linear.prepare()
    y = bound.layout.join(x.states)
    J, products = bound.jacobian(0.3, y).dense(), linear.jacobian(0.3, y)
    for direction in np.eye(len(y)):
        np.testing.assert_allclose(products @ direction, J @ direction, rtol=1e-12, atol=1e-12 * np.abs(J).max())
    if name == "two_of_one":  # without a sum
        np.testing.assert_allclose(products.diagonal, np.diag(J), rtol=1e-12)


@pytest.mark.parametrize("method", ["rodas5p", "rodas4"])
@pytest.mark.parametrize("rtol", [1e-6, 1e-4, 1e-9])
def test_as_by_a_matrix(monkeypatch, method, rtol):
    """Steps and errors are those by a matrix: what is left of the systems is a small part of the tolerance."""
    matrix, error = fly(10, method=method, rtol=rtol, atol=rtol / 100)
    solved = take_products(monkeypatch)
    products, error_too = fly(10, method=method, rtol=rtol, atol=rtol / 100)
    assert solved[0] > 6 * products.stats["steps"]  # a system a stage
    assert products.ok and abs(products.stats["steps"] - matrix.stats["steps"]) <= 1
    assert abs(error_too - error) <= 0.1 * rtol
    assert error <= 10 * rtol


def test_a_matrix_where_products_do_not_suffice(monkeypatch):
    """From the first system that is not solved on, the matrix is taken; where it is too large, steps become smaller."""
    solved = take_products(monkeypatch)
    monkeypatch.setattr(linear_systems, "MOST_DIRECTIONS", 1)
    run, error = fly(10, 10.0, TIMES[:5], method="rodas5p", rtol=1e-4)
    assert run.ok and error < 1e-3 and 0 < solved[0] < 10
    monkeypatch.setattr(large, "MOST_DENSE", 0)
    shorter, error = fly(10, 10.0, TIMES[:5], method="rodas5p", rtol=1e-4)
    assert error < 1e-3 and shorter.ok and shorter.stats["steps"] > 2 * run.stats["steps"]


def test_what_is_not_a_number_ends_a_run(monkeypatch):
    """A run that leaves the numbers ends as one by a matrix does, and not by the matrix."""
    x = IndexedBase("x", shape=(N,))
    grows = System(
        name="grows", source=SOURCE, axes={i: N, j: N}, params=(), initial={x[i]: 1.0}, span=(0.0, 3.0),
        equations={x[i]: over(Sum, (x[i] + x[j]) ** 2, (j, N)) / (4 * N)},
    )  # fmt: skip
    statuses = []
    for _ in range(2):
        run = odesim.integrate(grows, sizes={"N": 6}, method="rodas5p", rtol=1e-4)
        statuses.append((run.status, pytest.approx(run.t[-1], rel=1e-2)))
        solved = take_products(monkeypatch)
    assert solved and statuses[0] == statuses[1] and statuses[0][0] != "ok"


def test_choice():
    """Products from 2,001 states on where they are cheaper, and for dense Jacobians of more than 5,000, which have no other form."""
    compiled = parts_of(flock(), "numba", "float64", False).compiled
    for n, takes in ((2000, False), (2001, True), (5001, True)):
        given = bind(flock(), sizes={"N": n})
        linear = partial(compiled.linear.bind, given.sizes, given.params, compiled.layout(given.sizes))
        assert (products_of(compiled, linear) is not None) == takes


@pytest.mark.slow
def test_ten_thousand_states():
    """10,000 particles, each attracted by all others, to their closed form, by steps that stability does not hold."""
    run, error = fly(10_000, method="rodas5p", rtol=1e-4, atol=1e-6)
    assert run.ok and error < 1e-3 and run.stats["steps"] < 100
