"""`auto` on problems written by hand: what it chooses, why, and that the choice is a run of the method that it names."""

import math
import re
import signal
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Interval, Piecewise, cos, exp, oo, pi, sqrt, symbols

import odesim
from odesim.ir import sizes as counts
from odesim.run.auto import PILOT, SURE, Rival, explicit_name
from odesim.run.integrate import integrate_problem
from odesim.stepper.codes import Status
from odesim.stepper.drive import ExplicitRun
from odesim.stepper.methods import METHODS
from odesim.stepper.problem import Costs, Problem
from odesim.stepper.rosenbrock_run import RosenbrockRun
from odesim.stepper.stabilised_methods import STABILISED
from odesim.stepper.stability import held, spectral_radius
from odesim.stepper.tableau import stable_up_to
from odesim.stepper.wide_run import StabilisedRun
from odesim.symbolic import Event, IndexedBase, Param, Source, System, index, sizes, time
from tests.support.problems import problem
from tests.support.stiff_problems import logistic, robertson, stiff, van_der_pol
from tests.support.stiff_set import SET

COSTS = Costs(lambda: 500.0, lambda: 0.0, lambda stages: 2e4)  # of a compiled right-hand side, and of a stiff step in lanes


def oscillator(t1: float) -> Problem:
    """y1' = y2, y2' = -y1: as many steps as one likes, none of them held by stability."""
    return stiff(lambda t, y: (y[1], -y[0]), lambda t, y: [[0, 1], [-1, 0]], [0.0, 1.0], t1)


def spiral(t1: float) -> Problem:
    """A fast spiral into 0: eigenvalues -100 +- 1000 i."""
    J = [[-100.0, 1000.0], [-1000.0, -100.0]]
    return stiff(lambda t, y: tuple(J @ np.asarray(y)), lambda t, y: J, [0.0, 1.0], t1)


def dear(p: Problem) -> Problem:
    """With a Jacobian that costs much to eliminate."""
    return replace(p, costs=replace(COSTS, stiff=lambda stages: 1e7))


# problem, options, method, a word of the reason
CASES: dict[str, tuple[Problem, dict[str, Any], str, str]] = {
    "short": (oscillator(3.0), {}, "tsit5", "done in"),
    "long": (oscillator(600.0), {}, "tsit5", "done in"),
    "with time in it": (logistic()[0], {}, "tsit5", "done in"),
    "tight": (oscillator(3.0), {"rtol": 1e-10, "atol": 1e-12}, "dop853", "done in"),
    "van der Pol": (van_der_pol(1e3, 2000.0), {}, "rodas5p", "stability, not accuracy"),
    "van der Pol, tight": (van_der_pol(1e3, 2000.0), {"rtol": 1e-8, "atol": 1e-10}, "rodas5p", "and would need about"),
    "Robertson": (robertson(1e5), {}, "rodas5p", "stability, not accuracy"),
    "cheap stages": (dear(robertson(3.0)), {"rtol": 1e-3}, "rkc", "stability, not accuracy"),
    "cheap stages, strict": (dear(robertson(3.0)), {"rtol": 1e-3, "strict": True}, "rkc", "stability, not accuracy"),
    "few stages would be many steps": (dear(robertson(3.0)), {"rtol": 1e-7}, "tsit5", "done in"),
    "no real eigenvalue": (dear(spiral(3.0)), {"rtol": 1e-3}, "tsit5", "done in"),
    "strict": (robertson(3.0), {"strict": True}, "tsit5", "strict mode only for a right-hand side that numba compiles"),
    "no costs": (replace(robertson(3.0), linear=None), {}, "tsit5", "no Jacobian"),
    "fixed step": (oscillator(3.0), {"step": 0.1}, "tsit5", "a fixed step"),
}


@pytest.mark.parametrize("name", CASES)
def test_choice(name: str) -> None:
    """The method and its reason; the run is, bit for bit, that of the method by its name, and the same when asked again."""
    p, options, method, why = CASES[name]
    p = replace(p, costs=(p.costs or COSTS) if p.linear else None)
    run = integrate_problem(p, method="auto", **options)
    assert run.method == method and run.auto.startswith(f"{method}: ") and why in run.auto
    assert run.status is Status.OK
    named = integrate_problem(p, method=method, **options)
    assert np.array_equal(run.y, named.y) and run.stats["rhs_calls"] == named.stats["rhs_calls"]
    assert integrate_problem(p, method="auto", **options).auto == run.auto and named.auto == ""


