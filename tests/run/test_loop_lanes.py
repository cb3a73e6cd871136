"""Lanes with loops: the System of several members is that of each, and each member's run is a single run, but for rounding."""

from typing import Any

import numpy as np
import pytest
from sympy import Interval, Sum, cos, log, oo, tanh

import odesim
from odesim.base.errors import SpecError
from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model
from odesim.run import choose
from odesim.run import looped_lanes as loops
from odesim.run.choose import make_engine
from odesim.run.engines import HandOver
from odesim.run.looped_lanes import WIDTH
from odesim.symbolic import IndexedBase, Param, Source, System, index, over, sizes, time
from odesim.targets.compiled import compile_system
from odesim.transforms.lanes import LANES, TIME, lane_system
from tests.support.matrix import slow_but
from tests.support.models import MAPS
from tests.support.threads import MODELS

REAL = Interval(-oo, oo)
(i, j), (M,) = index("i j"), sizes("M")
x, w, b = IndexedBase("x", shape=(M,)), IndexedBase("w", shape=(M,)), IndexedBase("b", shape=(M, M))
PULL = over(Sum, b[i, j] * tanh(x[j] - x[i]), (j, M)) + w[i] * cos(time)


def coupled(rate: Any = PULL, start: Any = 0.5) -> System:
    """x_i' = sum_j b_ij tanh(x_j - x_i) + w_i cos t: it reads the time, a vector and a matrix."""
    params = (Param(w, 1.0, REAL, "driving"), Param(b, 0.3, REAL, "coupling"))
    return System("test.coupled", Source("none", "test"), {i: M, j: M}, {x[i]: rate}, params, {x[i]: start}, sizes={M: 5}, span=(0.0, 4.0))


SYSTEM, SQUARE, INVERSE = coupled(), coupled(w[i] * x[i] ** 2), coupled(w[i] / x[i])


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> list[type]:
    """Lanes with loops wherever they can be; the classes of the engines that were made."""
    made: list[type] = []
    for name, value in {"AT_ONCE": -1, "SOON": -1, "FEW": 1, "LOOPS": 0.0}.items():
        monkeypatch.setattr(choose, name, value)
    monkeypatch.setattr(
        "odesim.api.ensemble.make_engine",
        lambda *asked: made.append(type(make_engine(*asked))) or make_engine(*asked),  # type: ignore[func-returns-value]
    )
    return made


QUICK = (
    "gibbs.training_flow",
    "hopfield.two_layer",
    "joma.linear_attention",
    "particles.circle",
    "reversal.bilinear",
    "scan_snap.symmetric",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_but([name for name in MODELS if name not in MAPS], QUICK))
def test_every_model_in_lanes(name: str) -> None:
    """Three members, all of whose real parameters are their own: the rates of each are those of the model, as are those of a time."""
    system, rng = load_model(name), np.random.default_rng(0)
    numbers = bind(system, sizes={} if name.startswith("topics") else MODELS[name].get("sizes", {}))
    own = [p.name for p in system.params if not p.integer and p.indexes is None]
    try:
        wide = compile_system(lane_system(system, own), backend="numpy")
    except SpecError as error:
        assert "layers" in str(error)
        return
    shared = {key: value for key, value in numbers.params.items() if key not in own}
    lanes = wide.bind({**numbers.sizes, LANES: 3}, shared)
    alone = compile_system(system, backend="numpy")
    layout = alone.layout(numbers.sizes)
    assert lanes.layout.names == (*layout.names, *own, *([TIME] if TIME in lanes.layout.names else []))
    factors = 1 + 0.01 * rng.random(3)
    starts = np.concatenate([np.ravel(numbers.initial[key]) for key in layout.names]).astype(float)
    values = [np.outer(starts, factors), *(np.outer(np.ravel(numbers.params[key]), factors) for key in own)]
    values += [np.full((1, 3), 0.3)] * (TIME in lanes.layout.names)
    rates, all_ = np.empty(len(starts)), np.concatenate(values)
    found = np.empty(all_.size)
    with np.errstate(all="ignore"):
        lanes(0.0, all_.ravel(), found)
        for k, factor in enumerate(factors):
            mine = {key: numbers.params[key] * factor for key in own}
            alone.bind(numbers.sizes, {**shared, **mine})(0.3, starts * factor, rates)
            size = np.abs(rates[np.isfinite(rates)]).max(initial=1.0)
            np.testing.assert_allclose(found.reshape(-1, 3)[: len(rates), k], rates, rtol=1e-11, atol=1e-13 * size)  # other orders of sums
    assert not found.reshape(-1, 3)[len(starts) :].any()


