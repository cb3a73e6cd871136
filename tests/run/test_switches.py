"""Conditions of a right-hand side on time and states: where they change a step ends, and what a run gives is right on both sides."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from sympy import Abs, Heaviside, IndexedBase, Interval, Max, Mod, Piecewise, Sum, exp, floor, oo, sign, sin, symbols

import odesim
from odesim.api.rerun import rerun_integration
from odesim.base.errors import SolveError, SpecError
from odesim.inputs.registry import list_models, load_model
from odesim.run.modes import Switching, held_of
from odesim.stepper.methods import METHODS
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.store.write import write_solution
from odesim.symbolic import Event, Invariant, Param, Source, System, index, over, sizes
from odesim.symbolic import time as t

REALS = Interval(-oo, oo)
y, a, w, q, x, v = symbols("y a w q x v", real=True)
(m, j), (M, N) = index("m j"), sizes("M N")
END = 10.0


def system(rhs: Any, params: dict[Any, float], start: float = 0.0, **more: Any) -> System:
    """y' = rhs from start, over 0:END."""
    own = tuple(Param(p, value, REALS, "a number") for p, value in params.items())
    more = {"equations": {y: rhs}, "initial": {y: start}, **more}
    return System(name="switched", source=Source("own", "test"), axes={}, params=own, span=(0.0, END), **more)


def on(condition: Any) -> Any:
    """y' = 1 - y while the condition holds, else -y."""
    return Piecewise((1, condition), (0, True)) - y


def response(pulses: Any) -> float:
    """y(END) of on(...) from 0 for a condition that holds in these intervals (n, 2)."""
    start, end = np.clip(np.asarray(pulses, float).T, 0, END)
    return float(np.sum(np.exp(end - END) - np.exp(start - END)))


def train(q: float, w: float) -> Any:
    k = np.arange(-1, 60) * q
    return np.stack([k, k + w], 1)


def positive(g: Callable[[Any], Any]) -> list[tuple[float, float]]:
    """The intervals in which g > 0, its zeros from a fine grid."""
    grid = np.linspace(0, END, 20001)
    changes = [brentq(g, grid[k], grid[k + 1], xtol=1e-14) for k in np.flatnonzero(np.diff(np.sign(g(grid))))]
    return [part for part in pairwise([0.0, *changes, END]) if g(sum(part) / 2) > 0]


Pulses = Callable[..., Any]
# condition, parameters, the intervals in which it holds as a function of these
ON_TIME: dict[str, tuple[Any, dict[Any, float], Pulses]] = {
    "before": (t < a, {a: 3.7}, lambda a: [(0, a)]),
    "up to": (t <= a, {a: 3.7}, lambda a: [(0, a)]),
    "after": (2 * t + q >= a, {a: 9.0, q: 1.5}, lambda a, q: [((a - q) / 2, END)]),
    "narrow pulse": ((t > a) & (t < a + w), {a: 7.3, w: 1e-3}, lambda a, w: [(a, a + w)]),
    "around": (Abs(t - a) < w, {a: 7.3, w: 0.4}, lambda a, w: [(a - w, a + w)]),
    "pulse train": (Mod(t, q) < w, {q: 0.9, w: 0.02}, train),
    "square wave": (sin(2 * sp.pi * t / q) > 0, {q: 0.9}, lambda q: train(q, q / 2)),
    "every other": (Mod(floor(t / q), 2) < 1, {q: 0.7}, lambda q: train(2 * q, q)),
    "square": (t**2 < a, {a: 30.0}, lambda a: [(0, np.sqrt(a))]),
    "quadratic": (t * (t - a) < w, {a: 3.0, w: 5.0}, lambda a, w: [(0, (a + np.sqrt(a * a + 4 * w)) / 2)]),
    "decay": (exp(-t / w) > a, {a: 0.3, w: 4.0}, lambda a, w: [(0, -w * np.log(a))]),
    "largest": (Max(t, a) < w, {a: 1.0, w: 4.2}, lambda a, w: [(0, w)]),
    "fifth power": (t**5 < a + t, {a: 1.0}, lambda a: positive(lambda t: a + t - t**5)),
    "beats": (sin(20 * t) + t * w > a, {a: 1.0, w: 0.3}, lambda a, w: positive(lambda t: np.sin(20 * t) + t * w - a)),
    "levels": (Mod(floor(t**2 * w), 2) < 1, {w: 0.473}, lambda w: positive(lambda t: 1 - 2 * np.mod(np.floor(t**2 * w), 2))),
    "root begins": (sp.sqrt(t - a) < w, {a: 4.0, w: 0.5}, lambda a, w: [(a, a + w * w)]),
    "root ends": (sp.sqrt(a - t) < w, {a: 4.0, w: 0.5}, lambda a, w: [(a - w * w, a)]),
    "logarithm": (sp.log(a - t) > -w, {a: 4.0, w: 0.5}, lambda a, w: [(0, a - np.exp(-w))]),
    "not": (~((t < a) | (t > w)), {a: 6.0, w: 9.5}, lambda a, w: [(a, w)]),
}


