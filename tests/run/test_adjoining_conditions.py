"""Conditions that adjoin: one ends where another begins, the boundary written in a way of its own in each."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy import And, Piecewise, exp, symbols

import odesim
from odesim.symbolic import Param, Source, System
from odesim.symbolic import time as t
from tests.run.test_switches import REALS

s, z = symbols("s z", real=True)
b = symbols("b1 b2 b3", real=True)
END = 3.0
WAYS: tuple[Any, ...] = (
    lambda u: u,
    lambda u: u**2,
    lambda u: u**3,
    exp,
    lambda u: u / 3,
    lambda u: (u + 1) * (u + 2),
    lambda u: -1 / (1 + u),
)


@cache
def windows(seed: int, otherwise: int) -> tuple[System, tuple[float, ...]]:
    """s moves at another speed between each two of its thresholds, at `otherwise` where no window holds, which is nowhere; the speeds."""
    rng = np.random.default_rng(seed)
    speeds = tuple(float(v) for v in rng.uniform(0.6, 2.0, 4))
    parts = []
    for k, v in enumerate(speeds):
        sides = [(-1, b[k])] if k < 3 else []
        sides += [(1, b[k - 1])] if k > 0 else []
        held = []
        for side, at in sides:
            way = WAYS[rng.integers(len(WAYS))]
            held.append(way(s) > way(at) if side > 0 else way(s) <= way(at))
        parts.append((v, And(*held)))
    params = tuple(Param(p, 1.0, REALS, "a threshold") for p in b)
    rates = {s: Piecewise(*parts, (otherwise, True)), z: 1}
    made = System(
        name="windows", source=Source("own", "test"), axes={}, equations=rates, params=params, initial={s: 0, z: 0}, span=(0, END)
    )
    return made, speeds


def arrival(bounds: Any, speeds: Any) -> float:
    """s(END): at each threshold the speed changes."""
    left, at = END, 0.0
    for bound, v in zip(bounds, speeds, strict=False):
        if at + v * left < bound:
            return float(at + v * left)
        left, at = left - (bound - at) / v, bound
    return float(at + speeds[-1] * left)


@pytest.mark.first(2)
@pytest.mark.parametrize("method", ["tsit5", "rodas5p", "vern7"])
@pytest.mark.parametrize("otherwise", [0, -1])
def test_adjoining_windows(otherwise: int, method: str) -> None:
    """A run goes on from each window to the next, though rounding leaves a gap between them in which it would stop or go back."""
    for seed in range(2):
        made, speeds = windows(seed, otherwise)
        for bounds in np.sort(np.random.default_rng(seed).uniform(0.1, 2.0, (4, 3)), axis=1):
            run = odesim.integrate(made, params=dict(zip(map(str, b), bounds, strict=True)), method=method, backend="numpy")
            assert (run.status, float(run.final["s"])) == ("ok", pytest.approx(arrival(bounds, speeds), abs=1e-9)), (seed, bounds)


def test_slopes_across_adjoining_windows() -> None:
    """Where the gap would stop the run, slopes are those of the speeds before and after it."""
    names = tuple(map(str, b))
    for seed in range(3):
        made, speeds = windows(seed, 0)
        for bounds in np.sort(np.random.default_rng(seed + 10).uniform(0.1, 1.0, (4, 3)), axis=1):
            run = odesim.integrate(made, params=dict(zip(names, bounds, strict=True)), sensitivities=names, backend="numpy")
            # s(END) = b3 + v4 (END - b1/v1 - (b2 - b1)/v2 - (b3 - b2)/v3)
            v = speeds
            slopes = [v[3] * (1 / v[1] - 1 / v[0]), v[3] * (1 / v[2] - 1 / v[1]), 1 - v[3] / v[2]]
            assert [float(run.final[f"ds_d{name}"]) for name in names] == pytest.approx(slopes, abs=1e-9)


@pytest.mark.slow  # a kernel of its own; test_resting_conditions.py has members whose conditions change
def test_members_across_adjoining_windows() -> None:
    """As single runs."""
    made, speeds = windows(1, -1)
    bounds = np.sort(np.random.default_rng(7).uniform(0.1, 2.0, (30, 3)), axis=1)
    runs = odesim.ensemble(made, params=dict(zip(map(str, b), bounds.T, strict=True)), method="tsit5")
    assert runs["s"].values[:, -1] == pytest.approx([arrival(at, speeds) for at in bounds], abs=1e-9)


@pytest.mark.parametrize("after", [s >= b[0], s**2 >= b[0] ** 2, exp(s) >= exp(b[0])])
def test_a_condition_on_time_beside_one_on_states(after: Any) -> None:
    """s = t up to b1, where one window ends by the time and another begins by the state."""
    rate = Piecewise((1, t < b[0]), (2, after), (0, True))
    made = System(
        name="clock", source=Source("own", "test"), axes={}, equations={s: rate, z: 1}, params=(Param(b[0], 1.0, REALS, "a threshold"),),
        initial={s: 0, z: 0}, span=(0, END),
    )  # fmt: skip
    for at in np.random.default_rng(8).uniform(0.2, 2.5, 30):
        run = odesim.integrate(made, params={"b1": at}, method="tsit5", backend="numpy")
        assert float(run.final["s"]) == pytest.approx(at + 2 * (END - at), abs=1e-9), at


def test_a_boundary_that_pushes_back_still_does() -> None:
    """Both sides of s = b1 lead to it, however it is written: sliding, not a way through."""
    for way in WAYS:
        rate = Piecewise((1, s < b[0]), (-1, way(s) > way(b[0])), (sp.Rational(-1, 2), True))
        made = System(
            name="pit", source=Source("own", "test"), axes={}, equations={s: rate}, params=(Param(b[0], 1.0, REALS, "a threshold"),),
            initial={s: 0}, span=(0, END),
        )  # fmt: skip
        for at in np.random.default_rng(9).uniform(0.2, 2.5, 4):
            run = odesim.integrate(made, params={"b1": at}, method="tsit5", backend="numpy")
            assert (run.status, float(run.t[-1])) == ("sliding", pytest.approx(at, abs=1e-9)), (way(s), at)
