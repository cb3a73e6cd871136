"""Theory beside training: what both speak of, on one clock, and how far they are apart."""

from odesim.comparison.compare import Comparison, Passed, compare_sides
from odesim.comparison.side import Side, side_of_solution, side_of_training

__all__ = ["Comparison", "Passed", "Side", "compare_sides", "side_of_solution", "side_of_training"]
