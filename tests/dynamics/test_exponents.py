"""Lyapunov exponents: of linear systems, whose eigenvalues they are, and of attractors whose exponents are known."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sympy import cos, symbols

import odesim
from odesim.base.errors import OdesimError
from odesim.cli.app import cli
from odesim.dynamics.exponents import kaplan_yorke
from odesim.symbolic import Event, IndexedBase, Map, Param, Source, System, index, sizes, table, time

SOURCE = Source("none", "made for the tests")
x, y, z = symbols("x y z", real=True)
(m,), (M,) = index("m"), sizes("M")
v = IndexedBase("v", shape=(M,))


def system(equations, start=0.5, **more):
    """A System of these equations {state: right-hand side}."""
    return System("test.exponents", SOURCE, more.pop("axes", {}), equations, (), dict.fromkeys(equations, start), **more)


LORENZ = system({x: 10 * (y - x), y: x * (28 - z) - y, z: x * y - 8 * z / 3}, span=(0.0, 400.0))


def test_lorenz():
    """Exponents as published (Sprott, Chaos and time-series analysis, 2003), their sum the divergence, which is constant."""
    found = odesim.lyapunov(LORENZ, rtol=1e-8)
    published = np.array([0.9056, 0.0, -14.5723])
    assert np.all(np.abs(found["value"].values - published) < 4 * np.maximum(found["error"].values, 2e-3))
    assert float(found["total"]) == pytest.approx(-(10 + 1 + 8 / 3), abs=1e-5)  # a thousand times the tolerance, of 400 pieces
    assert float(found["dimension"]) == pytest.approx(2.062, abs=3e-3)


MATRICES = {
    "real": [[-1.0, 2.0, 0.0], [0.0, -3.0, 1.0], [0.0, 0.5, 0.4]],
    "spread": [[0.2, 1.0, 0.0], [0.0, -40.0, 3.0], [1.0, 0.0, -2.0]],
}


@pytest.mark.parametrize("name", MATRICES)
def test_a_linear_system_has_its_eigenvalues(name):
    """Once the directions have turned, growth is that of the eigenvalues."""
    A = np.array(MATRICES[name])
    rows = [sum(float(c) * s for c, s in zip(row, (x, y, z), strict=True)) for row in A]
    found = odesim.lyapunov(system(dict(zip((x, y, z), rows, strict=True)), span=(0.0, 60.0)), rtol=1e-9)
    np.testing.assert_allclose(found["value"], np.sort(np.linalg.eigvals(A).real)[::-1], rtol=1e-6, atol=1e-6)


def test_a_centre_keeps_all_distances():
    """x'' = -x: both are 0; so are those of a state that moves with t alone."""
    found = odesim.lyapunov(system({x: y, y: -x}, span=(0.0, 200.0)), rtol=1e-9)
    assert found["value"].values == pytest.approx([0, 0], abs=1e-5)
    assert odesim.lyapunov(system({x: cos(time)}, span=(0.0, 20.0)))["value"].values == pytest.approx([0], abs=1e-12)


def test_a_short_peak_counts():
    """x' = -(1 + u(t)) x, where u is a peak of a thousandth and of area 5: the exponent is minus the mean of the last nine tenths."""
    k, K = index("k"), sizes("K")
    T, u = (IndexedBase(name, shape=K) for name in "Tu")
    values = {T: [0.0, 10.013, 10.014, 10.015, 20.0], u: [0.0, 0.0, 5e3, 0.0, 0.0]}
    params = tuple(Param(p, lambda _, p=p: values[p], doc="points") for p in (T, u))
    peak = System(
        "test.peak", SOURCE, dict(zip(k, K, strict=True)), {x: -x * (1 + table(time, T[k], u[k]))}, params, {x: 1}, sizes={K[0]: 5}
    )
    found = odesim.lyapunov(peak, span=(0, 20))
    assert found["value"].values == pytest.approx([-1 - 5 / 18], abs=1e-6)


