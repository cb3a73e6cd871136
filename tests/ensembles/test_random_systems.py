"""Random Systems: lanes, the integrator of one system, whole arrays and scipy agree."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from sympy import IndexedBase, Interval, Piecewise, Range, Rational, Sum, exp, log, oo, sqrt, tanh

import odesim
from odesim.codegen.compiled import compile_system
from odesim.symbolic import Param, Source, System, index, over, sizes, softmax, time

(m, k), (M,) = index("m k"), sizes("M")
x, a, psi = IndexedBase("x", shape=(M,)), IndexedBase("a", shape=(M,)), IndexedBase("psi", shape=(M,))
B = IndexedBase("B", shape=(M, M))
# every term is bounded or pulls back, so that no run leaves for infinity
TERMS = (
    tanh(x[m]),
    exp(-(x[m] ** 2)),
    log(1 + x[m] ** 2),
    1 / sqrt(1 + x[m] ** 2),
    x[m] / (1 + x[m] ** 2) ** Rational(3, 2),
    softmax(x[m], (m, M)),
    over(Sum, B[m, k] * tanh(x[k]), (k, M)),
    over(Sum, exp(-((x[k] - a[k]) ** 2)), (k, M)) / M,
    Piecewise((x[m], x[m] > 0), (tanh(x[m]), True)) / (1 + x[m] ** 2),
    a[m] * tanh(time - 1),
    tanh(x[psi[m]]),
    m * exp(-(x[m] ** 2)) / M,
)


def random_system(chosen: tuple[int, ...], weights: tuple[float, ...]) -> System:
    """x' = a - x plus terms of the table."""
    right = a[m] - x[m] + sum(w * TERMS[i] for i, w in zip(chosen, weights, strict=True))
    used = right.atoms(IndexedBase)
    params = [Param(a, 0.5, Interval(-oo, oo), "drive"), Param(B, 0.3, Interval(-oo, oo), "coupling")]
    params.append(Param(psi, lambda sizes: np.arange(sizes["M"]), Range(0, oo), "neighbours", indexes=M))
    return System(
        name="test.random",
        source=Source("none", "made for the tests"),
        axes={m: M, k: M},
        equations={x[m]: right},
        params=tuple(p for p in params if p.symbol in used),
        initial={x[m]: 0.1},
        sizes={M: 3},
        span=(0.0, 3.0),
    )


def check(chosen: tuple[int, ...], weights: tuple[float, ...], n: int, seed: int) -> None:
    """Members in lanes equal single runs bit for bit in strict mode, and scipy's DOP853 to the tolerance."""
    system, rng = random_system(chosen, weights), np.random.default_rng(seed)
    names = {p.name for p in system.params}
    drive, start = rng.normal(size=(11, n)), rng.normal(size=(11, n))
    shared = {"B": rng.normal(size=(n, n)) / n, "psi": rng.permutation(n)}
    shared = {name: value for name, value in shared.items() if name in names}
    run: dict[str, Any] = {"span": (0.0, 3.0), "rtol": 1e-8, "atol": 1e-8, "method": "tsit5"}
    found = odesim.ensemble(system, params={"a": drive, **shared}, initial={"x": start}, strict=True, save=4, **run)
    assert not found.status.any()
    compiled = compile_system(system)
    for i in (0, 10):
        own = {"a": drive[i], **shared}
        one = odesim.integrate(system, params=own, initial={"x": start[i]}, strict=True, save=4, **run)
        np.testing.assert_array_equal(found.x[i], one.y["x"])

        def right(t, y, own=own):
            values = {p.name: np.broadcast_to(own.get(p.name, p.default), (n,) if len(p.shape) == 1 else (n, n)) for p in system.params}
            return compiled.arrays({"M": n}, {**values, "x": y, "t": t})["d_x"]

        truth = solve_ivp(right, (0.0, 3.0), start[i], method="DOP853", rtol=1e-11, atol=1e-11, t_eval=found.time.values)
        # the tolerance holds for a step; errors of some tens of them add up, and these flows contract
        np.testing.assert_allclose(found.x[i], truth.y.T, atol=3e-7)


ROWS = [((0, 5, 6, 9), (0.5, -1.0, 1.0, 0.7), 4, 1), ((1, 3, 8, 10, 11), (1.0, -0.5, 0.8, 1.0, -0.3), 5, 2)]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_systems_made_of_many_terms(row):
    """Two Systems that hold most of the terms."""
    check(*row)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_bits_of_float32(row):
    """In strict mode lanes of float32 have the bits of single runs, with numbers, sums and arrays of other precision among them."""
    chosen, weights, n, seed = row
    system, rng = random_system(chosen, weights), np.random.default_rng(seed)
    drive, start = rng.normal(size=(9, n)), rng.normal(size=(9, n))
    run: dict[str, Any] = {"span": (0.0, 3.0), "rtol": 1e-5, "atol": 1e-5, "method": "tsit5", "save": 4, "strict": True, "dtype": "float32"}
    found = odesim.ensemble(system, params={"a": drive}, initial={"x": start}, **run)
    for i in (0, 8):
        one = odesim.integrate(system, params={"a": drive[i]}, initial={"x": start[i]}, **run)
        np.testing.assert_array_equal(found.x[i], one.y["x"])


@pytest.mark.slow
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_systems(data):
    """Any few terms with any weights."""
    chosen = tuple(data.draw(st.lists(st.integers(0, len(TERMS) - 1), min_size=1, max_size=4, unique=True)))
    weights = tuple(data.draw(st.floats(-1.5, 1.5)) for _ in chosen)
    check(chosen, weights, data.draw(st.integers(1, 6)), data.draw(st.integers(0, 99)))
