"""Generated code against the array truth, on systems with one difficulty each."""

import ctypes
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp

from odesim.api.integrate import integrate
from odesim.base.errors import CodegenError, ParamError
from odesim.ir.derive import jvp
from odesim.symbolic import Event, IndexedBase, Param, System, index, over, sensitivities, sizes
from odesim.targets.compiled import CompiledRHS, compile_system
from odesim.targets.numpy_text import evaluate
from tests.support.matrix import slow_but
from tests.support.systems import REAL, SOURCE, SYSTEMS, numbers

MODES = [("float64", False), ("float64", True), ("float32", False)]
CASES = [(s, "float64", False) for s in SYSTEMS] + [(s, *mode) for s in ("elementwise", "mean_field") for mode in MODES[1:]]
FIRST = [("softmax", "float64", False), ("elementwise", "float64", True), ("elementwise", "float32", False)]  # a compilation each
IN_STAGES = ("elementwise", "softmax", "mean_field", "scaled", "rows")
STAGE = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_double, *[ctypes.c_int64] * 7)
COMBINE = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 9)
LARGE = 2500  # two whole blocks of a reduction and a piece of one


@cache
def compiled(name: str, dtype: str, strict: bool) -> CompiledRHS:
    return compile_system(SYSTEMS[name], dtype=dtype, strict=strict)


def tolerance(dtype: str) -> float:
    """Rounding of a few hundred operations, and of sums over LARGE terms."""
    return 1e-12 if dtype == "float64" else 1e-4


@pytest.mark.first(2)
@pytest.mark.parametrize("big", [7, 70, LARGE])
@pytest.mark.parametrize("case", slow_but(CASES, FIRST), ids=str)
def test_numba_is_the_array_truth(case, big):
    rhs, dtype = compiled(*case), case[1]
    x = numbers(rhs.system, big=big)
    bound = rhs.bind(x.sizes, x.params)
    y = bound.layout.join(x.states, dtype)
    got = np.full(bound.layout.size, np.nan, dtype)
    bound(0.3, y, got)
    truth = rhs.arrays(x.sizes, {**x.env, **bound.layout.split(y.astype(float))})
    want = bound.layout.join({n: truth[f"d_{n}"] for n in bound.layout.names})
    np.testing.assert_allclose(got, want, rtol=tolerance(dtype), atol=tolerance(dtype) * np.abs(want).max())


@pytest.mark.parametrize("kept", [True, False], ids=["state kept", "state not kept"])
@pytest.mark.parametrize("terms", [0, 1, 5, 6, 7, 11])
@pytest.mark.parametrize("case", slow_but([case for case in CASES if case[0] in IN_STAGES], FIRST[:1]), ids=str)
def test_a_stage_is_the_right_side_at_the_sum_of_stages(case, terms, kept):
    """stage and combine, with some weights 0, against numpy; the rows of a stage mean what combine says they mean."""
    rhs, dtype = compiled(*case), case[1]
    x, rng = numbers(rhs.system, big=1500), np.random.default_rng(terms)
    bound = rhs.bind(x.sizes, x.params)
    n = bound.layout.size
    K, rows = np.zeros((terms + 1, n), dtype), rng.permutation(terms + 1)
    weights = np.where(np.arange(terms) % 4 == 2, 0.0, rng.normal(0, 0.1, max(terms, 1))[:terms])
    coef = np.concatenate([weights, [1.0]])
    y = bound.layout.join(x.states, dtype)
    stage, combine, z = STAGE(bound.stage), COMBINE(bound.combine), np.zeros(n, dtype)
    at = [a.ctypes.data for a in (y, K, rows, coef, z)]
    slopes = []
    for s in range(terms + 1):
        none = np.zeros(1)
        stage(bound.table, 0.3, at[0], at[1], at[2], none.ctypes.data, 0, s, 0)  # every row holds f(y) ...
        slopes.append(derivative(bound, combine, K, rows, s))
    stage(bound.table, 0.3, at[0], at[1], at[2], at[3], terms, terms, at[4] if kept else 0)  # ... and the last one f(z)
    state = y + sum((w * k for w, k in zip(weights, slopes, strict=False)), np.zeros(n))
    if kept:
        np.testing.assert_allclose(z, state, rtol=tolerance(dtype), atol=tolerance(dtype))
    truth = rhs.arrays(x.sizes, {**x.env, **bound.layout.split(np.asarray(state, float))})
    want = bound.layout.join({name: truth[f"d_{name}"] for name in bound.layout.names})
    got = derivative(bound, combine, K, rows, terms)
    np.testing.assert_allclose(got, want, rtol=10 * tolerance(dtype), atol=10 * tolerance(dtype) * np.abs(want).max())