def test_maps():
    """Henon's map (0.419, -1.623; their sum is log 0.3), and x -> 4 x (1 - x) with log 2.

    1e-10 for the sum: seven maps are one matrix of condition exp(7 (0.42 + 1.62)), 2e6, whose determinant is off by that many roundings.
    """
    henon = Map("test.henon", SOURCE, {}, {x: 1 - 1.4 * x**2 + y, y: 0.3 * x}, (), {x: 0.1, y: 0.1})
    found = odesim.lyapunov(henon, steps=6000)
    assert found["value"].values == pytest.approx([0.419, -1.623], abs=0.015)
    assert float(found["total"]) == pytest.approx(np.log(0.3), abs=1e-10)
    logistic = Map("test.logistic", SOURCE, {}, {x: 4 * x * (1 - x)}, (), {x: 0.3})
    assert odesim.lyapunov(logistic, steps=6000)["value"].values == pytest.approx([np.log(2)], abs=0.02)


MEAN = (x + y) / 2
LOST = {
    "copy": {x: 4 * x * (1 - x), y: x},
    "constant": {x: 4 * x * (1 - x), y: 1},
    "mean": {x: 4 * MEAN * (1 - MEAN), y: 4 * MEAN * (1 - MEAN)},
}


@pytest.mark.parametrize("updates", LOST.values(), ids=LOST)
def test_a_direction_that_an_update_loses(updates):
    """-inf, not the logarithm of what rounding leaves of it, beside the log 2 of 4 x (1 - x); the picture has the latter."""
    lost = Map("test.lost", SOURCE, {}, updates, (), {x: 0.3, y: 0.1})
    found = odesim.lyapunov(lost, steps=1000)  # whose mean of log |f'| nears log 2 by a part of 1 / steps
    assert found["value"].values == pytest.approx([np.log(2), -np.inf], abs=0.02)
    assert float(found["dimension"]) == 1.0 and np.isfinite(np.ravel(found.odesim.plot())[0].get_ylim()).all()


@pytest.mark.parametrize(
    ("values", "dimension"), [([0.9056, 0.0, -14.5723], 2.06215), ([-1.0, -2.0], 0.0), ([1.0, -2.0], 1.5), ([0.5, 0.1], 2.0)]
)
def test_dimension(values, dimension):
    """The formula by hand."""
    assert kaplan_yorke(np.array(values)) == pytest.approx(dimension, abs=1e-5)


WRONG = {
    "noise": ("particles.noisy_circle", "has noise, and exponents are for equations without"),
    "noise without a step": (system({x: -x}, noise={x: {symbols("B"): 1}}), "has noise, and exponents are for equations without"),
    "large": (system({v[m]: -v[m]}, axes={m: M}, sizes={M: 65}), "at most 64 states"),
    "domain": (
        system({symbols("s", positive=True): -1}, span=(0.0, 3.0)),
        "the run ends before .* left .0, inf., which its symbol assumes",
    ),
    "blow-up": (system({x: x**2}, start=1.0, span=(0.0, 3.0)), "the run ends before"),
    "event": (
        system({x: 1}, span=(0.0, 3.0), events=(Event("far", x - 2, 1, terminal=True),)),
        "the run ends before .* event far at t = 1.5",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_is_a_sentence(name):
    """What has no exponents is refused."""
    model, words = WRONG[name]
    with pytest.raises(OdesimError, match=words):
        odesim.lyapunov(model)


WORDS = ["lyapunov", "joma.nonlinear", "--size", "M=2", "--span", "0:9"]


def test_the_command(tmp_path, monkeypatch):
    """Prints a table in 80 columns, stores and draws; refuses with code 2 and writes nothing."""
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, [*WORDS, "--span", "1", "--out", "e.nc"]).exit_code == 2 and not list(tmp_path.iterdir())
    done = CliRunner().invoke(cli, [*WORDS, "--out", "e.nc", "--plot", "e.png"])
    assert done.exit_code == 0 and max(map(len, done.stdout.splitlines())) <= 80, done.output
    assert {path.name for path in tmp_path.iterdir()} == {"e.nc", "e.png"}
    # at rest, at mu, the Jacobian is diagonal with -exp(mu^2 / 2)
    printed = json.loads(CliRunner().invoke(cli, [*WORDS, "--set", "mu=1,1.5", "--init", "v=1,1.5", "--json"]).stdout)
    assert printed["value"] == pytest.approx([-np.exp(0.5), -np.exp(1.125)], rel=1e-5)
