"""Derivatives against differences, and against each other."""

import numpy as np
import pytest
import sympy as sp
from sympy import Symbol

from odesim.base.arrays import Layout
from odesim.base.errors import SpecError
from odesim.ir.adjoint import lower_vjp
from odesim.ir.derive import jvp
from odesim.symbolic import IndexedBase, System, index, over, sizes
from odesim.targets.compiled import compile_system, extents
from odesim.targets.numpy_text import ArrayFunction
from tests.support.products import backward, forward
from tests.support.systems import SOURCE, SYSTEMS, Numbers, numbers, param

EACH = pytest.mark.parametrize("system", SYSTEMS.values(), ids=lambda s: s.name)


def layout(system: System, x: Numbers) -> Layout:
    return Layout(system.states, tuple(extents(s, x.sizes) for s in system.shapes.values()))


def flat(system: System, x: Numbers, y: np.ndarray) -> np.ndarray:
    """The right-hand side at the flat state y (n,)."""
    where = layout(system, x)
    got = compile_system(system).arrays(x.sizes, {**x.env, **where.split(y)})
    return where.join({n: got[f"d_{n}"] for n in where.names})


def product(system: System, x: Numbers, y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """J(y) w."""
    where = layout(system, x)
    twins = {f"w_{n}": a for n, a in where.split(w).items()}
    got = compile_system(jvp(system)).arrays(x.sizes, {**x.env, **where.split(y), **twins})
    return where.join({n: got[f"d_w_{n}"] for n in where.names})


@EACH
def test_jvp_is_the_limit_of_differences(system):
    """Central differences with step 1e-6: truncation 1e-12, rounding 1e-10."""
    x, rng = numbers(system), np.random.default_rng(1)
    y, w = layout(system, x).join(x.states), rng.normal(size=layout(system, x).size)
    got = product(system, x, y, w)
    want = (flat(system, x, y + 1e-6 * w) - flat(system, x, y - 1e-6 * w)) / 2e-6
    np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-8 * np.abs(want).max())


@EACH
def test_vjp_is_the_transpose(system):
    """<u, J w> = <J^T u, w>, exact but for rounding."""
    x, rng = numbers(system), np.random.default_rng(2)
    where = layout(system, x)
    y, (u, w) = where.join(x.states), rng.normal(size=(2, where.size))
    back = ArrayFunction(lower_vjp(system))
    got = back(x.sizes, {**x.env, **where.split(y), **{f"u_{n}": a for n, a in where.split(u).items()}})
    transposed = where.join({n: got[f"d_u_{n}"] for n in where.names})
    forward = product(system, x, y, w)
    assert u @ forward == pytest.approx(transposed @ w, rel=1e-12, abs=1e-12 * np.abs(forward).sum())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["softmax", "gathered"])
def test_a_bound_system_has_both_products(name, dtype):
    """The compiled J w is that on whole arrays, and <u, J w> = <J^T u, w>; only rounding differs."""
    system, rounding = SYSTEMS[name], 1e-12 if dtype == "float64" else 1e-5
    x, rng = numbers(system), np.random.default_rng(4)
    bound = compile_system(system, dtype=dtype).bind(x.sizes, x.params)
    y, (u, w) = bound.layout.join(x.states, dtype), rng.normal(size=(2, bound.layout.size)).astype(dtype)
    there, back = forward(bound, 0.3, y, w), backward(bound, 0.3, y, u)
    want = product(system, x, y.astype(float), w.astype(float))
    np.testing.assert_allclose(there, want, rtol=10 * rounding, atol=rounding * np.abs(want).max())
    assert float(u @ there) == pytest.approx(float(back @ w), rel=rounding, abs=rounding * float(np.abs(u) @ np.abs(there)))


@pytest.mark.parametrize("name", ["b_r0", "b_r1", "m_b1", "k_b1", "r0", "r1", "hole0"])
def test_names_of_a_model_are_none_of_the_transpose(name):
    """A parameter and a state of any name: the transposed product has the same numbers as with another name."""
    (m, k), (M,) = index("m k"), sizes("M")
    v = IndexedBase("v", shape=(M,))

    def back(name: str) -> np.ndarray:
        c = Symbol(name)
        rate = c * sp.exp(v[m]) * over(sp.Sum, v[k] * sp.exp(v[k]), (k, M)) + over(sp.Sum, v[k] ** 2, (k, M))
        system = System(name="named", source=SOURCE, axes={m: M}, equations={v[m]: rate}, params=(param(c),), initial={v[m]: 0})
        given = {"v": np.array([0.3, -0.2, 0.9]), "u_v": np.array([1.0, 2.0, -1.0]), name: 0.7}
        return ArrayFunction(lower_vjp(system))({"M": 3}, given)["d_u_v"]

    np.testing.assert_allclose(back(name), back("c"), rtol=1e-14)


@pytest.mark.parametrize(("make", "name"), [(jvp, "w_v"), (jvp, "d_w_v"), (lower_vjp, "u_v"), (lower_vjp, "d_u_v")])
def test_a_name_that_a_derivative_needs_is_refused(make, name):
    """A parameter in the place of a direction or covector would be read as one."""
    v, c = Symbol("v"), Symbol(name)
    system = System(name="taken", source=SOURCE, axes={}, equations={v: -c * v}, params=(param(c),), initial={v: 1})
    with pytest.raises(SpecError, match=f"taken: '{name}' is needed for a derivative of v"):
        make(system)


def test_vjp_is_no_dearer_than_a_few_right_sides():
    """Back through a gather and a softmax: no statement has more loops than the products of the right-hand side."""
    assert max(len(s.loops) for s in lower_vjp(SYSTEMS["gathered"]).statements()) <= 2