@pytest.mark.first(4)
@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
@pytest.mark.parametrize("case", ON_TIME)
def test_conditions_on_time(case: str, method: str) -> None:
    """The closed form at the end, and its slopes in every parameter, however narrow a pulse is."""
    condition, params, pulses = ON_TIME[case]
    values = {str(p): value for p, value in params.items()}
    run = odesim.integrate(
        system(on(condition), params), method=method, backend="numpy", rtol=1e-9, atol=1e-12, sensitivities=tuple(values)
    )
    assert run.status == "ok"
    exact = response(pulses(**values))
    assert float(run.final["y"]) == pytest.approx(exact, abs=3e-9)
    for name, value in values.items():
        h = 1e-6
        up, down = (response(pulses(**{**values, name: value + step})) for step in (h, -h))
        # rounding of the difference, 1e-16/h, and its own error, h^2
        assert float(run.final[f"dy_d{name}"]) == pytest.approx((up - down) / (2 * h), abs=2e-8, rel=2e-8), name


@pytest.mark.parametrize(
    "form", [Heaviside(t - a), (sign(t - a) + 1) / 2, Piecewise((0, t < a), (1, True)), floor(t / a) - floor(t / a - 1)]
)
def test_other_words_for_a_jump(form: Any) -> None:
    """Heaviside, sign and differences of floors are held as conditions are."""
    value = 3.7 if form.has(Heaviside, sign, Piecewise) else 20.0
    run = odesim.integrate(system(form - y, {a: value}), backend="numpy", rtol=1e-9, atol=1e-12)
    exact = response([(value, END)]) if value < END else 1 - np.exp(-END)
    assert float(run.final["y"]) == pytest.approx(exact, abs=1e-9)


def test_sawtooth() -> None:
    """A remainder outside a condition, and the slope in its period, against quadrature by parts."""

    def exact(q: float) -> float:
        edges = np.append(np.arange(0, END, q), END)
        parts = [
            (b - lo - 1) * np.exp(b - END) - (a - lo - 1) * np.exp(a - END)
            for a, b, lo in zip(edges[:-1], edges[1:], edges[:-1], strict=True)
        ]
        return float(np.sum(parts))

    run = odesim.integrate(system(Mod(t, q) - y, {q: 0.83}), backend="numpy", rtol=1e-10, atol=1e-12, sensitivities="q")
    assert float(run.final["y"]) == pytest.approx(exact(0.83), abs=1e-9)
    assert float(run.final["dy_dq"]) == pytest.approx((exact(0.83 + 1e-6) - exact(0.83 - 1e-6)) / 2e-6, abs=1e-7)


def test_arrays_of_thresholds() -> None:
    """A threshold for each component and pulses in a sum: each component's own closed form, and slopes in every entry."""
    z, late, start = IndexedBase("z", shape=(M,)), IndexedBase("late", shape=(M,)), IndexedBase("start", shape=(N,))
    pulses = over(Sum, Piecewise((1, (t > start[j]) & (t < start[j] + w)), (0, True)), (j, N))
    made = System(
        name="thresholds",
        source=Source("own", "test"),
        axes={m: M},
        equations={z[m]: Piecewise((1, t < late[m]), (0, True)) + pulses - z[m]},
        params=(Param(late, 1.0, REALS, ""), Param(start, 1.0, REALS, ""), Param(w, 0.25, REALS, "")),
        initial={z[m]: 0.0},
        span=(0.0, END),
    )
    late0, start0 = np.array([2.0, 9.1, 5.5]), np.array([8.3, 1.0, 8.4, 3.0])  # two pulses that overlap
    given: dict[str, Any] = {"late": late0, "start": start0}
    run = odesim.integrate(made, params=given, rtol=1e-9, atol=1e-12, sensitivities=("late", "start", "w"), backend="numpy")
    trains = response(np.stack([start0, start0 + 0.25], 1))
    assert run.final["z"] == pytest.approx([response([(0, s)]) + trains for s in late0], abs=2e-9)
    assert run.final["dz_dlate"] == pytest.approx(np.diag(np.exp(late0 - END)), abs=1e-9)
    each = np.exp(start0 + 0.25 - END) - np.exp(start0 - END)
    assert run.final["dz_dstart"] == pytest.approx(np.tile(each, (3, 1)), abs=1e-9)
    assert run.final["dz_dw"] == pytest.approx(np.full(3, np.exp(start0 + 0.25 - END).sum()), abs=1e-9)


