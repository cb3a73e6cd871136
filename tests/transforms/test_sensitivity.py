"""Sensitivities against differences and closed forms, under every name."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm
from sympy import Sum, Symbol, exp

import odesim
from odesim.base.errors import SpecError
from odesim.display.document import latex_document
from odesim.inputs.bind import bind
from odesim.ir.passes import lower
from odesim.symbolic import Event, IndexedBase, Invariant, System, index, over, sensitivities, sizes, softmax
from odesim.targets.compiled import compile_system
from odesim.targets.numpy_text import ArrayFunction
from odesim.transforms.sensitivity import names_that_matter
from tests.support.moves import check_moves, moves
from tests.support.systems import SOURCE, SYSTEMS, numbers, param

(i, j, m, n), (M, N) = index("i j m n"), sizes("M N")
x, y, A = IndexedBase("x", shape=(M,)), IndexedBase("y", shape=(M,)), IndexedBase("A", shape=(M, M))
a, b, c = Symbol("a", real=True), Symbol("b", real=True), Symbol("c", real=True)
v = Symbol("v", real=True)


def made(name: str, equations: Any, initial: Any, *params: Any, **more: Any) -> System:
    return System(name=name, source=SOURCE, equations=equations, initial=initial, params=tuple(map(param, params)), **{"axes": {}, **more})


CASES = [  # by default the last parameter and the last state of each
    pytest.param(s, name, id=f"{s.name}-{name}", marks=() if name in (names[-1], *of_params[-1:]) else pytest.mark.slow)
    for s in SYSTEMS.values()
    for of_params in [[p.name for p in s.params if not p.integer and p.name in names_that_matter(s)]]
    for names in [[*of_params, *s.states]]
    for name in names
]


@pytest.mark.first(3)
@pytest.mark.parametrize(("system", "name"), CASES)
def test_sensitivities_are_the_difference_of_two_runs(system, name):
    """Every parameter and every initial value of every System, in a random direction."""
    known, rng = numbers(system), np.random.default_rng(3)
    values: dict[str, Any] = {**known.params, **known.states}
    way = rng.normal(size=np.shape(values[name]))
    params = known.params | ({"phi": np.arange(2, 23, 3) % 7} if "phi" in known.params else {})  # every row once
    start = {state: value / 2 for state, value in known.states.items()}
    check_moves(moves(system, name, way, params, start, sizes=known.sizes, span=(0.0, 0.1)))


START = made(
    "test.start",
    {x[m]: -x[m] + over(Sum, y[n], (n, M)) / M, y[m]: x[m] * y[m] - y[m] ** 3},
    # the initial value of x[m] under another index than the equation has, and a sum over that one
    {x[n]: a * softmax(b * A[n, n], (n, M)) + A[0, n], y[m]: 0.5},
    a, b, A, axes={m: M, n: M}, sizes={M: 3},
)  # fmt: skip


@pytest.mark.parametrize("name", ["a", "b", "A"])
def test_what_only_the_initial_value_depends_on(name):
    """A parameter of the start alone moves the run through it."""
    rng = np.random.default_rng(5)
    params: dict[str, Any] = {"a": 0.7, "b": 0.4, "A": rng.normal(size=(3, 3))}
    found = moves(START, name, rng.normal(size=np.shape(params[name])), params, {}, span=(0.0, 1.0))
    check_moves(found)
    assert np.abs(found["x"][1]).max() > 1e-2


def test_a_start_that_was_given_does_not_move():
    """Where the initial value is given, no parameter moves it; an initial value that nobody gave follows."""
    run: dict[str, Any] = {"span": (0.0, 1.0), "backend": "numpy", "save": 2, "sensitivities": ("a", "y")}
    free, held = (odesim.integrate(START, initial=start, **run).sensitivities for start in ({}, {"x": [0.1, 0.2, 0.3]}))
    assert np.abs(free["a"]["x"][0]).min() > 0.1 and not any(held["a"][s].any() for s in "xy")
    np.testing.assert_array_equal(held["y"]["y"][0], np.eye(3))
    twice = odesim.integrate(
        sensitivities(sensitivities(START, "a"), "b"), initial={"x": [0.1, 0.2, 0.3]}, span=(0.0, 1.0), backend="numpy"
    )
    assert not any(twice.y[name].any() for name in ("dx_da", "dx_db", "ddx_da_db", "dy_da"))


def test_decay_and_logistic_growth():
    """v = v0 exp(-a t) + c: dv/da = -t (v - c), dv/dv0 = exp(-a t). Logistic: u = 1/(1 + (1/u0 - 1) exp(-b t)) has du/db = t u (1 - u).

    The error control keeps the sensitivities too: tolerance 100 times the relative one.
    """
    u = Symbol("u", real=True)
    system = made("test.decay", {v: -a * (v - c), u: b * u * (1 - u)}, {v: 2 + c, u: 0.1}, a, b, c)
    run = odesim.integrate(
        system, params={"a": 1.5, "b": 2.0, "c": 0.25}, span=(0.0, 3.0), save=7, rtol=1e-10, atol=1e-12, backend="numpy", method="dop853",
        sensitivities=("a", "b", "c", "v", "u"),
    )  # fmt: skip
    t, d = run.t, run.sensitivities
    grown = 1 / (1 + 9 * np.exp(-2 * t))
    exact = {
        ("a", "v"): -2 * t * np.exp(-1.5 * t), ("c", "v"): np.ones(7), ("v", "v"): np.exp(-1.5 * t), ("b", "u"): t * grown * (1 - grown),
        ("u", "u"): grown**2 / 0.01 * np.exp(-2 * t), ("a", "u"): 0 * t, ("b", "v"): 0 * t,
    }  # fmt: skip
    for (p, state), want in exact.items():
        np.testing.assert_allclose(d[p][state], want, atol=1e-8, err_msg=f"d{state}/d{p}")


@pytest.mark.parametrize("method", ["dop853", "rodas5p"])
def test_a_linear_system(method):
    """y' = A y: dy/dy0 = exp(A t), and dy/dA along E is the upper right block of exp of [[A, E], [0, A]] t, for a matrix parameter."""
    system = made("test.linear", {y[i]: over(Sum, A[i, j] * y[j], (j, M))}, {y[i]: 1 + i}, A, axes={i: M})
    rng = np.random.default_rng(2)
    B, E, t = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), 0.7
    run = odesim.integrate(
        system, params={"A": B}, span=(0.0, t), rtol=1e-9, atol=1e-11, method=method, backend="numpy", sensitivities=["A", "y"]
    )
    np.testing.assert_allclose(run.final["dy_dy_start"], expm(B * t), atol=1e-7)
    both = expm(np.block([[B, E], [np.zeros((3, 3)), B]]) * t)[:3, 3:]
    np.testing.assert_allclose(np.tensordot(run.final["dy_dA"], E, 2), both @ [1, 2, 3], atol=1e-7)


