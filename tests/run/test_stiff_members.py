"""Laws of the stiff methods in every engine: problems with known or published answers over many decades of time scales."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq
from sympy import Interval, oo, symbols

from odesim.inputs.registry import load_model
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.symbolic import Param, Source, System, time
from tests.support.engines import Engine
from tests.support.matrix import slow_but

ENGINES = [Engine(m, together) for m in ROSENBROCK for together in (False, True)]
# by default one method in lanes and the other one alone: a kernel each
FIRST = pytest.mark.parametrize("engine", slow_but(ENGINES, [Engine("rodas4", together=False), Engine("rodas5p")]), ids=str)
OTHERS = pytest.mark.parametrize("engine", slow_but(ENGINES, [Engine("rodas4"), Engine("rodas5p", together=False)]), ids=str)
POSITIVE = Interval.open(0, oo)
p, q, r, x, y, rate = symbols("p q r x y rate", real=True)
mu, slow, fast, back = symbols("mu slow fast back", positive=True)


def small(name: str, where: str, equations: dict[Any, Any], initial: dict[Any, float], **defaults: float) -> System:
    """A System without axes; every parameter is a positive number."""
    params = tuple(Param(symbols(n, positive=True), value, POSITIVE, "a number") for n, value in defaults.items())
    return System(name=name, source=Source("none", where), axes={}, equations=equations, params=params, initial=initial, span=(0.0, 1.0))


ROBERTSON = small(
    "test.robertson",
    "H. H. Robertson (1966)",
    {p: back * q * r - slow * p, q: slow * p - back * q * r - fast * q**2, r: fast * q**2},
    {p: 1.0, q: 0.0, r: 0.0},
    slow=0.04,
    fast=3e7,
    back=1e4,
)
VAN_DER_POL = small("test.van_der_pol", "B. van der Pol (1926)", {x: y, y: mu * (1 - x**2) * y - x}, {x: 2.0, y: 0.0}, mu=1e3)
PROTHERO_ROBINSON = small(
    "test.prothero_robinson",
    "A. Prothero, A. Robinson (1974)",
    {x: -mu * (x - 1 / (1 + time)) - 1 / (1 + time) ** 2},
    {x: 1.0},
    mu=1.0,
)


@pytest.mark.slow
@FIRST
def test_robertson_to_1e11(engine):
    """The published end of ROBER: Test Set for IVP Solvers, release 2.4 (2008), t = 1e11. The sum of the three stays 1 to rounding."""
    found = engine.run(ROBERTSON, {"slow": np.array([0.04])}, {}, np.array([1e2, 1e11]), span=(0.0, 1e11), rtol=1e-7, atol=1e-15)
    end = np.array([found.y[n][0] for n in ("p", "q", "r")])
    assert found.status == ["ok"]
    assert end[:, 1] == pytest.approx([0.2083340149701255e-07, 0.8333360770334713e-13, 0.9999999791665050], rel=1e-4)
    assert end.sum(axis=0) == pytest.approx(1, abs=1e-13)


@pytest.mark.slow
@FIRST
def test_robertson_with_rates_of_their_own(engine):
    """Members with rates a factor of 4 apart, at five times over six decades, against scipy's Radau at 1e-12."""
    factors, times = np.random.default_rng(0).uniform(0.5, 2, (2, 3)), np.array([0.1, 1.0, 1e2, 1e4, 1e5])
    rates = factors * np.array([0.04, 3e7, 1e4])
    params = dict(zip(("slow", "fast", "back"), rates.T, strict=True))
    found = engine.run(ROBERTSON, params, {}, times, span=(0.0, 1e5), rtol=1e-7, atol=1e-12)
    states = np.stack([found.y[n] for n in ("p", "q", "r")], axis=-1)
    # an error is relative, with a floor for the intermediate of 1e-5; it is some ten tolerances
    assert states == pytest.approx(np.stack([radau_robertson(*map(float, row), tuple(times)) for row in rates]), rel=1e-5, abs=1e-11)
    assert states.sum(axis=-1) == pytest.approx(1, abs=1e-13)


