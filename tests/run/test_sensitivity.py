"""Sensitivities in ensembles: each member has what `integrate` gives it, in memory and on disk."""

from typing import Any

import numpy as np
import pytest
from sympy import Symbol

import odesim
from odesim.api.rerun import rerun_ensemble as rerun
from odesim.api.stored import resume
from odesim.symbolic import IndexedBase, System, index, sizes
from tests.support.systems import SOURCE, param

MODEL = "joma.nonlinear"
MU = np.random.default_rng(1).uniform(0.5, 2.5, (11, 2))
RUN: dict[str, Any] = {"span": (0.0, 2.0), "save": 3, "method": "tsit5", "strict": True, "sensitivities": "mu"}


@pytest.mark.slow
def test_members_are_single_runs():
    """In lanes a member has the bits of `integrate`, sensitivities too; their axes are the state's and the parameter's."""
    found = odesim.ensemble(MODEL, params={"mu": MU}, **RUN)
    assert found.dv_dmu.dims == ("member", "time", "l", "mu_0") and found.attrs["sensitivities"] == ["mu"]
    for i in (0, 7, 10):
        one = odesim.integrate(MODEL, params={"mu": MU[i]}, **RUN)
        for name, rows in one.y.items():
            np.testing.assert_array_equal(found[name][i], rows)
        np.testing.assert_array_equal(one.sensitivities["mu"]["v"], found.dv_dmu[i])


@pytest.mark.slow
def test_on_disk_as_in_memory(tmp_path):
    """A stored run has the same arrays; another process, which knows the model by name, computes them again to the bit."""
    out = tmp_path / "run.zarr"
    design: dict[str, Any] = {"vary": {"mu": "uniform(0.5,2.5)"}, "grid": {"v": [0.01, 0.02, 0.03]}, "sizes": {"M": 2}}
    stored, held = odesim.ensemble(MODEL, out=out, **design, **RUN), odesim.ensemble(MODEL, **design, **RUN)
    for name in held.data_vars:
        np.testing.assert_array_equal(stored[name], held[name])
        assert stored[name].dims == held[name].dims
    assert rerun(out).same and resume(out).status == "ok"


def followed() -> System:
    """x' = -b x from x(0) = a: x = a exp(-b t)."""
    (m,), (M,) = index("m"), sizes("M")
    x, a, b = IndexedBase("x", shape=(M,)), IndexedBase("a", shape=(M,)), Symbol("b")
    return System(
        name="test.followed", source=SOURCE, axes={m: M}, equations={x[m]: -b * x[m]}, params=(param(a), param(b)),
        initial={x[m]: a[m] ** 2 * b}, sizes={M: 2}, span=(0.0, 1.0),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("start", ["follows", "shared", "own"])
def test_a_start_moves_where_nobody_gave_it(start):
    """x = a^2 b exp(-b t): d/da_k = 2 a_k b exp(-b t), d/db = a^2 (1 - b t) exp(-b t) where the start follows the member's own numbers.

    A start that was given, one for all or one a member, does not move: d/da = 0, d/db = -t x. Bounds: 50 times the tolerance.
    """
    a, t = np.random.default_rng(0).uniform(0.5, 1.5, (5, 2)), 1.0
    b, x0 = np.linspace(0.5, 2.0, 5), np.random.default_rng(1).uniform(0.5, 1.5, (5, 2))
    given = {"follows": {}, "shared": {"x": x0[0]}, "own": {"x": x0}}[start]
    run: dict[str, Any] = {"rtol": 1e-8, "atol": 1e-8, "sensitivities": ["a", "b"]}
    found = odesim.ensemble(followed(), params={"a": a, "b": b}, initial=given, **run).isel(time=-1)
    fall = np.exp(-b * t)[:, None]
    if start == "follows":
        wants = np.eye(2) * (2 * a * b[:, None] * fall)[:, None, :], a**2 * (1 - b[:, None] * t) * fall
    else:
        wants = np.zeros((5, 2, 2)), -t * np.broadcast_to(given["x"], (5, 2)) * fall
    np.testing.assert_allclose(found.dx_da, wants[0], atol=5e-7)
    np.testing.assert_allclose(found.dx_db, wants[1], atol=5e-7)
