"""Events of members: where closed forms put them, with the bits of `integrate`, whatever the other members do."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from sympy import Interval, Rational, oo, symbols

import odesim
from odesim.api.ensemble_request import make_ensemble_request
from odesim.api.rerun import rerun_ensemble
from odesim.api.stored import resume, stored_run
from odesim.base.errors import ParamError
from odesim.base.options import RunOptions
from odesim.ensembles.members import make_members
from odesim.run.choose import make_engine
from odesim.run.lanes import LaneEngine
from odesim.symbolic import Event, IndexedBase, Param, Source, System, index, sizes, time
from tests.support.begun import same

(m,), (M,) = index("m"), sizes("M")
x, y, w = (IndexedBase(name, shape=(M,)) for name in ("x", "y", "w"))
c, z = symbols("c z", real=True)
N = 21  # more than twice the lanes, and no multiple of them
W = np.random.default_rng(0).uniform(0.05, 3.0, (N, 2))
C = np.concatenate([[0.0, 1.0, 0.25], np.random.default_rng(1).uniform(0.03, 0.88, N - 3)])
T1 = 10.0
RUN: dict[str, Any] = {"method": "tsit5", "strict": True, "save": np.linspace(0.0, T1, 9), "rtol": 1e-9, "atol": 1e-9}


@cache
def turning() -> System:
    """x = sin(w t), y = cos(w t); both x pass zero, their product rises through 0.3, and the first y falls to -0.9, too soon to be late."""
    return System(
        name="test.turning",
        source=Source("none", "test"),
        axes={m: M},
        equations={x[m]: w[m] * y[m], y[m]: -w[m] * x[m]},
        params=(Param(w, 1.0, Interval(0, oo), "angular velocity"),),
        initial={x[m]: 0.0, y[m]: 1.0},
        sizes={M: 2},
        span=(0.0, T1),
        events=(
            Event("zero", x[m]),
            Event("both up", x[0] * x[1] - 0.3, 1),
            Event("late", y[0] + 0.9001, -1),
            Event("stop", y[0] + 0.9, -1, terminal=True),
        ),
    )


@cache
def clocked() -> System:
    """Functions of time with roots at c, at c and c + 0.1, and at c without a change of sign, while z decays."""
    return System(
        name="test.clocked",
        source=Source("none", "test"),
        axes={},
        equations={z: -z},
        params=(Param(c, 0.5, Interval(0, 1), "when"),),
        initial={z: 1.0},
        span=(0.0, 1.0),
        events=(Event("at", time - c), Event("pair", (time - c) * (time - c - 0.1)), Event("touch", (time - c) ** 2)),
    )


def found(system: System, params: dict[str, Any], **options: Any) -> Any:
    return odesim.ensemble(system, params=params, **{"method": "tsit5", **options})


def words(system: System) -> dict[str, str]:
    return {event.name: event.name.replace(" ", "_") for event in system.events}


def check_alone(run: Any, system: System, name: str, values: Any, members: Any, **options: Any) -> None:
    """Members are what `integrate` makes of them: events, state where they ended, saved states, counts of steps."""
    for i in members:
        one = odesim.integrate(system, params={name: values[i]}, **{"method": "tsit5", **options})
        assert run.attrs["status_names"][int(run.status[i])] == one.status
        assert (run.t_end[i], run.steps[i], run.rejected[i]) == (one.t_end, one.stats["steps"], one.stats["rejected"])
        for event, word in words(system).items():
            events: Any = one.events[event]
            kept = min(len(events), run.sizes["occurrence"])
            assert run[f"{word}_count"][i] == len(events)
            np.testing.assert_array_equal(run[f"{word}_t"][i], [*events.t[:kept], *[np.nan] * (run.sizes["occurrence"] - kept)])
            if f"{word}_index" in run:
                np.testing.assert_array_equal(run[f"{word}_index"][i, :kept], events.indices[:kept, 0])
                assert (run[f"{word}_index"][i, kept:] == -1).all()
        for state in system.states:
            reached = int((run.time <= one.t_end).sum())
            np.testing.assert_array_equal(run[state][i, :reached], one.y[state][:reached])
            assert np.isnan(run[state][i, reached:]).all()
            if f"{state}_end" in run:
                np.testing.assert_array_equal(run[f"{state}_end"][i], one.y_end[state])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "dtype", "step"),
    [
        ("tsit5", "float64", None),
        pytest.param("tsit5", "float32", None, marks=pytest.mark.slow),
        pytest.param("rk4", "float64", 0.03, marks=pytest.mark.slow),
        *(pytest.param(*row, None, marks=pytest.mark.slow) for row in (("vern7", "float64"), ("dop853", "float32"))),
        *(pytest.param(name, "float32", 0.03, marks=pytest.mark.slow) for name in ("euler", "dop853")),
    ],
)
def test_strict_events_are_those_of_single_runs(method, dtype, step):
    """Times, components, counts and ends have the bits of `integrate`; some members end early, others do not."""
    options = {**RUN, "method": method, "dtype": dtype, "step": step}
    run = found(turning(), {"w": W}, **options)
    assert set(run.status.values) == {0, 1}
    check_alone(run, turning(), "w", W, range(0, N, 2), **options)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"method": "rodas5p", "step": 0.01}], ids=str)
def test_events_of_members_integrated_alone(options):
    """What lanes cannot do keeps the same arrays."""
    asked = {"save": 5, "rtol": 1e-5, "atol": 1e-5, **options}
    run = found(turning(), {"w": W[:4]}, **asked)
    check_alone(run, turning(), "w", W, range(4), **asked)


def test_zeros_of_a_rotation():
    """sin(w t) passes zero at k pi/w; cos(w t) falls through -0.9 once before, and that ends the member."""
    run = found(turning(), {"w": W}, **RUN)
    end = np.minimum(np.arccos(-0.9) / W[:, 0], T1)
    # the state is off by some 100 tolerances at the end; its slope there is w sin(w t) >= 0.02
    np.testing.assert_allclose(run.t_end, end, atol=1e-5)
    np.testing.assert_array_equal(run.status == 1, end < T1)
    assert not run.late_count.any()  # in the piece in which the member ends, but after it
    np.testing.assert_allclose(run.y_end[:, 0], np.cos(W[:, 0] * end), atol=1e-6)
    for i in range(N):
        times = sorted((k * np.pi / W[i, j], j) for j in range(2) for k in range(1, 20) if k * np.pi / W[i, j] < end[i])
        assert run.zero_count[i] == len(times)
        np.testing.assert_allclose(run.zero_t[i, : len(times)], [t for t, _ in times[:8]], atol=1e-6)
        assert run.zero_index[i, : len(times)].values.tolist() == [j for _, j in times[:8]]


def test_zeros_of_many_members():
    """Of 100 members each has its own zeros, at k pi/w in the order of time, however late those of its neighbours are; 1000 tolerances."""
    rates = np.linspace(0.1, 3.0, 100)
    run = found(turning(), {"w": np.stack([np.full(100, 1e-3), rates], axis=1)}, **RUN)  # its first half hardly moves
    for times, w in zip(run.zero_t.values, rates, strict=True):
        right = np.arange(1, int(T1 * w / np.pi) + 1)[:8] * np.pi / w
        np.testing.assert_allclose(times[: len(right)], right, atol=1e-6)


@pytest.mark.parametrize("save", [pytest.param(None, marks=pytest.mark.slow, id="end"), pytest.param(np.array([0.25, 1.0]), id="times")])
def test_zeros_of_time_are_exact(save):
    """Roots of functions of t alone, to the spacing of floats: two in a step, at t0 (not counted), at t1, where a time is saved; a root
    without a change of sign does not count, at t1 neither."""
    run = found(clocked(), {"c": C}, strict=True, save=save)
    alone = odesim.integrate(replace(clocked(), events=()), method="tsit5", strict=True)
    assert (run.steps <= alone.stats["steps"] + 4).all()  # each of two stops, c and c + 0.1, shortens a step and begins anew
    assert run.at_count.values.tolist() == [0, *[1] * (N - 1)]
    np.testing.assert_allclose(run.at_t[1:, 0], C[1:], atol=4e-16)
    inside = (C > 0) & (C < 0.9)
    np.testing.assert_allclose(run.pair_t[inside, :2], np.stack([C, C + 0.1], axis=1)[inside], atol=4e-15)
    assert run.pair_count.values.tolist() == [1, 1, *[2] * (N - 2)]
    assert not run.touch_count.any()
    check_alone(run, clocked(), "c", C, range(0, N, 5), strict=True, save=[1.0] if save is None else save)


@pytest.mark.slow
def test_members_do_not_see_each_other():
    """An ensemble equals ensembles of one, any order of its members, blocks of them on threads, bit for bit, also outside strict mode."""
    run = found(clocked(), {"c": C})
    for i in (0, 9, N - 1):
        assert found(clocked(), {"c": C[i : i + 1]}).isel(member=0).drop_vars("member").identical(run.isel(member=i).drop_vars("member"))
    order = np.random.default_rng(1).permutation(N)
    turned = found(clocked(), {"c": C[order]}, threads=2)
    np.testing.assert_array_equal(turned.pair_t, run.pair_t[order])
    many = {"c": np.tile(C, 60)}
    one, three = (found(clocked(), many, threads=k) for k in (1, 3))
    assert one.identical(three)
    np.testing.assert_array_equal(one.pair_t[-N:], run.pair_t)


def test_more_than_are_kept():
    """The first max_events in the order of time are kept and all are counted."""
    whole = found(turning(), {"w": W}, **RUN)
    few = found(turning(), {"w": W}, max_events=2, **RUN)
    np.testing.assert_array_equal(few.zero_count, whole.zero_count)
    assert int(whole.zero_count.max()) > 2
    np.testing.assert_array_equal(few.zero_t, whole.zero_t[:, :2])
    np.testing.assert_array_equal(few.zero_index, whole.zero_index[:, :2])


def falling() -> System:
    """z decays through 0.9 and ends at 0.5."""
    events = (Event("nine tenths", z - 0.9), Event("half", z - 0.5, -1, terminal=True))
    return replace(clocked(), name="test.falling", equations={z: -c * z}, events=events)


@pytest.mark.slow
def test_none_is_kept():
    """With max_events=0 only what ends a run is looked for."""
    none = found(falling(), {"c": C}, max_events=0)
    np.testing.assert_allclose(none.t_end, np.minimum(1, np.log(2) / np.maximum(C, 1e-9)), rtol=1e-5)  # the default tolerance is 1e-6
    np.testing.assert_allclose(none.z_end[none.status == 1], 0.5, rtol=1e-5)
    assert "nine_tenths_t" not in none and "half_t" not in none and "occurrence" not in none.sizes


@pytest.mark.slow
def test_an_event_changes_nothing_before_it():
    """In strict mode members have the bits of a System without events up to where one ends them."""
    run, plain = found(turning(), {"w": W}, **RUN), found(replace(turning(), events=()), {"w": W}, **RUN)
    free = (run.status == 0).values
    assert free.any() and not free.all()
    np.testing.assert_array_equal(run.x[free], plain.x[free])
    np.testing.assert_array_equal(run.steps[free], plain.steps[free])
    np.testing.assert_array_equal(run.x, plain.x.where(run.time <= run.t_end))
    assert "x_end" not in plain


@pytest.mark.slow
def test_a_member_that_is_not_finite_has_no_events():
    """A start of NaN is that member's own affair; the others keep their events."""
    start = np.ones((N, 2))
    start[4, 1] = np.nan
    run, whole = (odesim.ensemble(turning(), params={"w": W}, initial=given, **RUN) for given in ({"y": start}, {}))
    assert run.attrs["status_names"][int(run.status[4])] == "non_finite" and run.zero_count[4] == 0
    others = np.arange(N) != 4
    assert run.isel(member=others).drop_attrs().equals(whole.isel(member=others).drop_attrs().assign_coords(y_start=run.y_start[others]))


