"""Gradients of losses against gradients by hand, and against the equations of models."""

from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy import Sum, Symbol

import odesim
from odesim.base.errors import SpecError
from odesim.ir.adjoint import lower_vjp
from odesim.symbolic import IndexedBase, MaxOver, Param, System, grad, gradient_flow, index, over, sizes
from odesim.symbolic.indices import base_name
from odesim.symbolic.parts import key_indices
from odesim.targets.compiled import compile_system
from odesim.targets.numpy_text import ArrayFunction, evaluate
from tests.support.losses import CASES, REAL, SIZES, SOURCE, draw
from tests.support.matrix import slow_but
from tests.support.systems import SYSTEMS, numbers

(i, j, k) = index("i j k")
M, N = sizes("M N")
x, W = IndexedBase("x", shape=(M,)), IndexedBase("W", shape=(M, N))


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_by_hand(name):
    """Rounding only: 1e-13 of the largest component."""
    case = CASES[name]()
    given = draw(case.system)
    got = compile_system(case.system).arrays({name: given[name] for name in case.system.size_names}, {**given, "t": 0.0})
    for state, want in case.by_hand(given).items():
        np.testing.assert_allclose(-got[f"d_{state}"], want, rtol=0, atol=1e-13 * max(1, np.abs(want).max()), err_msg=state)


@pytest.mark.parametrize("name", slow_but(CASES, ["two layers"]))
def test_loss_falls_along_the_compiled_flow(name):
    """d loss / dt = -|gradient|^2 by the compiled right-hand side; central differences with step 1e-6 lose 1e-6."""
    case = CASES[name]()
    system, given = case.system, draw(case.system)
    states = {state: given[state] for state in system.states}
    params = {p.name: given[p.name] for p in system.params}
    run = odesim.integrate(
        system,
        params=params,
        initial=states,
        sizes={n: SIZES[n] for n in system.size_names},
        span=(0, 2e-6),
        save=3,
        method="rk4",
        step=1e-6,
    )
    slope = (run.observables["loss"][2] - run.observables["loss"][0]) / 2e-6
    middle = {state: run.y[state][1] for state in system.states}
    steepest = -sum(float((g**2).sum()) for g in case.by_hand({**given, **middle}).values())
    assert slope == pytest.approx(steepest, rel=1e-5)


@pytest.mark.parametrize("name", SYSTEMS)
def test_gradient_of_a_norm_is_the_vjp(name):
    """The gradient of |f|^2 / 2 is J^T f, with f the right-hand side of a System; rounding, 1e-12 of the largest component."""
    system = SYSTEMS[name]
    y = numbers(system)
    env = {**y.env}
    loss = sum(norm(rhs, [(i, system.axes[i]) for i in key_indices(key)]) for key, rhs in system.equations.items())
    used = [key for key in system.equations if base_name(key) in {base_name(a) for a in loss.atoms(sp.Indexed, Symbol)}]
    f = compile_system(system).arrays(y.sizes, env)
    back = ArrayFunction(lower_vjp(system))
    want = back(y.sizes, {**env, **{f"u_{state}": f[f"d_{state}"] for state in system.states}})
    for key in used:
        got = evaluate(grad(loss, key), key_indices(key), system.axes, y.sizes, env)
        expected = np.asarray(want[f"d_u_{base_name(key)}"])
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * max(1, np.abs(expected).max()))


def norm(f: Any, axes: list[Any]) -> Any:
    return (over(Sum, f**2, *axes) if axes else f**2) / 2


