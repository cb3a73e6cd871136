"""How far a law pi over states is from another one, and the linear flow of a chain."""

from typing import Any

from sympy import Max, Sum

from odesim.symbolic import index, over, xlogy

(x,) = index("x")


def distance(pi: Any, law: Any) -> Any:
    """The total variation between two laws."""
    return over(Sum, abs(pi[x] - law[x]), (x, pi.shape[0])) / 2


def divergence(pi: Any, law: Any) -> Any:
    """The relative entropy of pi to a law; what rounding leaves below 0 counts as 0."""
    return over(Sum, xlogy(Max(pi[x], 0), Max(pi[x], 0) / law[x]), (x, pi.shape[0]))


def positive(pi: Any) -> Any:
    """The condition that no probability is below 0."""
    return over(Sum, Max(-pi[x], 0), (x, pi.shape[0])) <= 0


def linear(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """pi at time t: pi(0) exp(Q t)."""
    from scipy.linalg import expm

    return {"pi": y0["pi"] @ expm(params["Q"] * t)}