def test_names_that_are_taken():
    """Arrays of events step aside where a state or a parameter has their name."""
    a, zero_t = symbols("a zero_t", real=True)
    system = System(
        name="test.names",
        source=Source("none", "test"),
        axes={},
        equations={zero_t: -a},
        params=(Param(a, 1.0, Interval(0, 2), "rate"),),
        initial={zero_t: 0.5},
        events=(Event("zero", zero_t, -1),),
    )
    run = odesim.ensemble(system, params={"a": np.array([1.0, 2.0])}, method="rodas5p", step=0.1)  # one by one: no kernel of its own
    np.testing.assert_allclose(run["zero_t_"][:, 0], [0.5, 0.25], rtol=1e-12)  # linear: no error but rounding
    np.testing.assert_allclose(run["zero_t"][:, 0], [-0.5, -1.5], rtol=1e-12)


MODEL_FILE = """
from sympy import Interval, Rational, oo, symbols
from odesim.symbolic import Event, IndexedBase, Param, Source, System
x, a = symbols("x a", real=True)
SYSTEM = System(
    name="my.fall", source=Source("none", "test"), axes={}, equations={x: -a * x}, params=(Param(a, 1.0, Interval(0, oo), "rate"),),
    initial={x: 1.0}, span=(0.0, 1.0), events=(Event("half", x - 0.5, -1, terminal=True), Event("nine tenths", x - 0.9)),
    observables={"rate": a * x, "twice": lambda t, states, derivatives, params: 2 * states["x"] + 0 * params["a"]},
)
"""