def derivative(bound, combine, K, rows, s) -> np.ndarray:
    """What row s stands for: 0 + 1 * k_s, block by block."""
    n, weights = bound.layout.size, np.zeros(s + 1)
    weights[s] = 1.0
    out = np.full(n, np.nan, K.dtype)
    for lo in range(0, n, 1024):
        hi = min(lo + 1024, n)
        combine(
            bound.table, 0, K.ctypes.data, rows.ctypes.data, weights.ctypes.data, s + 1, lo, hi, out.ctypes.data + lo * K.dtype.itemsize
        )
    return out


@pytest.mark.parametrize(
    "system",
    [
        pytest.param(jvp(SYSTEMS["gathered"]), id="jvp", marks=pytest.mark.slow),
        pytest.param(sensitivities(SYSTEMS["shuffled"], "a"), id="sensitivities"),
    ],
)
def test_derived_systems_compile_too(system):
    """Directions beside the states, and derivatives by a gathered parameter; only rounding differs from whole arrays."""
    x = numbers(system)
    rhs = compile_system(system)
    bound = rhs.bind(x.sizes, x.params)
    y, got = bound.layout.join(x.states), np.empty(bound.layout.size)
    bound(0.0, y, got)
    truth = rhs.arrays(x.sizes, {**x.env, "t": 0.0})
    np.testing.assert_allclose(got, bound.layout.join({n: truth[f"d_{n}"] for n in bound.layout.names}), rtol=1e-12, atol=1e-13)


def test_a_sweep_compiles_once():
    """Parameters, sizes and states are arguments: one key, one module."""
    rhs = compiled("softmax", "float64", False)
    modules = set()
    for big in (7, 8, 9):
        x = numbers(rhs.system, big=big, seed=big)
        bound = rhs.bind(x.sizes, x.params)
        bound(0.0, bound.layout.join(x.states), np.empty(bound.layout.size))
        modules.add((rhs.key, bound.stage))
    assert len(modules) == 1
    assert compile_system(SYSTEMS["softmax"]).functions == rhs.functions


def test_another_event_leaves_the_right_side_as_it_is():
    """Nor do numbers that only events read; arrays lie behind one address for both, also one with the name of all scalars together."""
    (i,), (n,), (a, level) = index("i"), sizes("n"), sp.symbols("a level", real=True)
    y, rates = IndexedBase("y", shape=(n,)), IndexedBase("numbers", shape=(n,))
    params = tuple(Param(p, 1.0, REAL, "a number") for p in (a, rates, level))
    plain = System(name="watched", axes={i: n}, equations={y[i]: -a * rates[i] * y[i]}, initial={y[i]: 1}, params=params[:2])
    watched = replace(plain, params=params, events=(Event("half", y[i] - level, terminal=True),))
    again = replace(watched, events=(Event("half", y[i] * a - level * rates[i], terminal=True),))
    places = [compile_system(s).functions for s in (plain, watched, again)]
    assert places[0] == places[1] == places[2]
    values: Any = {"a": 2.0, "numbers": [0.5, 3.0, 2.0], "level": 0.25}
    for s, time in ((watched, np.log(4) / 6), (again, np.log(2 / 0.75) / 6)):
        run = integrate(s, sizes={"n": 3}, params=values, span=(0, 9), rtol=1e-10, atol=1e-12)
        assert run.t[-1] == pytest.approx(time, rel=1e-8)  # the second component is first in both


