"""Ensembles: every member is what it would be alone, whatever its neighbours do."""

import os
import subprocess
import sys
from concurrent.futures import Future, wait
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Interval, Range, Sum, cos, oo, symbols, tanh

import odesim
from odesim.api.ensemble import make_engine, make_ensemble_request
from odesim.base.errors import ParamError, SolveError
from odesim.base.options import RunOptions
from odesim.ensembles.members import make_members
from odesim.inputs.registry import load_model
from odesim.run import chunks as run
from odesim.run.engines import SingleEngine
from odesim.run.lanes import LaneEngine
from odesim.run.looped_lanes import LoopLaneEngine
from odesim.symbolic import IndexedBase, Param, Source, System, index, over, sizes, time

MODEL = "joma.nonlinear"
N = 37  # more than four times the lanes, and no multiple of them
RNG = np.random.default_rng(0)
MU, V0 = RNG.uniform(0.5, 2.5, (N, 2)), 0.01 * np.abs(RNG.normal(size=(N, 2)))
GRID = np.linspace(0.0, 4.0, 9)
RUN: dict[str, Any] = {"span": (0.0, 4.0), "rtol": 1e-6, "atol": 1e-6, "save": GRID}


def forced() -> System:
    """x' = -a x + cos(t), one state: the smallest System, with a schedule."""
    (m,), (M,) = index("m"), sizes("M")
    x, a = IndexedBase("x", shape=(M,)), IndexedBase("a", shape=(M,))
    return System(
        name="test.forced",
        source=Source("none", "test"),
        axes={m: M},
        equations={x[m]: cos(time) - a[m] * x[m]},
        params=(Param(a, 1.0, Interval(0, oo), "rate"),),
        initial={x[m]: 0.0},
        sizes={M: 1},
        span=(0.0, 2.0),
    )


def members(count=N, **options):
    return odesim.ensemble(MODEL, params={"mu": MU[:count]}, initial={"v": V0[:count]}, **{**RUN, **options})


def alone(i, **options):
    return odesim.integrate(MODEL, params={"mu": MU[i]}, initial={"v": V0[i]}, **{**RUN, **options})


SLOW = (("tsit5", None), ("vern7", GRID), ("dop853", GRID), ("dop853", None))


@pytest.mark.parametrize(
    ("method", "save", "dtype"),
    [
        ("tsit5", GRID, "float64"),
        pytest.param("tsit5", GRID, "float32", marks=pytest.mark.slow),
        *(pytest.param(m, s, d, marks=pytest.mark.slow) for d in ("float64", "float32") for m, s in SLOW),
    ],
    ids=str,
)
def test_strict_members_are_single_runs(method, save, dtype):
    """In strict mode a member has the bits of `integrate`, at saved times and in counts of steps."""
    found = members(method=method, save=save, strict=True, dtype=dtype)
    for i in (0, 7, 8, N - 1):
        one = alone(i, method=method, save=GRID[[0, -1]] if save is None else save, strict=True, dtype=dtype)
        np.testing.assert_array_equal(found.v[i], one.y["v"][-len(found.time) :])
        assert (found.steps[i], found.rejected[i]) == (one.stats["steps"], one.stats["rejected"])
    assert not found.status.any()


def test_no_absolute_tolerance():
    """With atol = 0 a component that stays 0 has no error, and rtol counts for no less than rounding: as in a single run."""
    options: dict[str, Any] = {"strict": True, "rtol": 1e-17, "atol": 0.0, "span": (0.0, 0.01), "method": "tsit5"}
    still = odesim.ensemble(MODEL, params={"mu": np.zeros((2, 2))}, initial={"v": 0.0}, **{**RUN, **options, "save": 3})
    assert not still.status.any() and not still.v.values.any()
    one = odesim.integrate(MODEL, params={"mu": MU[0]}, initial={"v": V0[0]}, **{**RUN, **options, "save": 3})
    both = odesim.ensemble(MODEL, params={"mu": MU[:1]}, initial={"v": V0[:1]}, **{**RUN, **options, "save": 3})
    np.testing.assert_array_equal(both.v[0], one.y["v"])


