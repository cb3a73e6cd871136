"""Random Systems beside closures of plain Python, which share no sum, no array and no derivative with odesim."""

import itertools
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from sympy import Expr, Interval, KroneckerDelta, Max, Piecewise, Range, Sum, Symbol, exp, log, oo, tanh

import odesim
from odesim.base.arrays import Array
from odesim.ir.invariants import weight_at
from odesim.symbolic import IndexedBase, MaxOver, Param, Source, System, index, inverse, logsumexp, named, over, sizes, softmax, table, time
from odesim.symbolic.layered import with_layers
from odesim.targets.compiled import compile_system

(M, K) = sizes("M K")
ROWS, COLUMNS = index("m m_1 m_2"), index("k k_1 k_2")
m, k = ROWS[0], COLUMNS[0]
x, a, V, D = (IndexedBase(name, shape=shape) for name, shape in (("x", (M,)), ("a", (M,)), ("V", (M, K)), ("D", (K, M))))
T, P, Q = (IndexedBase(name, shape=(n,)) for name, n in (("T", K), ("P", M), ("Q", M)))
ARRAYS = {x: (M,), a: (M,), V: (M, K), D: (K, M)}
GATHERS = {K: P, M: Q}
"""{axis: the parameter that names its rows}."""
BOUNDARY = dict(zip((*ROWS, *COLUMNS), ("periodic", "zero", "edge", "edge", "zero", "periodic"), strict=True))
SIZES = {"M": 3, "K": 2}
Env = Mapping[Any, Any]
Value = Callable[[Env], float]


@dataclass(frozen=True)
class Term:
    """An expression, and its value in an environment {name or index: numbers}."""

    e: Any
    value: Value