def test_scan_snap_is_the_gradient_flow_of_its_loss():
    """The equations of scan_snap.full, derived by hand for the paper's Lemma 1, follow from its loss; rounding only."""
    from odesim.models.scan_snap.full import K, M, Y, Z, eta_Y, eta_Z, loss
    from odesim.models.scan_snap.full import j as column
    from odesim.models.scan_snap.full import l as token
    from odesim.models.scan_snap.full import m as query

    system = odesim.load_model("scan_snap.full")
    copies = sp.Piecewise((M - K, sp.Eq(column, K)), (1, True))  # one column of Y stands for M - K of them
    derived = gradient_flow(loss, {Y[token, column]: eta_Y / copies, Z[query, token]: eta_Z})
    rng, chosen = np.random.default_rng(3), {"K": 3, "S": 7, "Q": 2}
    P = rng.uniform(0.1, 1, (3, 7))
    given: dict[str, Any] = {**chosen, "P": P / P.sum(axis=1, keepdims=True), "psi": np.array([0, 1, 1]), "p": np.array([0.2, 0.3, 0.5])}
    given |= {"M": 9.5, "eta_Y": 1.3, "eta_Z": 0.7, "Y": rng.normal(size=(7, 4)), "Z": rng.normal(size=(2, 7))}
    for key, rhs in derived.items():
        want = evaluate(system.equations[key], key.indices, system.axes, chosen, given)
        got = evaluate(rhs, key.indices, system.axes, chosen, given)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-13 * np.abs(want).max())


@pytest.mark.parametrize(("metric", "kept"), [("sphere", lambda w: (w**2).sum(axis=1)), ("simplex", lambda w: w.sum(axis=1))])
def test_metrics_stay_on_their_sets(metric, kept):
    """Each row of W keeps its norm, or its sum, and the loss falls; 100 times the tolerance of the run."""
    target = IndexedBase("target", shape=(M, N))
    loss = over(Sum, (W[i, j] - target[i, j]) ** 2, (j, N), (i, M))
    flow = System(
        name="moves",
        source=SOURCE,
        axes={i: M, j: N},
        equations=gradient_flow(loss, {W[i, j]: 1.5}, metric={W[i, j]: metric}),
        params=(Param(target, 1.0, REAL, "target"),),
        initial={W[i, j]: sp.Rational(1, 2) + (i + j) / 10},
        observables={"loss": loss},
    )
    target_at = np.random.default_rng(0).uniform(0, 1, (3, 4))
    run = odesim.integrate(flow, params={"target": target_at}, span=(0, 2), save=20, rtol=1e-9, atol=1e-12, backend="numpy")
    np.testing.assert_allclose(kept(run.y["W"][-1]), kept(run.y["W"][0]), rtol=1e-7)
    assert (np.diff(run.observables["loss"]) < 0).all()
    if metric == "simplex":
        assert run.y["W"].min() > 0


def test_indices_do_not_mix():
    """The name of a summed index may be that of the array's own index: only the meaning counts."""
    loss = over(Sum, over(Sum, W[i, j] * x[i], (i, M)) ** 2, (j, N))
    a, b = index("a b")
    renamed = over(Sum, over(Sum, W[a, b] * x[a], (a, M)) ** 2, (b, N))
    values: dict[str, Any] = {"M": 3, "N": 4, "x": np.arange(3.0), "W": np.arange(12.0).reshape(3, 4)}
    want = 2 * np.outer(values["x"], values["x"] @ values["W"])
    for e in (loss, renamed):
        for key in (W[i, j], W[j, i], W[a, b]):
            got = evaluate(grad(e, key), key.indices, dict(zip(key.indices, (M, N), strict=True)), {"M": 3, "N": 4}, values)
            np.testing.assert_array_equal(got, want)


def test_a_maximum_over_two_axes():
    """Its gradient is 1 at the first of the largest elements, and 0 elsewhere."""
    a, b = index("a b")
    e = grad(over(MaxOver, W[i, j], (i, M), (j, N)), W[a, b])
    values = np.array([[0.0, 3.0, 1.0, 0.0], [2.0, 1.0, 3.0, 3.0], [0.0, 0.0, 1.0, 2.0]])
    got = evaluate(e, (a, b), {a: M, b: N}, {"M": 3, "N": 4}, {"M": 3, "N": 4, "W": values})
    assert got.sum() == 1 and values[got == 1].tolist() == [3.0]


