"""SRA1: strong order 1.5 for additive noise that is constant in time, with two evaluations and two normal numbers a channel."""

from math import sqrt

from odesim.stepper.tableau import ALL, make_scheme

E = -1 / sqrt(3)
"""I10/h = sqrt(h) (xi0 + E xi1)/2, the integral of the path over a step of h, in units of h."""
# Roessler writes it with the noise apart: H = x + 3/4 f1 h + 3/2 g I10/h, x + (f1 + 2 f(H)) h/3 + g I1. Where g is constant, that is the
# same as stages that see the rates 2 I10/h^2 and (3 I1/h - 2 I10/h^2)/2: the second has what the first had too much
METHOD = make_scheme("sra1", ((), (0.75,), (1 / 3, 2 / 3)), [(1.0, E), (1.0, -E / 2)], "Roessler 2010", kinds=ALL[:1])
