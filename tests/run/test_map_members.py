"""Members of an ensemble of a Map: each has the bits of a run of its own, in lanes or one by one."""

from typing import Any

import numpy as np
import pytest
from sympy import Symbol

import odesim
from odesim.symbolic import Event
from tests.support.maps import CASES
from tests.support.matrix import slow_but

N = 19  # more than the lanes, and no multiple of them
RNG = np.random.default_rng(5)
OWN: dict[str, dict[str, Any]] = {
    "momentum": {"params": {"eta": RNG.uniform(0.01, 0.3, N)}, "initial": {"w": RNG.normal(size=(N, 3))}},
    "hopfield": {"params": {"beta": RNG.uniform(0.5, 4, N)}, "initial": {"xi": RNG.normal(size=(N, 3))}},
    "schedule": {"params": {"eta": RNG.uniform(0.1, 2, N)}},
    "tent": {"initial": {"x": RNG.integers(0, 64, N) / 64}},
}


def row(values: dict[str, Any], i: int) -> dict[str, Any]:
    return {name: value[i] for name, value in values.items()}


def alone(name: str, i: int, **options: Any) -> Any:
    own: dict[str, Any] = {part: row(values, i) for part, values in OWN[name].items()}
    return odesim.integrate(CASES[name].system, **own, **options)


@pytest.mark.slow
@pytest.mark.parametrize("save", [None, 7])
@pytest.mark.parametrize("name", slow_but(CASES, ["momentum", "tent"]))
def test_strict_members_are_single_runs(name, save):
    """In strict mode a member has the bits of integrate, whatever is saved; else it differs by rounding of some 40 updates."""
    found, other = (odesim.ensemble(CASES[name].system, save=save, strict=strict, **OWN[name]) for strict in (True, False))
    assert not found.status.any() and (found.steps == CASES[name].system.span[1]).all()
    assert found.attrs["method_names"][int(found.method[0])] == "map"
    for i in (0, 8, N - 1):
        one = alone(name, i, save=save, strict=True)
        for state, rows in one.y.items():
            assert found[state].values[i].tobytes() == (rows if save else rows[-1:]).tobytes()
    for state in one.y:
        np.testing.assert_allclose(other[state], found[state], rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("terminal", [False, True])
def test_members_end_at_their_own_updates(terminal):
    """Events of members are those of their runs; one that ends a member leaves it at its state there."""
    event = f"low: w[0] - 0.3{'; terminal' if terminal else ''}"
    found = odesim.ensemble(CASES["momentum"].system, save=9, strict=True, events=event, **OWN["momentum"])
    ended = []
    for i in range(N):
        one = alone("momentum", i, save=9, strict=True, events=event)
        times = [e["t"] for e in one.events["low"]]
        np.testing.assert_array_equal(found.low_t[i, : len(times)], times[:8])
        assert (int(found.low_count[i]), float(found.t_end[i])) == (len(times), one.t_end)
        assert found.attrs["status_names"][int(found.status[i])] == one.status
        reached = found.time.values <= one.t_end
        assert found.w.values[i, reached].tobytes() == one.y["w"][: reached.sum()].tobytes()
        if terminal and times:
            assert found.w_end.values[i].tobytes() == one.final["w"].tobytes()
        ended.append(one.status == "event")
    assert any(ended) == terminal and not all(ended)


@pytest.mark.slow
def test_a_bad_member_harms_no_other():
    """A member whose update is not finite ends at the state before; the others keep their bits, on any number of threads."""
    eta = OWN["momentum"]["params"]["eta"].copy()
    eta[[4, 17]] = 1e9, 1e20
    run: dict[str, Any] = {"initial": OWN["momentum"]["initial"], "strict": True, "save": 9}
    found, healthy = (
        odesim.ensemble(CASES["momentum"].system, params={"eta": value}, **run) for value in (eta, OWN["momentum"]["params"]["eta"])
    )
    for i in (4, 17):
        one = odesim.integrate(CASES["momentum"].system, params={"eta": eta[i]}, initial=row(run["initial"], i), strict=True)
        assert (one.status, one.t_end) == ("non_finite", float(found.t_end[i])) and 0 < one.t_end < 40
        assert found.attrs["status_names"][int(found.status[i])] == "non_finite"
    others = np.isin(np.arange(N), [4, 17], invert=True)
    assert found.w.values[others].tobytes() == healthy.w.values[others].tobytes() and not found.status[others].any()
    assert found.identical(odesim.ensemble(CASES["momentum"].system, params={"eta": eta}, threads=3, **run))


@pytest.mark.slow
def test_a_member_that_leaves_its_set():
    """Members whose symbol assumes a set end where their runs do."""
    p, a = Symbol("p", positive=True), Symbol("a", real=True)
    from tests.api.test_maps import grow

    system = grow(updates={p: p - a / 8}, initial={p: 1.0}, events=(Event("half", p - 0.5),))
    found = odesim.ensemble(system, params={"a": [1.0, 3.0, -1.0]})
    assert [found.attrs["status_names"][int(s)] for s in found.status] == ["ok", "left_domain", "ok"]
    np.testing.assert_array_equal(found.t_end, [8.0, 3.0, 8.0])
    np.testing.assert_array_equal(found.half_t[:, 0], [4.0, 2.0, np.nan])


def test_an_update_that_ends_a_run_twice():
    """An update passes a terminal event and leaves the set: the state is none of the model, and a run says left_domain, as a member."""
    from tests.api.test_maps import grow

    p, a = Symbol("p", positive=True), Symbol("a", real=True)
    system = grow(updates={p: p - a / 8}, initial={p: 1.0}, events=(Event("half", p - 0.5, terminal=True),))
    values = (16.0, 4.0, 5.0)  # p is -1; 0.5 is the zero; 0.375
    found = odesim.ensemble(system, params={"a": values})
    ends = [("left_domain", 1.0), ("event", 1.0), ("event", 1.0)]
    assert [(found.attrs["status_names"][int(s)], float(t)) for s, t in zip(found.status, found.t_end, strict=True)] == ends
    alone = [odesim.integrate(system, params={"a": value}) for value in values]
    assert [(run.status, run.t_end) for run in alone] == ends and "p = -1 left (0, inf)" in alone[0].message


def test_large_members_run_one_by_one():
    """More states than lanes hold: the same bits again."""
    run: dict[str, Any] = {"sizes": {"M": 70}, "strict": True, "steps": 3}
    found = odesim.ensemble(CASES["momentum"].system, params={"eta": [0.1, 0.2]}, **run)
    for i, eta in enumerate((0.1, 0.2)):
        one = odesim.integrate(CASES["momentum"].system, params={"eta": eta}, **run)
        assert found.w.values[i, -1].tobytes() == one.final["w"].tobytes()
