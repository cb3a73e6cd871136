"""Means of products of erf(x / sqrt 2) and its derivative over Gaussian fields: arXiv 1906.08632, appendix; Saad and Solla 1995."""

from collections.abc import Callable
from typing import Any

from sympy import asin, pi, sqrt

Cov = Callable[[Any, Any], Any]  # of two fields


def i2(C: Cov, a: Any, b: Any) -> Any:
    """E g(a) g(b)."""
    return 2 / pi * asin(C(a, b) / sqrt((1 + C(a, a)) * (1 + C(b, b))))


def det(C: Cov, a: Any, b: Any) -> Any:
    """The determinant of 1 + the covariance of two fields."""
    return (1 + C(a, a)) * (1 + C(b, b)) - C(a, b) ** 2


def det_3(C: Cov, a: Any, b: Any, c: Any) -> Any:
    """The determinant of 1 + the covariance of three fields."""
    pairs = C(b, c) ** 2 * (1 + C(a, a)) + C(a, c) ** 2 * (1 + C(b, b))
    return det(C, a, b) * (1 + C(c, c)) - pairs + 2 * C(a, b) * C(a, c) * C(b, c)


def i3(C: Cov, a: Any, b: Any, c: Any) -> Any:
    """E g'(a) b g(c)."""
    return 2 / pi * (C(b, c) * (1 + C(a, a)) - C(a, b) * C(a, c)) / (sqrt(det(C, a, c)) * (1 + C(a, a)))


def i4(C: Cov, a: Any, b: Any, c: Any, d: Any) -> Any:
    """E g'(a) g'(b) g(c) g(d)."""
    top = det(C, a, b) * C(c, d) - C(b, c) * C(b, d) * (1 + C(a, a)) - C(a, c) * C(a, d) * (1 + C(b, b))
    top += C(a, b) * (C(a, c) * C(b, d) + C(a, d) * C(b, c))
    return 4 / pi**2 / sqrt(det(C, a, b)) * asin(top / sqrt(det_3(C, a, b, c) * det_3(C, a, b, d)))