class Grower:
    """Random terms. Each draws its parts first, so that a closure reads them and nothing else."""

    def __init__(self, seed: int) -> None:
        self.draw, self.names = random.Random(seed), itertools.count(1)

    def place(self, scope: tuple[Symbol, ...], n: Any) -> tuple[Any, Callable[[Env], int | None]]:
        """A place on an axis: an index, a neighbour of one, or a row that a parameter names; and its number, None beyond the ends."""
        here, rows = ([i for i in scope if (i in ROWS) == (axis == M)] for axis in (n, M))
        kind = self.draw.choice(("index", "index", "index", "neighbour", "gather"))
        if kind == "gather" and rows:
            j, gather = self.draw.choice(rows), str(GATHERS[n].label)
            return GATHERS[n][j], lambda env: int(env[gather][env[j]])
        if not here:
            return 0, lambda env: 0
        i, c = self.draw.choice(here), self.draw.choice((-2, -1, 1, 2)) if kind == "neighbour" else 0
        return i + c, lambda env: beyond(i, env[i] + c)

    def element(self, scope: tuple[Symbol, ...]) -> Term:
        array, axes = self.draw.choice(list(ARRAYS.items()))
        at, places = zip(*(self.place(scope, n) for n in axes), strict=True)
        name = str(array.label)

        def value(env: Env) -> float:
            numbers = tuple(place(env) for place in places)
            return 0.0 if None in numbers else float(env[name][numbers])

        return Term(array[at], value)

    def leaf(self, scope: tuple[Symbol, ...]) -> Term:
        choice = self.draw.random()
        if choice < 0.1:
            return Term(time, lambda env: env["t"])
        if choice < 0.2 and scope:
            i = self.draw.choice(scope)
            return Term(i, lambda env: float(env[i]))
        return self.element(scope)

    def term(self, scope: tuple[Symbol, ...], depth: int) -> Term:
        if depth == 0:
            return self.leaf(scope)
        kinds = (self.joined, self.joined, self.function, self.case, self.total, self.total, self.array)
        return self.draw.choice(kinds)(scope, depth - 1)

    def joined(self, scope: tuple[Symbol, ...], depth: int) -> Term:
        u, v = self.term(scope, depth), self.term(scope, depth)
        return self.draw.choice(
            (
                Term(u.e + v.e, lambda env: u.value(env) + v.value(env)),
                Term(u.e * v.e, lambda env: u.value(env) * v.value(env)),
                Term(Max(u.e, v.e), lambda env: max(u.value(env), v.value(env))),
            )
        )

    def function(self, scope: tuple[Symbol, ...], depth: int) -> Term:
        u = self.term(scope, depth)
        return self.draw.choice(
            (
                Term(tanh(u.e), lambda env: math.tanh(u.value(env))),
                Term(exp(-(u.e**2)), lambda env: math.exp(-(u.value(env) ** 2))),
                Term(log(1 + u.e**2), lambda env: math.log(1 + u.value(env) ** 2)),
            )
        )

    def case(self, scope: tuple[Symbol, ...], depth: int) -> Term:
        """A choice by two indices, by an index, or by values; or a delta."""
        u, v = self.term(scope, depth), self.term(scope, depth)
        pairs = [(i, j) for i in scope for j in scope if i != j and (i in ROWS) == (j in ROWS)]
        if pairs:
            i, j = self.draw.choice(pairs)
            if self.draw.random() < 0.3:
                return Term(KroneckerDelta(i, j) * u.e, lambda env: u.value(env) if env[i] == env[j] else 0.0)
            return Term(Piecewise((u.e, i < j), (v.e, True)), lambda env: u.value(env) if env[i] < env[j] else v.value(env))
        p = self.element(scope)
        return Term(Piecewise((u.e, p.e > 0), (v.e, True)), lambda env: u.value(env) if p.value(env) > 0 else v.value(env))

    def array(self, scope: tuple[Symbol, ...], depth: int) -> Term:
        """An element of an array with a name or of an inverse, or a table, which are computed by numpy."""
        kind, name = self.draw.choice(("named", "named", "inverse", "linear", "step")), f"z{next(self.names)}"
        rows = [i for i in scope if i in ROWS] or [0]
        if kind == "named":
            u, (at, place) = self.term((ROWS[-1],), depth), self.place(scope, M)

            def element(env: Env) -> float:
                number = place(env)
                return 0.0 if number is None else u.value({**env, ROWS[-1]: number})

            return Term(named(name, u.e, (ROWS[-1], M))[at], element)
        if kind == "inverse":
            (i, j), u, last = ROWS[-2:], self.term(ROWS[-2:], min(depth, 1)), self.draw.choice(rows)

            def entry(env: Env) -> float:
                matrix = [[8.0 * (p == q) + math.tanh(u.value({**env, i: p, j: q})) for q in range(3)] for p in range(3)]
                return float(np.linalg.inv(matrix)[env.get(last, 0), env.get(rows[0], 0)])

            return Term(inverse(8 * KroneckerDelta(i, j) + tanh(u.e), (i, M), (j, M), name=name)[last, rows[0]], entry)
        # steps are conditions on the place, where a sum of choices must have a name
        u = self.element(scope) if kind == "step" else self.term(scope, min(depth, 1))
        j, row = COLUMNS[-1], self.draw.choice(rows)

        def curve(env: Env) -> float:
            at, values = u.value(env), env["D"][:, env.get(row, 0)]
            return float(np.interp(at, env["T"], values) if kind == "linear" else values[int(at >= env["T"][1])])

        return Term(table(u.e, T[j], D[j, row], kind), curve)

    def total(self, scope: tuple[Symbol, ...], depth: int) -> Term:
        """A sum, whole or up to or from an index, a maximum, a logarithm of a sum of exponentials, or a softmax."""
        rows = self.draw.random() < 0.6
        own, n = (ROWS, M) if rows else (COLUMNS, K)
        here = [i for i in scope if i in own]
        if here and self.draw.random() < 0.25:
            i = self.draw.choice(here)
            u = self.term(scope, depth)
            return Term(softmax(u.e, (i, n)), lambda env: math.exp(u.value(env)) / sum(map(math.exp, each(u, env, i, n))))
        free = [i for i in own if i not in scope]
        if not free:
            return self.term(scope, depth)
        j = free[0]
        u = self.term((*scope, j), depth)
        if here and self.draw.random() < 0.5:
            i = self.draw.choice(here)
            if self.draw.random() < 0.5 or u.e.has(Piecewise):  # sympy's Sum takes that out, past the indices of sums inside
                return Term(over(Sum, u.e, (j, i + 1)), lambda env: sum(each(u, env, j, n)[: env[i] + 1]))
            return Term(Sum(u.e, (j, i + 1, n - 1)), lambda env: sum(each(u, env, j, n)[env[i] + 1 :]))
        return self.draw.choice(
            (
                Term(over(Sum, u.e, (j, n)), lambda env: sum(each(u, env, j, n))),
                Term(over(MaxOver, u.e, (j, n)), lambda env: max(each(u, env, j, n))),
                Term(logsumexp(u.e, (j, n)), lambda env: math.log(sum(map(math.exp, each(u, env, j, n))))),
            )
        )


