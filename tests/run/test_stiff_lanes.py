"""Stiff members in lanes: the runs of `integrate`, which solves with LAPACK, and the laws of ensembles."""

from functools import cache
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pytest
import scipy.integrate
from sympy import Interval, cos, oo, symbols

import odesim
from odesim.api import ensemble as facade_ensemble
from odesim.base.memo import Memo
from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model
from odesim.run import choose
from odesim.run import lane_plan as lane_rows
from odesim.run import lane_plan as plan
from odesim.run import lanes as lane_engine
from odesim.run.choose import make_engine
from odesim.run.lanes import LaneEngine
from odesim.stepper.codes import STATUSES, Status
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.symbolic import Param, Source, System, time
from tests.run.test_events import W, turning
from tests.support.matrix import DENSE, LONG, in_turn, slow_but
from tests.support.models import FLOWS
from tests.support.systems import SYSTEMS as COMMON
from tests.support.systems import numbers

BOTH = pytest.mark.parametrize("method", list(ROSENBROCK))
RODAS4, RODAS5P = (pytest.mark.parametrize("method", slow_but(ROSENBROCK, [name])) for name in ("rodas4", "rodas5p"))
REAL = Interval(-oo, oo)
y1, y2, y3, k1, k2, k3, mu, x, v, a, rate = symbols("y1 y2 y3 k1 k2 k3 mu x v a rate", real=True)


def of(name: str, equations: Any, params: Any, initial: Any, span: tuple[float, float]) -> System:
    """A System of scalars; params {symbol: default}."""
    given = tuple(Param(s, value, REAL, "") for s, value in params.items())
    return System(name=name, source=Source("none", "test"), axes={}, equations=equations, params=given, initial=initial, span=span)


ROBERTSON = of(
    "robertson",
    {y1: -k1 * y1 + k3 * y2 * y3, y2: k1 * y1 - k3 * y2 * y3 - k2 * y2**2, y3: k2 * y2**2},
    {k1: 0.04, k2: 3e7, k3: 1e4},
    {y1: 1.0, y2: 0.0, y3: 0.0},
    (0.0, 1e5),
)
VAN_DER_POL = of("van_der_pol", {x: v, v: mu * (1 - x**2) * v - x}, {mu: 1e3}, {x: 2.0, v: 0.0}, (0.0, 2000.0))
LOGISTIC = of("logistic", {x: a * x * (1 - x) * cos(time)}, {a: 1.0}, {x: 0.2}, (0.0, 3.0))  # 1/(1 + 4 exp(-a sin t))
GROWTH = of("growth", {x: rate * x}, {rate: 16.0}, {x: 1.0}, (0.0, 1.0))
# a pole at t = 1/a, and a root that ends in 0
POLE = of("pole", {x: a * x**2}, {a: 0.5}, {x: 1.0}, (0.0, 3.0))
RATES: dict[str, Any] = {"k1": np.array([0.04, 0.02, 0.07]), "k2": np.array([3e7, 5e7, 2e7]), "k3": np.array([1e4, 1.5e4, 6e3])}


def rates(count: int) -> dict[str, Any]:
    """Robertson's rates times uniform(0.5, 2)."""
    times = np.random.default_rng(0).uniform(0.5, 2, (3, count))
    return {name: default * u for name, default, u in zip(("k1", "k2", "k3"), (0.04, 3e7, 1e4), times, strict=True)}


def follows(system: Any, method: str, params: Any, initial: Any = None, near: float = 1e-6, **asked: Any) -> None:
    """Members in lanes against `integrate`: the same steps up to rounding, which a step that is just accepted may turn."""
    run: dict[str, Any] = {"method": method, "save": 5, "rtol": 1e-6, "atol": 1e-9, **asked}
    initial, engines = initial or {}, list[Any]()
    with patch.object(facade_ensemble, "make_engine", lambda *made: engines.append(make_engine(*made)) or engines[-1]):  # type: ignore[func-returns-value]
        found = odesim.ensemble(system, params=params, initial=initial, **run)
    assert isinstance(engines[0], LaneEngine)
    for i in range(found.sizes["member"]):
        own = {name: value[i] for name, value in params.items()}, {name: value[i] for name, value in initial.items()}
        one = odesim.integrate(system, params=own[0], initial=own[1], **run)
        assert str(STATUSES[int(found.status[i])]) == str(one.status)
        assert abs(int(found.steps[i]) - one.stats["steps"]) <= 1 and abs(int(found.rejected[i]) - one.stats["rejected"]) <= 1
        for name, value in one.y.items():
            kept = found[name].values[i][: len(value)]
            np.testing.assert_allclose(kept, value, rtol=near, atol=near * np.abs(value).max())


