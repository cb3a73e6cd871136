"""Two weights in a row learn s = a b from noisy labels: the noise of stochastic gradients balances them.

Inputs x ~ N(0, 1), labels s x + N(0, s2), mini-batches of B drawn anew. With r = a b - s the gradient by the product has the mean r and
the variance (2 r^2 + s2)/B, and one channel shakes both weights. In Ito's sense, as written, a^2 - b^2 falls as
exp(-(eta/B) int (2 r^2 + s2) dt), path by path. The gradient flow, and the same equations in Stratonovich's sense, keep it.
"""

from sympy import Interval, oo, sqrt, symbols

from odesim.symbolic import Param, Source, System

a, b, W = symbols("a b W")
eta, B, s2 = symbols("eta B s2", nonnegative=True)
s = symbols("s", real=True)
r = a * b - s
strength = sqrt(eta * (2 * r**2 + s2) / B)

SYSTEM = System(
    name="noise.two_layer",
    source=Source("li2017stochastic", "Theorem 1", "two linear layers of one unit with a Gaussian input, where the variance is exact"),
    axes={},
    equations={a: -r * b, b: -r * a},
    noise={a: {W: strength * b}, b: {W: strength * a}},
    step=0.01,
    params=(
        Param(s, 1.0, Interval(-oo, oo), "product to be learnt"),
        Param(eta, 0.02, Interval(0, oo), "learning rate"),
        Param(B, 1.0, Interval.open(0, oo), "size of a mini-batch"),
        Param(s2, 0.25, Interval(0, oo), "variance of the noise of labels"),
    ),
    initial={a: 1.2, b: 0.5},
    span=(0.0, 10.0),
    time="steps times learning rate",
    observables={"balance": a**2 - b**2, "loss": r**2 / 2},
)
