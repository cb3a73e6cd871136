"""Members with a fixed step: every one is what it would be alone, at the steps' own times and between them."""

from typing import Any

import numpy as np
import pytest
from sympy import Interval, oo, symbols

import odesim
from odesim.symbolic import Event, Param, Source, System
from tests.run.test_ensemble import forced
from tests.support.matrix import slow_but

MODEL = "joma.nonlinear"
N = 37  # more than twice the lanes, and no multiple of them
RNG = np.random.default_rng(3)
MU, V0 = RNG.uniform(0.5, 2.5, (N, 2)), 0.01 * np.abs(RNG.normal(size=(N, 2)))
# Without events, whose laws are in test_events.py. 43 steps, the last one shorter; saved at the start, within a step, three times in
# one, at the end of one and at the end.
RUN: dict[str, Any] = {"span": (0.0, 2.13), "step": 0.05, "max_events": 0, "save": [0.0, 0.0734, 0.61, 0.62, 0.63, 0.75, 2.11, 2.13]}
METHODS = ("rk4", *(pytest.param(m, marks=pytest.mark.slow) for m in ("euler", "tsit5", "vern7", "dop853")))


def members(**options):
    return odesim.ensemble(MODEL, **{"params": {"mu": MU}, "initial": {"v": V0}, **RUN, **options})


def alone(i, **options):
    run = {name: value for name, value in RUN.items() if name != "max_events"}
    return odesim.integrate(MODEL, **{"params": {"mu": MU[i]}, "initial": {"v": V0[i]}, **run, **options})


@pytest.mark.parametrize("dtype", slow_but(["float32", "float64"], ["float64"]))
@pytest.mark.parametrize("method", METHODS)
def test_strict_members_are_single_runs(method, dtype):
    """In strict mode a member has the bits of `integrate`; otherwise it differs by rounding, some 50 steps of it."""
    options = {"method": method, "dtype": dtype, "strict": True}
    found = members(**options)
    assert not found.status.any() and (found.steps == 43).all() and (found.t_end == 2.13).all()
    for i in (0, 15, 16, N - 1):
        np.testing.assert_array_equal(found.v[i], alone(i, **options).y["v"])


@pytest.mark.slow
def test_members_do_not_see_each_other():
    """An ensemble equals ensembles of one and any order of its members, bit for bit, on any number of threads; strict mode differs by
    rounding in some 50 steps."""
    found, order = members(method="rk4"), np.random.default_rng(1).permutation(N)
    for i in (0, 16, N - 1):
        one = members(method="rk4", params={"mu": MU[i : i + 1]}, initial={"v": V0[i : i + 1]})
        np.testing.assert_array_equal(one.v[0], found.v[i])
    turned = members(method="rk4", params={"mu": MU[order]}, initial={"v": V0[order]})
    np.testing.assert_array_equal(turned.v, found.v[order])
    np.testing.assert_allclose(found.v, members(method="rk4", strict=True).v, rtol=1e-13)
    many: dict[str, Any] = {"params": {"mu": np.tile(MU, (40, 1))}, "initial": {}, "method": "rk4"}
    assert members(**many).identical(members(**many, threads=3))


@pytest.mark.parametrize("save", [pytest.param(RUN["save"], id="grid"), pytest.param(None, id="end", marks=pytest.mark.slow)])
def test_a_bad_member_harms_no_other(save):
    """A member that leaves the numbers ends as a single run does, at its own step; the others keep their bits."""
    mu, v0 = MU.copy(), V0.copy()
    mu[5, 1], mu[20, 0], v0[36, 1] = 8.0, 4.0, np.nan
    options: dict[str, Any] = {"method": "rk4", "strict": True}
    found, healthy = members(params={"mu": mu}, initial={"v": v0}, save=save, **options), members(save=save, **options)
    ends = {36: (0, 0.0)}
    for i in (5, 20):
        one = alone(i, params={"mu": mu[i]}, initial={"v": v0[i]}, **options)
        assert str(one.status) == found.attrs["status_names"][int(found.status[i])] == "non_finite"
        ends[i] = (one.stats["steps"], one.t[-1])
        reached = found.time.values <= ends[i][1]
        np.testing.assert_array_equal(found.v[i, reached], one.y["v"][: reached.sum()])
        assert np.isnan(found.v[i, ~reached]).all() and not reached[-1]
    assert {i: (int(found.steps[i]), float(found.t_end[i])) for i in ends} == ends
    assert np.isnan(found.v[36, -1]).any()
    assert ends[36][0] == 0 < ends[5][0] < ends[20][0]  # of two that begin well each has its own step
    others = np.isin(np.arange(N), list(ends), invert=True)
    np.testing.assert_array_equal(found.v[others], healthy.v[others])
    assert not found.status[others].any()


