"""Slopes where an expression has a corner, an edge or a removable hole."""

import itertools
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from sympy import Interval, Max, Min, Symbol, exp, oo

import odesim
from odesim.ir.derive import directional_derivative
from odesim.ir.slopes import MOST_WAYS, shortest
from odesim.symbolic import IndexedBase, Param, System, entropy, index, logsumexp, over, sensitivities, sizes, softmax, xlogy
from odesim.targets.compiled import compile_system
from odesim.targets.numpy_text import evaluate
from tests.support.matrix import slow_but
from tests.support.systems import REAL, SOURCE

(m, k), (M,) = index("m k"), sizes("M")
x, w = IndexedBase("x", shape=(M,)), IndexedBase("w", shape=(M,))
p, g = Symbol("p", real=True), Symbol("g", real=True)


@pytest.mark.parametrize("count", [2, 3, 4, 7])
@pytest.mark.parametrize("which", [Max, Min])
def test_slopes_of_equal_arguments_add_up_to_one(which, count):
    """f(x, x, ..., x) moves as x does; of arguments that differ the largest has it all. Exact."""
    e = which(*(x[n] for n in range(count)))
    slope = directional_derivative(e, {"x": lambda i: w[i]})
    for at in itertools.islice(itertools.product([0.5, 1.0], repeat=count), 16):
        ways = np.array([float(evaluate(slope, (), {}, {}, {"x": np.array(at), "w": row})) for row in np.eye(count)])
        best = (np.array(at) == (max(at) if which is Max else min(at))).astype(float)
        assert ways.sum() == 1 and (ways[best == 0] == 0).all() and (ways >= 0).all()


@pytest.mark.parametrize("count", [3, 30])
def test_paths_that_are_left_lead_where_all_do(count):
    """For each outcome of four conditions some of the shortest of random paths is open where one of all is; of many, also elsewhere."""
    rng = np.random.default_rng(count)
    for _ in range(40):
        guards = [tuple((f"c{c}", bool(rng.integers(2))) for c in rng.permutation(4)[: rng.integers(1, 4)]) for _ in range(count)]
        few: Any = shortest(guards)
        assert len(few) <= MOST_WAYS
        for outcome in itertools.product((False, True), repeat=4):
            truth = {f"c{k}": taken for k, taken in enumerate(outcome)}
            every, left = (any(all(truth[c] == taken for c, taken in path) for path in paths) for paths in (guards, few))
            assert left == every or (left and count > MOST_WAYS)