@pytest.mark.first(4)
@pytest.mark.parametrize("name", SYSTEMS)
def test_the_text_is_the_same_every_time(name):
    assert compile_system(SYSTEMS[name]).text.source == compile_system(SYSTEMS[name]).text.source


def test_whole_number_arrays_are_summed_as_numbers():
    """A sum over an integer parameter, alone and times an array: longer than what is added in sequence."""
    (i,), (n, K) = index("i"), sizes("n K")
    y, w, psi = IndexedBase("y", shape=(n,)), IndexedBase("w", shape=(n,)), IndexedBase("psi", shape=(n,))
    total = over(sp.Sum, psi[i], (i, n)) + over(sp.Sum, psi[i] * w[i], (i, n))
    system = System(
        name="counted", source=SOURCE, axes={i: n}, equations={y[i]: total - y[i]},
        params=(Param(w, 1.0, REAL, "w"), Param(psi, 0, sp.S.Naturals0, "psi", indexes=K)), initial={y[i]: 0},
    )  # fmt: skip
    params = {"w": np.random.default_rng(0).normal(size=100), "psi": np.arange(100) % 7}
    bound, got = compile_system(system).bind({"n": 100, "K": 7}, params), np.empty(100)
    bound(0.0, np.zeros(100), got)
    np.testing.assert_allclose(got, params["psi"].sum() + params["psi"] @ params["w"], rtol=1e-13)


def test_names_that_generated_code_likes_are_free_for_users():
    """Names such as r0, t0, x0, w0, n, y, work: temporaries step aside."""
    (i,), (n,) = index("i"), sizes("n")
    y, r0, x0 = (IndexedBase(s, shape=(n,)) for s in ("y", "r0", "x0"))
    t0, work, out, z = sp.symbols("t0 work w0 z")
    system = System(
        name="greedy", source=SOURCE, axes={i: n},
        equations={y[i]: r0[i] * sp.exp(y[i] * t0) + sp.exp(y[i] * t0) * x0[i] * work / out, z: work * out - z},
        params=tuple(Param(p, 1.0, REAL, "x") for p in (r0, x0, t0, work, out)), initial={y[i]: 0, z: 0},
    )  # fmt: skip
    rhs, rng = compile_system(system), np.random.default_rng(0)
    params = {"r0": rng.normal(size=5), "x0": rng.normal(size=5), "t0": 0.3, "work": 0.5, "w0": 0.7}
    bound = rhs.bind({"n": 5}, params)
    state, got = rng.normal(size=6), np.empty(6)
    bound(0.0, state, got)
    e = np.exp(state[:5] * 0.3)
    np.testing.assert_allclose(got, [*(params["r0"] * e + e * params["x0"] * 0.5 / 0.7), 0.35 - state[5]], rtol=1e-14)


NAMES = ["x", "y", "k", "lo", "rows", "coef", "ns", "k0", "value", "here", "f", "xp", "seen0"]


@pytest.mark.parametrize("names", slow_but([NAMES, *([name] for name in NAMES)], [NAMES]), ids="-".join)
def test_a_state_may_have_any_plain_name(names):
    """Blocks of a state are not named after it: x_ and k_ are arguments of the kernel."""
    (i,), (M,) = index("i"), sizes("M")
    states = [IndexedBase(name, shape=(M,)) for name in names]
    system = System(
        name="named", source=SOURCE, axes={i: M}, equations={s[i]: -n * s[i] for n, s in enumerate(states, 2)}, params=(),
        initial={s[i]: 1.0 for s in states},
    )  # fmt: skip
    bound = compile_system(system).bind({"M": 3000}, {})
    y, got = np.linspace(0, 1, 3000 * len(names)), np.empty(3000 * len(names))
    bound(0.0, y, got)
    assert np.array_equal(got, -np.repeat(np.arange(2.0, 2 + len(names)), 3000) * y)


