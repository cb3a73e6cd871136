"""The weights of the stages inside a step: y(t + theta h) = y + h sum_j b_j(theta) k_j, b_j = sum_p P[j, p] theta^(p+1)."""

from typing import Any


def weight(coefficients: Any, degree: int, theta: float) -> float:
    """b(theta) by Horner's scheme; coefficients (degree,): of theta, theta^2, ..."""
    value = 0.0
    for p in range(degree):
        value = (value + coefficients[degree - 1 - p]) * theta
    return value
