"""Members whose events are dips, narrower than the pieces of a step and anywhere in it."""

from typing import Any

import numpy as np
from sympy import Interval, Max, oo, symbols

from odesim.symbolic import Event, Param, Source, System

x, y, z, c, w, e = symbols("x y z c w e", real=True)
T1 = 10.0
COUNT = 24
"""More than the lanes of a vector."""
DIPS = System(
    name="test.dips",
    source=Source("none", "test"),
    axes={},
    equations={x: 1, y: z, z: -y},
    params=(Param(c, 2.0, Interval(0, oo), "where"), Param(w, 0.1, Interval(0, oo), "width"), Param(e, 9.0, Interval(0, oo), "end")),
    initial={x: 0.0, y: 0.0, z: 1.0},
    span=(0.0, T1),
    events=(
        Event("square", (x - c) ** 2 - w**2 / 4),
        Event("arms", Max(c + 0.5 - x, 3 * (x - c - 0.5 - w))),
        Event("top", y - 1 + w**2 / 8, 1),
        Event("stop", w**2 / 4 - (x - e) ** 2, 1, terminal=True),
    ),
)  # fmt: skip


def own() -> dict[str, Any]:
    """Each member's numbers: widths from 1e-5 to 0.3; a third of the members end in the last dip."""
    rng = np.random.default_rng(7)
    return {
        "c": rng.uniform(0.5, 7.0, COUNT),
        "w": 10 ** rng.uniform(-5, np.log10(0.3), COUNT),
        "e": np.where(np.arange(COUNT) % 3 == 0, rng.uniform(8.0, 9.8, COUNT), 20.0),
    }