def ramp(method: str) -> System:
    """x' = g max(x[m], x[0], x[1]): from equal starts x = e^(g t)."""
    return System(
        name="ramp", source=SOURCE, axes={m: M}, equations={x[m]: g * Max(x[m], x[0], x[1])},
        params=(Param(g, 1.0, REAL, "rate"),), initial={x[m]: 1.0}, sizes={M: 3}, span=(0.0, 1.0),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dop853", "rodas5p"])
def test_a_run_on_a_corner_has_the_slope_of_one_side(method):
    """dx/dg = t e^(g t), to 100 tolerances; the stiff method takes no more steps than for x' = g x."""
    system = ramp(method)
    run = odesim.integrate(sensitivities(system, "g"), method=method, rtol=1e-9, atol=1e-9, save=2)
    np.testing.assert_allclose(run.y["dx_dg"][-1], np.e, rtol=1e-7)
    plain = System(
        name="plain", source=SOURCE, axes={m: M}, equations={x[m]: g * x[m]}, params=system.params, initial={x[m]: 1.0},
        sizes={M: 3}, span=(0.0, 1.0),
    )  # fmt: skip
    taken = [odesim.integrate(s, method="rodas5p", save=2).stats["steps"] for s in (system, plain)]
    assert taken[0] <= taken[1] + 1


METHODS = ("rodas5p", "tsit5")
ROOTS = [2, 10**9, sp.Rational(7, 2), 3, 7, 10**3, 10**6, sp.Rational(1, 10**6)]


QUICK = [*((q, "numpy") for q in ROOTS), *((q, "numba") for q in ROOTS[:3])]


@pytest.mark.first(2)
@pytest.mark.parametrize(("q", "backend"), slow_but([(q, name) for q in ROOTS for name in ("numpy", "numba")], QUICK, several=True))
def test_powers_of_one_exponential_keep_its_precision(q, backend):
    """exp(x/q) beside exp(x) and exp(2x): a shared power is a small one. Within 10 roundings of mpmath."""
    y, z = IndexedBase("y", shape=(M,)), IndexedBase("z", shape=(M,))
    equations = {x[m]: exp(x[m] / q) + x[m], y[m]: exp(x[m]) + x[m], z[m]: exp(2 * x[m]) + x[m]}
    system = System(name="powers", source=SOURCE, axes={m: M}, equations=equations, params=(), initial=dict.fromkeys(equations, 0))
    at, out = np.array([1.0, 1.3, -0.7]), np.empty(9)
    compiled = compile_system(system, backend=backend)
    if backend == "numpy":
        made = compiled.arrays({"M": 3}, {"x": at, "y": at, "z": at})
        out[...] = np.concatenate([made[f"d_{name}"] for name in "xyz"])
    else:
        compiled.bind({"M": 3}, {})(0.0, np.concatenate([at, at, at]), out)
    scales = (mpmath.mpf(sp.Integer(1).p) / (mpmath.mpf(sp.Rational(q).p) / sp.Rational(q).q), 1, 2)
    want = [float(mpmath.exp(mpmath.mpf(a) * s) + a) for s in scales for a in at]
    np.testing.assert_allclose(out, want, rtol=3e-15)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0, 3.25])
def test_a_symbolic_power_has_its_slope_at_0(power):
    """d/dx x^p = p x^(p-1) and d/dp x^p = x^p log x, 0 at x = 0 for p > 1; 1 at p = 1."""
    ways: dict[str, Any] = {"x": lambda i: w[i], "p": lambda i: g}
    at = np.array([0.0, 0.25, 2.0])
    for one, want in (({"w": 1.0, "g": 0.0}, power * at ** (power - 1)), ({"w": 0.0, "g": 1.0}, xlog(at**power, at))):
        given = {"x": at, "p": power, "w": np.full(3, one["w"]), "g": one["g"]}
        np.testing.assert_allclose(evaluate(directional_derivative(x[m] ** p, ways), (m,), {m: M}, {"M": 3}, given), want, rtol=1e-15)


def xlog(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.array([0.0 if x == 0 else x * np.log(y) for x, y in zip(a, b, strict=True)])


@pytest.mark.slow
def test_a_run_that_starts_where_a_power_is_0():
    """x' = 1 - x^p from 0, p = 2: x = tanh(t), in single runs, lanes and their stiff steps; dx/dp by differences."""
    system = System(
        name="power", source=SOURCE, axes={m: M}, equations={x[m]: 1 - x[m] ** p},
        params=(Param(p, 2.0, Interval(1, oo), "power"),), initial={x[m]: 0.0}, sizes={M: 2}, span=(0.0, 1.0),
    )  # fmt: skip
    run: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-11, "save": 2}
    for method, backend in (("tsit5", "numba"), ("rodas5p", "numpy")):
        one = odesim.integrate(system, method=method, backend=backend, **run)
        assert one.status == "ok" and one.y["x"][-1] == pytest.approx(np.tanh(1.0), rel=1e-7)
    many = odesim.ensemble(system, grid={"p": "linspace(2,2.5,2)"}, method="rodas5p", **run)
    np.testing.assert_allclose(many["x"].values[0, -1], np.tanh(1.0), rtol=1e-7)
    got = odesim.integrate(sensitivities(system, "p"), method="dop853", backend="numpy", **run).y["dx_dp"][-1]
    sharp: dict[str, Any] = {"backend": "numpy", "method": "dop853", "rtol": 1e-12, "atol": 1e-14, "save": 2}
    ends = [odesim.integrate(system, params={"p": 2 + e}, **sharp).y["x"][-1] for e in (1e-4, -1e-4)]
    np.testing.assert_allclose(got, (ends[0] - ends[1]) / 2e-4, rtol=1e-6)


