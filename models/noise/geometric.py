"""Noise in proportion to the state, whose moments are known exactly: what an order of a step means, in the mean and path by path.

x = x0 exp((mu - s^2/2) t + s B): the mean grows at mu, the second moment at 2 mu + s^2, and most paths fall where mu < s^2/2, though the
mean grows. In steps of h Euler's method has the moments (1 + mu h)^n and ((1 + mu h)^2 + s^2 h)^n; Milstein's adds s^4 h^2/2 to the
second factor, and is no better in the mean.

One weight that stochastic gradients train without noise of labels is of this kind: noise.sgd_least_squares with D = 1 and s2 = 0.
"""

from sympy import Interval, oo, symbols

from odesim.symbolic import Param, Source, System

x, B = symbols("x B")
mu, s = symbols("mu s", real=True)

SYSTEM = System(
    name="noise.geometric",
    source=Source("kloeden1992numerical", "Section 4.4"),
    axes={},
    equations={x: mu * x},
    noise={x: {B: s * x}},
    step=0.01,
    params=(
        Param(mu, 1.5, Interval(-oo, oo), "rate of the mean"),
        Param(s, 0.8, Interval(-oo, oo), "strength of the noise, over the state"),
    ),
    initial={x: 1.0},
    span=(0.0, 1.0),
    time="any unit",
    observables={"square": x**2},
)
