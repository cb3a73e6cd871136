"""Balls that bounce, with the closed form of each flight."""

from typing import Any

import numpy as np
import sympy as sp
from sympy import Interval, oo

from odesim.symbolic import Event, IndexedBase, Invariant, Param, Source, System, index, sizes

(i,), (N,) = index("i"), sizes("N")
x, v, h = (IndexedBase(name, shape=(N,)) for name in ("x", "v", "h"))
g, c, n = sp.symbols("g c n", real=True)
POSITIVE = Interval.open(0, oo)


def balls(floor: Any = 0, direction: int = -1, **more: Any) -> System:
    """Balls over a floor that fall from h[i] above it; n counts all bounces."""
    return System(
        name="balls",
        source=Source("own", "test"),
        axes={i: N},
        equations={x[i]: v[i], v[i]: -g, n: 0},
        params=(Param(h, 1.0, POSITIVE, "height"), Param(g, 9.81, POSITIVE, "gravity"), Param(c, 0.8, Interval(0, 1), "restitution")),
        initial={x[i]: h[i] + floor, v[i]: 0, n: 0},
        sizes={N: 2},
        span=(0.0, 2.5),
        events=(Event("bounce", x[i] - floor, direction, resets={v[i]: -c * v[i], n: n + 1}),),
        invariants=(Invariant("energy", v[i] ** 2 / 2 + g * x[i], "nonincreasing", tol=1e-9),),
        **more,
    )


BALLS = balls()


def bounces(h: float, g: float = 9.81, c: float = 0.8, end: float = 2.5) -> list[float]:
    """The times at which a ball that falls from h bounces before `end`."""
    found, t, speed = [], np.sqrt(2 * h / g), np.sqrt(2 * g * h)
    while t < end:
        found.append(float(t))
        speed *= c
        t += 2 * speed / g
    return found


def flight(t: float, h: float, g: float = 9.81, c: float = 0.8) -> tuple[float, float]:
    """(height, speed) of such a ball at t."""
    times = bounces(h, g, c, t)
    if not times:
        return h - g * t**2 / 2, -g * t
    speed, passed = float(np.sqrt(2 * g * h) * c ** len(times)), t - times[-1]
    return speed * passed - g * passed**2 / 2, speed - g * passed