def test_a_run_within_the_pilot_is_the_run() -> None:
    """No right-hand side is computed beside those of the explicit method; afterwards, a handful an inspection where nothing is held."""
    calls = [0]

    def counted(t: float, y: Any) -> Any:
        calls[0] += 1
        return y[1], -y[0]

    for t1, most in ((3.0, 0.0), (600.0, 0.02)):
        p = replace(stiff(counted, lambda t, y: [[0, 1], [-1, 0]], [0.0, 1.0], t1), costs=COSTS)
        calls[0] = 0
        run = integrate_problem(p, method="auto")
        assert (run.stats["steps"] < PILOT) is (t1 == 3.0)
        assert calls[0] <= run.stats["rhs_calls"] * (1 + most)


def test_a_trial_costs_as_much_at_most() -> None:
    """Where stability holds the steps and the stiff method is slower, it gets no more than what the explicit one costs."""
    tried, stiff_cost = [0], 2e4

    def J(t: float, y: Any) -> Any:
        tried[0] += 1
        return [[-200.0, 0], [0, 0]]

    p = stiff(lambda t, y: (-200 * (y[0] - np.sin(40 * t)), 0 * y[1]), J, [0.0, 1.0], 60.0, slope=lambda t, y: (8000 * np.cos(40 * t), 0.0))
    run = integrate_problem(replace(p, costs=Costs(lambda: 500.0, lambda: 0.0, lambda s: stiff_cost)), method="auto", rtol=1e-3, atol=1e-3)
    assert run.method == "tsit5" and "but rodas5p came to t = " in run.auto
    explicit = (run.stats["steps"] + run.stats["rejected"]) * (METHODS["tsit5"].last * 500 + 600)
    assert 20 * stiff_cost <= tried[0] * stiff_cost <= explicit
    spent, reached = re.search(r"in (\d+) steps, which cost what the first (\d+) did", run.auto), re.findall(r"t = ([\d.]+)", run.auto)
    assert spent is not None and int(spent[1]) * stiff_cost <= int(spent[2]) * (METHODS["tsit5"].last * 500 + 600)
    assert float(reached[0]) < float(reached[1])  # the stiff method's time, and the explicit one's


@pytest.mark.parametrize(("N", "rtol", "method"), [(50, 1e-4, "rkc"), (60, 1e-4, "rkc"), (50, 1e-6, "rodas5p")])
def test_heat_on_a_plane(N: int, rtol: float, method: str) -> None:
    """tsit5 would take 5,700 and 8,208 steps, two to eight times the time: it is seen, and what a step on a ring costs is counted."""
    (i, j), (n,) = index("i j"), sizes("n")
    u = IndexedBase("u", shape=(n, n))
    spread = n**2 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])
    heat = System(
        name="heat",
        axes={i: n, j: n},
        equations={u[i, j]: spread},
        initial={u[i, j]: exp(-((i - n / 2) ** 2 + (j - n / 2) ** 2) / n)},
        boundary={i: "periodic", j: "periodic"},
    )
    run = odesim.integrate(heat, sizes={"n": N}, span=(0, 1), rtol=rtol)
    assert run.ok and run.method == method


def test_a_stiff_run_that_has_no_turn_is_not_made() -> None:
    """Where one step costs as much as all explicit ones, no stiff run is made, which takes seconds to compile: its cost is the reason."""
    p = replace(robertson(0.4), costs=Costs(lambda: 500.0, lambda: 0.0, lambda stages: 1e9), slopes=pytest.fail)
    run = integrate_problem(p, method="auto")
    assert run.method == "tsit5" and run.status is Status.OK and run.stats["steps"] > PILOT
    assert re.search(r"stability limits them, but a step of rodas5p costs what \d{5,6} do$", run.auto)


