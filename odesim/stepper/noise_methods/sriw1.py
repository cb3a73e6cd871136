"""SRIW1: strong order 1.5 for diagonal and for additive noise, with thirteen evaluations: for exact paths."""

from math import sqrt

from odesim.stepper.tableau import ALL, make_scheme

E = -1 / sqrt(3)
BETA = ((-1, 4 / 3, 2 / 3, 0), (-1, 4 / 3, -1 / 3, 0), (2, -4 / 3, -2 / 3, 0), (-2, 5 / 3, -2 / 3, 1))
"""Roessler's weights of g at its four places, of I1, I11/sqrt(h), I10/h, I111/h."""


def constant(d: float) -> tuple[float, ...]:
    """The row whose rate is d/sqrt(h)."""
    return (0.0, 0.0, d)


def last(place: int, d: float = 0.0, weight: float = 1.0) -> tuple[float, ...]:
    """The row that weighs g at a place as the new state does, over a weight, and d/sqrt(h) more."""
    I1, I11, I10, I111 = (row[place] / weight for row in BETA)
    return (I1 + I10 / 2, E * I10 / 2, d, I11, I111)


# Roessler has f and g apart, at places of their own; a stage here is f + g r at one place. So each place has stages with the rates that its
# weights in later stages need, and one more, by whose negative weight f falls out where it is not wanted:
# 0, 1: x with r = 2/sqrt(h) and -1/sqrt(h), which mix to any f1 and g1 sqrt(h)
# 2, 3: x for H0_2, 3/4 f1 h + 3/2 g1 I10/h, and for the new state
# 4: H0_2, for f
# 5 to 7: H1_2 = x + f1 h/4 + g1 sqrt(h)/2; 8 to 10: H1_3 = x + f1 h - g1 sqrt(h)
# 11, 12: H1_4 = x + f1 h/4 + (-5 g1 + 3 g2 + g3/2) sqrt(h)
SECOND, THIRD = (1 / 4,), (0.0, 1.0)
FOURTH = (-19 / 12, 11 / 6, 0.0, 0.0, 0.0, -3.0, 3.0, 0.0, -1 / 2, 1 / 2)
METHOD = make_scheme(
    "sriw1",
    (
        *((), (), (), (), (0.0, 0.0, 0.75)),
        *(SECOND, SECOND, SECOND, THIRD, THIRD, THIRD, FOURTH, FOURTH),
        (0.0, 0.0, 0.0, 1 / 3, 2 / 3, -1.0, 0.0, 1.0, -1.0, 0.0, 1.0, -1.0, 1.0),
    ),
    (
        *(constant(2.0), constant(-1.0), (1.0, E), last(0, weight=1 / 3), (0.0, 0.0)),
        *(row for place in (1, 2) for row in (constant(0.0), constant(1.0), last(place))),
        *(constant(0.0), last(3)),
    ),
    "Roessler 2010",
    kinds=ALL[:3],
)
