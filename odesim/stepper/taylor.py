"""The Taylor method as numbers: its stages are the coefficients of the series, so that it steps, saves and controls as explicit methods do.

Stage j of a step of h is y_(j+1) h^j: the state inside is y + h sum_j theta^(j+1) k_j. How far the derivative of that polynomial is, at its
end, from the right-hand side there is p + 1 times the first term that is left out, for a small step: the error estimate. Unlike one from
the last coefficients, it does not take a series whose last terms happen to vanish for exact.

A. Jorba, M. Zou, A software package for the numerical integration of ODEs by means of high-order Taylor methods (2005), sec. 3: the order.
"""

from dataclasses import dataclass
from functools import cache
from math import ceil, log

import numpy as np

from odesim.base.errors import SolveError
from odesim.stepper.tableau import Method, make_method

LEAST, MOST = 4, 20


@dataclass(frozen=True, eq=False)
class Taylor(Method):
    """A Method whose stages 1 to last - 1 are Taylor coefficients (odesim.ir.series), all computed at the beginning of the step."""


def no_series(what: str) -> SolveError:
    """The error that the method does not take a system for what it has or is."""
    return SolveError(f"method 'taylor' is not for {what}; choose vern9")


def taylor_order(rtol: float) -> int:
    """The order that is cheapest at a relative tolerance, for coefficients whose cost grows with the square of the order."""
    return min(max(ceil(1 - 0.5 * log(max(rtol, 1e-16))), LEAST), MOST)


@cache
def taylor_method(order: int) -> Taylor:
    """The method of this order."""
    p, parts = order, np.eye(order)
    m = make_method(
        "taylor",
        order=p,
        last=p,
        c=[0.0] * p + [1.0],
        A=[()] * p + [(1.0,) * p],
        P=[*parts.tolist(), [0.0]],
        E=[*(-(j + 1) / (p + 1) for j in range(p)), 1 / (p + 1)],
        error_order=p + 1,
        dense_order=p,
        gains=(1 / (p + 1) - 0.75 * 0.2 / (p + 1), 0.2 / (p + 1)),  # the same share of the order as in tsit5, vern7 and vern9
        source="Jorba, Zou 2005",
    )
    return Taylor(**vars(m))