@cache
def radau_robertson(slow: float, fast: float, back: float, times: tuple[float, ...]) -> Any:
    """States (T, 3)."""
    run: Any = solve_ivp

    def f(t: float, y: Any) -> Any:
        a, b, c = slow * y[0], fast * y[1] ** 2, back * y[1] * y[2]
        return [c - a, a - b - c, b]

    def J(t: float, y: Any) -> Any:
        b, c, d = 2 * fast * y[1], back * y[2], back * y[1]
        return [[-slow, c, d], [slow, -b - c, -d], [0, b, 0]]

    return run(f, (0, times[-1]), [1.0, 0.0, 0.0], "Radau", times, jac=J, rtol=1e-12, atol=1e-17).y.T


@pytest.mark.slow
@OTHERS
def test_van_der_pol(engine):
    """mu = 1000 at t = 2000, after a jump: the published end of VDPOL, Test Set for IVP Solvers (2008), where t is in units of mu."""
    found = engine.run(VAN_DER_POL, {"mu": np.array([1e3])}, {}, np.array([2e3]), span=(0.0, 2e3), rtol=1e-8, atol=1e-11)
    # the phase is lost in the jump, of slope 1e3, by some 1e3 tolerances
    assert found.y["x"][0, 0] == pytest.approx(1.706167732170483, rel=1e-6)
    assert found.y["y"][0, 0] == pytest.approx(-0.8928097010247975e-3, rel=1e-5)


@pytest.mark.slow
@FIRST
def test_no_rate_is_too_large(engine):
    """Members that relax to 1 / (1 + t) at rates from 1 to 1e12 follow it, none with much more work than the slowest; the
    orders of the interpolants fall to 2 and 3 at rates of about 1 / h."""
    rates, times = np.logspace(0, 12, 13), np.linspace(0, 2, 21)
    found = engine.run(PROTHERO_ROBINSON, {"mu": rates}, {}, times, span=(0.0, 2.0), rtol=1e-7, atol=1e-7)
    assert np.abs(found.y["x"] - 1 / (1 + times)).max() < 20 * 1e-7
    assert found.attempts.max() < {"rodas4": 8, "rodas5p": 2}[engine.method] * found.attempts[0]


def saturating(mu: float, v0: float, t: float) -> float:
    """v(t) of v' = (mu - v) exp(v^2 / 2): t = int exp(-v^2 / 2) / (mu - v) dv, smooth in s = -log(mu - v), where dv / (mu - v) = ds."""
    clock: Any = quad
    first = -np.log(mu - v0)

    def passed(s: float) -> float:
        return float(clock(lambda s: np.exp(-((mu - np.exp(-s)) ** 2) / 2), first, s, epsabs=1e-14, epsrel=1e-13, limit=500)[0])

    last = first + 60
    return mu if passed(last) < t else float(mu - np.exp(-brentq(lambda s: passed(s) - t, first, last, xtol=1e-14, rtol=1e-14)))


@pytest.mark.first(1)
@FIRST
def test_saturating_nodes(engine):
    """Nodes of joma.nonlinear with mu ~ U(.5, 5), whose time scales lie 2.7e5 apart, against their closed form at five times."""
    rng, times = np.random.default_rng(0), np.array([0.1, 0.5, 1.0, 2.0, 10.0])
    mu, v0 = rng.uniform(0.5, 5, (6, 2)), np.abs(rng.normal(size=(6, 2))) * 0.01
    found = engine.run(load_model("joma.nonlinear"), {"mu": mu}, {"v": v0}, times, span=(0.0, 10.0), rtol=1e-8, atol=1e-8)
    true = [[[saturating(*pair, t) for pair in zip(*rows, strict=True)] for t in times] for rows in zip(mu, v0, strict=True)]
    assert found.y["v"] == pytest.approx(np.array(true), abs=5e-6)
    assert found.attempts.max() < {"rodas4": 1000, "rodas5p": 500}[engine.method]