@pytest.mark.slow
def test_members_do_not_see_each_other():
    """An ensemble equals ensembles of one and any order of its members, bit for bit, on any number of threads."""
    found = members()
    for i in (0, 9, N - 1):
        one = odesim.ensemble(MODEL, params={"mu": MU[i : i + 1]}, initial={"v": V0[i : i + 1]}, **RUN)
        np.testing.assert_array_equal(one.v[0], found.v[i])
    order = np.random.default_rng(1).permutation(N)
    np.testing.assert_array_equal(
        odesim.ensemble(MODEL, params={"mu": MU[order]}, initial={"v": V0[order]}, threads=2, **RUN).v, found.v[order]
    )
    # twice the tolerance: rounding decides nothing, the error control of two modes does
    np.testing.assert_allclose(found.v, members(strict=True).v, atol=2e-6)


def test_threads_share_blocks():
    """Blocks of members on several threads have the bits of one thread."""
    many = {"mu": np.tile(MU, (40, 1))}
    one, two = (odesim.ensemble(MODEL, params=many, threads=k, **RUN) for k in (1, 3))
    assert one.identical(two)


@pytest.mark.parametrize(
    ("value", "status"),
    [(np.nan, "non_finite"), (np.inf, "non_finite"), (37.0, "blow_up"), (1e308, "step_too_small")],
)
def test_a_bad_member_harms_no_other(value, status):
    """A member that cannot be integrated has its own status and NaN; the others keep their bits."""
    mu = MU.copy()
    mu[5, 1] = value
    found, healthy = odesim.ensemble(MODEL, params={"mu": mu}, initial={"v": V0}, **RUN), members()
    others = np.arange(N) != 5
    np.testing.assert_array_equal(found.v[others], healthy.v[others])
    assert not found.status[others].any()
    assert found.attrs["status_names"][int(found.status[5])] == status
    assert np.isnan(found.v[5, -1]).all()


def test_a_start_that_is_not_finite():
    """A start of NaN or infinity is that member's own affair."""
    v0 = V0.copy()
    v0[0, 0], v0[-1, 1] = np.nan, np.inf
    found = odesim.ensemble(MODEL, params={"mu": MU}, initial={"v": v0}, **RUN)
    assert [found.attrs["status_names"][int(s)] for s in found.status[[0, -1]]] == ["non_finite"] * 2
    np.testing.assert_array_equal(found.v[1:-1], members().v[1:-1])


def test_too_many_steps():
    """A member that takes more than max_steps says so; what it saved before stays."""
    found, whole = members(method="tsit5", max_steps=6), members(method="tsit5")
    slow = whole.steps.values + whole.rejected.values > 6
    assert ((found.status.values == found.attrs["status_names"].index("max_steps")) == slow).all() and slow.any()
    np.testing.assert_array_equal(found.v[:, 0], V0)
    assert (found.t_end.values[slow] < 4.0).all() and np.isnan(found.v.values[slow, -1]).all()


@pytest.mark.parametrize("count", [1, N])
def test_a_chunk_that_ends_between_two_looks(count, monkeypatch):
    """Each look at a chunk gives up at once, and the chunk has ended when it is asked next: no member is lost."""
    monkeypatch.setattr(run, "WAIT", 0.0)
    monkeypatch.setattr(Future, "done", lambda future: bool(wait([future]).done))
    assert (members(count).status == 0).all()
    assert alone(0, method="rodas5p").status == "ok"


def test_shared_numbers():
    """An array of the parameter's own rank is every member's; the same as a copy for each."""
    shared = odesim.ensemble(MODEL, params={"mu": MU[0]}, initial={"v": V0}, **RUN)
    copies = odesim.ensemble(MODEL, params={"mu": np.tile(MU[0], (N, 1))}, initial={"v": V0}, **RUN)
    np.testing.assert_array_equal(shared.v, copies.v)


@pytest.mark.slow
def test_one_state_and_a_schedule():
    """x' = cos t - a x from 0 in closed form; the tolerance is 20 times that of the run."""
    system, a = forced(), np.linspace(0.1, 3.0, 11)[:, None]
    found = odesim.ensemble(system, params={"a": a}, save=5, method="tsit5", rtol=1e-9, atol=1e-9)
    s = found.time.values
    exact = (a * np.cos(s) + np.sin(s) - a * np.exp(-a * s)) / (a**2 + 1)
    np.testing.assert_allclose(found.x[..., 0], exact, atol=2e-8)


