"""Gradient descent at the edge of stability, reduced to two numbers: x along the top eigenvector, y = eta sharpness - 2.

x grows while the sharpness is above 2/eta, y > 0; its square brings the sharpness down again; the gradient raises it. Slowly,
u = b x^2/(2 ea) moves as u' = 2 u y, y' = ea (1 - u), which keeps H = y^2 + ea (u - ln u - 1). The map does not: each of its cycles is
larger than the last, by the factor 1 + 2 ea in H near the fixed point x^2 = 2 ea/b, y = 0. It ends in one of two ways: x vanishes in
rounding and y rises for ever, or x runs away.

Assumed: the cubic expansion of the loss, one direction; ea is the learning rate times the speed at which the gradient raises the sharpness.
"""

from sympy import Interval, log, oo, symbols

from odesim.symbolic import Map, Param, Source

x, y = symbols("x y", real=True)
ea, b = symbols("ea b", positive=True)
u = b * x**2 / (2 * ea)

SYSTEM = Map(
    name="edge.self_stabilisation",
    source=Source("damian2023self", "Section 4", "in units of the learning rate"),
    axes={},
    updates={x: -(1 + y) * x, y: y + ea - b * x**2 / 2},
    params=(
        Param(ea, 1e-2, Interval.open(0, oo), "learning rate squared times progressive sharpening"),
        Param(b, 1.0, Interval.open(0, oo), "how strongly x^2 lowers the sharpness"),
    ),
    initial={x: 0.1, y: -0.05},
    steps=200,
    observables={"u": u, "H": y**2 + ea * (u - log(u) - 1)},
)
