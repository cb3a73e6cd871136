"""A state that assumes a set: where a run leaves it, it ends with a status of its own; nothing else ends there."""

from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sympy import IndexedBase, Interval, Max, Symbol, oo, sqrt

import odesim
from odesim.cli import cli
from odesim.symbolic import Event, Param, System, index, sizes
from odesim.transforms.events import Guard, add_guards
from tests.support.models import COMPILED
from tests.support.systems import SOURCE

(m,) = index("m")
(M,) = sizes("M")
w, a = IndexedBase("w", shape=(M,), positive=True), IndexedBase("a", shape=(M,))
u, r, f = Symbol("u", nonpositive=True), Symbol("r", real=True), Symbol("f", nonnegative=True)
# w' = -a w and more; u' = r, r' = 1
LEAVES = System(
    name="made.leaves", source=SOURCE, axes={m: M}, equations={w[m]: -a[m], u: r, r: 1},
    params=(Param(a, lambda n: (1 + np.arange(n["M"])) / 2, Interval(-oo, oo), "rates of descent"),),
    initial={w[m]: 1, u: -1, r: 0}, sizes={M: 3}, span=(0.0, 5.0), events=(Event("half", w[m] - 0.5),),
)  # fmt: skip
ENGINES: list[dict[str, Any]] = [
    {"method": "tsit5"},
    {"method": "vern7", "backend": "numpy"},
    {"method": "dop853", "strict": True},
    {"method": "tsit5", "dtype": "float32"},
    {"method": "rodas4"},
    {"method": "rodas5p", "strict": True},
    {"method": "rodas5p", "backend": "numpy"},
    {"method": "rk4", "step": 0.05},
    {"method": "euler", "step": 0.05},
    {"method": "rodas4", "step": 0.05},
    {"method": "auto"},
]


def table(*methods: str) -> list[Any]:
    """ENGINES of these methods, slow ones but for a few: each kernel takes a second or more to compile."""
    few = [options for options in ENGINES if len(options) == 1 + ("step" in options or options.get("backend") == "numpy")]
    return [pytest.param(o, marks=[] if o in few and o["method"] in methods else pytest.mark.slow) for o in ENGINES]


LANES = [p for p in table("tsit5") if p.values[0].get("backend") != "numpy"]


def near(options: dict[str, Any]) -> float:
    """How exact a straight line is: to the slack of 1e-9, in float32 to its roundings."""
    return 1e-6 if options.get("dtype") == "float32" else 1e-8


@pytest.mark.parametrize("options", table("tsit5", "vern7", "rodas5p", "rk4"), ids=str)
def test_a_run_ends_where_a_state_leaves_its_set(options: dict[str, Any]) -> None:
    """w[2] = 1 - 3t/2 is 0 at t = 2/3; the status, the component and its set; the guard is no event of the model."""
    run = odesim.integrate(LEAVES, **options)
    assert (run.status, run.ok) == ("left_domain", False) and run.t_end == pytest.approx(2 / 3, abs=near(options))
    assert run.message.startswith("w[2] = -") and "left (0, inf), which its symbol assumes, at t = 0.6666" in run.message
    assert "without the assumption, and Max(w, 0) where" in run.message
    assert list(run.events) == ["half"] and len(run.events["half"]) == 2 and list(run.attrs["params"]) == ["a"]