def named(renamed: dict[Symbol, Symbol]) -> System:
    """Nested sums over the free index' own axis, under these names."""
    p, q, r = (renamed.get(s, s) for s in (m, n, i))
    mu = IndexedBase("mu", shape=(M,))
    inner = over(Sum, mu[q] * exp(x[q] * mu[r]), (q, M))
    rate = mu[p] * over(Sum, x[r] * inner * mu[r], (r, M)) - x[p] * softmax(mu[p] * x[p], (p, M))
    return made("test.named", {x[p]: rate}, {x[p]: 0.2 * mu[p]}, mu, axes={p: M, q: M, r: M}, observables={"o": inner}, sizes={M: 3})


NAMES = ["mu_0", "mu_0_1", "x_start_0", "n_1", "m_1", "r_0", "r0", "hole", "zz"]


def slopes(system: System) -> list[np.ndarray]:
    """The right-hand sides of a System with its sensitivities."""
    wide = sensitivities(system, "mu", "x")
    values = {name: np.asarray(value) for name, value in bind(wide, params={"mu": [0.3, 0.5, 1.1]}).initial.items()}
    values |= {name: value + np.linspace(0.1, 0.9, value.size).reshape(value.shape) for name, value in values.items()}
    got = ArrayFunction(lower(wide))({"M": 3}, {**values, "mu": np.array([0.3, 0.5, 1.1])})
    return [got[f"d_{name}"] for name in wide.states]


@cache
def plain() -> list[np.ndarray]:
    """Those of the System as it is written."""
    return slopes(named({}))


