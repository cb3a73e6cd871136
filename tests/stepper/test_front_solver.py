"""Compiled elimination in fronts: solutions, products and orders against dense numpy, and what happens where its pivots do not suffice."""

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.sparse import diags_array, eye_array, kron, random_array

from odesim.base.arrays import Array
from odesim.ir.fronts import FEW, Entries, make_fronts
from odesim.stepper.problem import CompiledSlopes
from odesim.stepper.stiff_systems import TYPES, FrontSystems

_VALUES = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_double, ctypes.c_int64, ctypes.c_int64)


def chain(n: int) -> Array:
    return np.asarray(diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1]).toarray())  # type: ignore[list-item]


def torus(n: int) -> Array:
    ring = chain(n)
    ring[0, -1] = ring[-1, 0] = 1.0
    return np.asarray((kron(ring, eye_array(n)) + kron(eye_array(n), ring)).toarray())


def arrow(n: int) -> Array:
    """A sum over all states: a full row and a full column."""
    places = np.eye(n)
    places[n // 2] = places[:, n // 2] = 1.0
    return places


# patterns, not all symmetric: one dense front, chains of small ones, wide ones with products by BLAS
PATTERNS: dict[str, Array] = {
    "none": np.zeros((0, 0)),
    "one": np.ones((1, 1)),
    "dense": np.ones((FEW, FEW)),
    "apart": np.eye(40),
    "chain": chain(60),
    "band": np.tril(np.triu(np.ones((60, 60)), -3), 3),
    "decay": np.tril(chain(60)),
    "arrow": arrow(50),
    "torus": torus(9),
    "wide": torus(30),
    "random": random_array((80, 80), density=0.04, rng=np.random.default_rng(3)).toarray(),
    "full": np.ones((130, 130)),
}
EACH = pytest.mark.parametrize("name", PATTERNS)


@dataclass
class Solver:
    """A FrontSystems for -J = the matrix values (n, n) and df/dt = 0, called as the driver calls it."""

    values: Array
    extra: int = 0

    def __post_init__(self) -> None:
        rows, columns = np.nonzero(self.values)
        self.numbers, n = -self.values[rows, columns], len(self.values) - self.extra
        count = len(rows)
        tangent = np.argsort(np.where(rows < n, len(self.values), rows), kind="stable")
        tangent = tangent[(rows[tangent] != columns[tangent]) | (rows[tangent] < n)]
        entries = Entries(n, n + self.extra, count, rows, columns, -np.ones(count), np.arange(count), tangent)
        self.call = _VALUES(lambda *a: ctypes.memmove(a[3], self.numbers.ctypes.data, 8 * count) and None)
        slopes: Any = Bound(ctypes.cast(self.call, ctypes.c_void_p).value or 0)
        self.systems = FrontSystems(n, None, np.full(n, 1e-300), CompiledSlopes(entries, slopes, None))  # type: ignore[arg-type]
        self.J = np.zeros(self.systems.size)
        self("LINEAR", 0.0, self.J, self.J)

    def __call__(self, name: str, *arguments: Any) -> None:
        given = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
        TYPES[name](self.systems.functions[name])(self.systems.functions["SYSTEMS"], *given)

    def solve(self, g: float, b: Array) -> Array | None:
        truth, x = np.zeros(1, np.int64), np.empty_like(b)
        self("ELIMINATE", self.J, g, truth)
        if not truth[0]:
            return None
        self("SOLVE", self.J, g, b, x)
        self("SOLVE", self.J, g, b, x)
        return x


@dataclass
class Bound:
    events: int
    table: int = 0
    n_events: int = 0


def numbers(name: str) -> Array:
    """A matrix of the pattern with numbers of sizes from 1e-3 to 1e3."""
    places, rng = PATTERNS[name], np.random.default_rng(len(PATTERNS[name]))
    return np.asarray((places != 0) * rng.normal(size=places.shape) * 10.0 ** rng.uniform(-3, 3, places.shape))


@EACH
def test_fronts_hold_the_factors(name: str) -> None:
    """Each unknown is eliminated once, and all that its elimination reads or changes is in its front: Gauss on the pattern."""
    places = (PATTERNS[name] != 0) | (PATTERNS[name] != 0).T
    fronts = make_fronts(len(places), *np.nonzero(places))
    seen, filled = list[int](), places | np.eye(len(places), dtype=bool)
    for s, width in enumerate(fronts.widths):
        rows = fronts.rows[fronts.first[s] : fronts.first[s + 1]]
        for k, i in enumerate(rows[:width]):
            later = np.array([j for j in np.flatnonzero(filled[i]) if j not in seen and j != i], int)
            assert set(later) <= set(rows[k + 1 :])
            filled[np.ix_(later, later)] = True
            seen.append(int(i))
        assert fronts.parents[s] > s or (fronts.parents[s] == -1 and len(rows) == width)
        if len(rows) > width:
            parent = fronts.rows[fronts.first[fronts.parents[s]] : fronts.first[fronts.parents[s] + 1]]
            np.testing.assert_array_equal(parent[fronts.places[fronts.first[s] + width : fronts.first[s + 1]]], rows[width:])
    assert sorted(seen) == list(range(len(places)))


@EACH
def test_what_waits_is_not_overwritten(name: str) -> None:
    """What is left of a front stands where it was put until its parent takes it, the parents one after another."""
    places = PATTERNS[name] != 0
    fronts = make_fronts(len(places), *np.nonzero(places | places.T))
    counts, starts, owner = (fronts.sizes - fronts.widths) ** 2, fronts.first_left, np.full(fronts.first_left[-1], -1)
    taken = list[int]()
    for s, count in enumerate(counts):
        for c in np.flatnonzero(fronts.parents == s).tolist():
            assert np.all(owner[starts[c] : starts[c] + counts[c]] == c)
            taken.append(c)
        owner[starts[s] : starts[s] + count] = s
        assert starts[s] + count <= len(owner)
    assert taken == np.flatnonzero(fronts.parents >= 0).tolist()


@pytest.mark.parametrize("name", ["chain", "band", "decay"])
def test_a_band_is_eliminated_from_both_ends(name: str) -> None:
    """In half as many levels as there are unknowns, but for its width in the middle; no front is wider than the band."""
    rows, columns = np.nonzero(PATTERNS[name])
    width, fronts = np.max(np.abs(rows - columns)), make_fronts(60, rows, columns)
    depth = np.ones(len(fronts.widths))
    for s in range(len(depth) - 2, -1, -1):
        depth[s] += depth[fronts.parents[s]]
    assert np.max(depth) <= 30 + width and np.max(fronts.sizes) == width + 1 and np.all(np.diff(depth) <= 0)


@EACH
def test_solutions(name: str) -> None:
    """(1 - g J) x = b, each row to 1e-10 of its own terms (checked to 1e-11), by SuperLU of the largest ones; and J b."""
    values, rng = numbers(name), np.random.default_rng(1)
    solver, b = Solver(values), rng.normal(size=len(values))
    for g in (1e-6, 1e-3, 1.0):
        x, matrix = solver.solve(g, b), np.eye(len(values)) + g * values
        assert x is not None
        sizes = np.abs(matrix) @ np.abs(x) + np.abs(b)
        assert np.all(np.abs(matrix @ x - b) <= 1e-10 * (sizes.max() if solver.systems.by_python else sizes))
    product = np.empty(len(b))
    solver("ALONG", solver.J, b, product)
    np.testing.assert_allclose(product, -values @ b, rtol=1e-12, atol=1e-12 * np.abs(values).max(initial=1.0))


def test_unknowns_beside_the_states() -> None:
    """y' = -y + s, s = (sum of y) + 1/2 of the s before: the states' solution is that of the matrix without s."""
    n, m = 30, 5
    A, B, C, D = -np.eye(n), np.ones((n, m)) / m, np.ones((m, n)) / n, np.eye(m, k=-1) / 2
    values = np.block([[-A, -B], [-C, np.eye(m) - D]])
    solver, b, product = Solver(values, m), np.linspace(-1, 2, n), np.empty(n)
    J = A + B @ np.linalg.inv(np.eye(m) - D) @ C
    x = solver.solve(0.1, b)
    assert x is not None
    np.testing.assert_allclose(x, np.linalg.solve(np.eye(n) - 0.1 * J, b), rtol=1e-12)
    solver("ALONG", solver.J, b, product)
    np.testing.assert_allclose(product, J @ b, rtol=1e-12)


@pytest.mark.parametrize("small", [0.0, 1e-14])
def test_pivots_elsewhere(small: float) -> None:
    """Where a pivot of the fixed order is 0 or nearly so, SuperLU finds others, and the solution is as good."""
    n, g = 60, 1.0
    values = 2.0 * chain(n) - np.diag(np.full(n, 3.0 - small))  # with the shift the diagonal is small, and the matrix is not singular
    solver, b = Solver(values), np.cos(np.arange(n))
    x = solver.solve(g, b)
    assert x is not None and solver.systems.by_python > 0
    np.testing.assert_allclose((np.eye(n) + values) @ x, b, atol=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_no_solution(bad: float) -> None:
    """An entry that is not finite, or a singular matrix, is no solution: the step is tried again with another size."""
    values = numbers("chain")
    values[7, 7] = bad
    assert Solver(values).solve(1.0, np.ones(60)) is None
    assert Solver(-np.eye(30)).solve(1.0, np.ones(30)) is None
