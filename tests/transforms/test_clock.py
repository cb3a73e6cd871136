"""The rescaled form of a System against its own right-hand side and growth rate, in numpy."""

from typing import Any

import numpy as np
import pytest

from odesim.inputs.registry import load_model
from odesim.symbolic.system import System
from odesim.targets.compiled import compile_system
from odesim.targets.numpy_text import evaluate
from odesim.transforms.clock import BLOW_UP, BLOW_UP_MARGIN, rescaled_clock_system
from tests.models.test_generated import near_start
from tests.support.models import GROWING


def values(system: System, given: Any, states: dict[str, Any], t: float) -> tuple[dict[str, Any], float]:
    """({state: right-hand side}, growth) by whole arrays."""
    env = {**given.params, **states, "t": t}
    rates = compile_system(system, backend="numpy").arrays(given.sizes, env)
    return {n: np.asarray(rates[f"d_{n}"]) for n in states}, float(evaluate(system.growth, (), system.axes, given.sizes, env))


@pytest.mark.parametrize("name", GROWING)
def test_right_side_and_event(name: str) -> None:
    """dv/ds = f/g and dt/ds = 1/g; the blow-up's event is BLOW_UP_MARGIN (t - t0) d ln g/ds - 1/g, the slope of ln g by differences along
    the flow (step 1e-6: 1e-10 from rounding); g is positive."""
    system, given, _ = near_start(load_model(name))
    other, t, t0 = rescaled_clock_system(system), 0.7, 0.2
    rng = np.random.default_rng(5)
    compiled = compile_system(system, backend="numpy")
    states = {n: rng.normal(0, 0.7, shape) for n, shape in zip(system.states, compiled.layout(given.sizes).shapes, strict=True)}
    f, g = values(system, given, states, t)
    made = compile_system(other, backend="numpy")
    env = {**given.params, **states, "clock": t, "clock_start": t0, "clock_stop": 9.0, "t": 0.0}
    found = made.arrays(given.sizes, env)
    assert g > 0 and float(found["d_clock"]) == pytest.approx(1 / g, rel=1e-13)
    for n in states:
        np.testing.assert_allclose(found[f"d_{n}"], f[n] / g, rtol=1e-12, atol=1e-15)
    h = 1e-6
    ends = [values(system, given, {n: states[n] + s * h * f[n] / g for n in states}, t + s * h / g)[1] for s in (1, -1)]
    slope = (np.log(ends[0]) - np.log(ends[1])) / (2 * h)
    assert made.events_arrays is not None
    late = {
        **env,
        "clock": t0 + 1 / BLOW_UP_MARGIN,
    }  # where the first term of the event is the slope itself; no right-hand side here reads t
    event = made.events_arrays(given.sizes, late)[f"event{[e.name for e in other.events].index(BLOW_UP)}"]
    assert float(event) + 1 / g == pytest.approx(slope, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", GROWING)
def test_no_overflow(name: str) -> None:
    """Where exp(v^2/2) overflows, at v = 60, every rate in s is finite: 1/g falls to 0."""
    system, given, _ = near_start(load_model(name))
    made = compile_system(rescaled_clock_system(system), backend="numpy")
    shapes = compile_system(system, backend="numpy").layout(given.sizes).shapes
    states = {n: np.linspace(1, 60, int(np.prod(shape))).reshape(shape) for n, shape in zip(system.states, shapes, strict=True)}
    found = made.arrays(given.sizes, {**given.params, **states, "clock": 1.0, "clock_start": 0.0, "clock_stop": 9.0, "t": 0.0})
    assert all(np.isfinite(value).all() for value in found.values()) and found["d_clock"] == 0
