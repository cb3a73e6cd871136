"""The order of sums over several indices: the cheapest one, however they are written, and always the same number."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Reals, Sum, Symbol

from odesim import ensemble, integrate
from odesim.ir.program import MOST_ORDERS as MOST
from odesim.ir.program import Contraction
from odesim.run.problem import compiled_for, parts_of
from odesim.symbolic import IndexedBase, Param, System, index, over, sizes
from odesim.targets.compiled import compile_system
from tests.support.systems import SOURCE

NUMBERS = dict(zip("ijklm", (3, 40, 5, 17, 40), strict=True))
INDICES = dict(zip("ijklm", index("i j k l m"), strict=True))
I, J, K, L = sizes("I J K L")
AXES = dict(zip(INDICES.values(), (I, J, K, L, J), strict=True))
MATRICES = {"A": (I, J), "B": (J, K), "C": (K, L), "x": (K,)}

SUMS = {  # factors, free indices, summed indices -> the shapes of the temporaries, all of them
    "A (B x)": ("A:ij B:jk x:k", "i", "jk", [(J,), (I,)]),
    "(A B) C": ("A:ij B:jk C:kl", "il", "jk", [(I, K), (I, L)]),
    "both rows of A B are one": ("A:ij A:im B:jk B:mk", "i", "jmk", [(I, K), (I,)]),
}


def system(factors: str, free: str, summed: str) -> System:
    """A System whose rate is one sum."""
    named = [f.split(":") for f in factors.split()]
    arrays = {name: IndexedBase(name, shape=MATRICES[name]) for name, _ in named}
    body: Any = 1
    for name, of in named:
        body *= arrays[name][tuple(INDICES[s] for s in of)]
    key = IndexedBase("y", shape=tuple(AXES[INDICES[s]] for s in free))[tuple(INDICES[s] for s in free)]
    used = {INDICES[s]: AXES[INDICES[s]] for s in dict.fromkeys(free + summed)}
    return System(
        name="made.order", source=SOURCE, axes=used, params=tuple(Param(a, 1.0, Reals, "values") for a in arrays.values()),
        equations={key: over(Sum, body, *((INDICES[s], AXES[INDICES[s]]) for s in summed))}, initial={key: 0},
        sizes={AXES[INDICES[s]]: NUMBERS[s] for s in dict.fromkeys(free + summed)},
    )  # fmt: skip


@pytest.mark.parametrize("case", SUMS)
def test_every_way_to_write_a_sum_is_the_cheapest(case: str) -> None:
    """The temporaries of the cheapest order, and the number that numpy.einsum gives; rounding of some hundred terms."""
    factors, free, summed, shapes = SUMS[case]
    rng = np.random.default_rng(0)
    for order in permutations(summed):
        rhs = compile_system(system(factors, free, "".join(order)))
        assert [s.target.shape for s in rhs.program.statements() if s.op != "map"] == shapes, order
        named = [f.split(":") for f in factors.split()]
        arrays = {name: rng.standard_normal([NUMBERS[s] for s in of]) for name, of in named}
        start = {"y": np.zeros([NUMBERS[s] for s in free])}
        got = rhs.arrays({str(AXES[INDICES[s]]): NUMBERS[s] for s in free + summed}, {**arrays, **start, "t": 0.0})["d_y"]
        want = np.einsum(",".join(of for _, of in named) + "->" + free, *(arrays[name] for name, _ in named))
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12 * np.abs(want).max())


@given(st.lists(st.integers(1, 50), min_size=4, max_size=MOST + 2))
def test_a_chain_of_matrices(extents: list[int]) -> None:
    """The cost is the least of all bracketings, by the recursion of textbooks (Cormen et al., section 15.2).

    Beyond MOST summed indices the order is no worse than the one that is written.
    """
    n = len(extents) - 1
    names = [Symbol(f"a{k}") for k in range(n + 1)]
    chain = Contraction(
        [(f"M{k}", (names[k], names[k + 1])) for k in range(n)], dict(zip(names, map(float, extents), strict=True)).__getitem__
    )
    least = {(k, k): 0 for k in range(n)}
    for length in range(1, n):
        for a in range(n - length):
            b = a + length
            least[a, b] = min(least[a, c] + least[c + 1, b] + extents[a] * extents[c + 1] * extents[b + 1] for c in range(a, b))
    written = names[1:-1]
    found = chain.cost(chain.cheapest(written))
    assert found <= chain.cost(written)
    if len(written) <= MOST:
        assert least[0, n - 1] <= found <= least[0, n - 1] / 0.99


def test_the_order_is_that_of_the_sizes_of_the_run():
    """A B C by defaults as (A B) C; where J and L are small as A (B C): fewer multiplications, numpy.einsum's number, and its bits in
    ensembles. Rounding of some hundred terms."""
    made = system("A:ij B:jk C:kl", "il", "jk")
    usual = {"I": 3, "J": 40, "K": 5, "L": 17}
    few = {"I": 50, "J": 4, "K": 60, "L": 2}
    plain, turned = (compiled_for(made, given, "numba", "float64", True) for given in (usual, few))
    assert plain is parts_of(made, "numba", "float64", True).compiled
    assert turned is compiled_for(made, {**few, "K": 61}, "numba", "float64", True)  # the same order
    assert [s.target.shape for s in plain.program.statements() if s.op != "map"] == [(I, K), (I, L)]
    assert [s.target.shape for s in turned.program.statements() if s.op != "map"] == [(L, J), (I, L)]
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal([few[str(s)] for s in MATRICES[name]]) for name in "ABC"}
    how: dict[str, Any] = {"span": (0, 1), "method": "euler", "step": 1.0, "strict": True}
    run = integrate(made, params=arrays, sizes=few, **how)
    want = arrays["A"] @ arrays["B"] @ arrays["C"]
    np.testing.assert_allclose(run.final["y"], want, rtol=1e-12, atol=1e-12 * np.abs(want).max())
    members = ensemble(made, params=arrays, sizes=few, grid={"y": [0.0, 0.0]}, **how)
    np.testing.assert_array_equal(members["y"].values[0, -1], run.final["y"])