@pytest.mark.slow
def test_float32():
    """States of float32 hold the tolerance as those of float64 do: within 20 times of it over some tens of steps."""
    found = members(dtype="float32", rtol=1e-5, atol=1e-5)
    assert found.v.dtype == np.float32 and not found.status.any()
    np.testing.assert_allclose(found.v, members().v, atol=2e-4)
    one = odesim.ensemble(
        MODEL, params={"mu": MU[9:10]}, initial={"v": V0[9:10]}, **{**RUN, "dtype": "float32", "rtol": 1e-5, "atol": 1e-5}
    )
    np.testing.assert_array_equal(one.v[0], found.v[9])


@pytest.mark.first(1)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_lanes_cannot_do(dtype):
    """More than 64 states are integrated one by one, with the bits of `integrate`."""
    mu = np.random.default_rng(2).uniform(0.5, 2.0, (3, 65))
    found = odesim.ensemble(MODEL, params={"mu": mu}, span=(0.0, 1.0), dtype=dtype, threads=2)
    for i in range(3):
        one = odesim.integrate(MODEL, params={"mu": mu[i]}, span=(0.0, 1.0), dtype=dtype)
        np.testing.assert_array_equal(found.v[i, 0], one.y["v"][-1])


def pairs() -> System:
    """x_i' = sum_j tanh(x_j - x_i): of 16 states 768 operations."""
    (i, j), (M,) = index("i j"), sizes("M")
    x = IndexedBase("x", shape=(M,))
    pull = over(Sum, tanh(x[j] - x[i]), (j, M))
    return System(name="test.pairs", source=Source("none", "test"), axes={i: M, j: M}, params=(), equations={x[i]: pull}, initial={x[i]: 0})


@pytest.mark.parametrize(
    ("model", "states", "options", "count", "engine"),
    [
        (MODEL, 10, {}, 1, LaneEngine),
        ("scan_snap.symmetric", 10, {}, 1, LaneEngine),
        (MODEL, 10, {"dtype": "float32"}, 1, LaneEngine),
        (MODEL, 10, {"method": "rk4", "step": 0.1}, 1, LaneEngine),
        (MODEL, 10, {"method": "rodas5p", "step": 0.1}, 1, SingleEngine),
        (MODEL, 65, {}, 10**8, SingleEngine),  # it has events
        (pairs(), 65, {}, 10**8, LoopLaneEngine),
        (pairs(), 65, {}, 31, SingleEngine),
        (pairs(), 65, {"strict": True}, 10**8, SingleEngine),
        (pairs(), 65, {"dtype": "float32"}, 10**8, SingleEngine),
        (pairs(), 65, {"method": "rk4", "step": 0.1}, 10**8, SingleEngine),
        (pairs(), 16, {}, 31, SingleEngine),
        (pairs(), 16, {}, 100, LoopLaneEngine),
        (pairs(), 16, {}, 10**8, LaneEngine),
        ("joma.linear_softmax", 60, {"method": "rodas5p"}, 10, SingleEngine),
        ("joma.linear_softmax", 60, {"method": "rodas5p"}, 10**6, LaneEngine),
        ("joma.linear_softmax", 60, {"method": "rodas5p", "strict": True}, 10, LaneEngine),
    ],
)
def test_the_engine(model, states, options, count, engine):
    """Which engine integrates a System: of one with many operations, few members do not wait for the compiler of lanes."""
    system = load_model(model) if isinstance(model, str) else model
    state = system.states[0]
    made = make_members(system, {}, {state: np.broadcast_to(np.zeros(states), (count, states))}, sizes=None, span=None, seed=0)
    asked = replace(RunOptions(method="tsit5"), **options)
    assert isinstance(make_engine(make_ensemble_request(system, made, asked), made), engine)


