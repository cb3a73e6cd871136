"""Functions that the text of a step uses beside the rules of control; generated modules hold them as they are."""

from math import cos, inf
from typing import Any


def square(x: float) -> float:
    """x times itself."""
    return x * x


def larger(a: float, b: float) -> float:
    """The larger of two numbers; b where one is NaN."""
    return a if a > b else b


def above_zero(x: float) -> float:
    """x, or 1 where it is not above 0."""
    return x if x > 0.0 else 1.0


def grid(q: float, save: Any, saves: int) -> float:
    """The saved time of this number, infinity after the last."""
    return save[int(q)] if int(q) < saves else inf


def slant(i: int) -> float:
    """Component i of a direction that no symmetry of a system has."""
    return cos(1.0 + 2.4 * i)