@pytest.mark.parametrize("method", ["euler", "rk4", "tsit5", "rodas4"])
def test_order_through_a_jump(method: str) -> None:
    """Fixed steps keep their order: each part between two jumps has its own."""
    made = system(Piecewise((t, t < a), (-y, t < 2 * a), (1 - y, True)), {a: sp.pi.evalf() / 3})
    third = float(sp.pi) / 3
    exact = 1 + (third**2 / 2 * np.exp(-third) - 1) * np.exp(-(3.0 - 2 * third))
    steps = 0.5 ** np.arange(3, 7) if METHODS.get(method) and METHODS[method].order < 5 else 0.5 ** np.arange(1, 5)
    errors = [abs(float(odesim.integrate(made, method=method, step=h, span=(0, 3), backend="numpy").final["y"]) - exact) for h in steps]
    order = METHODS[method].order if method in METHODS else 4
    assert -np.polyfit(np.arange(4), np.log2(errors), 1)[0] == pytest.approx(order, abs=0.6)


def spring(kick: Any, **more: Any) -> System:
    """x'' = kick, from rest at 1."""
    return system(0, {a: 1.0}, equations={x: v, v: kick}, initial={x: 1.0, v: 0.0}, **more)


def bounced(time: Any, a: float = 1.0, start: float = 1.0) -> Any:
    """x of x'' = -a sign(x) from rest: parabolas of a quarter period sqrt(2 start / a)."""
    quarter = np.sqrt(2 * start / a)
    phase = np.mod(time, 4 * quarter)
    u = phase - 2 * quarter * np.rint(phase / (2 * quarter))
    return np.where((phase < quarter) | (phase > 3 * quarter), 1.0, -1.0) * (start - a * u**2 / 2)


@pytest.mark.parametrize("method", ["tsit5", "vern7", "rodas5p"])
@pytest.mark.parametrize(
    "form", [-a * sign(x), a * (1 - 2 * Heaviside(x)), Piecewise((-a, x > 0), (a, True)), a * Piecewise((1, -x >= 0), (-1, True))]
)
def test_conditions_on_states(form: Any, method: str) -> None:
    """An oscillator whose force jumps at 0: the closed form over many crossings, and its slopes in the force and in the start."""
    times = np.linspace(0, END, 23)
    run = odesim.integrate(spring(form), method=method, save=times, backend="numpy", rtol=1e-9, atol=1e-11, sensitivities=("a", "x"))
    assert run.status == "ok"
    assert run.y["x"] == pytest.approx(bounced(times), abs=2e-7)
    h = 1e-6
    assert run.y["dx_da"] == pytest.approx((bounced(times, 1 + h) - bounced(times, 1 - h)) / (2 * h), abs=3e-6)
    assert run.y["dx_dx_start"] == pytest.approx((bounced(times, 1, 1 + h) - bounced(times, 1, 1 - h)) / (2 * h), abs=3e-6)


def test_threshold_on_a_state() -> None:
    """y' = 1 below a and 3 above: y(END) = a + 3 (END - a + start), exactly, and so its slopes."""
    run = odesim.integrate(system(Piecewise((1, y < a), (3, True)), {a: 4.0}, start=-1.0), sensitivities=("a", "y"), backend="numpy")
    assert [float(run.final[name]) for name in ("y", "dy_da", "dy_dy_start")] == pytest.approx([4 + 3 * 5, -2.0, 3.0], abs=1e-9)


