"""Derivatives against differences, and against each other."""

from typing import Any

import numpy as np
import pytest

from odesim.arrays import Layout
from odesim.codegen.arrays_ import ArrayFunction
from odesim.codegen.compiled import compile_system, extents
from odesim.errors import SpecError
from odesim.facade import integrate
from odesim.symbolic import System
from odesim.symbolic.adjoint import lower_vjp
from odesim.symbolic.derive import jvp, sensitivities
from tests.systems import SYSTEMS, Numbers, numbers

EACH = pytest.mark.parametrize("system", SYSTEMS.values(), ids=lambda s: s.name)


def layout(system: System, x: Numbers) -> Layout:
    return Layout(system.states, tuple(extents(s, x.sizes) for s in system.shapes.values()))


def flat(system: System, x: Numbers, y: np.ndarray) -> np.ndarray:
    """The right side at the flat state y (n,)."""
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


def test_vjp_is_no_dearer_than_a_few_right_sides():
    """Back through a gather and a softmax: no statement has more loops than the products of the right side."""
    assert max(len(s.loops) for s in lower_vjp(SYSTEMS["gathered"]).statements()) <= 2


@pytest.mark.parametrize(("name", "parameter"), [("softmax", "T"), ("softmax", "mu"), ("rows", "D"), ("gathered", "X"), ("numbers", "T")])
def test_sensitivities_are_the_difference_of_two_runs(name, parameter):
    """d y(0.2)/d p by the variational equations against two runs at p +- 1e-5; both integrate to 1e-10."""
    system = SYSTEMS[name]
    x, rng = numbers(system), np.random.default_rng(3)
    p = np.asarray(x.params[parameter], float)
    way = rng.normal(size=p.shape)
    options: dict[str, Any] = {"sizes": x.sizes, "span": (0.0, 0.2), "rtol": 1e-11, "atol": 1e-12, "backend": "numpy"}
    both = integrate(sensitivities(system, parameter), params=x.params, **options).final
    ends = [integrate(system, params={**x.params, parameter: p + e * way}, **options).final for e in (1e-5, -1e-5)]
    for state in system.states:
        got = np.tensordot(both[f"s_{state}"], way, axes=p.ndim) if p.ndim else both[f"s_{state}"] * way
        want = (ends[0][state] - ends[1][state]) / 2e-5
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


def test_no_derivative_with_respect_to_whole_numbers():
    with pytest.raises(SpecError, match="psi takes whole numbers"):
        sensitivities(SYSTEMS["gathered"], "psi")
    with pytest.raises(SpecError, match=r"no parameter 'muu' in softmax.*did you mean 'mu'"):
        sensitivities(SYSTEMS["softmax"], "muu")
