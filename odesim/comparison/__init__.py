"""Compares a theory with a training: curves of the same quantities at common times, and measures of their distance."""

from odesim.lab.compare.comparison import Comparison, Passed, compare_sides
from odesim.lab.compare.sides import Side, side_of_solution, side_of_training

__all__ = ["Comparison", "Passed", "Side", "compare_sides", "side_of_solution", "side_of_training"]