def beyond(i: Symbol, place: int) -> int | None:
    """The place that is read at an index with a neighbour's number; None for none."""
    n = SIZES["M" if i in ROWS else "K"]
    nearest = min(max(place, 0), n - 1)
    return {"periodic": place % n, "edge": nearest, "zero": place if place == nearest else None}[BOUNDARY[i]]


def each(u: Term, env: Env, i: Symbol, n: Any) -> list[float]:
    """The values of a term for every value of an index."""
    return [u.value({**env, i: place}) for place in range(SIZES[str(n)])]


@dataclass(frozen=True)
class Case:
    """A random System, and its right-hand side by closures."""

    system: System
    terms: tuple[Term, Term]
    params: dict[str, Array]
    start: Array

    def __call__(self, t: float, y: Array) -> Array:
        rows, columns = SIZES["M"], SIZES["K"]
        env = {**self.params, "x": y[:rows], "V": y[rows:].reshape(rows, columns), "t": t}
        first, second = self.terms
        rates = [first.value({**env, m: i}) for i in range(rows)]
        return np.array(rates + [second.value({**env, m: i, k: j}) for i in range(rows) for j in range(columns)])


PARAMS = (
    *(Param(p, 1.0, Interval(-oo, oo), "numbers") for p in (a, D)),
    Param(T, lambda sizes: list(range(sizes["K"])), Interval(-oo, oo), "places"),
    *(Param(gather, 0, Range(0, oo), "rows", indexes=n, cover=False) for n, gather in GATHERS.items()),
)


def case(seed: int) -> Case:
    grower, rng = Grower(seed), np.random.default_rng(seed)
    terms = grower.term((m,), 3), grower.term((m, k), 3)
    # each pulls back, so that no run leaves for infinity
    pulled = tuple(
        Term(tanh(u.e) - y, lambda env, u=u, name=name, at=at: math.tanh(u.value(env)) - env[name][tuple(env[i] for i in at)])  # type: ignore[misc]
        for u, y, name, at in zip(terms, (x[m], V[m, k]), ("x", "V"), ((m,), (m, k)), strict=True)
    )
    params = {"a": rng.normal(size=3), "D": rng.normal(size=(2, 3)), "T": np.array([-0.4, 0.6])}
    params |= {"P": rng.integers(0, 2, 3), "Q": rng.integers(0, 3, 3)}
    equations: dict[Any, Expr] = {x[m]: pulled[0].e, V[m, k]: pulled[1].e}
    used = {str(b.label) for e in with_layers(equations.values()) for b in e.atoms(IndexedBase)}
    system = System(
        name="test.closures",
        source=Source("none", "made for the tests"),
        axes={m: M, k: K},
        equations=equations,
        params=tuple(p for p in PARAMS if p.name in used),
        boundary=BOUNDARY,
        initial=dict.fromkeys(equations, 0.1),
        sizes={M: 3, K: 2},
        span=(0.0, 1.0),
    )
    return Case(system, (pulled[0], pulled[1]), {name: p for name, p in params.items() if name in used} | params, rng.normal(size=9))


