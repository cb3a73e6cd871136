"""The linear systems of stiff lanes as text: the solution, and what says that it is none."""

from typing import Any

import numpy as np
import pytest

from odesim.ir.elimination import SparseSystem, sparse_system
from odesim.ir.scalars import printed
from odesim.run.lane_systems import factor, residual
from odesim.targets.compiled import compile_system
from odesim.targets.unroll import write_out
from tests.support.systems import SYSTEMS, numbers


def dense(J: Any) -> SparseSystem:
    """The Linear of a matrix (n, n); entries that are 0 have no place."""
    names = [f"y{k}" for k in range(len(J))]
    rows = {a: {b: repr(float(J[i, j])) for j, b in enumerate(names) if J[i, j] != 0} for i, a in enumerate(names)}
    return SparseSystem({}, tuple("0.0" for _ in names), rows, tuple(names))


def solved(linear: SparseSystem, known: dict[str, float], g: float, b: Any) -> tuple[Any, bool]:
    """x (n,) and whether its residual is small; g = gamma h, the right-hand sides of states times g."""
    found = factor(linear, "g")
    names = {f"y{k}": f"b{k}" for k in range(len(b))}
    lines, x = found.solve(dict(names), "x")
    env = {**known, "g": g, "atol": 1e-9, **{f"b{k}": g * v for k, v in enumerate(b)}}
    everything = [*printed(found.code), *lines, "good = True", *residual(linear, "g", names, x, "good", lambda d: "atol")]
    with np.errstate(all="ignore"):
        exec("\n".join(everything), {"abs": abs}, env := {k: np.float64(v) for k, v in env.items()})
    return np.array([env[x[f"y{k}"]] for k in range(len(b))]), bool(env["good"])


@pytest.mark.parametrize("name", ["elementwise", "softmax", "mean_field", "products", "rows", "numbers", "gathered", "masked", "largest"])
@pytest.mark.parametrize("big", [2, 9])
def test_solution(name, big):
    """(1/g - J) x = b of every structure is numpy's, to the rounding that the condition leaves; sums stay unknown where they are many."""
    system = SYSTEMS[name]
    given = numbers(system, big=big)
    compiled = compile_system(system, backend="numpy")
    f = write_out(system, compiled.program, given.sizes, {p.name: given.params[p.name] for p in system.params if p.integer})
    linear, layout = sparse_system(f), compiled.layout(given.sizes)
    y, p = layout.join(given.states), np.concatenate([[], *(np.ravel(np.asarray(given.params[n], float)) for n in f.values)])
    from tests.ir.test_elimination import WORDS

    known: dict[str, Any] = {**WORDS, "t": 0.3, **{f"y{k}": v for k, v in enumerate(y)}, **{f"p{k}": v for k, v in enumerate(p)}}
    exec("\n".join(printed(linear.code)), known)
    entries = {k: v for k, v in known.items() if isinstance(v, float | int) and k[0] in "jyp"}
    J = compiled.linear.bind(given.sizes, given.params, layout).jacobian(0.3, y).dense()
    b = np.random.default_rng(0).normal(size=len(y))
    for g in (0.02, 0.7):
        A = np.eye(len(y)) / g - J
        x, good = solved(linear, entries, g, b)
        want = np.linalg.solve(A, b)
        np.testing.assert_allclose(x, want, atol=1e-14 * np.linalg.cond(A) * np.abs(want).max())
        assert good


@pytest.mark.parametrize("gap", [1e-3, 1e-8, 1e-13, 0.0])
def test_a_small_pivot_is_seen(gap):
    """A regular matrix whose first pivot is next to 0: what elimination loses is in the residual; with a fourth of the step it is good."""
    g = 0.5
    J = np.array([[(1 - gap) / g, 3.0, 1.0], [-2.0, 1.0, 5.0], [0.5, -7.0, 2.0]])
    b = np.array([1.0, -2.0, 0.3])
    x, good = solved(dense(J), {}, g, b)
    want = np.linalg.solve(np.eye(3) / g - J, b)
    assert good == (gap > 1e-6)
    if good:
        assert x == pytest.approx(want, rel=1e-11)
    x, good = solved(dense(J), {}, g / 4, b)
    assert good and x == pytest.approx(np.linalg.solve(4 * np.eye(3) / g - J, b), rel=1e-13)


@pytest.mark.parametrize("seed", range(6))
def test_components_of_all_sizes_are_good(seed):
    """A band with weak couplings: its solution comes down to 1e-320, where numbers have few digits, and is one all the same."""
    rng = np.random.default_rng(seed)
    n, weak = 40, -rng.uniform(5, 9)
    J = np.diag(-(10.0 ** rng.uniform(0, 3, n))) + sum(np.diag(10.0 ** rng.uniform(weak - 1, weak + 1, n - 1), d) for d in (-1, 1))
    b = np.where(np.arange(n) == 0, 1.0, 0.0) if seed % 2 else 10.0 ** rng.uniform(-320, 0, n)
    x, good = solved(dense(J), {}, 0.1, b)
    assert good
    np.testing.assert_allclose(x, np.linalg.solve(np.eye(n) / 0.1 - J, b), rtol=1e-12, atol=1e-20)


def test_nan_is_not_good():
    """A matrix with NaN in it gives no solution."""
    assert not solved(dense(np.array([[1.0, np.nan], [2.0, 3.0]])), {"nan": np.nan}, 0.1, np.ones(2))[1]
