"""The Jacobian written out in lines: its numbers, its structure, and what is eliminated first."""

import math
from typing import Any

import numpy as np
import pytest
from sympy import (
    Abs,
    LambertW,
    Max,
    Min,
    Piecewise,
    Range,
    Sum,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    binomial,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    floor,
    log,
    oo,
    sign,
    sin,
    sinc,
    sinh,
    sqrt,
    tan,
    tanh,
)

from odesim.base.errors import CodegenError
from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model
from odesim.ir.elimination import sparse_system
from odesim.ir.scalars import Formulas, Operation, is_number, printed
from odesim.symbolic import IndexedBase, Param, System, over, softmax
from odesim.targets.compiled import compile_system
from odesim.targets.numpy_text import SPECIAL
from odesim.targets.unroll import write_out
from tests.run.test_random_systems import PLANES, TERMS, random_system
from tests.support.matrix import LONG, slow_but
from tests.support.models import CHEAPEST_FIRST
from tests.support.systems import REAL, SOURCE, M, k, m, numbers
from tests.support.systems import SYSTEMS as COMMON

v, a, psi = IndexedBase("v", shape=(M,)), IndexedBase("a", shape=(M,)), IndexedBase("psi", shape=(M,))
WORDS: dict[str, Any] = {name: getattr(np, name) for name in ("exp", "log", "tanh", "expm1", "log1p", "sqrt", "sin", "cos", "tan", "floor")}
WORDS |= {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh}
WORDS |= {"asinh": np.arcsinh, "maximum": max, "minimum": min, "powi": pow, "pow": pow, "nan": math.nan, "inf": math.inf, "erf": math.erf}
WORDS |= {"acosh": np.arccosh, "atanh": np.arctanh} | SPECIAL
WORDS["sinc_slope"] = lambda x: -SPECIAL["spherical_jn"](1, x)


def of_one(name: str, rhs: Any) -> System:
    """The System of one state."""
    used = rhs.atoms(IndexedBase)
    params = (Param(a, 1.0, REAL, ""), Param(psi, 0, Range(0, oo), "", indexes=M))
    return System(
        name=name,
        source=SOURCE,
        axes={m: M, k: M},
        equations={v[m]: rhs},
        params=tuple(p for p in params if p.symbol in used),
        initial={v[m]: 0},
    )


# every function that a right-hand side may have, where its slope is not 0, and choices between branches of which one is not finite
FUNCTIONS = {
    "plain": sin(v[m]) + cos(v[m]) * tan(v[m]) + sinh(v[m]) - cosh(v[m]) + asinh(v[m]) + atan(v[m]) + atan2(v[m], 2 + v[m]),
    "inverse": asin(v[m] / 9) - acos(v[m] / 7) + erf(v[m]) + log(2 + v[m] ** 2) + tanh(v[m]) + floor(v[m]) * v[m],
    "special": asinh(v[m]) + acosh(9 + v[m]) * atanh(v[m] / 9) + erfc(v[m]) * sinc(v[m]) + binomial(M, m) * v[m] / 9,
    "branches": LambertW(9 + v[m]) * erfc(v[m]),
    "powers": (3 + v[m]) ** a[m] + a[m] ** v[m] + (3 + v[m]) ** 7 + sqrt(4 + v[m]) ** 3 + 1 / (3 + v[m]) ** 2,
    "choices": Abs(v[m]) ** 3 + sign(v[m]) * v[m] ** 2 + Max(v[m], 0, a[m] * v[m] ** 2) + Min(v[m], a[m]) * v[m],
    "guarded": Piecewise((exp(-1 / v[m]), v[m] > 0), (Piecewise((sqrt(-v[m]), v[m] < -1), (v[m] ** 2, True)), True)),
    # one root in two branches, neither of them taken below 0
    "shared": Piecewise((1 / sqrt(v[m]), v[m] > 2), (Piecewise((v[m] + sqrt(v[m]), v[m] > 0), (v[m] ** 2, True)), True)),
    "shifted": v[m] * softmax(v[m] * a[m], (m, M)) + over(Sum, tanh(v[k] * v[m]), (k, M)),
}
RANDOM = {"random": random_system(dict(enumerate(np.linspace(-1, 1.1, len(TERMS)))), dict.fromkeys(range(len(PLANES)), 0.4))}
SYSTEMS = {**COMMON, **{name: of_one(name, rhs) for name, rhs in FUNCTIONS.items()}, **RANDOM}
SMALL = [name for name in CHEAPEST_FIRST if name not in (*LONG, "gibbs.master")]  # its Jacobian is a table of parameters


def written(system: System, sizes: Any, params: Any) -> tuple[Formulas, Any]:
    """A right-hand side in lines, and its parameters in one vector."""
    compiled = compile_system(system, strict=False)
    f = write_out(system, compiled.program, sizes, {p.name: params[p.name] for p in system.params if p.integer})
    return f, np.concatenate([[], *(np.ravel(np.asarray(params[n], float)) for n in f.values)])


