"""Adjoints: gradients against forward sensitivities, and fits of many numbers against closed forms and scipy."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import curve_fit
from sympy import Interval, Piecewise, exp, oo, symbols

import odesim
from odesim.dynamics import fit
from odesim.dynamics.adjoint import Adjoint, adjoint_obstacle
from odesim.dynamics.residuals import predictions
from odesim.store.curves import Measured
from odesim.symbolic import Event, IndexedBase, Map, Param, Source, System, index, sizes, time

SOURCE = Source("none", "made for the tests")
(m,), (M,) = index("m"), sizes("M")
v, mu = IndexedBase("v", shape=(M,)), IndexedBase("mu", shape=(M,))
(x, a), k = symbols("x a", real=True), symbols("k", positive=True)
RATES = Interval.open(0, oo)
DECAY = System("test.adjoint", SOURCE, {}, {x: -k * x}, (Param(k, 1.0, RATES, "rate"),), {x: 1.5}, span=(0.0, 4.0))
RUNS: dict[str, tuple[list[str], dict[str, Any], list[tuple[str, tuple[int, ...]]]]] = {
    "joma.nonlinear": (["mu", "v"], {"params": {"mu": [1.2, 0.7, 0.9]}, "span": (0, 3)}, [("v", (0,)), ("gap", (1,)), ("entropy", ())]),
    "particles.sphere": (["beta", "x"], {"sizes": {"n": 4}}, [("x", (0, 1)), ("merged", ())]),
}


@pytest.mark.parametrize("model", RUNS)
def test_gradient_is_that_of_forward_sensitivities(model: str) -> None:
    """Of a weighted sum of states and observables at seven times, by parameters and initial values; both are good to some 1e-8."""
    names, values, places = RUNS[model]
    system = odesim.load_model(model)
    measured = [Measured("", quantity, at, "") for quantity, at in places]
    rng = np.random.default_rng(1)
    times = np.sort(rng.uniform(0.05, 0.95, 7)) * float(values["span"][1] if "span" in values else system.span[1])
    values |= {"save": times, "rtol": 1e-10, "atol": 1e-12}
    now, slopes = predictions(odesim.integrate(model, sensitivities=names, **values), measured, names)
    weights = rng.normal(size=now.shape)
    run = odesim.integrate(model, **values)
    gradient = Adjoint(system, names, measured, run).gradient(run, times, weights)
    forward = np.einsum("tc,tcp->p", weights, slopes)
    np.testing.assert_allclose(np.concatenate([np.ravel(gradient[n]) for n in names]), forward, rtol=0, atol=1e-6 * np.abs(forward).max())


def test_many_rates_are_found() -> None:
    """Three hundred decays, each seen at twelve times, by the adjoint: their rates come out, without intervals."""
    system = System(
        "test.decays",
        SOURCE,
        {m: M},
        {v[m]: -mu[m] * v[m]},
        (Param(mu, 1.0, RATES, "rates"),),
        {v[m]: 1.0},
        sizes={M: 300},
        span=(0.0, 2.0),
    )
    truth, T = np.random.default_rng(0).uniform(0.3, 3, 300), np.linspace(0.1, 2, 12)
    result = odesim.fit(system, {"t": T, "v": np.exp(-np.outer(T, truth))}, free=["mu"], starts=1)
    np.testing.assert_allclose(result["value"], truth, atol=2e-5)  # the descent ends where the sum of squares is 1e-11
    assert result.attrs["status"] == "ok" and np.isnan(result["error"]).all() and "correlation" not in result


def test_a_fit_by_the_adjoint_is_that_of_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least squares of noisy data with gaps, some of them twice, weighted by their deviations."""
    monkeypatch.setattr(fit, "MANY", 0)
    T = np.append(np.linspace(0.2, 4, 20), [2.2, 1.0])
    data = {"t": T, "x": 2 * np.exp(-0.7 * T) + 0.05 * np.random.default_rng(1).normal(size=len(T)), "s": np.linspace(0.02, 0.1, len(T))}
    data["x"][3] = np.nan
    there = np.isfinite(data["x"])
    best, _ = curve_fit(lambda t, k, x0: x0 * np.exp(-k * t), T[there], data["x"][there], (1, 1), sigma=data["s"][there], xtol=1e-12)
    result = odesim.fit(DECAY, data, free=["k", "x"], sigma={"x": "s"}, starts=2)
    np.testing.assert_allclose(result["value"], best, rtol=1e-4)  # the square root of what a flat sum of squares is good to
    assert result.attrs["agreed"] == 2 and np.isnan(result["low"]).all()


def test_a_stiff_run_is_fitted_forwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its derivatives are those of rodas5p, with intervals: backwards an explicit method would follow the fast rate."""
    monkeypatch.setattr(fit, "MANY", 0)
    stiff = replace(DECAY, equations={x: -1e5 * (x - exp(-k * time))}, initial={x: 1.0})
    T = np.linspace(0.2, 4, 12)
    data = {"t": T, "x": np.exp(-0.7 * T) * 1e5 / (1e5 - 0.7)}  # what the fast rate leaves
    result = odesim.fit(stiff, data, free=["k"], starts=1)
    assert result.attrs["method"] == "rodas5p" and np.isfinite(result["error"]).all()
    np.testing.assert_allclose(result["value"], 0.7, rtol=1e-6)


HIT = (Event("hit", x - 1, -1, resets={x: 2 * x}),)
NONE: dict[str, tuple[System, list[str], str]] = {
    "map": (Map("test.map", SOURCE, {}, {x: x - k * x}, (Param(k, 0.1, RATES, "rate"),), {x: 1.0}), ["k"], "it is a Map"),
    "resets": (System("test.hits", SOURCE, {}, {x: -k * x}, DECAY.params, {x: 1.5}, events=HIT), ["k"], "events set states"),
    "switches": (
        System("test.on", SOURCE, {}, {x: Piecewise((-k, x > 1), (0, True))}, DECAY.params, {x: 1.5}),
        ["k"],
        "conditions that switch",
    ),
    "none yet": (replace(DECAY, equations={x: Piecewise((-k, time > 9 * k), (0, True))}), ["k"], "conditions that switch"),
    "a pulse of height 0": (
        replace(DECAY, equations={x: k * a * exp(-((100 * time - 211) ** 2)) - x}, params=(*DECAY.params, Param(a, 0.0, doc="height"))),
        ["a"],
        "pulses",
    ),
    "start": (System("test.start", SOURCE, {}, {x: -x}, DECAY.params, {x: exp(-k)}), ["k"], "initial values depend on what is fitted"),
    "none": (DECAY, ["k", "x"], ""),
}


@pytest.mark.parametrize("name", NONE)
def test_what_has_no_adjoint(name: str) -> None:
    """Such fits are by forward sensitivities, whose jumps at events and switches are known."""
    system, names, reason = NONE[name]
    obstacle = adjoint_obstacle(system, names)
    assert reason in obstacle and bool(reason) == bool(obstacle)