@pytest.mark.slow
def test_events_and_observables_on_disk(tmp_path, monkeypatch):
    """A shard, then resume: the bits in memory; a rerun compares events too, and finds one that was changed."""
    from odesim.store.ensemble import EnsembleStore

    monkeypatch.setattr("odesim.api.manifest.chunk_size", lambda count, row: min(8, count))
    file, out = tmp_path / "fall.py", tmp_path / "run.zarr"
    file.write_text(MODEL_FILE)
    asked: dict[str, Any] = {"vary": {"a": "uniform(0.1,3)"}, "members": N, "method": "tsit5", "save": 3, "observe": "all", "max_events": 2}
    odesim.ensemble(file, shard=(1, 2), out=out, **asked)
    assert stored_run(out).tally.done == 8
    assert resume(out, model=file).status == "ok"
    held = odesim.ensemble(file, **asked)
    same(odesim.open_run(out), held)
    ended = held.status.values == 1
    assert 0 < ended.sum() < N
    np.testing.assert_allclose(held.x_end[ended], 0.5, atol=1e-6)  # the default tolerance
    assert rerun_ensemble(out, model=file).same
    times = EnsembleStore(out).arrays["nine_tenths_t"]
    times[3, 0] = times[3, 0] + 0.5
    assert rerun_ensemble(out, model=file).first == "nine_tenths_t of member 3"
    for other, word in (({"max_events": 3}, "max_events"), ({"observe": "rate"}, "observables")):
        with pytest.raises(ParamError, match=f"holds another ensemble: its {word}"):
            odesim.ensemble(file, out=out, resume=True, **{**asked, **other})


