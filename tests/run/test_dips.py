"""Events, conditions and guards that are met and left again between two samples of a step, by every engine."""

from typing import Any

import numpy as np
import pytest
from sympy import Abs, Interval, Max, Piecewise, oo, symbols

import odesim
from odesim.symbolic import Param, Source, System
from tests.support.dips import COUNT, DIPS, T1, own

x, y, r, b, c = symbols("x y r b c", real=True)
f = symbols("f", nonnegative=True)
ENGINES: list[Any] = [
    {"method": "tsit5"},
    {"method": "rodas5p"},
    *(
        pytest.param(options, marks=pytest.mark.slow)
        for options in ({"method": "vern7"}, {"method": "dop853"}, {"method": "rk4", "step": 0.05}, {"method": "rodas4"})
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("options", ENGINES, ids=str)
def test_dips_of_members(options: dict[str, Any]) -> None:
    """Where closed forms put them, in strict mode with the bits of single runs."""
    asked = {"strict": True, "rtol": 1e-8, "atol": 1e-8, "save": np.linspace(0.0, T1, 3), **options}
    params = own()
    run = odesim.ensemble(DIPS, params=params, **asked)
    middle, half, end = params["c"], params["w"] / 2, params["e"]
    ends = np.minimum(end - half, T1)
    np.testing.assert_allclose(run.t_end, ends, atol=1e-9)
    np.testing.assert_array_equal(run.status == 1, end < T1)
    for name, first in (("square", middle - half), ("arms", middle + 0.5)):
        np.testing.assert_array_equal(run[f"{name}_count"], 2)
        np.testing.assert_allclose(run[f"{name}_t"][:, :2], first[:, None] + 2 * half[:, None] * [0, 1], atol=1e-9)
    wide = half > 0.01  # the top of the wave is off by the error of y, 1e-6 or so, divided by w
    np.testing.assert_allclose(run.top_t[wide, 0], np.pi / 2 - 2 * np.arcsin(half[wide] / 2), atol=1e-3)
    for i in (0, 1, COUNT - 1):
        one = odesim.integrate(DIPS, params={name: float(values[i]) for name, values in params.items()}, **asked)
        for event in DIPS.events:
            np.testing.assert_array_equal(
                run[f"{event.name}_t"][i, : len(one.events[event.name])], np.array([found["t"] for found in one.events[event.name]])
            )


CONDITIONS: dict[str, Any] = {
    "square": (x - c) ** 2 < b**2,
    "larger one": Max(x - c, c - x) < b,
    "distance": Abs(x - c) < b,
    "fourth power": (x - c) ** 4 < b**4,
    "above": b**2 - (x - c) ** 2 > 0,
}


def pulse(condition: Any) -> System:
    """x' = 6 where the condition holds, else 1, from 0 to 6: 6 + 10 b/6 at the end where the band lies inside."""
    return System(
        name="test.pulse",
        source=Source("none", "test"),
        axes={},
        equations={x: 1 + 5 * Piecewise((1, condition), (0, True))},
        params=(Param(b, 0.03, Interval(0, oo), "half a width"), Param(c, 1.0, Interval(0, oo), "middle")),
        initial={x: 0.0},
        span=(0.0, 6.0),
    )


@pytest.mark.first(2)
@pytest.mark.parametrize("method", ["tsit5", "vern7", "dop853", "rodas5p"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_a_band_is_met(name: str, method: str) -> None:
    """A condition on a state that holds for less than a piece of a step: the speed in it counts."""
    rng = np.random.default_rng(len(name) + len(method))
    for half in 10 ** rng.uniform(-6, -0.6, 8):
        run = odesim.integrate(pulse(CONDITIONS[name]), params={"b": half, "c": rng.uniform(0.7, 5)}, method=method, backend="numpy")
        assert run.status == "ok"
        # the right-hand side is constant on both sides, and the boundaries are found to a rounding of x
        assert float(run.final["x"]) == pytest.approx(6 + half / 0.6, abs=1e-12)


@pytest.mark.parametrize("method", ["tsit5", "vern7", "rodas5p"])
def test_a_state_leaves_its_set_for_a_moment(method: str) -> None:
    """f = (t - 1)^2 - d, which no step needs to be short for, is below zero from 1 - sqrt(d) on."""
    system = System(
        name="test.leaves",
        source=Source("none", "test"),
        axes={},
        equations={f: r, r: 2},
        params=(),
        initial={f: 1, r: -2},
        span=(0.0, 9.0),
    )
    for depth in 10 ** np.linspace(-7, -1, 7):
        run = odesim.integrate(system, initial={"f": 1 - depth}, method=method, backend="numpy")
        # 1e-9 below zero counts as inside
        assert run.status == "left_domain" and run.t_end == pytest.approx(1 - np.sqrt(depth), abs=1e-9 / np.sqrt(depth))