SEEDS = range(400, 460)


def given(c: Case) -> dict[str, Any]:
    names = {p.name for p in c.system.params}
    return {
        "params": {name: p for name, p in c.params.items() if name in names},
        "initial": {"x": c.start[:3], "V": c.start[3:].reshape(3, 2)},
    }


@pytest.mark.first(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_rates_and_their_derivatives(seed):
    """On arrays and as a module of numpy to 1e-10, and no linear invariant moves, at any time and state.

    J w and u J against differences of closures, 1e-5, where these are the same for two steps: no kink between.
    """
    c = case(seed)
    compiled, params = compile_system(c.system), given(c)["params"]
    layout, extents = compiled.layout(SIZES), {name: n for name, n in SIZES.items() if name in c.system.size_names}
    states, (u, w) = layout.split(c.start), np.random.default_rng(seed).normal(size=(2, 9))
    made = compiled.arrays(extents, {**params, **states, "t": 0.7})
    np.testing.assert_allclose(layout.join({n: made[f"d_{n}"] for n in layout.names}), c(0.7, c.start), rtol=1e-10, atol=1e-10)
    module: dict[str, Any] = {}
    exec(odesim.to_code(c.system, "numpy", params=params), module)
    exported = module["right_hand_side"](0.7, states)
    np.testing.assert_allclose(layout.join(exported), c(0.7, c.start), rtol=1e-10, atol=1e-10)
    linear = compiled.linear.bind(extents, params, layout)
    for t, law in itertools.product((0.0, 3.0), linear.invariants()):
        rates = c(t, 3 * np.random.default_rng(seed).normal(size=9))[list(law.places)]
        assert np.dot([weight_at(weight, {}) for weight in law.weights], rates) == pytest.approx(0, abs=1e-10)
    slopes = [(c(0.7, c.start + h * w) - c(0.7, c.start - h * w)) / (2 * h) for h in (1e-6, 3e-6)]
    if np.allclose(slopes[0], slopes[1], rtol=1e-5, atol=1e-6):
        J = linear.jacobian(0.7, c.start)
        np.testing.assert_allclose(J @ w, slopes[0], rtol=1e-5, atol=1e-5)
        back = compiled.transposed(extents, {**params, **states, **{f"u_{n}": part for n, part in layout.split(u).items()}, "t": 0.7})
        assert layout.join({n: back[f"d_u_{n}"] for n in layout.names}) @ w == pytest.approx(u @ slopes[0], rel=1e-5, abs=1e-4)


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", SEEDS[::5])
def test_runs(seed):
    """By rodas5p and tsit5, and as a stiff member, beside scipy's RK45 in short steps; 1e-4: jumps that it steps over."""
    c = case(seed)
    solve: Any = solve_ivp
    want = solve(c, (0.0, 1.0), c.start, rtol=1e-8, atol=1e-8, max_step=0.01).y[:, -1]
    run: dict[str, Any] = {"rtol": 1e-8, "atol": 1e-10, "save": 2, **given(c)}
    for method in ("tsit5", "rodas5p"):
        one = odesim.integrate(c.system, method=method, **run)
        if one.status == "ok":  # a run that slides along a condition says so
            np.testing.assert_allclose(np.concatenate([one.y["x"][-1], one.y["V"][-1].ravel()]), want, atol=1e-4)
    many = {name: np.stack([start] * 3) for name, start in run.pop("initial").items()}
    members = odesim.ensemble(c.system, method="rodas5p", initial=many, **run)
    if not members.status.any():
        np.testing.assert_allclose(np.concatenate([members["x"].values[1, -1], members["V"].values[1, -1].ravel()]), want, atol=1e-4)
