"""particles.sphere from two clusters of m1 and m2 equal tokens with inner product r: one equation until they merge.

dr/dt = (1 - r^2) (m2 / (m1 exp(beta (1 - r)) + m2) + m1 / (m2 exp(beta (1 - r)) + m1)). At large beta the clusters live for a time of
order exp(beta (1 - r)): they are metastable.

Assumed: Q = K = V = I, no mask; -1 < r < 1 at the start.
"""

from typing import Any

import numpy as np
from scipy.integrate import quad
from sympy import Interval, exp, oo, symbols

from odesim.symbolic import ClosedForm, Param, Source, System

r = symbols("r", real=True)
beta = symbols("beta", nonnegative=True)
m1, m2 = symbols("m1 m2", positive=True)
barrier = exp(beta * (1 - r))
rate = (1 - r**2) * (m2 / (m1 * barrier + m2) + m1 / (m2 * barrier + m1))


def passage(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """By how much r is off: the integral of dr / rate minus the time, times the rate."""
    beta, m1, m2 = (float(params[name]) for name in ("beta", "m1", "m2"))

    def slowness(r: float) -> float:
        barrier = np.exp(beta * (1 - r))
        return float(1 / ((1 - r**2) * (m2 / (m1 * barrier + m2) + m1 / (m2 * barrier + m1))))

    start, end = float(y0["r"]), float(y["r"])
    return np.asarray((quad(slowness, start, end, epsabs=1e-11, epsrel=1e-11, limit=200)[0] - t) / slowness(end))


SYSTEM = System(
    name="particles.two_clusters",
    source=Source("geshkovski2023mathematical", "eq. SA", "two clusters, metastability"),
    axes={},
    equations={r: rate},
    params=(
        Param(beta, 4.0, Interval(0, oo), "inverse temperature"),
        Param(m1, 20.0, Interval.open(0, oo), "tokens of the first cluster"),
        Param(m2, 12.0, Interval.open(0, oo), "tokens of the second cluster"),
    ),
    initial={r: 0},
    span=(0.0, 10.0),
    time="depth",
    closed_forms=(ClosedForm("time of passage", "from -1 < r < 1, before they have merged", passage, "implicit"),),
)
