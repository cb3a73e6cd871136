"""The Runge-Kutta-Chebyshev method against its stability polynomial, closed forms and other integrators."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.polynomial import chebyshev
from scipy.integrate import solve_ivp
from sympy import Integer, Rational, cos, pi, sin, symbols

import odesim
from odesim.base.errors import OdesimError
from odesim.symbolic import Event, IndexedBase, Param, System, index, sizes
from odesim.symbolic import time as t

rate = symbols("rate", positive=True)
x, v = symbols("x v")
(i,), (N,) = index("i"), sizes("N")
u = IndexedBase("u", shape=(N,))

DECAY = System(name="decay", equations={x: -rate * x}, initial={x: 1.0}, params=(Param(rate, 1.0),), span=(0.0, 1.0))
TIME = System(name="clock", equations={x: 3 + 4 * t}, initial={x: 1.0}, span=(0.0, 2.0))
BALL = System(
    name="ball",
    equations={x: v, v: Integer(-1)},
    initial={x: 1.0, v: 0.0},
    span=(0.0, 3.0),
    events=(Event("floor", x, direction=-1, resets={v: -v / 2}),),
)
HEAT = System(
    name="heat",
    axes={i: N},
    equations={u[i]: (N + 1) ** 2 * (u[i - 1] - 2 * u[i] + u[i + 1])},
    initial={u[i]: sin(pi * (i + 1) / (N + 1))},
    boundary={i: "zero"},
    span=(0.0, 0.1),
)
FORCED = System(name="forced", equations={x: -rate * (x - cos(t)) - sin(t)}, initial={x: 1.0}, params=(Param(rate, 1.0),), span=(0.0, 3.0))
PENDULUM = System(name="pendulum", equations={x: v, v: -sin(x) - Rational(1, 5) * v}, initial={x: 1.0, v: 0.0}, span=(0.0, 4.0))


def polynomial(s: int, z: float) -> float:
    """The stability polynomial of s stages (Sommeijer, Shampine, Verwer 1998, eqs. 2.2 to 2.4), from numpy's Chebyshev series."""
    T = [0.0] * s + [1.0]
    w0 = 1 + 2 / 13 / s**2
    first, second = (float(chebyshev.chebval(w0, chebyshev.chebder(T, m))) for m in (1, 2))
    b = second / first**2
    return float(1 - b * chebyshev.chebval(w0, T) + b * chebyshev.chebval(w0 + first / second * z, T))


@pytest.mark.parametrize("z", [0.5, 3.0, 40.0, 1e3, 1e5])
def test_one_step_is_the_stability_polynomial(z: float) -> None:
    run = odesim.integrate(DECAY, params={"rate": z}, method="rkc", step=1.0)
    wanted = int(1 + np.sqrt(1 + 1.54 * 1.2 * z))  # section 3 of the paper, for 1.2 times the radius
    # the first slope, two power iterations, which for one linear equation are exact, stages 2 to s, the last slope
    assert run.stats["rhs_calls"] == 1 + 2 + (wanted - 1) + 1
    # rounding grows as the square of the stages (section 3 of the paper)
    assert run.y["x"][-1] == pytest.approx(polynomial(wanted, -z), abs=1e-15 * wanted**2)
    assert abs(run.y["x"][-1]) < 1


def test_what_depends_on_time_alone_is_exact_to_second_order() -> None:
    run = odesim.integrate(TIME, method="rkc", step=0.25)
    assert run.y["x"][-1] == pytest.approx(1 + 3 * 2 + 2 * 4, rel=1e-14)


CASES = {"pendulum": (PENDULUM, {}), "forced": (FORCED, {"rate": 1.0}), "stiff": (FORCED, {"rate": 2e3})}


@pytest.mark.parametrize(("system", "params"), CASES.values(), ids=CASES)
def test_the_order_is_two(system: System, params: dict[str, float]) -> None:
    right = {"pendulum": lambda s, y: (y[1], -np.sin(y[0]) - y[1] / 5), "forced": None}[system.name]
    end = system.span[1]
    exact = np.cos(end) if right is None else solve_ivp(right, (0, end), (1.0, 0.0), rtol=1e-12, atol=1e-13).y[0, -1]
    errors = [abs(odesim.integrate(system, params=params, method="rkc", step=h).y["x"][-1] - exact) for h in (0.04, 0.02, 0.01)]
    slopes = np.diff(np.log2(errors))
    if params.get("rate", 0) > 1e3:  # the solution is smooth, and no rate makes its error larger; its polynomial is not monotonous in h
        assert np.all(np.array(errors) < 0.1 * np.array([0.04, 0.02, 0.01]) ** 2), errors
    else:
        assert np.all(slopes < -1.9), errors


