"""Random Systems: written out, in lanes, in the integrator of one system, on whole arrays and in scipy they agree."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from sympy import Interval, KroneckerDelta, Piecewise, Range, Rational, Sum, exp, log, oo, sqrt, symbols, tanh

import odesim
from odesim.ir.scalars import Formulas
from odesim.symbolic import IndexedBase, Param, Source, System, index, logsumexp, over, sizes, softmax, time
from odesim.targets.compiled import compile_system
from odesim.targets.unroll import write_out
from tests.support.matrix import slow_but

(m, k, j, q, l), (M, Q) = index("m k j q l"), sizes("M Q")
x, a, psi, b = (IndexedBase(name, shape=(M,)) for name in ("x", "a", "psi", "b"))
B, V, D = IndexedBase("B", shape=(M, M)), IndexedBase("V", shape=(M, Q)), IndexedBase("D", shape=(M, Q))
n = symbols("n", integer=True, positive=True)
mean = over(Sum, x[j], (j, M)) / M
row = over(Sum, V[m, j] ** 2, (j, Q))
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
    over(Sum, exp(-((x[k] - mean) ** 2)), (k, M)) / M,
    over(Sum, b[k] * over(Sum, tanh(x[j] - x[k]), (j, M)), (k, M)) / M**2,
    over(Sum, KroneckerDelta(m, psi[k]) * tanh(x[k]), (k, M)),
    logsumexp(-(x[m] ** 2), (m, M)) / (2 + M),
    n * x[m] / (1 + x[m] ** 4),
    exp(-n * x[m] ** 2) + Piecewise((1, time > 1), (0, True)),
    Piecewise((tanh(x[m]), (x[m] > 0) & (time > 1.5)), (x[m] / 4, (m > 1) | (x[m] > 1)), (a[m] / (2 + m), m < 1), (0, True)),
)
JUMPS = {17, 18}
# the same for a state with two axes, which sees the other state and is seen by it
PLANES = (
    tanh(V[m, q]),
    x[m] * exp(-(V[m, q] ** 2)),
    softmax(V[m, q], (q, Q)),
    exp(-row) * D[m, q],
    over(Sum, D[l, q] * tanh(V[l, q]), (l, M)) / M,
    over(Sum, B[m, l] * over(Sum, tanh(V[l, j]) * D[l, j], (j, Q)), (l, M)) / Q,
    tanh(V[psi[m], q]) + KroneckerDelta(q, 0) * a[m],
)
PARAMS = (
    Param(a, 0.5, Interval(-oo, oo), "drive"),
    Param(b, 1.5, Interval(-oo, oo), "weights"),
    Param(B, 0.3, Interval(-oo, oo), "coupling"),
    Param(D, 0.7, Interval(-oo, oo), "plane"),
    Param(psi, lambda sizes: np.arange(sizes["M"]), Range(0, oo), "neighbours", indexes=M),
    Param(n, 2, Range(1, 4), "a whole number"),
)
Chosen = dict[int, float]


def random_system(chosen: Chosen, planes: Chosen) -> System:
    """x' = a - x plus weighted terms; where planes are chosen too, V' = -V / 2 plus those, and x sees the rows of V."""
    rights = {x[m]: a[m] - x[m] + sum(w * TERMS[i] for i, w in chosen.items())}
    axes = {m: M, k: M}
    if planes:
        rights[x[m]] += over(Sum, tanh(V[m, q]), (q, Q)) / 4
        rights[V[m, q]] = -V[m, q] / 2 + sum(w * PLANES[i] for i, w in planes.items())
        axes |= {q: Q, l: M}
    used = set().union(*(right.atoms(IndexedBase) | right.free_symbols for right in rights.values()))
    return System(
        name="test.random",
        source=Source("none", "made for the tests"),
        axes=axes,
        equations=rights,
        params=tuple(p for p in PARAMS if p.symbol in used),
        initial={state: 0.1 for state in rights},
        sizes={size: value for size, value in ((M, 3), (Q, 2)) if size == M or planes},
        span=(0.0, 3.0),
    )


def numbers(system: System, count: int, seed: int) -> tuple[dict[str, int], dict[str, Any], dict[str, Any]]:
    """Sizes, shared parameters, and starts (11, *shape); parameters of a size by itself."""
    rng, names = np.random.default_rng(seed), {p.name for p in system.params}
    given = {"M": count, "Q": 1 + seed % 3}
    shapes = {"M": (count,), "V": (count, given["Q"])}
    shared = {"B": rng.normal(size=(count, count)) / count, "psi": rng.permutation(count), "n": 1 + seed % 3}
    shared |= {"D": rng.normal(size=shapes["V"]), "b": rng.normal(size=count)}
    start = {name: rng.normal(size=(11, *shapes["V" if name == "V" else "M"])) for name in map(str, system.states)}
    return {s: given[s] for s in system.size_names}, {name: value for name, value in shared.items() if name in names}, start


def evaluate(f: Formulas, t: float, y: Any, params: dict[str, Any]) -> list[float]:
    """The outputs of straight-line text, by Python's own arithmetic."""
    words: dict[str, Any] = {w: getattr(math, w) for w in ("exp", "log", "sqrt", "tanh", "expm1", "log1p", "inf", "nan")}
    words |= {"maximum": max, "minimum": min, "powi": pow, "pow": pow, "t": t}
    words |= {f"y{i}": float(value) for i, value in enumerate(y)}
    words |= {f"p{first + i}": float(v) for name, first in f.values.items() for i, v in enumerate(np.ravel(params[name]))}
    exec("\n".join(f.lines), words)
    return [float(eval(out, words)) for out in f.outputs]


WEIGHT = st.floats(-1.5, 1.5).map(lambda w: round(w, 3) or 1.0)