def members(count: int) -> dict[str, Any]:
    """Starts and parameters of their own."""
    rng = np.random.default_rng(1)
    given = {"w": rng.normal(size=(count, 5)), "b": rng.random((count, 5, 5))}
    return {"vary": {**given, "x": rng.normal(size=(count, 5))}}


@pytest.mark.first(1)
@pytest.mark.parametrize("method", ["tsit5", "vern7", "dop853"])
@pytest.mark.parametrize("save", [9, None])
def test_members_are_single_runs(always: list[type], method: str, save: int | None) -> None:
    """States at all saved times to some roundings, grown by the flow; the same steps; more members than lanes, and fewer."""
    asked: dict[str, Any] = {"method": method, "rtol": 1e-7, "atol": 1e-9, **({"save": save} if save else {})}
    for count in (WIDTH + 5, 3):
        given = members(count)
        found = odesim.ensemble(SYSTEM, **given, **asked)
        assert always[-1] is loops.LoopLaneEngine and (found.status == 0).all() and (found.t_end == 4.0).all()
        for k in (0, 2, count - 1):
            one = {name: values[k] for name, values in given["vary"].items()}
            run = odesim.integrate(SYSTEM, initial={"x": one.pop("x")}, params=one, **asked)
            np.testing.assert_allclose(found.x[k], run.y["x"][-len(found.time) :], rtol=1e-10, atol=1e-11)
            assert (int(found.steps[k]), int(found.rejected[k])) == (run.stats["steps"], run.stats["rejected"])


ENDS: dict[str, tuple[System, dict[str, Any], str]] = {
    "a pole": (SQUARE, {}, "blow_up"),
    "a root": (coupled(-w[i] / x[i]), {}, "step_too_small"),
    "few steps": (SYSTEM, {"max_steps": 7}, "max_steps"),
    "no rate": (INVERSE, {"x": 0.0}, "non_finite"),
}


@pytest.mark.first(1)
@pytest.mark.parametrize("case", ENDS)
def test_members_end_as_single_runs(always: list[type], case: str) -> None:
    """Every second member ends early: with the status, at the time and in the state of its single run; the others reach the end."""
    system, options, status = ENDS[case]
    options = dict(options)
    starts = np.full((20, 5), 0.5)
    if "x" in options:
        starts[::2] = options.pop("x")
    strengths = np.where(np.arange(20) % 2 == 0, 1.0, 1e-3)[:, None] * np.ones(5)
    asked: dict[str, Any] = {"method": "tsit5", "save": 5, **options}
    found = odesim.ensemble(system, vary={"w": strengths, "x": starts}, **asked)
    assert always[-1] is loops.LoopLaneEngine
    for k in (0, 1, 18, 19):
        run = odesim.integrate(system, params={"w": strengths[k]}, initial={"x": starts[k]}, **asked)
        assert found.attrs["status_names"][int(found.status[k])] == run.status
        assert float(found.t_end[k]) == pytest.approx(run.t_end, rel=1e-5)  # what rounding makes of error norms, over few steps
        reached = int((found.time <= run.t_end).sum())
        np.testing.assert_allclose(found.x[k, :reached], run.y["x"][:reached], rtol=1e-6)  # beside a pole, 5e5 roundings
        assert np.isnan(found.x[k, reached:]).all()
    assert found.attrs["status_names"][int(found.status[0])] == status


def test_the_bits_do_not_depend_on_threads(always: list[type]) -> None:
    """Of three blocks, one and two threads."""
    given = members(2 * loops.BLOCK + 9)
    one, two = (odesim.ensemble(SYSTEM, **given, save=3, method="tsit5", threads=threads) for threads in (1, 2))
    assert always[-1] is loops.LoopLaneEngine
    np.testing.assert_array_equal(one.x, two.x)


