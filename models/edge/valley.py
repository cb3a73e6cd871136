"""Gradient descent in a valley whose steepness changes along it: it drifts up to the edge 2/eta, and along it, not over it.

The loss is S(y) x^2/2 + kap |y - c|^2 / 2, with S = 10 + 6 y1 + 2 y2^2: x is across the valley, y along its floor, c the least loss. The
floor leads to S = 24, beyond the edge 20; there x grows, and its square turns y back. edge.central_flow has y in the mean.

Assumed: a start near the edge. From far below x dies out in rounding, and y then passes the edge for good.
"""

from sympy import Interval, Reals, oo, symbols

from odesim.symbolic import Map, Param, Source

x, y1, y2 = symbols("x y1 y2", real=True)
eta, kap = symbols("eta kap", positive=True)
c1, c2 = symbols("c1 c2", real=True)
S = 10 + 6 * y1 + 2 * y2**2
slope1, slope2 = kap * (y1 - c1), kap * (y2 - c2)
FLOOR = (
    Param(eta, 0.1, Interval.open(0, oo), "learning rate"),
    Param(kap, 0.01, Interval.open(0, oo), "curvature of the floor"),
    Param(c1, 2.0, Reals, "y1 of the least loss"),
    Param(c2, 1.0, Reals, "y2 of the least loss"),
)

SYSTEM = Map(
    name="edge.valley",
    source=Source("cohen2024central", "Abstract", "an example of one direction"),
    axes={},
    updates={x: x - eta * S * x, y1: y1 - eta * (3 * x**2 + slope1), y2: y2 - eta * (2 * y2 * x**2 + slope2)},
    params=FLOOR,
    initial={x: 0.05, y1: 1.55, y2: 0.3},
    steps=1000,
    observables={"sharpness": S, "excess": eta * S - 2, "loss": S * x**2 / 2 + kap * ((y1 - c1) ** 2 + (y2 - c2) ** 2) / 2},
)