def evaluated(f: Formulas, t: float, y: Any, p: Any) -> tuple[Any, Any, Any]:
    """f, J and df/dt from the lines, the sums that stay unknown taken along."""
    linear = sparse_system(f)
    known = {**WORDS, "t": t, **{f"y{i}": x for i, x in enumerate(y)}, **{f"p{i}": x for i, x in enumerate(p)}}
    with np.errstate(all="ignore"):
        exec("\n".join(printed(linear.code)), known)
    value = lambda text: float(eval(text, known))  # noqa: E731
    columns = []
    for i in range(len(y) + 1):
        along = {f"y{d}": repr(float(d == i)) for d in range(len(y))}
        lines, out = linear.tangent(along, repr(float(i == len(y))))
        inner = dict(known)
        exec("\n".join(lines), inner)
        columns.append([float(eval(out[f"y{d}"], inner)) for d in range(len(y))])
    return np.array([value(o) for o in linear.outputs]), np.array(columns[:-1]).T, np.array(columns[-1])


def check(system: System, sizes: Any, params: Any, y: Any, t: float = 0.3) -> None:
    """Lines against whole arrays: rounding of some hundred operations."""
    compiled = compile_system(system, backend="numpy")
    layout = compiled.layout(sizes)
    linear = compiled.linear.bind(sizes, params, layout)
    f, p = written(system, sizes, params)
    right, J, slope = evaluated(f, t, y, p)
    with np.errstate(all="ignore"):
        truth, arrays, want = (
            compiled.arrays(sizes, {**params, **layout.split(y), "t": t}),
            linear.jacobian(t, y).dense(),
            linear.time_slope(t, y),
        )
    np.testing.assert_allclose(right, layout.join({n: truth[f"d_{n}"] for n in layout.names}), rtol=1e-12, atol=1e-12 * np.abs(right).max())
    np.testing.assert_allclose(J, arrays, rtol=1e-11, atol=1e-12 * np.abs(arrays).max())
    np.testing.assert_allclose(slope, 0 * y if want is None else want, rtol=1e-11, atol=1e-14)


@pytest.mark.first(4)
@pytest.mark.parametrize("name", SYSTEMS)
def test_written_out_is_the_jacobian(name):
    """J and df/dt of systems with every function, gathered places, sums in sums."""
    given = numbers(SYSTEMS[name])
    layout = compile_system(SYSTEMS[name], backend="numpy").layout(given.sizes)
    whole = {p.name: 2 for p in SYSTEMS[name].params if p.integer and p.indexes is None}
    check(SYSTEMS[name], given.sizes, {**given.params, **whole}, layout.join(given.states))


@pytest.mark.first(2)
@pytest.mark.parametrize("name", slow_but(SMALL, set(SMALL) - {"scan_snap.symmetric"}))
def test_shipped_models(name):
    """J of every model that comes with odesim, at its start and beside it."""
    system = load_model(name)
    given = bind(system)
    layout = compile_system(system, backend="numpy").layout(given.sizes)
    y = layout.join(given.initial)
    for seed in range(2):
        check(system, given.sizes, given.params, y * np.random.default_rng(seed).uniform(1 - 0.3 * seed, 1, len(y)))


def test_a_branch_not_taken_is_not_looked_at():
    """exp(-1/v) at v = 0 and below, where the slope of the other branch is infinite or NaN."""
    f, p = written(SYSTEMS["guarded"], {"M": 4}, {})
    _, J, _ = evaluated(f, 0.0, np.array([0.0, -0.0, 0.5, -4.0]), p)
    assert np.diag(J) == pytest.approx([0, 0, 4 * math.exp(-2), -0.25], rel=1e-14) and not (J - np.diag(np.diag(J))).any()


# states, sums that stay unknown, entries
FORMS = {"elementwise": (60, 0, 60), "softmax": (60, 1, 180), "mean_field": (60, 1, 180)}


@pytest.mark.parametrize("name", ["elementwise", "softmax", "mean_field"])
def test_structure(name):
    """60 states: a diagonal one has 60 entries; each sum over all of them stays unknown, with a row and a column."""
    given = numbers(SYSTEMS[name], big=60)
    linear = sparse_system(written(SYSTEMS[name], given.sizes, given.params)[0])
    assert (linear.states, len(linear.sums), sum(map(len, linear.rows.values()))) == FORMS[name]
    assert linear.diagonal == (name == "elementwise") and not linear.moves
    assert set(linear.order) == set(linear.rows)
    entries = {e for row in linear.rows.values() for e in row.values() if not is_number(e)}
    assert set(linear.constants) <= entries


def test_what_has_no_derivative_is_refused():
    """A function without a rule."""
    with pytest.raises(CodegenError, match=r"no derivative of: gamma\(y0\)"):
        sparse_system(Formulas({"x0": Operation("gamma", ("y0",))}, ("x0",), 1, {}, 0))
