"""A neuron with a bias learns a threshold only if the learning rate is large: the mean model of gradient descent at the edge.

The network is a ReLU unit of bias b for each sign, with output weights whose scaled sum is A; g(b) = E max(z + b, 0), z normal, and
the loss is l(A g(b)), l the symmetric logistic loss, slope tanh(s/2)/2. The sharpness at A = 0 is d^2 g(b)^2/2. Below eta = 8 pi/d^2 it
is below 2/eta at b = 0 and b stays near 0; above, A oscillates and b falls until the edge is passed.

Assumed: the mean over inputs, b = 0 at the start, a small A.
"""

from sympy import Interval, Rational, erf, exp, oo, pi, sqrt, symbols, tanh

from odesim.symbolic import Map, Param, Source

A, b = symbols("A b", real=True)
eta, d = symbols("eta d", positive=True)
below = (1 + erf(b / sqrt(2))) / 2  # the share of z + b > 0
g = exp(-(b**2) / 2) / sqrt(2 * pi) + b * below
slope = Rational(1, 2) * tanh(A * g / 2)

SYSTEM = Map(
    name="edge.threshold_neuron",
    source=Source("ahn2023threshold", "Section 4", "mean model"),
    axes={},
    updates={A: A - 2 * d**2 * eta * slope * g, b: b - eta * slope * A * below},
    params=(
        Param(d, 20.0, Interval.open(0, oo), "dimension of the inputs"),
        Param(eta, 0.1, Interval.open(0, oo), "learning rate; the threshold is 8 pi/d^2"),
    ),
    initial={A: 0.3, b: 0.0},
    steps=40,
    observables={"g": g, "excess": d**2 * g**2 * eta / 4 - 1},
    display={"g": g},
)