@pytest.mark.slow
def test_robertson_follows():
    """Three stiff reactions: rounding, times the steps of 1e-6 that it is allowed to turn."""
    follows(ROBERTSON, "rodas5p", RATES)


@pytest.mark.slow
def test_time_follows():
    """A right-hand side with the time in it, and a sum of states: df/dt goes to every stage."""
    given = numbers(COMMON["numbers"])
    follows(COMMON["numbers"], "rodas4", {"T": np.array([0.5, 1.0])}, sizes=given.sizes, span=(0.0, 2.0))


def test_an_entry_that_is_the_time_follows(monkeypatch):
    """x' = t v, v' = -v a, written in loops: v = exp(-a t), x = (1 - (1 + a t) exp(-a t))/a^2; 1e-5: 10 tolerances."""
    monkeypatch.setattr(plan, "MOST_WRITTEN", 0)
    monkeypatch.setattr(lane_engine, "_PLANS", Memo())
    system = of("driven", {x: time * v, v: -a * v}, {a: 1.0}, {x: 0.0, v: 1.0}, (0.0, 2.0))
    rates = np.array([1.0, 2.0, 30.0])
    found = odesim.ensemble(system, params={"a": rates}, method="rodas5p", rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found["x"].values[:, -1], (1 - (1 + 2 * rates) * np.exp(-2 * rates)) / rates**2, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("states", slow_but([3, 12], [3]))
def test_loops_follow(states, monkeypatch):
    """States coupled by a sum that stays unknown, in loops over rows: a few where all is in loops, and as many as are not written out."""
    if states < 12:
        monkeypatch.setattr(plan, "MOST_WRITTEN", 0)
        monkeypatch.setattr(lane_engine, "_PLANS", Memo())
    follows("joma.linear_softmax", "rodas5p", {"Delta": np.random.default_rng(1).uniform(-1, 1, (3, states))}, span=(0.0, 1.0))


@pytest.mark.slow
def test_events_follow():
    """Times, components and ends of events by the interpolant of the method. Powers in lanes are off by 1e-5, and so is the size of a
    step, which moves a time by as much of the tolerance of 1e-5.
    """
    run: dict[str, Any] = {"method": "rodas5p", "save": 5, "rtol": 1e-5, "atol": 1e-5}
    found = odesim.ensemble(turning(), params={"w": W[:6]}, **run)
    assert set(found.status.values) == {0, 1}
    for i in range(6):
        one = odesim.integrate(turning(), params={"w": W[i]}, **run)
        assert found.attrs["status_names"][int(found.status[i])] == one.status
        assert float(found.t_end[i]) == pytest.approx(one.t_end, abs=1e-10)
        for name, events in one.events.items():
            word, times = name.replace(" ", "_"), cast(Any, events)
            assert int(found[f"{word}_count"][i]) == len(events)
            assert found[f"{word}_t"].values[i, : len(events)] == pytest.approx(times.t[:8], abs=1e-10)


SHIPPED = [n for n in FLOWS if n not in (*LONG, *DENSE)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "method"), in_turn(SHIPPED[::2], list(ROSENBROCK)))
def test_shipped_models_follow(name, method, monkeypatch):
    """Every second model that is small, with its defaults, in lanes even where one member is sooner done without."""
    monkeypatch.setattr(choose, "SOON", 10**6)
    system = load_model(name)
    chosen: dict[str, int] | None = {size: 4 for size in ("M", "d") if size in system.size_names} or None
    given = bind(system, sizes=chosen)
    params = {p.name: np.asarray(given.params[p.name])[None] for p in system.params if not p.integer}
    follows(system, method, params, sizes=chosen)