def test_lanes_do_events():
    """A System with terminal events is integrated in lanes."""
    made = make_members(turning(), {"w": W}, {}, sizes=None, span=None, seed=0)
    assert isinstance(make_engine(make_ensemble_request(turning(), made, RunOptions(method="tsit5", strict=True)), made), LaneEngine)


@pytest.mark.parametrize("most", [-1, 1.5, True, "8"])
def test_wrong_counts(most):
    """max_events is a whole number from 0."""
    with pytest.raises(ParamError, match=r"max_events must be a whole number, (0 to 1000000|not)"):
        found(clocked(), {"c": C}, max_events=most)


@pytest.mark.first(1)
@pytest.mark.parametrize("method", ["rodas5p", "rodas4", "auto"])
def test_events_that_read_some_states_of_a_conserved_sum(method):
    """x' = -x, y' = x keeps x + y; an event on x alone, and on y alone, is at its time, in a run and in an ensemble."""
    x, y = symbols("x y", real=True)
    half, third = Event("half", x - Rational(1, 2)), Event("third", y - Rational(1, 3))
    parts: dict[str, Any] = {"name": "a.b", "source": Source("none", "test"), "axes": {}, "params": (), "initial": {x: 1, y: 0}}
    for events in ((half,), (third,)):
        system = System(**parts, equations={x: -x, y: x}, span=(0.0, 5.0), events=events)
        run, right = odesim.integrate(system, method=method), np.log(2 if half in events else 1.5)
        assert [e["t"] for e in run.events[events[0].name]] == pytest.approx([right], rel=1e-5)  # ten times the tolerance
    members = odesim.ensemble(system, initial={"x": np.ones(3)}, method=method)  # with the event on y: a kernel each
    np.testing.assert_allclose(members.third_t.values[:, 0], right, rtol=1e-5)
