"""A System whose conditions change at times that are each member's own."""

from typing import Any

import numpy as np
from sympy import Interval, Mod, Piecewise, Rational, oo, symbols

from odesim.symbolic import Event, IndexedBase, Param, Source, System, index, sizes
from odesim.symbolic import time as t

(m,), (M,) = index("m"), sizes("M")
z, late = IndexedBase("z", shape=(M,)), IndexedBase("late", shape=(M,))
q, w = symbols("q w", real=True)
REALS = Interval(-oo, oo)

PULSES = System(
    name="pulses",
    source=Source("own", "test"),
    axes={m: M},
    equations={z[m]: Piecewise((1, t < late[m]), (0, True)) + Piecewise((2, Mod(t, q) <= w), (0, True)) - z[m] * z[0]},
    params=(Param(late, 1.0, REALS, ""), Param(q, 1.0, REALS, ""), Param(w, 0.2, REALS, "")),
    initial={z[m]: Rational(1, 2)},
    sizes={M: 2},
    span=(0.0, 4.0),
    events=(Event("one", z[m] - 1), Event("high", z[1] - Rational(21, 10), 1, True)),
)


def own(count: int, states: int = 2) -> dict[str, Any]:
    """Parameters of so many members; one has no pulses, one no number for its threshold."""
    rng = np.random.default_rng(7)
    found = {"late": rng.uniform(-1, 5, (count, states)), "q": rng.uniform(0.4, 3, count)}
    found["q"][1], found["late"][2] = 100.0, np.nan
    return found