@pytest.mark.parametrize(("t1", "tried"), [(0.75, False), (6.0, True)])
def test_a_short_rest_is_not_worth_a_trial(t1: float, tried: bool) -> None:
    """y' = -700 (y - sin t), whose steps stability holds: where fewer steps are left than half of those so far no Jacobian is computed."""
    seen = [0]

    def J(t: float, y: Any) -> Any:
        seen[0] += 1
        return [[-700.0]]

    p = stiff(lambda t, y: -700 * (y - np.sin(t)), J, 0.0, t1, slope=lambda t, y: [700 * np.cos(t)])
    run = integrate_problem(replace(p, costs=Costs(lambda: 500.0, lambda: 0.0, lambda s: 600.0)), method="auto", rtol=1e-4, atol=1e-4)
    plain = integrate_problem(p, method="tsit5", rtol=1e-4, atol=1e-4)
    assert bool(seen[0]) is tried and run.method == ("rodas5p" if tried else "tsit5")
    assert tried or PILOT < plain.stats["steps"] + plain.stats["rejected"] < 1.5 * PILOT


y, z, rate = symbols("y z rate")
LATE = {
    "never": Piecewise((2, time < 1), (1, True)),
    "first": Piecewise((rate, time < 1), (1, True)),
    "middle": Piecewise((1, time < 1), (rate, time < 2), (1, True)),
    "last": Piecewise((1, time < 1), (rate, True)),
    "to an event": Piecewise((1, time < 1), (rate, True)),
}


def late(case: str, slope: Any = 0) -> System:
    """y' = -k (y - cos t) with a rate k that is large in one segment, and z' = 1 + slope."""
    return System(
        name="late",
        source=Source("own", "test"),
        axes={},
        equations={y: -LATE[case] * (y - cos(time)), z: 1 + slope},
        params=(Param(rate, 1e4, Interval(0, oo), "rate"),),
        initial={y: 0.0, z: 0.0},
        span=(0.0, 3.0),
        events=(Event("there", z - 2.5, 1, True),) if case == "to an event" else (),
    )


@pytest.mark.parametrize("case", LATE)
def test_one_method_whichever_segment_is_stiff(case: str) -> None:
    """The run is that of the method that it names: its bits, its counts, its states between the steps. The reason says since when."""
    run = odesim.integrate(late(case), backend="numpy", save=7)
    named = odesim.integrate(late(case), backend="numpy", save=7, method=run.method)
    assert run.method == ("tsit5" if case == "never" else "rodas5p") and named.ok and run.status == named.status
    for other in (named, odesim.integrate(late(case), backend="numpy", save=7)):
        assert all(np.array_equal(run.y[name], other.y[name]) for name in "yz") and run.t_end == other.t_end
        assert all(run.stats[n] == other.stats[n] for n in ("steps", "rejected", "rhs_calls"))
    assert run.at(2.75 if case != "to an event" else 2.25)["y"] == named.at(2.75 if case != "to an event" else 2.25)["y"]
    assert run.attrs["auto"].startswith(f"{run.method}: done in {run.stats['steps']:.0f} steps")
    assert ("from t = 1 on tsit5 came to" in run.attrs["auto"]) is (case not in ("never", "first"))


def test_a_pilot_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The explicit run of a segment that its pilot does not end goes on: it is not begun again, and one memory does for all segments."""
    begun, begin = [0], ExplicitRun.__init__

    def counted(run: ExplicitRun, *of: Any, **options: Any) -> None:
        begun[0] += 1
        begin(run, *of, **options)

    monkeypatch.setattr(ExplicitRun, "__init__", counted)
    run = odesim.integrate(late("never"), span=(0.0, 200.0))
    assert run.ok and run.method == "tsit5" and run.stats["steps"] > 2 * PILOT and begun == [1]


def test_a_late_stiff_part_is_not_done_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a late part shows that a stiff method is cheaper, its trial ends there: some fifth of its run, which then does all."""
    runs, begin = list[RosenbrockRun](), RosenbrockRun.__init__

    def kept(run: RosenbrockRun, *of: Any, **options: Any) -> None:
        runs.append(run)
        begin(run, *of, **options)

    monkeypatch.setattr(RosenbrockRun, "__init__", kept)
    run = odesim.integrate(late("last"), span=(0.0, 30.0))
    trial, *whole = [run.tried for run in runs]
    assert run.ok and run.method == "rodas5p" and sum(whole) == run.stats["steps"] + run.stats["rejected"] and 4 * trial < sum(whole)