@pytest.mark.first(1)
@pytest.mark.parametrize("name", slow_but(["xp", "value", "r0", "t0", "x0", "w0"], ["xp", "r0"]))
def test_an_index_may_have_any_plain_name(name):
    """No temporary is called like it, though the right-hand side does not read it."""
    (i, j), (M,) = index(f"{name} j"), sizes("M")
    x, a = IndexedBase("x", shape=(M,)), IndexedBase("a", shape=(M,))
    total = over(sp.Sum, x[j] ** 2, (j, M))
    system = System(
        name="indexed", source=SOURCE, axes={i: M}, equations={x[i]: -total * sp.exp(total), a[i]: sp.exp(total)},
        params=(), initial={x[i]: 1.0, a[i]: 0.0}, observables={"place": i * sp.exp(total)},
    )  # fmt: skip
    rhs, state, got = compile_system(system), np.array([0.3, -0.4, 0.1, 0.0, 0.0, 0.0]), np.empty(6)
    rhs.bind({"M": 3}, {})(0.0, state, got)
    made = rhs.arrays({"M": 3}, rhs.layout({"M": 3}).split(state))
    np.testing.assert_allclose(got, np.repeat([-0.26 * np.exp(0.26), np.exp(0.26)], 3), rtol=1e-14)
    np.testing.assert_allclose(np.concatenate([np.broadcast_to(made[f"d_{n}"], 3) for n in "xa"]), got, rtol=1e-14)
    place = evaluate(system.observables["place"], (i,), system.axes, {"M": 3}, rhs.layout({"M": 3}).split(state))
    np.testing.assert_allclose(place, np.arange(3) * np.exp(0.26), rtol=1e-14)


def test_equal_calls_give_equal_bits():
    """Working memory keeps nothing from one call to the next: on fresh memory, and a second time."""
    rhs = compiled("softmax", "float64", False)
    x = numbers(rhs.system)
    y = rhs.bind(x.sizes, x.params).layout.join(x.states)
    bounds = [rhs.bind(x.sizes, x.params) for _ in range(2)]
    got = [np.empty_like(y) for _ in range(3)]
    for bound, out in zip([bounds[0], bounds[0], bounds[1]], got, strict=True):
        bound(0.0, y, out)
    assert np.array_equal(got[0], got[1]) and np.array_equal(got[0], got[2])


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_elements_named_by_number_must_exist(backend):
    (i,), (M,) = index("i"), sizes("M")
    v = IndexedBase("v", shape=(M,))
    system = System(name="ninth", source=SOURCE, axes={i: M}, equations={v[i]: v[9] - v[i]}, params=(), initial={v[i]: 1.0})
    assert integrate(system, sizes={"M": 10}, span=(0.0, 0.1), backend=backend).status == "ok"
    with pytest.raises(ParamError, match=r"v\[9\] is out of range: that axis has 3 elements"):
        integrate(system, sizes={"M": 3}, span=(0.0, 0.1), backend=backend)
    (k,), (K,) = index("k"), sizes("K")
    V = IndexedBase("V", shape=(M, K))
    corner = System(
        name="corner", source=SOURCE, axes={i: M, k: K}, equations={V[i, k]: V[9, 9] - V[i, k]}, params=(), initial={V[i, k]: 1.0}
    )
    with pytest.raises(ParamError, match=r"V\[9, 9\] is out of range: that axis has 3 elements \(K = 3\)"):
        integrate(corner, sizes={"M": 10, "K": 3}, span=(0.0, 0.1), backend=backend)


def test_unknown_functions_and_backends_are_refused():
    (i,), (n,) = index("i"), sizes("n")
    y = IndexedBase("y", shape=(n,))
    with pytest.raises(CodegenError, match=r"besselj in .* has no generated code"):
        evaluate(sp.besselj(0, y[i]), (i,), {i: n}, {"n": 2}, {"y": np.zeros(2)})
    wave = System(name="wave", source=SOURCE, axes={i: n}, equations={y[i]: sp.sin(y[i])}, params=(), initial={y[i]: 0})
    with pytest.raises(ParamError, match=r"no backend 'nuba'.*did you mean 'numba'"):
        compile_system(wave, backend="nuba")
    with pytest.raises(CodegenError, match="needs cupy, which is not installed"):
        compile_system(wave, backend="cuda")