@pytest.mark.slow
@pytest.mark.parametrize("span", [(0.0, 1e-300), (0.0, 1e160), (-1e300, 0.0)], ids=str)
def test_members_of_any_span_are_single_runs(always: list[type], span: tuple[float, float]) -> None:
    """Decay within the span, whose steps have a square that no number holds: the steps and states of a single run."""
    rates = np.linspace(1.0, 2.0, 15).reshape(3, 5) / (span[1] - span[0])
    asked: dict[str, Any] = {"method": "dop853", "span": span, "save": 3, "max_steps": 500}
    found = odesim.ensemble(coupled(-w[i] * x[i]), vary={"w": rates}, **asked)
    run = odesim.integrate(coupled(-w[i] * x[i]), params={"w": rates[1]}, **asked)
    assert always[-1] is loops.LoopLaneEngine and run.status == "ok" and (found.status == 0).all()
    assert (int(found.steps[1]), int(found.rejected[1])) == (run.stats["steps"], run.stats["rejected"])
    np.testing.assert_allclose(found.x[1], run.y["x"], rtol=1e-10)


@pytest.mark.slow
def test_rejected_steps_out_of_the_domain_do_not_depend_on_others(always: list[type]) -> None:
    """Steps that are rejected and end where the logarithm is not a number: their lengths are those of a single run, and alone the same
    bits, whatever saved times the steps of other lanes have within them."""
    decay = 20 * w[i] * (1 + tanh(50 * (time - 1))) * (x[i] - 0.01)
    system, rng = coupled(0.001 * log(x[i]) - decay), np.random.default_rng(0)
    given = {"x": 0.5 + rng.random((16, 5)), "w": 1.0 + 9.0 * rng.random((16, 5))}
    asked: dict[str, Any] = {"method": "dop853", "rtol": 1e-3, "atol": 1e-3, "span": (0.0, 3.0), "save": 60}
    found, same = odesim.ensemble(system, vary=given, **asked), 0
    for k in range(16):
        alone = odesim.ensemble(system, vary={name: values[k : k + 1] for name, values in given.items()}, **asked)
        np.testing.assert_array_equal(alone.x[0], found.x[k])
        run = odesim.integrate(system, initial={"x": given["x"][k]}, params={"w": given["w"][k]}, **asked)
        same += (int(found.steps[k]), int(found.rejected[k])) == (run.stats["steps"], run.stats["rejected"])
    assert always[-1] is loops.LoopLaneEngine
    assert same >= 12  # some stage may fall on the other side of 0 by rounding; with other lengths of steps no member has the same


@pytest.mark.slow
def test_what_follows_is_each_members_own(always: list[type]) -> None:
    """The table P of a model of topics follows from the probability p_m: each member has that of its own; in any order the same bits."""
    masked, order = np.linspace(0.1, 0.3, 21), np.random.default_rng(0).permutation(21)
    found, turned = (odesim.ensemble("topics.stage1", vary={"p_m": values}, save=3, method="tsit5") for values in (masked, masked[order]))
    assert always[-1] is loops.LoopLaneEngine
    np.testing.assert_array_equal(found.W_V[order], turned.W_V)
    for k in (0, 20):
        run = odesim.integrate("topics.stage1", params={"p_m": masked[k]}, save=3, method="tsit5")
        np.testing.assert_allclose(found.W_V[k], run.y["W_V"], rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_stiff_members_are_handed_over(always: list[type]) -> None:
    """Under auto: of two layers, those whose hidden one is 1e7 times faster have few steps of rodas5p; all are right to their tolerance."""
    fast = np.repeat([1e-7, 0.1], 9)
    found = odesim.ensemble("hopfield.two_layer", vary={"tau_h": fast}, sizes={"d": 6}, save=3)
    methods = [found.attrs["method_names"][m] for m in found.method.values]
    assert always[-1] is HandOver and methods == ["rodas5p"] * 9 + ["tsit5"] * 9 and (found.status == 0).all()
    for k in (0, 17):
        run = odesim.integrate("hopfield.two_layer", params={"tau_h": fast[k]}, sizes={"d": 6}, save=3, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(found.v[k], run.y["v"], atol=2e-6)  # twice the tolerance


def test_what_has_no_lanes() -> None:
    """Each is one sentence."""
    for model, own, words in (("galore.projected", (), "layers"), ("induction.full", ("X",), "X differs between members")):
        with pytest.raises(SpecError, match=words):
            lane_system(load_model(model), own)
    with pytest.raises(SpecError, match="'n_lanes' is needed for lanes"):
        taken = IndexedBase("x", shape=sizes(LANES))
        lane_system(System("test.taken", Source("none", "test"), {i: sizes(LANES)[0]}, {taken[i]: 1}, (), {taken[i]: 0}), ())