@pytest.mark.slow
@pytest.mark.parametrize("options", LANES, ids=str)
def test_a_member_ends_where_a_run_does(options: dict[str, Any]) -> None:
    """Rates of members' own: w leaves, u leaves at t = sqrt(2), none does before the end of the span; what the status means is said."""
    rates = np.array([[0.1, 0.2, 3.0], [0.1, 0.2, 0.3], [-0.1, 0.15, 0.3]])
    made = odesim.ensemble(LEAVES, params={"a": rates}, initial={"r": np.array([0.0, 0.0, -9.0])}, span=(0.0, 2.5), **options)
    names = [made.attrs["status_names"][int(s)] for s in made.status]
    assert names == ["left_domain", "left_domain", "ok"]
    euler = 0.025 if options["method"] == "euler" else 0.0  # u = -1 + t (t - h)/2
    assert made.t_end.values == pytest.approx([1 / 3, np.sqrt(2 + euler**2) + euler, 2.5], abs=10 * near(options) + euler**2)
    said = dict(zip(made.attrs["status_names"], made.attrs["status_meanings"], strict=True))
    assert "left the set that its symbol assumes" in said["left_domain"]
    assert not [name for name in made.variables if "leaves" in str(name) or "slack" in str(name)]
    assert made.half_count.values.tolist() == [1, 0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
def test_a_strict_member_has_the_bits_of_a_run(method: str) -> None:
    """Lanes of both kinds, at t_end and there."""
    made = odesim.ensemble(LEAVES, params={"a": np.ones((2, 3))}, method=method, strict=True)
    run = odesim.integrate(LEAVES, params={"a": np.ones(3)}, method=method, strict=True)
    assert (float(made.t_end[0]), int(made.steps[0])) == (run.t_end, run.stats["steps"])
    np.testing.assert_array_equal(made.w_end.values[0], run.y_end["w"])


def decay(name: str, **parts: Any) -> System:
    """A System that stays in its set for ever."""
    return System(name=f"made.{name}", source=SOURCE, **parts)


x, y, z = (Symbol(n, nonnegative=True) for n in "xyz")
STAYS: dict[str, tuple[System, int]] = {
    "decay": (decay("decay", axes={m: M}, equations={w[m]: -((m + 1) ** 2) * w[m]}, params=(), initial={w[m]: 1}, sizes={M: 5}), 50),
    "chain": (decay("chain", axes={}, equations={x: -20 * x, y: 20 * x - 3 * y, z: 3 * y - z}, params=(), initial={x: 1, y: 0, z: 0}), 50),
    "robertson": (
        decay(
            "robertson", axes={}, params=(), initial={x: 1, y: 0, z: 0},
            equations={x: -0.04 * x + 1e4 * y * z, y: 0.04 * x - 1e4 * y * z - 3e7 * y**2, z: 3e7 * y**2},
        ), 10,
    ),
    "touching": (decay("touching", axes={}, equations={f: -2 * sqrt(f) * f}, params=(), initial={f: 0}), 1),
}  # fmt: skip


@pytest.mark.first(1)
@pytest.mark.parametrize("method", ["tsit5", "vern7", "dop853", "rodas4", "rodas5p"])
@pytest.mark.parametrize("name", STAYS)
def test_a_solution_that_stays_ends_no_run(name: str, method: str) -> None:
    """Decays of which steps and interpolants are off by many tolerances long after the start, a start on the end of the set.

    Where stability holds the steps of dop853 its interpolant is off by 70 tolerances at 1e-3, twice what y of Robertson's is.
    """
    system, end = STAYS[name]
    for rtol, atol in ((1e-3, 1e-6), (1e-6, 1e-9))[method == "dop853" :]:
        run = odesim.integrate(system, span=(0, end), method=method, rtol=rtol, atol=atol)
        assert run.status == "ok", (rtol, run.message)


@pytest.mark.slow
def test_the_model_s_own_event_comes_first() -> None:
    """A terminal event at 0 ends the run as an event, before the guard's slack is passed; in an ensemble too."""
    parts: dict[str, Any] = {"equations": {f: -1}, "params": (), "initial": {f: 1}, "events": (Event("empty", f, terminal=True),)}
    system = decay("empty", axes={}, **parts)
    made = odesim.ensemble(system, initial={"f": np.array([1.0, 2.0])}, span=(0, 3), method="tsit5")
    assert [made.attrs["status_names"][int(s)] for s in made.status] == ["event", "event"] and made.t_end.values == pytest.approx([1, 2])
    assert odesim.integrate(system, span=(0, 3)).status == "event"


def test_the_rescaled_clock_is_guarded() -> None:
    """u' = -1 in ds = 2 dt: the state leaves at t = 1, in whichever clock."""
    system = decay("slow", axes={}, equations={f: -1}, params=(), initial={f: 1}, growth=Symbol("r", real=True) * 0 + 2)
    run = odesim.integrate(system, clock="rescaled", span=(0, 3))
    assert run.status == "left_domain" and run.t_end == pytest.approx(1, abs=1e-8)


def test_a_system_without_assumptions_has_no_guard() -> None:
    """Nor do models that come with odesim: what they take is as it was."""
    for model in COMPILED:
        system = odesim.inputs.registry.load_model(model)
        assert add_guards(system) is system
    assert [type(e) for e in add_guards(LEAVES).events] == [Event, Guard, Guard]


def test_the_command_line_ends_with_code_3(tmp_path: Any) -> None:
    """The status in the table and the sentence on stderr."""
    path = tmp_path / "falls.py"
    path.write_text(
        "from sympy import Symbol\nfrom odesim.symbolic import Source, System\nx = Symbol('x', positive=True)\n"
        "SYSTEM = System(name='my.falls', source=Source('none', 'x'), axes={}, equations={x: -1}, params=(), initial={x: 1})\n"
    )
    done = CliRunner().invoke(cli, ["integrate", str(path), "--span", "0:3"])
    assert done.exit_code == 3 and "left (0, inf), which its symbol assumes" in done.stderr and "left_domain at t = 1" in done.stdout


@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
def test_the_remedy_for_a_decay_that_ends_near_zero(method: str) -> None:
    """dq/dt = -q/(K + q), K = 1e-12: a nonnegative q ends, and names Max(q, 0), with which q is 0 from t = 1 on, to rtol."""
    ends = {}
    for nonnegative in (True, None):
        q, K = Symbol("q", nonnegative=nonnegative, real=True), Symbol("K", positive=True)
        rest = Max(q, 0)
        system = System(name="test.uptake", equations={q: -rest / (K + rest)}, initial={q: 1.0}, params=(Param(K, 1e-12),), span=(0.0, 2.0))
        ends[nonnegative] = odesim.integrate(system, method=method)
    assert ends[True].status == "left_domain" and "Max(q, 0)" in ends[True].message
    assert ends[None].status == "ok" and abs(ends[None].y["q"][-1]) < 1e-6
