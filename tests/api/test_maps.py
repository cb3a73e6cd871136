"""Maps: whole numbers of updates, held against plain loops."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Interval, Symbol, oo, symbols

import odesim
from odesim.base.errors import OdesimError, SolveError, SpecError
from odesim.display.document import html_page, latex_document
from odesim.display.formulas import equations_text
from odesim.symbolic import Event, Map, Param, System
from tests.support.maps import CASES, MOMENTUM, SOURCE, TENT, orbit
from tests.support.systems import SYSTEMS, numbers

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
a, q = symbols("a q", real=True)


def grow(**more: Any) -> System:
    """q -> a q from 1."""
    given: dict[str, Any] = {"updates": {q: a * q}, "initial": {q: 1.0}, "steps": 8, **more}
    return Map(name="test.grow", source=SOURCE, axes={}, params=(Param(a, 2.0, Interval(-oo, oo), "factor"),), **given)


@every_case
@pytest.mark.parametrize(("backend", "strict"), [("numba", False), ("numba", True), ("numpy", False)])
def test_a_map_is_its_loop(case, backend, strict):
    """Every state after every update is that of a plain loop, to the rounding of some 40 updates, or to the bit where nothing rounds."""
    found = odesim.integrate(case.system, save=1000, backend=backend, strict=strict)
    steps = int(case.system.span[1])
    assert (found.status, found.method, found.stats["steps"], found.stats["rhs_calls"]) == ("ok", "map", steps, steps)
    np.testing.assert_array_equal(found.t, np.arange(steps + 1))
    start = {name: rows[0] for name, rows in found.y.items()}
    for name, rows in orbit(case, start, found.attrs["params"], steps).items():
        np.testing.assert_allclose(found.y[name], rows, rtol=0 if case.exact else 1e-12, atol=0 if case.exact else 1e-12)


@pytest.mark.first(1)
@pytest.mark.parametrize("name", [name for name in SYSTEMS if name != "shuffled"])  # whose numbers need a permutation
def test_every_right_side_is_an_update(name):
    """The updates of each difficulty of lowering are those of the plain arrays; 1e-12 is rounding of sums of seven."""
    x = numbers(SYSTEMS[name])
    start: dict[str, Any] = {state: value if np.ndim(value) else float(value) for state, value in x.states.items()}
    asked: dict[str, Any] = {"params": x.params, "initial": start, "sizes": x.sizes, "steps": 3}
    system = replace(SYSTEMS[name], discrete=True, span=(0.0, 3.0))
    found, plain = (odesim.integrate(system, backend=backend, **asked) for backend in ("numba", "numpy"))
    for state, value in plain.final.items():
        np.testing.assert_allclose(found.final[state], value, rtol=1e-12, atol=1e-12)


@pytest.mark.first(1)
@pytest.mark.parametrize("case", [case for case in CASES.values() if case.by], ids=lambda case: case.by)
def test_sensitivities(case):
    """The derivative by a parameter is that of two runs: differences of 1e-6 are good to about 1e-8."""
    exact = odesim.integrate(case.system, save=5, sensitivities=case.by)
    value = float(exact.attrs["params"][case.by])
    ends = [odesim.integrate(case.system, save=5, params={case.by: value + h}) for h in (1e-6, -1e-6)]
    for name, rows in ends[0].y.items():
        np.testing.assert_allclose(exact.sensitivities[case.by][name], (rows - ends[1].y[name]) / 2e-6, rtol=1e-6, atol=1e-7)


def test_a_run_goes_on():
    """A run from where another ended, at its own number of updates, has the bits of the whole one."""
    whole, first = (odesim.integrate(CASES["schedule"].system, steps=steps, save=[steps]) for steps in (30, 10))
    rest = odesim.integrate(CASES["schedule"].system, span=(10, 30), initial=first.final)
    assert rest.final["x"].tobytes() == whole.final["x"].tobytes()
    assert whole.at(10)["x"].tobytes() == first.final["x"].tobytes()


@pytest.mark.parametrize(
    ("save", "times"),
    [
        (None, [0, 8]),
        (3, [0, 4, 8]),
        (5, [0, 2, 4, 6, 8]),
        (4, [0, 3, 5, 8]),
        (200, range(9)),
        ("log:5", [0, 1, 2, 4, 8]),
        ([2, 3], [2, 3]),
    ],
)
def test_saved_times_are_whole(save, times):
    """A grid of times is rounded to whole numbers, each once."""
    found = odesim.integrate(grow(), save=save)
    np.testing.assert_array_equal(found.t, list(times))
    np.testing.assert_array_equal(found.y["q"], 2.0**found.t)


def test_more_updates_than_a_run_has_steps_by_default():
    """A Map takes all updates of its span; a number that is less than these is refused where it was given."""
    found = odesim.integrate(grow(updates={q: q + 1}), steps=1_000_003, save=[1_000_001, 1_000_003])
    assert (found.status, found.stats["steps"]) == ("ok", 1_000_003) and found.y["q"].tolist() == [1_000_002, 1_000_004]
    with pytest.raises(SolveError, match="max_steps = 7 is less than the 8 updates"):
        odesim.integrate(grow(), max_steps=7)


def test_a_logarithmic_grid_of_whole_numbers():
    """The start, then numbers of updates in one ratio from 1, or a ten-thousandth of all where that is more, to the end, each rounded."""
    still, rng = grow(initial={q: 0.0}), np.random.default_rng(0)
    for steps, count in zip((*rng.integers(2, 300, 8), 24_000), (*rng.integers(3, 30, 8), 9), strict=True):
        first, begun = max(1.0, steps / 10_000), int(rng.integers(0, 50))
        later = {round(first * (steps / first) ** (i / (count - 2))) for i in range(count - 1)}
        found = odesim.integrate(still, span=(begun, begun + int(steps)), save=f"log:{count}", backend="numpy")
        assert found.t.tolist() == [begun, *(begun + n for n in sorted(later))]


@pytest.mark.parametrize(
    ("expr", "direction", "times"),
    [(q - 3, 0, [2.0]), (q - 4, 1, [2.0]), (q - 4, -1, []), (q - 0.5, 0, []), ((q - 3) * (q - 40), 0, [2.0, 6.0])],
)
def test_events(expr, direction, times):
    """An event lies at the first update after which its function has changed its sign or is 0, and a terminal one ends the run there."""
    found = odesim.integrate(grow(events=(Event("there", expr, direction),)), backend="numpy")
    assert [e["t"] for e in found.events["there"]] == times
    ended = odesim.integrate(grow(events=(Event("there", expr, direction, terminal=True),)), backend="numpy")
    assert (ended.status, ended.t_end) == (("event", times[0]) if times else ("ok", 8.0))
    assert ended.final["q"] == 2.0**ended.t_end


def test_an_update_that_is_not_finite():
    """The run ends at the last state that is finite, whatever the update after it would give."""
    found = odesim.integrate(grow(), steps=2000, save=5)
    assert (found.status, found.t_end, float(found.final["q"])) == ("non_finite", 1023.0, 2.0**1023)
    assert "the update of q is inf (q = 8.98847e+307) at t = 1023" in found.message
    assert odesim.integrate(grow(), steps=1023).status == "ok"


def test_a_state_that_leaves_its_set():
    """A state that its symbol assumes positive ends the run at the first update that takes it out."""
    p = Symbol("p", positive=True)
    found = odesim.integrate(grow(updates={p: p - 0.375}, initial={p: 1.0}))
    assert (found.status, found.t_end, float(found.final["p"])) == ("left_domain", 3.0, -0.125)


def test_laws_are_watched():
    """The worst violation over all updates, saved or not."""
    assert odesim.integrate(TENT).invariants == {"inside": 0.0}
    assert odesim.integrate(TENT, initial={"x": -0.125}, steps=3).invariants == {"inside": 1.0}


def test_formulas():
    """Text, LaTeX and HTML write the next state."""
    assert equations_text(grow()) == "q(t + 1) = a*q"
    assert r"q(t + 1) = a \, q" in latex_document(grow())
    assert r"q(t + 1) = a \, q" in html_page(grow())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"span": (0, 2.5)}, "span 0:2.5: t counts the updates of the Map test.momentum"),
        ({"span": (-1, 3)}, "whole numbers from 0"),
        ({"steps": 5, "span": (0, 5)}, "steps=5 is the span 0:5: give one of them"),
        ({"steps": 0}, "steps must be at least 1, not 0"),
        ({"steps": 2.5}, "steps must be a whole number"),
        ({"steps": 5, "max_steps": 2}, "max_steps = 2 is less than the 5 updates"),
        ({"save": [0, 0.5]}, "save: 0.5 is no time of a Map"),
        ({"rtol": 1e-3}, "rtol is for differential equations, and test.momentum is a Map: its options are steps, save"),
        ({"stop_at": 3}, "stop_at is for differential equations"),
        ({"clock": "rescaled"}, "clock is for differential equations"),
        ({"method": "rk4"}, "rk4 is a method for differential equations"),
        ({"step": 0.5}, "an update of the Map test.momentum is a step of 1, not of 0.5"),
    ],
)
def test_what_needs_a_derivative_is_refused(options, said):
    """Options of differential equations, and times between two updates, are refused in one sentence."""
    with pytest.raises(OdesimError) as told:
        odesim.integrate(MOMENTUM, **options)
    assert said in str(told.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"steps": 5}, "steps is the number of updates of a Map, and joma.nonlinear is a System"), ({"method": "map"}, "no method 'map'")],
)
def test_a_system_is_no_map(options, said):
    """What is for Maps is refused for differential equations."""
    with pytest.raises(OdesimError) as told:
        odesim.integrate("joma.nonlinear", **options)
    assert said in str(told.value)


@pytest.mark.parametrize(
    ("parts", "said", "field"),
    [
        ({"steps": 0}, "steps must be a whole number of at least 1, not 0", "steps"),
        ({"updates": {q: a * q + Symbol("b")}}, "in the update of q: no symbol 'b'", "updates"),
        ({"updates": {"q": a}}, "updates has the text 'q' as a key", "updates"),
        ({"events": (Event("drop", q - 2, resets={q: 1}),)}, "in a Map write that into the updates", "events"),
    ],
)
def test_a_map_that_does_not_fit(parts, said, field):
    """Each mistake is one sentence, with the argument that it is in."""
    with pytest.raises(OdesimError) as told:
        grow(**parts)
    assert said in str(told.value)
    assert isinstance(told.value, SpecError) and told.value.part is not None and told.value.part[0] == field