SHARES = [np.array([0.2, 0.3, 0.5]), np.array([0.0, 0.25, 0.75]), np.array([1.0, 0.0, 0.0]), np.array([5e-324, 1.0, 0.0])]


@pytest.mark.parametrize("share", SHARES, ids=str)
def test_entropy_counts_0_log_0_as_0(share):
    """-sum p log p by mpmath; its slope along a change that leaves zeros alone is that of the rest."""
    e = entropy(x[m], (m, M))
    want = -sum((mpmath.mpf(a) * mpmath.log(a) for a in share.tolist() if a), mpmath.mpf(0))
    assert float(evaluate(e, (), {m: M}, {"M": 3}, {"x": share})) == pytest.approx(float(want), rel=1e-15, abs=1e-300)
    change = np.where(share > 0, [1.0, -2.0, 0.5], 0.0)
    slope = directional_derivative(e, {"x": lambda i: w[i]})
    got = float(evaluate(slope, (), {m: M}, {"M": 3}, {"x": share, "w": change}))
    rest = share > 0
    assert got == pytest.approx(float(-(change[rest] * (np.log(share[rest]) + 1)).sum()), rel=1e-14, abs=1e-14)


def test_entropy_of_a_softmax():
    """As far apart as float64 goes: what is 0 counts as 0. The usual formula with logsumexp, to rounding."""
    shares = softmax(x[m], (m, M))
    usual = over(sp.Sum, shares * (logsumexp(x[m], (m, M)) - x[m]), (m, M))
    for at in (np.array([0.0, 1.0, -2.0]), np.array([0.0, 900.0, -900.0]), np.zeros(3)):
        values = [float(evaluate(e, (), {m: M}, {"M": 3}, {"x": at})) for e in (entropy(shares, (m, M)), usual)]
        assert values[0] == pytest.approx(values[1], rel=1e-14, abs=1e-15)


LOGS = [(0.0, 0.0, 0.0), (0.0, 2.0, 0.0), (2.0, 3.0, 2 * np.log(3)), (0.0, -1.0, 0.0), (1.0, 0.0, -np.inf)]


@pytest.mark.parametrize(("a", "b", "want"), LOGS)
def test_xlogy(a, b, want):
    """What scipy has."""
    assert float(evaluate(xlogy(p, g), (), {}, {}, {"p": a, "g": b})) == want


@pytest.mark.parametrize("rhs", ["alone", "entropy", "behind"])
def test_sensitivities_of_logarithms_beyond_an_axis(rhs):
    """0 log 0 beyond the ends has the slope 0 and the second slope 0: the stiff method and the explicit one agree, at 100 rtol."""
    after = {"alone": xlogy(x[m + 1], x[m + 1]), "entropy": -x[m] * entropy(x[m + 1], (m, M)), "behind": xlogy(x[m - 1], x[m - 1])}[rhs]
    system = System(
        name="edge", source=SOURCE, axes={m: M}, equations={x[m]: after - x[m]}, params=(), initial={x[m]: (m + 1) / M}, sizes={M: 4},
        boundary={m: "zero"}, span=(0.0, 0.5),
    )  # fmt: skip
    runs = [odesim.integrate(system, sensitivities="x", method=name, backend="numpy", rtol=1e-9, atol=1e-11) for name in METHODS]
    assert np.isfinite(runs[0].y["dx_dx_start"]).all()
    np.testing.assert_allclose(runs[0].y["dx_dx_start"][-1], runs[1].y["dx_dx_start"][-1], atol=1e-7)
