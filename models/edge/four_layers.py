"""Gradient descent on (x y z w - 1)^2/2, four scalar layers, from x = z and y = w: it ends with a sharpness just below 2/eta.

At the minimum the sharpness is the sum of 1/x_i^2. The gap to 2/eta is eta/2 for small eta.

From x = 4, y = .2 and eta = .1 the first hundred steps are chaotic, a rounding becomes .03; the end is the same. Assumed: x = z and
y = w, which gradient descent keeps: two numbers.
"""

from sympy import Interval, oo, symbols

from odesim.symbolic import Map, Param, Source

x, y = symbols("x y", real=True)
eta = symbols("eta", positive=True)
error = x**2 * y**2 - 1
sharpness = 2 / x**2 + 2 / y**2

SYSTEM = Map(
    name="edge.four_layers",
    source=Source("zhu2023edge", "Section 2"),
    axes={},
    updates={x: x - eta * error * x * y**2, y: y - eta * error * x**2 * y},
    params=(Param(eta, 0.1, Interval.open(0, oo), "learning rate"),),
    initial={x: 3.5, y: 0.29},
    steps=2000,
    observables={"loss": error**2 / 2, "sharpness": sharpness, "gap": 2 / eta - sharpness},
    display={"error": error},
)