@pytest.mark.slow
@BOTH
def test_stiff_systems_follow(method):
    """Relaxation oscillations over more than a period, whose jumps magnify a difference 1e3 times; time scales 2.7e5 apart; the rest of
    the small test systems."""
    follows(VAN_DER_POL, method, {"mu": np.array([1e3, 700.0])}, near=1e-3)
    rng = np.random.default_rng(0)
    follows("joma.nonlinear", method, {"mu": rng.uniform(0.5, 5, (3, 4))}, {"v": 0.01 * np.abs(rng.normal(size=(3, 4)))}, span=(0.0, 10.0))
    for name in ("softmax", "mean_field", "rows", "two_of_one", "scaled"):
        given = numbers(COMMON[name])
        shared = {n: np.broadcast_to(p, (2, *np.shape(p))) for n, p in given.params.items() if n != "phi"}
        follows(COMMON[name], method, shared, sizes=given.sizes, span=(0.0, 0.15))  # "rows" runs to infinity at 0.2


@cache
def radau(times: tuple[float, ...]) -> Any:
    """Robertson's members by scipy's Radau at 1e-12, (3, T, 3)."""
    found = []
    for i in range(3):
        k = [RATES[name][i] for name in ("k1", "k2", "k3")]

        def f(t: float, y: Any, k: Any = k) -> Any:
            r1, r2, r3 = k[0] * y[0], k[1] * y[1] ** 2, k[2] * y[1] * y[2]
            return r3 - r1, r1 - r2 - r3, r2

        def J(t: float, y: Any, k: Any = k) -> Any:
            d2, e2, e3 = 2 * k[1] * y[1], k[2] * y[2], k[2] * y[1]
            return [[-k[0], e2, e3], [k[0], -d2 - e2, -e3], [0, d2, 0]]

        solve_ivp: Any = scipy.integrate.solve_ivp
        found.append(solve_ivp(f, (0, times[-1]), [1, 0, 0], "Radau", times, jac=J, rtol=1e-12, atol=1e-18).y.T)
    return np.array(found)


@pytest.mark.slow
def test_robertson():
    """Against scipy's Radau at 1e-12 over eleven decades of time scales; y1 + y2 + y3 = 1 to rounding: the Jacobian's columns sum to 0."""
    times = (0.4, 40.0, 4e3, 1e5)
    run = odesim.ensemble(ROBERTSON, params=RATES, method="rodas5p", rtol=1e-8, atol=1e-12, save=np.array(times))
    y = np.stack([run[name].values for name in ("y1", "y2", "y3")], axis=-1)
    assert y == pytest.approx(radau(times), rel=1e-6)  # between the steps the interpolant adds a few tolerances
    assert y.sum(axis=-1) == pytest.approx(1, abs=1e-13)


@RODAS5P
def test_order(method):
    """With time in the right-hand side the error at the end falls with steps^-order, and that between the steps follows the tolerance."""
    scale, tolerances = np.array([1.0, 0.7]), np.array([1e-6, 1e-8, 1e-10])
    end, between, steps = [], [], []
    for tol in tolerances:
        run = odesim.ensemble(LOGISTIC, params={"a": scale}, method=method, rtol=tol, atol=tol, save=41)
        errors = np.abs(run.x.values - 1 / (1 + 4 * np.exp(-scale[:, None] * np.sin(run.time.values))))
        end.append(errors[:, -1].max())
        between.append(errors.max())
        steps.append(run.steps.values.mean())
    assert np.all(np.array(between) < 50 * tolerances)
    slope = -np.polyfit(np.log(steps), np.log(between), 1)[0]
    # the interpolant, of order 3 or 4, has its error times h; what the steps do is of the method's order
    assert ROSENBROCK[method].order - 0.5 < slope < ROSENBROCK[method].order + 1.5


def same(one: Any, other: Any) -> None:
    for name in one.variables:
        if "member" in one[name].dims and name != "member":
            np.testing.assert_array_equal(one[name].values, other[name].values)


@pytest.mark.slow
@pytest.mark.parametrize("strict", slow_but([False, True], [False]))
def test_a_member_is_by_itself(strict, monkeypatch):
    """21 members at once, in two blocks of two threads, and some alone: the same bits, in either mode."""
    params, run = rates(21), {"method": "rodas5p", "strict": strict, "save": 4, "span": (0.0, 1e3)}
    whole = odesim.ensemble(ROBERTSON, params=params, **run)  # type: ignore[arg-type]
    assert not whole.status.values.any()
    for i in (0, 13, 20):
        same(whole.isel(member=[i]), odesim.ensemble(ROBERTSON, params={k: p[i : i + 1] for k, p in params.items()}, **run))  # type: ignore[arg-type]
    monkeypatch.setattr(lane_engine, "LEAST", 11)
    same(whole, odesim.ensemble(ROBERTSON, params=params, threads=2, **run))  # type: ignore[arg-type]


