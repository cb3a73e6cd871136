"""Runs that end where they come to rest: at the time that a closed form gives, alone and as members, of systems and maps."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from sympy import Interval, symbols

import odesim
from odesim.inputs.events import events_until_rest, with_events
from odesim.inputs.registry import load_model
from odesim.symbolic import IndexedBase, Map, Param, Source, System, index, sizes
from tests.support.models import FLOWS, MAPS

SOURCE = Source("none", "made for the tests")
y, k = symbols("y k", real=True)
(m,), (M,) = index("m"), sizes("M")
v = IndexedBase("v", shape=(M,))
RATE = Param(k, 0.7, Interval(0, 10), "a rate")
# v[m] -> 1 and y -> 0 by the rate k
SYSTEM = System(
    "test.rest", SOURCE, {m: M}, {v[m]: -k * (v[m] - 1), y: -k * y}, (RATE,), {v[m]: 3.0, y: 2.0}, sizes={M: 3}, span=(0.0, 100.0)
)


def speed(t, rate):
    """That of SYSTEM by hand, from v = 3 and y = 2."""
    left = np.exp(-rate * t)
    return rate * left * np.sqrt(3 * 2**2 + 2**2) / np.sqrt(1 + 3 * (1 + 2 * left) ** 2 + (2 * left) ** 2)


@pytest.mark.parametrize("rtol", [1e-6, 1e-8])
def test_the_time(rtol):
    """The run ends where the formula falls below 100 rtol, within what the tolerance of a decayed state leaves."""
    run = odesim.integrate(SYSTEM, until_rest=True, rtol=rtol, atol=1e-12)
    expected = brentq(lambda t: speed(t, 0.7) - 100 * rtol, 0, 100)
    assert run.status == "event" and "at rest" in run.message and run.t_end == pytest.approx(expected, abs=0.02)


def test_members_end_as_runs_do():
    """Each at a time of its own, with the bits of the run; one that is at rest from the start ends there."""
    rates = np.array([0.3, 1.0, 0.0, 2.0])
    words: dict[str, Any] = {"until_rest": True, "strict": True, "method": "tsit5"}
    many = odesim.ensemble(SYSTEM, params={"k": rates}, **words)
    alone = [odesim.integrate(SYSTEM, params={"k": rate}, **words) for rate in rates]
    assert many["t_end"].values.tolist() == [run.t_end for run in alone] and many["t_end"].values[2] == 0
    assert {run.status for run in alone} == {"event"} and many["at_rest_count"].values.tolist() == [1, 1, 1, 1]
    expected = [brentq(lambda t, rate=rate: speed(t, rate) - 1e-4, 0, 100) for rate in rates[rates > 0]]
    np.testing.assert_allclose(
        many["t_end"].values[rates > 0], expected, atol=0.1
    )  # what an error of 1e-6 is to a speed of 1e-4: a hundredth


def test_maps():
    """y -> k y changes by (1 - k) y."""
    run = odesim.integrate(Map("test.rest", SOURCE, {}, {y: k * y}, (RATE,), {y: 1.0}), until_rest=True, steps=100)
    assert run.t_end == np.argmax(0.3 * 0.7 ** np.arange(100) / np.sqrt(1 + 0.49 ** np.arange(100)) < 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FLOWS, *MAPS])  # told by their texts: to load all models takes each worker 10 s
def test_every_model_has_a_speed(name):
    """The event can be written for every model; noise never rests."""
    system = load_model(name)
    assert with_events(system, events_until_rest(system, (), True, 1e-6)).events[-1].terminal
