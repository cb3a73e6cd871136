"""Stiff methods of `integrate` by a lane kernel, in strict mode and by default."""

import re
import signal
from typing import Any

import numpy as np
import pytest
from sympy import Rational, sqrt, symbols

import odesim
from odesim.base.errors import SolveError
from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model
from odesim.run import lane_run as lane_alone
from odesim.symbolic import System
from tests.run.test_events import check_alone, turning
from tests.support.matrix import DENSE, LONG, in_turn, slow_but
from tests.support.models import FLOWS
from tests.support.systems import SOURCE

SPIN = {"w": np.array([0.0, 3.0])}  # the first stands still, so that nothing ends the run
SMALL = [n for n in FLOWS if n not in (*LONG, *DENSE)]
HOWS = (("rodas4", "ends"), ("rodas5p", "grid"))
FAST = {("joma.nonlinear", "rodas5p", "grid")}
ROWS = [
    pytest.param(*row, marks=() if row in FAST else pytest.mark.slow, id=", ".join(row))
    for row in sorted({*FAST, *((name, *how) for name, how in in_turn(SMALL[::6], HOWS))})
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "method", "save"), ROWS)
def test_a_run_is_a_member(name, method, save):
    """The bits, the counts, the end and the events of the strict member; and to rounding, which some 100 steps add up, or which turns a
    step that is just accepted, those of the usual mode."""
    system = load_model(name)
    sizes = {"M": 2} if "M" in system.size_names else None
    given = bind(system, sizes=sizes)
    first = next(p.name for p in system.params if not p.integer)
    run: dict[str, Any] = {"sizes": sizes, "method": method, "rtol": 1e-6, "atol": 1e-9}
    run["save"] = None if save == "ends" else given.t0 + np.linspace(0, 1, 5) ** 2 * (given.t1 - given.t0)
    own = np.asarray(given.params[first], float)[None]
    # the ends alone are a kernel of their own in an ensemble, which keeps only the last
    together = odesim.ensemble(system, params={first: own}, strict=True, max_events=500, **run)
    one, usual = (odesim.integrate(system, params={first: own[0]}, strict=strict, **run) for strict in (True, False))
    assert together.attrs["status_names"][int(together.status[0])] == one.status == usual.status
    assert (together.t_end[0], together.steps[0], together.rejected[0]) == (one.t_end, one.stats["steps"], one.stats["rejected"])
    for state, values in one.y.items():
        kept = values[-1:] if save == "ends" else values
        np.testing.assert_array_equal(together[state].values[0, : len(kept)], kept)
        np.testing.assert_allclose(values, usual.y[state], rtol=1e-6, atol=1e-6 * np.abs(values).max())
        np.testing.assert_array_equal(values[-1], one.y_end[state])
    for event in (e.name for e in system.events):
        word = re.sub(r"\W+", "_", event)
        times = together[f"{word}_t"].values[0]
        np.testing.assert_array_equal(times[~np.isnan(times)], one.events[event].t)  # type: ignore[attr-defined]
    assert one.stats["rhs_calls"] >= usual.stats["rhs_calls"] - 20
    assert one.attrs["kernel"] != usual.attrs["kernel"]


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_but(DENSE, ["galore.parametric_gradient"]))
def test_a_dense_jacobian_has_no_lane(name):
    """A strict run is refused in a sentence; the usual one solves with LAPACK."""
    with pytest.raises(
        SolveError, match=r"rodas5p has no strict mode for (a Jacobian|a right-hand side|events) of [0-9]+ operations: at most 1[35]00"
    ):
        odesim.integrate(name, method="rodas5p", strict=True)
    assert "lanes" not in odesim.integrate(name, method="rodas5p", span=(0.0, 0.01)).attrs["kernel"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rodas5p", pytest.param("rodas4", marks=pytest.mark.slow)])
def test_events_and_ends(method):
    """Events, terminal ones too, saved times and the state at the end: those of the members, some of which end early; dense output."""
    w = np.random.default_rng(0).uniform(0.05, 3.0, (5, 2))
    run: dict[str, Any] = {"method": method, "strict": True, "save": np.linspace(0, 10, 9), "rtol": 1e-6, "atol": 1e-6}
    found = odesim.ensemble(turning(), params={"w": w}, **run)
    assert set(found.status.values) == {0, 1}
    check_alone(found, turning(), "w", w, range(5), **run)
    one = odesim.integrate(turning(), params={"w": w[0]}, **run)
    np.testing.assert_array_equal(one.at(float(one.t[1]))["x"], one.y["x"][1])


@pytest.mark.slow
@pytest.mark.parametrize("start", [0.0, 1.0])
def test_powers_of_half_a_whole_number(start):
    """Right-hand sides whose slopes at 0 are finite though sqrt has none: at rest there, and elsewhere as in the closed form."""
    f, g, h, k, q = symbols("f g h k q", nonnegative=True)
    halves = {f: -2 * f * sqrt(f), g: -(g ** Rational(3, 2)), h: -(h**2) * sqrt(h), k: -3 * q * k * sqrt(k), q: -q}
    system = System(
        name="made.halves", source=SOURCE, axes={}, params=(), equations=halves, initial={**dict.fromkeys((f, g, h, k), 1), q: 1}
    )
    run = odesim.integrate(system, initial=dict.fromkeys("fghk", start), span=(0, 1), method="rodas5p", rtol=1e-9, atol=1e-12)
    known = {"f": 1 / 4, "g": 4 / 9, "h": 2.5 ** (-2 / 3), "k": (1 + 1.5 * (1 - np.exp(-1))) ** -2}
    assert run.status == "ok"
    for state, value in known.items():
        assert run.y[state][-1] == pytest.approx(start * value, rel=1e-8)


def test_more_events_than_room(monkeypatch):
    """A run with more events than there is room for has all of them."""
    run: dict[str, Any] = {"params": SPIN, "method": "rodas5p", "strict": True, "save": 9, "rtol": 1e-6, "atol": 1e-6}
    whole = odesim.integrate(turning(), **run)
    monkeypatch.setattr(lane_alone, "ROOM", 2)
    again = odesim.integrate(turning(), **run)
    assert len(whole.events["zero"]) == 9  # sin(3 t) up to t = 10
    assert again.events == whole.events and np.array_equal(again.y["x"], whole.y["x"])


@pytest.mark.slow
def test_ctrl_c_and_progress():
    """A signal ends a run after the step it is in: that many steps of another run end in the same bits; what was saved is kept."""
    seen: list[float] = []
    pressed: list[float] = []

    def progress(fraction: float) -> None:
        seen.append(fraction)
        if fraction > 2e-5 and not pressed:  # t = 2e4, with more events than ROOM, however long that takes
            pressed.append(fraction)
            signal.raise_signal(signal.SIGINT)

    run: dict[str, Any] = {"params": SPIN, "method": "rodas5p", "strict": True, "rtol": 1e-6, "atol": 1e-6}
    run |= {"span": (0.0, 1e9), "save": [0.0, 2.0, 9.0, 1e9]}
    cut = odesim.integrate(turning(), progress=progress, max_steps=10**12, **run)
    assert cut.status == "interrupted" and cut.message.startswith(f"interrupted at t = {cut.t_end:.9g} with a step of ")
    assert seen == sorted(seen) and 2e-5 < pressed[0] < 1 and cut.t.tolist() == [0.0, 2.0, 9.0, cut.t_end]
    tried = int(cut.stats["steps"] + cut.stats["rejected"])
    few = odesim.integrate(turning(), max_steps=tried, **run)
    assert few.status == "max_steps" and few.t_end == cut.t_end
    for name, values in cut.y.items():
        np.testing.assert_array_equal(values, few.y[name])
    assert len(few.events["zero"]) >= len(cut.events["zero"]) >= lane_alone.ROOM


@pytest.mark.slow
def test_as_many_states_and_events_as_fit():
    """64 states with an event each compile, in loops, and are the usual run to rounding."""
    one, usual = (odesim.integrate("joma.nonlinear", sizes={"M": 64}, method="rodas5p", strict=strict) for strict in (True, False))
    assert one.stats["steps"] == usual.stats["steps"] and len(one.events["half way"]) == len(usual.events["half way"])
    np.testing.assert_allclose(one.y["v"], usual.y["v"], rtol=1e-6)


@pytest.mark.slow
def test_rescaled():
    """In the rescaled clock too a run has the bits of the strict member, and t* = sqrt(pi/2) / max Delta within its error."""
    D = np.array([[0.3, -0.8, 0.5], [0.01, 0.02, 0.03]])
    run: dict[str, Any] = {"clock": "rescaled", "span": (0.0, 5.0), "method": "rodas5p", "strict": True, "save": [0.25, 5.0]}
    made = odesim.ensemble("joma.linear", params={"Delta": D}, **run)
    assert [made.attrs["status_names"][s] for s in made.status.values] == ["blow_up", "ok"]
    for i in range(2):
        one = odesim.integrate("joma.linear", params={"Delta": D[i]}, **run)
        np.testing.assert_array_equal(made.v[i, : 1 + i], one.y["v"][: 1 + i])
        assert (made.steps[i], made.t_end[i]) == (one.stats["steps"], one.t_end) and "_lanes_" in one.attrs["kernel"]
    assert made.blow_up_t[0] == pytest.approx(np.sqrt(np.pi / 2) / 0.8, abs=float(made.blow_up_error[0]))


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "states": (
        "joma.nonlinear",
        {"sizes": {"M": 100}},
        "rodas5p has no strict mode for 100 states: at most 64; tsit5, vern7, dop853, vern9 have one",
    ),
    "float32": ("joma.nonlinear", {"dtype": "float32"}, "no strict mode for float32; tsit5"),
    "step": ("joma.nonlinear", {"step": 0.1}, "no strict mode for a fixed step; tsit5"),
    "numpy": ("joma.nonlinear", {"backend": "numpy"}, "rodas5p has no strict mode on the backend numpy, where dop853, euler, rk4, tsit5"),
    "clock": ("joma.linear", {"sizes": {"M": 64}, "clock": "rescaled"}, "no strict mode for 65 states: at most 64; tsit5"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit(case):
    """One sentence says what has no strict mode and what has, of one run and of an ensemble alike."""
    name, options, sentence = REFUSED[case]
    run: dict[str, Any] = {"method": "rodas5p", "strict": True, **options}
    with pytest.raises(SolveError, match=sentence):
        odesim.integrate(name, **run)
    if case != "numpy":
        param = load_model(name).params[0].name
        with pytest.raises(SolveError, match=sentence):
            odesim.ensemble(name, vary={param: "uniform(0.5,1)"}, members=2, **run)