def test_many_cheap_stages_on_a_plane() -> None:
    """Diffusion that sets in late: the Jacobian of 1,600 cells is dear, so the run is that of rkc, with its bits, from the start."""
    (i, j), (N,) = index("i j"), sizes("N")
    u = IndexedBase("u", shape=(N, N))
    near = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]
    system = System(
        name="late_diffusion",
        axes={i: N, j: N},
        equations={u[i, j]: Piecewise((0, time < 1), (N**2, True)) * near / 4 - u[i, j]},
        initial={u[i, j]: 1 + cos(2 * pi * i / N)},
        boundary={i: "periodic", j: "periodic"},
        span=(0.0, 3.0),
    )
    run = odesim.integrate(system, sizes={"N": 40}, rtol=1e-3, save=4)
    named = odesim.integrate(system, sizes={"N": 40}, rtol=1e-3, save=4, method="rkc")
    assert run.method == "rkc" and np.array_equal(run.y["u"], named.y["u"]) and "from t = 1 on tsit5 came to" in run.attrs["auto"]
    assert run.y["u"][-1] == pytest.approx(np.exp(-3) * np.ones((40, 40)), rel=2e-3)  # the mode has decayed by exp(-2 * 9.8)


@pytest.mark.parametrize(("N", "rtol"), [(24, 1e-4), (40, 1e-4), (40, 1e-5)])
def test_stages_whose_steps_grow(N: int, rtol: float) -> None:
    """A bump spreads: rkc, whose steps are short at first, is taken at the first look: half of tsit5's right-hand sides do."""
    (i, j), (n,) = index("i j"), sizes("n")
    u = IndexedBase("u", shape=(n, n))
    system = System(
        name="bump",
        axes={i: n, j: n},
        equations={u[i, j]: n**2 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])},
        initial={u[i, j]: exp(-60 * ((i / n - 0.5) ** 2 + (j / n - 0.5) ** 2))},
        boundary={i: "periodic", j: "periodic"},
    )
    run, explicit = (odesim.integrate(system, sizes={"n": N}, span=(0, 1), rtol=rtol, method=m) for m in ("auto", "tsit5"))
    assert run.method == "rkc" and f"with {PILOT * METHODS['tsit5'].last + 2} right-hand sides" in run.attrs["auto"]
    assert 2 * run.stats["rhs_calls"] < explicit.stats["rhs_calls"]
    mean = np.exp(-60 * (np.arange(N) / N - 0.5) ** 2).mean() ** 2  # all else decays by exp(-4 pi^2) in this time
    assert run.y["u"][-1] == pytest.approx(mean * np.ones((N, N)), abs=10 * rtol)


def test_the_rest_of_steps_that_grow_with_time() -> None:
    """y' = -y / (1 + t) to t = 1e6: steps in proportion to 1 + t. A fiftieth of them tells how many the others are, to a fifth."""
    p = problem(lambda t, y: -y / (1 + t), np.ones(1), 1e6)
    rival, options = Rival(p, METHODS["tsit5"], None, False, p.t1, {}), dict[str, Any](rtol=1e-6, atol=0.0)
    whole, rival._run = (StabilisedRun(p, STABILISED["rkc"], None, **options) for _ in range(2))
    rival._name, rival._length = "rkc", math.inf
    assert whole.advance() and whole.raw().y[-1] == pytest.approx(1e-6, rel=1e-5)
    for tried in (400, 800, 1600):
        assert not rival._run.advance(tried)
        assert rival._rest_of_rival() == pytest.approx(whole.tried - tried, rel=0.2)
        assert 50 * (whole.tried - tried) < (p.t1 - rival._run.t) / rival._run.coming  # what steps of one length would be


def test_steps_do_not_grow_for_ever() -> None:
    """y' = -y / (1 + t), with steps of at most 100: while they still grow, the rest is counted at that length, to a twentieth."""
    p = problem(lambda t, y: -y / (1 + t), np.ones(1), 1e6)
    rival, options = Rival(p, METHODS["tsit5"], None, False, p.t1, {}), dict[str, Any](rtol=1e-3, atol=0.0, max_step=100.0)
    whole, rival._run = (StabilisedRun(p, STABILISED["rkc"], None, **options) for _ in range(2))
    rival._name, rival._length = "rkc", 100.0 / SURE
    assert whole.advance()
    for tried in (100, 200, 300):
        assert not rival._run.advance(tried) and rival._run.coming < 10
        assert rival._rest_of_rival() == pytest.approx(whole.tried - tried, rel=0.05)


