"""Gradient descent on a loss l(x y) of one product: from |y|^2 above 2/eta it ends just below it, wherever it began.

l(s) = s^2/2 - c s^4/4 + ..., so that the sharpness at the minimum x = 0 is y^2. Above 2/eta x oscillates and grows, and lowers y, until
y^2 = 2/eta - eta/(2c) (1 + O(eta^2)): the orbit that leaves the edge is the same for all that come from far above. From y^2 below 2/eta
the end is near that of gradient flow, y^2 - x^2 of the start.

Losses by `shape`: 0 is sqrt(1 + s^2), c = 1/2; 1 is ln cosh s, c = 1/3.
Assumed: |y| > |x|; about 1/eta^2 steps.
"""

from sympy import FiniteSet, Interval, Piecewise, oo, sqrt, symbols, tanh

from odesim.symbolic import Map, Param, Source

x, y = symbols("x y", real=True)
eta = symbols("eta", positive=True)
shape = symbols("shape", real=True)
s = x * y
slope = Piecewise((s / sqrt(1 + s**2), shape < 0.5), (tanh(s), True))

SYSTEM = Map(
    name="edge.product",
    source=Source("ahn2023threshold", "Section 3"),
    axes={},
    updates={x: x - eta * y * slope, y: y - eta * x * slope},
    params=(
        Param(eta, 0.1, Interval.open(0, oo), "learning rate"),
        Param(shape, 0.0, FiniteSet(0, 1), "0: the loss sqrt(1 + s^2), 1: ln cosh s"),
    ),
    initial={x: 0.1, y: 5.0},
    steps=1000,
    observables={"sharpness": y**2, "gap": 2 / eta - y**2},
    display={"slope": slope},
)
