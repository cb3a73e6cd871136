"""What the literature says of the Rosenbrock methods, for the laws that hold their coefficients and runs against it: a row a method."""

from dataclasses import dataclass


@dataclass(frozen=True)
class StiffFacts:
    """What is known of a Rosenbrock method.

    exact: the degree of phi up to which y' = lambda (y - phi) + phi' is solved exactly. order: of y' = -lambda (y - phi) + phi' for all
    lambda together. alpha, d: the times and the weights of df/dt, as the source prints them beside the coefficients they follow from.
    robertson, van_der_pol, forced: more steps than a run of tests/run/test_rosenbrock.py takes.
    """

    exact: int
    order: float
    alpha: tuple[float, ...]
    d: tuple[float, ...]
    robertson: int
    van_der_pol: int
    forced: int


STIFF = {
    # rodas.f of Hairer and Wanner
    "rodas4": StiffFacts(1, 2.6, (0, 0.386, 0.21, 0.63, 1, 1), (0.25, -0.1043, 0.1035, -0.0362, 0, 0), 700, 3000, 400),
    # rosenbrock_tableaus.jl of OrdinaryDiffEq.jl
    "rodas5p": StiffFacts(
        3,
        4.0,
        (0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664, 1, 1, 1),
        (0.21193756319429014, -0.42387512638858027, -0.3384627126235924, 1.8046452872882734, 2.325825639765069, 0, 0, 0),
        300,
        1500,
        100,
    ),
}
