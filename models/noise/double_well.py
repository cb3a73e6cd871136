"""A state in a double well with noise: it stays on one side for long, and crosses at a rate that falls exponentially with the noise.

The well is V = x^4/4 - x^2/2, T the temperature. In the end the density is exp(-V/T), so that E x^4 = E x^2 + T. The mean from one well
falls at the least eigenvalue of the equation of Fokker and Planck; for small T that is (sqrt(2)/pi) exp(-1/(4 T)), twice the rate of
Kramers, at which one well is left: sqrt(2)/(2 pi) is the root of the curvatures at the bottom and at the top, over 2 pi, and 1/4 the
height between them.
"""

from sympy import Interval, oo, sqrt, symbols

from odesim.symbolic import Lines, Param, Source, System

x, W = symbols("x W")
T = symbols("T", nonnegative=True)

SYSTEM = System(
    name="noise.double_well",
    source=Source("kramers1940brownian", "large viscosity", "one well beside another"),
    axes={},
    equations={x: x - x**3},
    noise={x: {W: sqrt(2 * T)}},
    step=0.02,
    params=(Param(T, 0.25, Interval(0, oo), "temperature; the barrier is 1/4 high"),),
    initial={x: 1.0},
    span=(0.0, 40.0),
    time="1/curvature at the top",
    observables={"square": x**2, "energy": x**4 / 4 - x**2 / 2},
    views=(Lines("x"),),
)