def test_levels_of_a_state() -> None:
    """y' = 1 + floor(y) from 0 passes n at the harmonic numbers, and comes down through them again."""
    run = odesim.integrate(system(1 + floor(y), {}, start=0.0), span=(0, 2.2), backend="numpy")
    passed = np.cumsum(1 / np.arange(1, 20))
    n = int(np.searchsorted(passed, 2.2))
    assert float(run.final["y"]) == pytest.approx(n + (n + 1) * (2.2 - passed[n - 1]), abs=1e-9)
    # from 3: y' = -1 - n on (n, n + 1], at once below 3: 1/3 to 2, 1/2 to 1, then y' = -1 until 0, where y' = 0 below
    down = odesim.integrate(system(-1 - floor(y), {}, start=3.0), span=(0, 1.5), backend="numpy")
    assert float(down.final["y"]) == pytest.approx(1 - (1.5 - 1 / 3 - 1 / 2), abs=1e-9)


RELU = {
    "relu": Piecewise((x, x > 0), (0, True)) - x / 2,
    "max": Max(x, 0) - v,
    "abs": Abs(x) - v,
    "x sign x": x * sign(x),
    "clipped": Piecewise((1, x > 1), (-1, x < -1), (x, True)),
    "in a sum": sp.sqrt(1 + x**2) * Piecewise((x - a, x >= a), ((x - a) ** 3, True)),
}


@pytest.mark.parametrize("case", RELU)
def test_what_is_continuous_is_left_alone(case: str) -> None:
    """Where both branches agree on the boundary no step ends and no kernel changes."""
    made = system(0, {a: 1.0}, equations={x: v, v: RELU[case]}, initial={x: 1.0, v: 0.0})
    held = held_of(made)
    assert not held.switches and held.system is made


def test_sliding() -> None:
    """A boundary that both sides push back to ends the run there, in a sentence; a start on one that is left by both sides goes on."""
    run = odesim.integrate(system(-sign(y) * a, {a: 2.0}, start=3.0), backend="numpy", save=5)
    assert run.status == "sliding" and run.t_end == pytest.approx(1.5, abs=1e-12) and "y > 0" in run.message
    assert run.t.tolist() == [0.0, run.t_end]
    assert odesim.integrate(system(-sign(y - a), {a: 3.0}, start=3.0), backend="numpy").final["y"] == 3.0  # the value on the boundary stays
    assert odesim.integrate(system(1 - 2 * sign(y), {}, start=0.0), backend="numpy").status == "sliding"
    away = odesim.integrate(system(Piecewise((1, y >= 0), (-1, True)), {}, start=0.0), backend="numpy")
    assert float(away.final["y"]) == pytest.approx(END)


@pytest.mark.first(26)
@pytest.mark.parametrize("model", [name for name in list_models() if name != "galore.projected"])
def test_models_switch_nowhere(model: str) -> None:
    """No shipped model has a jump, but one at known times: a NaN where it is not defined is none; kernels and lanes are as they were."""
    made = load_model(model)
    assert held_of(made).system is made


def test_ever_faster_switches_end() -> None:
    """x'' = -2 sign(x) - sign(x') comes to rest after endlessly many switches in a finite time, where the run ends."""
    run = odesim.integrate(spring(-2 * sign(x) - sign(v)), backend="numpy")
    # from rest at 1: down to 0 with 1 in sqrt(2), on with 3 to rest at -1/3 in sqrt(2)/3; each such swing takes 1/sqrt(3) of the one before
    settled = 4 * np.sqrt(2) / 3 / (1 - 1 / np.sqrt(3))
    assert run.status == "sliding" and "ever faster" in run.message
    assert run.t_end == pytest.approx(settled, rel=1e-6) and abs(float(run.final["x"])) < 1e-12