def test_bad_members_harm_no_other():
    """Poles, f or its slope that is infinite at the start, and rates that overflow in a step end alone; the others' bits stay."""
    factors, start = np.linspace(-2, 0.3, 24), np.ones(24)
    good = odesim.ensemble(POLE, params={"a": factors}, initial={"x": start}, method="rodas5p")
    bad, far = factors.copy(), start.copy()
    bad[[3, 8, 20]], far[[5, 11]] = (1e308, 1e300, 0.5), (1e200, -1e155)
    found = odesim.ensemble(POLE, params={"a": bad}, initial={"x": far}, method="rodas5p")
    rest = np.setdiff1d(np.arange(24), [3, 5, 8, 11, 20])
    same(good.isel(member=rest), found.isel(member=rest))
    assert not good.status.values.any() and found.status.values[[3, 5, 8, 20]].all()
    assert STATUSES[int(found.status[5])] is Status.NON_FINITE and STATUSES[int(found.status[20])] is Status.BLOW_UP
    assert np.isnan(found.x.values[[3, 5, 8, 20]]).all()


@RODAS5P
def test_ends(method):
    """A pole ends its member at its time, max_steps another; the linearised step does not jump over a pole."""
    run = odesim.ensemble(POLE, params={"a": np.array([0.5, 0.2, 1.0])}, method=method, rtol=1e-8, atol=1e-10)
    assert [STATUSES[int(s)] for s in run.status] == [Status.BLOW_UP, Status.OK, Status.BLOW_UP]
    assert run.t_end.values == pytest.approx([2.0, 3.0, 1.0], abs=1e-6) and run.x.values[1, 0] == pytest.approx(2.5, rel=1e-6)
    few = odesim.ensemble(POLE, params={"a": np.array([0.5])}, method=method, max_steps=5)
    assert STATUSES[int(few.status[0])] is Status.MAX_STEPS and int(few.steps[0] + few.rejected[0]) == 5


@RODAS4
def test_a_singular_matrix_is_a_rejected_step(method):
    """Rates among which 1/(gamma h) of many steps lies: the matrix is singular or next to it, and the run goes on."""
    scale = np.r_[1 / (ROSENBROCK[method].gamma * 2.0 ** -np.arange(1, 5)), np.linspace(1, 40, 12)]
    run = odesim.ensemble(GROWTH, params={"rate": scale}, method=method, rtol=1e-8, atol=1e-8)
    assert not run.status.values.any()
    assert run.x.values[:, 0] == pytest.approx(np.exp(scale), rel=1e-5)  # errors grow with the solution


@pytest.mark.slow
@pytest.mark.parametrize("most", [300, 0])
def test_loops_are_the_written_out_step(most, monkeypatch):
    """The same steps as without loops, to rounding; with the elimination written out, and as loops over a dense matrix."""
    run = {"method": "rodas5p", "save": 4, "span": (0.0, 1e3)}
    written = odesim.ensemble(ROBERTSON, params=rates(9), **run)  # type: ignore[arg-type]
    monkeypatch.setattr(plan, "MOST_WRITTEN", 0)
    monkeypatch.setattr(lane_rows, "MOST_FACTORS", most)
    monkeypatch.setattr(lane_engine, "_PLANS", Memo())
    loops = odesim.ensemble(ROBERTSON, params=rates(9), **run)  # type: ignore[arg-type]
    np.testing.assert_array_equal(loops.steps, written.steps)
    for name in ("y1", "y2", "y3"):
        np.testing.assert_allclose(loops[name], written[name], rtol=1e-9)


@pytest.mark.slow
def test_events_in_loops(monkeypatch):
    """Events of a step in loops are those of the written out one, to rounding."""
    run: dict[str, Any] = {"method": "rodas5p", "rtol": 1e-5, "atol": 1e-5}
    written = odesim.ensemble(turning(), params={"w": W}, **run)
    monkeypatch.setattr(plan, "MOST_WRITTEN", 0)
    monkeypatch.setattr(lane_engine, "_PLANS", Memo())
    loops = odesim.ensemble(turning(), params={"w": W}, **run)
    np.testing.assert_array_equal(loops.zero_index, written.zero_index)
    np.testing.assert_allclose(loops.zero_t, written.zero_t, rtol=1e-10)
    np.testing.assert_allclose(loops.t_end, written.t_end, rtol=1e-10)