s = Symbol("s", real=True)
REFUSED: dict[str, tuple[Any, str]] = {
    "free index": (lambda: grad(x[i] ** 2, x[i]), "free index i"),
    "no such array": (lambda: grad(s**2, x[i]), "does not depend on x"),
    "one element": (lambda: grad(over(Sum, x[i] ** 2, (i, M)), x[0]), "an index of its own for each axis"),
    "a diagonal": (lambda: grad(over(Sum, W[i, j], (i, M), (j, N)), W[i, i]), "an index of its own for each axis"),
    "a text": (lambda: grad(s**2, "s"), "takes elements such as W[i, j]"),
    "no array": (lambda: grad(s**2), "takes the loss and the element"),
    "no rates": (lambda: gradient_flow(s**2, {}), "takes the loss and {W[i, j]: rate, ...}"),
    "twice": (lambda: grad(over(Sum, x[i] ** 2, (i, M)), x[i], x[j]), "named twice"),
    "metric": (lambda: gradient_flow(over(Sum, x[i] ** 2, (i, M)), {x[i]: 1}, metric={x[i]: "spere"}), "did you mean 'sphere'"),
    "metric of nothing": (lambda: gradient_flow(s**2, {s: 1}, metric={x[i]: "sphere"}), "choose from s"),
    "metric of a number": (lambda: gradient_flow(s**2, {s: 1}, metric={s: "sphere"}), "needs an array"),
    "not an expression": (lambda: grad("s**2", s), "the loss"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    """One sentence."""
    call, sentence = REFUSED[name]
    with pytest.raises(SpecError) as caught:
        call()
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_a_maximum_of_parameters():
    """A factor of the loss that is a maximum of bare parameters: the gradient is that of the other factors."""
    (i, j), (N, M) = index("i j"), sizes("N M")
    y, w, A = IndexedBase("y", shape=(N,)), IndexedBase("w", shape=(M,)), IndexedBase("A", shape=(M, N))
    largest = over(MaxOver, w[j], (j, M))
    loss = over(Sum, y[i] ** 2 * over(MaxOver, A[j, i], (j, M)), (i, N)) * largest + over(MaxOver, y[i] * largest, (i, N))
    params = tuple(Param(p, 1.0, REAL, "numbers") for p in (w, A))
    flow = System(
        name="flow", source=SOURCE, axes={i: N}, equations=gradient_flow(loss, {y[i]: -1}), params=params, initial={y[i]: 0.0},
        sizes={N: 3, M: 2},
    )  # fmt: skip
    rng = np.random.default_rng(2)
    start, table, weights = rng.normal(size=3), rng.normal(size=(2, 3)), np.array([0.3, 0.8])
    run = odesim.integrate(
        flow, method="euler", step=1.0, span=(0, 1), backend="numpy", initial={"y": start}, params={"A": table, "w": weights}
    )
    want = 0.8 * (2 * start * table.max(0) + (start == start.max()))
    np.testing.assert_allclose(run.y["y"][-1] - start, want, rtol=1e-12)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_partial_sum_at_one_place(place):
    """A delta that picks one value of the limit, in a sum of several terms: the gradient is the partial sum at that place."""
    (k, s, a, b), (N,) = index("k s a b"), sizes("N")
    x, A = IndexedBase("x", shape=(N,)), IndexedBase("A", shape=(N, N))
    up, down = over(Sum, x[s] ** 2, (s, k + 1)), Sum(sp.exp(x[s]), (s, k + 1, N - 1))
    loss = over(Sum, (A[k - 2, k] + A[k, k]) * sp.KroneckerDelta(place, k) * (up + 3 * down), (k, N))
    flow = System(
        name="flow", source=SOURCE, axes={a: N, b: N}, equations=gradient_flow(loss, {A[a, b]: -1}, boundary={k: "periodic"}),
        params=(Param(x, 1.0, REAL, "numbers"),), initial={A[a, b]: 0.0}, sizes={N: 3},
    )  # fmt: skip
    numbers_ = np.array([0.3, -0.5, 0.7])
    run = odesim.integrate(flow, method="euler", step=1.0, span=(0, 1), backend="numpy", params={"x": numbers_})
    want = np.zeros((3, 3))
    want[[(place - 2) % 3, place], place] = np.sum(numbers_[: place + 1] ** 2) + 3 * np.exp(numbers_[place + 1 :]).sum()
    np.testing.assert_allclose(run.y["A"][-1], want, rtol=1e-12)