def test_interrupt_between_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C where a condition changes ends the run as anywhere else: what was computed is kept."""

    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Switching, "cross", interrupt)
    run = odesim.integrate(system(on(t < a), {a: 4.0}), backend="numpy", save=[1.0, 3.0, 6.0])
    assert run.status == "interrupted" and run.t.tolist() == [1.0, 3.0, 4.0] and run.t_end == 4.0


def test_events_across_switches() -> None:
    """The model's own events are found as ever: once each, at a boundary too, and a terminal one ends the run."""
    zeros = (Event("zero", x), Event("twice", 2 * x, -1), Event("stop", v - sp.Rational(1, 2), 1, True))
    run = odesim.integrate(spring(-sign(x), events=zeros), backend="numpy", rtol=1e-9, atol=1e-11)
    quarter = np.sqrt(2)
    assert run.status == "event" and run.t_end == pytest.approx(2 * quarter + 0.5, abs=1e-7)
    assert [e["t"] for e in run.events["zero"]] == pytest.approx([quarter], abs=1e-8)
    assert [e["t"] for e in run.events["twice"]] == pytest.approx([quarter], abs=1e-8)
    assert set(run.events) == {"zero", "twice", "stop"}


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", range(3))
def test_random_pieces(seed: int) -> None:
    """Random systems with jumps in time, against scipy from one jump to the next."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0.5, 9.5, 6))
    force = rng.normal(size=(7, 2))
    pieces = [
        Piecewise(*((float(f[k]), t < float(s)) for f, s in zip(force, times, strict=False)), (float(force[-1, k]), True)) for k in range(2)
    ]
    equations = {x: v + pieces[0], v: -x - x * v / 5 + pieces[1]}
    made = system(0, {}, equations=equations, initial={x: 1.0, v: 0.0})
    state, edges = np.array([1.0, 0.0]), [0.0, *times, END]
    for k, (start, end) in enumerate(pairwise(edges)):
        part: Any = solve_ivp(  # type: ignore[call-overload]
            lambda _, z, f=force[k]: [z[1] + f[0], -z[0] - z[0] * z[1] / 5 + f[1]], (start, end), state, "DOP853", rtol=1e-12, atol=1e-13
        )
        state = part.y[:, -1]
    for method in ("tsit5", "dop853", "rodas5p"):
        run = odesim.integrate(made, method=method, backend="numpy", rtol=1e-8, atol=1e-10)
        assert [float(run.final[name]) for name in ("x", "v")] == pytest.approx(state, abs=3e-7)


def test_times_of_which_nothing_is_known_are_refused() -> None:
    """A condition on time whose changes cannot be isolated is one sentence, not a pulse that may be missed."""
    with pytest.raises(SpecError, match=r"switched: the times at which a > LambertW\(t\) changes cannot be computed: write it with sums"):
        odesim.integrate(system(on(sp.LambertW(t) < a), {a: 2.0}), backend="numpy")


def test_stop_at() -> None:
    """Times that are given end a step each: the state there is a step's own, not an interpolant's."""
    made = system(-y, {}, start=1.0)
    run = odesim.integrate(made, stop_at=[0.5, 2.0, 7.0], step=1.0, method="euler", backend="numpy")
    # 0, .5 | 1.5, 2 | 3, 4, 5, 6, 7 | 8, 9, 10
    assert float(run.final["y"]) == pytest.approx(0.0) and run.stats["steps"] == 1 + 2 + 5 + 3
    assert run.attrs["stop_at"] == [0.5, 2.0, 7.0]


@pytest.mark.first(1)
@pytest.mark.parametrize("strict", [False, True])
def test_members_are_single_runs(strict: bool) -> None:
    """Every member of an ensemble with switches on time and state has the bits of its single run."""
    made = system(on(Mod(t, q) < w) + Piecewise((sp.Rational(1, 10), y < a), (sp.Rational(3, 10), True)), {q: 2.0, w: 0.5, a: 0.4})
    found = odesim.ensemble(made, vary={"w": "uniform(0.1,1.5)"}, members=3, save=5, method="tsit5", strict=strict, stop_at=4.25)
    for i in range(3):
        one = odesim.integrate(made, params={"w": float(found.w[i])}, save=5, method="tsit5", strict=strict, stop_at=4.25)
        assert np.array_equal(one.y["y"], found.y[i].values) and one.stats["steps"] == int(found.steps[i])


@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
def test_laws_go_on_across_switches(method: str) -> None:
    """Invariants are held against the start of the run, and their extremes so far, not those of a part."""
    laws = (Invariant("still", y, "constant"), Invariant("down", y, "nonincreasing"), Invariant("up", -y, "nondecreasing"))
    made = system(Piecewise((3, t < a), (-1, True)), {a: 2.0}, invariants=laws)
    run = odesim.integrate(made, method=method, stop_at=[1.0, 5.0], backend="numpy")
    # up to 6 at t = 2, down to -2 at the end
    assert run.invariants == pytest.approx({"still": 6.0, "down": 6.0, "up": 6.0})


@pytest.mark.parametrize("method", ["tsit5", "rodas4"])
def test_no_step_is_longer(method: str) -> None:
    """max_step bounds every step, the last one too: a bump in a state, which is the clock here, is seen that no stage would see."""
    bump = exp(-(((x - 6.2) / 0.05) ** 2))
    made = system(bump, {}, equations={y: bump, x: 1}, initial={y: 0.0, x: 0.0})
    exact = 0.05 * float(sp.sqrt(sp.pi))
    assert float(odesim.integrate(made, method=method, backend="numpy").final["y"]) == pytest.approx(0, abs=1e-9)
    run = odesim.integrate(made, method=method, max_step=0.1, backend="numpy")
    assert float(run.final["y"]) == pytest.approx(exact, rel=1e-5) and run.stats["steps"] >= END / 0.1
    with pytest.raises(SolveError, match="max_step bounds adaptive steps"):
        odesim.integrate(made, method=method, max_step=0.1, step=0.1, backend="numpy")


@pytest.mark.slow
def test_rescaled_clock_with_sensitivities() -> None:
    """y' = y^2, twice that from a on, blows up at (1 + a) / 2; with the clock as a state the threshold is one on a state."""
    made = system(Piecewise((1, t < a), (2, True)) * y**2, {a: 0.3}, start=1.0, growth=y)
    times = np.array([0.1, 0.3, 0.4, 0.5])
    run = odesim.integrate(made, clock="rescaled", save=times, sensitivities=("a", "y"), backend="numpy", rtol=1e-9, atol=1e-12)
    exact = 1 / np.where(times < 0.3, 1 - times, 1.3 - 2 * times)
    assert run.y["y"][:4] == pytest.approx(exact, rel=1e-7) and run.events["blow_up"][0]["t"] == pytest.approx(0.65, abs=1e-8)
    assert run.y["dy_da"][[0, 2, 3]] == pytest.approx([0, -(exact[2] ** 2), -(exact[3] ** 2)], rel=1e-6)
    assert run.y["dy_dy_start"][:4] == pytest.approx(exact**2, rel=1e-6)