@pytest.mark.parametrize("old", [m, n, i], ids=str)
@pytest.mark.parametrize("new", NAMES)
def test_names_of_indices_change_nothing(old, new):
    """An index may have the very name that a new axis, a temporary or a summed index would have."""

    for got, want in zip(slopes(named({old: index(new)[0]})), plain(), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)


def test_the_rest_stays_as_it_is():
    """Events, laws, observables and parameters are those of the System; the states keep their places, new ones stand behind."""
    law, event = Invariant("falls", v**2, "nonincreasing"), Event("half", v - 1, -1, terminal=True)
    seen = {"s": a * v, "f": lambda t, states, derivatives, params: states["v"]}
    system = made("test.whole", {v: -a * v}, {v: 2}, a, events=(event,), invariants=(law,), observables=seen)
    wide = sensitivities(system, "a")
    assert wide.states == ("v", "dv_da") and list(wide.observables) == ["s", "f", "ds_da"]
    assert (wide.events, wide.invariants, wide.params, wide.name) == (system.events, system.invariants, system.params, system.name)
    assert wide.sensitivities == {"a": {"v": "dv_da", "s": "ds_da"}}
    run = odesim.integrate(system, span=(0.0, 3.0), backend="numpy", rtol=1e-9, sensitivities="a")
    assert run.status == "event" and run.t_end == pytest.approx(np.log(2), abs=1e-7)
    # at a fixed time, not along the event
    assert run.final["dv_da"] == pytest.approx(-np.log(2), abs=1e-7)
    assert run.final_observables["ds_da"] == pytest.approx(1 - np.log(2), abs=1e-7)


def test_second_derivatives():
    """A System with sensitivities is a System: v = exp(-a b t) has d2v/da db = (a b t - 1) t v."""
    twice = sensitivities(sensitivities(made("test.twice", {v: -a * b * v}, {v: 1}, a, b), "a"), "b")
    run = odesim.integrate(twice, params={"a": 0.5, "b": 1.5}, span=(0.0, 2.0), rtol=1e-10, atol=1e-12, backend="numpy", method="dop853")
    assert run.final["ddv_da_db"] == pytest.approx((1.5 - 1) * 2 * np.exp(-1.5), abs=1e-8)


@pytest.mark.parametrize("name", ["gathered", "numbers"])
def test_every_language_takes_it(name):
    """LaTeX balances, text is the same byte for byte each time, and the linearised kernel knows every state."""
    wide = [sensitivities(SYSTEMS[name], *SYSTEMS[name].states) for _ in range(2)]
    text = latex_document(wide[0])
    assert text.count("{") == text.count("}") and text.count(r"\begin") == text.count(r"\end")
    assert compile_system(wide[0]).source == compile_system(wide[1]).source


WRONG = {
    "unknown": (SYSTEMS["softmax"], ("muu",), r"^no parameter or state 'muu' in softmax; choose from T, mu, v; did you mean 'mu'\?$"),
    "whole": (SYSTEMS["gathered"], ("psi",), "^gathered: psi takes whole numbers, so there is no derivative with respect to it$"),
    "size": (SYSTEMS["softmax"], ("M",), "^no parameter or state 'M' in softmax"),
    "twice": (SYSTEMS["softmax"], ("mu", "mu"), "^softmax: the sensitivities to mu are requested twice$"),
    "again": (sensitivities(SYSTEMS["softmax"], "mu"), ("mu",), "^softmax: the sensitivities to mu are requested twice$"),
    "default": (
        made("test.held", {v: -a * v}, {v: 1}, a, b), ("b",),
        "^test.held: no equation, start or observable has b; what a default computes from it is held$",
    ),
    "taken": (
        made("test.taken", {v: -a * v}, {v: 1}, a, Symbol("dv_da")), ("a",),
        "^test.taken: the derivative of v by a would be called dv_da, a name that is taken$",
    ),
    "start": (
        made("test.both", {v: -a * v * Symbol("v_start")}, {v: 1}, a, Symbol("v_start")), ("v", "v_start"),
        "^test.both: the derivative of v by v_start would be called dv_dv_start, a name that is taken$",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_has_no_derivative_is_refused(case):
    system, names, sentence = WRONG[case]
    with pytest.raises(SpecError, match=sentence):
        sensitivities(system, *names)
