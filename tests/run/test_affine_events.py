"""Events that are affine in the state: their zeros are those of the polynomial through the samples of a step, found for many at once."""

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from sympy import Interval, oo, symbols

import odesim
from odesim.symbolic import Event, IndexedBase, Param, Source, System, sizes, time
from tests.support.matrix import slow_but

(K,) = sizes("K")
x, y = symbols("x y", real=True)
w = symbols("w", positive=True)
level, slope = (IndexedBase(name, shape=(K,)) for name in ("level", "slope"))
T1, N = 9.0, 11


@cache
def swinging(count: int) -> System:
    """x = cos(w t), which passes levels that move: near the turning points it passes one twice within a part of a step."""
    return System(
        name="test.swinging",
        source=Source("none", "test"),
        axes={},
        equations={x: w * y, y: -w * x},
        params=(
            Param(w, 1.0, Interval.open(0, oo), "angular velocity"),
            Param(level, 0.0, Interval(-oo, oo), "where"),
            Param(slope, 0.0, Interval(-oo, oo), "how fast it moves"),
        ),
        initial={x: 1.0, y: 0.0},
        sizes={K: count},
        span=(0.0, T1),
        events=(*(Event(f"e{j}", x - level[j] - slope[j] * time) for j in range(count)), Event("down", 2 * x + y - 1, -1)),
    )


def own(count: int) -> dict[str, np.ndarray]:
    """Parameters of N members: of the levels a third lies close to a turning point."""
    rng = np.random.default_rng(count)
    near = rng.choice([-1, 1], (N, count)) * (1 - 10 ** rng.uniform(-5, -1, (N, count)))
    levels = np.where(rng.random((N, count)) < 1 / 3, near, rng.uniform(-1.2, 1.2, (N, count)))
    return {"w": rng.uniform(0.4, 3.0, N), "level": levels, "slope": rng.choice([0.0, 0.02, -0.05], (N, count))}


def passes(speed: float, level: float, slope: float) -> np.ndarray:
    """All t in (0, T1) at which cos(speed t) - level - slope t changes its sign: one between any two extrema."""

    def g(t: float) -> float:
        return float(np.cos(speed * t) - level - slope * t)

    first = np.arcsin(-slope / speed)
    turns = np.sort(np.concatenate([first + 2 * np.pi * np.arange(-1, 9), np.pi - first + 2 * np.pi * np.arange(-1, 9)])) / speed
    ends = np.concatenate([[1e-9], turns[(turns > 1e-9) & (turns < T1)], [T1]])
    return np.array([brentq(g, a, b, xtol=1e-14) for a, b in pairwise(ends) if g(a) * g(b) < 0])


# more levels than a float has bits share the last mark
CASES = slow_but([("tsit5", 3), ("tsit5", 7), ("vern7", 7), ("dop853", 7), ("rodas5p", 7), ("tsit5", 61)], [("tsit5", 3)], several=True)


@pytest.mark.parametrize(("method", "count"), CASES)
def test_levels_that_are_passed(method: str, count: int) -> None:
    """Every passage is found, and no other: by brute force between the extrema of the closed form."""
    params = own(count)
    run = odesim.ensemble(swinging(count), params=params, method=method, rtol=1e-9, atol=1e-9, max_events=12)
    for i in range(N):
        for j in range(count):
            due = passes(params["w"][i], params["level"][i, j], params["slope"][i, j])
            assert int(run[f"e{j}_count"][i]) == len(due), (i, j)
            # x is off by some 1e-7 at most, a passage by that over the speed there
            speed = np.abs(params["w"][i] * np.sin(params["w"][i] * due) + params["slope"][i, j])
            assert np.all(np.abs(run[f"e{j}_t"].values[i, : len(due)] - due) * speed < 1e-6)
    falls = (np.arccos(1 / np.sqrt(5)) - np.arctan(0.5) + 2 * np.pi * np.arange(9)) / params["w"][:, None]
    np.testing.assert_array_equal(run.down_count, (falls < T1).sum(axis=1))


@pytest.mark.slow
@pytest.mark.parametrize(("method", "count"), CASES)
def test_bits_of_single_runs(method: str, count: int) -> None:
    """In strict mode members have the zeros of `integrate`, every bit."""
    params = own(count)
    asked: dict[str, Any] = {"method": method, "strict": True, "rtol": 1e-6, "atol": 1e-6}
    run = odesim.ensemble(swinging(count), params=params, max_events=12, **asked)
    for i in (0, N - 1):
        one = odesim.integrate(swinging(count), params={name: values[i] for name, values in params.items()}, **asked)
        for name in one.events:
            due = np.array([event["t"] for event in one.events[name]])
            np.testing.assert_array_equal(run[f"{name}_t"].values[i, : len(due)], due)
            assert int(run[f"{name}_count"][i]) == len(due)