def test_stored_runs_stop_where_they_did(tmp_path: Path) -> None:
    """rerun takes the times and the largest step that a run was asked for: every bit is the same."""
    run = odesim.integrate("joma.nonlinear", stop_at=[1.5, 2.0], max_step=0.02, backend="numpy", save=5)
    write_solution(run, tmp_path / "run.zarr")
    again = rerun_integration(tmp_path / "run.zarr")
    plain = odesim.integrate("joma.nonlinear", backend="numpy", save=5)
    assert again.same and not np.array_equal(run.final["v"], plain.final["v"])


JUMPY = system(Piecewise((1, y < a), (3, True)), {a: 4.0})
ALONE: dict[str, tuple[System, dict[str, Any]]] = {
    "conditions on states that jump": (JUMPY, {}),
    "a fixed step in parts between times where conditions change": (system(on(t < a), {a: 4.0}), {"step": 0.1}),
    "sensitivities with jumps": (system(on(t < a), {a: 4.0}), {"sensitivities": "a"}),
}


@pytest.mark.first(1)
@pytest.mark.parametrize("what", ALONE)
def test_what_runs_member_by_member(what: str) -> None:
    """What lanes cannot do is done one by one, with the numbers of single runs."""
    made, options = ALONE[what]
    given = np.array([1.0, 2.5, 30.0])
    found = odesim.ensemble(made, params={"a": given}, method="tsit5", **options)
    for i, value in enumerate(given):
        one = odesim.integrate(made, params={"a": value}, method="tsit5", **options)
        for name, rows in one.y.items():
            assert np.array_equal(found[name].values[i, 0], rows[-1])


@pytest.mark.first(1)
@pytest.mark.parametrize("method", ["auto", "tsit5", "rodas5p"])
def test_a_solution_that_slides_where_it_starts(method: str) -> None:
    """x' = Mod(x, 1) - x pushes x to 1 from both sides: status sliding before the first step, with a method, in a run and as a member."""
    slides = system(0, {}, equations={y: Mod(y, 1) - y}, start=1.0)
    run = odesim.integrate(slides, method=method)
    assert run.status == "sliding" and run.t_end == 0 and run.method in (*METHODS, *ROSENBROCK)
    assert not run.attrs.get("auto", "").startswith("auto")
    members = odesim.ensemble(slides, initial={"y": [1.0, 0.1]}, method=method)
    assert [members.attrs["status_names"][k] for k in members.status.values] == ["sliding", "ok"]
    assert set(members.method.values.tolist()) <= set(range(len(METHODS) + len(ROSENBROCK)))
