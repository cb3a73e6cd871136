"""Axes without an order of their own are put in the order that fits."""

from itertools import permutations

import numpy as np
import pytest

from odesim.base.errors import ParamError
from odesim.lab.compare.comparison import compare_sides
from odesim.lab.compare.sides import best_order
from tests.support.curves import rising, side

SAID = {"theory": "a", "training": "b", "map": "", "clock": "", "unit": ""}


ORDERS = list(permutations(range(4)))


def test_best_order_has_the_least_square():
    """Of all orders of four noisy curves the one found leaves the least sum of squares."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 4, 7))
    order = best_order([a], [b])
    assert np.sum((a[order] - b) ** 2) == pytest.approx(min(np.sum((a[list(p)] - b) ** 2) for p in permutations(range(4))), rel=1e-12)


def test_each_array_counts_as_much():
    """Of two arrays, one of them a thousand times as large: of all orders the least sum of squares, each array in units of its length."""
    rng, alone = np.random.default_rng(5), 0
    for _ in range(40):
        sizes = 10.0 ** rng.uniform(-3, 3, (2, 2))
        a, b = ([size * rng.normal(size=(4, 3)) for size in row] for row in sizes)
        units = [(x / np.linalg.norm(x), y / np.linalg.norm(y)) for x, y in zip(a, b, strict=True)]
        squares = np.array([[((x[list(order)] - y) ** 2).sum() for x, y in units] for order in ORDERS])
        best = np.argmin(squares.sum(axis=1))
        assert tuple(best_order(a, b)) == ORDERS[best]
        alone += best in squares.argmin(axis=0)
    assert alone < 40  # in some both arrays were needed


def test_permuted_seeds_are_found():
    """Two seeds, each with its own order of the nodes, in two observables: aligned they are the theory; 1e-12 is rounding."""
    heights, theory = np.array([1.0, 2.0, 3.0]), rising([0.5, 1.0, 2.0])
    v, V = theory * heights, np.stack([theory, -theory], axis=2)  # (1, T, 3), (1, T, 2, 3)
    orders = [[2, 0, 1], [1, 0, 2]]
    dims = {"v": ("k",), "V": ("l", "k")}
    trained = side(dims=dims, v=np.concatenate([v[..., o] for o in orders]), V=np.concatenate([V[..., o] for o in orders]))
    for axes, wanted in (((), False), (("k",), True)):
        found = compare_sides(side(dims=dims, v=v, V=V), trained, phrases=SAID, align=axes)
        assert bool(found.passed({name: {"relative_l2": 1e-12} for name in dims})) is wanted


def test_an_axis_must_be_there():
    """An axis that nothing has is named, with those that there are."""
    theory = side(dims={"v": ("k",)}, v=rising([1.0, 2.0]))
    with pytest.raises(ParamError, match="no axis 'q' in what is compared; choose from k"):
        compare_sides(theory, theory, phrases=SAID, align=("q",))


def test_times_do_not_matter_to_the_order():
    """A single time is enough to tell heights apart."""
    assert list(best_order([np.array([[3.0], [1.0], [2.0]])], [np.array([[1.0], [2.0], [3.0]])])) == [1, 2, 0]
