"""Two channels that do not commute: the area that two Brownian motions enclose, which no method follows that sees their steps alone.

x' = B_1, y' = x B_2: E y^2 = t^2/2, E y^4 = 7 t^4/4. Given the increments of steps of h, the area within a step is unknown: the best that
increments allow is wrong by (t h/4)^(1/2) in the root of the mean square, Euler's method by (t h/2)^(1/2). That is order 1/2.
"""

from sympy import Integer, symbols

from odesim.symbolic import Source, System

x, y, B1, B2 = symbols("x y B1 B2")

SYSTEM = System(
    name="noise.area",
    source=Source("kloeden1992numerical", "Section 10.3", "the smallest case of noise that does not commute"),
    axes={},
    equations={x: Integer(0), y: Integer(0)},
    noise={x: {B1: Integer(1)}, y: {B2: x}},
    step=0.01,
    params=(),
    initial={x: 0.0, y: 0.0},
    span=(0.0, 1.0),
    time="any unit",
    observables={"square": y**2},
)