@pytest.mark.slow
def test_too_many_steps():
    """All members stop after max_steps; what they saved before stays."""
    found, whole = members(method="rk4", max_steps=13), members(method="rk4")
    assert {found.attrs["status_names"][int(s)] for s in found.status} == {"max_steps"}
    assert (found.steps == 13).all() and (found.t_end == 13 * 0.05).all()
    np.testing.assert_array_equal(found.v[:, :5], whole.v[:, :5])
    assert np.isnan(found.v[:, 5:]).all()


@pytest.mark.parametrize(("method", "order", "dense"), [("rk4", 4, 3), pytest.param("tsit5", 5, 4, marks=pytest.mark.slow)])
def test_order(method, order, dense):
    """Half the step divides the error at its ends by 2^order; within it the interpolant's error by 2^(dense + 1)."""
    system, a = forced(), np.linspace(0.5, 2.0, 5)[:, None]
    errors = []
    for steps in (40, 80):
        save = np.linspace(0.0, 2.0, 3 * steps + 1)
        found = odesim.ensemble(system, params={"a": a}, span=(0.0, 2.0), step=2.0 / steps, save=save, method=method)
        exact = (a * np.cos(save) + np.sin(save) - a * np.exp(-a * save)) / (a**2 + 1)
        off = np.abs(found.x[..., 0].values - exact)
        errors.append((off[:, ::3].max(), off.max()))
    for measured, expected in zip(np.log2(np.array(errors[0]) / np.array(errors[1])), (order, min(order, dense + 1)), strict=True):
        assert measured == pytest.approx(expected, abs=0.35)  # a part of the next power is still seen


@pytest.mark.slow
def test_event_on_one_of_several_states():
    """Where nothing is saved and an event reads one of two states, a member ends where it ends with saved times, bit for bit."""
    x, y, a = symbols("x y a", real=True)
    params = (Param(a, 1.0, Interval(-oo, oo), "rate"),)
    system = System(
        "test.two", Source("none", "test"), {}, {x: -a * x, y: x - y}, params, {x: 1.0, y: 0.0}, events=(Event("half", x - 0.5),)
    )
    run: dict[str, Any] = {"params": {"a": [0.5, 1.0, 2.0]}, "method": "rk4", "step": 0.3}
    end, saved = odesim.ensemble(system, **run), odesim.ensemble(system, save=3, **run)
    for name in ("x", "y"):
        np.testing.assert_array_equal(end[name][:, -1], saved[name][:, -1])
    np.testing.assert_array_equal(end.half_t, saved.half_t)
    np.testing.assert_allclose(end.half_t[1:, 0], np.log(2) / np.array([1.0, 2.0]), rtol=2e-3)  # the error of rk4 with this step


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_short_steps_far_from_zero(backend):
    """697 steps of 1.1e-8 from 7.8 on: rounding of these times, 1e-7 of a step, makes no further step, of length 0, which is none."""
    start, (x, a) = 7.80224167390889, symbols("x a")
    model = System("test.far", equations={x: -a * x}, params=(Param(a, 1e5, Interval(-oo, oo)),), initial={x: 1.0})
    run = odesim.integrate(model, span=(start, start * (1 + 1e-6)), method="rodas4", step=1.1194033965435995e-08, backend=backend)
    assert run.status == "ok" and run.stats["steps"] == 697
    assert run.y["x"][-1] == pytest.approx(np.exp(-1e5 * (run.t[-1] - run.t[0])), rel=1e-8)