@pytest.mark.first(2)
@pytest.mark.parametrize("options", [{"method": "tsit5"}, {}, {"strict": True}, {"method": "rodas5p"}], ids=str)
def test_a_whole_number_that_follows_is_each_members_own(options):
    """x' = a - n x where n is a rounded down, and 1: the run of each a alone, in lanes that hold whole numbers as text as well."""
    (y, a), n = symbols("y a", real=True), symbols("n", integer=True, positive=True)
    follows = Param(n, lambda sizes, params: int(params["a"]) + 1, Range(1, 100), "follows from a")
    params = (Param(a, 1.0, Interval(0, oo), "differs"), follows)
    system = System("test.follows", Source("none", "test"), {}, {y: a - n * y}, params, {y: 1.0}, span=(0.0, 1.0))
    values = np.array([0.5, 1.5, 3.5])
    found = odesim.ensemble(system, vary={"a": values}, rtol=1e-9, atol=1e-12, **options)
    rates = np.floor(values) + 1
    want = values / rates + (1 - values / rates) * np.exp(-rates)  # solved by hand
    np.testing.assert_allclose(found.y[:, -1], want, rtol=1e-7)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"params": {"mu": MU[0]}}, ParamError, "needs members"),
        ({"params": {"mu": MU}, "initial": {"v": V0[:5]}}, ParamError, "mu has 37, v has 5"),
        ({"params": {"nu": MU}}, ParamError, "did you mean 'mu'"),
        ({"params": {"mu": MU}, "initial": {"v": V0[:, :1]}}, ParamError, "M"),
        ({"params": {"mu": np.full((2, 3), np.nan)}}, ParamError, "not finite in any member"),
        ({"params": {"mu": MU}, "threads": 0}, ParamError, "threads must be"),
        ({"params": {"mu": MU}, "method": "tsit6"}, SolveError, "did you mean 'tsit5'"),
        ({"params": {"mu": MU}, "method": "rk4"}, SolveError, "no error estimate"),
        ({"params": {"mu": MU}, "backend": "numpy"}, ParamError, "numba"),
    ],
)
def test_wrong_requests(options, error, words):
    """A request that cannot be met says in one sentence why."""
    with pytest.raises(error, match=words):
        odesim.ensemble(MODEL, span=(0.0, 1.0), **options)


@pytest.mark.slow
def test_starts_that_follow_from_a_members_own_numbers():
    """A start, and a default, computed from a varied parameter is each member's own; a NaN stays with its member."""
    (m,), (M,) = index("m"), sizes("M")
    x, a, b = (IndexedBase(name, shape=(M,)) for name in ("x", "a", "b"))
    system = System(
        name="test.following",
        source=Source("none", "test"),
        axes={m: M},
        equations={x[m]: -b[m] * x[m]},
        params=(Param(a, 1.0, Interval(-oo, oo), "a"), Param(b, lambda sizes, known: 2 * known["a"], Interval(-oo, oo), "b")),
        initial={x[m]: a[m] + b[m]},
        sizes={M: 2},
        span=(0.0, 1.0),
    )
    given = np.array([[1.0, 0.5], [2.0, 0.1], [np.nan, 1.0]])
    found = odesim.ensemble(system, params={"a": given}, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.x[:2, 0], 3 * given[:2] * np.exp(-2 * given[:2]), rtol=1e-7)  # 100 times rtol
    assert found.attrs["status_names"][int(found.status[2])] == "non_finite"
    apart = odesim.ensemble(system, params={"a": given[:2], "b": np.ones(2)}, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(apart.x[:, 0], (given[:2] + 1) * np.exp(-1), rtol=1e-7)


def test_rows_are_named_once():
    """A parameter that names rows of arrays cannot be a member's own: nothing would check where it points."""
    with pytest.raises(ParamError, match="psi names rows of arrays"):
        odesim.ensemble("scan_snap.full", params={"psi": np.array([[0, 1], [0, 99]])})


@pytest.mark.slow
def test_a_value_outside_the_domain_names_its_member():
    """A finite value outside a parameter's domain is a wrong request."""
    with pytest.raises(ParamError, match="of member 3 lies outside"):
        odesim.ensemble(forced(), params={"a": np.array([[1.0], [2.0], [0.5], [-1.0]])})


@pytest.mark.slow
def test_strict_bits_after_another_mode(tmp_path):
    """A process that compiled the usual mode first has the bits of strict mode afterwards: shared helpers take over no mode."""
    lines = [
        "import numpy as np, odesim",
        "run = dict(params={'mu': np.full((3, 3), 2.0)}, span=(0.0, 4.0), rtol=1e-6, atol=1e-6, save=3)",
        "odesim.ensemble('joma.nonlinear', **run)",
        "found = odesim.ensemble('joma.nonlinear', strict=True, **run)",
        "one = odesim.integrate('joma.nonlinear', strict=True, method='tsit5', **{**run, 'params': {'mu': np.full(3, 2.0)}})",
        "assert np.array_equal(found.v[0], one.y['v'])",
    ]
    environment = os.environ | {"ODESIM_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", "\n".join(lines)], env=environment, check=True)
