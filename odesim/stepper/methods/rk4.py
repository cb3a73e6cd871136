"""The classical Runge-Kutta method: comparison with a program that takes such steps."""

from odesim.stepper.tableau import make_method

# Between two steps the cubic with the states and derivatives of both ends:
# theta y1 + (1 - theta) y0 + theta (theta - 1) ((1 - 2 theta)(y1 - y0) + (theta - 1) h k_0 + theta h k_4).
METHOD = make_method(
    "rk4",
    order=4,
    last=4,
    c=(0, 1 / 2, 1 / 2, 1, 1),
    A=((), (1 / 2,), (0, 1 / 2), (0, 0, 1), (1 / 6, 1 / 3, 1 / 3, 1 / 6)),
    P=(
        (1.0, 3 / 6 - 2, -2 / 6 + 1),
        (0.0, 3 / 3, -2 / 3),
        (0.0, 3 / 3, -2 / 3),
        (0.0, 3 / 6, -2 / 6),
        (0.0, -1.0, 1.0),
    ),
    dense_order=3,
    source="Kutta 1901",
)