def some(table: tuple[Any, ...], least: int) -> st.SearchStrategy[Chosen]:
    return st.dictionaries(st.integers(0, len(table) - 1), WEIGHT, min_size=least, max_size=3)


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(some(TERMS, 1), some(PLANES, 0), st.integers(1, 5), st.integers(0, 99))
def test_written_out_is_the_array_truth(chosen, planes, count, seed):
    """The text of lanes, run line by line, computes what whole arrays do: rounding of some hundred operations of size 1."""
    system = random_system(chosen, planes)
    extent, shared, start = numbers(system, count, seed)
    compiled = compile_system(system)
    layout = compiled.layout(extent)
    params = {**shared, "a": np.random.default_rng(seed + 1).normal(size=count)}
    f = write_out(
        system, compile_system(system, strict=True).program, extent, {p.name: np.array(params[p.name]) for p in system.params if p.integer}
    )
    states = {name: rows[0] for name, rows in start.items()}
    truth = compiled.arrays(extent, {**params, **states, "t": 1.2})
    want = layout.join({name: truth[f"d_{name}"] for name in states})
    np.testing.assert_allclose(evaluate(f, 1.2, layout.join(states), params), want, rtol=1e-12, atol=1e-12)


def check(chosen: Chosen, planes: Chosen, count: int, seed: int, method: str = "tsit5", modes: tuple[bool, ...] = (True, False)) -> None:
    """Members in lanes equal single runs, bit for bit in strict mode and to the tolerance in the usual one; so do arrays, and scipy."""
    system = random_system(chosen, planes)
    extent, shared, start = numbers(system, count, seed)
    drive = np.random.default_rng(seed + 1).normal(size=(11, count))
    run: dict[str, Any] = {"span": (0.0, 3.0), "rtol": 1e-8, "atol": 1e-8, "method": method, "sizes": extent}
    compiled = compile_system(system)
    layout = compiled.layout(extent)
    # the tolerance holds for a step; errors of some tens of them add up, and these flows contract. A point saved inside a step over a
    # jump in time has the interpolant's error, which no step control sees
    near: dict[str, Any] = {"rtol": 0, "atol": 1e-6 if chosen.keys() & JUMPS else 3e-7}
    for i in (0, 10):
        own, first = {"a": drive[i], **shared}, {name: rows[i] for name, rows in start.items()}

        def right(t, y, own=own):
            made = compiled.arrays(extent, {**own, **layout.split(y), "t": t})
            return layout.join({name: made[f"d_{name}"] for name in layout.names})

        solve: Any = solve_ivp
        truth = solve(right, (0.0, 3.0), layout.join(first), method="DOP853", rtol=1e-11, atol=1e-11, t_eval=np.linspace(0, 3, 4)).y.T
        want = [layout.split(y) for y in truth]
        arrays = odesim.integrate(system, params=own, initial=first, save=4, backend="numpy", **run)
        for strict in modes:
            found = odesim.ensemble(system, params={"a": drive, **shared}, initial=start, strict=strict, save=4, **run)
            one = odesim.integrate(system, params=own, initial=first, strict=strict, save=4, **run)
            assert not found.status.any()
            for name in layout.names:
                if strict:
                    np.testing.assert_array_equal(found[name][i], one.y[name])
                for rows in (found[name][i], one.y[name], arrays.y[name]):
                    np.testing.assert_allclose(rows, [y[name] for y in want], **near)


ROWS: list[tuple[Any, ...]] = [
    ({0: 0.5, 5: -1.0, 6: 1.0, 9: 0.7, 12: 0.8, 16: 0.4}, {}, 3, 1, "tsit5", (True,)),
    ({8: 0.8, 10: 1.0, 14: 0.5}, {3: -0.6, 5: 0.9}, 2, 2, "tsit5", (False,)),
    ({1: 1.0, 3: -0.5, 8: 0.8, 10: 1.0, 11: -0.3, 14: 0.5}, {2: 1.0, 3: -0.6, 5: 0.9, 6: 0.5}, 3, 1, "tsit5", (True,)),
]


@pytest.mark.slow
@pytest.mark.parametrize("row", slow_but(ROWS, ROWS[:2]), ids=lambda row: f"{len(row[0])} and {len(row[1])} terms")
def test_systems_made_of_many_terms(row):
    """Systems that hold most of the terms."""
    check(*row)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{len(row[0])} and {len(row[1])} terms")
def test_the_bits_of_float32(row):
    """In strict mode lanes of float32 have the bits of single runs, with numbers and sums of float64 among them."""
    chosen, planes, count, seed, method, _ = row
    system = random_system(chosen, planes)
    extent, shared, start = numbers(system, count, seed)
    drive = np.random.default_rng(seed + 1).normal(size=(11, count))
    run: dict[str, Any] = {"span": (0.0, 3.0), "rtol": 1e-5, "atol": 1e-5, "method": method, "sizes": extent, "save": 4}
    run |= {"strict": True, "dtype": "float32"}
    found = odesim.ensemble(system, params={"a": drive, **shared}, initial=start, **run)
    for i in (0, 10):
        one = odesim.integrate(system, params={"a": drive[i], **shared}, initial={name: rows[i] for name, rows in start.items()}, **run)
        for name in one.y:
            np.testing.assert_array_equal(found[name][i], one.y[name])


@pytest.mark.slow
@settings(max_examples=2, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(some(TERMS, 1), some(PLANES, 0), st.integers(1, 5), st.integers(0, 99), st.sampled_from(["tsit5", "vern7", "dop853"]))
def test_random_systems(chosen, planes, count, seed, method):
    """Any few terms with any weights."""
    check(chosen, planes, count, seed, method)