def test_heat_needs_few_right_hand_sides() -> None:
    n = 200
    decay = 4 * (n + 1) ** 2 * np.sin(np.pi / 2 / (n + 1)) ** 2  # of the first mode, exact on this grid
    runs = {m: odesim.integrate(HEAT, sizes={"N": n}, method=m, rtol=1e-4, atol=1e-7) for m in ("rkc", "tsit5")}
    start = np.sin(np.pi * np.arange(1, n + 1) / (n + 1))
    for run in runs.values():
        assert run.status == "ok"
        assert np.abs(run.y["u"][-1] - np.exp(-0.1 * decay) * start).max() < 3e-4
    # counted, not timed: stages grow as the square root of what explicit steps do
    assert 10 * runs["rkc"].stats["rhs_calls"] < runs["tsit5"].stats["rhs_calls"]


@pytest.mark.parametrize(("dtype", "atol"), [("float64", 0.0), ("float64", 1e-300), ("float32", 1e-30)])
def test_a_component_at_zero_needs_no_atol(dtype: str, atol: float) -> None:
    """v' = x - 100 v from 0 beside x' = -x, whose tolerance at the start is nothing: v = (exp(-t) - exp(-100 t))/99, to 10 rtol."""
    system = System(name="follows", equations={x: -x, v: x - 100 * v}, initial={x: 1.0, v: 0.0}, span=(0.0, 1.0))
    run = odesim.integrate(system, method="rkc", atol=atol, rtol=1e-4, dtype=dtype, save=11)
    assert run.status == "ok", run.message
    np.testing.assert_allclose(run.y["v"], (np.exp(-run.t) - np.exp(-100 * run.t)) / 99, rtol=1e-3)


def test_the_error_at_the_end_goes_with_the_tolerance() -> None:
    """Of growth with diffusion, whose modes are exact on the grid; local errors held to rtol itself leave 15 rtol at 1e-3, 250 at 1e-6."""
    n = 20
    decay = 4 * n**2 * np.sin(np.pi / n) ** 2 / 1000
    system = replace(HEAT, equations={u[i]: u[i] + Rational(1, 1000) * N**2 * (u[i - 1] - 2 * u[i] + u[i + 1])}, boundary={i: "periodic"})
    system = replace(system, initial={u[i]: 1 + sin(2 * pi * i / N)}, span=(0.0, 10.0))
    exact = np.exp(10.0) * (1 + np.exp(-10 * decay) * np.sin(2 * np.pi * np.arange(n) / n))
    for rtol in (1e-3, 1e-4, 1e-5, 1e-6):
        run = odesim.integrate(system, sizes={"N": n}, method="rkc", rtol=rtol, atol=rtol)
        assert np.abs(run.y["u"][-1] - exact).max() < 5 * rtol * exact.max()


def test_between_two_steps_lies_a_cubic() -> None:
    errors = []
    for h in (0.2, 0.1, 0.05):
        run = odesim.integrate(FORCED, method="rkc", step=h, save=np.linspace(0, 3, 301))
        errors.append(np.abs(run.y["x"] - np.cos(run.t)).max())
    assert np.all(np.diff(np.log2(errors)) < -1.8)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_events_set_states(dtype: str, backend: str) -> None:
    run = odesim.integrate(BALL, method="rkc", dtype=dtype, backend=backend, rtol=1e-5, atol=1e-7, save=31)
    fall = np.sqrt(2)
    assert run.status == "ok"
    assert run.events["floor"][0]["t"] == pytest.approx(fall, rel=1e-4)
    s = 3 - fall  # after the bounce: v = fall / 2, until fall more has passed
    s, speed = (s - fall, fall / 4) if s > fall else (s, fall / 2)
    assert run.y["x"][-1] == pytest.approx(speed * s - s * s / 2, abs=1e-3)
    assert run.y["x"].dtype == dtype


@pytest.mark.parametrize("strict", [False, True])
def test_members_have_the_bits_of_their_runs(strict: bool) -> None:
    rates = [0.5, 3.0, 200.0]
    members = odesim.ensemble(FORCED, vary={"rate": rates}, method="rkc", save=11, strict=strict)
    for k, value in enumerate(rates):
        run = odesim.integrate(FORCED, params={"rate": value}, method="rkc", save=11, strict=strict)
        assert np.array_equal(members["x"].values[k], run.y["x"])


@pytest.mark.parametrize(("dtype", "rtol", "most"), [("float64", 1e-12, 21), ("float32", 1e-6, 2)])
def test_more_stages_than_rounding_allows_are_said(dtype: str, rtol: float, most: int) -> None:
    """A fixed step of 1 at a rate of 1e5 needs 430 stages, more than (rtol / 10 roundings)^(1/2); with a larger rtol it has them."""
    run = odesim.integrate(DECAY, params={"rate": 1e5}, method="rkc", step=1.0, dtype=dtype, rtol=rtol)
    assert run.status == "non_finite" and f"needs 430 stages of rkc at t = 0, beside whose rounding rtol = {rtol:g}" in run.message
    assert f"has room for {most}: take shorter steps, or a larger rtol" in run.message
    assert odesim.integrate(DECAY, params={"rate": 1e5}, method="rkc", step=1.0, dtype=dtype, rtol=1.0).status == "ok"


def test_a_gpu_has_no_such_steps() -> None:
    with pytest.raises(OdesimError, match="rkc"):
        odesim.integrate(DECAY, method="rkc", backend="cuda")