def test_a_stiff_method_that_cannot_do_the_segments_before() -> None:
    """sqrt(z) has no derivative at the start, where a later segment is stiff: the explicit method does all, and the reason says why."""
    system = late("last", sqrt(z))
    run, named = (odesim.integrate(system, backend="numpy", method=m) for m in ("auto", "tsit5"))
    assert not odesim.integrate(system, backend="numpy", method="rodas5p").ok
    assert run.ok and run.method == "tsit5" and "from t = 1 on, but rodas5p ends early" in run.attrs["auto"]
    assert np.array_equal(run.y["y"], named.y["y"]) and run.stats["steps"] == named.stats["steps"]


@pytest.mark.parametrize("turn", ["challenge", "_make"])
def test_interrupt_between_turns(turn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between the turns of two runs, or while the stiff one is made: what the explicit one did is kept, and no turn follows."""
    whole = getattr(Rival, turn)

    def stopped(rival: Rival, *run: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return whole(rival, *run)

    monkeypatch.setattr(Rival, turn, stopped)
    run = odesim.integrate(SET["robertson"].system, backend="numpy")
    assert (run.status, run.method) == ("interrupted", "tsit5") and 0 < run.t_end < 1
    assert run.stats["steps"] + run.stats["rejected"] == PILOT


def test_interrupt_in_a_stiff_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while rodas5p tries a later segment: what the explicit method did before it is kept, under its name."""
    advance = RosenbrockRun.advance

    def stopped(run: RosenbrockRun, most: float = np.inf) -> bool:
        run.stop()
        return advance(run, most)

    monkeypatch.setattr(RosenbrockRun, "advance", stopped)
    run = odesim.integrate(late("last"), backend="numpy")
    assert (run.status, run.method, run.t_end) == ("interrupted", "tsit5", 1.0) and "interrupted at t = 1;" in run.message
    monkeypatch.undo()
    assert run.y_end["y"] == odesim.integrate(late("last"), backend="numpy", method="tsit5", span=(0.0, 1.0)).y_end["y"]


@pytest.mark.parametrize(
    ("rtol", "step", "end", "between"),
    [(1e-6, None, "tsit5", "tsit5"), (1e-8, None, "dop853", "tsit5"), (1e-10, None, "dop853", "vern7"), (1e-12, 0.1, "tsit5", "tsit5")],
)
def test_explicit_by_tolerance(rtol: float, step: float | None, end: str, between: str) -> None:
    """A method of higher order where it needs fewer right-hand sides for the same error: at the end, or between the steps as well."""
    assert (explicit_name(rtol, step, between=False), explicit_name(rtol, step, between=True)) == (end, between)


def test_spectral_radius() -> None:
    """Of a matrix with known eigenvalues, to the few per cent of twelve power iterations; five where one is far from the rest."""
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    for second, most in ((-40.0, 5), (-1500.0, 12)):
        A = Q @ np.diag([-3000.0, second, -7.0, -1.0, 2.0, 0.5]) @ Q.T
        calls: list[float] = []

        def rhs(t: float, y: Any, out: Any, A: Any = A, calls: list[float] = calls) -> None:
            calls.append(t)
            out[:] = A @ y

        radius, real = spectral_radius(rhs, 0.0, np.linspace(1, 2, 6), 1e-3)
        assert radius == pytest.approx(3000, rel=0.05) and real and len(calls) <= 1 + most


def test_costs_are_counted_once_a_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a stiff step costs follows from the symbols and the sizes: a second run with other parameters does not count again."""
    system, counted = replace(late("never"), name="counted_once", equations={y: -rate * (y - cos(time)), z: -z}), []

    def cost(*of: Any) -> float:
        counted.append(of)
        return 500.0

    monkeypatch.setattr(counts, "eliminated_step_cost", cost)
    for k in (1e4, 2e4):
        assert odesim.integrate(system, params={"rate": k}).method == "rodas5p"
    assert len(counted) == 1


@pytest.mark.parametrize("rtol", [1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("name", ["hires", "orego"])
def test_few_states_are_eliminated(name: str, rtol: float) -> None:
    """At loose tolerances too: rkc computes 4 to 50 times as many right-hand sides here, and needs over 20,000 steps for the Oregonator."""
    known: dict[str, Any] = {"rtol": rtol, "atol": 1e-4 * rtol, "max_steps": 100_000}
    run, staged = (odesim.integrate(SET[name].system, method=method, **known) for method in ("auto", "rkc"))
    assert run.ok and run.method == "rodas5p" and 3 * run.stats["rhs_calls"] < staged.stats["rhs_calls"]


def test_a_long_rest_is_decided_in_the_first_trial() -> None:
    """HIRES: tsit5 would need 15,000 steps; beside these another turn of rodas5p, which is still behind, is cheap. It ends the run."""
    run = odesim.integrate(SET["hires"].system, rtol=1e-6, atol=1e-10)
    pilot = PILOT * METHODS["tsit5"].last + 2
    assert run.method == "rodas5p" and f"with {pilot} right-hand sides and would need" in run.attrs["auto"]


@pytest.mark.parametrize("method", ["tsit5", "vern7", "dop853"])
@pytest.mark.parametrize("shape", [(60,), (24, 24), (50, 50), (55, 55), (60, 60), (60, 30), (13, 13, 13)])
def test_stability_is_seen_on_grids(shape: tuple[int, ...], method: str) -> None:
    """Diffusion with ends held at 0, whatever the lengths of the axes are: the first look says that stability holds the steps."""
    inner = (slice(1, -1),) * len(shape)

    def right(t: float, y: Any) -> Any:
        u = np.pad(y.reshape(shape), 1)
        return 50.0**2 * sum(np.roll(u, s, k)[inner] - u[inner] for k in range(len(shape)) for s in (1, -1)).ravel()

    start = np.exp(-sum(x**2 for x in np.meshgrid(*[np.linspace(-4, 4, N) for N in shape], indexing="ij")))
    p = problem(right, start.ravel(), 1e3)
    run = ExplicitRun(p, METHODS[method], rtol=1e-4)
    assert not run.advance(PILOT) and held(run.state, run.step)[0] > 0


SHIFT = np.roll(np.eye(40), 1, axis=1)
SPECTRA = {
    "diffusion": (SHIFT + SHIFT.T - 2 * np.eye(40), True),
    "diffusion and advection": (SHIFT + SHIFT.T - 2 * np.eye(40) + 0.2 * (SHIFT - SHIFT.T), True),
    "advection": (SHIFT - SHIFT.T, False),
    "growth": (np.diag(np.linspace(0.1, 1, 40)), False),
    "spiral": (np.kron(np.eye(20), [[-1.0, 10.0], [-10.0, -1.0]]), False),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_whether_the_largest_eigenvalue_is_real_and_negative(name: str) -> None:
    """As numpy's eigenvalues say: those of more than .9 of the largest size lie within 26 degrees of the negative axis, or outside."""
    A, real = SPECTRA[name]
    large = np.linalg.eigvals(A)
    large = large[np.abs(large) > 0.9 * np.abs(large).max()]
    assert set((-large.real >= 0.9 * np.abs(large)).tolist()) == {real}

    def rhs(t: float, y: Any, out: Any) -> None:
        out[:] = A @ y

    assert spectral_radius(rhs, 0.0, np.ones(40), 1e-3)[1] is real


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_spectral_radius_of_any_size(size: float) -> None:
    """Of random symmetric matrices, the largest eigenvalue far from the others, beside a function that bends: within a tenth."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        Q, y = np.linalg.qr(rng.normal(size=(6, 6)))[0], rng.uniform(1, 2, 6)
        A = -size * Q @ np.diag([1.0, *rng.uniform(-0.4, 0.4, 5)]) @ Q.T

        def rhs(t: float, y: Any, out: Any, A: Any = A) -> None:
            out[:] = A @ np.sin(y - 1.5)

        J = A * np.cos(y - 1.5)
        assert spectral_radius(rhs, 0.0, y, 1e-3)[0] == pytest.approx(np.abs(np.linalg.eigvals(J)).max(), rel=0.1)


def test_stable_up_to() -> None:
    """Known ends of the real stability intervals: 2 (Euler), 2.785 (RK4)."""
    assert stable_up_to(METHODS["euler"]) == pytest.approx(2.0, abs=0.06)
    assert stable_up_to(METHODS["rk4"]) == pytest.approx(2.785, abs=0.06)


def test_max_steps_names_the_cure() -> None:
    """An explicit method by name that runs out of steps says what to try; without a Jacobian it does not."""
    p = robertson(1e5)
    assert "rodas5p" in integrate_problem(p, method="tsit5", max_steps=50).message
    assert "rodas5p" not in integrate_problem(replace(p, linear=None), method="tsit5", max_steps=50).message
    assert "rodas5p" not in integrate_problem(p, method="rodas4", max_steps=5).message
