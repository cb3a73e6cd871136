"""A state that returns to its mean against constant noise: Gaussian at all times, with a variance that comes to rest.

x has the mean m + (x0 - m) exp(-theta t), the variance s^2 (1 - exp(-2 theta t)) / (2 theta), and the covariance of two times
s^2 (exp(-theta |t - t'|) - exp(-theta (t + t'))) / (2 theta). In steps of h Euler's method has the mean m + (x0 - m)(1 - theta h)^n, and
adds s^2 h to the variance times (1 - theta h)^2. A weight at the bottom of a parabola moves so under noise that does not know where it is.
"""

from sympy import Interval, oo, symbols

from odesim.symbolic import Param, Source, System

x, B = symbols("x B")
m, s = symbols("m s", real=True)
theta = symbols("theta", positive=True)

SYSTEM = System(
    name="noise.ornstein_uhlenbeck",
    source=Source("kloeden1992numerical", "Section 4.4", "additive noise"),
    axes={},
    equations={x: theta * (m - x)},
    noise={x: {B: s}},
    step=0.01,
    params=(
        Param(theta, 1.5, Interval.open(0, oo), "rate of the return"),
        Param(m, 0.4, Interval(-oo, oo), "mean at rest"),
        Param(s, 0.7, Interval(-oo, oo), "strength of the noise"),
    ),
    initial={x: 2.0},
    span=(0.0, 4.0),
    time="any unit",
    observables={"square": x**2},
)
