"""One direction in d dimensions: how long gradient flow needs to leave the equator, by the information exponent k.

m is the overlap of a unit vector with the direction that it learns. The loss near m = 0 is -m^k, k the first Hermite coefficient that the
target has, and a random start has m of about d^(-1/2). The time to m = 1/2 is of order 1 for k = 1, ln(d)/4 for k = 2, and of order
d^((k - 2)/2) above: sqrt(d)/3 for k = 3, d/8 for k = 4.

Assumed: population loss of the k-th Hermite part alone, gradient flow on the sphere. The number of samples that online SGD needs is
another: of order d, d ln d and d^(k - 1), since its step has to shrink. From m < 0 an odd k > 1 stays at or below 0 for ever.
"""

from typing import Any

import numpy as np
from sympy import Interval, Naturals, Rational, Symbol, oo, sqrt, symbols

from odesim.symbolic import ClosedForm, Constraint, Event, Param, Source, System

m = symbols("m", real=True)
k, d = Symbol("k", integer=True, positive=True), symbols("d", positive=True)


def antiderivative(m: float, k: int) -> float:
    """The integral of 1/(m^(k - 1) (1 - m^2)): that of k - 2, and of m^(1 - k)."""
    if k == 1:
        return float(np.arctanh(m))
    if k == 2:
        return float(np.log(m**2 / (1 - m**2)) / 2)
    return antiderivative(m, k - 2) + float(m ** (2 - k) / (2 - k))


def time_to(m: float, m0: float, k: int) -> float:
    """The time from m0 to m, 0 < m0, m < 1."""
    return (antiderivative(m, k) - antiderivative(m0, k)) / k


def passage(t: float, y: dict[str, Any], y0: dict[str, Any], params: dict[str, Any]) -> np.ndarray:
    """By how much time is off, times 1 - m^2: near m = 1 a rounding of m is a long time."""
    m, m0, k = float(y["m"]), float(y0["m"]), int(params["k"])
    return np.array((time_to(m, m0, k) - t) * (1 - m**2))


SYSTEM = System(
    name="scaling.single_index",
    source=Source("benarous2021online", "abstract", "gradient flow of the population loss"),
    axes={},
    equations={m: k * m ** (k - 1) * (1 - m**2)},
    params=(
        Param(k, 3, Naturals, "information exponent: the first Hermite coefficient of the target that is not 0"),
        Param(d, 100.0, Interval(1, oo), "dimension, which sets the overlap at the start, d^(-1/2)"),
    ),
    constraints=(Constraint("m is an overlap of unit vectors", 1 - m**2, ">=0", 1e-6),),
    initial={m: 1 / sqrt(d)},
    span=(0.0, 4.0),
    time="steps times learning rate",
    observables={"loss": -(m**k)},
    events=(Event("half way", m - Rational(1, 2), doc="the overlap is 1/2"),),
    closed_forms=(ClosedForm("passage", "from 0 < m < 1", passage, "implicit"),),
)
